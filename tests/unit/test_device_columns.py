"""Hits that stay on a GPU as columns, and queries that lie there, on a GPU that the CPU plays: those of the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import warpseed

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.pretend_cupy import TheirArray
from queries_there import letters_of, there, words
from test_docs import ROOT, block_of
from test_gpu_searches import index, pretended
from warpseed import find_kmers, find_mems, find_reads, iter_kmer_hits, iter_mem_hits, iter_read_hits
from warpseed.compute import device_batches
from warpseed.compute import gpu as device
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError, MemoryLimitError
from warpseed.kmer_seeds import cpu
from warpseed.kmer_seeds.floors import column_rows, draw_kmers
from warpseed.sequences.queries import Queries

__all__ = ["index", "pretended"]

ON_GPU: dict[str, Any] = {"device": "gpu", "on_device": True}
FINDS = pytest.mark.parametrize(
    ("find", "asked"),
    [
        pytest.param(find_kmers, {"max_mismatches": 0}, id="kmers-0"),
        pytest.param(find_kmers, {"max_mismatches": 2}, id="kmers-2"),
        pytest.param(find_reads, {"max_edits": 0}, id="reads-0"),
        pytest.param(find_reads, {"max_edits": 1, "both_strands": False}, id="reads-1"),
        pytest.param(find_reads, {"max_edits": 2}, id="reads-2"),
        pytest.param(find_mems, {"min_length": 9, "kind": "super"}, id="mems-super"),
        pytest.param(find_mems, {"min_length": 12, "kind": "maximal"}, id="mems-maximal"),
        pytest.param(find_mems, {"min_length": 10, "kind": "paper", "max_occurrences": 4}, id="mems-paper"),
    ],
)
KERNELS = ("make_hit_columns", "make_placement_columns", "make_match_columns")
NOTHING = "CCCCCCCCCCCCCCCCCCCCCC"
Find = Callable[..., Any]


@FINDS
@pytest.mark.parametrize("max_hits", [None, 30])
def test_columns_are_the_hosts_hits(
    index: Any, pretended: Any, tmp_path: Path, find: Find, asked: dict[str, Any], max_hits: int | None
) -> None:
    queries = ["GATTACA", "A", "NNN", *words(80, 60)]
    asked = {**asked, "max_hits": max_hits}
    path = tmp_path / "queries.fa"
    path.write_text("".join(f">q{i}\n{query}\n" for i, query in enumerate(queries)))
    for source in (queries, str(path), Queries.from_sequences(queries)):
        watch = Stopwatch()
        found, expected = find(index, source, watch=watch, **ON_GPU, **asked), find(index, source, **asked)
        assert found.to_host() == expected and len(found) == len(expected) > 15
        assert list(found.columns) == list(expected.dtype.names)
        for name, column in found.columns.items():
            assert column.dtype == expected.dtype[name] and column.flags.c_contiguous
            assert column.tolist() == expected.rows()[name].tolist()
        for name in ("query", "contig", "start", "end", "strand", "distance"):
            assert getattr(found, name) is found.columns[name]
        assert found.counts.dtype == np.int64 and found.counts.tolist() == expected.counts.tolist()
        assert {"read", "pack", "host_to_device", "kernel", "columns"} <= set(watch.seconds)
    assert repr(found) == f"<{len(expected)} hits of {len(queries)} queries, on a GPU>"
    assert find(index, letters_of(queries), **ON_GPU, **asked).to_host() == find(index, queries, **asked)


def test_kmers_are_cut_as_on_the_host(index: Any, pretended: Any) -> None:
    reads = words(20, 60)
    found = find_kmers(index, reads, k=12, step=5, **ON_GPU).to_host()
    assert found == find_kmers(index, reads, k=12, step=5) and len(found)


@FINDS
@pytest.mark.parametrize("queries", [[], [NOTHING], [NOTHING, "GATTACAGATTACAGATTACA"]])
def test_no_hits_or_no_queries_have_empty_columns(
    index: Any, pretended: Any, find: Find, asked: dict[str, Any], queries: list[str]
) -> None:
    expected = find(index, queries, **asked)
    for source in (queries, letters_of(queries)):
        found = find(index, source, **ON_GPU, **asked)
        assert found.to_host() == expected and len(found.counts) == len(queries)
        assert {name: column.dtype for name, column in found.columns.items()} == {
            name: expected.dtype[name] for name in expected.dtype.names
        }


@FINDS
def test_small_batches_are_joined_in_order(
    index: Any, pretended: Any, monkeypatch: pytest.MonkeyPatch, find: Find, asked: dict[str, Any]
) -> None:
    queries = [NOTHING, *words(80, 60)]
    expected = find(index, queries, max_hits=9, **asked)
    monkeypatch.setattr(device_batches, "LARGEST_BATCH", 7)
    for source in (queries, letters_of(queries)):
        assert find(index, source, max_hits=9, **ON_GPU, **asked).to_host() == expected


@pytest.mark.parametrize(("find", "largest"), [(find_kmers, 11_000), (find_reads, 66_000)])
def test_short_memory_makes_batches_smaller_or_is_told(
    index: Any,
    pretended: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    find: Find,
    largest: int,
) -> None:
    queries = words(80, 28)
    expected = find(index, queries)
    find(index, queries, **ON_GPU)
    package, kernels = pretended
    monkeypatch.setattr(device, "_probe", lambda size: None)
    package.largest = largest
    kernels.launched.clear()
    assert find(index, queries, **ON_GPU).to_host() == expected
    assert sum(name in KERNELS for name in kernels.launched) > 1
    assert "GPU 0 is short of memory" in capsys.readouterr().err
    package.largest = 100
    told = r"do not fit the GPU's memory \(.* GB are free\), where on_device=True leaves them; search fewer"
    with pytest.raises(MemoryLimitError, match=told):
        find(index, queries, **ON_GPU)


def test_matches_of_one_read_that_come_in_windows_of_the_text_are_refused(index: Any, pretended: Any) -> None:
    """As where they would not fit together: elsewhere they go to the host one window after the other."""
    reads, asked = ["GATTACAACGTTGCA" * 9], {"kind": "maximal", "min_length": 1}
    find_mems(index, reads, **ON_GPU)
    package, _ = pretended
    package.free = 80_000
    with pytest.raises(MemoryLimitError, match="where on_device=True leaves them; search fewer queries a call"):
        find_mems(index, reads, **ON_GPU, **asked)
    assert find_mems(index, reads, device="gpu", **asked) == find_mems(index, reads, **asked)


def test_what_is_timed_has_the_hosts_hits(index: Any, pretended: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kmers = draw_kmers(index, 12, 60, 0.02, 1)
    monkeypatch.setattr(pretended[0], "empty", lambda shape, dtype: np.empty(shape, dtype).view(TheirArray))
    fields = {"case": "k=12", "parameters": "k=12; mismatches=1", "tier": "fast", "queries": 60, "results": 0}
    rows = column_rows(index, kmers, 1, 9, repeats=2, fields=fields, floor=0.5)
    assert [row["metric"] for row in rows] == ["time", "time", "throughput", "floor", "share"]
    assert {row["case"] for row in rows} == {"k=12, letters to columns"}
    assert {row["parameters"] for row in rows} == {"k=12; mismatches=1; results=columns"}
    assert {row["results"] for row in rows} == {len(cpu.find_fast(index, kmers, 1, max_hits=9).hits)}
    make = pretended[1].make_hit_columns

    def make_another(*arguments: Any) -> None:
        make(*arguments)
        arguments[-1].end[3] += 1

    monkeypatch.setattr(pretended[1], "make_hit_columns", make_another)
    with pytest.raises(AssertionError, match="k=12: the column 'end' on the device is not that of the host"):
        column_rows(index, kmers, 1, 9, repeats=2, fields=fields, floor=0.5)


def test_the_example_of_the_docs_runs(index: Any, pretended: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting on the device, by whatever plays it."""
    example = block_of(ROOT / "docs" / "kmer_seeds.md", "python", "on_device=True")
    monkeypatch.setattr(pretended[0], "asarray", lambda array: np.array(array).view(TheirArray))
    names: dict[str, Any] = {"ws": warpseed, "index": index}
    exec(example, names)
    assert names["per_contig"].tolist() == np.bincount(names["hits"].contig, minlength=2).tolist()
    assert names["hits"].to_host() == names["on_host"]


# ------------------------------------------------------------------------------------------ refusals, which need no GPU


@pytest.mark.parametrize("find", [find_kmers, find_reads, find_mems])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "but device is 'cpu' and tier 'fast'; give device='gpu'"),
        ({"device": "gpu:0,1"}, "but device is 'gpu:0,1'"),
        ({"device": "gpu", "devices": [1, 2]}, "but device is 'gpu:1,2'"),
        ({"device": "gpu", "tier": "paper"}, "but device is 'gpu' and tier 'paper'"),
    ],
)
def test_what_leaves_nothing_on_one_gpu_is_refused(index: Any, find: Find, options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=f"^on_device=True leaves results on the one GPU that finds them.*{told}"):
        find(index, ["ACGT"], on_device=True, **options, **({"kind": "paper"} if find is find_mems else {}))


@pytest.mark.parametrize(
    ("find", "iterate"), [(find_kmers, iter_kmer_hits), (find_reads, iter_read_hits), (find_mems, iter_mem_hits)]
)
def test_other_mistakes_are_one_sentence(index: Any, find: Find, iterate: Find) -> None:
    with pytest.raises(InputError, match="on_device is 'yes', but True or False was expected"):
        find(index, ["ACGT"], device="gpu", on_device="yes")
    shown = SimpleNamespace(__dlpack_device__=lambda: (2, 0))
    for queries in (there([[65, 67]]), (there([65, 67]), [0, 2]), shown):
        with pytest.raises(InputError, match=f"the queries lie on a GPU, where .*{find.__name__}"):
            find(index, queries)
    with pytest.raises(InputError, match="the option 'on_device' is not known"):
        next(iter(iterate(index, ["ACGT"], on_device=True)))


def test_kmers_on_the_device_are_not_cut(index: Any) -> None:
    with pytest.raises(InputError, match="k is 2, but of letters on a GPU each query is a k-mer"):
        find_kmers(index, there([[65, 67]]), k=2, **ON_GPU)


@pytest.mark.parametrize("how", [{"report": "best"}, {"keep_reads": True}])
def test_all_placements_stay_without_their_reads(index: Any, how: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="leaves all placements on the GPU, without their reads, but report is"):
        find_reads(index, ["ACGT"], **ON_GPU, **how)

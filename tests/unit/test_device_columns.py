"""Hits that stay on a GPU as columns, and queries that lie there, on a GPU that the CPU plays: those of the host."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import warpseed

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.lockstep import run_kernel
from oracles.pretend_cupy import TheirArray
from test_docs import ROOT, block_of
from test_gpu_searches import index, pretended
from warpseed import find_kmers, iter_kmer_hits
from warpseed.compute import device_batches
from warpseed.compute import gpu as device
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError, MemoryLimitError
from warpseed.kmer_seeds import cpu
from warpseed.kmer_seeds.floors import column_rows, draw_kmers
from warpseed.output.rows import HIT_ROW
from warpseed.sequences import device_queries
from warpseed.sequences.alphabet import BASE_CODE, IS_IUPAC
from warpseed.sequences.packed import Packed, pack
from warpseed.sequences.queries import Queries

__all__ = ["index", "pretended"]

ON_GPU: dict[str, Any] = {"device": "gpu", "on_device": True}


def words(count: int, longest: int, seed: int = 3) -> list[str]:
    """Words of the index's first contig and of nothing, in either case, some with another letter."""
    draw = random.Random(seed)
    bases = "".join(random.Random(7).choices("ACGT", k=2000))
    some = []
    for _ in range(count):
        first, length = draw.randrange(1100), draw.randint(8, longest)
        word = list(bases[first : first + length])
        word[draw.randrange(length)] = draw.choice("ACGTNacgtnR")
        some.append("".join(word))
    return some


def there(values: Any, dtype: Any = np.uint8) -> TheirArray:
    """An array on the pretended device."""
    return np.array(values, dtype).view(TheirArray)


def letters_of(queries: list[str]) -> tuple[TheirArray, np.ndarray]:
    """The letters of queries on the device, and the offsets between them."""
    return there(bytearray("".join(queries), "ascii")), np.cumsum([0, *map(len, queries)])


# ------------------------------------------------------------------------------------------ queries


def test_a_letter_has_the_code_that_the_host_gives() -> None:
    codes = [device_queries.code_of_letter(letter) for letter in range(256)]
    assert codes == np.where(IS_IUPAC, BASE_CODE, 5).tolist()


@pytest.mark.parametrize("longest", [32, 100])
def test_the_kernel_packs_as_the_host(longest: int) -> None:
    queries = words(30, longest)
    letters, offsets = letters_of(queries)
    expected = pack(Queries.from_sequences(queries))
    found, marks = np.full(len(expected.words), 7, np.uint64), np.full(len(expected.words), 7, np.uint64)
    seen = np.array([len(letters), 0])
    arguments = letters.view(np.ndarray), offsets, expected.first, found, marks, seen
    run_kernel([device_queries], (), (device_queries.pack_letters, len(found), 32), *arguments)
    assert found.tolist() == expected.words.tolist() and marks.tolist() == expected.marks.tolist()
    assert seen.tolist() == [len(letters), 1]


def test_the_kernel_finds_the_first_byte_that_is_no_letter() -> None:
    letters, offsets = letters_of(["ACGTACGT", "AC-TACG.", "ACGTACGT", "ACG!"])
    arguments = letters.view(np.ndarray), offsets, np.empty(0, np.uint32), *np.zeros((2, 4), np.uint64)
    seen = np.array([len(letters), 0])
    run_kernel([device_queries], (), (device_queries.pack_letters, 4, 32), *arguments, seen)
    assert seen.tolist() == [10, 1]


@pytest.mark.parametrize("lengths", [(20,), (40,), (8, 30), (8, 90)])
def test_queries_on_the_device_are_packed_as_on_the_host(pretended: Any, lengths: tuple[int, ...]) -> None:
    queries = [word[:20] if lengths == (20,) else word for word in words(50, lengths[-1]) if len(word) >= 20]
    source: Any = letters_of(queries)
    if len(lengths) == 1:
        queries = [(word * 5)[: lengths[0]] for word in queries]
        source = there([list(word.encode()) for word in queries])
    packed = device_queries.pack_on_device(source, device_queries.Bounds("read", 1000))
    for mine, expected in zip(packed, pack(Queries.from_sequences(queries)), strict=True):
        assert mine.dtype == expected.dtype and mine.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (there([[65, 67], [65, 45]]), "number 1: found '-' at position 1; only IUPAC letters"),
        (letters_of(["ACGT", "AC\x01T"]), "number 1: found the byte 0x01 at position 2"),
        (
            letters_of(["ACGT", "", "ACG"]),
            r"k-mer number 2 \('1'\) has 0 bases, but 1 to 255 were expected; cut",
        ),
        (letters_of(["ACGT", "A" * 256]), r"k-mer number 2 \('1'\) has 256 bases"),
        (there(np.zeros((3, 0))), r"k-mer number 1 \('0'\) has 0 bases"),
        (there([65, 67]), "are uint8 of 1 dimensions, but letters were expected, uint8: a query a row"),
        (there([[65, 67]], np.int64), "are int64 of 2 dimensions"),
        ((there([65, 67]), np.array([0.0, 2.0])), "offsets of the queries on the GPU are float64, but whole numbers"),
        ((there([65, 67]), np.array([], np.int64)), "offsets of the queries on the GPU"),
        ((there([65, 67]), [0, 3]), "go from 0 to 3, but 0 to 2 was expected"),
        ((there([65, 67]), [0, 2, 1, 2]), r"k-mer number 2 \('1'\) has -1 bases"),
    ],
)
def test_bad_queries_are_told_by_their_number(index: Any, pretended: Any, source: Any, told: str) -> None:
    with pytest.raises(InputError, match=f"^the queries on the GPU.*{told}|^offsets of.*{told}|^{told}"):
        find_kmers(index, source, **ON_GPU)


def test_queries_of_another_device_are_refused(index: Any, pretended: Any) -> None:
    with pytest.raises(InputError, match=r"lie on GPU 0, but GPU 1 is to search; name that one \(device='gpu:0'\)"):
        find_kmers(index, there([[65, 67]]), device="gpu:1", on_device=True)


# ------------------------------------------------------------------------------------------ columns


@pytest.mark.parametrize("mismatches", [0, 2])
@pytest.mark.parametrize("max_hits", [None, 3])
def test_columns_are_the_hosts_hits(
    index: Any, pretended: Any, tmp_path: Path, mismatches: int, max_hits: int | None
) -> None:
    queries = ["GATTACA", "A", "NNN", *words(80, 60)]
    options: dict[str, Any] = {"max_mismatches": mismatches, "max_hits": max_hits}
    path = tmp_path / "kmers.fa"
    path.write_text("".join(f">q{i}\n{query}\n" for i, query in enumerate(queries)))
    for source in (queries, str(path), Queries.from_sequences(queries)):
        watch = Stopwatch()
        found = find_kmers(index, source, watch=watch, **ON_GPU, **options)
        expected = find_kmers(index, source, **options)
        assert found.to_host() == expected and len(found) == len(expected) > 15
        assert list(found.columns) == list(HIT_ROW.names or ())
        for name, column in found.columns.items():
            assert column.dtype == HIT_ROW[name] and column.flags.c_contiguous
            assert column is getattr(found, name) and column.tolist() == getattr(expected, name).tolist()
        assert found.counts.dtype == np.int64 and found.counts.tolist() == expected.counts.tolist()
        assert {"read", "pack", "host_to_device", "kernel", "sort", "columns"} <= set(watch.seconds)
    assert repr(found) == f"<{len(expected)} hits of {len(queries)} queries, on a GPU>"
    assert find_kmers(index, letters_of(queries), **ON_GPU, **options).to_host() == find_kmers(
        index, queries, **options
    )


def test_kmers_are_cut_as_on_the_host(index: Any, pretended: Any) -> None:
    reads = words(20, 60)
    found = find_kmers(index, reads, k=12, step=5, **ON_GPU).to_host()
    assert found == find_kmers(index, reads, k=12, step=5) and len(found)


@pytest.mark.parametrize("queries", [[], ["CCCCCCCCCCCCCCCCCC"], ["CCCCCCCCCCCCCCCCCC", "GATTACA"]])
def test_no_hits_or_no_queries_have_empty_columns(index: Any, pretended: Any, queries: list[str]) -> None:
    expected = find_kmers(index, queries)
    for source in (queries, letters_of(queries)):
        found = find_kmers(index, source, **ON_GPU)
        assert found.to_host() == expected and len(found.counts) == len(queries)
        assert [column.dtype for column in found.columns.values()] == [HIT_ROW[name] for name in HIT_ROW.names or ()]


def test_small_batches_are_joined_in_order(index: Any, pretended: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = ["CCCCCCCCCCCCCCCCCCC", *words(80, 60)]
    expected = find_kmers(index, queries, max_mismatches=1, max_hits=9)
    monkeypatch.setattr(device_batches, "LARGEST_BATCH", 7)
    for source in (queries, letters_of(queries)):
        assert find_kmers(index, source, max_mismatches=1, max_hits=9, **ON_GPU).to_host() == expected


def test_short_memory_makes_batches_smaller_or_is_told(
    index: Any, pretended: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    queries = words(80, 28)
    expected = find_kmers(index, queries)
    find_kmers(index, queries, **ON_GPU)
    package, kernels = pretended
    monkeypatch.setattr(device, "_probe", lambda size: None)
    package.largest = 11_000
    kernels.launched.clear()
    assert find_kmers(index, queries, **ON_GPU).to_host() == expected
    assert kernels.launched.count("make_hit_columns") > 1
    assert "GPU 0 is short of memory" in capsys.readouterr().err
    package.largest = 100
    told = r"do not fit the GPU's memory \(.* GB are free\), where on_device=True leaves them; search fewer"
    with pytest.raises(MemoryLimitError, match=told):
        find_kmers(index, queries, **ON_GPU)


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


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "but device is 'cpu' and tier 'fast'; give device='gpu'"),
        ({"device": "gpu:0,1"}, "but device is 'gpu:0,1'"),
        ({"device": "gpu", "devices": [1, 2]}, "but device is 'gpu:1,2'"),
        ({"device": "gpu", "tier": "paper"}, "but device is 'gpu' and tier 'paper'"),
    ],
)
def test_what_leaves_nothing_on_one_gpu_is_refused(index: Any, options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=f"^on_device=True leaves results on the one GPU that finds them.*{told}"):
        find_kmers(index, ["ACGT"], on_device=True, **options)


def test_other_mistakes_are_one_sentence(index: Any) -> None:
    with pytest.raises(InputError, match="on_device is 'yes', but True or False was expected"):
        find_kmers(index, ["ACGT"], device="gpu", on_device="yes")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="k is 2, but of letters on a GPU each query is a k-mer"):
        find_kmers(index, there([[65, 67]]), k=2, **ON_GPU)
    shown = SimpleNamespace(__dlpack_device__=lambda: (2, 0))
    for queries in (there([[65, 67]]), (there([65, 67]), [0, 2]), shown):
        with pytest.raises(InputError, match="the queries lie on a GPU, where find_kmers takes them"):
            find_kmers(index, queries)
    with pytest.raises(InputError, match="the option 'on_device' is not known"):
        next(iter(iter_kmer_hits(index, ["ACGT"], on_device=True)))  # type: ignore[call-arg]


def test_arrays_of_the_host_lie_on_no_gpu(index: Any) -> None:
    assert find_kmers(index, np.array(["GATTACA"])) == find_kmers(index, ["GATTACA"])


def test_device_arrays_stay_where_they_are(pretended: Any) -> None:
    words_there = pretended[0].zeros(3, np.uint64)
    assert device.to_device(Packed(words_there, *np.zeros((3, 0), np.uint64))).words is words_there

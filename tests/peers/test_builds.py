"""Building an index beside bwa's, or on a GPU alone: every repeat has its time and its memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from warpseed import build_index
from warpseed.errors import InputError
from warpseed.fm_index.checksum import digest_of_arrays
from warpseed.fm_index.layout import SeedIndex
from warpseed.measure import builds
from warpseed.measure.builds import time_builds
from warpseed.measure.peers.process import Process
from warpseed.measure.records import read_records, write_records
from warpseed.sequences.queries import read_queries


def test_our_builds_in_this_process_and_as_processes(write_reference: Callable[..., Path], tmp_path: Path) -> None:
    fasta = write_reference(["ACGTTGCATGCCATGATTGACCATGAGGCTA" * 40])
    rows = time_builds(fasta, system="kmer_seeds", threads=[1, 2], repeats=2, beside=["libdivsufsort"])
    write_records(tmp_path / "a.tsv", rows)
    frame = read_records(tmp_path / "a.tsv")
    assert set(frame["item"]) == {"index"} and set(frame["tier"]) == {"fast", "-"}
    ours = frame["tool"] == "warpseed"
    assert list(frame.loc[~ours, ["tool", "stage"]].drop_duplicates().itertuples(index=False)) == [
        ("libdivsufsort", "suffix_array")
    ]
    frame = frame[ours]
    for metric, low in (("time", 0.0), ("memory", 20e6)):
        processes = frame[(frame["stage"] == "process") & (frame["metric"] == metric)]
        assert list(zip(processes["repeat"], processes["threads"], strict=True)) == [(0, 1), (0, 2), (1, 1), (1, 2)]
        assert (processes["value"] > low).all()
    assert set(frame.loc[frame["metric"] == "memory", "unit"]) == {"bytes"}
    totals = frame[frame["stage"] == "total"]
    assert len(totals) == 4 and {"read", "text", "suffix_array"} <= set(frame["stage"])
    assert not {"bwt", "reverse"} & set(frame["stage"])  # the paper tier's parts are not made
    built = digest_of_arrays(build_index(fasta).arrays())
    assert set(frame.loc[frame["stage"] != "process", "digest"]) == {built}
    other = write_reference(["ACGTTGCATGCCATGATTGACCATGAGGCTA" * 39 + "ACGTTGCATGCCATGATTGACCATGAGGCTT"])
    assert digest_of_arrays(build_index(other).arrays()) != built


def sequences_of(path: str | Path) -> list[str]:
    queries = read_queries(path)
    return [queries.sequence(number) for number in range(len(queries))]


def test_smaller_genomes_are_the_first_bases(
    write_reference: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fasta = write_reference(["ACGTTGCATGCCATGATTGACCATGAGGCTA" * 10, "GATTACA" * 9, "ACGTNNGT"])
    built: dict[str, list[str]] = {}
    time_process = builds._our_process

    def note(path: str, folder: str, threads: int) -> Process:
        built[Path(path).name] = sequences_of(path)
        return time_process(path, folder, threads)

    monkeypatch.setattr(builds, "_our_process", note)
    first = [5, 310, 311, 373, 380]
    rows = time_builds(fasta, system="kmer_seeds", threads=[1, 2], repeats=1, first_bases=first)
    contigs = sequences_of(fasta)
    for bases in first:
        kept = built[f"first_{bases}.fa"]
        assert "".join(kept) == "".join(contigs)[:bases] and all(map(str.startswith, contigs, kept))
        own = [row for row in rows if row["case"] == f"build of the first {bases} bases"]
        assert sorted((row["stage"], row["metric"], row["threads"]) for row in own) == [
            ("process", "memory", 2),
            ("process", "time", 2),
        ]
        assert {row["parameters"] for row in own} == {f"bases={bases - (bases > 377) - (bases > 378)}"}  # N are none
    assert [len(built[f"first_{bases}.fa"]) for bases in first] == [1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (12, "12, but FILE has 12 bases; name fewer of them"),
        (10**9, "1,000,000,000, but FILE has 12 bases; name fewer of them"),
        (0, "0, but the first base of FILE that is A, C, G or T is number 5; name more of them"),
        (4, "4, but the first base of FILE that is A, C, G or T is number 5; name more of them"),
    ],
)
def test_first_bases_that_are_none(
    write_reference: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, first: int, said: str
) -> None:
    """Said before anything is timed."""
    fasta = str(write_reference(["NNNNACGT", "ACGT"]))
    monkeypatch.setattr(builds, "time_sides", None)
    with pytest.raises(InputError) as raised:
        time_builds(fasta, system="kmer_seeds", threads=[1], repeats=1, first_bases=[5, first])
    assert str(raised.value) == f"first_bases: {said.replace('FILE', fasta)}."


def test_a_gpus_builds_alone(
    write_reference: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No other tool is beside them, and no index lives on when the next is built; a GPU that the CPU plays."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from oracles.pretend_index import play_build

    play_build(monkeypatch)
    built: list[weakref.ref[SeedIndex]] = []

    def build_alone(*arguments: Any, **options: Any) -> SeedIndex:
        assert not any(index() for index in built)
        index = build_index(*arguments, **options)
        built.append(weakref.ref(index))
        return index

    monkeypatch.setattr(builds, "build_index", build_alone)
    fasta = write_reference(["ACGTTGCATGCCATGATTGACCATGAGGCTA" * 3])
    rows = time_builds(fasta, system="kmer_seeds", threads=[1, 2], repeats=2, devices=["gpu"])
    write_records(tmp_path / "a.tsv", rows)
    frame = read_records(tmp_path / "a.tsv")
    assert set(zip(frame["tool"], frame["tier"], frame["device"], frame["gpus"], frame["threads"], strict=True)) == {
        ("warpseed", "fast", "gpu", 1, 2)
    }
    assert set(frame["item"]) == {"index"} and set(frame["case"]) == {"build"} and set(frame["metric"]) == {"time"}
    stages = ["read", "text", "text_to_device", "suffix_array", "index_to_host", "total", "tagged_rows"]
    assert list(zip(frame["repeat"], frame["stage"], strict=True)) == [(n, stage) for n in range(2) for stage in stages]
    assert len(built) == 3  # one to warm up
    assert set(frame["digest"]) == {digest_of_arrays(build_index(fasta).arrays(), threads=2)}


@pytest.mark.peer("bwa")
def test_bwa_is_built_as_often(write_reference: Callable[..., Path], tmp_path: Path) -> None:
    fasta = write_reference(["ACGTTGCATGCCATGATTGACCATGAGGCTA" * 40])
    rows = time_builds(fasta, system="kmer_seeds", threads=[1, 2], repeats=2, beside=["bwa"])
    bwa = [(row["metric"], row["repeat"], row["threads"]) for row in rows if row["tool"] == "bwa"]
    assert bwa.count(("time", 0, 1)) == bwa.count(("time", 1, 1)) == 1
    assert sorted(bwa) == [("memory", 0, 1), ("memory", 1, 1), ("time", 0, 1), ("time", 1, 1)]

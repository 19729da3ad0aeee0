"""An index that a GPU makes is the CPU's, file by file; on a GPU, and on one that the CPU plays, with less text."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from command_line import fasta, save
from hostile_texts import HOSTILE, UNIT, bases
from oracles.pretend_index import play_build
from suffix_order import is_permutation, rows_out_of_order
from warpseed import build_index, cli, find_kmers
from warpseed.compute import gpu as device
from warpseed.compute.machine import usable_cores
from warpseed.compute.resident import copies_of, release
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError, MemoryLimitError
from warpseed.fm_index import gpu_suffix_array, gpu_suffix_ranks
from warpseed.fm_index.device import tagged_on_device
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.store import add_parts, open_index
from warpseed.kmer_seeds.floors import draw_kmers
from warpseed.sequences.human_like import simulate_human_like
from warpseed.sequences.reference import Reference, read_reference

ALL = "fast,paper"
THREADS = usable_cores()
EQUAL_BASES = 200_000_000
"""Of a genome whose whole index is made on the CPU, too."""
SORTED_BASES = int(os.environ.get("WARPSEED_SORTED_BASES", "1000000000"))
"""Of a genome whose suffix array is looked at without another; the CPU's is made, too, where the size was asked for."""
NEIGHBOURS = 1_000_000
"""Pairs of rows that are compared in it."""
CELEGANS = "celegans_WS220.fa.gz"
KMERS, K, MAX_HITS = 300_000, 20, 128
"""K-mers that are searched in two indexes, their length, and how many hits one may have."""


@pytest.fixture(params=["played", pytest.param("real", marks=pytest.mark.gpu)])
def played(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """What plays CuPy, or None on a GPU."""
    yield play_build(monkeypatch) if request.param == "played" else None
    if request.param == "real":
        device.give_back_memory()


@pytest.fixture(params=["", "small buckets", "few ties at a time"])
def room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ways that a suffix may take to its place, with small texts."""
    if request.param == "small buckets":
        monkeypatch.setattr(gpu_suffix_array, "_BUCKET", 4)
        monkeypatch.setattr(gpu_suffix_array, "MOST_PREFIX", 2)
    elif request.param == "few ties at a time":
        monkeypatch.setattr(gpu_suffix_ranks, "_TIE_BYTES", 1 << 60)
        monkeypatch.setattr(gpu_suffix_ranks, "_LEAST_TIES", 3)


def reference_of(contigs: list[str]) -> Reference:
    codes = np.array(["ACGTN".index(base) for contig in contigs for base in contig], np.uint8)
    lengths = np.array([len(contig) for contig in contigs], np.int64)
    return Reference(tuple(map(str, range(len(contigs)))), lengths, codes, str, "contigs")


def human_like(folder: Path, size: int) -> Reference:
    path = folder / "genome.fa"
    simulate_human_like(path, size=size, seed=7, threads=THREADS)
    reference = read_reference(path, THREADS)
    path.unlink()
    return reference


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Reference, SeedIndex]]:
    """A large genome, and its index as a GPU makes it. Both stay until the last test of this file: nothing but what
    needs them stands behind their first use."""
    reference = human_like(tmp_path_factory.mktemp("large"), SORTED_BASES)
    index = build_index(reference, threads=THREADS, device="gpu")
    yield reference, index
    with device.on_device(0):
        release(index)


@pytest.fixture
def much_memory() -> Iterator[None]:
    """Of the device, for this test: what it took is given back."""
    yield
    device.give_back_memory()


def assert_equal(made: SeedIndex, expected: SeedIndex) -> None:
    """All arrays of both are the same, and of the same types."""
    ours, theirs = made.arrays(), expected.arrays()
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        assert ours[name].dtype == array.dtype and np.array_equal(ours[name], array), name


def assert_same_hits(made: SeedIndex, expected: SeedIndex, count: int = KMERS) -> None:
    """K-mers from all of the genome have the same hits, column by column, on a GPU in one index and on the CPU in
    another; the same ones have too many."""
    words = draw_kmers(expected, K, count, 0.01, seed=7).words
    shifts = 62 - 2 * np.arange(K, dtype=np.uint64)
    letters = np.frombuffer(b"ACGT", np.uint8)[words[:, None] >> shifts & np.uint64(3)]
    kmers = letters.view(f"S{K}").ravel().tolist()
    for mismatches in (0, 1):
        how: Any = {"max_mismatches": mismatches, "max_hits": MAX_HITS, "threads": THREADS}
        found = find_kmers(made, kmers, device="gpu", **how)
        assert len(found) > count / 2 and found.dropped_queries
        assert found == find_kmers(expected, kmers, **how)


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts(played: Any, name: str) -> None:
    contigs = [contig[:70] for contig in HOSTILE[name][:5]] if played else HOSTILE[name]
    layouts = [{"occ_interval": 32, "sa_interval": 1, "table_length": 1}, {"occ_interval": 64, "sa_interval": 5}]
    for layout in layouts[1:] if played else layouts:
        reference = reference_of(contigs)
        built = build_index(reference, parts=ALL, device="gpu", **layout)
        assert_equal(built, build_index(reference, parts=ALL, **layout))
        assert list(built.seconds) == [
            "read", "text", "text_to_device", "suffix_array", "bwt", "index_to_host", "total",
        ]  # fmt: skip


@pytest.mark.gpu
def test_long_repeats_and_many_contigs() -> None:
    """Repeats that are longer than 2**16, equal contigs, thousands of short ones, and runs of N."""
    copy = bases(90_000)
    contigs = [
        copy + bases(50_000) + UNIT * 8_000 + "A" * 70_000 + bases(100_000) + copy[:80_000],
        copy,
        "N" * 500 + copy[1000:2000] + "N" * 70_000 + "ACGT" * 20_000,
        *[bases(length % 70 + 1) for length in range(5_000)],
        *["A", "C", "T" * 17] * 300,
    ]
    reference = reference_of(contigs)
    assert_equal(
        build_index(reference, parts=ALL, device="gpu", table_length=15),
        build_index(reference, parts=ALL, threads=2, table_length=15),
    )


@pytest.mark.gpu
@pytest.mark.usefixtures("much_memory")
def test_a_human_like_genome(tmp_path: Path) -> None:
    """Families of repeats, arrays, duplications and gaps, in buckets of their usual size."""
    reference = human_like(tmp_path, EQUAL_BASES)
    made = build_index(reference, parts=ALL, threads=THREADS, device="gpu")
    expected = build_index(reference, parts=ALL, threads=THREADS)
    assert_equal(made, expected)
    assert_same_hits(made, expected)


def test_the_same_hits_in_a_small_genome(monkeypatch: pytest.MonkeyPatch) -> None:
    """What large genomes are asked, of one with a repeat, on a GPU that the CPU plays."""
    reference = reference_of([bases(1_500), "N" * 30 + (bases(K) + "T") * (MAX_HITS + 1) + bases(70)])
    expected = build_index(reference)
    play_build(monkeypatch, expected)
    made = build_index(reference, device="gpu")
    assert_equal(made, expected)
    assert_same_hits(made, expected, count=1_000)


@pytest.mark.gpu
@pytest.mark.parametrize("size", ["bacterial", "nematode"])
def test_files_are_the_same(real_genome: Path, size: str, tmp_path: Path) -> None:
    """Of E. coli, and of C. elegans where the data folder has it, else of one as long."""
    genome = real_genome
    if size == "nematode":
        genome = Path(os.environ.get("WARPSEED_DATA", "")) / CELEGANS
        if not genome.is_file():
            genome = tmp_path / "genome.fa"
            simulate_human_like(genome, size=100_000_000, seed=7, threads=THREADS)
    for target in ("cpu", "gpu"):
        arguments = ["index", str(genome), "-o", str(tmp_path / target), "--parts", ALL, "--device", target]
        assert cli.main(arguments) == 0
    names = sorted(path.name for path in (tmp_path / "cpu").iterdir())
    assert "fast.suffix_array.npy" in names and "reverse.rsa.npy" in names
    for name in names:
        assert (tmp_path / "gpu" / name).read_bytes() == (tmp_path / "cpu" / name).read_bytes(), name


def test_parts_are_added(played: Any, tmp_path: Path) -> None:
    """To an index that has a suffix array, and to one that has none."""
    genome = save(tmp_path, "genome.fa", fasta({"a": bases(300), "b": "ACGT" * 20 + "NN" + bases(70)}))
    whole = build_index(genome, parts=ALL)
    for first, more in (("fast", "paper"), ("forward", "fast,reverse")):
        folder = tmp_path / first
        build_index(genome, parts=first).save(folder)
        grown = add_parts(folder, more, device="gpu")
        assert_equal(grown, whole)
        assert_equal(open_index(folder), whole)
        assert "suffix_array" in grown.seconds


@pytest.mark.gpu
def test_what_was_built_stays_for_searches() -> None:
    """Text and suffix array are not brought again, and the suffix array is gone when tagged rows are there."""
    contigs = [bases(5_000), bases(700)]
    index = build_index(reference_of(contigs), device="gpu")
    assert copies_of(index, "suffix array").keys() == {0}
    kmers = [contigs[0][i : i + 20] for i in range(0, 4_000, 37)]
    found = find_kmers(index, kmers, device="gpu", max_mismatches=1)
    assert copies_of(index, "suffix array") == {}
    fresh = build_index(reference_of(contigs))
    expected = find_kmers(fresh, kmers, max_mismatches=1)
    assert len(found) > 100 and found == expected
    with device.on_device(0):
        ours, theirs = (tagged_on_device(each, Stopwatch()) for each in (index, fresh))
    assert np.array_equal(ours.rows.get(), theirs.rows.get())


def test_little_memory_is_told_before_anything_is_sorted(
    played: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refused: Any
) -> None:
    monkeypatch.setattr(gpu_suffix_array, "free_memory", lambda: 1_000)
    genome = save(tmp_path, "genome.fa", fasta({"a": bases(300), "b": "ACGT" * 20}))
    with pytest.raises(MemoryLimitError, match="Sorting 382 suffixes takes 0.0 GB of the GPU's memory"):
        build_index(genome, device="gpu")
    told = refused("index", genome, "-o", str(tmp_path / "index"), "--device", "gpu")
    assert told.startswith("Sorting 382 suffixes takes") and told.endswith("use a larger GPU, or device cpu.")


def test_buckets_are_smaller_where_memory_is_little(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As small as they must be: with all that is needed but a byte, they share a base more."""
    reference = reference_of([bases(3_000), bases(40)])
    expected = build_index(reference)
    dealt: list[int] = []
    count = gpu_suffix_array._Sorter._count

    def counted(sorter: Any, prefix: int) -> np.ndarray:
        borders = count(sorter, prefix)
        dealt.append(8 * int(borders[-1]) + 48 * int(np.diff(borders).max()))
        return borders

    monkeypatch.setattr(gpu_suffix_array._Sorter, "_count", counted)
    tables = 4 << 2 * expected.parameters.table_length
    free = [1 << 40]
    monkeypatch.setattr(gpu_suffix_array, "free_memory", lambda: free[0])
    for shared in (1, 2, 3):
        dealt.clear()
        assert_equal(build_index(reference, device="gpu"), expected)
        assert len(dealt) == shared and dealt == sorted(dealt, reverse=True)
        free[0] = tables + dealt[-1] - 1


def test_one_device_makes_an_index(tmp_path: Path) -> None:
    genome = save(tmp_path, "genome.fa", fasta({"a": bases(30)}))
    with pytest.raises(InputError, match="device is 'gpu:0,1', but an index is made by one: 'cpu', 'gpu' or"):
        build_index(genome, device="gpu:0,1")
    with pytest.raises(InputError, match="device is 'tpu', but"):
        build_index(genome, device="tpu")


@pytest.mark.gpu
def test_the_order_of_a_large_genome(large: tuple[Reference, SeedIndex]) -> None:
    """Each position has a row, and neighbours are in order, by what the packed text says."""
    index = large[1]
    suffix_array = index.fast.suffix_array
    assert len(suffix_array) == index.rows and is_permutation(suffix_array, THREADS)
    rows = np.random.default_rng(7).integers(0, index.rows - 1, NEIGHBOURS)
    assert not len(rows_out_of_order(index.text, index.segments.text_start, suffix_array, rows))


@pytest.mark.gpu
@pytest.mark.skipif("WARPSEED_SORTED_BASES" not in os.environ, reason="set WARPSEED_SORTED_BASES: the CPU takes long")
def test_the_same_hits_in_a_large_genome(large: tuple[Reference, SeedIndex]) -> None:
    """At 3.1 Gbp the CPU takes two minutes on 16 cores, and the host needs 46 GB: 3 for the reference, 14 for the GPU's
    index, 29 while the CPU sorts."""
    reference, made = large
    expected = build_index(reference, threads=THREADS)
    assert_equal(made, expected)
    assert_same_hits(made, expected)

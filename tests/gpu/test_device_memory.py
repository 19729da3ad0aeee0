"""Small batches, little memory, several devices give the same hits; what lies on a device is shared and freed.

On a GPU; what does not depend on a device's own memory also on one that the CPU plays, with fewer queries.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import warpseed

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from gpu_systems import KMERS, MEMS, READS, SEARCHES, SYSTEMS, Genome, System, assert_same
from oracles.pretend_gpu import PretendCupy, install
from warpseed import build_index, cli
from warpseed.compute import device_batches, device_stream
from warpseed.compute import gpu as device
from warpseed.compute.resident import release
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.binned import PAPER_PARAMETERS
from warpseed.fm_index.device import binned_on_device, bwt_on_device, tagged_on_device, text_on_device
from warpseed.fm_index.layout import SeedIndex
from warpseed.kmer_seeds import cpu, gpu
from warpseed.mems import cpu as mem_cpu
from warpseed.mems import fast as mem_fast
from warpseed.mems import gpu as mem_gpu
from warpseed.mems.matches import MAXIMAL, PAPER, SUPER, Criteria
from warpseed.mems.reads import pack_long_reads
from warpseed.output.from_device import DeviceHits
from warpseed.output.rows import Found
from warpseed.sequences.packed import Packed, part_of
from warpseed.sequences.queries import write_fasta
from warpseed.sequences.reference import read_reference
from warpseed.sequences.simulate import simulate_reads

real = pytest.mark.gpu


def bring_parts(index: SeedIndex) -> None:
    """What searches share, to the first device, where it is not there yet."""
    with device.on_device(0):
        tagged_on_device(index, Stopwatch())
        bwt_on_device(index, "forward", Stopwatch())
        binned_on_device(index, MEMS.asked(1).min_length, PAPER_PARAMETERS, Stopwatch())


@pytest.fixture(
    scope="module", params=[pytest.param("played", marks=pytest.mark.thorough), pytest.param("real", marks=real)]
)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Genome:
    """A genome of some thousand bases for a GPU that is played, a real one for a GPU."""
    played = request.param == "played"
    if played:
        draw = random.Random(7)
        path = tmp_path_factory.mktemp("genome") / "genome.fa"
        bases = "".join(draw.choices("ACGT", k=6000))
        path.write_text(f">a\n{bases[:4200]}NN{bases[4200:]}{bases[300:720]}\n>b\n{'GATTACA' * 30}\n")
    else:
        path = request.getfixturevalue("real_genome")
    reference = read_reference(path)
    index = build_index(reference, parts=("fast", "paper"), threads=2)
    if not played:
        # Before anything else is there: what lies in a block of the pool that others left keeps all of that block.
        bring_parts(index)
    return Genome(reference, index, played)


@pytest.fixture
def played(built: Genome, monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendCupy | None]:
    """What plays CuPy, with two devices, where one is played. Nothing has been said of short memory yet."""
    monkeypatch.setattr(device_batches, "_told", set())
    if not built.played:
        yield None
        return
    package, _ = install(monkeypatch, built.index, devices=2)
    monkeypatch.setattr(device, "_probe", lambda size: None)
    yield package
    for number in range(2):
        with device.on_device(number):
            release(built.index)


@pytest.fixture
def genome(built: Genome, played: PretendCupy | None) -> Genome:
    """A genome that can be searched."""
    return built


@pytest.fixture
def leave(built: Genome, played: PretendCupy | None) -> Iterator[Callable[[int], None]]:
    """A function that leaves so many bytes of device memory beside what is brought there once. (One that is played
    refuses arrays which alone have more.)"""
    pool = device.cupy().get_default_memory_pool()
    filling: list[object] = []

    def limit(size: int) -> None:
        bring_parts(built.index)
        with device.on_device(0):
            if played is not None:
                played.free = played.largest = size
                return
            device.give_back_memory()
            # What is free beside what is used, in blocks of the pool that cannot be given back, is taken.
            pool.set_limit(size=pool.total_bytes())
            piece = int(pool.free_bytes())
            while piece >= 1 << 16:
                try:
                    filling.append(device.cupy().empty(piece, "u1"))
                except device.cupy().cuda.memory.OutOfMemoryError:
                    piece //= 2
            pool.set_limit(size=pool.total_bytes() + size)

    yield limit
    filling.clear()
    if played is None:
        pool.set_limit(size=0)


@SEARCHES
def test_small_batches_find_the_same(
    genome: Genome, monkeypatch: pytest.MonkeyPatch, system: System, tier: str, distance: int
) -> None:
    count = 300 if genome.played else 20_000
    queries = system.draw(genome, count, distance)
    for options in ({}, {"max_hits": 3}, {"count_only": True}):
        monkeypatch.setattr(device_batches, "LARGEST_BATCH", 1 << 25)
        whole = system.find(genome.index, queries, tier, distance, **options)
        for largest in (count // 2 - 1, count // 25):
            monkeypatch.setattr(device_batches, "LARGEST_BATCH", largest)
            assert_same(system.find(genome.index, queries, tier, distance, **options), whole)


@pytest.mark.parametrize("mismatches", [0, 1, 2])
def test_intervals_of_small_batches_locate_to_the_same(
    genome: Genome, monkeypatch: pytest.MonkeyPatch, mismatches: int
) -> None:
    index, kmers = genome.index, KMERS.draw(genome, 500 if genome.played else 5_000, 3)
    expected = cpu.find_paper(index, kmers, mismatches, max_hits=50)
    for largest in (1 << 25, 99 if genome.played else 999):
        monkeypatch.setattr(device_batches, "LARGEST_BATCH", largest)
        intervals = gpu.search_paper(index, kmers, mismatches, max_hits=50)
        assert_same(cpu.locate_intervals(index, kmers, intervals, mismatches), expected)


@SEARCHES
def test_streamed_queries_find_the_same(
    genome: Genome, monkeypatch: pytest.MonkeyPatch, system: System, tier: str, distance: int
) -> None:
    """Pieces of several sizes on one and more devices; many small batches, so that two are always in flight."""
    count = 400 if genome.played else 100_000 if system is KMERS else 20_000
    queries = system.draw(genome, count, distance)
    device_numbers = {(0,), tuple(range(device.device_count()))}
    for options in ({"max_hits": None}, {"max_hits": 3}):
        whole = system.find(genome.index, queries, tier, distance, **options)
        for least, largest in ((1 << 18, 1 << 20), (count // 200, count // 50)):
            monkeypatch.setattr(device_stream, "LEAST_BATCH", least)
            monkeypatch.setattr(device_stream, "LARGEST_BATCH", largest)
            pieces = [(count, (0,)), (count // 3 - 11, (0,)), *((count // 100 - 3, each) for each in device_numbers)]
            for size, devices in pieces:
                found = system.streamed(genome.index, queries, tier, distance, size, devices=devices, **options)
                assert_same(found, whole)


class Short(NamedTuple):
    """A search, and queries with bytes that hold what some of them need, not all."""

    system: System
    tier: str
    distance: int
    on_gpu: tuple[int, int]
    on_played: tuple[int, int]
    """of these, where the CPU plays the GPU"""

    def of(self, genome: Genome) -> tuple[int, int]:
        """The number of queries, and the bytes."""
        return self.on_played if genome.played else self.on_gpu

    def find(self, genome: Genome, queries: Packed) -> Found:
        return self.system.find(genome.index, queries, self.tier, self.distance, max_hits=128)


def shorts(*shorts: Short) -> pytest.MarkDecorator:
    ids = [f"{short.system.name}-{short.tier}-{short.distance}" for short in shorts]
    return pytest.mark.parametrize("short", shorts, ids=ids)


LITTLE = shorts(
    Short(KMERS, "fast", 0, (3_000_000, 64 << 20), (4000, 40_000)),
    Short(KMERS, "fast", 1, (3_000_000, 200 << 20), (4000, 90_000)),
    Short(READS, "fast", 1, (500_000, 20 << 20), (4000, 90_000)),
    Short(READS, "fast", 2, (500_000, 20 << 20), (4000, 90_000)),
    Short(MEMS, "fast", 2, (200_000, 400 << 20), (2000, 500_000)),
    Short(READS, "paper", 1, (300_000, 12 << 20), (500, 5_000)),
    Short(MEMS, "paper", 1, (200_000, 1 << 30), (300, 1_000_000)),
)


def assert_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "GPU 0 is short of memory" in told


@LITTLE
def test_streamed_queries_in_little_memory(
    genome: Genome,
    leave: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    short: Short,
) -> None:
    """The estimate sees plenty; CuPy refuses memory to one batch beside another, then to one alone."""
    count, size = short.of(genome)
    queries = short.system.draw(genome, count, 7)
    whole = short.find(genome, queries)
    capsys.readouterr()
    leave(size)
    monkeypatch.setattr(device_stream, "free_memory", lambda: 1 << 40)
    streamed = short.system.streamed(genome.index, queries, short.tier, short.distance, count // 2, max_hits=128)
    assert_same(streamed, whole)
    assert_told_once(capsys)


@LITTLE
def test_batches_that_fail_are_halved(
    genome: Genome,
    leave: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    short: Short,
) -> None:
    """CuPy refuses memory in the middle of a batch, since the estimate is made to see plenty."""
    count, size = short.of(genome)
    queries = short.system.draw(genome, count, 2)
    whole = short.find(genome, queries)
    capsys.readouterr()
    leave(size)
    monkeypatch.setattr(device_batches, "free_memory", lambda: 1 << 40)
    assert_same(short.find(genome, queries), whole)
    assert_told_once(capsys)


@shorts(
    Short(KMERS, "fast", 1, (4_000_000, 1 << 30), (4000, 400_000)),
    Short(READS, "fast", 1, (500_000, 1 << 28), (4000, 400_000)),
)
def test_batches_are_as_large_as_the_estimate_says(
    genome: Genome, leave: Callable[[int], None], capsys: pytest.CaptureFixture[str], short: Short
) -> None:
    """It says that they do not fit together: batches are smaller, and one line says so."""
    count, size = short.of(genome)
    queries = short.system.draw(genome, count, 1)
    whole = short.find(genome, queries)
    assert capsys.readouterr().err == ""
    leave(size)
    assert_same(short.find(genome, queries), whole)
    assert_told_once(capsys)


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1000])
def test_hits_come_to_any_place(count: int) -> None:
    """Wherever a line of the host's cache begins in it."""
    hits, counts = np.arange(2 * count, dtype=np.uint64) + np.uint64(1), np.arange(count, dtype=np.int64) + 1
    with device.on_device(0):
        there = DeviceHits(*map(device.cupy().asarray, (hits, counts)), 0, 0, 0)
        for before in range(9):
            memory = np.zeros(3 * count + before + 9, np.uint64)
            place = slice(before, before + 2 * count), slice(before + 2 * count, before + 3 * count)
            there.bring(memory[place[0]], memory[place[1]].view(np.int64))
            device.synchronize()
            assert memory[place[0]].tolist() == hits.tolist() and memory[place[1]].tolist() == counts.tolist()
            assert not memory[:before].any() and not memory[before + 3 * count :].any()


def two_devices() -> None:
    if device.device_count() < 2:
        pytest.skip("one GPU is visible, and this needs two")


@SYSTEMS
def test_several_devices_find_the_same(genome: Genome, monkeypatch: pytest.MonkeyPatch, system: System) -> None:
    two_devices()
    count = 900 if genome.played else 300_000 if system is KMERS else 50_000
    queries = system.draw(genome, count, 4)
    for largest in (1 << 25, count // 30):
        monkeypatch.setattr(device_batches, "LARGEST_BATCH", largest)
        for tier, distance in (("fast", 0), ("fast", 2), ("paper", 1)):
            one = system.find(genome.index, queries, tier, distance)
            for devices in ((0, 1), (1,)):
                assert_same(system.find(genome.index, queries, tier, distance, devices=devices), one)


def test_the_public_call_names_devices(genome: Genome) -> None:
    two_devices()
    words = ["ACGTTGCAAGCTTACGGATC", "TTTTTTTT", "GATTACA"] * (30 if genome.played else 1000)
    for find in (warpseed.find_kmers, warpseed.find_reads):
        one = find(genome.index, words, device="gpu", max_hits=1000)
        for name in ("gpu:1", "gpu:0,1", "gpu:all"):
            assert find(genome.index, words, device=name, max_hits=1000) == one


@pytest.mark.parametrize("name", ["gpu", "gpu:0,1"])
@pytest.mark.parametrize(("command", "ending"), [("kmers", "bed"), ("reads", "tsv"), ("reads", "bam")])
def test_files_have_the_bytes_that_they_have_from_the_cpu(
    genome: Genome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, command: str, ending: str
) -> None:
    """Batches of a few queries, in turns on the devices."""
    if "," in name:
        two_devices()
    genome.index.save(tmp_path / "index")
    count, queries = 700 if genome.played else 60_000, tmp_path / "queries.fa"
    length = 20 if command == "kmers" else [30, 130]
    write_fasta(simulate_reads(genome.reference, count=count, length=length, error_rate=0.004, seed=3), queries)
    monkeypatch.setattr(device_stream, "LEAST_BATCH", count // 50)
    monkeypatch.setattr(device_stream, "LARGEST_BATCH", count // 20)
    for target in ("cpu", name):
        output = str(tmp_path / f"{target}.{ending}")
        assert cli.main([command, str(tmp_path / "index"), str(queries), "-o", output, "--device", target, "-q"]) == 0
    assert (tmp_path / f"{name}.{ending}").read_bytes() == (tmp_path / f"cpu.{ending}").read_bytes()


@real
def test_what_lies_on_a_device_is_shared_and_freed(real_genome: Path) -> None:
    pool = device.cupy().get_default_memory_pool()
    gc.collect()  # what tests before this one left is not counted
    with device.on_device(0):
        before, watch = pool.used_bytes(), Stopwatch()
        reference = read_reference(real_genome)
        genome = Genome(reference, build_index(reference, parts=("fast", "paper"), threads=2), False)
        tagged, (text, segments) = tagged_on_device(genome.index, watch), text_on_device(genome.index, watch)
        assert tagged.text is text and tagged.segments is segments
        assert tagged_on_device(genome.index, watch) is tagged
        assert bwt_on_device(genome.index, "forward", watch) is bwt_on_device(genome.index, "forward", watch)
        for system in (KMERS, READS):
            for tier in system.tiers:
                assert len(system.find(genome.index, system.draw(genome, 1000, 1), tier, 1).hits) > 500
        gc.collect()
        held = pool.used_bytes()
        release(genome.index, "forward")
        assert before < pool.used_bytes() < held
        del tagged, text, segments, genome
        gc.collect()
        assert pool.used_bytes() == before


@real
@SYSTEMS
def test_a_crowded_query_among_many(tmp_path: Path, system: System) -> None:
    """One with many more hits than there is room for at first, in both lists."""
    draw = random.Random(6)
    unit = "".join(draw.choices("ACGT", k=171))
    copies = ["".join(draw.choice("ACGT") if draw.random() < 0.01 else base for base in unit) for _ in range(4000)]
    fasta = tmp_path / "satellite.fa"
    fasta.write_text(">satellite\n" + "".join(copies) + "\n")
    index = build_index(fasta)
    length, most = (20, 3) if system is KMERS else (70, 2)
    queries = [unit[i : i + length] for i in range(0, 171 - length, 5)]
    queries += ["".join(draw.choices("ACGT", k=length)) for _ in range(500)]
    for distance in range(most + 1):
        on_cpu, on_gpu = (
            warpseed.find_kmers(index, queries, max_mismatches=distance, device=name)
            if system is KMERS
            else warpseed.find_reads(index, queries, max_edits=distance, device=name)
            for name in ("cpu", "gpu")
        )
        assert on_gpu.digest() == on_cpu.digest() and len(on_cpu) > 20 * len(queries)


@pytest.mark.parametrize(("kind", "longest"), [(MAXIMAL, False), (PAPER, False), (PAPER, True), (SUPER, False)])
def test_matches_that_do_not_fit_together_come_in_windows_of_the_text(
    genome: Genome, monkeypatch: pytest.MonkeyPatch, kind: int, longest: bool
) -> None:
    """Reads with tens of thousands of matches each, and memory for some thousand; by seeds, and by the longest match
    from every base on."""
    monkeypatch.setattr(mem_fast, "finds_longest", lambda *_: longest)
    monkeypatch.setattr(mem_gpu, "_is_crowded", lambda *_: False)
    in_windows, cut = mem_gpu._in_windows, []
    monkeypatch.setattr(mem_gpu, "_in_windows", lambda *search: cut.append(search) or in_windows(*search))
    monkeypatch.setattr(mem_gpu, "free_memory", lambda: 1 << 18)
    monkeypatch.setattr(device_stream, "LEAST_BATCH", 1)
    monkeypatch.setattr(device_stream, "LARGEST_BATCH", 1)
    reference = genome.reference
    length = [3400, 3600] if longest else [700, 900]
    reads = pack_long_reads(simulate_reads(reference, count=2, length=length, error_rate=0.02, seed=5))
    criteria = Criteria((5 if kind == MAXIMAL else 4) if genome.played else 9, kind, 2)
    least = 0
    for i in range(len(reads.lengths)):
        read = part_of(reads, i, i + 1)
        expected = mem_cpu.find_fast(genome.index, read, criteria)
        appended = mem_cpu.find_fast(genome.index, read, criteria._replace(kind=kind if longest else MAXIMAL))
        least = max(least, len(appended.hits))
        assert_same(mem_gpu.find_fast(genome.index, read, criteria), expected)
        for limit in (1, len(expected.hits)):
            limited = mem_gpu.find_fast(genome.index, read, criteria, max_hits=limit)
            assert limited.dropped_hits == (0 if limit > 1 else len(expected.hits))
            assert_same(limited, mem_cpu.find_fast(genome.index, read, criteria, max_hits=limit))
        counted = mem_gpu.find_fast(genome.index, read, criteria, count_only=True)
        assert counted.counts.tolist() == expected.counts.tolist() and not len(counted.hits)
    assert least > 6_000 and len(cut) == 4 * len(reads.lengths)
    rare = criteria._replace(max_occurrences=3)
    expected, limited = (search.find_fast(genome.index, read, rare) for search in (mem_cpu, mem_gpu))
    assert_same(limited, expected)
    counted = mem_gpu.find_fast(genome.index, read, rare, count_only=True)
    assert counted.counts.tolist() == expected.counts.tolist() and not len(counted.hits)
    assert counted.dropped_hits == limited.dropped_hits == expected.dropped_hits > 0
    streamed = MEMS._replace(asked=lambda _: criteria).streamed(genome.index, reads, "fast", kind, 1)
    assert_same(streamed, mem_cpu.find_fast(genome.index, reads, criteria))

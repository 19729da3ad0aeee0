"""The host's side of the reads' GPU searches, on a GPU that the CPU plays: the same placements, however batches are
cut."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.kmers import reverse_complement
from oracles.pretend_gpu import PretendCupy, PretendGpu, install
from warpseed import build_index, find_reads
from warpseed.compute import device_batches
from warpseed.compute import gpu as device
from warpseed.compute.resident import release
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import MemoryLimitError
from warpseed.one_error import cpu, gpu
from warpseed.one_error.reads import Criteria, pack_reads
from warpseed.output import from_device
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries

TIERS = pytest.mark.parametrize("tier", ["fast", "paper"])


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Any:
    draw = random.Random(7)
    fasta = tmp_path_factory.mktemp("genome") / "genome.fa"
    bases = "".join(draw.choices("ACGT", k=2000))
    Path(fasta).write_text(f">a\n{bases[:1200]}NN{bases[1200:]}{bases[300:420]}\n>b\n{'GATTACA' * 30}\n")
    return build_index(fasta, parts=("fast", "forward"))


def named_reads() -> list[str]:
    """120 reads of 1 to 90 bases with an edit, some of the other strand."""
    draw = random.Random(3)
    bases = "".join(random.Random(7).choices("ACGT", k=2000))
    reads = ["GATTACAGATTACA", "A", "NNN"]
    while len(reads) < 120:
        first = draw.randrange(1800)
        letters = list(bases[first : first + draw.randint(8, 90)])
        letters[draw.randrange(len(letters))] = draw.choice(["A", "C", "G", "T", "N", "", "AC"])
        read = "".join(letters)
        reads.append(read if draw.random() < 0.5 else reverse_complement(read))
    return reads


@pytest.fixture(scope="module")
def reads() -> Packed:
    return pack_reads(Queries.from_sequences(named_reads()))


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch, index: Any) -> Iterator[tuple[PretendCupy, PretendGpu]]:
    monkeypatch.setattr(device_batches, "_told", set())
    yield install(monkeypatch, index, devices=2)
    for number in range(2):
        with device.on_device(number):
            release(index)


def assert_same(found: Any, expected: Any) -> None:
    assert found.counts.tolist() == expected.counts.tolist()
    assert found.hits.dtype == expected.hits.dtype and found.hits.tolist() == expected.hits.tolist()
    assert found[2:] == expected[2:]


def both(tier: str) -> tuple[Any, Any]:
    return getattr(gpu, f"find_{tier}"), getattr(cpu, f"find_{tier}")


@pytest.mark.parametrize("edits", [0, 2])
def test_other_numbers_of_edits(index: Any, pretended: Any, reads: Packed, edits: int) -> None:
    assert_same(gpu.find_fast(index, reads, Criteria(edits, 2)), cpu.find_fast(index, reads, Criteria(edits, 2)))


@TIERS
@pytest.mark.parametrize("strands", [1, 2])
@pytest.mark.parametrize("max_hits", [None, 3])
def test_both_devices_find_the_same(
    index: Any, pretended: Any, reads: Packed, tier: str, strands: int, max_hits: int | None
) -> None:
    on_gpu, on_cpu = both(tier)
    criteria, watch = Criteria(1, strands), Stopwatch()
    expected = on_cpu(index, reads, criteria, max_hits=max_hits)
    assert_same(on_gpu(index, reads, criteria, threads=2, max_hits=max_hits, watch=watch), expected)
    counted = on_gpu(index, reads, criteria, max_hits=max_hits, count_only=True)
    assert counted.counts.tolist() == expected.counts.tolist() and not len(counted.hits)
    assert {"index_to_device", "host_to_device", "kernel", "device_to_host"} <= set(watch.seconds)


def test_a_read_of_a_base_has_more_placements_than_32_bits_count(
    index: Any, pretended: Any, reads: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on more than 2 Gbp, where it is a placement everywhere, on both strands, with a base more and less."""
    append = PretendGpu.append_placements

    def append_many(self: PretendGpu, search: Any) -> None:
        append(self, search)
        search.found.counts[1] += 1 << 32

    many = cpu.find_fast(index, reads).counts.copy()
    many[1] += 1 << 32
    monkeypatch.setattr(PretendGpu, "append_placements", append_many)
    assert gpu.find_fast(index, reads, count_only=True).counts.tolist() == many.tolist()
    limited = gpu.find_fast(index, reads, max_hits=1 << 30)
    assert (limited.dropped_queries, limited.dropped_hits) == (1, int(many[1]))
    with pytest.raises(
        MemoryLimitError, match=r"^One query has more than 4,294,967,295 results, .*set max_hits, or use"
    ):
        gpu.find_fast(index, reads)


@TIERS
def test_small_batches_and_several_devices_find_the_same(
    index: Any, pretended: Any, reads: Packed, monkeypatch: pytest.MonkeyPatch, tier: str
) -> None:
    on_gpu, on_cpu = both(tier)
    expected = on_cpu(index, reads, max_hits=50)
    monkeypatch.setattr(device_batches, "LARGEST_BATCH", 7)
    for devices in ((0,), (0, 1)):
        assert_same(on_gpu(index, reads, max_hits=50, devices=devices), expected)


def test_lists_without_room_are_made_again(
    index: Any, pretended: Any, reads: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "_FIRST_GUESS", 0.0)
    many = pack_reads(Queries.from_sequences(["GATTACAGATTACA", "A"] * 90))
    assert_same(gpu.find_fast(index, many), cpu.find_fast(index, many))
    assert pretended[1].launched.count("append_placements") == 2


def test_the_next_batch_has_the_room_that_the_last_one_needed(index: Any, pretended: Any) -> None:
    """Placements of reads with too many of them are appended, too, before they go."""
    many = pack_reads(Queries.from_sequences(["GATTACAGATTACA", "A"] * 90))
    for launches in (2, 3):
        assert gpu.find_fast(index, many, max_hits=3).dropped_queries == 180
        assert pretended[1].launched.count("append_placements") == launches


@pytest.mark.parametrize("slots", [None, 0, 1, 4])
def test_slots(index: Any, pretended: Any, reads: Packed, monkeypatch: pytest.MonkeyPatch, slots: int | None) -> None:
    """The same results have slots as on the CPU, in launches of a few reads, too; the others are counted."""
    expected = cpu.search_paper(index, reads, slots=slots)
    for size in (gpu.READS_A_LAUNCH, 50):
        monkeypatch.setattr(gpu, "READS_A_LAUNCH", size)
        searched = gpu.search_paper(index, reads, slots=slots)
        for mine, true in zip((*searched.results, *searched[1:4]), (*expected.results, *expected[1:4]), strict=True):
            assert mine.dtype == true.dtype and mine.tolist() == true.tolist()


def test_dropped_reads_lose_their_results(index: Any, pretended: Any, reads: Packed) -> None:
    expected = cpu.search_paper(index, reads, max_hits=2)
    searched = gpu.search_paper(index, reads, max_hits=2)
    assert searched.stored.tolist() == expected.stored.tolist() and searched[4:] == expected[4:]
    assert searched.results.low.tolist() == expected.results.low.tolist()


@pytest.mark.parametrize("block", [8, 256])
def test_a_run_on_the_device_has_the_blocks_that_are_asked_for(
    index: Any, pretended: Any, reads: Packed, block: int
) -> None:
    gpu.device_run(index, reads, tier="paper", slots=4, block=block)()
    assert pretended[1].shapes == [("search_reads", len(reads.lengths), block)]


def test_launches_are_as_small_where_reads_are_streamed(
    index: Any, pretended: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = named_reads()
    expected = find_reads(index, names, tier="paper")
    monkeypatch.setattr(gpu, "READS_A_LAUNCH", 50)
    assert find_reads(index, names, tier="paper", device="gpu") == expected
    assert [threads for name, threads, _ in pretended[1].shapes if name == "search_reads"] == [50, 50, 50, 50, 20, 20]


@TIERS
def test_a_run_on_the_device_counts_what_it_finds(index: Any, pretended: Any, reads: Packed, tier: str) -> None:
    found = gpu.device_run(index, reads, tier=tier)()
    assert found == (
        len(cpu.find_fast(index, reads).hits) if tier == "fast" else cpu.search_paper(index, reads).counts.sum()
    )


@TIERS
@pytest.mark.parametrize("device_name", ["gpu", "gpu:0,1"])
def test_from_names_to_hits(index: Any, pretended: Any, tier: str, device_name: str) -> None:
    """The public search, batch by batch over the devices."""
    names = named_reads()
    expected = find_reads(index, names, tier=tier)
    assert find_reads(index, names, tier=tier, device=device_name, threads=2) == expected
    assert np.array_equal(find_reads(index, names, tier=tier, device=device_name).rows(), expected.rows())


def test_the_best_of_what_devices_find(index: Any, pretended: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The placements of a read come in several parts."""
    names = named_reads()
    expected = find_reads(index, names, report="best")
    assert 0 < len(expected) < len(find_reads(index, names)) / 3
    monkeypatch.setattr(from_device, "_ROOM", 7)
    assert find_reads(index, names, report="best", device="gpu:0,1", threads=2) == expected

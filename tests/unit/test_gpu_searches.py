"""The host's side of the GPU searches, on a GPU that the CPU plays: the same hits, however batches are cut."""

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
from warpseed import build_index
from warpseed.compute import device_batches
from warpseed.compute import gpu as device
from warpseed.compute.resident import release
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import IndexFormatError, MemoryLimitError
from warpseed.kmer_seeds import cpu, gpu
from warpseed.kmer_seeds.kmers import pack_kmers
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries

SEARCHES = pytest.mark.parametrize(
    ("tier", "mismatches"), [("fast", 0), ("fast", 2), ("paper", 0), ("paper", 1), ("paper", 2)]
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Any:
    draw = random.Random(7)
    fasta = tmp_path_factory.mktemp("genome") / "genome.fa"
    bases = "".join(draw.choices("ACGT", k=2000))
    Path(fasta).write_text(f">a\n{bases[:1200]}NN{bases[1200:]}{bases[300:420]}\n>b\n{'GATTACA' * 30}\n")
    return build_index(fasta, parts=("fast", "paper"))


def kmers(longest: int) -> Packed:
    """200 k-mers of 1 to `longest` bases, some with an N, some of the other strand."""
    draw = random.Random(longest)
    bases = "".join(random.Random(7).choices("ACGT", k=2000))
    queries = ["GATTACA", "A", "NNN"]
    while len(queries) < 200:
        first = draw.randrange(1800)
        letters = list(bases[first : first + draw.randint(8, longest)])
        letters[draw.randrange(len(letters))] = draw.choice("ACGTN")
        query = "".join(letters)
        queries.append(query if draw.random() < 0.5 else reverse_complement(query))
    return pack_kmers(Queries.from_sequences(queries))


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch, index: Any) -> Iterator[tuple[PretendCupy, PretendGpu]]:
    monkeypatch.setattr(device_batches, "_told", set())
    yield install(monkeypatch, index, devices=2)
    for number in range(2):
        with device.on_device(number):
            release(index)


def assert_same(found: Any, expected: Any, tier: str) -> None:
    assert found.counts.tolist() == expected.counts.tolist()
    assert found.hits.dtype == expected.hits.dtype and found.hits.tolist() == expected.hits.tolist()
    assert found.dropped_queries == expected.dropped_queries
    # The paper's search may stop anywhere behind the limit: on the CPU between the strands too.
    assert tier == "paper" or found.dropped_hits == expected.dropped_hits


def both(tier: str) -> tuple[Any, Any]:
    return getattr(gpu, f"find_{tier}"), getattr(cpu, f"find_{tier}")


@SEARCHES
@pytest.mark.parametrize("longest", [28, 70])
@pytest.mark.parametrize("max_hits", [None, 3])
def test_both_devices_find_the_same(
    index: Any, pretended: Any, tier: str, mismatches: int, longest: int, max_hits: int | None
) -> None:
    on_gpu, on_cpu = both(tier)
    watch = Stopwatch()
    expected = on_cpu(index, kmers(longest), mismatches, max_hits=max_hits)
    for threads in (1, 3):
        found = on_gpu(index, kmers(longest), mismatches, threads=threads, max_hits=max_hits, watch=watch)
        assert_same(found, expected, tier)
    counted = on_gpu(index, kmers(longest), mismatches, max_hits=max_hits, count_only=True)
    assert counted.counts.tolist() == expected.counts.tolist() and not len(counted.hits)
    assert counted.dropped_queries == expected.dropped_queries
    assert {"index_to_device", "host_to_device", "kernel", "sort", "device_to_host"} <= set(watch.seconds)


@SEARCHES
def test_small_batches_and_several_devices_find_the_same(
    index: Any, pretended: Any, monkeypatch: pytest.MonkeyPatch, tier: str, mismatches: int
) -> None:
    on_gpu, on_cpu = both(tier)
    expected = on_cpu(index, kmers(40), mismatches, max_hits=50)
    monkeypatch.setattr(device_batches, "LARGEST_BATCH", 7)
    for devices in ((0,), (0, 1)):
        assert_same(on_gpu(index, kmers(40), mismatches, max_hits=50, devices=devices), expected, tier)


@pytest.mark.parametrize(
    ("tier", "mismatches", "largest"),
    [("fast", 0, 20_000), ("fast", 2, 70_000), ("paper", 0, 1000), ("paper", 2, 526_000)],
)
def test_short_memory_makes_batches_smaller(
    index: Any,
    pretended: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tier: str,
    mismatches: int,
    largest: int,
) -> None:
    """No array of more than `largest` bytes fits: enough for the lists of some, not of all 200 k-mers."""
    on_gpu, on_cpu = both(tier)
    expected = on_cpu(index, kmers(28), mismatches, max_hits=40)
    assert_same(on_gpu(index, kmers(28), mismatches, max_hits=40), expected, tier)
    package, kernels = pretended
    monkeypatch.setattr(device, "_probe", lambda size: None)
    package.largest = largest
    kernels.launched.clear()
    assert_same(on_gpu(index, kmers(28), mismatches, max_hits=40), expected, tier)
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "GPU 0 is short of memory" in told
    first = {("fast", 0): "append_exact", ("fast", 2): "append_inexact", ("paper", 0): "paper_exact"}
    assert kernels.launched.count(first.get((tier, mismatches), "paper_inexact_32")) > 1


def test_one_kmer_that_does_not_fit_is_refused(index: Any, pretended: Any) -> None:
    package, _ = pretended
    one = pack_kmers(Queries.from_sequences(["A"]))
    gpu.find_paper(index, one, 0)
    package.largest = 100
    with pytest.raises(MemoryLimitError, match="One query"):
        gpu.find_paper(index, one, 0)


def test_an_index_that_does_not_fit_is_refused(index: Any, pretended: Any) -> None:
    pretended[0].free = 5000
    with pytest.raises(MemoryLimitError, match="of device memory for its part"):
        gpu.find_fast(index, kmers(28), 0)


def test_an_index_out_of_order_is_refused(index: Any, pretended: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        pretended[1], "fill_device_table", lambda *arguments: arguments[-1].__setitem__(0, np.uint64(1))
    )
    with pytest.raises(IndexFormatError, match="suffix array"):
        gpu.find_fast(index, kmers(28), 0)


@pytest.mark.parametrize("mismatches", [0, 2])
def test_intervals_are_the_cpus(index: Any, pretended: Any, monkeypatch: pytest.MonkeyPatch, mismatches: int) -> None:
    """What Figure 5 locates on the CPU: in one batch and in many, located as the CPU's own."""
    packed = kmers(40)
    expected = cpu.locate_intervals(index, packed, cpu.search_paper(index, packed, mismatches), mismatches)
    for largest in (1 << 25, 11):
        monkeypatch.setattr(device_batches, "LARGEST_BATCH", largest)
        intervals = gpu.search_paper(index, packed, mismatches)
        assert_same(cpu.locate_intervals(index, packed, intervals, mismatches), expected, "paper")


@SEARCHES
def test_a_run_on_the_device_counts_its_hits(index: Any, pretended: Any, tier: str, mismatches: int) -> None:
    expected = both(tier)[1](index, kmers(28), mismatches)
    assert gpu.device_run(index, kmers(28), mismatches, tier=tier)() == len(expected.hits)


@pytest.mark.parametrize(("max_hits", "kernel"), [(None, "append_inexact"), (3, "append_exact")])
def test_exact_kmers_with_very_many_hits_are_set_aside(
    index: Any, pretended: Any, monkeypatch: pytest.MonkeyPatch, max_hits: int | None, kernel: str
) -> None:
    """More than a warp adds up are found as with mismatches, where crowded buckets are read in runs."""
    monkeypatch.setattr(gpu, "_MOST_OF_A_LANE", 4)
    pretended[1].fill_device_table = lambda *arguments: arguments[-2].__setitem__(slice(1, None), 5)
    expected = cpu.find_fast(index, kmers(28), 0, max_hits=max_hits)
    assert_same(gpu.find_fast(index, kmers(28), 0, max_hits=max_hits), expected, "fast")
    assert kernel in pretended[1].launched
    assert gpu.device_run(index, kmers(28), 0, tier="fast", max_hits=max_hits)() == len(expected.hits)


def test_a_kmer_of_a_base_has_more_hits_than_32_bits_count(
    index: Any, pretended: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a mismatch on more than 2 Gbp, where it is a hit everywhere, on both strands."""
    append = PretendGpu.append_inexact

    def append_many(self: PretendGpu, search: Any, rounds: int) -> None:
        append(self, search, rounds)
        search.lists.counts[1] += 1 << 32

    many = cpu.find_fast(index, kmers(28), 1).counts.copy()
    many[1] += 1 << 32
    monkeypatch.setattr(PretendGpu, "append_inexact", append_many)
    assert gpu.find_fast(index, kmers(28), 1, count_only=True).counts.tolist() == many.tolist()
    limited = gpu.find_fast(index, kmers(28), 1, max_hits=1 << 30)
    assert (limited.dropped_queries, limited.dropped_hits) == (1, (1 << 30) + 1)

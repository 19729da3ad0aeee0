"""The GPU searches that every system has, for tests that ask the same of all of them; and genomes for these, on a GPU
or on one that the CPU plays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from warpseed.batches import Options
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.layout import SeedIndex
from warpseed.kmer_seeds import cpu as kmer_cpu
from warpseed.kmer_seeds import gpu as kmer_gpu
from warpseed.kmer_seeds.floors import draw_kmers
from warpseed.mems import cpu as mem_cpu
from warpseed.mems import gpu as mem_gpu
from warpseed.mems.matches import KINDS, PAPER, PLACE_BITS
from warpseed.mems.matches import Criteria as MemCriteria
from warpseed.mems.reads import pack_long_reads
from warpseed.one_error import cpu as read_cpu
from warpseed.one_error import gpu as read_gpu
from warpseed.one_error.reads import Criteria, pack_reads
from warpseed.output.rows import Found, Result, join_found
from warpseed.sequences.names import Names
from warpseed.sequences.packed import NamedSet, Packed, part_of
from warpseed.sequences.reference import Reference
from warpseed.sequences.simulate import simulate_reads

__all__ = ["KMERS", "MEMS", "READS", "SEARCHES", "SYSTEMS", "Genome", "System", "assert_same", "tier_cases"]


class Genome(NamedTuple):
    """A reference with an index of all parts, and the GPU that it is searched on."""

    reference: Reference
    index: SeedIndex
    played: bool
    """whether the CPU plays the GPU: then with fewer queries"""


class System(NamedTuple):
    """One system's searches of packed queries."""

    name: str
    on_cpu: ModuleType
    on_gpu: ModuleType
    stream: Callable[..., Iterator[Result]]
    asked: Callable[[int], Any]
    """what is searched for with so many mismatches or edits, or a kind of match, as its functions take it"""
    draw: Callable[[Genome, int, int], Packed]
    """so many queries of a genome, some with errors, by a seed"""
    places: Callable[[np.ndarray], np.ndarray]
    """where in the text packed hits begin"""
    tiers: dict[str, tuple[int, ...]]
    """numbers of mismatches or edits, or kinds of match, of each tier"""

    def find(self, index: SeedIndex, queries: Packed, tier: str, distance: int, **options: Any) -> Found:
        """What the GPU finds."""
        return getattr(self.on_gpu, f"find_{tier}")(index, queries, self.asked(distance), **options)

    def streamed(self, index: SeedIndex, queries: Packed, tier: str, distance: int, size: int, **options: Any) -> Found:
        """The hits of pieces of so many queries, joined; a query's hits may come in several parts."""
        count = len(queries.lengths)

        def works() -> Iterator[NamedSet]:
            for first in range(0, count, size):
                part = part_of(queries, first, min(first + size, count))
                yield NamedSet(part, Names.of([""] * len(part.lengths)))

        watch, devices = options.pop("watch", Stopwatch()), options.pop("devices", (0,))
        how = Options(tier, f"gpu:{','.join(map(str, devices))}", **options)
        parts: list[Found] = []
        continued = False
        for found, continues, _ in self.stream(index, works(), self.asked(distance), how, watch=watch):
            hits, counts = found.hits.copy(), found.counts.copy()
            if continued:
                before = parts.pop()
                counts = np.concatenate([before.counts[:-1], [before.counts[-1] + counts[0]], counts[1:]])
                hits = np.concatenate([before.hits, hits])
            parts.append(found._replace(hits=hits, counts=counts))
            continued = continues
        return join_found(parts)


def _draw_reads(genome: Genome, count: int, seed: int) -> Packed:
    """Reads of 30 to 130 bases, two in three without an error."""
    rates = {"error_rate": 0.003, "insertion_rate": 0.001, "deletion_rate": 0.001}
    return pack_reads(simulate_reads(genome.reference, count=count, length=[30, 130], **rates, seed=seed))


def _draw_long_reads(genome: Genome, count: int, seed: int) -> Packed:
    """Reads of 10 to 1,000 bases with an error in twenty bases."""
    rates = {"error_rate": 0.02, "insertion_rate": 0.015, "deletion_rate": 0.015}
    return pack_long_reads(simulate_reads(genome.reference, count=count, length=[10, 1000], **rates, seed=seed))


KMERS = System(
    "kmers", kmer_cpu, kmer_gpu, kmer_gpu.stream_hits, int,
    lambda genome, count, seed: draw_kmers(genome.index, 24, count, 0.02, seed), lambda hits: hits >> np.uint64(3),
    {"fast": (0, 1, 2), "paper": (0, 1, 2)},
)  # fmt: skip
READS = System(
    "reads", read_cpu, read_gpu, read_gpu.stream_placements, lambda edits: Criteria(edits, 2), _draw_reads,
    lambda hits: hits >> np.uint64(32), {"fast": (0, 1, 2), "paper": (1,)},
)  # fmt: skip
MEMS = System(
    "mems", mem_cpu, mem_gpu, mem_gpu.stream_matches, lambda kind: MemCriteria(14, kind, 2), _draw_long_reads,
    lambda hits: (hits["place"] & np.uint64((1 << PLACE_BITS) - 1)) >> np.uint64(1),
    {"fast": tuple(KINDS.values()), "paper": (PAPER,)},
)  # fmt: skip
SYSTEMS = pytest.mark.parametrize("system", [KMERS, READS, MEMS], ids=["kmers", "reads", "mems"])


def tier_cases(*tiers: str) -> list[Any]:
    """(system, tier, mismatches, edits or kind of match) of all that these tiers take."""
    return [
        pytest.param(system, tier, distance, id=f"{system.name}-{tier}-{distance}")
        for system in (KMERS, READS, MEMS)
        for tier in tiers
        for distance in system.tiers[tier]
    ]


SEARCHES = pytest.mark.parametrize(("system", "tier", "distance"), tier_cases("fast", "paper"))


def assert_same(found: Found, expected: Found) -> None:
    """Whether both have the same hits, query by query."""
    assert np.array_equal(found.counts, expected.counts) and np.array_equal(found.hits, expected.hits)
    assert found.dropped_queries == expected.dropped_queries

"""Kernels of the paper tier: one thread a k-mer and its reverse complement (paper 000, sections III.C and III.D)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import int64, uint8, uint32, uint64

from warpseed.compute.compiled import scalar
from warpseed.compute.gpu import cuda, kernel
from warpseed.fm_index.locate import walk_to_sample
from warpseed.kmer_seeds import paper

__all__ = [
    "EXACT_BLOCK",
    "INEXACT_BLOCK",
    "Intervals",
    "paper_exact",
    "paper_inexact_32",
    "paper_inexact_255",
    "paper_locate",
]

EXACT_BLOCK = 192
INEXACT_BLOCK = 64
"""Threads of a block (section IV.A)."""


@kernel
def paper_exact(index, kmers, low_of, size_of):
    """Equation 1 for a k-mer and its reverse complement, one thread; entries 2·q and 2·q + 1."""
    query = int64(cuda.grid(1))
    if query < int64(kmers.lengths.shape[0]):
        for strand in range(2):
            low, high = paper.search_exact(index, kmers, query, int64(strand))
            low_of[int64(2) * query + int64(strand)] = uint32(low)
            size_of[int64(2) * query + int64(strand)] = uint32(max(high - low, int64(0)))


class Intervals(NamedTuple):
    """Where the threads of the paper tier's inexact search append what they find."""

    cursor: np.ndarray
    """uint64[1], intervals found, those without room too"""
    low: np.ndarray
    """uint32[room], first row"""
    size: np.ndarray
    """uint32[room], rows"""
    kind: np.ndarray
    """uint64[room], k-mer << 3 | strand << 2 | distance"""
    totals: np.ndarray
    """uint64[n], rows of each k-mer; the search of a k-mer ends when they pass max_hits"""


@scalar
def _append_intervals(forward, reverse, kmers, max_mismatches, max_hits, query, work, found):
    total = int64(0)
    for strand in range(2):
        depth = paper.start_interval(forward, reverse, kmers, query, int64(strand), max_mismatches, work)
        while depth >= int64(0) and total <= max_hits:
            low, high, distance, depth = paper.next_leaf(
                reverse, kmers, query, int64(strand), max_mismatches, work, depth
            )
            if depth >= int64(0):
                total += high - low
                slot = int64(cuda.atomic.add(found.cursor, 0, uint64(1)))
                if slot < int64(found.low.shape[0]):
                    found.low[slot] = uint32(low)
                    found.size[slot] = uint32(high - low)
                    found.kind[slot] = (uint64(query) << uint64(3)) | uint64((int64(strand) << int64(2)) | distance)
    found.totals[query] = uint64(total)


def _make_paper_inexact(name: str, longest: int) -> Any:
    """Figure 4 for k-mers of up to `longest` bases: bounds and stack lie in local memory of that size."""

    def paper_inexact(forward, reverse, kmers, max_mismatches, max_hits, found):
        """One thread a k-mer and its reverse complement; intervals go to the next free place of the lists."""
        bounds = cuda.local.array(longest, uint8)
        lows = cuda.local.array(longest, uint32)
        highs = cuda.local.array(longest, uint32)
        state = cuda.local.array(longest, uint8)
        query = int64(cuda.grid(1))
        if query < int64(kmers.lengths.shape[0]):
            work = paper.Work(bounds, lows, highs, state)
            _append_intervals(forward, reverse, kmers, int64(max_mismatches), max_hits, query, work, found)

    paper_inexact.__name__ = name
    paper_inexact.__qualname__ = name
    return kernel(paper_inexact)


paper_inexact_32 = _make_paper_inexact("paper_inexact_32", 32)
paper_inexact_255 = _make_paper_inexact("paper_inexact_255", 256)


@kernel
def paper_locate(index, low_of, hit_end, entry_of, steps_of):
    """The pair (j, t) of every row of every interval (Equation 2): one thread a hit."""
    t = int64(cuda.grid(1))
    if t >= int64(entry_of.shape[0]):
        return
    first = int64(0)
    last = int64(hit_end.shape[0]) - int64(1)
    while first < last:
        middle = (first + last) >> int64(1)
        if int64(hit_end[middle]) > t:
            last = middle
        else:
            first = middle + int64(1)
    begin = int64(0) if first == int64(0) else int64(hit_end[first - int64(1)])
    entry, steps = walk_to_sample(index, int64(low_of[first]) + t - begin)
    entry_of[t] = uint32(entry)
    steps_of[t] = uint32(steps)

"""The paper tier on the GPU: one thread a k-mer and its reverse complement (paper 000, sections III.C and III.D).

Kernels first, and the host functions that launch them behind.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.appended import with_room
from warpseed.compute.compiled import int64, scalar, uint8, uint32, uint64
from warpseed.compute.gpu import argsort, cuda, cupy, kernel, launch
from warpseed.compute.searching import lower_bound
from warpseed.fm_index.layout import PaperIndex
from warpseed.fm_index.locate import walk_to_sample
from warpseed.kmer_seeds import paper
from warpseed.sequences.packed import Packed

__all__ = [
    "DeviceIntervals",
    "IntervalLists",
    "locate_pairs",
    "paper_exact",
    "paper_inexact_32",
    "paper_inexact_255",
    "paper_locate",
    "search_intervals",
]

_EXACT_BLOCK = 192
_INEXACT_BLOCK = 64
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


class IntervalLists(NamedTuple):
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
    first = lower_bound(hit_end, int64(0), int64(hit_end.shape[0]) - int64(1), uint64(t + int64(1)))
    begin = int64(0) if first == int64(0) else int64(hit_end[first - int64(1)])
    entry, steps = walk_to_sample(index, int64(low_of[first]) + t - begin)
    entry_of[t] = uint32(entry)
    steps_of[t] = uint32(steps)


# ------------------------------------------------------------------------------------------------- host


class DeviceIntervals(NamedTuple):
    """Intervals of rows on the device, in query order, without those of dropped k-mers."""

    low: Any
    """uint32[i], first row"""
    size: Any
    """uint32[i], rows"""
    kind: Any
    """uint64[i], k-mer << 3 | strand << 2 | distance"""
    totals: Any
    """int64[n], rows of each k-mer, 0 for one that was dropped"""
    dropped_queries: int
    dropped_hits: int


def _exact_intervals(forward: PaperIndex, kmers: Packed) -> DeviceIntervals:
    xp = cupy()
    count = len(kmers.lengths)
    low, size = xp.empty(2 * count, xp.uint32), xp.empty(2 * count, xp.uint32)
    launch(paper_exact, count, _EXACT_BLOCK, forward, kmers, low, size)
    found = xp.flatnonzero(size)
    totals = size.reshape(count, 2).sum(axis=1, dtype=xp.int64)
    return DeviceIntervals(low[found], size[found], found.astype(xp.uint64) << xp.uint64(2), totals, 0, 0)


def _inexact_intervals(
    bwts: tuple[PaperIndex, PaperIndex], kmers: Packed, longest: int, max_mismatches: int, max_hits: int
) -> DeviceIntervals:
    xp = cupy()
    count = len(kmers.lengths)
    search = paper_inexact_32 if longest <= 32 else paper_inexact_255
    totals = xp.empty(count, xp.uint64)

    def append(room: int) -> tuple[tuple[int, ...], tuple[Any, Any, Any]]:
        low, size, kind = xp.empty(room, xp.uint32), xp.empty(room, xp.uint32), xp.empty(room, xp.uint64)
        cursor = xp.zeros(1, xp.uint64)
        lists = IntervalLists(cursor, low, size, kind, totals)
        launch(search, count, _INEXACT_BLOCK, *bwts, kmers, max_mismatches, max_hits, lists)
        used = int(cursor[0])
        return (used,), (low[:used], size[:used], kind[:used])

    low, size, kind = with_room((2 * count + (1 << 16),), append)
    order = argsort(kind)
    return DeviceIntervals(low[order], size[order], kind[order], totals.astype(xp.int64), 0, 0)


def search_intervals(
    bwts: tuple[PaperIndex, PaperIndex], kmers: Packed, longest: int, max_mismatches: int, max_hits: int
) -> DeviceIntervals:
    """Search of k-mers that lie on the device: intervals of the second BWT, less those of k-mers with too many hits.

    Parameters
    ----------
    bwts : forward and reverse BWT on the device; for an exact search the forward one twice
    longest : bases of the longest k-mer
    """
    xp = cupy()
    if max_mismatches == 0:
        found = _exact_intervals(bwts[0], kmers)
    else:
        found = _inexact_intervals(bwts, kmers, longest, max_mismatches, max_hits)
    over = found.totals > max_hits
    dropped = int(over.sum())
    if not dropped:
        return found
    keep = xp.flatnonzero(~over[(found.kind >> xp.uint64(3)).astype(xp.int64)])
    dropped_hits = int(found.totals[over].sum())
    found.totals[over] = 0
    return DeviceIntervals(found.low[keep], found.size[keep], found.kind[keep], found.totals, dropped, dropped_hits)


def locate_pairs(searched: PaperIndex, intervals: DeviceIntervals, max_mismatches: int) -> tuple[Any, Any]:
    """The pairs (j, t) of all rows of all intervals of a BWT, on the device: uint32[h] each."""
    xp = cupy()
    ends = xp.cumsum(intervals.size, dtype=xp.uint64)
    total = int(ends[-1]) if len(ends) else 0
    entry, steps = xp.empty(total, xp.uint32), xp.empty(total, xp.uint32)
    block = _INEXACT_BLOCK if max_mismatches else _EXACT_BLOCK
    launch(paper_locate, total, block, searched, intervals.low, ends, entry, steps)
    return entry, steps

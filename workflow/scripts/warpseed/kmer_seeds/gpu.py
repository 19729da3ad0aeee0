"""Both tiers on the GPU: the host functions that feed the kernels of gpu_tagged, gpu_fast and gpu_paper in batches.

Paper tier: search and pairs (j, t) on the device, RSA looked up on the host (paper 000, section III.C). Fast tier: a
longer table than the CPU's and tagged rows, made on the device when the index arrives there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.gpu import cuda, cupy, free_memory, launch, require_gpu, time_on_device, to_device, view
from warpseed.compute.ranges import sort_groups
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.warp import BLOCK
from warpseed.errors import MemoryLimitError
from warpseed.fm_index.device import bwt_on_device, tagged_on_device
from warpseed.fm_index.layout import PaperIndex, SeedIndex
from warpseed.fm_index.tagged import TaggedIndex
from warpseed.kmer_seeds.cpu import Intervals
from warpseed.kmer_seeds.cpu_paper import look_up_pairs
from warpseed.kmer_seeds.fast import Costs, Scheme, make_scheme
from warpseed.kmer_seeds.gpu_fast import (
    CLOSING_BLOCKS,
    KEPT,
    LANES_SHIFT,
    SEGMENTS,
    Lists,
    append_crowded,
    append_exact,
    append_inexact,
    close_ranks,
    settle_counts,
)  # fmt: skip
from warpseed.kmer_seeds.gpu_paper import (
    EXACT_BLOCK,
    INEXACT_BLOCK,
    paper_exact,
    paper_inexact_32,
    paper_inexact_255,
    paper_locate,
)  # fmt: skip
from warpseed.kmer_seeds.gpu_paper import Intervals as DeviceIntervalLists
from warpseed.kmer_seeds.kmers import QUERY_SHIFT
from warpseed.output.rows import Found, join_found
from warpseed.sequences.packed import Packed, part_of

__all__ = [
    "COSTS",
    "DeviceHits",
    "device_run",
    "exact_hits",
    "find_fast",
    "find_paper",
    "inexact_hits",
    "paper_index",
    "search_paper",
    "tagged_index",
]

COSTS = Costs(look_up=1.0, short_look_up=1.5, row=0.5, narrowing=2.0, narrow_above=8)
"""Measured on an H200 with a genome of 100 Mbp."""
_CROWDED_THREADS = 1 << 18
_NO_LIMIT = np.iinfo(np.int64).max
_BATCH = 1 << 25


def tagged_index(index: SeedIndex, watch: Stopwatch) -> TaggedIndex:
    """The fast tier's index on the device; made once for an index, with its time in stage index_to_device."""
    require_gpu()
    return tagged_on_device(index, watch)


def paper_index(index: SeedIndex, watch: Stopwatch) -> tuple[PaperIndex, PaperIndex]:
    """Both BWTs on the device; brought once for an index."""
    require_gpu()
    return bwt_on_device(index, "forward", watch), bwt_on_device(index, "reverse", watch)


def _batches(count: int, words: int) -> list[tuple[int, int]]:
    """Ranges of k-mers whose words and results take at most half of the free device memory."""
    each = 8 * words + 256
    size = max(1, min(_BATCH, free_memory() // (2 * each)))
    return [(first, min(first + size, count)) for first in range(0, count, size)]


@contextmanager
def _enough_memory(count: int) -> Iterator[None]:
    """Turn CuPy's failure to allocate into one sentence."""
    try:
        yield
    except cupy().cuda.memory.OutOfMemoryError as error:
        raise MemoryLimitError(
            f"A batch of {count:,} k-mers has more hits than the device's memory holds ({free_memory() / 1e9:.1f} GB "
            "are free); set max_hits, search fewer k-mers at once, or use device='cpu'."
        ) from error


class DeviceHits(NamedTuple):
    """Hits on the device, k-mer by k-mer."""

    hits: Any
    """uint64[h], k-mer << 35 | hit packed by `pack_hit`, in no order; empty where only counts were asked for"""
    counts: Any
    """uint32[n], hits of each k-mer, 0 for one that was dropped"""
    results: int
    dropped_queries: int
    dropped_hits: int


class DeviceScheme(NamedTuple):
    """A scheme on the device, and the rounds in which its lanes take the look-ups of any of its k-mers."""

    arrays: Scheme
    rounds: int


def device_scheme(index: SeedIndex, lengths: np.ndarray, max_mismatches: int, table_length: int) -> DeviceScheme:
    """Choose the windows for a batch, and copy them to the device."""
    scheme = make_scheme(lengths, max_mismatches, index.rows, table_length, COSTS)
    return DeviceScheme(to_device(scheme), -(-int(scheme.look_ups.max()) // (1 << LANES_SHIFT)))


def exact_hits(tagged: TaggedIndex, kmers: Packed, max_hits: int | None, count_only: bool = False) -> DeviceHits:
    """Exact search of k-mers on the device: append in one pass; again with room where it was short."""
    xp = cupy()
    count = len(kmers.lengths)
    counts = xp.empty(count, xp.uint32)
    limit = _NO_LIMIT if max_hits is None else max_hits
    room = 0 if count_only else 16 * count + 1024
    while True:
        hits, cursor = xp.empty(max(room, 1), xp.uint64), xp.zeros(3, xp.uint64)
        outputs = (view(cursor), view(counts), view(hits))
        launch(append_exact, 2 * count, BLOCK, tagged, kmers, limit, not count_only, *outputs)
        total, dropped_queries, dropped_hits = map(int, cursor.get())
        if total <= room or count_only:
            return DeviceHits(hits[: 0 if count_only else total], counts, total, dropped_queries, dropped_hits)
        del hits, outputs
        room = total


def inexact_hits(
    tagged: TaggedIndex, kmers: Packed, scheme: DeviceScheme, max_hits: int | None, count_only: bool = False
) -> DeviceHits:
    """Search with mismatches of k-mers on the device: append, move together; again with room where it was short."""
    xp = cupy()
    count = len(kmers.lengths)
    room = SEGMENTS * (0 if count_only else 4 + count // 4)
    crowded_room = SEGMENTS * (64 + count // 16)
    limit = _NO_LIMIT if max_hits is None else max_hits
    while True:
        found, counts = xp.empty(max(room, 1), xp.uint64), xp.zeros(count, xp.uint32)
        crowded, cursors = xp.empty((crowded_room, 4), xp.uint32), xp.zeros(KEPT + 3, xp.uint64)
        hits = xp.empty(max(room, 1), xp.uint64)
        lists = Lists(view(cursors), view(found), view(crowded), view(counts))
        arguments = (tagged, kmers, scheme.arrays, limit, lists)
        launch(append_inexact, 2 * count << LANES_SHIFT, BLOCK, *arguments, scheme.rounds)
        launch(append_crowded, _CROWDED_THREADS, BLOCK, *arguments)
        launch(close_ranks, CLOSING_BLOCKS * BLOCK, BLOCK, lists, limit, view(hits))
        launch(settle_counts, count, BLOCK, lists, limit)
        used = cursors.get().astype(np.int64)
        needed, needed_crowded = (SEGMENTS * int(part.max()) for part in (used[:SEGMENTS], used[SEGMENTS:KEPT]))
        if needed_crowded <= crowded_room and (needed <= room or count_only):
            break
        del found, crowded, hits, lists, arguments
        room, crowded_room = max(room, needed), max(crowded_room, needed_crowded)
    kept, dropped_queries, dropped_hits = map(int, used[KEPT:])
    results = int(counts.sum(dtype=xp.int64)) if count_only else kept
    return DeviceHits(hits[:kept], counts, results, dropped_queries, dropped_hits)


def find_fast(
    index: SeedIndex,
    kmers: Packed,
    max_mismatches: int,
    *,
    threads: int = 1,
    max_hits: int | None = None,
    count_only: bool = False,
    watch: Stopwatch | None = None,
) -> Found:
    """All hits of packed k-mers by the fast tier; see `warpseed.kmer_seeds.find_kmers`.

    With `count_only` only their numbers.
    """
    watch = watch or Stopwatch()
    tagged = tagged_index(index, watch)
    parts = []
    for first, last in _batches(len(kmers.lengths), -(-int(kmers.lengths.max(initial=1)) // 32)):
        with watch.stage("host_to_device", synchronise=cuda.synchronize):
            part = to_device(part_of(kmers, first, last))
            if max_mismatches > 0:
                lengths = kmers.lengths[first:last]
                scheme = device_scheme(index, lengths, max_mismatches, tagged.table_length)
        with _enough_memory(last - first), time_on_device(watch, "kernel"):
            if max_mismatches == 0:
                found = exact_hits(tagged, part, max_hits, count_only)
            else:
                found = inexact_hits(tagged, part, scheme, max_hits, count_only)
        with time_on_device(watch, "sort"):
            ordered = found.hits
            ordered.sort()
            ordered &= cupy().uint64((1 << QUERY_SHIFT) - 1)
        with watch.stage("device_to_host"):
            hits, counts = ordered.get(), found.counts.get().astype(np.int64)
        parts.append(Found(hits, counts, found.dropped_queries, found.dropped_hits))
    return join_found(parts)


class _DeviceIntervals(NamedTuple):
    """Intervals of rows on the device, in query order."""

    low: Any
    size: Any
    kind: Any
    """uint64[i], k-mer << 3 | strand << 2 | distance"""
    totals: Any
    """int64[n], rows of each k-mer, 0 for one that was dropped"""
    dropped_queries: int
    dropped_hits: int


def _exact_intervals(index: PaperIndex, kmers: Packed) -> tuple[Any, Any, Any, Any]:
    xp = cupy()
    count = len(kmers.lengths)
    low, size = xp.empty(2 * count, xp.uint32), xp.empty(2 * count, xp.uint32)
    launch(paper_exact, count, EXACT_BLOCK, index, kmers, view(low), view(size))
    found = xp.flatnonzero(size)
    totals = size.reshape(count, 2).sum(axis=1, dtype=xp.int64)
    return low[found], size[found], found.astype(xp.uint64) << xp.uint64(2), totals


def _inexact_intervals(
    forward: PaperIndex, reverse: PaperIndex, kmers: Packed, max_mismatches: int, limit: int, longest: int
) -> tuple[Any, Any, Any, Any]:
    xp = cupy()
    count = len(kmers.lengths)
    search = paper_inexact_32 if longest <= 32 else paper_inexact_255
    room = 2 * count + (1 << 16)
    while True:
        low, size, kind = xp.empty(room, xp.uint32), xp.empty(room, xp.uint32), xp.empty(room, xp.uint64)
        totals, cursor = xp.empty(count, xp.uint64), xp.zeros(1, xp.uint64)
        found = DeviceIntervalLists(*map(view, (cursor, low, size, kind, totals)))
        launch(search, count, INEXACT_BLOCK, forward, reverse, kmers, max_mismatches, limit, found)
        needed = int(cursor[0])
        if needed <= room:
            break
        room = needed
    order = xp.argsort(kind[:needed])
    return low[order], size[order], kind[order], totals.astype(xp.int64)


def _search_batch(
    parts: tuple[PaperIndex, PaperIndex],
    kmers: Packed,
    max_mismatches: int,
    max_hits: int | None,
    longest: int,
) -> _DeviceIntervals:
    xp = cupy()
    limit = _NO_LIMIT if max_hits is None else max_hits
    if max_mismatches == 0:
        low, size, kind, totals = _exact_intervals(parts[0], kmers)
    else:
        low, size, kind, totals = _inexact_intervals(*parts, kmers, max_mismatches, limit, longest)
    over = totals > limit
    dropped_queries, dropped_hits = int(over.sum()), int(totals[over].sum())
    if dropped_queries:
        keep = xp.flatnonzero(~over[(kind >> xp.uint64(3)).astype(xp.int64)])
        low, size, kind = low[keep], size[keep], kind[keep]
        totals[over] = 0
    return _DeviceIntervals(low, size, kind, totals, dropped_queries, dropped_hits)


def search_paper(
    index: SeedIndex,
    kmers: Packed,
    max_mismatches: int,
    *,
    max_hits: int | None = None,
    watch: Stopwatch | None = None,
) -> Intervals:
    """Paper tier, search only: the intervals, on the host (for Table II, and Figure 5's locating on the CPU)."""
    watch = watch or Stopwatch()
    parts = paper_index(index, watch)
    found: list[Intervals] = []
    for first, last in _batches(len(kmers.lengths), -(-int(kmers.lengths.max(initial=1)) // 32)):
        longest = int(kmers.lengths[first:last].max(initial=1))
        with watch.stage("host_to_device", synchronise=cuda.synchronize):
            part = to_device(part_of(kmers, first, last))
        with _enough_memory(last - first), time_on_device(watch, "kernel"):
            batch = _search_batch(parts, part, max_mismatches, max_hits, longest)
        with watch.stage("device_to_host"):
            kind = batch.kind.get()
            counts = np.bincount((kind >> np.uint64(3)).astype(np.int64), minlength=last - first)
            found.append(
                Intervals(
                    batch.low.get(),
                    batch.size.get(),
                    (kind & np.uint64(7)).astype(np.uint8),
                    counts,
                    batch.totals.get(),
                    batch.dropped_queries,
                    batch.dropped_hits,
                )  # fmt: skip
            )
    if len(found) == 1:
        return found[0]
    low, size, kind_of, counts, hits = (
        np.concatenate([getattr(part, name) for part in found]) for name in Intervals._fields[:5]
    )
    dropped = [sum(getattr(part, name) for part in found) for name in Intervals._fields[5:]]
    return Intervals(low, size, kind_of, counts, hits, dropped[0], dropped[1])


def _locate(searched: PaperIndex, intervals: _DeviceIntervals, block: int) -> tuple[Any, Any]:
    """The pairs (j, t) of all rows of all intervals, on the device."""
    xp = cupy()
    ends = xp.cumsum(intervals.size, dtype=xp.uint64)
    total = int(ends[-1]) if len(ends) else 0
    entry, steps = xp.empty(total, xp.uint32), xp.empty(total, xp.uint32)
    launch(paper_locate, total, block, searched, view(intervals.low), view(ends), view(entry), view(steps))
    return entry, steps


def find_paper(
    index: SeedIndex,
    kmers: Packed,
    max_mismatches: int,
    *,
    threads: int = 1,
    max_hits: int | None = None,
    count_only: bool = False,
    watch: Stopwatch | None = None,
) -> Found:
    """All hits by the paper tier: search and (j, t) on the device, RSA on the host (section III.C)."""
    watch = watch or Stopwatch()
    if count_only:
        counted = search_paper(index, kmers, max_mismatches, max_hits=max_hits, watch=watch)
        return Found(np.empty(0, np.uint64), counted.hits, counted.dropped_queries, counted.dropped_hits)
    parts = paper_index(index, watch)
    searched, on_host = (parts[1], index.reverse) if max_mismatches else (parts[0], index.forward)
    block = INEXACT_BLOCK if max_mismatches else EXACT_BLOCK
    found = []
    for first, last in _batches(len(kmers.lengths), -(-int(kmers.lengths.max(initial=1)) // 32)):
        longest = int(kmers.lengths[first:last].max(initial=1))
        with watch.stage("host_to_device", synchronise=cuda.synchronize):
            part = to_device(part_of(kmers, first, last))
        with _enough_memory(last - first), time_on_device(watch, "kernel"):
            batch = _search_batch(parts, part, max_mismatches, max_hits, longest)
        with _enough_memory(last - first), time_on_device(watch, "locate"):
            entry, steps = _locate(searched, batch, block)
        with watch.stage("device_to_host"):
            pairs = (batch.size.get(), batch.kind.get(), entry.get(), steps.get())
            counts = batch.totals.get()
        with watch.stage("lookup"):
            hits = np.empty(len(pairs[2]), np.uint64)
            look_up_pairs(on_host, kmers.lengths[first:last], max_mismatches > 0, pairs, hits)
        with watch.stage("sort"):
            sort_groups(hits, counts)
        found.append(Found(hits, counts, batch.dropped_queries, batch.dropped_hits))
    return join_found(found)


def device_run(
    index: SeedIndex, kmers: Packed, max_mismatches: int, *, tier: str, max_hits: int | None = None
) -> Callable[[], int]:
    """A search of k-mers that lie on the device and whose hits stay there, as a call that returns their number.

    The fast tier's hits are compacted and complete; the paper tier's are pairs (j, t).
    """
    watch = Stopwatch()
    on_device = to_device(kmers)
    if tier == "paper":
        parts = paper_index(index, watch)
        searched, block = (parts[1], INEXACT_BLOCK) if max_mismatches else (parts[0], EXACT_BLOCK)
        longest = int(kmers.lengths.max(initial=1))

        def paper_run() -> int:
            batch = _search_batch(parts, on_device, max_mismatches, max_hits, longest)
            return len(_locate(searched, batch, block)[0])

        return paper_run
    tagged = tagged_index(index, watch)
    if max_mismatches == 0:
        return lambda: exact_hits(tagged, on_device, max_hits).results
    scheme = device_scheme(index, kmers.lengths, max_mismatches, tagged.table_length)
    return lambda: inexact_hits(tagged, on_device, scheme, max_hits).results

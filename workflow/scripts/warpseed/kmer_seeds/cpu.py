"""Both tiers on the CPU: ranges of k-mers, one range a task, any number of threads, results in query order.

Every search function takes a range [first, last) of k-mers and room for their hits, and returns where it stopped:
behind the last k-mer, or at one whose hits do not fit (it then says how many it has, and is asked again).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
from numba import int64, uint8, uint32, uint64

from warpseed.compute.bits import fetch_word, mismatch_bits, prefix_mask
from warpseed.compute.compiled import looping, scalar
from warpseed.compute.intrinsics import popcount, prefetch
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.locate import look_up, walk_to_sample
from warpseed.fm_index.text import inside_segment
from warpseed.kmer_seeds import paper
from warpseed.kmer_seeds.fast import Costs, accept, first_window, make_scheme, narrow
from warpseed.kmer_seeds.kmers import Kmers, oriented_marks, oriented_word, pack_hit
from warpseed.output.rows import Found

__all__ = ["Intervals", "find_fast", "locate_intervals", "look_up_pairs", "search_paper", "sort_hits"]

_NARROW_ABOVE = 16
COSTS = Costs(look_up=1.0, short_look_up=1.0, row=1.0, narrowing=3.0, narrow_above=_NARROW_ABOVE)
"""Measured on a 4.6 Mbp genome: look-up and verification cost about the same once batched with prefetch."""

_RANGE = 8192
_LOOK_UPS = 512
_CANDIDATES = 1024
_NO_LIMIT = np.iinfo(np.int64).max
_Result = TypeVar("_Result")


class Intervals(NamedTuple):
    """What the paper tier's search finds before it locates: intervals of rows, k-mer by k-mer."""

    low: np.ndarray
    """uint32[i], first row"""
    size: np.ndarray
    """uint32[i], rows"""
    kind: np.ndarray
    """uint8[i], strand << 2 | distance"""
    counts: np.ndarray
    """int64[n], intervals of each k-mer"""
    hits: np.ndarray
    """int64[n], rows of each k-mer, 0 for one that was dropped"""
    dropped_queries: int
    dropped_hits: int


@scalar
def _sift_down(hits, first, root, size):
    hit = hits[first + root]
    child = 2 * root + 1
    while child < size:
        if child + 1 < size and hits[first + child + 1] > hits[first + child]:
            child += 1
        if hits[first + child] <= hit:
            break
        hits[first + root] = hits[first + child]
        root = child
        child = 2 * root + 1
    hits[first + root] = hit


@scalar
def _sort(hits, first, last):
    """Ascending order, in place: insertion for the handful of hits that most k-mers have, a heap for more."""
    size = last - first
    if size <= 24:
        for i in range(first + 1, last):
            hit = hits[i]
            j = i - 1
            while j >= first and hits[j] > hit:
                hits[j + 1] = hits[j]
                j -= 1
            hits[j + 1] = hit
        return
    for root in range(size // 2 - 1, -1, -1):
        _sift_down(hits, first, root, size)
    for end in range(size - 1, 0, -1):
        largest = hits[first]
        hits[first] = hits[first + end]
        hits[first + end] = largest
        _sift_down(hits, first, 0, end)


@scalar
def sort_hits(hits, counts):
    """Order the hits of every k-mer by text position, strand, distance, in place; `counts` int64[n]."""
    first = int64(0)
    for query in range(counts.shape[0]):
        if counts[query] > 1:
            _sort(hits, first, first + counts[query])
        first += counts[query]


@scalar
def look_up_pairs(index, lengths, on_reverse, pairs, hits):
    """The pairs (j, t) of a device to packed hits: one RSA look-up and one addition each (paper 000, III.C).

    Parameters
    ----------
    pairs : (uint32[i] rows of each interval, uint64[i] k-mer << 3 | strand << 2 | distance, uint32[h] j, uint32[h] t)
    on_reverse : bool, whether the rows are of the reverse BWT
    hits : uint64[h], written
    """
    size, kind, entry, steps = pairs
    rows = int64(index.first_row[4])
    to = int64(0)
    for i in range(size.shape[0]):
        tag = int64(kind[i] & uint64(7))
        length = int64(lengths[int64(kind[i] >> uint64(3))])
        for _ in range(int64(size[i])):
            place = look_up(index, int64(entry[to]), int64(steps[to]))
            if on_reverse:
                place = rows - int64(1) - place - length
            hits[to] = pack_hit(place, tag >> int64(2), tag & int64(3))
            to += int64(1)


@scalar
def _close_queries(first, last, base, found, max_hits, store, hits, used, counts, dropped):
    """Settle the k-mers of a block: drop, sort and move together; stop at the first that did not fit.

    Returns
    -------
    (next k-mer, words used, room that it needs)
    """
    read = used
    for query in range(first, last):
        count = found[query - first]
        if count > max_hits:
            counts[query - base] = 0
            dropped[0] += 1
            dropped[1] += count
            read += max_hits if store else 0
            continue
        if store:
            if read + count > hits.shape[0]:
                return query, used, count
            if read != used:
                for i in range(count):
                    hits[used + i] = hits[read + i]
            _sort(hits, used, used + count)
            read += count
            used += count
        counts[query - base] = count
    return last, used, int64(0)


class _Block(NamedTuple):
    """Working arrays of one block of k-mers. An *owner* is a k-mer in one orientation, an *item* one look-up."""

    item_low: np.ndarray
    """int64[items], table entry, then first row"""
    item_high: np.ndarray
    item_owner: np.ndarray
    item_window: np.ndarray
    words: np.ndarray
    """uint64[], words of owner o from o·(W + 1) on, the last one zero"""
    marks: np.ndarray
    """uint64[owners], marks of the first word"""
    mask: np.ndarray
    """uint64[owners], pairs of the first word that are bases of the k-mer"""
    place: np.ndarray
    """int64[_CANDIDATES], where a candidate begins in the text"""
    place_owner: np.ndarray
    place_window: np.ndarray
    found: np.ndarray
    """int64[k-mers], hits so far"""


@looping
def _new_block(stride, look_ups):
    items = max(int64(_LOOK_UPS), int64(2) * look_ups)
    return _Block(
        np.empty(items, np.int64),
        np.empty(items, np.int64),
        np.empty(items, np.int32),
        np.empty(items, np.uint8),
        np.zeros((items + 2) * stride + 1, np.uint64),
        np.zeros(items + 2, np.uint64),
        np.zeros(items + 2, np.uint64),
        np.empty(_CANDIDATES, np.int64),
        np.empty(_CANDIDATES, np.int32),
        np.empty(_CANDIDATES, np.uint8),
        np.zeros(items + 2, np.int64),
    )


@scalar
def _list_items(fast, kmers, scheme, block, begin, last):
    """First pass: the look-ups of as many k-mers as fit; returns the k-mer behind them and the number of items."""
    stride = int64(kmers.words.shape[1]) + int64(1)
    items = int64(0)
    query = begin
    while query < last:
        length = int64(kmers.lengths[query])
        if items + int64(2) * scheme.look_ups[length] > block.item_low.shape[0]:
            break
        block.found[query - begin] = 0
        for strand in range(2):
            owner = int64(2) * (query - begin) + int64(strand)
            for w in range((length + int64(31)) >> int64(5)):
                block.words[owner * stride + w] = oriented_word(kmers, query, int64(strand), int64(w))
            block.marks[owner] = oriented_marks(kmers, query, int64(strand), int64(0))
            block.mask[owner] = prefix_mask(length)
            for i in range(scheme.windows[length]):
                seen = min(scheme.length[length, i], int64(scheme.table_length))
                word = fetch_word(block.words, owner * stride * int64(32) + scheme.offset[length, i])
                code = word >> uint64(int64(64) - int64(2) * seen)
                shift = uint64(int64(2) * (int64(scheme.table_length) - seen))
                for v in range(scheme.pattern_first[length, i], scheme.pattern_first[length, i + 1]):
                    bucket = code ^ scheme.patterns[v]
                    prefetch(fast.table, int64(bucket << shift))
                    block.item_low[items] = int64(bucket << shift)
                    block.item_high[items] = int64((bucket + uint64(1)) << shift)
                    block.item_owner[items] = owner
                    block.item_window[items] = i
                    items += int64(1)
        query += int64(1)
    return query, items


@scalar
def _look_up_items(fast, block, items):
    """Second pass: table entries to rows."""
    for item in range(items):
        low = int64(fast.table[block.item_low[item]])
        high = int64(fast.table[block.item_high[item]])
        prefetch(fast.suffix_array, low)
        block.item_low[item] = low
        block.item_high[item] = high


@scalar
def _verify(fast, kmers, scheme, block, begin, gathered, max_hits, store, hits, stored):
    """Last pass: compare candidates with the text; returns the number of hits stored, or that had no room."""
    stride = int64(kmers.words.shape[1]) + int64(1)
    one_word = kmers.words.shape[1] == 1
    limit = int64(scheme.max_mismatches)
    for c in range(gathered):
        owner = int64(block.place_owner[c])
        place = block.place[c]
        differ = mismatch_bits(fetch_word(fast.text, place), block.words[owner * stride])
        differ = (differ | block.marks[owner]) & block.mask[owner]
        distance = popcount(differ)
        if distance > limit:
            continue
        local = owner >> int64(1)
        query = begin + local
        strand = owner & int64(1)
        window = int64(block.place_window[c])
        if one_word:
            length = int64(kmers.lengths[query])
            if not (first_window(scheme, length, differ, window) and inside_segment(fast.segments, place, length)):
                continue
        else:
            distance = accept(fast, kmers, scheme, query, strand, place, window)
            if distance < int64(0):
                continue
        block.found[local] += 1
        if store and block.found[local] <= max_hits:
            if stored < hits.shape[0]:
                hits[stored] = pack_hit(place, strand, distance)
            stored += int64(1)
    return stored


@scalar
def _narrow_item(fast, kmers, scheme, block, begin, item):
    """Rows of an item; of a crowded bucket only those that go on as its window does."""
    low = block.item_low[item]
    high = block.item_high[item]
    if high - low > int64(_NARROW_ABOVE):
        owner = int64(block.item_owner[item])
        i = int64(block.item_window[item])
        length = int64(kmers.lengths[begin + (owner >> int64(1))])
        more = min(scheme.length[length, i], int64(32))
        if more > int64(scheme.table_length):
            stride = int64(kmers.words.shape[1]) + int64(1)
            wanted = fetch_word(block.words, owner * stride * int64(32) + scheme.offset[length, i])
            low, high = narrow(fast, low, high, wanted & prefix_mask(more), more)
    return low, high


@scalar
def _fast_range(fast, kmers, scheme, block, first, last, max_hits, store, hits, counts, dropped):
    """Fast tier: blocks of k-mers in passes (table, suffix array, text, compare), each prefetching for the next."""
    rows = int64(fast.suffix_array.shape[0])
    used = int64(0)
    begin = int64(first)
    while begin < last:
        end, items = _list_items(fast, kmers, scheme, block, begin, int64(last))
        _look_up_items(fast, block, items)
        gathered = int64(0)
        stored = used
        for item in range(items):
            if block.item_low[item] == block.item_high[item]:
                continue
            low, high = _narrow_item(fast, kmers, scheme, block, begin, item)
            owner = block.item_owner[item]
            window = block.item_window[item]
            back = scheme.offset[int64(kmers.lengths[begin + (int64(owner) >> int64(1))]), int64(window)]
            for row in range(low, high):
                place = int64(fast.suffix_array[row]) - back
                if place < int64(0) or place >= rows:
                    continue
                if gathered == _CANDIDATES:
                    stored = _verify(fast, kmers, scheme, block, begin, gathered, max_hits, store, hits, stored)
                    gathered = int64(0)
                prefetch(fast.text, place >> int64(5))
                block.place[gathered] = place
                block.place_owner[gathered] = owner
                block.place_window[gathered] = window
                gathered += int64(1)
        _verify(fast, kmers, scheme, block, begin, gathered, max_hits, store, hits, stored)
        stopped, used, needed = _close_queries(
            begin, end, first, block.found, max_hits, store, hits, used, counts, dropped
        )
        if stopped < end:
            return stopped, used, needed
        begin = end
    return begin, used, int64(0)


@scalar
def _paper_range(
    forward, reverse, kmers, max_mismatches, first, last, max_hits, bounds, stack, out, counts, rows, dropped
):
    """Paper tier, search only: the intervals of every k-mer and of its reverse complement."""
    low_out, size_out, kind_out = out
    used = int64(0)
    for query in range(first, last):
        begin = used
        total = int64(0)
        for strand in range(2):
            depth = int64(0)
            if max_mismatches > 0:
                paper.lower_bounds(forward, kmers, int64(query), int64(strand), bounds)
                depth = paper.start_search(reverse, stack)
            while depth >= int64(0) and total <= max_hits:
                if max_mismatches > 0:
                    low, high, distance, depth = paper.next_leaf(
                        reverse,
                        kmers,
                        int64(query),
                        int64(strand),
                        int64(max_mismatches),
                        bounds,
                        stack,
                        depth,
                    )
                    if depth < int64(0):
                        break
                else:
                    low, high = paper.search_exact(forward, kmers, int64(query), int64(strand))
                    distance = int64(0)
                    depth = int64(-1)
                if low < high:
                    total += high - low
                    if used < low_out.shape[0]:
                        low_out[used] = uint32(low)
                        size_out[used] = uint32(high - low)
                        kind_out[used] = uint8((int64(strand) << int64(2)) | distance)
                    used += 1
        if total > max_hits:
            used = begin
            counts[query - first] = 0
            rows[query - first] = 0
            dropped[0] += 1
            dropped[1] += total
            continue
        if used > low_out.shape[0]:
            return int64(query), begin, used - begin
        counts[query - first] = used - begin
        rows[query - first] = total
    return int64(last), used, int64(0)


@scalar
def _locate_range(index, kmers, on_reverse, first, last, intervals, interval_first, hit_first, hits):
    """Paper tier: every row of the intervals of k-mers [first, last) to a packed hit, sorted by k-mer."""
    low, size, kind = intervals
    rows = int64(index.first_row[4])
    for query in range(first, last):
        to = hit_first[query]
        for i in range(interval_first[query], interval_first[query + 1]):
            for row in range(int64(low[i]), int64(low[i]) + int64(size[i])):
                entry, steps = walk_to_sample(index, row)
                place = look_up(index, entry, steps)
                if on_reverse:
                    place = rows - int64(1) - place - int64(kmers.lengths[query])
                hits[to] = pack_hit(place, int64(kind[i]) >> int64(2), int64(kind[i]) & int64(3))
                to += 1
        _sort(hits, hit_first[query], to)


def _run_ranges(count: int, threads: int, size: int, task: Callable[[int, int], _Result]) -> list[_Result]:
    """`task(first, last)` for ranges that cover [0, count), on `threads` threads, results in order."""
    ranges = [(first, min(first + size, count)) for first in range(0, count, size)]
    if threads == 1 or len(ranges) < 2:
        return [task(*each) for each in ranges]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda each: task(*each), ranges))


def _range_size(count: int, threads: int) -> int:
    return max(1, min(_RANGE, -(-count // (4 * threads))))


def find_fast(
    index: SeedIndex,
    kmers: Kmers,
    max_mismatches: int,
    *,
    threads: int = 1,
    max_hits: int | None = None,
    count_only: bool = False,
) -> Found:
    """All hits of packed k-mers, or with `count_only` their numbers; see `warpseed.kmer_seeds.find_kmers`."""
    scheme = make_scheme(kmers.lengths, max_mismatches, index.rows, index.table_length, COSTS)
    limit = _NO_LIMIT if max_hits is None else max_hits

    def task(first: int, last: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        counts = np.zeros(last - first, np.int64)
        dropped = np.zeros(2, np.int64)
        block = _new_block(kmers.words.shape[1] + 1, int(scheme.look_ups.max()))
        parts = []
        room = 0 if count_only else 2 * (last - first) + 64
        while first < last:
            hits = np.empty(room, np.uint64)
            stop, used, needed = _fast_range(
                index.fast, kmers, scheme, block, first, last, limit, not count_only, hits,
                counts[-(last - first) :], dropped,
            )  # fmt: skip
            parts.append(hits[:used])
            room, first = max(2 * room, needed) if needed else room, stop
        return parts, counts, dropped

    results = _run_ranges(len(kmers.lengths), threads, _range_size(len(kmers.lengths), threads), task)
    return Found(
        np.concatenate([part for parts, _, _ in results for part in parts] or [np.empty(0, np.uint64)]),
        np.concatenate([counts for _, counts, _ in results] or [np.empty(0, np.int64)]),
        int(sum(dropped[0] for _, _, dropped in results)),
        int(sum(dropped[1] for _, _, dropped in results)),
    )


def search_paper(
    index: SeedIndex, kmers: Kmers, max_mismatches: int, *, threads: int = 1, max_hits: int | None = None
) -> Intervals:
    """Paper tier, search only (paper 000, Table II): exact on bwt, inexact on rbwt."""
    limit = _NO_LIMIT if max_hits is None else max_hits
    longest = int(kmers.lengths.max(initial=1))

    def task(first: int, last: int) -> tuple[list[tuple[np.ndarray, ...]], np.ndarray, np.ndarray, np.ndarray]:
        counts, rows = np.zeros(last - first, np.int64), np.zeros(last - first, np.int64)
        dropped = np.zeros(2, np.int64)
        bounds = np.empty(longest, np.uint8)
        stack = (np.empty(longest, np.uint32), np.empty(longest, np.uint32), np.empty(longest, np.uint8))
        parts = []
        room = 2 * (last - first) + 64
        while first < last:
            out = (np.empty(room, np.uint32), np.empty(room, np.uint32), np.empty(room, np.uint8))
            left = last - first
            stop, used, needed = _paper_range(
                index.forward, index.reverse, kmers, max_mismatches, first, last, limit, bounds, stack,
                out, counts[-left:], rows[-left:], dropped,
            )  # fmt: skip
            parts.append(tuple(column[:used] for column in out))
            room, first = max(2 * room, needed) if needed else room, stop
        return parts, counts, rows, dropped

    results = _run_ranges(len(kmers.lengths), threads, _range_size(len(kmers.lengths), threads), task)
    columns = [part for parts, *_ in results for part in parts]
    nothing = (np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.uint8))
    low, size, kind = (np.concatenate(column) for column in zip(*(columns or [nothing]), strict=True))
    return Intervals(
        low,
        size,
        kind,
        np.concatenate([counts for _, counts, _, _ in results] or [np.empty(0, np.int64)]),
        np.concatenate([rows for _, _, rows, _ in results] or [np.empty(0, np.int64)]),
        int(sum(dropped[0] for *_, dropped in results)),
        int(sum(dropped[1] for *_, dropped in results)),
    )


def locate_intervals(
    index: SeedIndex, kmers: Kmers, intervals: Intervals, max_mismatches: int, *, threads: int = 1
) -> Found:
    """Paper tier, Equation 2 on the CPU: every row one by one, on as many threads as given (Figure 5: one)."""
    bwt = index.reverse if max_mismatches else index.forward
    interval_first = np.concatenate([[0], np.cumsum(intervals.counts)])
    hit_first = np.concatenate([[0], np.cumsum(intervals.hits)])
    hits = np.empty(int(hit_first[-1]), np.uint64)

    def task(first: int, last: int) -> None:
        _locate_range(bwt, kmers, max_mismatches > 0, first, last, intervals[:3], interval_first, hit_first, hits)

    _run_ranges(len(kmers.lengths), threads, _range_size(len(kmers.lengths), threads), task)
    return Found(hits, intervals.hits, intervals.dropped_queries, intervals.dropped_hits)

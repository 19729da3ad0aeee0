"""Kernels of the paper tier: one or two for each stage of paper 002, section 4, in blocks of 128 threads.

gpu_stages.py launches them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int32, int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.searching import lower_bound, owner_of
from warpseed.compute.warp import ALL_LANES, BLOCK, WARPS, last_lane, warp_places
from warpseed.fm_index.bins import locate_row, narrowed
from warpseed.mems.matches import PLACE_BITS
from warpseed.mems.paper import (
    BASES_A_WINDOW,
    BASES_A_WORD,
    PAD_WORDS,
    first_rows,
    is_redundant,
    match_at,
    new_rows,
    packed_bases,
    row_of,
    window_before,
)

__all__ = [
    "Started",
    "assign_starts",
    "compact_found",
    "compact_kept",
    "count_kept",
    "count_matches",
    "count_new_rows",
    "drop_reads",
    "find_intervals",
    "locate_matches",
    "pack_pattern_words",
    "split_intervals",
]

_HISTORY = 32
"""Steps that a thread remembers: as many as there are lanes."""
_SHARED = _HISTORY * BLOCK


class Started(NamedTuple):
    """The MEM starts of a launch, a thread each: the third and the fourth array of section 4.2."""

    patterns: np.ndarray
    """uint32[t], whose it is"""
    mems: np.ndarray
    """uint32[t], which of its pattern's, the last base's first"""


# ------------------------------------------------------------------------------------------------- stage 0


@kernel
def pack_pattern_words(reads, patterns):
    """Four bits a base: one word of eight bases a thread."""
    word = int64(cuda.grid(1)) + int64(PAD_WORDS)
    count = int64(patterns.first.shape[0]) - int64(1)
    if word >= int64(patterns.first[count]):
        return
    pattern = owner_of(patterns.first, word)
    query, strand = pattern // int64(patterns.strands), pattern % int64(patterns.strands)
    first = int64(BASES_A_WORD) * (word - int64(patterns.first[pattern]))
    patterns.words[word] = uint32(packed_bases(reads, query, strand, first))


@kernel
def assign_starts(starts, first, started):
    """Which pattern, and which MEM of it, each thread of a launch has, of which the first has number `first` of all."""
    thread = int64(cuda.grid(1))
    if thread >= int64(started.patterns.shape[0]):
        return
    number = int64(first) + thread
    pattern = owner_of(starts, number)
    started.patterns[thread] = uint32(pattern)
    started.mems[thread] = uint32(number - int64(starts[pattern]))


# ------------------------------------------------------------------------------------------------- stage 1


@scalar
def _is_early_redundant(sizes, state, step):
    """Section 4.3.2: whether what a lane has found so far is what one of a lesser number has; all lanes take part.

    Of the lanes below that still search, the nearest one is asked for the size of its interval. It works on a base
    further to the right, so it comes to each place of the pattern so many steps later. Where its size there is this
    lane's, its longer string has the same rows, and so has all that follows to the left.

    Parameters
    ----------
    sizes : uint32[32 · BLOCK] in shared memory, prev_intv_size: the interval sizes of each thread's last 32 steps
    state : (whether this lane searches, its pattern, the size of its interval), bool, int32, uint32
    """
    searches, pattern, size = state
    me = int64(cuda.threadIdx.x)
    lane = me & int64(31)
    below = uint32(uint32(cuda.ballot_sync(ALL_LANES, searches)) & ((uint32(1) << uint32(lane)) - uint32(1)))
    other = max(last_lane(below), int64(0))
    other_size = uint32(cuda.shfl_sync(ALL_LANES, int32(size), int32(other)))
    other_pattern = cuda.shfl_sync(ALL_LANES, pattern, int32(other))
    ago = lane - other
    if not searches or below == uint32(0) or other_pattern != pattern or ago > step:
        return False
    return sizes[((step - ago) & int64(_HISTORY - 1)) * int64(BLOCK) + me] == other_size


@kernel
def find_intervals(index, patterns, started, min_length, found, counts):
    """Algorithm 1, a MEM start a thread: pre-calculated rows, then base by base to the left.

    The lanes of a warp go on as long as one of them does. ``found.intervals[t]`` is 0 where there is no match, and
    ``counts[b]`` (uint32) is how many the threads of block b have.
    """
    sizes = cuda.shared.array(_SHARED, uint32)
    me, thread = int64(cuda.threadIdx.x), int64(cuda.grid(1))
    pattern, origin, end = int32(-1), int64(0), int64(0)
    low, high, window = int64(0), int64(0), uint64(0)
    length = int64(index.pre_calc_length)
    if thread < int64(started.patterns.shape[0]):
        pattern = int32(started.patterns[thread])
        origin = int64(BASES_A_WORD) * int64(patterns.first[pattern])
        end = int64(patterns.lengths[int64(pattern) // int64(patterns.strands)]) - int64(started.mems[thread])
        window = window_before(patterns.words, origin + end)
        low, high = first_rows(index, window)
        window >>= uint64(4) * uint64(length)
    start, left = end - length, int64(BASES_A_WINDOW) - length
    searches, matches = low < high, low < high
    step = int64(0)
    while cuda.any_sync(ALL_LANES, searches):
        size = uint32(high - low)
        sizes[(step & int64(_HISTORY - 1)) * int64(BLOCK) + me] = size
        if _is_early_redundant(sizes, (searches, pattern, size), step):
            searches = matches = False
        if searches and start > int64(0):
            if left == int64(0):
                window, left = window_before(patterns.words, origin + start), int64(BASES_A_WINDOW)
            base = int64(window & uint64(15))
            next_low, next_high = int64(0), int64(0)
            if base <= int64(3):
                next_low, next_high = narrowed(index, base, low, high)
            if next_low < next_high:
                low, high = next_low, next_high
                start -= int64(1)
                left -= int64(1)
                window >>= uint64(4)
            else:
                searches = False
        else:
            searches = False
        step += int64(1)
    matches = matches and end - start >= int64(min_length)
    if thread < int64(found.intervals.shape[0]):
        found.intervals[thread] = (uint64(low) << uint64(32)) | uint64(high) if matches else uint64(0)
        found.spans[thread] = (uint64(start) << uint64(32)) | uint64(end)
    count = cuda.syncthreads_count(int32(1) if matches else int32(0))
    if me == int64(0):
        counts[cuda.blockIdx.x] = uint32(count)


# ------------------------------------------------------------------------------------------------- stage 2


@scalar
def _place_in(borders, totals, kept):
    """Where a thread's entry goes when those that are kept are put together; all threads of a block take part.

    Parameters
    ----------
    borders : int64[blocks + 1], entries that are kept of the blocks before each
    totals : int64[WARPS] in shared memory
    """
    warp = int64(cuda.threadIdx.x) >> int64(5)
    place, total = warp_places(int64(1) if kept else int64(0))
    if int64(cuda.threadIdx.x) & int64(31) == int64(0):
        totals[warp] = total
    cuda.syncthreads()
    for before in range(warp):
        place += totals[before]
    return int64(borders[cuda.blockIdx.x]) + place


@kernel
def compact_found(found, patterns, borders, into):
    """Put the entries of a launch together that are not empty, each with its pattern (uint32[t]); a thread each."""
    totals = cuda.shared.array(WARPS, int64)
    i = int64(cuda.grid(1))
    kept = i < int64(found.intervals.shape[0]) and found.intervals[i] != uint64(0)
    to = _place_in(borders, totals, kept)
    if kept:
        into.intervals[to] = found.intervals[i]
        into.spans[to] = found.spans[i]
        into.patterns[to] = patterns[i]


@kernel
def count_kept(entries, counts):
    """Test every entry, a thread each: ``counts[b]`` (uint32) is how many of block b are not redundant."""
    i = int64(cuda.grid(1))
    kept = i < int64(entries.intervals.shape[0]) and not is_redundant(entries, i)
    count = cuda.syncthreads_count(int32(1) if kept else int32(0))
    if cuda.threadIdx.x == 0:
        counts[cuda.blockIdx.x] = uint32(count)


@kernel
def compact_kept(entries, borders, into):
    """Put the entries together that are not redundant; a thread each."""
    totals = cuda.shared.array(WARPS, int64)
    i = int64(cuda.grid(1))
    kept = i < int64(entries.intervals.shape[0]) and not is_redundant(entries, i)
    to = _place_in(borders, totals, kept)
    if kept:
        into.intervals[to] = entries.intervals[i]
        into.spans[to] = entries.spans[i]
        into.patterns[to] = entries.patterns[i]


# ------------------------------------------------------------------------------------------------- stages 3 and 4


@kernel
def count_new_rows(entries, counts):
    """How many rows an entry has for itself, int64[e]; a thread each."""
    i = int64(cuda.grid(1))
    if i < int64(counts.shape[0]):
        _, _, _, counts[i] = new_rows(entries, i)


@kernel
def count_matches(entries, borders, strands, counts):
    """The matches of each read, int64[n], a thread each; `borders` (int64[e + 1]) is where each entry's rows begin."""
    query = int64(cuda.grid(1))
    if query < int64(counts.shape[0]):
        end, pattern = int64(entries.patterns.shape[0]), query * int64(strands)
        first = lower_bound(entries.patterns, int64(0), end, pattern)
        last = lower_bound(entries.patterns, first, end, pattern + int64(strands))
        counts[query] = int64(borders[last]) - int64(borders[first])


@kernel
def drop_reads(entries, strands, max_hits, counts, rows):
    """Take the rows (int64[e]) from the entries of reads with more than `max_hits` matches; a thread an entry."""
    i = int64(cuda.grid(1))
    if i < int64(rows.shape[0]) and int64(counts[int64(entries.patterns[i]) // int64(strands)]) > int64(max_hits):
        rows[i] = int64(0)


@kernel
def split_intervals(entries, borders, first, rows, owners):
    """Rows number `first` and so on of all entries, uint32[r], and whose they are, uint32[r]; a thread a row."""
    thread = int64(cuda.grid(1))
    if thread >= int64(rows.shape[0]):
        return
    number = int64(first) + thread
    owner = owner_of(borders, number)
    rows[thread] = uint32(row_of(entries, owner, number - int64(borders[owner])))
    owners[thread] = uint32(owner)


@kernel
def locate_matches(index, patterns, entries, rows, owners, keys, spans):
    """Algorithm 2, a row a thread: the match's read above its place, and its span, uint64[r] each."""
    thread = int64(cuda.grid(1))
    if thread >= int64(rows.shape[0]):
        return
    owner = int64(owners[thread])
    place, span = match_at(patterns, entries, owner, locate_row(index, int64(rows[thread])))
    query = uint64(int64(entries.patterns[owner]) // int64(patterns.strands))
    keys[thread] = (query << uint64(PLACE_BITS)) | place
    spans[thread] = span

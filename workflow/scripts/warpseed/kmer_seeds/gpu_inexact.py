"""Kernels of the fast tier's search with mismatches: look-ups, buckets with few rows, and how hits are settled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.appended import SEGMENTS, set_aside
from warpseed.compute.compiled import int32, int64, scalar, uint32, uint64
from warpseed.compute.gpu import bounded_kernel, cuda, kernel
from warpseed.compute.intrinsics import popcount
from warpseed.compute.warp import ALL_LANES, BLOCK, WARPS, reserve, warp_places
from warpseed.fm_index.tagged import exact_tag_range, is_inside, oriented_string_of, position_of
from warpseed.kmer_seeds.gpu_crowded import piece_rows
from warpseed.kmer_seeds.gpu_look_ups import (
    flush,
    is_dropped,
    look_up_bucket,
    look_up_of,
    new_shared,
    try_rows,
    window_look_up,
)
from warpseed.kmer_seeds.gpu_ways import bases_behind, is_whole, spent_of, sure_bases
from warpseed.kmer_seeds.kmers import QUERY_SHIFT
from warpseed.sequences.packed import all_known, oriented_word

__all__ = ["CLOSING_BLOCKS", "KEPT", "LANES_SHIFT", "append_inexact", "close_ranks", "settle_counts"]

LANES_SHIFT = 1
_LANES = 1 << LANES_SHIFT
"""Lanes that share the look-ups of one k-mer in one orientation."""
_CROWDED = 128
"""A bucket with more rows of a strand is narrowed, and if it has more then, left to whole warps."""
_NEAREST = 512
"""Rows on either side of where a k-mer would lie in its own crowded bucket that are tried at once, at most."""
_STACK = 64
_BLOCK_WAITING = 2 * _STACK * WARPS
"""Buckets that wait on a stack, and on all of a block."""
_ROUNDS = 4
"""Look-ups of a lane after which it asks whether the k-mer is dropped."""
CLOSING_BLOCKS = 32 * SEGMENTS
KEPT = 2 * SEGMENTS
"""Place of the cursor of what `close_ranks` keeps; dropped k-mers are counted behind it."""


class Waiting(NamedTuple):
    """Buckets that wait until there are as many as a warp has lanes: two stacks for each of a block's warps in shared
    memory, of buckets with few rows, and of those with many."""

    items: np.ndarray
    """uint32[_BLOCK_WAITING], pattern << 5 | the lane that looked it up"""
    lows: np.ndarray
    """uint64[_BLOCK_WAITING], first row"""
    counts: np.ndarray
    """uint32[_BLOCK_WAITING], rows"""


@scalar
def _new_waiting():
    """Shared memory of a block for its stacks: 64 bytes a thread."""
    return Waiting(
        cuda.shared.array(_BLOCK_WAITING, uint32),
        cuda.shared.array(_BLOCK_WAITING, uint64),
        cuda.shared.array(_BLOCK_WAITING, uint32),
    )


@scalar
def _place(crowded, number):
    """The place of an item of one of a warp's stacks."""
    warp = int64(cuda.threadIdx.x) >> int64(5)
    return (int64(2) * warp + crowded) * int64(_STACK) + number


@scalar
def _put(waiting, crowded, filled, item, rows):
    """Put every lane's bucket that has rows on a stack; returns how many are there, int32. All lanes take part."""
    low, high = rows
    votes = uint32(cuda.ballot_sync(ALL_LANES, low < high))
    if votes == uint32(0):
        return filled
    if low < high:
        lane = int64(cuda.threadIdx.x) & int64(31)
        before = uint32(votes & ((uint32(1) << uint32(lane)) - uint32(1)))
        at = _place(crowded, int64(filled) + popcount(uint64(before)))
        waiting.items[at] = uint32(item)
        waiting.lows[at] = uint64(low)
        waiting.counts[at] = uint32(high - low)
    cuda.syncwarp()
    return int32(filled + popcount(uint64(votes)))


@scalar
def _take(waiting, crowded, first, filled):
    """A bucket for every lane, of those on a stack from `first` on: (item, first row, row behind the last); no rows for
    lanes that there is none for. All lanes take part."""
    lane = int64(cuda.threadIdx.x) & int64(31)
    item, low, high = int64(0), int64(0), int64(0)
    if first + lane < filled:
        at = _place(crowded, first + lane)
        item, low = int64(waiting.items[at]), int64(waiting.lows[at])
        high = low + int64(waiting.counts[at])
    cuda.syncwarp()
    return item, low, high


@scalar
def _look_up_of_item(search, item):
    """The look-up of an item of this warp, and 32 bases of its k-mer from the window on."""
    of_thread = (int64(cuda.grid(1)) & int64(-32)) + (item & int64(31))
    return look_up_of(search, oriented_string_of(search.tagged, of_thread >> int64(LANES_SHIFT)), item >> int64(5))


@scalar
def _crowded_from(search):
    """Rows of a bucket above which it is crowded, int64."""
    return int64(_CROWDED) << (int64(2) - int64(search.tagged.orientations))


@scalar
def _narrowed(search, look_up, rows, bases):
    """Rows of a crowded bucket that are left to be tried.

    Where no mismatch is left, the bases behind those that were looked up are as in the k-mer. Where more rows are so
    than a k-mer may have hits, and the tag shows them whole, they are counted, and that is all.
    """
    index = search.tagged
    low, high = rows
    way, query = look_up.way, look_up.owner >> int64(1)
    if is_whole(way) and all_known(search.kmers) and high - low > search.max_hits:
        length = int64(search.kmers.lengths[query])
        first, last = exact_tag_range(index, low, high, bases, bases_behind(way), int64(search.max_hits))
        if last - first > search.max_hits and is_inside(index, position_of(index, first), length):
            cuda.atomic.add(search.lists.counts, query, uint64(last - first))
            return low, low
    return exact_tag_range(index, low, high, bases, sure_bases(way), high)


@scalar
def _nearest(search, look_up, rows, bases):
    """Rows of a crowded bucket that are tried at once: where it is that of the k-mer's own bases, those that are most
    like it, as a k-mer of a repeat has too many hits among them, and is looked up no more. None of other buckets."""
    low, high = rows
    way, most = look_up.way, int64(search.max_hits)
    if spent_of(way) > int64(0) or not is_whole(way) or most > int64(_NEAREST):
        return low, low
    place, _ = exact_tag_range(search.tagged, low, high, bases, bases_behind(way), int64(0))
    return max(low, place - most), min(place + most, high)


@scalar
def _few_rows(search, item, rows):
    """A crowded bucket's rows that are tried here: those that are left, if they are few. Else most are set aside."""
    look_up, bases = _look_up_of_item(search, item)
    if is_dropped(search, look_up.owner >> int64(1)):
        return rows[0], rows[0]
    low, high = _narrowed(search, look_up, rows, bases)
    if high - low <= _crowded_from(search):
        return low, high
    first, last = _nearest(search, look_up, (low, high), bases)
    lists, named = search.lists, (look_up.owner, item >> int64(5))
    run = piece_rows(search, look_up, high - low)
    set_aside(lists.cursors, lists.crowded, named, (low, first), run)
    set_aside(lists.cursors, lists.crowded, named, (last, high), run)
    return first, last


@scalar
def _try_waiting(search, shared, filled, crowded, least, soon):
    """Try the buckets on a warp's stacks, 32 at a time, until there are fewer than `least`, and than `soon` of crowded
    ones; all lanes take part.

    Returns
    -------
    (filled, crowded) : how many are left on the stacks
    """
    dealt, nest, waiting = shared
    while filled >= least or crowded >= soon:
        narrows = int64(crowded >= int32(32) or filled < least)
        there = crowded if narrows else filled
        left = max(int32(there - int32(32)), int32(0))
        item, low, high = _take(waiting, narrows, int64(left), int64(there))
        if narrows:
            crowded = left
            if low < high:
                low, high = _few_rows(search, item, (low, high))
        else:
            filled = left
        look_up = window_look_up(search, int64(0), uint64(0), int64(0), uint64(0))
        if low < high:
            look_up, _ = _look_up_of_item(search, item)
        try_rows(search, nest, dealt, look_up, (low, high))
    return filled, crowded


@bounded_kernel(88)
def append_inexact(search, rounds):
    """Matches with mismatches: 2 lanes a k-mer, and orientation that it is looked up in, take its look-ups in turn, in
    `rounds` rounds.

    Most buckets are empty. Those that are not wait in shared memory until all lanes of the warp have one; so do those
    that are crowded, whose rows are searched. The rows of a warp's 32 buckets are dealt out to its lanes one by one, so
    that one full bucket does not keep 31 lanes waiting. What is crowded still is left to the kernels of gpu_crowded.py.
    A k-mer that has a hit too many is not looked up any more; its own bucket comes first, and shows that of most.
    """
    waiting = _new_waiting()
    dealt, nest = new_shared()
    kmers, scheme = search.kmers, search.scheme
    t = int64(cuda.grid(1))
    owner = oriented_string_of(search.tagged, t >> int64(LANES_SHIFT))
    query = owner >> int64(1)
    strand = owner & int64(1)
    pattern, left, first_word = int32(0), int32(0), uint64(0)
    if query < int64(kmers.lengths.shape[0]):
        length = int64(kmers.lengths[query])
        first_word = oriented_word(kmers, query, strand, int64(0))
        lane = t & int64(_LANES - 1)
        pattern = int32(scheme.pattern_first[length, 0] + lane)
        left = int32((scheme.look_ups[length] - lane + int64(_LANES - 1)) >> int64(LANES_SHIFT))
    filled, crowded = int32(0), int32(0)
    for done in range(int32(rounds) + int32(1)):
        low, high = int64(0), int64(0)
        if int32(done) & int32(_ROUNDS - 1) == int32(1) and int32(done) < left and is_dropped(search, query):
            left = int32(0)
        if int32(done) < left:
            low, high = look_up_bucket(search, query, strand, first_word, int64(pattern))
        item = (int64(pattern) << int64(5)) | (t & int64(31))
        many = high - low > _crowded_from(search)
        filled = _put(waiting, int64(0), filled, item, (low, low if many else high))
        crowded = _put(waiting, int64(1), crowded, item, (low, high if many else low))
        least = int32(1) if int32(done) == int32(rounds) else int32(32)
        soon = int32(1) if int32(done) == int32(0) else least  # of a k-mer in a repeat nothing else need be looked up
        filled, crowded = _try_waiting(search, (dealt, nest, waiting), filled, crowded, least, soon)
        pattern = int32(pattern + int32(_LANES))
    flush(search.lists, nest, int64(1))


@kernel
def close_ranks(lists, max_hits, hits):
    """Move the parts of the list of hits together, less those of dropped k-mers; CLOSING_BLOCKS blocks.

    Blocks share the parts, and reserve room for each piece of a part by one addition to ``cursors[KEPT]``.
    """
    warp_totals = cuda.shared.array(WARPS, uint64)
    me = int64(cuda.threadIdx.x)
    segment = int64(cuda.blockIdx.x) & int64(SEGMENTS - 1)
    room = int64(lists.hits.shape[0]) // int64(SEGMENTS)
    used = min(int64(lists.cursors[segment]), room)
    first = (int64(cuda.blockIdx.x) // int64(SEGMENTS)) * int64(BLOCK)
    for piece in range(first, used, (CLOSING_BLOCKS // SEGMENTS) * BLOCK):
        hit = uint64(0)
        keep = int64(piece) + me < used
        if keep:
            hit = lists.hits[segment * room + int64(piece) + me]
            keep = int64(lists.counts[int64(hit >> uint64(QUERY_SHIFT))]) <= max_hits
        place, total = warp_places(int64(1) if keep else int64(0))
        begin = reserve(warp_totals, total, lists.cursors, KEPT)
        if keep:
            hits[begin + place] = hit
        cuda.syncthreads()


@kernel
def settle_counts(lists, max_hits):
    """Count dropped k-mers behind ``cursors[KEPT]``, and set their counts to 0: one thread a k-mer."""
    query = int64(cuda.grid(1))
    if query < int64(lists.counts.shape[0]) and int64(lists.counts[query]) > max_hits:
        cuda.atomic.add(lists.cursors, KEPT + 1, uint64(1))
        lists.counts[query] = uint64(0)

"""Kernels of the fast tier's search with mismatches.

They look up the neighbours of a k-mer's windows, and deal the rows of a warp's buckets out to the warp's lanes. Hits go
to lists by one addition for many of them; their order is settled by a sort afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.appended import SEGMENTS, run_at, runs_of_warp, set_aside
from warpseed.compute.bits import fetch_word, mismatch_bits, prefix_mask
from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.intrinsics import popcount
from warpseed.compute.warp import BLOCK, WARPS, lane_of, reserve, warp_places
from warpseed.fm_index.tagged import TaggedIndex, bucket_rows, decided_bases, exact_tag_range
from warpseed.fm_index.text import inside_segment
from warpseed.kmer_seeds.fast import Scheme, accept_word, accept_words
from warpseed.kmer_seeds.kmers import QUERY_SHIFT, keyed_hit
from warpseed.sequences.packed import Packed, all_known, one_word_each, oriented_marks, oriented_word

__all__ = [
    "CLOSING_BLOCKS",
    "KEPT",
    "LANES_SHIFT",
    "InexactSearch",
    "Lists",
    "append_crowded",
    "append_inexact",
    "close_ranks",
    "look_up_bucket",
    "settle_counts",
]

LANES_SHIFT = 1
_LANES = 1 << LANES_SHIFT
"""Lanes that share the look-ups of one k-mer in one orientation."""
_CROWDED = 64
"""A bucket with more rows is left to whole warps, in runs of _RUN rows."""
_RUN = 1024
_NEST = 64
_BLOCK_NEST = _NEST * WARPS
"""Hits that a warp, and a block, keep in shared memory before they are appended."""
CLOSING_BLOCKS = 32 * SEGMENTS
KEPT = 2 * SEGMENTS
"""Place of the cursor of what `close_ranks` keeps; dropped k-mers and their hits are counted behind it."""


@scalar
def _oriented_bases(kmers, query, strand, first_word, offset):
    """32 bases of a k-mer in one orientation from `offset` on, zero behind its end."""
    if offset < int64(32) and one_word_each(kmers):
        return first_word << uint64(int64(2) * offset)
    length = int64(kmers.lengths[query])
    word = offset >> int64(5)
    shift = uint64(int64(2) * (offset & int64(31)))
    bases = oriented_word(kmers, query, strand, word) << shift
    if shift != uint64(0) and int64(32) * (word + int64(1)) < length:
        bases |= oriented_word(kmers, query, strand, word + int64(1)) >> (uint64(64) - shift)
    return bases


@scalar
def look_up_bucket(index, kmers, scheme, query, strand, first_word, pattern):
    """One look-up of a k-mer in one orientation.

    Returns
    -------
    (low, high, bases) : the rows of the pattern's bucket, and 32 bases of the k-mer from its window on
    """
    bases = _oriented_bases(kmers, query, strand, first_word, int64(scheme.pattern_offset[pattern]))
    low, high = bucket_rows(index, bases, int64(scheme.pattern_length[pattern]), scheme.patterns[pattern])
    return low, high, bases


class Lists(NamedTuple):
    """Where the threads of an inexact search append; each list is cut into SEGMENTS parts with a cursor each.

    Blocks take the parts in turn, so that no single counter is everybody's bottleneck. A cursor also counts what
    found no room.
    """

    cursors: np.ndarray
    """uint64[KEPT + 3], of the hits, of the crowded buckets; hits kept, dropped k-mers, dropped hits"""
    hits: np.ndarray
    """uint64[…], k-mer << 35 | packed hit"""
    crowded: np.ndarray
    """uint32[…, 4], 2·q + s, pattern, first row, row behind the last"""
    counts: np.ndarray
    """uint64[n], hits of each k-mer: one of a base has more than 2^32 in a large text"""


@scalar
def _tag_of(index, length, offset, bases):
    """What a row's tag should be for a window at `offset`, and the mask of its bases that lie in the k-mer."""
    table_length = int64(index.table_length)
    mask = prefix_mask(min(length - offset, int64(32)) - table_length) >> uint64(32)
    return ((bases << uint64(int64(2) * table_length)) >> uint64(32)) & mask, mask


@scalar
def _append(lists, hit):
    """Put one hit into the block's part of the list, by a global addition of its own."""
    segment = int64(cuda.blockIdx.x) & int64(SEGMENTS - 1)
    room = int64(lists.hits.shape[0]) // int64(SEGMENTS)
    slot = int64(cuda.atomic.add(lists.cursors, segment, uint64(1)))
    if slot < room:
        lists.hits[segment * room + slot] = hit


class _Nest(NamedTuple):
    """A block's hits in shared memory, before they are appended."""

    hits: np.ndarray
    """uint64[_BLOCK_NEST], _NEST of each warp"""
    filled: np.ndarray
    """uint32[WARPS], how many each warp has, those without room too"""


@scalar
def _flush(lists, nest, least):
    """Move a warp's hits from shared memory to the list, if there are `least`, by one addition; all lanes take part."""
    me = int64(cuda.threadIdx.x)
    warp = me >> int64(5)
    lane = me & int64(31)
    cuda.syncwarp()
    count = min(int64(nest.filled[warp]), int64(_NEST))
    if count < least:
        return
    segment = int64(cuda.blockIdx.x) & int64(SEGMENTS - 1)
    room = int64(lists.hits.shape[0]) // int64(SEGMENTS)
    begin = int64(0)
    if lane == int64(0):
        begin = int64(cuda.atomic.add(lists.cursors, segment, uint64(count)))
    begin = int64(cuda.shfl_sync(0xFFFFFFFF, begin, 0))
    for i in range(lane, count, 32):
        if begin + int64(i) < room:
            lists.hits[segment * room + begin + int64(i)] = nest.hits[warp * int64(_NEST) + int64(i)]
    cuda.syncwarp()
    if lane == int64(0):
        nest.filled[warp] = uint32(0)
    cuda.syncwarp()


class InexactSearch(NamedTuple):
    """What all threads of an inexact search share."""

    tagged: TaggedIndex
    kmers: Packed
    scheme: Scheme
    max_hits: int
    lists: Lists


class _LookUp(NamedTuple):
    """One look-up, as its rows need it."""

    owner: int
    """2·q + s, the k-mer in one orientation"""
    pattern: int
    first_word: int
    """uint64, the first word of the k-mer in that orientation"""
    tag: int
    """uint64, what a row's tag should be"""
    mask: int
    """uint64, the bases of the tag that lie in the k-mer"""


@scalar
def _distance_at(search, look_up, position):
    """Distance of a k-mer to the text at a position that a look-up led to; -1 as for `accept_word`."""
    tagged, kmers, scheme = search.tagged, search.kmers, search.scheme
    query = look_up.owner >> int64(1)
    strand = look_up.owner & int64(1)
    window = int64(scheme.pattern_window[look_up.pattern])
    if not one_word_each(kmers):
        return accept_words(tagged, kmers, scheme, query, strand, position, window)
    length = int64(kmers.lengths[query])
    differ = mismatch_bits(fetch_word(tagged.text, position), look_up.first_word)
    differ = (differ | oriented_marks(kmers, query, strand, int64(0))) & prefix_mask(length)
    return accept_word(tagged, scheme, length, position, window, differ)


@scalar
def _try_row(search, nest, look_up, row):
    """Decide on one row of a bucket by its tag and, where that does not hold the whole k-mer, by the text."""
    index, kmers, scheme, lists = search.tagged, search.kmers, search.scheme, search.lists
    query = look_up.owner >> int64(1)
    tagged = index.rows[row]
    distance = popcount(mismatch_bits((tagged >> uint64(32)) & look_up.mask, look_up.tag))
    distance += popcount(mismatch_bits(scheme.patterns[look_up.pattern], uint64(0)))
    unmarked = all_known(kmers)
    if distance > int64(scheme.max_mismatches) and unmarked:
        return
    offset = int64(scheme.pattern_offset[look_up.pattern])
    position = int64(tagged & uint64(0xFFFFFFFF)) - offset
    if position < int64(0) or position >= int64(index.rows.shape[0]):
        return
    length = int64(kmers.lengths[query])
    table_length = int64(index.table_length)
    whole = (
        offset == int64(0)
        and scheme.length[length, 0] == table_length
        and int64(scheme.pattern_length[look_up.pattern]) == table_length
        and length <= decided_bases(index)
    )
    if whole and unmarked:
        if not inside_segment(index.segments, position, length):
            return
    else:
        distance = _distance_at(search, look_up, position)
        if distance < int64(0):
            return
    known = int64(lists.counts[query])
    cuda.atomic.add(lists.counts, query, uint64(1))
    if known > search.max_hits:
        return
    warp = int64(cuda.threadIdx.x) >> int64(5)
    hit = keyed_hit(query, position, look_up.owner & int64(1), distance)
    slot = int64(cuda.atomic.add(nest.filled, warp, uint32(1)))
    if slot < int64(_NEST):
        nest.hits[warp * int64(_NEST) + slot] = hit
    else:
        _append(lists, hit)


@kernel
def append_inexact(search, rounds):
    """Matches with mismatches: 2 lanes a k-mer and orientation take its look-ups in turn, in `rounds` rounds.

    The rows of a warp's 32 buckets are dealt out to its lanes one by one (binary search in shared memory, 45 bytes
    a thread, its hits included), so that one full bucket does not keep 31 lanes waiting. Buckets of more than
    _CROWDED rows are set aside for `append_crowded`.
    """
    places = cuda.shared.array(BLOCK, uint32)
    lows = cuda.shared.array(BLOCK, uint32)
    tags = cuda.shared.array(BLOCK, uint32)
    masks = cuda.shared.array(BLOCK, uint32)
    patterns = cuda.shared.array(BLOCK, uint32)
    words = cuda.shared.array(BLOCK, uint64)
    nest = _Nest(cuda.shared.array(_BLOCK_NEST, uint64), cuda.shared.array(WARPS, uint32))
    index, kmers, scheme, lists = search.tagged, search.kmers, search.scheme, search.lists
    t = int64(cuda.grid(1))
    me = int64(cuda.threadIdx.x)
    if me & int64(31) == int64(0):
        nest.filled[me >> int64(5)] = uint32(0)
    cuda.syncwarp()
    first_lane = me - (me & int64(31))
    owner = t >> int64(LANES_SHIFT)
    query = owner >> int64(1)
    strand = owner & int64(1)
    length = int64(0)
    pattern = int64(0)
    end = int64(0)
    first_word = uint64(0)
    if query < int64(kmers.lengths.shape[0]):
        length = int64(kmers.lengths[query])
        first_word = oriented_word(kmers, query, strand, int64(0))
        pattern = scheme.pattern_first[length, 0] + (t & int64(_LANES - 1))
        end = scheme.pattern_first[length, 0] + scheme.look_ups[length]
    words[me] = first_word
    for _ in range(rounds):
        low = int64(0)
        high = int64(0)
        tag = uint64(0)
        mask = uint64(0)
        if pattern < end:
            low, high, bases = look_up_bucket(index, kmers, scheme, query, strand, first_word, pattern)
            if high - low > int64(_CROWDED):
                window = int64(scheme.pattern_window[pattern])
                exact = min(scheme.length[length, window], int64(32)) - int64(index.table_length)
                low, high = exact_tag_range(index, low, high, bases, exact)
                if high - low > int64(_CROWDED):
                    set_aside(lists.cursors, lists.crowded, (owner, pattern), (low, high), int64(_RUN))
                    high = low
            tag, mask = _tag_of(index, length, int64(scheme.pattern_offset[pattern]), bases)
        if cuda.any_sync(0xFFFFFFFF, low < high):
            place, total = warp_places(max(high - low, int64(0)))
            places[me] = uint32(place)
            lows[me] = uint32(low)
            tags[me] = uint32(tag)
            masks[me] = uint32(mask)
            patterns[me] = uint32(pattern)
            cuda.syncwarp()
            for i in range(me & int64(31), total, 32):
                lane = lane_of(places, first_lane, int64(i))
                look_up = _LookUp(
                    (t - me + lane) >> int64(LANES_SHIFT), int64(patterns[lane]), words[lane],
                    uint64(tags[lane]), uint64(masks[lane]),
                )  # fmt: skip
                _try_row(search, nest, look_up, int64(lows[lane]) + int64(i) - int64(places[lane]))
            _flush(lists, nest, int64(32))
        pattern += int64(_LANES)
    _flush(lists, nest, int64(1))


@kernel
def append_crowded(search):
    """The rows of the buckets set aside: a warp takes runs of a part of the list in turn, a lane every 32nd row."""
    nest = _Nest(cuda.shared.array(_BLOCK_NEST, uint64), cuda.shared.array(WARPS, uint32))
    index, kmers, scheme, lists = search.tagged, search.kmers, search.scheme, search.lists
    t = int64(cuda.grid(1))
    if t & int64(31) == int64(0):
        nest.filled[int64(cuda.threadIdx.x) >> int64(5)] = uint32(0)
    cuda.syncwarp()
    start, end, step = runs_of_warp(lists.cursors, lists.crowded)
    for entry in range(start, end, step):
        owner, pattern, begin, last = run_at(lists.crowded, entry)
        query = owner >> int64(1)
        strand = owner & int64(1)
        offset = int64(scheme.pattern_offset[pattern])
        first_word = oriented_word(kmers, query, strand, int64(0))
        bases = _oriented_bases(kmers, query, strand, first_word, offset)
        tag, mask = _tag_of(index, int64(kmers.lengths[query]), offset, bases)
        look_up = _LookUp(owner, pattern, first_word, tag, mask)
        for row in range(begin + (t & int64(31)), last, 32):
            _try_row(search, nest, look_up, int64(row))
        _flush(lists, nest, int64(32))
    _flush(lists, nest, int64(1))


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
    """Count dropped k-mers and their hits behind ``cursors[KEPT]``, and set their counts to 0: one thread a k-mer."""
    query = int64(cuda.grid(1))
    if query < int64(lists.counts.shape[0]) and int64(lists.counts[query]) > max_hits:
        cuda.atomic.add(lists.cursors, KEPT + 1, uint64(1))
        cuda.atomic.add(lists.cursors, KEPT + 2, lists.counts[query])
        lists.counts[query] = uint64(0)

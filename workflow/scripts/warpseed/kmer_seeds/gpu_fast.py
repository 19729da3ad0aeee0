"""Kernels of the fast tier's searches.

Exact search finds a run of equal tags and appends its rows; inexact search looks up the neighbours of its windows, and
deals the rows of a warp's buckets out to the warp's lanes. Hits go to lists by one addition for many of them; their
order is settled by a sort afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int32, int64, uint8, uint32, uint64

from warpseed.compute.bits import fetch_word, mismatch_bits, prefix_mask
from warpseed.compute.compiled import scalar
from warpseed.compute.gpu import bounded_kernel, cuda, kernel
from warpseed.compute.intrinsics import popcount
from warpseed.compute.warp import BLOCK, WARPS, lane_of, reserve, warp_places
from warpseed.fm_index.tagged import bucket_rows, decided_bases, exact_rows, exact_tag_range, position_of
from warpseed.fm_index.text import inside_segment
from warpseed.kmer_seeds.fast import accept_word, accept_words
from warpseed.kmer_seeds.kmers import QUERY_SHIFT, keyed_hit
from warpseed.sequences.packed import all_known, one_word_each, oriented_marks, oriented_word

__all__ = [
    "CLOSING_BLOCKS",
    "KEPT",
    "LANES_SHIFT",
    "SEGMENTS",
    "Lists",
    "append_crowded",
    "append_exact",
    "append_inexact",
    "close_ranks",
    "look_up_bucket",
    "settle_counts",
]

LANES_SHIFT = 1
_LANES = 1 << LANES_SHIFT
"""Lanes that share the look-ups of one k-mer in one orientation."""
_CROWDED = 64
"""A bucket with more rows is left to whole warps, in pieces of _PIECE rows."""
_PIECE = 1024
_NEST = 64
_BLOCK_NEST = _NEST * WARPS
"""Hits that a warp, and a block, keep in shared memory before they are appended."""
SEGMENTS = 64
"""Parts of a list; blocks take them in turn, so that no single counter is everybody's bottleneck."""
CLOSING_BLOCKS = 32 * SEGMENTS
KEPT = 2 * SEGMENTS
"""Place of the cursor of what `close_ranks` keeps; dropped k-mers and their hits are counted behind it."""
_SINGLE, _SIDE_BY_SIDE, _SCATTERED = 0, 1, 2
"""How a lane's exact matches lie: one, at a known position; rows in a run; rows to be compared one by one."""


@scalar
def _all_bases(kmers, query):
    for w in range((int64(kmers.lengths[query]) + int64(31)) >> int64(5)):
        if oriented_marks(kmers, query, int64(0), int64(w)) != uint64(0):
            return False
    return True


@scalar
def _matches(index, kmers, query, strand, position, length):
    """Whether a candidate of a k-mer that is longer than what its row decides is a match."""
    if not inside_segment(index.segments, position, length):
        return False
    for w in range((length + int64(31)) >> int64(5)):
        text = fetch_word(index.text, position + int64(32) * int64(w))
        differ = mismatch_bits(text, oriented_word(kmers, query, strand, int64(w)))
        if differ & prefix_mask(length - int64(32) * int64(w)):
            return False
    return True


@bounded_kernel(40)
def append_exact(index, kmers, max_hits, store, cursor, counts, hits):
    """Exact matches of a k-mer in one orientation: thread 2·q + s; the two of a k-mer are lanes side by side.

    A block reserves room for its hits by one addition to ``cursor[0]``, which counts all hits, those that found no
    room too. The lanes of a warp write its hits in turn, each finding by binary search whose hit it is (shared
    memory, 10 bytes a thread), so a k-mer with many hits keeps all lanes busy, in whole sectors. ``counts[q]`` is
    the number of a k-mer's hits, 0 where it was dropped; ``cursor[1]`` and ``cursor[2]`` are dropped k-mers and hits.
    """
    places = cuda.shared.array(BLOCK, uint32)
    rows = cuda.shared.array(BLOCK, uint32)
    kinds = cuda.shared.array(BLOCK, uint8)
    warp_totals = cuda.shared.array(WARPS, uint64)
    t = int64(cuda.grid(1))
    me = int64(cuda.threadIdx.x)
    query = t >> int64(1)
    strand = t & int64(1)
    there = query < int64(kmers.lengths.shape[0])
    count = int64(0)
    row = int64(0)
    length = int64(0)
    if there and _all_bases(kmers, query):
        length = int64(kmers.lengths[query])
        low, high = exact_rows(index, oriented_word(kmers, query, strand, int64(0)), length)
        row = low
        count = high - low
        if length > decided_bases(index):
            count = int64(0)
            for candidate in range(low, high):
                if _matches(index, kmers, query, strand, position_of(index, candidate), length):
                    count += int64(1)
    total = count + int64(cuda.shfl_xor_sync(0xFFFFFFFF, int32(count), 1))
    if total > max_hits:
        if strand == int64(0):
            cuda.atomic.add(cursor, 1, uint64(1))
            cuda.atomic.add(cursor, 2, uint64(total))
        count = int64(0)
        total = int64(0)
    if there and strand == int64(0):
        counts[query] = uint32(total)
    place, warp_total = warp_places(count)
    places[me] = uint32(place)
    kinds[me] = uint8(_SIDE_BY_SIDE if length <= decided_bases(index) else _SCATTERED)
    rows[me] = uint32(row)
    if count == int64(1) and length <= decided_bases(index):
        rows[me] = uint32(position_of(index, row))
        kinds[me] = uint8(_SINGLE)
    begin = reserve(warp_totals, warp_total, cursor, 0)
    if not store or begin + warp_total > int64(hits.shape[0]):
        return
    first_lane = me - (me & int64(31))
    for i in range(me & int64(31), warp_total, 32):
        owner = lane_of(places, first_lane, int64(i))
        if kinds[owner] != uint8(_SCATTERED):
            position = int64(rows[owner])
            if kinds[owner] == uint8(_SIDE_BY_SIDE):
                position = position_of(index, position + int64(i) - int64(places[owner]))
            of_query = (t - me + owner) >> int64(1)
            hits[begin + int64(i)] = keyed_hit(of_query, position, owner & int64(1), int64(0))
    if kinds[me] == uint8(_SCATTERED):
        while count > int64(0):
            position = position_of(index, row)
            if _matches(index, kmers, query, strand, position, length):
                hits[begin + place] = keyed_hit(query, position, strand, int64(0))
                place += int64(1)
                count -= int64(1)
            row += int64(1)


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
    """uint32[n], hits of each k-mer"""


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


@scalar
def _flush(lists, nest, filled, least):
    """Move a warp's hits from shared memory to the list, if there are `least`, by one addition; all lanes take part."""
    me = int64(cuda.threadIdx.x)
    warp = me >> int64(5)
    lane = me & int64(31)
    cuda.syncwarp()
    count = min(int64(filled[warp]), int64(_NEST))
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
            lists.hits[segment * room + begin + int64(i)] = nest[warp * int64(_NEST) + int64(i)]
    cuda.syncwarp()
    if lane == int64(0):
        filled[warp] = uint32(0)
    cuda.syncwarp()


@scalar
def _distance_at(index, kmers, scheme, query, strand, first_word, pattern, position):
    """Distance of a k-mer to the text at a position that a pattern led to; -1 as for `accept_word`."""
    window = int64(scheme.pattern_window[pattern])
    if not one_word_each(kmers):
        return accept_words(index, kmers, scheme, query, strand, position, window)
    length = int64(kmers.lengths[query])
    differ = mismatch_bits(fetch_word(index.text, position), first_word)
    differ = (differ | oriented_marks(kmers, query, strand, int64(0))) & prefix_mask(length)
    return accept_word(index, scheme, length, position, window, differ)


@scalar
def _try_row(index, kmers, scheme, max_hits, lists, nest, filled, owner, first_word, pattern, tag, mask, row):
    """Decide on one row of a bucket by its tag and, where that does not hold the whole k-mer, by the text."""
    query = owner >> int64(1)
    strand = owner & int64(1)
    tagged = index.rows[row]
    distance = popcount(mismatch_bits((tagged >> uint64(32)) & mask, tag))
    distance += popcount(mismatch_bits(scheme.patterns[pattern], uint64(0)))
    unmarked = all_known(kmers)
    if distance > int64(scheme.max_mismatches) and unmarked:
        return
    offset = int64(scheme.pattern_offset[pattern])
    position = int64(tagged & uint64(0xFFFFFFFF)) - offset
    if position < int64(0) or position >= int64(index.rows.shape[0]):
        return
    length = int64(kmers.lengths[query])
    table_length = int64(index.table_length)
    whole = (
        offset == int64(0)
        and scheme.length[length, 0] == table_length
        and int64(scheme.pattern_length[pattern]) == table_length
        and length <= decided_bases(index)
    )
    if whole and unmarked:
        if not inside_segment(index.segments, position, length):
            return
    else:
        distance = _distance_at(index, kmers, scheme, query, strand, first_word, pattern, position)
        if distance < int64(0):
            return
    known = int64(lists.counts[query])
    cuda.atomic.add(lists.counts, query, uint32(1))
    if known > max_hits:
        return
    warp = int64(cuda.threadIdx.x) >> int64(5)
    hit = keyed_hit(query, position, strand, distance)
    slot = int64(cuda.atomic.add(filled, warp, uint32(1)))
    if slot < int64(_NEST):
        nest[warp * int64(_NEST) + slot] = hit
    else:
        _append(lists, hit)


@scalar
def _set_aside(lists, owner, pattern, low, high):
    """Leave a crowded bucket to whole warps, in pieces."""
    segment = int64(cuda.blockIdx.x) & int64(SEGMENTS - 1)
    room = int64(lists.crowded.shape[0]) // int64(SEGMENTS)
    for first in range(low, high, _PIECE):
        slot = int64(cuda.atomic.add(lists.cursors, int64(SEGMENTS) + segment, uint64(1)))
        if slot < room:
            entry = segment * room + slot
            lists.crowded[entry, 0] = uint32(owner)
            lists.crowded[entry, 1] = uint32(pattern)
            lists.crowded[entry, 2] = uint32(first)
            lists.crowded[entry, 3] = uint32(min(int64(first) + int64(_PIECE), high))


@kernel
def append_inexact(index, kmers, scheme, max_hits, lists, rounds):
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
    nest = cuda.shared.array(_BLOCK_NEST, uint64)
    filled = cuda.shared.array(WARPS, uint32)
    t = int64(cuda.grid(1))
    me = int64(cuda.threadIdx.x)
    if me & int64(31) == int64(0):
        filled[me >> int64(5)] = uint32(0)
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
                    _set_aside(lists, owner, pattern, low, high)
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
                _try_row(
                    index, kmers, scheme, max_hits, lists, nest, filled, (t - me + lane) >> int64(LANES_SHIFT),
                    words[lane], int64(patterns[lane]), uint64(tags[lane]), uint64(masks[lane]),
                    int64(lows[lane]) + int64(i) - int64(places[lane]),
                )  # fmt: skip
            _flush(lists, nest, filled, int64(32))
        pattern += int64(_LANES)
    _flush(lists, nest, filled, int64(1))


@kernel
def append_crowded(index, kmers, scheme, max_hits, lists):
    """The rows of the buckets set aside: a warp takes pieces of a part of the list in turn, a lane every 32nd row."""
    nest = cuda.shared.array(_BLOCK_NEST, uint64)
    filled = cuda.shared.array(WARPS, uint32)
    t = int64(cuda.grid(1))
    if t & int64(31) == int64(0):
        filled[int64(cuda.threadIdx.x) >> int64(5)] = uint32(0)
    cuda.syncwarp()
    warp = t >> int64(5)
    warps = int64(cuda.gridsize(1)) >> int64(5)
    segment = warp & int64(SEGMENTS - 1)
    room = int64(lists.crowded.shape[0]) // int64(SEGMENTS)
    used = min(int64(lists.cursors[int64(SEGMENTS) + segment]), room)
    for i in range(warp // int64(SEGMENTS), used, warps // int64(SEGMENTS)):
        entry = segment * room + int64(i)
        owner = int64(lists.crowded[entry, 0])
        query = owner >> int64(1)
        strand = owner & int64(1)
        pattern = int64(lists.crowded[entry, 1])
        offset = int64(scheme.pattern_offset[pattern])
        first_word = oriented_word(kmers, query, strand, int64(0))
        bases = _oriented_bases(kmers, query, strand, first_word, offset)
        tag, mask = _tag_of(index, int64(kmers.lengths[query]), offset, bases)
        first = int64(lists.crowded[entry, 2]) + (t & int64(31))
        for row in range(first, int64(lists.crowded[entry, 3]), 32):
            _try_row(
                index, kmers, scheme, max_hits, lists, nest, filled, owner, first_word, pattern, tag, mask, int64(row)
            )
        _flush(lists, nest, filled, int64(32))
    _flush(lists, nest, filled, int64(1))


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
        cuda.atomic.add(lists.cursors, KEPT + 2, uint64(lists.counts[query]))
        lists.counts[query] = uint32(0)

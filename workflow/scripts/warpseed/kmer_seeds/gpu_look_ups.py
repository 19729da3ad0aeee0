"""The fast tier's search with mismatches on the GPU: what its threads share, and how the rows of a bucket are tried.

It looks up the neighbours of a k-mer's windows, and deals the rows of a warp's buckets out to the warp's lanes. Hits go
to lists by one addition for many of them; their order is settled by a sort afterwards. `gpu_inexact.py` and
`gpu_crowded.py` have the kernels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.appended import SEGMENTS
from warpseed.compute.bits import fetch_word, mismatch_bits, prefix_mask
from warpseed.compute.compiled import int32, int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda
from warpseed.compute.intrinsics import popcount
from warpseed.compute.warp import ALL_LANES, BLOCK, WARPS, lane_of, warp_places
from warpseed.fm_index.tagged import (
    MOST_TABLE_LENGTH,
    TaggedIndex,
    is_inside,
    row_is_inside,
    row_position,
    strand_place,
    table_row,
    tag_mask,
)
from warpseed.kmer_seeds.fast import Neighbours, Scheme, word_distance, words_distance
from warpseed.kmer_seeds.gpu_ways import (
    is_framed,
    is_whole,
    offset_of,
    spare_of,
    spent_of,
    window_of,
)
from warpseed.kmer_seeds.kmers import keyed_hit
from warpseed.sequences.packed import (
    Packed,
    all_known,
    one_word_each,
    oriented_marks,
    oriented_word,
)

__all__ = [
    "InexactSearch",
    "Lists",
    "LookUp",
    "before_of",
    "change_of",
    "flush",
    "is_dropped",
    "look_up_bucket",
    "look_up_of",
    "may_match",
    "new_shared",
    "oriented_bases",
    "strings_of",
    "strings_within",
    "tag_of",
    "try_row",
    "try_rows",
    "window_look_up",
]

_NEST = 64
_BLOCK_NEST = _NEST * WARPS
"""Hits that a warp, and a block, keep in shared memory before they are appended."""


@scalar
def oriented_bases(kmers, query, strand, first_word, offset):
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


_UNSEEN, _FROM = 32, 40
"""Bits of a string below those of the table's strings that are behind its own bases, and below those of the k-mer that
are before it, two for each base; what changes the string is at the bottom."""


def strings_of(scheme: Scheme) -> np.ndarray:
    """What is looked up for every pattern of a scheme, each as one word: uint64[patterns]."""
    unseen = (2 * (scheme.table_length - scheme.pattern_length.astype(np.int64))).astype(np.uint64)
    before = 2 * scheme.pattern_offset.astype(np.uint64)
    return scheme.patterns << unseen | unseen << np.uint64(_UNSEEN) | before << np.uint64(_FROM)


@scalar
def look_up_bucket(search, query, strand, first_word, pattern):
    """One look-up of a k-mer in one orientation: the rows of the pattern's bucket.

    This is what a search does most: so numbers are short, and indices not below 0 by their types.
    """
    string = search.strings[uint64(pattern)]
    before, unseen = string >> uint64(_FROM), uint32(string >> uint64(_UNSEEN)) & uint32(0xFF)
    if one_word_each(search.kmers):
        bases = first_word << before
    else:
        bases = oriented_bases(search.kmers, query, strand, first_word, int64(before >> uint64(1)))
    code = uint32(bases >> uint64(32)) >> uint32(int64(32) - int64(2) * int64(search.tagged.table_length))
    entry = uint32(((code >> unseen) << unseen) ^ uint32(string))
    behind = uint64(entry) + (uint64(1) << uint64(unseen))
    low, high = table_row(search.tagged, uint64(entry)), table_row(search.tagged, behind)
    return low, max(low, high)


class Lists(NamedTuple):
    """Where the threads of an inexact search append; each list is cut into SEGMENTS parts with a cursor each.

    Blocks take the parts in turn, so that no single counter is everybody's bottleneck. A cursor also counts what
    found no room.
    """

    cursors: np.ndarray
    """uint64[2·SEGMENTS + 2], of the hits, of the crowded buckets; hits kept, dropped k-mers"""
    hits: np.ndarray
    """uint64[…], k-mer << 35 | packed hit"""
    crowded: np.ndarray
    """uint32[…, 4], as `warpseed.compute.appended.set_aside` writes them: 2·q + s, pattern, rows"""
    counts: np.ndarray
    """uint64[n], hits of each k-mer, of one that is dropped some of them: one of a base has more than 2^32 in a large
    text"""


@scalar
def tag_of(index, length, offset, bases):
    """What a row's tag should be for a window at `offset`, and the mask of its bases that lie in the k-mer."""
    table_length = int64(index.table_length)
    mask = tag_mask(min(length - offset, int64(32)) - table_length)
    return ((bases << uint64(int64(2) * table_length)) >> uint64(32)) & mask, mask


@scalar
def _append(lists, hit):
    """Put one hit into the block's part of the list, by a global addition of its own."""
    segment = int64(cuda.blockIdx.x) & int64(SEGMENTS - 1)
    room = int64(lists.hits.shape[0]) // int64(SEGMENTS)
    slot = int64(cuda.atomic.add(lists.cursors, segment, uint64(1)))
    if slot < room:
        lists.hits[segment * room + slot] = hit


class Nest(NamedTuple):
    """A block's hits in shared memory, before they are appended."""

    hits: np.ndarray
    """uint64[_BLOCK_NEST], _NEST of each warp"""
    filled: np.ndarray
    """uint32[WARPS], how many each warp has, those without room too"""


@scalar
def flush(lists, nest, least):
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
    begin = int64(cuda.shfl_sync(ALL_LANES, begin, 0))
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
    strings: np.ndarray
    """uint64[patterns of the scheme], of `strings_of`"""
    ways: np.ndarray
    """uint32[patterns of the scheme], of `ways_of`"""
    neighbours: Neighbours
    """of a string of MOST_TABLE_LENGTH bases: those of a shorter one are the first of them, see `change_of`"""
    before: np.ndarray
    """uint32[rows], of `warpseed.fm_index.tagged.fill_bases_before`; empty where no way leads to it"""
    max_hits: int
    lists: Lists


@scalar
def strings_within(search, length, changed):
    """Strings of so many bases, at most MOST_TABLE_LENGTH, that differ from a given one in at most `changed`, int32."""
    return int32(search.neighbours.fewer[length, changed + int64(1)])


@scalar
def change_of(search, length, string):
    """How one of these strings differs, as an XOR mask; those with fewer changes come first."""
    masks, fewer = search.neighbours
    changed = int64(0)
    while string >= fewer[length, changed + int64(1)]:
        changed += int64(1)
    return masks[fewer[int64(MOST_TABLE_LENGTH), changed] + string - fewer[length, changed]]


class LookUp(NamedTuple):
    """One look-up, as its rows need it."""

    owner: int
    """2·q + s, the k-mer in one orientation"""
    first_word: int
    """uint64, the first word of the k-mer in that orientation"""
    tag: int
    """uint64, what a row's tag should be"""
    mask: int
    """uint64, the bases of the tag that lie in the k-mer"""
    way: int
    """its small numbers, of `way_of`"""


@scalar
def window_look_up(search, owner, first_word, pattern, bases):
    """The look-up of a pattern of the scheme; `bases` are 32 of the k-mer from its window on."""
    way = int64(search.ways[pattern])
    length = int64(search.kmers.lengths[owner >> int64(1)])
    tag, mask = tag_of(search.tagged, length, offset_of(way), bases)
    return LookUp(owner, first_word, tag, mask, way)


@scalar
def look_up_of(search, owner, pattern):
    """As `window_look_up`, of a k-mer in one orientation whose words are read here; with these 32 bases."""
    query, strand = owner >> int64(1), owner & int64(1)
    first_word = oriented_word(search.kmers, query, strand, int64(0))
    bases = oriented_bases(search.kmers, query, strand, first_word, int64(search.scheme.pattern_offset[pattern]))
    return window_look_up(search, owner, first_word, pattern, bases), bases


@scalar
def is_dropped(search, query):
    """Whether a k-mer has a hit too many by now. (Asked where all threads' additions are seen.)"""
    return int64(cuda.ldcg(search.lists.counts, query)) > search.max_hits


@scalar
def _distance_at(search, look_up, position):
    """Distance of a k-mer to the text at a position that a look-up led to; -1 as for `accept_word`."""
    tagged, kmers, scheme = search.tagged, search.kmers, search.scheme
    query = look_up.owner >> int64(1)
    strand = look_up.owner & int64(1)
    window = window_of(look_up.way)
    length = int64(kmers.lengths[query])
    if one_word_each(kmers):
        differ = mismatch_bits(fetch_word(tagged.text, position), look_up.first_word)
        differ = (differ | oriented_marks(kmers, query, strand, int64(0))) & prefix_mask(length)
        distance = word_distance(scheme, length, window, differ)
    else:
        distance = words_distance(tagged, kmers, scheme, query, strand, position, window)
    return distance if is_inside(tagged, position, length) else int64(-1)


@scalar
def before_of(look_up):
    """The bases of a k-mer before a look-up's window, at most BASES_BEFORE, as `InexactSearch.before` has those of a
    row, and the low bit of each: (uint32, uint32)."""
    offset = offset_of(look_up.way)
    bases = look_up.first_word >> uint64(int64(64) - int64(2) * offset)
    shown = ((uint64(1) << uint64(int64(2) * offset)) - uint64(1)) & uint64(0x55555555)
    return uint32(bases), uint32(shown)


@scalar
def _mismatches_before(before, bases, shown):
    """Bases before a row in which it is not as the k-mer, int64."""
    differ = uint32(before ^ bases)
    return popcount(uint64((differ | (differ >> uint32(1))) & shown))


@scalar
def may_match(search, look_up, before, bases, shown):
    """Whether a row with these bases before it may be a match of a look-up that `is_framed`.

    The k-mer's first window has more mismatches than it allows there, or it would have reported what this one finds.
    """
    distance = spent_of(look_up.way) + _mismatches_before(before, bases, shown)
    most = int64(search.scheme.max_mismatches)
    return most - spare_of(look_up.way) <= distance <= most


@scalar
def try_row(search, nest, look_up, row):
    """Decide on one row of a bucket by its tag, by the bases before it, and where these do not hold the whole k-mer, by
    the text."""
    index, kmers, lists = search.tagged, search.kmers, search.lists
    query = look_up.owner >> int64(1)
    most, spare = int64(search.scheme.max_mismatches), spare_of(look_up.way)
    distance, framed = spent_of(look_up.way), is_framed(look_up.way) and all_known(kmers)
    if framed:
        bases, shown = before_of(look_up)
        before = search.before[uint64(row)]
        if not may_match(search, look_up, before, bases, shown):
            return
        distance += _mismatches_before(before, bases, shown)
    tagged = index.rows[uint64(row)]
    in_tag = popcount(mismatch_bits((tagged >> uint64(32)) & look_up.mask, look_up.tag))
    distance += in_tag
    # (A base that is none is packed as one: it makes as many mismatches, or more.)
    if in_tag > spare or distance > most:
        return
    position = row_position(tagged) - offset_of(look_up.way)
    if position < int64(0):
        return
    if is_whole(look_up.way) and all_known(kmers):
        if not row_is_inside(index, tagged, int64(kmers.lengths[query])):
            return
    elif framed:
        if not is_inside(index, position, int64(kmers.lengths[query])):
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
    position, strand = strand_place(index, position, look_up.owner & int64(1), int64(kmers.lengths[query]))
    hit = keyed_hit(query, position, strand, distance)
    slot = int64(cuda.atomic.add(nest.filled, warp, uint32(1)))
    if slot < int64(_NEST):
        nest.hits[warp * int64(_NEST) + slot] = hit
    else:
        _append(lists, hit)


class Dealt(NamedTuple):
    """The look-ups of a block's threads in shared memory, and where the rows of each begin among its warp's."""

    places: np.ndarray
    owners: np.ndarray
    ways: np.ndarray
    tags: np.ndarray
    masks: np.ndarray
    """uint32[BLOCK] each"""
    lows: np.ndarray
    words: np.ndarray
    """uint64[BLOCK] each"""


@scalar
def new_shared():
    """Shared memory of a block of an inexact search: 53 bytes a thread, its hits included."""
    places, lows = cuda.shared.array(BLOCK, uint32), cuda.shared.array(BLOCK, uint64)
    look_ups = cuda.shared.array(BLOCK, uint32), cuda.shared.array(BLOCK, uint32)
    tags = cuda.shared.array(BLOCK, uint32), cuda.shared.array(BLOCK, uint32)
    nest = Nest(cuda.shared.array(_BLOCK_NEST, uint64), cuda.shared.array(WARPS, uint32))
    me = int64(cuda.threadIdx.x)
    if me & int64(31) == int64(0):
        nest.filled[me >> int64(5)] = uint32(0)
    cuda.syncwarp()
    words = cuda.shared.array(BLOCK, uint64)
    return Dealt(places, look_ups[0], look_ups[1], tags[0], tags[1], lows, words), nest


@scalar
def try_rows(search, nest, dealt, look_up, rows):
    """The rows [low, high) of every lane's look-up, dealt out to the lanes of its warp one by one; all take part."""
    low, high = rows
    if not cuda.any_sync(ALL_LANES, low < high):
        return
    me = int64(cuda.threadIdx.x)
    place, total = warp_places(high - low)
    dealt.places[me] = uint32(place)
    dealt.lows[me] = uint64(low)
    dealt.owners[me] = uint32(look_up.owner)
    dealt.ways[me] = uint32(look_up.way)
    dealt.tags[me] = uint32(look_up.tag)
    dealt.masks[me] = uint32(look_up.mask)
    dealt.words[me] = look_up.first_word
    cuda.syncwarp()
    for i in range(me & int64(31), total, 32):
        lane = lane_of(dealt.places, me - (me & int64(31)), int64(i))
        of_lane = LookUp(
            int64(dealt.owners[lane]), dealt.words[lane], uint64(dealt.tags[lane]), uint64(dealt.masks[lane]),
            int64(dealt.ways[lane]),
        )  # fmt: skip
        try_row(search, nest, of_lane, int64(dealt.lows[lane]) + int64(i) - int64(dealt.places[lane]))
    flush(search.lists, nest, int64(32))

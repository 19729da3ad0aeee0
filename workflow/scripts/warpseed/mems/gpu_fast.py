"""Kernels of the fast tier: a warp looks up 32 seeds of a read in one orientation, a lane each; the rows that they have
are dealt out to its lanes, and each compares the read with one place of the text.

Matches go to a list in any order. Of those that are not all wanted, it is noted beside the read's bases how far they
reach; when all are there, each is held to that (`warpseed.mems.matches` says which are kept).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.appended import SEGMENTS, run_at, runs_of_warp, set_aside
from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import int32, int64, scalar, uint32, uint64
from warpseed.compute.gpu import bounded_kernel, cuda, kernel
from warpseed.compute.searching import owner_of
from warpseed.compute.warp import ALL_LANES, BLOCK, WARPS, lane_of, reserve, warp_places
from warpseed.fm_index.tagged import TaggedIndex, bucket_rows, exact_tag_range, position_of
from warpseed.mems.fast import NO_MATCH, How, key_of, match_of
from warpseed.mems.matches import MAXIMAL, PAPER, PLACE_BITS, SUPER, pack_place, pack_span, place_of, span_of
from warpseed.sequences.packed import Packed, first_word, one_word_each, oriented_marks, oriented_word

__all__ = [
    "CROWDED",
    "KEEPING_BLOCKS",
    "RUN",
    "SEEDS_A_WARP",
    "AppendedMatches",
    "MatchSearch",
    "OrientedReads",
    "Tile",
    "append_crowded_matches",
    "append_match",
    "append_matches",
    "bound_ends",
    "end_of",
    "keep_matches",
    "orient_words",
    "look_up",
    "packed_match",
    "tile_at",
]

SEEDS_A_WARP = 32
KEEPING_BLOCKS = 32 * SEGMENTS
CROWDED = 64
"""A seed, or a base, with more rows is left to whole warps, in runs of RUN rows."""
RUN = 256
_MANY_ROWS = 8
"""Rows of a seed from which on the bases behind it are looked at, too."""
_ENDS_A_THREAD = 8


class OrientedReads(NamedTuple):
    """The words of reads as they are, behind a word of zeros, and behind these those of the reverse complements."""

    words: np.ndarray
    """uint64[strands·total + 2]"""
    marks: np.ndarray
    """uint64[strands·total + 2] beside them; uint64[0] where every base is known"""


class AppendedMatches(NamedTuple):
    """A list of matches in any order, which is cut into SEGMENTS parts."""

    cursors: np.ndarray
    """uint64[2·SEGMENTS + 1], matches of each part, those that found no room too; behind them the runs set aside, and
    at the end the matches that `keep_matches` keeps"""
    keys: np.ndarray
    """uint64[room], the query above PLACE_BITS, below it a match's place"""
    spans: np.ndarray
    """uint64[room], its span"""


class MatchSearch(NamedTuple):
    """What all threads of a search share."""

    tagged: TaggedIndex
    reads: Packed
    oriented: OrientedReads
    how: How
    first_tile: np.ndarray
    """int64[n + 1], where each read's tiles begin: the seeds of an orientation are cut into tiles of SEEDS_A_WARP;
    int64[1] where matches are found by the longest one from every base on, which has none"""
    ends: np.ndarray
    """uint32[2·32·total], a strand each: where the longest match from a base on ends, of super matches all in the first
    half, by place in the read as it is written; then what `bound_ends` makes of it. uint32[0] where all matches are
    wanted"""
    lists: AppendedMatches
    crowded: np.ndarray
    """uint32[…, 4], tile and seed of it, or oriented word and base of it; first row, row behind the last"""
    noting: bool
    """whether ends are noted: not where they have been, and `bound_ends` has changed them"""
    begin: int
    """matches are kept that begin in the text from here on"""
    end: int
    """and before here"""


class Tile(NamedTuple):
    """Seeds, or bases, of a read in one orientation."""

    query: int
    strand: int
    seed: int
    """where the first of them begins"""
    origin: int
    """its orientation's first base among the oriented words"""
    length: int
    """bases of the read"""


@kernel
def orient_words(reads, strands, oriented):
    """The words of reads in both orientations, or in one with `strands` = 1: a thread a word."""
    w = int64(cuda.grid(1))
    total = int64(reads.words.shape[0])
    if w >= total:
        return
    query = w if one_word_each(reads) else owner_of(reads.first, w)
    word = w - first_word(reads, query)
    for strand in range(strands):
        to = int64(1) + w + int64(strand) * total
        oriented.words[to] = oriented_word(reads, query, int64(strand), word)
        if oriented.marks.shape[0]:
            oriented.marks[to] = oriented_marks(reads, query, int64(strand), word)


@scalar
def tile_at(search, tile):
    """The tile with this number: those of a read lie behind each other, the reverse complement's last."""
    how, reads = search.how, search.reads
    query = owner_of(search.first_tile, tile)
    number = tile - search.first_tile[query]
    each = (search.first_tile[query + int64(1)] - search.first_tile[query]) >> (int64(how.strands) - int64(1))
    strand = int64(number >= each)
    seed = (number - strand * each) * int64(SEEDS_A_WARP) * int64(how.step)
    origin = (int64(1) + first_word(reads, query) + strand * int64(reads.words.shape[0])) * int64(32)
    return Tile(query, strand, seed, origin, int64(reads.lengths[query]))


@scalar
def look_up(search, tile, seed):
    """The rows of a seed that can have a match."""
    how, words, marks = search.how, search.oriented.words, search.oriented.marks
    nothing = int64(0), int64(0)
    # Every match that a seed is the first of holds so many bases from its begin on.
    held = int64(how.min_length) - int64(how.step) + int64(1)
    if seed + held > tile.length:
        return nothing
    held = min(held, int64(32))
    if marks.shape[0] and fetch_word(marks, tile.origin + seed) & prefix_mask(held) != uint64(0):
        return nothing
    word = fetch_word(words, tile.origin + seed)
    low, high = bucket_rows(search.tagged, word, int64(how.seed_length), uint64(0))
    if high - low > int64(_MANY_ROWS):
        return exact_tag_range(search.tagged, low, high, word, held - int64(how.table_length), high)
    return low, high


@scalar
def end_of(search, tile, first, bases):
    """(where the end of a match of the bases from `first` on of a tile's oriented read is noted, the end), int64."""
    strand, place = key_of(search.how, tile.strand, first, bases, tile.length)
    total = int64(search.reads.words.shape[0])
    return (strand * total + first_word(search.reads, tile.query)) * int64(32) + place, place + bases


@scalar
def _match_at(search, tile, seed, row):
    """The match that a row of a seed leads to, as (key, span, whether there is one); its end is noted."""
    how, tagged, oriented = search.how, search.tagged, search.oriented
    place = position_of(tagged, row)
    where = tagged.text, tagged.segments, int64(tagged.rows.shape[0])
    read = oriented.words, oriented.marks, tile.origin, tile.length
    left, bases = match_of(where, how, read, seed, int64(how.step), place)
    if bases == int64(NO_MATCH):
        return uint64(0), uint64(0), False
    first = seed - left
    if how.kind != MAXIMAL and search.noting:
        at, end = end_of(search, tile, first, bases)
        cuda.atomic.max(search.ends, at, uint32(end))
    return packed_match(search, tile, place - left, first, bases)


@scalar
def packed_match(search, tile, place, first, bases):
    """(key, span, whether it begins where matches are kept): a match of the bases from `first` on of a tile's oriented
    read, at a text position."""
    if place < int64(search.begin) or place >= int64(search.end):
        return uint64(0), uint64(0), False
    begin = tile.length - first - bases if tile.strand else first
    key = (uint64(tile.query) << uint64(PLACE_BITS)) | pack_place(place, tile.strand)
    return key, pack_span(bases, begin), True


@scalar
def _try_row(search, tile, seed, row, there):
    """Compare a read with the text where a row of a seed says, and keep the match; all lanes of a warp take part, each
    with a row of its own where it is `there`."""
    key, span, found = uint64(0), uint64(0), False
    if there:
        key, span, found = _match_at(search, tile, seed, row)
    append_match(search, key, span, found)


@scalar
def append_match(search, key, span, found):
    """Append a lane's match where it has one; all lanes of a warp take part."""
    place, total = warp_places(int64(found))
    if total == int64(0):
        return
    lists = search.lists
    segment = int64(cuda.blockIdx.x) & int64(SEGMENTS - 1)
    begin = int64(0)
    if int64(cuda.threadIdx.x) & int64(31) == int64(0):
        begin = int64(cuda.atomic.add(lists.cursors, segment, uint64(total)))
    begin = int64(cuda.shfl_sync(ALL_LANES, begin, 0))
    room = int64(lists.keys.shape[0]) // int64(SEGMENTS)
    if found and begin + place < room:
        lists.keys[segment * room + begin + place] = key
        lists.spans[segment * room + begin + place] = span


@bounded_kernel(64)
def append_matches(search):
    """Matches of the seeds of all tiles, a warp a tile; there may be more warps. (Shared memory: 8 bytes a thread.)"""
    places, lows = cuda.shared.array(BLOCK, uint32), cuda.shared.array(BLOCK, uint32)
    number = int64(cuda.grid(1)) >> int64(5)
    if number >= search.first_tile[search.first_tile.shape[0] - 1]:
        return
    me = int64(cuda.threadIdx.x)
    lane, step = me & int64(31), int64(search.how.step)
    tile = tile_at(search, number)
    low, high = look_up(search, tile, tile.seed + lane * step)
    if high - low > int64(CROWDED):
        set_aside(search.lists.cursors, search.crowded, (number, lane), (low, high), int64(RUN))
        high = low
    place, total = warp_places(high - low)
    places[me], lows[me] = uint32(place), uint32(low)
    cuda.syncwarp()
    for begin in range(0, total, 32):
        item = min(int64(begin) + lane, total - int64(1))
        owner = lane_of(places, me - lane, item)
        row = int64(lows[owner]) + item - int64(places[owner])
        _try_row(search, tile, tile.seed + (owner - me + lane) * step, row, int64(begin) + lane < total)


@kernel
def append_crowded_matches(search):
    """The rows of the seeds set aside: a warp takes runs of a part of the list in turn, a lane every 32nd row."""
    lane = int64(cuda.threadIdx.x) & int64(31)
    start, end, step = runs_of_warp(search.lists.cursors, search.crowded)
    for entry in range(start, end, step):
        number, seed, first, last = run_at(search.crowded, entry)
        tile = tile_at(search, number)
        for row in range(first, last, 32):
            at = tile.seed + seed * int64(search.how.step)
            _try_row(search, tile, at, int64(row) + lane, int64(row) + lane < last)


@scalar
def _largest_before(warp_largest, mine, carried):
    """(largest number of the threads before this one, largest of the block), and `carried`; all threads take part."""
    me = int64(cuda.threadIdx.x)
    lane, warp = me & int64(31), me >> int64(5)
    largest = int32(mine)
    for step in (1, 2, 4, 8, 16):
        before = cuda.shfl_up_sync(ALL_LANES, largest, step)
        if lane >= int64(step):
            largest = max(largest, before)
    if lane == int64(31):
        warp_largest[warp] = largest
    before = cuda.shfl_up_sync(ALL_LANES, largest, 1)
    here = max(carried, before) if lane > int64(0) else carried
    cuda.syncthreads()
    whole = carried
    for other in range(WARPS):
        if int64(other) < warp:
            here = max(here, warp_largest[other])
        whole = max(whole, warp_largest[other])
    cuda.syncthreads()
    return here, whole


@kernel
def bound_ends(reads, kind, ends):
    """From where matches end to what the end of one that is wanted is (super; 0 where none begins), or is more than
    (paper), for each strand: by the greatest end of those from bases before it. A block a read, and strand for the
    paper's."""
    warp_largest = cuda.shared.array(WARPS, int32)
    number = int64(cuda.blockIdx.x)
    strands = int64(2) if kind == PAPER else int64(1)
    query = number // strands
    base = (number % strands * int64(reads.words.shape[0]) + first_word(reads, query)) * int64(32)
    length = int64(reads.lengths[query])
    carried = int32(0)
    for begin in range(0, length, BLOCK * _ENDS_A_THREAD):
        first = int64(begin) + int64(cuda.threadIdx.x) * int64(_ENDS_A_THREAD)
        last = min(first + int64(_ENDS_A_THREAD), length)
        mine = int32(0)
        for i in range(first, last):
            mine = max(mine, int32(ends[base + int64(i)]))
        longest, carried = _largest_before(warp_largest, mine, carried)
        for i in range(first, last):
            end = int32(ends[base + int64(i)])
            if kind == PAPER:
                ends[base + int64(i)] = uint32(longest)
            elif end <= longest:
                ends[base + int64(i)] = uint32(0)
            else:
                opposite = base + int64(32) * int64(reads.words.shape[0])
                ends[opposite + length - int64(end)] = uint32(length - int64(i))
            longest = max(longest, end)


@scalar
def _is_wanted(reads, kind, ends, key, span):
    """Whether a match is kept, `ends` being what `bound_ends` made of them."""
    if kind == MAXIMAL:
        return True
    query = int64(key >> uint64(PLACE_BITS))
    _, strand = place_of(key)
    bases, begin = span_of(span)
    base = first_word(reads, query) * int64(32)
    if kind == SUPER:
        return begin + bases == int64(ends[base + begin])
    if strand:
        begin = int64(reads.lengths[query]) - begin - bases
    return begin + bases > int64(ends[base + strand * int64(32) * int64(reads.words.shape[0]) + begin])


@kernel
def keep_matches(lists, reads, kind, ends, cursor, keys, spans, counts):
    """The matches of a list that are wanted, without gaps, still in any order; KEEPING_BLOCKS blocks share the parts.

    ``cursor[0]`` (uint64) counts them, and ``counts``, uint64[n], those of each read; both begin with zeros. (CuPy's
    way of counting takes memory for each read in each of a thousand blocks.)
    """
    totals = cuda.shared.array(WARPS, uint64)
    block, me = int64(cuda.blockIdx.x), int64(cuda.threadIdx.x)
    segment = block & int64(SEGMENTS - 1)
    room = int64(lists.keys.shape[0]) // int64(SEGMENTS)
    used = min(int64(lists.cursors[segment]), room)
    for begin in range(block // int64(SEGMENTS) * int64(BLOCK), used, KEEPING_BLOCKS // SEGMENTS * BLOCK):
        wanted = int64(begin) + me < used
        key, span = uint64(0), uint64(0)
        if wanted:
            at = segment * room + int64(begin) + me
            key, span = lists.keys[at], lists.spans[at]
            wanted = _is_wanted(reads, kind, ends, key, span)
        place, total = warp_places(int64(wanted))
        to = reserve(totals, total, cursor, 0) + place
        if wanted:
            keys[to], spans[to] = key, span
            cuda.atomic.add(counts, int64(key >> uint64(PLACE_BITS)), uint64(1))

"""Kernels that find the longest match from every base of a read on, in one orientation, a lane a base at a time: first
where it ends; then, when it is known from which bases those begin that are wanted, their rows, which the lanes of a
warp share."""

from __future__ import annotations

from warpseed.compute.appended import run_at, runs_of_warp, set_aside
from warpseed.compute.bits import fetch_word
from warpseed.compute.compiled import inlined, int64, scalar, uint16, uint32, uint64
from warpseed.compute.gpu import bounded_kernel, cuda, kernel
from warpseed.compute.intrinsics import leading_zeros
from warpseed.compute.searching import owner_of
from warpseed.compute.warp import BLOCK, lane_of, warp_places
from warpseed.fm_index.tagged import (
    TAG_BASES,
    decided_bases,
    exact_rows,
    is_whole_row,
    lower_tag,
    position_of,
    tag_at,
    tag_mask,
    tag_of,
    tags_from,
)
from warpseed.mems.gpu_fast import CROWDED, RUN, Tile, append_match, end_of, look_up, packed_match, tile_at
from warpseed.mems.longest import known_from, longest_finder
from warpseed.mems.matches import PAPER, SUPER
from warpseed.sequences.packed import first_word, one_word_each

__all__ = ["WORDS_A_WARP", "append_crowded_longest", "append_longest", "note_longest", "sample_seeds"]

WORDS_A_WARP = 16
"""Words of oriented reads of which a warp lists the bases that wanted matches begin at, which may be few."""
_LISTED = BLOCK * WORDS_A_WARP
_MOST_SAMPLED = 512


@inlined
def _rows_in(index):
    return int64(index.rows.shape[0])


@inlined
def _table_at(index, entry):
    """The first row of an entry, int64: rows of one strand are fewer than 2^32."""
    return int64(index.table[entry])


_finder = longest_finder(position_of, _rows_in, _table_at)
_rows_between, _search_between, _settled = _finder.rows_between, _finder.search_between, _finder.settled
_rows_around, _agreed_at = _finder.rows_around, _finder.agreed_at


@scalar
def _query_of(search, number):
    """The read of an oriented word of the batch."""
    reads = search.reads
    total = int64(reads.words.shape[0])
    word = number - total if number >= total else number
    return word if one_word_each(reads) else owner_of(reads.first, word)


@scalar
def _query_after(search, number, query):
    """`_query_of` an oriented word, by that of the word before it, or -1: a look, where that takes a search."""
    reads = search.reads
    total = int64(reads.words.shape[0])
    if query < int64(0) or number == total or one_word_each(reads):
        return _query_of(search, number)
    word = number - total if number > total else number
    while word >= int64(reads.first[query + int64(1)]):
        query += int64(1)
    return query


@scalar
def _words_of_warp(search):
    """The oriented words that a warp has, WORDS_A_WARP or none: (first, behind the last), int64."""
    first = (int64(cuda.grid(1)) >> int64(5)) * int64(WORDS_A_WARP)
    words = int64(search.how.strands) * int64(search.reads.words.shape[0])
    return first, min(first + int64(WORDS_A_WARP), words)


@scalar
def _word_at(search, number, query):
    """The bases of an oriented word of the batch, which is one of a read's: `seed` is the first of them."""
    reads = search.reads
    total = int64(reads.words.shape[0])
    strand = int64(number >= total)
    word = number - strand * total
    first = first_word(reads, query)
    origin = (int64(1) + first + strand * total) * int64(32)
    return Tile(query, strand, (word - first) * int64(32), origin, int64(reads.lengths[query]))


@inlined
def _read_of(search, tile):
    """The read of a tile, as `warpseed.mems.longest` takes it."""
    return search.oriented.words, search.oriented.marks, tile.origin, tile.length


@inlined
def _tag_from(tagged, read, begin):
    """(the bases that a tag is compared with, in the upper bits of 32, the mask of all of them): uint64."""
    mask = tag_mask(int64(TAG_BASES))
    return tag_of(tagged, fetch_word(read[0], read[2] + begin), mask), mask


@scalar
def _agreed_in_entry(tagged, read, begin, row):
    """`_agreed_at` all of the read from `begin` on, of a row of the table's entry of its bases there: the row's tag
    says it, but where that has the same bases, or its segment ends in it."""
    tag, mask = _tag_from(tagged, read, begin)
    differ = tag_at(tagged.rows, row, mask) ^ tag
    if differ == uint64(0) or not is_whole_row(tagged.rows[uint64(row)]):
        return _agreed_at(tagged, read, begin, row, read[3] - begin)
    agreed = int64(tagged.table_length) + ((leading_zeros(differ) - int64(32)) >> int64(1))
    return min(agreed, known_from(read, begin))


@scalar
def _narrowed(tagged, read, begin, first, last):
    """Of the rows of the table's entry of the bases from `begin` on: (first, behind the last) of those that have the
    same tag, among which the read would stand, and the most bases that the rows beside these share with it, int64."""
    tag, mask = _tag_from(tagged, read, begin)
    low = lower_tag(tagged.rows, first, last, tag, mask)
    low, high = tags_from(tagged.rows, low, last, tag, mask, last)
    best = int64(0)
    if low > first:
        best = _agreed_in_entry(tagged, read, begin, low - int64(1))
    if high < last:
        best = max(best, _agreed_in_entry(tagged, read, begin, high))
    return low, high, best


@scalar
def _longest_at(search, tile, begin):
    """(row that a tile's read from a base on would stand before, bases of the longest match from there on, 0 where that
    has less than are wanted), int64; nothing behind the read's end."""
    if begin >= tile.length:
        return int64(0), int64(0)
    tagged, read, least = search.tagged, _read_of(search, tile), int64(search.how.min_length)
    first, last, shared = _rows_between(tagged, int64(tagged.table_length), read, begin, least)
    best = int64(0)
    # (With fewer known bases, what stands behind them would be compared.)
    if first < last and known_from(read, begin) >= decided_bases(tagged):
        first, last, best = _narrowed(tagged, read, begin, first, last)
    row, best = _search_between(tagged, read, begin, first, last, best)
    return row, _settled(tagged, read, begin, row, best, shared, least)


@scalar
def _may_begin(search, tile, begin):
    """Whether a match that is wanted may begin at a base of a tile's read, when ends are bounded."""
    if begin >= tile.length:
        return False
    total = int64(search.reads.words.shape[0])
    at = (tile.strand * total + first_word(search.reads, tile.query)) * int64(32) + begin
    if search.how.kind == PAPER:
        return begin + int64(1) == tile.length or search.ends[at + int64(1)] > search.ends[at]
    return search.ends[at] != uint32(0)


@scalar
def _wanted_from(search, tile, begin, bases):
    """Bases that a match from a base on has at least if it is wanted; none is where this is 0. `bases`: of the longest
    one."""
    if bases == int64(0):
        return int64(0)
    at, end = end_of(search, tile, begin, bases)
    bound = int64(search.ends[at])
    if search.how.kind == SUPER:
        return bases if end == bound else int64(0)
    return max(int64(search.how.min_length), bound - begin + int64(1)) if end > bound else int64(0)


@scalar
def _wanted_rows(search, tile, begin):
    """(first, behind the last) of the rows of the wanted matches from a base of a tile's read on, int64."""
    tagged, read = search.tagged, _read_of(search, tile)
    row, bases = _longest_at(search, tile, begin)
    wanted = _wanted_from(search, tile, begin, bases)
    if wanted == int64(0):
        return int64(0), int64(0)
    if wanted > decided_bases(tagged):
        return _rows_around(tagged, read, begin, row, wanted)
    return exact_rows(tagged, fetch_word(search.oriented.words, tile.origin + begin), wanted, _rows_in(tagged))


@kernel
def sample_seeds(search, every, sampled):
    """Count the seeds of every `every`-th tile, the rows that they have, and the words of the longest matches from them
    on, as far as these are looked at: in uint64[3] of zeros, a lane a seed."""
    t = int64(cuda.grid(1))
    number = (t >> int64(5)) * int64(every)
    if number >= search.first_tile[search.reads.lengths.shape[0]]:
        return
    tile, how = tile_at(search, number), search.how
    seed = tile.seed + (t & int64(31)) * int64(how.step)
    if seed + int64(how.min_length) - int64(how.step) + int64(1) <= tile.length:
        low, high = look_up(search, tile, seed)
        part = Tile(tile.query, tile.strand, tile.seed, tile.origin, min(tile.length, seed + int64(_MOST_SAMPLED)))
        _, bases = _longest_at(search, part, seed)
        cuda.atomic.add(sampled, 0, uint64(1))
        cuda.atomic.add(sampled, 1, uint64(high - low))
        cuda.atomic.add(sampled, 2, uint64(bases >> int64(5)))


@kernel
def note_longest(search):
    """Note where the longest match from every base of the reads on ends, a warp WORDS_A_WARP words."""
    lane, query = int64(cuda.threadIdx.x) & int64(31), int64(-1)
    first, last = _words_of_warp(search)
    for number in range(first, last):
        query = _query_after(search, int64(number), query)
        tile = _word_at(search, int64(number), query)
        begin = tile.seed + lane
        _, bases = _longest_at(search, tile, begin)
        if bases > int64(0):
            at, end = end_of(search, tile, begin, bases)
            cuda.atomic.max(search.ends, at, uint32(end))


@scalar
def _bases_at(search, tile, begin, row):
    """Bases of the match from a base of a tile's read on at one of its rows."""
    tagged, read = search.tagged, _read_of(search, tile)
    if int64(search.how.min_length) < int64(tagged.table_length):
        return _agreed_at(tagged, read, begin, row, tile.length - begin)
    return _agreed_in_entry(tagged, read, begin, row)


@scalar
def _try_row(search, tile, begin, row, there):
    """Keep the match from a base on that a row has; all lanes of a warp take part, each with a row of its own where it
    is `there`."""
    key, span, found = uint64(0), uint64(0), False
    if there:
        bases = _bases_at(search, tile, begin, row)
        key, span, found = packed_match(search, tile, position_of(search.tagged, row), begin, bases)
    append_match(search, key, span, found)


@scalar
def _list_bases(search, listed, at):
    """List the bases from which matches that are wanted may begin, of a warp's words: which word, and 5 bits of the
    base, into `listed`, uint16, from `at` on. All its lanes take part; returns the place behind them."""
    lane, query = int64(cuda.threadIdx.x) & int64(31), int64(-1)
    first, last = _words_of_warp(search)
    for number in range(first, last):
        query = _query_after(search, int64(number), query)
        tile = _word_at(search, int64(number), query)
        here = _may_begin(search, tile, tile.seed + lane)
        place, total = warp_places(int64(here))
        if here:
            listed[at + place] = uint16(((int64(number) - first) << int64(5)) | lane)
        at += total
    cuda.syncwarp()
    return at


@bounded_kernel(72)
def append_longest(search):
    """The wanted matches from every base of the reads on, when their ends are bounded, a warp WORDS_A_WARP words.
    (Shared memory: 44 bytes a thread.)"""
    listed = cuda.shared.array(_LISTED, uint16)
    places, lows = cuda.shared.array(BLOCK, uint32), cuda.shared.array(BLOCK, uint32)
    queries = cuda.shared.array(BLOCK, uint32)
    me = int64(cuda.threadIdx.x)
    lane, at = me & int64(31), (me >> int64(5)) * int64(32 * WORDS_A_WARP)
    first, _ = _words_of_warp(search)
    item, end = at + lane, _list_bases(search, listed, at)
    while item - lane < end:
        low, high = int64(0), int64(0)
        if item < end:
            number, base = first + (int64(listed[item]) >> int64(5)), int64(listed[item]) & int64(31)
            query = _query_of(search, number)
            queries[me] = uint32(query)
            tile = _word_at(search, number, query)
            low, high = _wanted_rows(search, tile, tile.seed + base)
            if high - low > int64(CROWDED):
                set_aside(search.lists.cursors, search.crowded, (number, base), (low, high), int64(RUN))
                high = low
        place, total = warp_places(high - low)
        places[me], lows[me] = uint32(place), uint32(low)
        cuda.syncwarp()
        for begin in range(0, total, 32):
            row = min(int64(begin) + lane, total - int64(1))
            owner = lane_of(places, me - lane, row)
            of_owner = int64(listed[item + owner - me])
            tile = _word_at(search, first + (of_owner >> int64(5)), int64(queries[owner]))
            row += int64(lows[owner]) - int64(places[owner])
            _try_row(search, tile, tile.seed + (of_owner & int64(31)), row, int64(begin) + lane < total)
        cuda.syncwarp()
        item += int64(32)


@kernel
def append_crowded_longest(search):
    """The rows set aside: a warp takes runs of a part of the list in turn, a lane every 32nd row."""
    lane = int64(cuda.threadIdx.x) & int64(31)
    start, end, step = runs_of_warp(search.lists.cursors, search.crowded)
    for entry in range(start, end, step):
        number, base, first, last = run_at(search.crowded, entry)
        tile = _word_at(search, number, _query_of(search, number))
        for row in range(first, last, 32):
            _try_row(search, tile, tile.seed + base, int64(row) + lane, int64(row) + lane < last)

"""Kernels that find the longest match from every base of a read on, a thread a base in one orientation: first where it
ends; then, when it is known which are wanted, the rows of those, which the lanes of a warp share."""

from __future__ import annotations

from warpseed.compute.appended import run_at, runs_of_warp, set_aside
from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64
from warpseed.compute.gpu import bounded_kernel, cuda, kernel
from warpseed.compute.owners import owner_of
from warpseed.compute.warp import BLOCK, lane_of, warp_places
from warpseed.fm_index.tagged import position_of
from warpseed.mems.gpu_fast import CROWDED, RUN, Tile, append_match, end_of, look_up, packed_match, tile_at
from warpseed.mems.longest import longest_finder
from warpseed.mems.matches import SUPER
from warpseed.sequences.packed import first_word, one_word_each

__all__ = ["append_crowded_longest", "append_longest", "note_longest", "sample_seeds"]

_MOST_SAMPLED = 512


@inlined
def _rows_in(index):
    return int64(index.rows.shape[0])


@inlined
def _table_at(index, entry):
    return int64(index.table[entry])


_finder = longest_finder(position_of, _rows_in, _table_at)
_longest_from, _rows_around, _agreed_at = _finder.longest_from, _finder.rows_around, _finder.agreed_at


@scalar
def _word_at(search, number):
    """The bases of an oriented word of the batch: `seed` is the first of them."""
    reads = search.reads
    total = int64(reads.words.shape[0])
    strand = int64(number >= total)
    word = number - strand * total
    query = word if one_word_each(reads) else owner_of(reads.first, word)
    first = first_word(reads, query)
    origin = (int64(1) + first + strand * total) * int64(32)
    return Tile(query, strand, (word - first) * int64(32), origin, int64(reads.lengths[query]))


@scalar
def _longest_at(search, tile, begin):
    """`longest_from` a base of a tile's read on; nothing behind its end."""
    if begin >= tile.length:
        return int64(0), int64(0)
    read = search.oriented.words, search.oriented.marks, tile.origin, tile.length
    tagged, least = search.tagged, int64(search.how.min_length)
    return _longest_from(tagged, int64(tagged.table_length), read, begin, least)


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
    """Note where the longest match from every base of the reads on ends."""
    t = int64(cuda.grid(1))
    if t >> int64(5) >= int64(search.how.strands) * int64(search.reads.words.shape[0]):
        return
    tile = _word_at(search, t >> int64(5))
    begin = tile.seed + (t & int64(31))
    _, bases = _longest_at(search, tile, begin)
    if bases > int64(0):
        at, end = end_of(search, tile, begin, bases)
        cuda.atomic.max(search.ends, at, uint32(end))


@scalar
def _try_row(search, tile, begin, row, there):
    """Keep the match from a base on that a row has; all lanes of a warp take part, each with a row of its own where it
    is `there`."""
    key, span, found = uint64(0), uint64(0), False
    if there:
        read = search.oriented.words, search.oriented.marks, tile.origin, tile.length
        bases = _agreed_at(search.tagged, read, begin, row, tile.length - begin)
        key, span, found = packed_match(search, tile, position_of(search.tagged, row), begin, bases)
    append_match(search, key, span, found)


@bounded_kernel(64)
def append_longest(search):
    """The wanted matches from every base of the reads on, when their ends are bounded."""
    places, lows = cuda.shared.array(BLOCK, uint32), cuda.shared.array(BLOCK, uint32)
    t = int64(cuda.grid(1))
    if t >> int64(5) >= int64(search.how.strands) * int64(search.reads.words.shape[0]):
        return
    me = int64(cuda.threadIdx.x)
    lane = me & int64(31)
    tile = _word_at(search, t >> int64(5))
    row, bases = _longest_at(search, tile, tile.seed + lane)
    low, high = int64(0), int64(0)
    wanted = _wanted_from(search, tile, tile.seed + lane, bases)
    if wanted > int64(0):
        read = search.oriented.words, search.oriented.marks, tile.origin, tile.length
        low, high = _rows_around(search.tagged, read, tile.seed + lane, row, wanted)
        if high - low > int64(CROWDED):
            set_aside(search.lists.cursors, search.crowded, (t >> int64(5), lane), (low, high), int64(RUN))
            high = low
    place, total = warp_places(high - low)
    places[me], lows[me] = uint32(place), uint32(low)
    cuda.syncwarp()
    for begin in range(0, total, 32):
        item = min(int64(begin) + lane, total - int64(1))
        owner = lane_of(places, me - lane, item)
        of_owner = int64(lows[owner]) + item - int64(places[owner])
        _try_row(search, tile, tile.seed + owner - me + lane, of_owner, int64(begin) + lane < total)


@kernel
def append_crowded_longest(search):
    """The rows set aside: a warp takes runs of a part of the list in turn, a lane every 32nd row."""
    lane = int64(cuda.threadIdx.x) & int64(31)
    start, end, step = runs_of_warp(search.lists.cursors, search.crowded)
    for entry in range(start, end, step):
        number, base, first, last = run_at(search.crowded, entry)
        tile = _word_at(search, number)
        for row in range(first, last, 32):
            _try_row(search, tile, tile.seed + base, int64(row) + lane, int64(row) + lane < last)

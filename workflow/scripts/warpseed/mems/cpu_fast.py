"""The fast tier's loop on the CPU: seeds of a read in passes, each prefetching for the next."""

from __future__ import annotations

from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import int32, int64, scalar, uint64
from warpseed.compute.intrinsics import prefetch
from warpseed.fm_index.buckets import narrow
from warpseed.mems.cpu_block import (
    CANDIDATES,
    CHOOSE,
    COUNT,
    ITEMS,
    NOTE,
    STORE,
    bound_ends,
    is_wanted,
    orient,
    take_match,
)
from warpseed.mems.cpu_longest import scan_longest
from warpseed.mems.fast import NO_MATCH, match_of
from warpseed.mems.matches import (
    MAXIMAL,
    count_occurrences,
    keep_rare,
    place_of,
    sort_by_part,
    sort_matches,
    span_of,
    spread_occurrences,
)

__all__ = ["search_range"]

_SEEDS = ITEMS // 4
"""Seeds of a pass, of which a crowded one becomes two, and each of these two more."""
_CROWDED = 64
"""Rows from which on a seed is taken apart."""


@scalar
def _is_known(block, seed, bases):
    """Whether all of up to 32 bases of the read are known."""
    return block.marks.shape[0] == 0 or fetch_word(block.marks, int64(32) + seed) & prefix_mask(bases) == uint64(0)


@scalar
def _entry(how, block, seed):
    """The first table entry of a seed."""
    bases = int64(how.seed_length)
    word = fetch_word(block.words, int64(32) + seed) & prefix_mask(bases)
    return int64(word >> uint64(int64(64) - int64(2) * int64(how.table_length)))


@scalar
def _list_seeds(fast, how, block, length, seed):
    """First pass: seeds from `seed` on whose bases are all known; returns (how many, the next one)."""
    bases, step = int64(how.seed_length), int64(how.step)
    count = int64(0)
    while seed + bases <= length and count < int64(_SEEDS):
        if _is_known(block, seed, bases):
            block.seed[count] = seed
            block.step[count] = step
            prefetch(fast.table, _entry(how, block, seed))
            count += int64(1)
        seed += step
    return count, seed


@scalar
def _rows_of(fast, how, block, seed):
    """The rows of a seed. (A damaged table must not lead behind the last.)"""
    rows = int64(fast.suffix_array.shape[0])
    entry = _entry(how, block, seed)
    more = int64(1) << (int64(2) * (int64(how.table_length) - int64(how.seed_length)))
    return min(int64(fast.table[entry]), rows), min(int64(fast.table[entry + more]), rows)


@scalar
def _look_up(fast, how, block, count):
    """Second pass: table entries to rows."""
    for i in range(count):
        low, high = _rows_of(fast, how, block, block.seed[i])
        block.low[i], block.high[i] = low, high
        prefetch(fast.suffix_array, low)


@scalar
def _narrowed(fast, how, block, length, seed, step):
    """The rows of a seed whose suffixes go on as every match does that begins up to `step` - 1 bases before it."""
    bases = min(int64(how.min_length) - step + int64(1), int64(32))
    if seed < int64(0) or seed + bases > length or not _is_known(block, seed, bases):
        return int64(0), int64(0)
    low, high = _rows_of(fast, how, block, seed)
    if high - low <= int64(1):
        return low, high
    wanted = fetch_word(block.words, int64(32) + seed) & prefix_mask(bases)
    return narrow(fast, low, high, wanted, bases)


@scalar
def _take_apart(fast, how, block, length, count):
    """Crowded items as two of half the step each, whose seeds can be longer, where these have fewer rows; twice.

    Of the matches that begin up to step - 1 bases before a seed, those that begin less than half a step before it hold
    more bases behind it, and the others a seed half a step before.
    """
    for _ in range(2):
        items = count
        for i in range(items):
            step, rows = block.step[i], block.high[i] - block.low[i]
            if rows <= int64(_CROWDED) or step == int64(1):
                continue
            half = (step + int64(1)) >> int64(1)
            seed = block.seed[i]
            low, high = _narrowed(fast, how, block, length, seed, half)
            other_low, other_high = _narrowed(fast, how, block, length, seed - half, step - half)
            if int64(2) * (high - low + other_high - other_low) > rows:
                continue
            block.low[i], block.high[i], block.step[i] = low, high, half
            if other_low < other_high:
                block.seed[count], block.step[count] = seed - half, step - half
                block.low[count], block.high[count] = other_low, other_high
                count += int64(1)
    return count


@scalar
def _emit(fast, how, block, length, strand, gathered, sink, state):
    """Last pass: candidates to matches; `state` as of `take_match`."""
    where = fast.text, fast.segments, int64(fast.suffix_array.shape[0])
    read = block.words, block.marks, int64(32), length
    for c in range(gathered):
        item, place = block.place_item[c], block.place[c]
        seed = block.seed[item]
        left, bases = match_of(where, how, read, seed, block.step[item], place)
        if bases == int64(NO_MATCH):
            continue
        state = take_match(how, block, length, strand, (seed - left, bases, place - left), sink, state)
    return state


@scalar
def _scan_seeds(fast, how, reads, query, block, sink, state):
    """All matches of a read, on the strands that are wanted; returns (used, found, work)."""
    rows = int64(fast.suffix_array.shape[0])
    work = int64(0)
    for s in range(how.strands):
        strand = int64(s)
        length = orient(reads, query, strand, block)
        seed = int64(0)
        while seed + int64(how.seed_length) <= length:
            count, seed = _list_seeds(fast, how, block, length, seed)
            _look_up(fast, how, block, count)
            count = _take_apart(fast, how, block, length, count)
            gathered = int64(0)
            for i in range(count):
                low, high = block.low[i], block.high[i]
                work += max(high - low, int64(1))
                for row in range(low, high):
                    place = int64(fast.suffix_array[row])
                    if place >= rows:
                        continue
                    if gathered == int64(CANDIDATES):
                        state = _emit(fast, how, block, length, strand, gathered, sink, state)
                        gathered = int64(0)
                    prefetch(fast.text, max(place - int64(32), int64(0)) >> int64(5))
                    block.place[gathered] = place
                    block.place_item[gathered] = i
                    gathered += int64(1)
            state = _emit(fast, how, block, length, strand, gathered, sink, state)
    return state[0], state[1], work


@scalar
def _scan(fast, how, reads, query, block, sink, state):
    """Find the matches of a read: all of them, or where they are found by the longest from every base on, the longest
    ones that are noted, or those that are wanted; returns (used, found, work)."""
    if how.longest:
        return scan_longest(fast, how, reads, query, block, sink, state)
    return _scan_seeds(fast, how, reads, query, block, sink, state)


@scalar
def _choose(how, ends, length, hits, begin, end):
    """Move the matches of [begin, end) together that are wanted; returns the place behind them."""
    to = begin
    for i in range(begin, end):
        _, strand = place_of(hits[i].place)
        bases, first = span_of(hits[i].span)
        if strand:
            first = length - first - bases
        if is_wanted(how, ends, strand, first, bases, length):
            hits[to].place, hits[to].span = hits[i].place, hits[i].span
            to += int64(1)
    return to


@scalar
def _is_whole(fast, sink):
    """Whether matches are wanted wherever they begin in the text."""
    return int64(sink.begin) == int64(0) and int64(sink.end) >= int64(fast.suffix_array.shape[0])


@scalar
def _search(fast, how, reads, query, block, sink, used):
    """The matches of one read, stored from `used` on: (place behind them, how many, work)."""
    store = int64(STORE) if sink.store else int64(0)
    if how.kind == MAXIMAL:
        return _scan(fast, how, reads, query, block, sink, (used, int64(0), store))
    length = int64(reads.lengths[query])
    block.ends[:, : length + 1] = int32(0)
    # Which matches are wanted is known when all are: they are held until then, or found a second time.
    whole = sink.store and _is_whole(fast, sink) and not how.longest
    hold = store if whole else int64(0)
    stored, found, work = _scan(fast, how, reads, query, block, sink, (used, int64(0), int64(NOTE) | hold))
    bound_ends(how, block.ends, length)
    if whole and stored <= int64(sink.hits.shape[0]):
        stored = _choose(how, block.ends, length, sink.hits, used, stored)
        return stored, stored - used, work
    stored, found, again = _scan(fast, how, reads, query, block, sink, (used, int64(0), int64(CHOOSE) | store))
    return stored, found, work + again


@scalar
def _settle(fast, how, reads, query, block, sink, used, stored):
    """Count the occurrences of the matches [used, stored) of a read that `_search` has found, leave out what has too
    many, and put the rest in output order: (place behind them, work)."""
    sort_by_part(sink.hits, used, stored)
    work = int64(0)
    if _is_whole(fast, sink):
        count_occurrences(sink.hits, used, stored)
    elif stored > used:
        # Some occurrences begin elsewhere: all matches of the read are found once more.
        deed = int64(COUNT) if how.kind == MAXIMAL else int64(COUNT | CHOOSE)
        _, _, work = _scan(fast, how, reads, query, block, sink, (stored, used, deed))
        spread_occurrences(sink.hits, used, stored)
    stored = keep_rare(sink.hits, used, stored, int64(how.max_occurrences))
    sort_matches(sink.hits, used, stored)
    return stored, work


@scalar
def search_range(fast, reads, how, block, first, last, sink):
    """Matches of the reads [first, last), read by read.

    Returns
    -------
    (stop, used, needed) : int64; where it stopped, the matches stored, and the room that read `stop` needs (0 at the
        end, and where it stopped for the work)
    """
    used = work = int64(0)
    for number in range(first, last):
        query = int64(number)
        if work > int64(sink.work):
            return query, used, int64(0)
        stored, found, done = _search(fast, how, reads, query, block, sink, used)
        work += done
        at = query - int64(first)
        if found > int64(sink.max_hits):
            sink.counts[at] = 0
            sink.dropped[0] += 1
            sink.dropped[1] += found
            continue
        if sink.store:
            if stored > int64(sink.hits.shape[0]):
                return query, used, stored - used
            behind, done = _settle(fast, how, reads, query, block, sink, used, stored)
            work += done
            sink.dropped[1] += stored - behind
            found, used = behind - used, behind
        sink.counts[at] = found
    return int64(last), used, int64(0)

"""Matches of short minimum lengths and of repeats on the CPU: the longest one from every base on, searched side by
side, each step prefetching for the next (see longest.py)."""

from __future__ import annotations

from warpseed.compute.bits import fetch_word
from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import prefetch
from warpseed.fm_index.buckets import prefetch_text
from warpseed.fm_index.text import suffix_start
from warpseed.mems.cpu_block import ITEMS, NOTE, is_wanted, may_begin, take_match
from warpseed.mems.longest import longest_finder
from warpseed.mems.matches import SUPER

__all__ = ["scan_longest"]

_LONG = 64
"""Bases of a match from which on it is looked up where the next one is that goes beyond it."""
_FEW = 16
"""Bases that are searched side by side behind such a match, as the next one may lead over them."""
_COMPARISONS = 8
"""Times that the bases of a match are compared until it is known to be the longest, about."""


@inlined
def _place_at(fast, row):
    return suffix_start(fast.suffix_array, row)


@inlined
def _rows_in(fast):
    return int64(fast.suffix_array.shape[0])


@inlined
def _table_at(fast, entry):
    return min(int64(fast.table[entry]), int64(fast.suffix_array.shape[0]))


_finder = longest_finder(_place_at, _rows_in, _table_at)
_longest_from, _rows_between, _compare, _settled = (
    _finder.longest_from,
    _finder.rows_between,
    _finder.compare,
    _finder.settled,
)
_rows_around, _agreed_at = _finder.rows_around, _finder.agreed_at


@scalar
def _list_bases(fast, how, block, strand, begin, part, state):
    """The next bases from `begin` on whose longest matches are searched for: where ends are noted, all of them; else
    those from which one that is wanted may begin. `part`: (base behind the last, how many at most).

    Returns
    -------
    (count, begin) : int64, how many are listed, and where the next ones are
    """
    end, most = part
    shift, count = uint64(int64(64) - int64(2) * int64(how.table_length)), int64(0)
    while begin < end and count < most:
        if state[2] & int64(NOTE) or may_begin(how, block.ends, strand, begin):
            block.seed[count] = begin
            prefetch(fast.table, int64(fetch_word(block.words, int64(32) + begin) >> shift))
            count += int64(1)
        begin += int64(1)
    return count, begin


@scalar
def _prefetch_middle(fast, block, i):
    """Ask for the row that a listed base is compared with next; whether there is one."""
    if block.low[i] >= block.high[i]:
        return False
    prefetch(fast.suffix_array, (block.low[i] + block.high[i]) >> int64(1))
    return True


@scalar
def _search_together(fast, how, block, read, count):
    """What `_longest_from` finds from each of the listed bases on: rows into `block.low`, bases into `block.step`."""
    table_length, least = int64(how.table_length), int64(how.min_length)
    searched = int64(0)
    for i in range(count):
        block.low[i], block.high[i], _ = _rows_between(fast, table_length, read, block.seed[i], least)
        block.step[i] = 0
        if _prefetch_middle(fast, block, i):
            block.crowded[searched] = i
            searched += int64(1)
    while searched > int64(0):
        for c in range(searched):
            i = int64(block.crowded[c])
            prefetch_text(fast, _place_at(fast, (block.low[i] + block.high[i]) >> int64(1)))
        going = int64(0)
        for c in range(searched):
            i = int64(block.crowded[c])
            middle = (block.low[i] + block.high[i]) >> int64(1)
            agreed, behind = _compare(fast, read, block.seed[i], middle)
            block.step[i] = max(block.step[i], agreed)
            if behind:
                block.high[i] = middle
            else:
                block.low[i] = middle + int64(1)
            if _prefetch_middle(fast, block, i):
                block.crowded[going] = i
                going += int64(1)
        searched = going
    for i in range(count):
        _, _, shared = _rows_between(fast, table_length, read, block.seed[i], least)
        block.step[i] = _settled(fast, read, block.seed[i], block.low[i], block.step[i], shared, least)


@scalar
def _wanted_rows(fast, how, block, strand, read, longest):
    """The rows of the matches from a base on that are wanted; `longest` is (base, row, bases), as `_longest_from` found
    it."""
    begin, row, bases = longest
    if how.kind != SUPER:
        bases = max(int64(how.min_length), int64(block.ends[strand, begin]) - begin + int64(1))
    return _rows_around(fast, read, begin, row, bases)


@scalar
def _next_beyond(fast, how, read, begin, bases, end):
    """Of the longest match from a base on, which has so many bases: the next base, before `end`, from which one may go
    beyond its end, or that is too close to it to tell; and the work. No match from those between is wanted.

    What goes beyond from a base goes beyond from those behind it, so that the next one is found by steps that double,
    and halves: else a read that is like the genome would take the square of its length.
    """
    table_length, least, beyond = int64(how.table_length), int64(how.min_length), begin + bases
    low, high = begin + int64(1), min(end, beyond - least + int64(1))
    step, work, doubling = int64(1), int64(0), True
    while low < high:
        place = min(low + step, high) - int64(1) if doubling else (low + high) >> int64(1)
        _, more = _longest_from(fast, table_length, read, place, least)
        work += int64(1) + int64(_COMPARISONS) * (more >> int64(5))
        if place + more > beyond:
            high, doubling = place, False
        else:
            low = place + int64(1)
            step += step
    return low, work


@scalar
def _note_ends(fast, how, block, length, strand, place, sink, state):
    """Note where the longest matches from the bases of a part on end; as `scan_longest`."""
    begin, end, _, _, _, most = place
    read = block.words, block.marks, int64(32), length
    work, together = int64(0), int64(ITEMS)
    while begin < end:
        count, behind = _list_bases(fast, how, block, strand, begin, (end, together), state)
        _search_together(fast, how, block, read, count)
        work += count
        together = min(int64(2) * together, int64(ITEMS))
        first = begin
        while begin < behind:
            bases = block.step[begin - first]
            work += int64(_COMPARISONS) * (bases >> int64(5))
            if bases:
                state = take_match(how, block, length, strand, (begin, bases, int64(0)), sink, state)
            if bases < int64(_LONG):
                begin += int64(1)
            else:
                begin, done = _next_beyond(fast, how, read, begin, bases, end)
                work, together = work + done, int64(_FEW)
            if work > most:
                return state[0], state[1], work, begin, int64(0), int64(0)
    return state[0], state[1], work, begin, int64(0), int64(0)


@scalar
def _take_wanted(fast, how, block, length, strand, place, sink, state):
    """Take the matches of a part that are wanted, ends being bounded; as `scan_longest`."""
    begin, end, _, skipped, in_steps, most = place
    read = block.words, block.marks, int64(32), length
    work = int64(0)
    while begin < end:
        count, behind = _list_bases(fast, how, block, strand, begin, (end, int64(ITEMS)), state)
        _search_together(fast, how, block, read, count)
        work += count + ((behind - begin) >> int64(5))
        for i in range(count):
            begin, row, bases = block.seed[i], block.low[i], block.step[i]
            work += int64(_COMPARISONS) * (bases >> int64(5))
            if bases and is_wanted(how, block.ends, strand, begin, bases):
                low, high = _wanted_rows(fast, how, block, strand, read, (begin, row, bases))
                for around in range(low + skipped, high):
                    here = bases
                    if how.kind != SUPER:
                        here = _agreed_at(fast, read, begin, int64(around), length - begin)
                    found_at = begin, here, _place_at(fast, int64(around))
                    state = take_match(how, block, length, strand, found_at, sink, state)
                    work += int64(1) + (here >> int64(5))
                    if work > most or (in_steps and state[0] == int64(sink.hits.shape[0])):
                        return state[0], state[1], work, begin, int64(0), int64(around) + int64(1) - low
            skipped = int64(0)
            if work > most:
                return state[0], state[1], work, begin + int64(1), int64(0), int64(0)
        begin = behind
    return state[0], state[1], work, int64(end), int64(0), int64(0)


@scalar
def scan_longest(fast, how, block, length, strand, place, sink, state):
    """Where ends are noted, those of the longest match from every base of a part of an oriented read on; else, of a
    read whose ends are bounded, the matches that are wanted. As `warpseed.mems.cpu_fast.scan_seeds`."""
    if state[2] & int64(NOTE):
        return _note_ends(fast, how, block, length, strand, place, sink, state)
    return _take_wanted(fast, how, block, length, strand, place, sink, state)

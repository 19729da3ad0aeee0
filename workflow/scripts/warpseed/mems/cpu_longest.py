"""Matches of short minimum lengths on the CPU: the longest one from every base on, in passes, each prefetching for the
next (see longest.py)."""

from __future__ import annotations

from warpseed.compute.bits import fetch_word
from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import prefetch
from warpseed.mems.cpu_block import ITEMS, NOTE, is_wanted, take_match
from warpseed.mems.longest import longest_finder
from warpseed.mems.matches import SUPER

__all__ = ["scan_longest"]

_LONG = 64
"""Bases of a match from which on it is looked up where the next one is that goes beyond it."""
_COMPARISONS = 8
"""Times that the bases of a match are compared until it is known to be the longest, about."""


@inlined
def _place_at(fast, row):
    """(A damaged index must not lead outside the text.)"""
    return min(int64(fast.suffix_array[row]), int64(fast.suffix_array.shape[0]) - int64(1))


@inlined
def _rows_in(fast):
    return int64(fast.suffix_array.shape[0])


@inlined
def _table_at(fast, entry):
    return min(int64(fast.table[entry]), int64(fast.suffix_array.shape[0]))


_finder = longest_finder(_place_at, _rows_in, _table_at)
_longest_from, _rows_around, _agreed_at = _finder.longest_from, _finder.rows_around, _finder.agreed_at


@scalar
def _prefetch(fast, how, block, begin, end):
    """Ask for what `_longest_from` reads of the bases [begin, end): table entries, then rows, then text."""
    shift = uint64(int64(64) - int64(2) * int64(how.table_length))
    for i in range(begin, end):
        prefetch(fast.table, int64(fetch_word(block.words, int64(32) + i) >> shift))
    for i in range(begin, end):
        entry = int64(fetch_word(block.words, int64(32) + i) >> shift)
        row = (_table_at(fast, entry) + _table_at(fast, entry + int64(1))) >> int64(1)
        block.low[i - begin] = max(row - int64(1), int64(0))
        prefetch(fast.suffix_array, block.low[i - begin])
    for i in range(begin, end):
        row = block.low[i - begin]
        prefetch(fast.text, _place_at(fast, row) >> int64(5))
        prefetch(fast.text, _place_at(fast, min(row + int64(1), _rows_in(fast) - int64(1))) >> int64(5))


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
def scan_longest(fast, how, block, length, strand, place, sink, state):
    """Where ends are noted, those of the longest match from every base of a part of an oriented read on; else, of a
    read whose ends are bounded, the matches that are wanted. As `warpseed.mems.cpu_fast.scan_seeds`."""
    begin, end, _, skipped, in_steps, most = place
    read = block.words, block.marks, int64(32), length
    work, asked = int64(0), int64(begin)
    while begin < end:
        if begin >= asked:
            asked = min(begin + int64(ITEMS), end)
            _prefetch(fast, how, block, begin, asked)
            work += asked - begin
        row, bases = _longest_from(fast, int64(how.table_length), read, begin, int64(how.min_length))
        work += int64(_COMPARISONS) * (bases >> int64(5))
        if bases and state[2] & int64(NOTE):
            state = take_match(how, block, length, strand, (begin, bases, int64(0)), sink, state)
        elif bases and is_wanted(how, block.ends, strand, begin, bases, length):
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
        if bases < int64(_LONG):
            begin += int64(1)
        else:
            begin, done = _next_beyond(fast, how, read, begin, bases, end)
            work += done
        if work > most:
            return state[0], state[1], work, begin, int64(0), int64(0)
    return state[0], state[1], work, int64(end), int64(0), int64(0)

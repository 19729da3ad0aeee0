"""Matches of short minimum lengths on the CPU: the longest one from every base on, in passes, each prefetching for the
next (see longest.py)."""

from __future__ import annotations

from warpseed.compute.bits import fetch_word
from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import prefetch
from warpseed.mems.cpu_block import ITEMS, NOTE, is_wanted, orient, take_match
from warpseed.mems.longest import longest_finder
from warpseed.mems.matches import SUPER

__all__ = ["scan_longest"]


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
def _take_rows(fast, how, block, length, strand, longest, sink, state):
    """Take the matches from a base on that are wanted: `longest` is (base, row, bases), as `_longest_from` found it;
    returns (used, found, what is done, rows)."""
    begin, row, bases = longest
    read = block.words, block.marks, int64(32), length
    wanted = bases
    if how.kind != SUPER:
        wanted = max(int64(how.min_length), int64(block.ends[strand, begin]) - begin + int64(1))
    low, high = _rows_around(fast, read, begin, row, wanted)
    for around in range(low, high):
        here = bases
        if how.kind != SUPER:
            here = _agreed_at(fast, read, begin, int64(around), length - begin)
        found_at = begin, here, _place_at(fast, int64(around))
        state = take_match(how, block, length, strand, found_at, sink, state)
    return state[0], state[1], state[2], high - low


@scalar
def scan_longest(fast, how, reads, query, block, sink, state):
    """Where ends are noted, those of the longest match from every base of a read on; else, of a read whose ends are
    bounded, the matches that are wanted. `state` as of `take_match`; returns (used, found, work)."""
    work = int64(0)
    for s in range(how.strands):
        strand = int64(s)
        length = orient(reads, query, strand, block)
        read = block.words, block.marks, int64(32), length
        for first in range(0, length, ITEMS):
            end = min(int64(first) + int64(ITEMS), length)
            _prefetch(fast, how, block, int64(first), end)
            work += end - int64(first)
            for i in range(first, end):
                begin = int64(i)
                row, bases = _longest_from(fast, int64(how.table_length), read, begin, int64(how.min_length))
                if bases == int64(0):
                    continue
                if state[2] & int64(NOTE):
                    state = take_match(how, block, length, strand, (begin, bases, int64(0)), sink, state)
                elif is_wanted(how, block.ends, strand, begin, bases, length):
                    used, found, deed, rows = _take_rows(
                        fast, how, block, length, strand, (begin, row, bases), sink, state
                    )
                    state = used, found, deed
                    work += rows
    return state[0], state[1], work

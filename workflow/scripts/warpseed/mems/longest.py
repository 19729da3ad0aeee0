"""The longest match from a place of a read on, by its place among the suffixes of the text, for both targets.

Where a read would stand among the suffixes, one of the two beside it shares the most bases with it. So nothing but the
two of every place has to be compared to know how far matches reach, and the rows of those that are wanted lie around:
short seeds have many rows, of which hardly any has a match that lies in no other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import leading_zeros
from warpseed.fm_index.text import segment_of
from warpseed.mems.fast import agree_right

__all__ = ["LongestFinder", "known_from", "longest_finder"]


@inlined
def known_from(read, begin):
    """Bases of an oriented read from `begin` on before its end and the first that is none of A, C, G, T: 32 at most."""
    _, marks, origin, length = read
    known = min(length - begin, int64(32))
    if marks.shape[0]:
        known = min(known, leading_zeros(fetch_word(marks, origin + begin)) >> int64(1))
    return known


class LongestFinder(NamedTuple):
    """Functions for one target, of (index, table_length, read, begin, …); index has text, segments and table, and read
    is as of `warpseed.mems.fast.match_of`."""

    longest_from: Any
    """with (least): (row that the read from `begin` on would stand before, bases of the longest match from there on, 0
    where it has less than `least`), int64"""
    rows_between: Any
    """with (least), the first of its steps: (first, behind the last) of the rows between which that row is, and bases
    of the read that these share, int64; none at all where no match can be so long"""
    compare: Any
    """with (row), each step between: (bases that a row's suffix shares with the read from `begin` on, whether it comes
    behind the read or goes on as it)"""
    search_between: Any
    """with (first, last, best), what follows it: (row from `first` to `last` that the read from `begin` on would stand
    before, most bases that one compared on the way shares, `best` at least), int64"""
    settled: Any
    """with (row, most bases shared so far, bases as of `rows_between`, least), its last step: the bases, int64"""
    rows_around: Any
    """with (row, bases): (first, behind the last) of the rows around `row` whose suffixes share so many bases with the
    read from `begin` on, int64"""
    agreed_at: Any
    """with (row, most): bases that a row's suffix shares with the read from `begin` on, `most` at most, int64"""


def longest_finder(place_at: Any, rows_in: Any, table_at: Any) -> LongestFinder:
    """The functions of a target.

    Parameters
    ----------
    place_at : function of (index, row) that gives a row's text position, within the text
    rows_in : function of an index that gives its rows, int64
    table_at : function of (index, entry) that gives a row, 0 to as many as there are
    """

    @inlined
    def room_at(index, place):
        """Bases of a segment from a text position on."""
        end = int64(index.segments.text_start[segment_of(index.segments, place) + int64(1)]) - int64(1)
        return min(end, rows_in(index)) - place

    @scalar
    def agreed_at(index, read, begin, row, most):
        words, marks, origin, _ = read
        place = place_at(index, row)
        return agree_right(index.text, words, marks, origin + begin, place, min(most, room_at(index, place)))

    @scalar
    def compare(index, read, begin, row):
        words, marks, origin, length = read
        at, place = origin + begin, place_at(index, row)
        most, room = length - begin, room_at(index, place)
        agreed = agree_right(index.text, words, marks, at, place, min(most, room))
        if agreed == most or (marks.shape[0] and fetch_word(marks, at + agreed) >> uint64(62) != uint64(0)):
            return agreed, True
        if agreed == room:
            return agreed, False
        theirs, mine = fetch_word(index.text, place + agreed), fetch_word(words, at + agreed)
        return agreed, theirs >> uint64(62) > mine >> uint64(62)

    @scalar
    def rows_between(index, table_length, read, begin, least):
        words, _, origin, length = read
        at, most, known = origin + begin, length - begin, known_from(read, begin)
        if known < min(least, int64(32)) or most < least:
            return int64(0), int64(0), int64(0)
        shared = min(known, int64(table_length))
        entry = (fetch_word(words, at) & prefix_mask(shared)) >> uint64(int64(64) - int64(2) * int64(table_length))
        behind = int64(entry) + (int64(1) << (int64(2) * (int64(table_length) - shared)))
        return table_at(index, int64(entry)), table_at(index, behind), shared

    @scalar
    def settled(index, read, begin, row, best, shared, least):
        # Rows beside those between which it is share less with the read than these.
        if best < shared and least < shared:
            most = read[3] - begin
            if row > int64(0):
                best = max(best, agreed_at(index, read, begin, row - int64(1), most))
            if row < rows_in(index):
                best = max(best, agreed_at(index, read, begin, row, most))
        return best if best >= least else int64(0)

    @scalar
    def search_between(index, read, begin, first, last, best):
        while first < last:
            middle = (first + last) >> int64(1)
            agreed, behind = compare(index, read, begin, middle)
            best = max(best, agreed)
            if behind:
                last = middle
            else:
                first = middle + int64(1)
        return first, best

    @scalar
    def longest_from(index, table_length, read, begin, least):
        first, last, shared = rows_between(index, table_length, read, begin, least)
        row, best = search_between(index, read, begin, first, last, int64(0))
        return row, settled(index, read, begin, row, best, shared, least)

    @scalar
    def rows_around(index, read, begin, row, bases):
        low, step = row, int64(1)
        while low - step >= int64(0) and agreed_at(index, read, begin, low - step, bases) == bases:
            low -= step
            step += step
        step >>= int64(1)
        while step > int64(0):
            if low - step >= int64(0) and agreed_at(index, read, begin, low - step, bases) == bases:
                low -= step
            step >>= int64(1)
        high, step = row, int64(1)
        while high + step <= rows_in(index) and agreed_at(index, read, begin, high + step - int64(1), bases) == bases:
            high += step
            step += step
        step >>= int64(1)
        while step > int64(0):
            if high + step <= rows_in(index) and agreed_at(index, read, begin, high + step - int64(1), bases) == bases:
                high += step
            step >>= int64(1)
        return low, high

    return LongestFinder(longest_from, rows_between, compare, search_between, settled, rows_around, agreed_at)

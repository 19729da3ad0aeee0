"""Sorting the suffixes of a packed text on the CPU: as those are sorted that begin one base before.

Suffixes that begin with the same base are in the order of what follows it. So where a group of tied suffixes has been
sorted, those that begin one base later stand in its order, and need not be compared: what lies between two differences
of copies of a text, be it the whole of it, takes a look at each place. A group is met at its *leader*, the first of its
positions. What it has besides is merged by comparing it, as far as a number of words leads, and less of it where ranks
tell what begins one base before. The suffixes of a tandem repeat, whose order is that of their positions or its
reverse, take one comparison. What is not sorted here is left to ranks (`suffix_ranks.py`).

`tied`, groups and ranks are those of `warpseed.compute.groups`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word
from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64
from warpseed.compute.groups import (
    NO_BITS,
    SPLIT,
    TIED,
    border_behind,
    next_tie,
    spans_of_groups,
    turn_bits,
    turn_state,
)
from warpseed.compute.intrinsics import atomic_xor, trailing_zeros
from warpseed.compute.ranges import on_threads, spans_of, steps
from warpseed.compute.sorting import STACK, sort_numbers
from warpseed.fm_index.suffix_letters import compare_suffixes
from warpseed.fm_index.text import PackedText

__all__ = ["TiedOrder", "sort_by_chains"]

_WORDS = 2
"""Words that may be compared, by the size of the text, before what is tied is left to ranks."""
_LONG = 16
"""Words for a comparison of suffixes as long as the text, by its size, that every part of it has besides."""
_MOST = 1 << 12
"""Words that a suffix is compared by with others of its group, whose order may become known otherwise."""
_OTHERS = 1 << 12
"""Suffixes of a group, at most, that do not follow the one before."""
_MOVES = 16
"""Rows that are moved in the time of a word."""
_SKIPS = 8
"""After so many groups in turn that could not be sorted no more than two to the power of it are left out."""
_LEADER, _BEGIN, _END, _NEXT, _FAILED = range(5)
_FIRST, _UNIT, _COUNT, _COMMON, _ORDER = range(5)
_PARTS = 8
"""Of the text for each of several threads: leaders lie close together where copies follow each other."""


class TiedOrder(NamedTuple):
    """An order that is being made: of suffixes, by position, or of phrases, by their number in the text."""

    rows: np.ndarray
    """uint32[n], what stands in each"""
    tied: np.ndarray
    """uint64[n // 32 + 1]"""
    ranks: np.ndarray
    """uint32[n], of suffixes or phrases"""


class Chain(NamedTuple):
    """What a thread knows on its way through the text."""

    last: np.ndarray
    """int64[5]: the _LEADER of the group that was sorted last, its rows from _BEGIN to before _END; the position _NEXT
    before which no group is looked at, and how many in turn _FAILED to be sorted"""
    tandem: np.ndarray
    """int64[5], of suffixes at equal distances: the _FIRST, the distance (_UNIT), their _COUNT, how many bases each has
    in _COMMON with the next at least, and their _ORDER: below 0 if it is that of positions, above 0 if reversed"""
    limits: np.ndarray
    """int64[2], _MOST and _SKIPS"""
    elements: np.ndarray
    """uint64[_OTHERS], room to sort in"""
    aside: np.ndarray
    """uint32[_OTHERS]"""
    stack: np.ndarray
    """int64[STACK], of compute.sorting"""

    @classmethod
    def new(cls) -> Chain:
        """Nothing has been sorted yet."""
        last, limits = np.array([-2, 0, 0, 0, 0], np.int64), np.array([_MOST, _SKIPS], np.int64)
        elements, aside = np.empty(_OTHERS, np.uint64), np.empty(_OTHERS, np.uint32)
        return cls(last, np.zeros(5, np.int64), limits, elements, aside, np.empty(STACK, np.int64))


@scalar
def note_leaders(span, rows, tied, leaders):
    """Note the first position of each group.

    Parameters
    ----------
    span : (first, last), rows that no group leads out of
    rows : uint32[n], the position of the suffix of each row
    tied : uint64[n // 32 + 1]
    leaders : uint64[n // 64 + 1], a bit for each position, which is turned
    """
    first, last = span
    begin = next_tie(tied, first + int64(1), last)
    while begin < last:
        end = border_behind(tied, begin)
        leader = rows[uint64(begin) - uint64(1)]
        for row in range(begin, end):
            leader = min(leader, rows[uint64(row)])
        atomic_xor(leaders, int64(leader) >> int64(6), uint64(1) << (uint64(leader) & uint64(63)))
        begin = next_tie(tied, end, last)


@inlined
def _next_leader(leaders, position, last):
    """The first leader of [position, last), or `last`."""
    while position < last:
        left = leaders[uint64(position) >> uint64(6)] >> (uint64(position) & uint64(63))
        if left != uint64(0):
            return min(position + trailing_zeros(left), last)
        position = (position | int64(63)) + int64(1)
    return last


@inlined
def _inherit(rows, ranks, group, last):
    """Bring those of a group to its beginning that follow suffixes of the one that was sorted last, in the order of
    these; returns the row behind them. (Ranks are as they were before either was sorted.)"""
    begin, end = group
    first_before, last_before = last[_BEGIN], last[_END]
    count = int64(0)
    for row in range(first_before, last_before):
        count += int64(int64(ranks[uint64(rows[uint64(row)]) + uint64(1)]) == begin)
    if count < end - begin:
        put = end
        for row in range(end - int64(1), begin - int64(1), int64(-1)):
            position = rows[uint64(row)]
            if position == uint32(0) or int64(ranks[uint64(position) - uint64(1)]) != first_before:
                put -= int64(1)
                rows[uint64(put)] = position
    at = begin
    for row in range(first_before, last_before):
        position = uint64(rows[uint64(row)]) + uint64(1)
        if int64(ranks[position]) == begin:
            rows[uint64(at)] = uint32(position)
            at += int64(1)
    return at


@inlined
def _compare_neighbours(text, depth, first, unit, count, words):
    """Compare suffixes at equal distances, each with the next.

    Two that differ behind the beginning of the last suffix but one differ in the same place as all pairs behind them.
    So they do where the distance is no more than the `depth` bases that they share, too: then these overlap, and the
    text repeats from the first suffix to the end of what the last one shares.

    Returns
    -------
    (order, equal, words) : of all pairs, 0 if that was not found; how many bases each has in common at least, a lower
    bound; and how many words are left to compare
    """
    all_orders, common = int64(0), int64(0)
    for i in range(count - int64(1)):
        one = first + i * unit
        order, left = compare_suffixes(text, one, one + unit, depth, words)
        equal = depth + int64(32) * (words - left - int64(1))
        words = left - int64(1)
        if order == int64(0) or (i > int64(0) and order != all_orders):
            return int64(0), int64(0), words
        all_orders, common = order, equal if i == int64(0) else min(common, equal)
        rest = unit * (count - int64(2) - i)
        if unit <= depth or equal >= rest:
            return order, max(int64(0), min(common, equal - rest)), words
    return all_orders, common, words


@inlined
def _sort_tandem(text, depth, group, rows, tandem, words):
    """Sort a group whose suffixes begin at equal distances, as those of a tandem repeat do, or of two or more copies of
    a text; returns its order, 0 if it is no such group or is not sorted, and how many words are left to compare."""
    begin, end = group
    first, count = int64(rows[uint64(begin)]), end - begin
    unit = int64(rows[uint64(begin) + uint64(1)]) - first
    for row in range(begin + int64(2), end):
        if int64(rows[uint64(row)]) - int64(rows[uint64(row) - uint64(1)]) != unit:
            return int64(0), words
    if unit <= int64(0):
        return int64(0), words
    shift = first - tandem[_FIRST]
    order = tandem[_ORDER]
    if unit != tandem[_UNIT] or count > tandem[_COUNT] or shift < int64(0) or shift > tandem[_COMMON]:
        order, equal, words = _compare_neighbours(text, depth, first, unit, count, words)
        if order == int64(0):
            return order, words
        tandem[_FIRST], tandem[_UNIT], tandem[_COUNT] = first, unit, count
        tandem[_COMMON], tandem[_ORDER] = equal, order
    if order > int64(0):
        for i in range(count >> int64(1)):
            low, high = uint64(begin + i), uint64(end - int64(1) - i)
            rows[low], rows[high] = rows[high], rows[low]
    return order, words


@inlined
def _sort_by_ranks_before(ranks, put, end, rows, chain):
    """Sort suffixes of a group by the ranks of those that begin one base before."""
    for row in range(put, end):
        position = uint64(rows[uint64(row)])
        before = uint64(0)
        if position > uint64(0):
            before = uint64(ranks[position - uint64(1)])
        chain.elements[uint64(row - put)] = (before << uint64(32)) | position
    sort_numbers(chain.elements, int64(0), end - put, chain.stack)
    for row in range(put, end):
        rows[uint64(row)] = uint32(chain.elements[uint64(row - put)])


@inlined
def _are_in_order(text, element, following):
    """Whether suffixes, each with the rank of the one before it above, are in order as the ones before are: these begin
    with the same base, and differ. (Separators come before all bases.)"""
    before, behind = element >> uint64(32), following >> uint64(32)
    if before < uint64(text.segments.contig.shape[0]) or before == behind:
        return False
    one, two = int64(uint32(element)), int64(uint32(following))
    base = fetch_word(text.words, one - int64(1)) >> uint64(62)
    return base == fetch_word(text.words, two - int64(1)) >> uint64(62)


@inlined
def _merge(text, depth, runs, rows, chain, words):
    """Merge two sorted runs of a group.

    Parameters
    ----------
    runs : (first, middle, last), the rows [first, middle) and [middle, last)
    chain : Chain, with room for the second

    Returns
    -------
    (is_sorted, words) : False if there were not enough words, with all suffixes in some order; how many are left
    """
    first, middle, last = runs
    count = last - middle
    for i in range(count):
        chain.aside[uint64(i)] = rows[uint64(middle + i)]
    is_sorted = True
    while count > int64(0) and is_sorted:
        position = chain.aside[uint64(count) - uint64(1)]
        # What comes behind it is looked for in growing steps, then between the last two of them.
        low, high, step = first, middle, int64(1)
        while low < high and is_sorted:
            probe = max(low, high - step) if step > int64(0) else (low + high) >> int64(1)
            allowed = min(words, chain.limits[0])
            order, left = compare_suffixes(text, int64(position), int64(rows[uint64(probe)]), depth, allowed)
            words -= allowed - left + int64(1)
            if order < int64(0):
                high, step = probe, step * int64(2)
            else:
                low, step = probe + int64(1), int64(0)
            is_sorted = order != int64(0)
        if is_sorted:
            for row in range(middle - int64(1), high - int64(1), int64(-1)):
                rows[uint64(row + count)] = rows[uint64(row)]
            words -= (middle - high) // int64(_MOVES)
            middle = high
            count -= int64(1)
            rows[uint64(middle + count)] = position
    for i in range(count):
        rows[uint64(middle + i)] = chain.aside[uint64(i)]
    return is_sorted, words


@inlined
def _merge_runs(text, depth, group, put, rows, chain, words):
    """Sort a group whose rows before `put` are sorted, and the others by what begins one base before them.

    Returns
    -------
    (is_sorted, words) : whether all of them are, and how many words are left to compare
    """
    begin, end = group
    starts, count = chain.stack, int64(0)
    if put > begin:
        starts[0], count = begin, int64(1)
    row, is_sorted = put, True
    while row < end and is_sorted:
        starts[count] = row
        count += int64(1)
        row += int64(1)
        while row < end and _are_in_order(
            text, chain.elements[uint64(row - put - int64(1))], chain.elements[uint64(row - put)]
        ):
            row += int64(1)
        # A run that is kept is more than twice as long as the next, so that these are few.
        while is_sorted and count > int64(1):
            runs = starts[count - int64(2)], starts[count - int64(1)], row
            if row < end and runs[1] - runs[0] > int64(2) * (runs[2] - runs[1]):
                break
            is_sorted, words = _merge(text, depth, runs, rows, chain, words)
            count -= int64(1)
    return is_sorted, words - (end - put)


@inlined
def _sort_group(text, depth, group, order, chain, words):
    """Sort a group; returns whether it is sorted, and how many words are left to compare."""
    begin, end = group
    put = begin
    if chain.last[_END] > chain.last[_BEGIN]:
        put = _inherit(order.rows, order.ranks, group, chain.last)
    if put == end:
        return True, words
    if put == begin:
        found, words = _sort_tandem(text, depth, group, order.rows, chain.tandem, words)
        if found != int64(0):
            return True, words
    if words <= int64(0) or end - put > chain.elements.shape[0]:
        return False, words
    _sort_by_ranks_before(order.ranks, put, end, order.rows, chain)
    return _merge_runs(text, depth, group, put, order.rows, chain, words)


@scalar
def follow_chains(text, depth, span, leaders, order, chain, words):
    """Sort the groups whose leaders lie in a span of the text, as far as some words lead.

    Parameters
    ----------
    depth : bases that what is tied shares, at least 1
    span : (first, last), positions
    leaders : uint64[n // 64 + 1]
    order : TiedOrder; rows of these groups are put in order, what is sorted becomes SPLIT, and ranks stay
    chain : Chain, of what lies in front of the span
    words : that may be compared

    Returns
    -------
    int64, how many of the words are left
    """
    first, last = span
    position = _next_leader(leaders, max(first, chain.last[_NEXT]), last)
    while position < last and words > int64(0):
        if position != chain.last[_LEADER] + int64(1):
            chain.last[_END] = chain.last[_BEGIN]
        begin = int64(order.ranks[uint64(position)])
        end = border_behind(order.tied, begin + int64(1))
        is_sorted, words = _sort_group(text, depth, (begin, end), order, chain, words)
        if is_sorted:
            turned = NO_BITS
            for row in range(begin + int64(1), end):
                turned = turn_state(order.tied, row, TIED ^ SPLIT, turned)
            turn_bits(order.tied, turned)
            chain.last[_LEADER], chain.last[_BEGIN], chain.last[_END] = position, begin, end
            chain.last[_NEXT], chain.last[_FAILED] = position + int64(1), int64(0)
        else:
            chain.last[_NEXT] = position + (int64(1) << min(chain.last[_FAILED], chain.limits[1]))
            chain.last[_FAILED] += int64(1)
        position = _next_leader(leaders, min(chain.last[_NEXT], last), last)
    return words


def sort_by_chains(text: PackedText, order: TiedOrder, depth: int, threads: int) -> None:
    """Sort what is tied by its first `depth` bases, as far as it follows what has been sorted.

    Parameters
    ----------
    order : what is tied no more becomes SPLIT; ranks are not renewed
    """
    rows, tied, _ = order
    leaders = np.zeros(len(rows) // 64 + 1, np.uint64)
    groups = spans_of_groups(tied, len(rows), threads)
    on_threads(threads, lambda number: note_leaders(groups[number], rows, tied, leaders), len(groups))
    parts = spans_of(len(rows), threads * _PARTS if threads > 1 else 1, len(rows))

    def follow(number: int) -> None:
        begin, end = parts[number]
        chain, words = Chain.new(), _WORDS * (end - begin) + len(rows) // _LONG
        for span in steps(begin, end):
            words = follow_chains(text, depth, span, leaders, order, chain, words)

    on_threads(threads, follow, len(parts))

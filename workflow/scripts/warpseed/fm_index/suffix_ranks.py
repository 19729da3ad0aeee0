"""Sorting the suffixes of a packed text on the CPU: by ranks, what letters left tied.

Suffixes that are tied by their first h bases are sorted by the ranks of those that begin h bases later. `tied`, groups
and ranks are those of `warpseed.compute.groups`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64
from warpseed.compute.groups import (
    NO_BITS,
    SPLIT,
    TIED,
    border_behind,
    next_tie,
    set_state,
    settle_ties,
    spans_of_groups,
    turn_bits,
    turn_state,
)
from warpseed.compute.pipeline import check_wanted
from warpseed.compute.ranges import STEP, on_threads
from warpseed.compute.sorting import STACK, set_aside, sort_numbers, split_range
from warpseed.fm_index.suffix_chains import TiedOrder, sort_by_chains
from warpseed.fm_index.suffix_letters import Room
from warpseed.fm_index.text import PackedText

__all__ = ["sort_by_ranks", "sort_large_group", "sort_round"]

_ROOM = 1 << 16
"""Suffixes of a group, at most, that are sorted in a thread's own room."""


@scalar
def _sort_groups(ranks, depth, span, positions, tied, room):
    """Sort groups by the ranks of what begins `depth` bases later.

    Parameters
    ----------
    ranks : uint32[n], of positions
    span : (first, last), rows that no group leads out of

    Returns
    -------
    (row, ties) : it stopped before the group of this row, which has no room, or at the end; and how many ties are left
    """
    first, last = span
    ties, turned = int64(0), NO_BITS
    row = next_tie(tied, first + int64(1), last)
    while row < last:
        begin, end = row - int64(1), border_behind(tied, row)
        size = end - begin
        if size > room.elements.shape[0]:
            turn_bits(tied, turned)
            return begin, ties
        for i in range(size):
            position = uint64(positions[uint64(begin + i)])
            room.elements[uint64(i)] = (uint64(ranks[position + uint64(depth)]) << uint64(32)) | position
        sort_numbers(room.elements, int64(0), size, room.stack)
        positions[uint64(begin)] = uint32(room.elements[0])
        for i in range(int64(1), size):
            element = room.elements[uint64(i)]
            other = (element ^ room.elements[uint64(i - int64(1))]) >> uint64(32) != uint64(0)
            positions[uint64(begin + i)] = uint32(element)
            if other:
                turned = turn_state(tied, begin + i, TIED ^ SPLIT, turned)
            ties += int64(1) - int64(other)
        row = next_tie(tied, end, last)
    turn_bits(tied, turned)
    return last, ties


@inlined
def _rank_behind(group, i):
    ranks, depth, positions = group
    return uint64(ranks[uint64(positions[i]) + uint64(depth)])


@inlined
def _swap_rows(group, i, j):
    _, _, positions = group
    positions[i], positions[j] = positions[j], positions[i]


@scalar
def sort_large_group(ranks, depth, positions, tied, stack, budget):
    """Sort ranges of a group by the ranks of what begins `depth` bases later, as far as about `budget` steps lead.

    Parameters
    ----------
    stack : int64[STACK], of compute.sorting, how many ranges of rows are to be sorted, then first and last of each

    Returns
    -------
    int64, how many ties are gone; ranges that are left are on the stack
    """
    waiting = stack[0]
    gone = int64(0)
    while waiting > int64(0) and budget > int64(0):
        waiting -= int64(1)
        at = int64(1) + int64(2) * waiting
        first, last = stack[at], stack[at + int64(1)]
        while last - first > int64(1):
            budget -= last - first
            low, high = split_range((ranks, depth, positions), first, last, _rank_behind, _swap_rows)
            for border in (low, high):
                if first < border and border < last:
                    set_state(tied, border, SPLIT)
                    gone += int64(1)
            first, last = set_aside(stack, at, (first, low), (high, last))
            waiting, at = waiting + int64(1), at + int64(2)
    stack[0] = waiting
    return gone


def sort_by_ranks(text: PackedText, order: TiedOrder, depth: int, threads: int) -> None:
    """Sort what is tied by its first `depth` bases, until nothing is: as far as chains lead, then by ranks.

    Parameters
    ----------
    order : its ranks are filled
    """
    follow = partial(sort_by_chains, text, order, depth, threads)
    in_round = partial(sort_round, order, threads)
    settle_ties(order.rows, order.tied, order.ranks, depth, in_round, threads, follow)


def sort_round(of: TiedOrder, threads: int, depth: int) -> int:
    """Sort all groups once, by the ranks of what begins `depth` places later; returns how many ties are left."""
    spans = spans_of_groups(of.tied, len(of.rows), threads)

    def sort(number: int) -> int:
        first, last = spans[number]
        ties, room = 0, Room.of(_ROOM)
        while first < last:
            check_wanted()
            first, left = _sort_groups(of.ranks, depth, (first, last), of.rows, of.tied, room)
            ties += left
            if first < last:
                end = border_behind(of.tied, first + 1)
                ties += _sort_in_steps(of, depth, first, end)
                first = end
        return ties

    return sum(on_threads(threads, sort, len(spans)))


def _sort_in_steps(of: TiedOrder, depth: int, begin: int, end: int) -> int:
    """Sort a group that no room is large enough for; returns how many ties are left."""
    stack = np.zeros(STACK, np.int64)
    stack[:3] = 1, begin, end
    gone = 0
    while stack[0]:
        check_wanted()
        gone += sort_large_group(of.ranks, depth, of.rows, of.tied, stack, STEP)
    return end - begin - 1 - gone

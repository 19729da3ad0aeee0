"""Steps of the fast tier on the CPU: ties that letters did not settle, by prefix doubling.

Every conjugate has a rank, that of the first one it is tied with. Conjugates that are tied by their first h letters are
sorted by the ranks of those that begin h letters later in their words. In a round all are sorted by the ranks before
the round. `tied`, groups and ranks are those of `warpseed.compute.groups`; EQUAL is the first tie of a group of equal
conjugates, until these are in their order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.groups import (
    EQUAL,
    NO_BITS,
    SPLIT,
    TIED,
    UNTIED,
    border_behind,
    next_tie,
    set_state,
    state_of,
    turn_bits,
    turn_state,
)
from warpseed.compute.sorting import sort_all

__all__ = [
    "KnownRanks",
    "keys_of_order",
    "keys_of_ranks",
    "known_words",
    "sort_groups",
    "word_of",
]

_HINT_SHIFT = 6
"""log2 of the positions that share a hint."""


class KnownRanks(NamedTuple):
    """Positions and their ranks."""

    ranks: np.ndarray
    """uint32[N] or uint64[N], of the conjugate at each position"""
    offsets: np.ndarray
    """int64[m + 1], of the words"""
    hints: np.ndarray
    """int64[…], the word of every 64th position, and the last word"""
    ranked: np.ndarray
    """int64[m], as of Laid"""


_NOTHING = np.empty(0, np.uint32)


def known_words(offsets: np.ndarray, ranks: np.ndarray = _NOTHING, ranked: np.ndarray = _NOTHING) -> KnownRanks:
    """Which positions belong to which words, by `offsets`; with what else is known of them."""
    every = np.arange(0, int(offsets[-1]) + (1 << _HINT_SHIFT), 1 << _HINT_SHIFT)
    hints = np.minimum(np.searchsorted(offsets, every, side="right") - 1, len(offsets) - 2)
    return KnownRanks(ranks, offsets, hints, ranked)


@inlined
def word_of(known, position):
    """The word of a position, int64."""
    hint = uint64(position) >> uint64(_HINT_SHIFT)
    low, high = known.hints[hint], known.hints[hint + uint64(1)]
    while low < high:
        middle = (low + high + int64(1)) >> int64(1)
        if known.offsets[uint64(middle)] <= position:
            low = middle
        else:
            high = middle - int64(1)
    return low


@inlined
def _rank_behind(known, position, depth):
    """(rank, length): the rank of the conjugate that begins `depth` letters later, and the length of the word."""
    word = word_of(known, position)
    start = known.offsets[uint64(word)]
    length = known.offsets[uint64(word + int64(1))] - start
    offset = uint64(position - start + depth) % uint64(length)
    return uint64(known.ranks[uint64(start) + offset]), length


@inlined
def _order_key(known, position):
    """As `fast.order_key`, of a position."""
    word = uint64(word_of(known, position))
    return uint64(known.ranked[word] + position - known.offsets[word])


@scalar
def keys_of_ranks(known, depth, positions, span, keys):
    """The ranks of the conjugates that begin `depth` letters behind ``positions[first:last]``; returns the longest
    word's length."""
    first, last = span
    longest = int64(0)
    for i in range(first, last):
        keys[uint64(i)], length = _rank_behind(known, int64(positions[uint64(i)]), depth)
        longest = max(longest, length)
    return longest


@scalar
def keys_of_order(known, positions, span, keys):
    """What equal conjugates at ``positions[first:last]`` are ordered by."""
    first, last = span
    for i in range(first, last):
        keys[uint64(i)] = _order_key(known, int64(positions[uint64(i)]))


@inlined
def _fetch_groups(known, depth, span, order, tied, room):
    """The keys of the groups whose first ties are in [first, last), one behind the other, as far as there is room.

    A group of equal conjugates gets what these are ordered by, and its first tie becomes EQUAL.

    Returns
    -------
    the first tie of the group that it stopped at, or the end
    """
    first, last = span
    used = int64(0)
    while first < last:
        begin, end, longest = used, border_behind(tied, first), int64(0)
        used += end - first + int64(1)
        if used > room.keys.shape[0]:
            return first
        for i in range(begin, used):
            position = order[uint64(first - int64(1) + i - begin)]
            room.places[uint64(i)] = position
            if depth >= int64(0):
                room.keys[uint64(i)], length = _rank_behind(known, int64(position), depth)
                longest = max(longest, length)
        if depth >= int64(2) * longest or depth < int64(0):
            set_state(tied, first, EQUAL)
            for i in range(begin, used):
                room.keys[uint64(i)] = _order_key(known, int64(room.places[uint64(i)]))
        first = next_tie(tied, end, last)
    return last


@scalar
def sort_groups(known, depth, span, order, tied, room):
    """Sort the groups that begin in the ranks [first, last), of which no group leads out, by ranks.

    Parameters
    ----------
    depth : letters by which all are tied, or below 0 where all are equal
    room : of cpu_fast

    Returns
    -------
    (rank, splits) : it stopped at the group of this rank, which has no room, or at the end; and how many ties are gone
    """
    first, last = span
    splits = int64(0)
    first = next_tie(tied, first + int64(1), last)
    while first < last:
        stop = _fetch_groups(known, depth, (first, last), order, tied, room)
        if stop == first:
            return first - int64(1), splits
        begin, turned = int64(0), NO_BITS
        while first < stop:
            equal, end = state_of(tied, first) == uint64(EQUAL), border_behind(tied, first)
            size = end - first + int64(1)
            sort_all(room.keys, room.places, begin, begin + size, room.stack)
            order[uint64(first - int64(1))] = room.places[uint64(begin)]
            for i in range(1, size):
                at = uint64(begin + i)
                other = room.keys[at] != room.keys[at - uint64(1)]
                rank = first + i - int64(1)
                order[uint64(rank)] = room.places[at]
                # (The ranks of those that are equal stay the same.)
                if equal:
                    turned = turn_state(tied, rank, (EQUAL if i == int64(1) else TIED) ^ UNTIED, turned)
                elif other:
                    turned = turn_state(tied, rank, TIED ^ SPLIT, turned)
                splits += int64(other)
            begin += size
            first = next_tie(tied, end, stop)
        turn_bits(tied, turned)
    return last, splits

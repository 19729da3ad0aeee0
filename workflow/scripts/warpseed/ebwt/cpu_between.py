"""Kernels that count between how many ranks of a word another one has some.

The ranks between two of a word that follow each other are a *gap* of it, and which of IN_SET words, the *members*, have
a rank there is a set. Time stands still where no member has a rank: a rank's *time* is how many ranks of members there
are before it, and a gap is from one time to another. Sets of the members from a time to the end of its block of TIMES,
and from the block's beginning to a time, are made once, and those of blocks are joined by twos, fours, eights, … So a
gap is four sets, however long it is.

Ranks are worked on in slabs, whose sets stay in a cache near by, and word by word in each. What is behind a word's last
rank in a slab is kept for the next one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bit_sets import (
    IN_SET,
    PLANES,
    SET,
    added,
    both,
    empty_set,
    put_set,
    set_at,
    take_counts,
    with_number,
)
from warpseed.compute.compiled import inlined, int64, scalar, uint8, uint64
from warpseed.compute.intrinsics import leading_zeros

__all__ = ["ADDED", "TIMES", "Gaps", "count_rest", "count_slab", "open_words"]

_TIMES_BITS = 4
TIMES = 1 << _TIMES_BITS
"""Of a block: where a gap is within one its members are looked at one by one."""
ADDED = 8
"""Sets that are added to planes at once."""
_COUNTED = (1 << PLANES) - ADDED
"""What planes count at most before so many are added."""
_LEAST_STEP = 64
"""Ranks that are worth to be added to a slab."""


class Gaps(NamedTuple):
    """What a thread counts in: gaps of the first k words, by which of the members are in them."""

    begun: np.ndarray
    """uint8[k], whether a word had a rank"""
    opened: np.ndarray
    """uint64[k * SET], the members behind the last rank of each word before a slab"""
    planes: np.ndarray
    """uint64[k * PLANES * SET], what was counted of each word"""
    known: np.ndarray
    """uint8[k], the gaps that are in planes"""
    counts: np.ndarray
    """uint32[k * IN_SET], what was taken from planes"""
    places: np.ndarray
    """int64[m], where the times of each of the k words end, and how many ranks of others were passed over"""
    picked: np.ndarray
    """uint16[r + 1] or uint32[r + 1], the words of ranks of a slab"""
    times: np.ndarray
    """uint16[r], the times of these ranks, word by word"""
    members: np.ndarray
    """uint16[t + 1], the members that have a rank, in order, each less the first one"""
    near: np.ndarray
    """uint64[(t + 1) * 2 * SET], at each time the members since its block began, and those to the block's end"""
    joined: np.ndarray
    """uint64[1 + levels, blocks * SET], at each block the empty set, and those of the 1, 2, 4, … blocks up to it"""
    waiting: np.ndarray
    """uint64[ADDED * SET], sets that are counted together"""


@inlined
def _pick(colours, span, first_word, gaps):
    """Take the ranks of these words for a slab, from a span's first on, and count those of each word.

    Returns
    -------
    int64, int64 : how many were taken, and the rank behind them
    """
    first, last = span
    words, ranks, times = int64(gaps.begun.shape[0]), int64(gaps.times.shape[0]), int64(0)
    count, rank = int64(0), int64(first)
    for each in range(int64(gaps.places.shape[0])):
        gaps.places[uint64(each)] = 0
    while True:
        step = min(min(int64(gaps.members.shape[0]) - int64(1) - times, ranks - count), last - rank)
        if step < int64(_LEAST_STEP) and rank > first and (step < last - rank or step == int64(0)):
            break
        for i in range(step):
            word = int64(colours[uint64(rank + int64(i))])
            gaps.picked[uint64(count)] = word
            count += int64(word < words)
            gaps.places[uint64(word)] += 1
        rank += step
        times = int64(0)
        for member in range(int64(first_word), words):
            times += int64(gaps.places[uint64(member)])
    return count, rank


@inlined
def _deal_out(first_word, gaps, count):
    """The times of the ranks that were taken, word by word, and the members in order; the last time."""
    end = int64(0)
    for word in range(int64(gaps.begun.shape[0])):
        here = int64(gaps.places[uint64(word)])
        gaps.places[uint64(word)] = end
        end += here
    time = int64(0)
    for i in range(count):
        word = int64(gaps.picked[uint64(i)])
        place = int64(gaps.places[uint64(word)])
        gaps.places[uint64(word)] = place + int64(1)
        gaps.times[uint64(place)] = time
        gaps.members[uint64(time)] = word - int64(first_word)
        time += int64(word >= int64(first_word))
    gaps.members[uint64(time)] = IN_SET
    return time


@inlined
def _make_sets(gaps, end):
    """Sets of all blocks up to a time."""
    for first in range(int64(0), end + int64(1), int64(TIMES)):
        last = min(int64(first) + int64(TIMES), end + int64(1))
        some = empty_set()
        for time in range(int64(first), last):
            put_set(some, gaps.near, int64(time) * int64(2 * SET))
            some = with_number(some, uint64(gaps.members[uint64(time)]))
        some = empty_set()
        for back in range(last - int64(first)):
            time = last - int64(1) - int64(back)
            some = with_number(some, uint64(gaps.members[uint64(time)]))
            put_set(some, gaps.near, time * int64(2 * SET) + int64(SET))
        block, row = int64(first) >> int64(_TIMES_BITS), int64(gaps.joined.shape[1])
        put_set(some, gaps.joined, row + block * int64(SET))
        for number in range(int64(2), int64(gaps.joined.shape[0])):
            half = int64(1) << (int64(number) - int64(2))
            if block + int64(1) < half + half:
                break
            some = both(some, set_at(gaps.joined, (int64(number) - int64(1)) * row + (block - half) * int64(SET)))
            put_set(some, gaps.joined, int64(number) * row + block * int64(SET))


@inlined
def _between(gaps, start, stop):
    """The members from one time to another."""
    first, last = start >> int64(_TIMES_BITS), stop >> int64(_TIMES_BITS)
    some = empty_set()
    if first == last:
        for time in range(start, stop):
            some = with_number(some, uint64(gaps.members[uint64(time)]))
    else:
        some = both(set_at(gaps.near, start * int64(2 * SET) + int64(SET)), set_at(gaps.near, stop * int64(2 * SET)))
        # Of no blocks row 0 has the set, twice.
        number = int64(64) - leading_zeros(uint64(last - first - int64(1)))
        row = number * int64(gaps.joined.shape[1])
        half = (int64(1) << number) >> int64(1)
        one, other = (
            set_at(gaps.joined, row + (last - int64(1)) * int64(SET)),
            set_at(gaps.joined, row + (first + half) * int64(SET)),
        )
        some = both(both(some, one), other)
    return some


@inlined
def _added(planes, sets):
    """Count ADDED sets."""
    p0, p1, p2, p3, p4, p5, p6, p7 = planes
    a, b, c, d, e, f, g, h = sets
    p0, a = added(p0, a, b)
    p0, c = added(p0, c, d)
    p0, e = added(p0, e, f)
    p0, g = added(p0, g, h)
    p1, a = added(p1, a, c)
    p1, e = added(p1, e, g)
    p2, a = added(p2, a, e)
    none = empty_set()
    p3, a = added(p3, a, none)
    p4, a = added(p4, a, none)
    p5, a = added(p5, a, none)
    p6, a = added(p6, a, none)
    p7, a = added(p7, a, none)
    return p0, p1, p2, p3, p4, p5, p6, p7


@inlined
def _sets_at(array, place):
    """Eight sets that follow each other."""
    step = int64(SET)
    a, b = set_at(array, place), set_at(array, place + step)
    c, d = set_at(array, place + int64(2) * step), set_at(array, place + int64(3) * step)
    e, f = set_at(array, place + int64(4) * step), set_at(array, place + int64(5) * step)
    return a, b, c, d, e, f, set_at(array, place + int64(6) * step), set_at(array, place + int64(7) * step)


@inlined
def _put_sets(sets, array, place):
    """Write eight sets, one behind the other."""
    step = int64(SET)
    a, b, c, d, e, f, g, h = sets
    put_set(a, array, place)
    put_set(b, array, place + step)
    put_set(c, array, place + int64(2) * step)
    put_set(d, array, place + int64(3) * step)
    put_set(e, array, place + int64(4) * step)
    put_set(f, array, place + int64(5) * step)
    put_set(g, array, place + int64(6) * step)
    put_set(h, array, place + int64(7) * step)


@inlined
def _gap_at(gaps, at, own):
    """The members in the gap that ends at a place of the times, where the one before it is of the same word."""
    return _between(gaps, int64(gaps.times[uint64(at - int64(1))]) + own, int64(gaps.times[uint64(at)]))


@inlined
def _count_word(first_word, gaps, word, places, end):
    """Count the gaps of a word that end in a slab, which are at the places [first, last) of the times."""
    at, last = places
    own = int64(word >= int64(first_word))
    waits = int64(0)
    if at == last:
        if gaps.begun[uint64(word)]:
            opened = both(set_at(gaps.opened, word * int64(SET)), _between(gaps, int64(0), end))
            put_set(opened, gaps.opened, word * int64(SET))
        return
    if gaps.begun[uint64(word)]:
        some = both(set_at(gaps.opened, word * int64(SET)), _between(gaps, int64(0), int64(gaps.times[uint64(at)])))
        put_set(some, gaps.waiting, int64(0))
        waits = int64(1)
    gaps.begun[uint64(word)] = 1
    at += int64(1)
    place, known = word * int64(PLANES * SET), int64(gaps.known[uint64(word)])
    planes = _sets_at(gaps.planes, place)
    while at + int64(ADDED) <= last:
        a, b = _gap_at(gaps, at, own), _gap_at(gaps, at + int64(1), own)
        c, d = _gap_at(gaps, at + int64(2), own), _gap_at(gaps, at + int64(3), own)
        e, f = _gap_at(gaps, at + int64(4), own), _gap_at(gaps, at + int64(5), own)
        planes = _added(
            planes, (a, b, c, d, e, f, _gap_at(gaps, at + int64(6), own), _gap_at(gaps, at + int64(7), own))
        )
        at += int64(ADDED)
        known += int64(ADDED)
        if known >= int64(_COUNTED):
            _put_sets(planes, gaps.planes, place)
            take_counts(gaps.planes, place, gaps.counts, word * int64(IN_SET))
            planes = _sets_at(gaps.planes, place)
            known = int64(0)
    while at < last:
        put_set(_gap_at(gaps, at, own), gaps.waiting, waits * int64(SET))
        at += int64(1)
        waits += int64(1)
    known += waits
    for slot in range(waits, int64(ADDED)):
        put_set(empty_set(), gaps.waiting, int64(slot) * int64(SET))
    planes = _added(planes, _sets_at(gaps.waiting, int64(0)))
    _put_sets(planes, gaps.planes, place)
    if known >= int64(_COUNTED):
        take_counts(gaps.planes, place, gaps.counts, word * int64(IN_SET))
        known = int64(0)
    gaps.known[uint64(word)] = known
    put_set(_between(gaps, int64(gaps.times[uint64(last - int64(1))]) + own, end), gaps.opened, word * int64(SET))


@scalar
def count_slab(colours, span, first_word, gaps):
    """Count the gaps that end in a slab, of words that have a rank before.

    Parameters
    ----------
    colours : uint16[N] or uint32[N], the word of each rank
    span : the ranks [first, last), with which the slab begins
    first_word : the first member

    Returns
    -------
    int64, the rank behind the slab
    """
    count, rank = _pick(colours, span, first_word, gaps)
    end = _deal_out(first_word, gaps, count)
    _make_sets(gaps, end)
    first = int64(0)
    for word in range(int64(gaps.begun.shape[0])):
        last = int64(gaps.places[uint64(word)])
        _count_word(first_word, gaps, int64(word), (first, last), end)
        first = last
    return rank


@scalar
def open_words(latest, first_word, gaps):
    """Open the words that have a rank before those that are worked on.

    Parameters
    ----------
    latest : int64[], these words, of all, by their last ranks, the last of them first
    """
    some, words = empty_set(), int64(gaps.begun.shape[0])
    for i in range(int64(latest.shape[0])):
        word = int64(latest[uint64(i)])
        if word < words:
            put_set(some, gaps.opened, word * int64(SET))
            gaps.begun[uint64(word)] = 1
        some = with_number(some, uint64(word) - uint64(first_word))


@scalar
def count_rest(gaps):
    """Take what is in planes."""
    for word in range(int64(gaps.known.shape[0])):
        if gaps.known[uint64(word)]:
            take_counts(gaps.planes, int64(word) * int64(PLANES * SET), gaps.counts, int64(word) * int64(IN_SET))
            gaps.known[uint64(word)] = uint8(0)

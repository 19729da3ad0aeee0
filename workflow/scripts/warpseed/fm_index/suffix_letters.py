"""Steps of sorting the suffixes of a packed text on the CPU: by letters.

A suffix ends where its segment does; what is equal up to there stands in the order of lengths, then of positions.
A bucket (`suffix_buckets.py`) is sorted by keys, and what is tied then by the bases behind: two suffixes by comparing
them, more by the next bases of all, round for round. What is tied still after some work is left to ranks
(`suffix_ranks.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import inlined, int64, scalar, uint8, uint32, uint64
from warpseed.compute.groups import write_states
from warpseed.compute.intrinsics import prefetch
from warpseed.compute.sorting import STACK, sort_all, sort_numbers
from warpseed.fm_index.table import mark_row
from warpseed.fm_index.text import segment_end

__all__ = [
    "ROOM_BYTES",
    "ROUND",
    "Room",
    "compare_suffixes",
    "sort_bucket",
    "sort_few",
    "work_for",
]

ROOM_BYTES = 21
"""Of a Room, for each suffix."""
_KEY_BASES = 16
"""Bases of a key."""
_DIGITS = 1 << 12
"""Of a bucket's first pass."""
_MANY = 1 << 10
"""Of a pass over many suffixes whose keys begin alike: two passes take the 20 bits that are left of a key."""
ROUND = 28
"""Bases that ties are sorted by at once: a number has them above the length, if it is not larger."""
_LENGTH = np.uint64(63)
_SMALL = 2
"""Tied suffixes that are compared with each other: more are sorted sooner by what is fetched of each."""
_AHEAD = 16
"""Tied suffixes between the one that is read and the one whose bases are asked for."""
_WORK = 4
"""Words that may be compared or fetched, by the size of a bucket, before its ties are left to ranks."""
_LITTLE = 1 << 14
"""More of them: few suffixes that are tied by many bases are soon sorted."""
_GOES_ON = np.uint64(1 << 63)


class Room(NamedTuple):
    """What a thread sorts in; an element is a number to sort by, above the position of a suffix."""

    elements: np.ndarray
    """uint64[m]"""
    others: np.ndarray
    """uint64[m]"""
    counts: np.ndarray
    """int64[_DIGITS]"""
    digits: np.ndarray
    """int64[_MANY]"""
    rows: np.ndarray
    """uint32[m], of what is tied in a bucket, ascending, from its first on"""
    tied: np.ndarray
    """uint8[m], states of the rows of a bucket, from its first on"""
    stack: np.ndarray
    """int64[STACK], of compute.sorting"""

    @classmethod
    def of(cls, size: int) -> Room:
        """Room for so many suffixes."""
        elements, others = np.empty((2, size), np.uint64)
        rows, tied = np.empty(size, np.uint32), np.empty(size, np.uint8)
        counts, digits = np.empty(_DIGITS, np.int64), np.empty(_MANY, np.int64)
        return cls(elements, others, counts, digits, rows, tied, np.empty(STACK, np.int64))


@scalar
def compare_suffixes(text, first, second, depth, words):
    """Compare suffixes that are tied by `depth` bases.

    Returns
    -------
    (order, left) : below 0 where the first comes before, above 0 where the second does, 0 where they were equal as far
    as `words` led; and how many words are left of these
    """
    ends = segment_end(text.segments, first), segment_end(text.segments, second)
    left = min(ends[0] - first, ends[1] - second) - depth
    i, j = first + depth, second + depth
    while left > int64(0) and words > int64(0):
        mask = prefix_mask(left)
        a, b = fetch_word(text.words, i) & mask, fetch_word(text.words, j) & mask
        if a != b:
            return int64(-1) if a < b else int64(1), words
        i += int64(32)
        j += int64(32)
        left -= int64(32)
        words -= int64(1)
    if left > int64(0):
        return int64(0), words
    lengths = ends[0] - first, ends[1] - second
    before = lengths[0] < lengths[1] or (lengths[0] == lengths[1] and first < second)
    return int64(-1) if before else int64(1), words


@inlined
def sort_few(text, depth, span, positions, words):
    """Sort the tied suffixes of the rows [first, last) by comparing them; returns how many words are left to compare,
    0 where these were too few."""
    first, last = span
    for row in range(first + int64(1), last):
        position = positions[uint64(row)]
        at, order = row, int64(-1)
        while at > first and order < int64(0):
            other = positions[uint64(at) - uint64(1)]
            order, words = compare_suffixes(text, int64(position), int64(other), depth, words)
            if order == int64(0):
                break
            if order < int64(0):
                positions[uint64(at)] = other
                at -= int64(1)
        positions[uint64(at)] = position
        if order == int64(0):
            return int64(0)
    return words


@inlined
def _end_of_group(count, first, room):
    """Where the group ends that begins with the `first` of the noted rows."""
    last = first + int64(1)
    while last < count and room.tied[uint64(room.rows[uint64(last)])] != uint8(0):
        last += int64(1)
    return last


@inlined
def _ask_ahead(text, depth, i, count, begin, positions, room):
    """Ask for what will be read, behind `depth` bases, of a suffix some way behind the i-th of the noted rows."""
    if i + int64(_AHEAD) < count:
        position = int64(positions[uint64(begin) + uint64(room.rows[uint64(i + int64(_AHEAD))])])
        prefetch(text.words, (position + depth) >> int64(5))


@inlined
def _settle_few(text, depth, count, begin, positions, room, words):
    """Sort those of the noted groups that are small; returns how many suffixes are tied still, whose rows are noted,
    and how many words are left to compare."""
    left = int64(0)
    first = int64(0)
    while first < count:
        last = _end_of_group(count, first, room)
        for i in range(first, last):
            _ask_ahead(text, depth, i, count, begin, positions, room)
        if last - first <= int64(_SMALL) and words > int64(0):
            row = int64(room.rows[uint64(first)])
            words = sort_few(text, depth, (begin + row, begin + row + last - first), positions, words)
            if words > int64(0):
                for i in range(int64(1), last - first):
                    room.tied[uint64(row + i)] = 0
                first = last
        while first < last:
            room.rows[uint64(left)] = room.rows[uint64(first)]
            left += int64(1)
            first += int64(1)
    return left, words


@inlined
def _fetch_ties(text, depth, count, begin, positions, room):
    """What tied suffixes are sorted by behind `depth` bases."""
    for i in range(count):
        _ask_ahead(text, depth, i, count, begin, positions, room)
        position = int64(positions[uint64(begin) + uint64(room.rows[uint64(i)])])
        left = segment_end(text.segments, position) - position - depth
        room.elements[uint64(i)] = uint64(position)
        if left <= int64(0):
            # It ends, as all do that have no more than `depth` bases: none is equal, and all come before the others.
            room.others[uint64(i)] = (uint64(left + depth) << uint64(32)) | uint64(position)
        else:
            word = fetch_word(text.words, position + depth) & prefix_mask(left)
            length = uint64(min(left, int64(ROUND) + int64(1)))
            room.others[uint64(i)] = _GOES_ON | ((word >> uint64(8)) << uint64(6)) | length


@inlined
def _sort_ties(count, begin, positions, room):
    """Sort tied suffixes by what was fetched; returns how many are tied still, whose rows are noted."""
    left = int64(0)
    first = int64(0)
    while first < count:
        row = int64(room.rows[uint64(first)])
        last = _end_of_group(count, first, room)
        sort_all(room.others, room.elements, first, last, room.stack)
        start = first
        while start < last:
            # Those that are equal.
            stop = start + int64(1)
            number = room.others[uint64(start)]
            while stop < last and room.others[uint64(stop)] == number:
                stop += int64(1)
            ended = (number & _LENGTH) <= uint64(ROUND)
            if ended and stop - start > int64(1):
                sort_numbers(room.elements, start, stop, room.stack)
            for i in range(start, stop):
                at = row + i - first
                positions[uint64(begin + at)] = uint32(room.elements[uint64(i)])
                room.tied[uint64(at)] = uint8(i > start and not ended)
            if not ended and stop - start > int64(1):
                for i in range(start, stop):
                    room.rows[uint64(left)] = uint32(row + i - first)
                    left += int64(1)
            start = stop
        first = last
    return left


@inlined
def _deal_by_digit(from_, to, first, last, shift, counts):
    """Bring elements from one room to another in the order of ten of their bits, those with the same ones as they
    stand."""
    for digit in range(_MANY):
        counts[uint64(digit)] = 0
    for i in range(first, last):
        counts[(from_[uint64(i)] >> shift) & uint64(_MANY - 1)] += int64(1)
    place = first
    for digit in range(_MANY):
        count = counts[uint64(digit)]
        counts[uint64(digit)] = place
        place += count
    for i in range(first, last):
        element = from_[uint64(i)]
        digit = (element >> shift) & uint64(_MANY - 1)
        to[uint64(counts[digit])] = element
        counts[digit] += int64(1)


@inlined
def _sort_digit(first, last, room):
    """Sort elements whose keys have the same first bases, and that are in the order of positions."""
    if last - first > int64(_MANY):
        _deal_by_digit(room.elements, room.others, first, last, uint64(32), room.digits)
        _deal_by_digit(room.others, room.elements, first, last, uint64(42), room.digits)
    else:
        sort_numbers(room.elements, first, last, room.stack)


@inlined
def _sort_by_keys(begin, end, positions, keys, room):
    """Sort a bucket by keys, of equal ones by positions; returns how many suffixes are tied, whose rows are noted."""
    for digit in range(_DIGITS):
        room.counts[uint64(digit)] = 0
    for i in range(end - begin):
        room.counts[uint64(keys[uint64(i)]) >> uint64(20)] += int64(1)
    total = int64(0)
    for digit in range(_DIGITS):
        count = room.counts[uint64(digit)]
        room.counts[uint64(digit)] = total
        total += count
    for i in range(end - begin):
        key = uint64(keys[uint64(i)])
        place = room.counts[key >> uint64(20)]
        room.counts[key >> uint64(20)] = place + int64(1)
        room.elements[uint64(place)] = (key << uint64(32)) | uint64(positions[uint64(begin + i)])
    first = int64(0)
    for digit in range(_DIGITS):
        last = room.counts[uint64(digit)]
        if last - first > int64(1):
            _sort_digit(first, last, room)
        first = last
    ties = int64(0)
    before, was_tied = ~room.elements[0], False
    for i in range(end - begin):
        element = room.elements[uint64(i)]
        same = (element ^ before) >> uint64(32) == uint64(0)
        positions[uint64(begin + i)] = uint32(element)
        room.tied[uint64(i)] = uint8(same)
        if same:
            if not was_tied:
                room.rows[uint64(ties)] = uint32(i - int64(1))
                ties += int64(1)
            room.rows[uint64(ties)] = uint32(i)
            ties += int64(1)
        before, was_tied = element, same
    return ties


@inlined
def _has_ended(text, depth, ties, room):
    """Whether a suffix that is tied by its key has less than `depth` bases; A stands for what it lacks."""
    for i in range(ties):
        element = room.elements[uint64(room.rows[uint64(i)])]
        if (element >> uint64(32)) & uint64(3) == uint64(0):
            position = int64(uint32(element))
            if segment_end(text.segments, position) - position < depth:
                return True
    return False


def work_for(size: int) -> int:
    """Words that may be compared or fetched in a bucket of so many suffixes, before its ties are left to ranks."""
    return _WORK * size + _LITTLE


@scalar
def sort_bucket(text, prefix, bucket, positions, keys, tied, marks, room):
    """Sort a bucket by letters.

    Parameters
    ----------
    prefix : bases that its suffixes share
    bucket : its first row, the row behind its last, the word where its marks begin, and how many words may be compared
        or fetched for it, see `work_for`; with 0, ties are left as they are if they have all bases of keys
    positions : uint32[n], in rows
    keys : uint32[...], of the bucket's rows
    tied : uint64[n // 32 + 1], of compute.groups, UNTIED; only what is left tied is written
    marks : of the table; without words where none is made
    room : of at least so many elements

    Returns
    -------
    int64, by how many bases what is tied still is tied; 0 where nothing is
    """
    begin, end, begin_of_marks, work = bucket
    ties = _sort_by_keys(begin, end, positions, keys, room)
    if marks.words.shape[0] > 0:
        shift = uint64(64) - uint64(2) * uint64(marks.bases)
        for i in range(end - begin):
            code = (room.elements[uint64(i)] >> uint64(1)) >> (shift - uint64(1))
            mark_row(marks, begin_of_marks, code, i, uint64(1))
    depth = int64(prefix) + int64(_KEY_BASES)
    if work == int64(0) and _has_ended(text, depth, ties, room):
        work = int64(1)
    while ties > int64(0) and work > int64(0):
        # (A tie that is left has `depth` bases, whatever was compared.)
        ties, work = _settle_few(text, depth, ties, begin, positions, room, work)
        work -= ties
        _fetch_ties(text, depth, ties, begin, positions, room)
        ties = _sort_ties(ties, begin, positions, room)
        depth += int64(ROUND)
    if ties > int64(0):
        write_states(tied, begin, end, room.tied)
    return depth if ties > int64(0) else int64(0)

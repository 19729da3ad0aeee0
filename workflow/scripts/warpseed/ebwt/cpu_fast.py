"""Steps of the fast tier on the CPU: ω-order by letters.

Conjugates are dealt out to buckets by their first letters, and each bucket is sorted by the key behind these. What is
tied then is sorted by the keys behind, until all letters that can differ were seen, or for so many rounds. What is tied
then is noted in the states of `warpseed.compute.groups`, SPLIT where two conjugates are equal, and in their order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint8, uint64
from warpseed.compute.groups import EQUAL, NO_BITS, SPLIT, TIED, UNTIED, turn_bits, turn_state, write_states
from warpseed.compute.searching import owner_of
from warpseed.compute.sorting import sort_all
from warpseed.ebwt.fast import fetch_key, key_behind, order_key, position_of

__all__ = [
    "DIGITS", "ROUNDS", "Cut", "Room", "deal_out", "fetch_keys", "lay_out", "mark_ties", "note_codes",
    "sort_buckets", "turn_to_positions",
]  # fmt: skip

ROUNDS = 8
"""Times that ties are sorted by their next letters, at most."""
DIGITS = 1 << 12
"""Digits of a bucket's first pass, at most."""


class Cut(NamedTuple):
    """What conjugates are dealt out by: their first letters, as a number in the base of the letters."""

    code_of: np.ndarray
    """uint8[256], of each code its number among those that occur"""
    base: int
    """how many letters occur"""
    prefix: int
    """how many first letters"""
    power: int
    """base ** prefix, the number of buckets"""
    long: bool
    """whether words are so long that ties which few letters settle are left to ranks"""


class Room(NamedTuple):
    """What a thread sorts in."""

    keys: np.ndarray
    """uint64[n]"""
    places: np.ndarray
    """uint32[n] or uint64[n]"""
    other_keys: np.ndarray
    """uint64[n]"""
    other_places: np.ndarray
    """as places"""
    tied: np.ndarray
    """uint8[n], states of the conjugates of a bucket"""
    counts: np.ndarray
    """uint32[DIGITS]"""
    stack: np.ndarray
    """int64[STACK]"""
    digits: np.ndarray
    """uint16[65536], of each upper quarter of a key how many smaller ones there can be"""


@scalar
def note_codes(codes, span, noted):
    """Set ``noted[code]`` of the codes at the positions [first, last)."""
    first, last = span
    for i in range(first, last):
        noted[uint64(codes[uint64(i)])] = 1


@scalar
def lay_out(codes, code_of, span, laid):
    """Fill ``text[first:last]``, and whose letters they are.

    Parameters
    ----------
    codes : uint8[N], of the words
    code_of : of a Cut
    span : (first, last)
    """
    first, last = span
    if first == last:
        return
    shift = uint64(laid.shift)
    letters = uint64(1) << shift
    width = uint64(64) >> shift
    word = owner_of(laid.starts, int64(uint64(first) << shift))
    i = first
    while i < last:
        start, end = uint64(laid.offsets[word]), uint64(laid.offsets[word + int64(1)])
        stop = min(last, laid.starts[word + int64(1)] >> int64(laid.shift))
        position = start + ((uint64(i) << shift) - uint64(laid.starts[word])) % (end - start)
        for at in range(i, stop):
            key = uint64(0)
            for _ in range(letters):
                key = (key << width) | uint64(code_of[codes[position]])
                position += uint64(1)
                if position == end:
                    position = start
            laid.text[uint64(at)] = key
            laid.word_of[uint64(at)] = word
        i = stop
        word += int64(1)


@scalar
def deal_out(codes, cut, laid, span, counts, order):
    """Deal out the conjugates at the positions [first, last).

    Parameters
    ----------
    counts : int64[cut.power], where the next one of each bucket goes in `order`; it moves on
    order : filled with their places; uint32[0] or uint64[0] only counts
    """
    first, last = span
    prefix, base, power = uint64(cut.prefix), uint64(cut.base), uint64(cut.power)
    placing = order.shape[0] > 0
    word = owner_of(laid.offsets, first)
    position = uint64(first)
    while position < uint64(last):
        start, end = uint64(laid.offsets[word]), uint64(laid.offsets[word + int64(1)])
        place = position - start + uint64(laid.starts[word])
        bucket, ahead = uint64(0), position
        for _ in range(prefix):
            bucket = bucket * base + uint64(cut.code_of[codes[ahead]])
            ahead += uint64(1)
            if ahead == end:
                ahead = start
        stop = min(end, uint64(last))
        while position < stop:
            if placing:
                order[uint64(counts[bucket])] = place
            counts[bucket] += int64(1)
            change = uint64(cut.code_of[codes[ahead]]) - power * uint64(cut.code_of[codes[position]])
            bucket = bucket * base + change
            position += uint64(1)
            place += uint64(1)
            ahead += uint64(1)
            if ahead == end:
                ahead = start
        word += int64(1)


@inlined
def _sort_bucket(laid, prefix, begin, end, order, room):
    """Sort a bucket by the keys behind the letters that all of it begin with; returns how many are tied."""
    size = end - begin
    # About as many digits as there are pairs, so that most have one or none.
    few, highest = uint64(0), uint64(room.digits[65535])
    while highest >= uint64(DIGITS) or highest > uint64(2) * uint64(size):
        few += uint64(1)
        highest >>= uint64(1)
    for digit in range(highest + uint64(1)):
        room.counts[uint64(digit)] = 0
    for i in range(size):
        place = order[uint64(begin + i)]
        key = fetch_key(laid, uint64(place) + uint64(prefix))
        room.other_keys[uint64(i)] = key
        room.other_places[uint64(i)] = place
        room.counts[uint64(room.digits[key >> uint64(48)]) >> few] += 1
    total = uint64(0)
    for digit in range(highest + uint64(1)):
        count = room.counts[uint64(digit)]
        room.counts[uint64(digit)] = total
        total += uint64(count)
    for i in range(size):
        key = room.other_keys[uint64(i)]
        digit = uint64(room.digits[key >> uint64(48)]) >> few
        to = uint64(room.counts[digit])
        room.counts[digit] = to + uint64(1)
        room.keys[to] = key
        room.places[to] = room.other_places[uint64(i)]
    first = int64(0)
    for digit in range(highest + uint64(1)):
        last = int64(room.counts[uint64(digit)])
        if last - first > int64(1):
            sort_all(room.keys, room.places, first, last, room.stack)
        first = last
    return _put_back(room, begin, size, order)


@inlined
def _put_back(room, begin, size, order):
    """Write sorted places to ``order[begin:]``, and note which are tied with those before; returns how many."""
    ties = int64(0)
    order[uint64(begin)] = room.places[0]
    room.tied[0] = uint8(UNTIED)
    for i in range(1, size):
        same = room.keys[uint64(i)] == room.keys[uint64(i - 1)]
        order[uint64(begin + i)] = room.places[uint64(i)]
        room.tied[uint64(i)] = uint8(TIED) if same else uint8(UNTIED)
        ties += int64(same)
    return ties


@inlined
def _fetch_next(laid, depth, begin, end, order, room):
    """The keys behind `depth` letters of all ties of a bucket, or what equal ones are ordered by: of these the first
    tie becomes EQUAL. (Keys are fetched apart from sorting, so that the CPU waits for many of them at once.)"""
    first = begin + int64(1)
    while first < end:
        if room.tied[uint64(first - begin)] != uint8(TIED):
            first += int64(1)
            continue
        head, longest = first - int64(1), int64(0)
        rank, tie = head, True
        while tie:
            place = order[uint64(rank)]
            key, length = key_behind(laid, place, depth)
            room.keys[uint64(rank - begin)] = key
            room.places[uint64(rank - begin)] = place
            longest = max(longest, length)
            rank += int64(1)
            tie = rank < end and room.tied[uint64(rank - begin)] == uint8(TIED)
        if depth >= int64(2) * longest:
            room.tied[uint64(first - begin)] = uint8(EQUAL)
            for i in range(head - begin, rank - begin):
                room.keys[uint64(i)] = order_key(laid, room.places[uint64(i)])
        first = rank + int64(1)


@inlined
def _sort_ties(begin, end, order, room):
    """Sort the ties of a bucket by their keys; returns how many are tied still."""
    ties = int64(0)
    first = begin + int64(1)
    while first < end:
        kind = room.tied[uint64(first - begin)]
        if kind != uint8(TIED) and kind != uint8(EQUAL):
            first += int64(1)
            continue
        last = first + int64(1)
        while last < end and room.tied[uint64(last - begin)] == uint8(TIED):
            last += int64(1)
        sort_all(room.keys, room.places, first - int64(1) - begin, last - begin, room.stack)
        order[uint64(first - int64(1))] = room.places[uint64(first - int64(1) - begin)]
        for rank in range(first, last):
            at = uint64(rank - begin)
            same = room.keys[at] == room.keys[at - uint64(1)]
            order[uint64(rank)] = room.places[at]
            room.tied[at] = uint8(SPLIT) if kind == uint8(EQUAL) else uint8(TIED) if same else uint8(UNTIED)
            ties += int64(same)
        first = last + int64(1)
    return ties


@scalar
def sort_buckets(laid, cut, borders, span, order, tied, room):
    """Sort the buckets [first, last), and turn their places into positions.

    Parameters
    ----------
    borders : int64[buckets + 1]
    order : places, of which positions become
    tied : uint64[N // 32 + 1], UNTIED

    Returns
    -------
    (bucket, depth) : it stopped before this bucket, which is the last or has no room; and by how many letters what is
    tied still is tied at least, 0 where nothing is
    """
    first, last = span
    least = int64(0)
    letters = int64(1) << int64(laid.shift)
    for bucket in range(first, last):
        begin, end = borders[bucket], borders[bucket + 1]
        if end - begin > room.keys.shape[0]:
            return bucket, least
        ties = int64(0)
        if end - begin > int64(1):
            ties = _sort_bucket(laid, cut.prefix, begin, end, order, room)
        tied_once = ties > int64(0)
        depth = int64(cut.prefix) + letters
        for _ in range(ROUNDS):
            if ties == int64(0):
                break
            before = ties
            _fetch_next(laid, depth, begin, end, order, room)
            ties = _sort_ties(begin, end, order, room)
            depth += letters
            if cut.long and int64(4) * ties > int64(3) * before:
                break
        if tied_once:
            write_states(tied, begin, end, room.tied)
        if ties > int64(0):
            least = min(least, depth) if least > int64(0) else depth
        for i in range(begin, end):
            order[uint64(i)] = position_of(laid, order[uint64(i)])
    return last, least


@scalar
def fetch_keys(laid, prefix, places, span, keys):
    """The keys behind the first letters of conjugates at ``places[first:last]``."""
    first, last = span
    for i in range(first, last):
        keys[uint64(i)] = fetch_key(laid, uint64(places[uint64(i)]) + uint64(prefix))


@scalar
def mark_ties(keys, span, tied, begin, states):
    """Say which of the sorted [first, last), in the rows from `begin` on, are tied with those before, and how many.

    Parameters
    ----------
    states : the state that all have, and the one that those get which are not tied
    """
    first, last = span
    before, other = states
    ties, turned = int64(0), NO_BITS
    for i in range(max(first, int64(1)), last):
        same = keys[uint64(i)] == keys[uint64(i - 1)]
        change = (uint64(TIED) if same else uint64(other)) ^ uint64(before)
        turned = turn_state(tied, begin + i, change, turned)
        ties += int64(same)
    turn_bits(tied, turned)
    return ties


@scalar
def turn_to_positions(laid, places, span):
    """Places become positions."""
    first, last = span
    for i in range(first, last):
        places[uint64(i)] = position_of(laid, places[uint64(i)])

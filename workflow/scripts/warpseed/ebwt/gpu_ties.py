"""Sorted keys taken apart: what the letters of a key do not tell apart is a *group* of conjugates. Where it is of
few, a warp compares the letters that follow, so that nothing of it need be sorted again.

A lane has a conjugate, and reads the next letters of it, a word of 64 bits at a time. It is told the words of the
others of its group, and counts those that come before it: so each word is read once, and all lanes have work, whatever
the sizes of groups.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint16, uint32, uint64
from warpseed.compute.gpu import cuda, cupy, kernel, launch
from warpseed.compute.warp import ALL_LANES, BLOCK, LANES, LANES_BITS, WARPS, lanes_before, warp_places
from warpseed.ebwt.gpu_fast import ends_at

__all__ = ["ROUNDS", "Apart", "Packed", "join_letters", "packed", "take_apart", "taken_apart"]

ROUNDS = 32
"""Words of letters that are compared, at most."""
STRETCH = 16 * LANES
"""Keys of a warp."""
_LISTED = STRETCH + LANES
"""Of a warp, at most: its own, and what is left of the group of the last."""
_LISTED_OF_BLOCK = WARPS * _LISTED
_WORD_BITS = 64
_SECTOR_BITS = 2
"""A sector of memory has four words."""


class Packed(NamedTuple):
    """Letters as words of 64 bits, the first letter of each on top."""

    words: Any
    """uint64[ceil(N / letters of a word)]"""
    bits: int
    """of a letter, a power of two, at most 8"""

    @property
    def compared(self) -> int:
        """Letters that `take_apart` compares, at most."""
        return ROUNDS * (_WORD_BITS // self.bits)


@kernel
def join_letters(codes, bits, words):
    """A thread a word of 64 bits.

    codes : uint8[N]
    words : uint64[...], as of `Packed`
    """
    i, count = int64(cuda.grid(1)), int64(codes.shape[0])
    if i >= words.shape[0]:
        return
    held = int64(_WORD_BITS) // int64(bits)
    word = uint64(0)
    for at in range(i * held, (i + int64(1)) * held):
        word = (word << uint64(bits)) | (uint64(codes[at]) if at < count else uint64(0))
    words[i] = word


def packed(codes: Any, bits: int) -> Packed:
    """Letters, uint8[N] on the device, of so many bits."""
    of_letter = 1 << (bits - 1).bit_length()
    words = cupy().empty(-(-len(codes) * of_letter // _WORD_BITS), np.uint64)
    launch(join_letters, len(words), BLOCK, codes, of_letter, words)
    return Packed(words, of_letter)


@scalar
def start_of(words_of, offsets, place, known):
    """Where in its word a conjugate is so many letters further on, and where the word begins and ends; all uint32."""
    first, last = ends_at(words_of, offsets, place)
    ahead, left = uint32(uint32(known) % uint32(last - first)), uint32(last - place)
    if ahead < left:
        return uint32(place + ahead), first, last
    return uint32(first + uint32(ahead - left)), first, last


@scalar
def next_word(words, bits, there):
    """The next letters of a conjugate, as many as 64 bits hold, and where it is behind them.

    words, bits : as of `Packed`
    there : (at, first, last), as of `start_of`
    """
    at, first, last = there
    held, got, word = uint32(_WORD_BITS) // uint32(bits), uint32(0), uint64(0)
    while got < held:
        begin = uint64(at) * uint64(bits)
        i, behind = begin >> uint64(6), begin & uint64(63)
        letters = words[i] << behind
        if behind and i + uint64(1) < uint64(words.shape[0]):
            letters |= words[i + uint64(1)] >> (uint64(64) - behind)
        word |= letters >> uint64(got * uint32(bits))
        left = uint32(last - at)
        if left > held - got:
            at, got = uint32(at + uint32(held - got)), held
        else:  # (what is behind the word's end is no part of it)
            got, at = uint32(got + left), first
            if got < held:
                word &= ~(~uint64(0) >> uint64(got * uint32(bits)))
    return word, (at, first, last)


@scalar
def lanes_upto(lane):
    """One and those before it, as bits of a uint32."""
    return uint32(uint32(uint32(2) << uint32(lane)) - uint32(1))


@scalar
def first_lane(lanes):
    """The first of some lanes, bits of a uint32 that is not 0."""
    return int64(cuda.popc(uint32(uint32(lanes & uint32(~lanes + uint32(1))) - uint32(1))))


@scalar
def last_lane(lanes):
    """The last of them."""
    return int64(LANES - 1) - int64(cuda.clz(lanes))


@scalar
def span_of(heads, lane):
    """The lanes of the group of one: where its first is, and the one behind its last, int64.

    heads : uint32, lanes with which a group begins; with one at or before this lane, and one behind it
    """
    upto = lanes_upto(lane)
    return last_lane(uint32(heads & upto)), first_lane(uint32(heads & ~upto))


@scalar
def look_round(word, mine, span):
    """Compare words within groups: how many of the rivals come before a lane, and which are equal to it.

    Parameters
    ----------
    word : uint64, of this lane
    mine : (lane, rivals), rivals as lanes, uint32
    span : as of `span_of`
    """
    (lane, rivals), (first, end) = mine, span
    # (What lanes tell each other is signed: the top bit is turned for that, so that the order stays.)
    here, less, size = int64(word ^ (uint64(1) << uint64(63))), int64(0), end - first
    step = int64(1)
    while cuda.any_sync(ALL_LANES, rivals != uint32(0) and step < size):
        other = lane + step
        other = (other - size if other >= end else other) & int64(LANES - 1)
        there, bit = cuda.shfl_sync(ALL_LANES, here, other), uint32(uint32(1) << uint32(other))
        if rivals & bit and there != here:
            rivals = uint32(rivals & ~bit)
            less += int64(there < here)
        step += int64(1)
    return less, rivals


@scalar
def begins_at(keys, place_bits, i):
    """Whether a group begins with a key, or would, behind the last."""
    bits = uint64(place_bits)
    return i == int64(0) or i >= int64(keys.shape[0]) or keys[i] >> bits != keys[i - int64(1)] >> bits


@scalar
def run_at(keys, place_bits, i, step):
    """How many keys from one on, or, with a step of -1, before it, are of its group, up to LANES."""
    lane, bits = int64(cuda.threadIdx.x) & int64(LANES - 1), uint64(place_bits)
    other = i + step * lane + (int64(0) if step > int64(0) else step)
    is_there = int64(0) <= other < int64(keys.shape[0])
    rest = uint32(cuda.ballot_sync(ALL_LANES, not is_there or keys[other] >> bits != keys[i] >> bits))
    return first_lane(rest) if rest else int64(LANES)


@scalar
def leave_tied(keys, place_bits, made, i):
    """What becomes of a conjugate whose group is of many."""
    (order, begins, is_tied, noted), places = made, (uint64(1) << uint64(place_bits)) - uint64(1)
    order[i], begins[i], is_tied[i] = keys[i] & places, begins_at(keys, place_bits, i), True
    if noted[1] == uint64(0):
        noted[1] = uint64(1)


@scalar
def list_tied(keys, place_bits, made, listed, stretch):
    """Write what is alone in its group, and list the rest of a warp's stretch, and of the group of its last.

    Parameters
    ----------
    keys, place_bits, made : as of `take_apart`
    listed : uint16[...], in shared memory
    stretch : (begin, stop, room), its keys, and its first place in `listed`

    Returns
    -------
    int64, how many are listed, by their distance from the first key
    """
    (order, begins, is_tied, _), (begin, stop, room), number = made, stretch, int64(0)
    lane, places = int64(cuda.threadIdx.x) & int64(LANES - 1), (uint64(1) << uint64(place_bits)) - uint64(1)
    before = run_at(keys, place_bits, begin, int64(-1))  # (of a group of another warp)
    is_many = before + run_at(keys, place_bits, begin, int64(1)) >= int64(LANES)
    is_others = before > int64(0)
    end = stop + run_at(keys, place_bits, stop - int64(1), int64(1)) - int64(1)
    at = begin
    while at < end:
        i = at + lane
        is_head = i < stop and begins_at(keys, place_bits, i)
        is_listed = i < end and not (is_head and begins_at(keys, place_bits, i + int64(1)))
        if is_head and not is_listed:
            order[i], begins[i], is_tied[i] = keys[i] & places, True, False
        if is_others:  # (until the first head)
            heads = uint32(cuda.ballot_sync(ALL_LANES, is_head))
            is_mine = heads != uint32(0) and lane >= first_lane(heads)
            if is_listed and not is_mine:
                is_listed = False
                if is_many and i < stop:
                    leave_tied(keys, place_bits, made, i)
            is_others = heads == uint32(0)
        lanes = uint32(cuda.ballot_sync(ALL_LANES, is_listed))
        if is_listed:
            listed[room + number + int64(lanes_before(lanes, lane))] = uint16(i - begin)
        number += int64(cuda.popc(lanes))
        at += int64(LANES)
    cuda.syncwarp()
    return number


@scalar
def compare_listed(keys, read, how, made, place):
    """Compare the letters of the conjugates of a warp, each of which shares its key with others of them, and write
    what becomes of them.

    Parameters
    ----------
    place : (row, lanes, is_mine): int64, of this lane's conjugate; lanes with which a group begins, and of one of them
        the end of the last; whether this lane takes part

    Returns
    -------
    int64, how many words of letters the lane has read
    """
    (words, words_of, offsets), (place_bits, known, bits, rounds), (order, begins, is_tied, _) = read, how, made
    (row, heads, is_mine), lane = place, int64(cuda.threadIdx.x) & int64(LANES - 1)
    span, rivals, position, looked, less = (lane, lane + int64(1)), uint32(0), uint32(0), int64(0), int64(0)
    there = uint32(0), uint32(0), uint32(1)
    if is_mine:
        span = span_of(heads, lane)
        members = (uint64(1) << uint64(span[1])) - (uint64(1) << uint64(span[0]))
        rivals = uint32(members & ~(uint64(1) << uint64(lane)))
        position = uint32(keys[row] & ((uint64(1) << uint64(place_bits)) - uint64(1)))
        there = start_of(words_of, offsets, position, known)
    for _ in range(rounds):
        if cuda.ballot_sync(ALL_LANES, rivals != uint32(0)) == 0:
            break
        word = uint64(0)
        if rivals:
            word, there = next_word(words, bits, there)
            looked += int64(1)
        before, rivals = look_round(word, (lane, rivals), span)
        less += before
    if is_mine:
        equal_before = int64(lanes_before(rivals, lane))
        to = row - lane + span[0] + less + equal_before
        order[to], begins[to], is_tied[to] = position, equal_before == int64(0), rivals != uint32(0)
    return looked


@kernel
def take_apart(keys, read, how, made):
    """A warp STRETCH keys, and what is left of the group of the last: what sorted keys say, and, of groups of less than
    LANES, what the letters do that follow.

    Parameters
    ----------
    keys : uint64[k], ascending: positions, and above them what the conjugates of a group have in common
    read : (words, words_of, offsets), letters as of `Packed`
    how : (place_bits, known, bits, rounds), bits of a position, how many letters a group has in common, bits of a
        letter, and how many words of letters more are compared
    made : (order, begins, is_tied, noted): uint32[k], positions; bool[k], whether a group begins here of those that are
        equal still, and whether it has others; uint64[2], to which are added the sectors that were read, and whether a
        group has LANES or more
    """
    listed, count = cuda.shared.array(_LISTED_OF_BLOCK, uint16), int64(keys.shape[0])
    me, place_bits, at, sectors = int64(cuda.threadIdx.x), how[0], int64(0), int64(0)
    lane, room = me & int64(LANES - 1), (me >> int64(LANES_BITS)) * int64(_LISTED)
    begin = (int64(cuda.grid(1)) >> int64(LANES_BITS)) * int64(STRETCH)
    if begin >= count:
        return
    stop = min(begin + int64(STRETCH), count)
    number = list_tied(keys, place_bits, made, listed, (begin, stop, room))
    while at < number:
        is_there = at + lane < number
        row = begin + int64(listed[room + at + lane]) if is_there else count
        heads = uint32(cuda.ballot_sync(ALL_LANES, begins_at(keys, place_bits, row)))
        is_few, taken = (heads & uint32(1)) != uint32(0) and heads != uint32(1), int64(LANES)
        if is_few:
            taken = last_lane(heads)
        elif heads > uint32(1):  # (the rest of a group of many)
            taken = first_lane(heads)
        if is_few:
            looked = compare_listed(keys, read, how, made, (row, heads, is_there and lane < taken))
            sectors += (looked + int64((1 << _SECTOR_BITS) - 1)) >> int64(_SECTOR_BITS)
        elif is_there and lane < taken and row < stop:
            leave_tied(keys, place_bits, made, row)
        at += taken
    _, read_here = warp_places(sectors)
    if lane == int64(0) and read_here:
        cuda.atomic.add(made[3], 0, uint64(read_here))


class Apart(NamedTuple):
    """What `take_apart` makes."""

    order: Any
    """uint32[k], positions"""
    begins: Any
    """bool[k]"""
    is_tied: Any
    """bool[k]"""
    noted: Any
    """uint64[2]"""


def taken_apart(keys: Any, place_bits: int, letters: Packed, words: tuple[Any, Any], known: int, order: Any) -> Apart:
    """Take sorted keys apart, as of `take_apart`.

    words : (words_of, offsets)
    order : uint32[k], which is made
    """
    xp, lanes = cupy(), -(-len(keys) // STRETCH) * LANES
    begins, is_tied = (xp.empty(len(keys), np.bool_) for _ in range(2))
    made, how = Apart(order, begins, is_tied, xp.zeros(2, np.uint64)), (place_bits, known, letters.bits, ROUNDS)
    launch(take_apart, lanes, BLOCK, keys, (letters.words, *words), how, tuple(made))
    return made

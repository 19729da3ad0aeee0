"""What keys of letters do not tell apart: conjugates that share a key are a *group*. Of a group of few a warp compares
the letters that follow, so that only what is equal in these, too, is sorted again.

A lane has a conjugate, and reads the next letters of it, a number of 64 bits at a time. It is told the numbers of the
others of its group, and counts those that come before it: so each number is read once, and all lanes have work,
whatever the sizes of groups.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint16, uint32, uint64
from warpseed.compute.gpu import cuda, cupy, kernel, launch
from warpseed.compute.warp import (
    ALL_LANES,
    BLOCK,
    LANES,
    LANES_BITS,
    WARPS,
    first_lane,
    lanes_before,
    lanes_upto,
    last_lane,
    warp_places,
)
from warpseed.ebwt.gpu_fast import ends_at

__all__ = ["ROUNDS", "Groups", "PackedLetters", "find_groups", "pack_letters", "put_packed", "take_apart"]

ROUNDS = 32
"""Numbers of 64 bits that are compared, at most."""
STRETCH = 16 * LANES
"""Keys of a warp."""
_LISTED = STRETCH + LANES
"""Of a warp, at most: its own, and what is left of the group of the last."""
_LISTED_OF_BLOCK = WARPS * _LISTED
_BITS = 64
_SECTOR_BITS = 2
"""A sector of memory has four numbers."""
_SECTORS, _HAS_MANY = 0, 1
"""Places of what `take_apart` notes."""


class PackedLetters(NamedTuple):
    """Letters in numbers of 64 bits, the first letter of each number on top."""

    numbers: Any
    """uint64[ceil(N / letters of a number)]"""
    bits: int
    """of a letter, a power of two, at most 8"""

    @property
    def compared(self) -> int:
        """Letters that `take_apart` compares, at most."""
        return ROUNDS * (_BITS // self.bits)


@kernel
def put_packed(codes, bits, numbers):
    """A thread a number of 64 bits.

    codes : uint8[N]
    numbers : uint64[...], as of `PackedLetters`
    """
    i, count = int64(cuda.grid(1)), int64(codes.shape[0])
    if i >= numbers.shape[0]:
        return
    held = int64(_BITS) // int64(bits)
    number = uint64(0)
    for at in range(i * held, (i + int64(1)) * held):
        number = (number << uint64(bits)) | (uint64(codes[at]) if at < count else uint64(0))
    numbers[i] = number


def pack_letters(codes: Any, bits: int) -> PackedLetters:
    """Letters, uint8[N] on the device, of so many bits."""
    of_letter = 1 << (bits - 1).bit_length()
    numbers = cupy().empty(-(-len(codes) * of_letter // _BITS), np.uint64)
    launch(put_packed, len(numbers), BLOCK, codes, of_letter, numbers)
    return PackedLetters(numbers, of_letter)


@scalar
def ahead_in_word(words_of, offsets, position, known):
    """Where in its word a conjugate is so many letters further on, and where the word begins and ends; all uint32."""
    first, last = ends_at(words_of, offsets, position)
    ahead, left = uint32(uint32(known) % uint32(last - first)), uint32(last - position)
    if ahead < left:
        return uint32(position + ahead), first, last
    return uint32(first + uint32(ahead - left)), first, last


@scalar
def next_number(numbers, bits, there):
    """The next letters of a conjugate, around the end of its word: as many as 64 bits hold, uint64; and where it is
    behind them.

    numbers, bits : as of `PackedLetters`
    there : (at, first, last), as of `ahead_in_word`
    """
    at, first, last = there
    held, got, number = uint32(_BITS) // uint32(bits), uint32(0), uint64(0)
    while got < held:
        begin = uint64(at) * uint64(bits)
        i, behind = begin >> uint64(6), begin & uint64(63)
        letters = numbers[i] << behind
        if behind and i + uint64(1) < uint64(numbers.shape[0]):
            letters |= numbers[i + uint64(1)] >> (uint64(64) - behind)
        number |= letters >> uint64(got * uint32(bits))
        left = uint32(last - at)
        if left > held - got:
            at, got = uint32(at + uint32(held - got)), held
        else:  # (what is behind the word's end is no part of it)
            got, at = uint32(got + left), first
            if got < held:
                number &= ~(~uint64(0) >> uint64(got * uint32(bits)))
    return number, (at, first, last)


@scalar
def span_of(heads, lane):
    """The lanes of the group of one: where its first is, and the one behind its last, int64.

    heads : uint32, lanes with which a group begins; with one at or before this lane, and one behind it
    """
    upto = lanes_upto(lane)
    return last_lane(uint32(heads & upto)), first_lane(uint32(heads & ~upto))


@scalar
def count_before(number, member, span):
    """Compare numbers within groups; all lanes take part.

    Parameters
    ----------
    number : uint64, of this lane
    member : (lane, rivals), int64, and the lanes, as bits of a uint32, that it is to be compared with
    span : as of `span_of`

    Returns
    -------
    int64, how many of the rivals come before, and uint32, which of them are equal
    """
    (lane, rivals), (first, end) = member, span
    # (What lanes tell each other is signed: the top bit is turned for that, so that the order stays.)
    here, before, size = int64(number ^ (uint64(1) << uint64(63))), int64(0), end - first
    step = int64(1)
    # (Lanes of smaller groups look at others in vain: these are no rivals of theirs.)
    while cuda.any_sync(ALL_LANES, rivals != uint32(0) and step < size):
        other = lane + step
        other = (other - size if other >= end else other) & int64(LANES - 1)
        there, bit = cuda.shfl_sync(ALL_LANES, here, other), uint32(uint32(1) << uint32(other))
        if rivals & bit and there != here:
            rivals = uint32(rivals & ~bit)
            before += int64(there < here)
        step += int64(1)
    return before, rivals


@scalar
def position_in(key, place_bits):
    """The position in a key: its lowest bits."""
    return key & ((uint64(1) << uint64(place_bits)) - uint64(1))


@scalar
def begins_at(keys, place_bits, i):
    """Whether a group begins with a key; also true behind the last one."""
    bits = uint64(place_bits)
    return i == int64(0) or i >= int64(keys.shape[0]) or keys[i] >> bits != keys[i - int64(1)] >> bits


@scalar
def run_at(keys, place_bits, i, step):
    """How many keys from one on, or, with a step of -1, before it, are of its group, up to LANES; all lanes take
    part."""
    lane, bits = int64(cuda.threadIdx.x) & int64(LANES - 1), uint64(place_bits)
    other = i + step * lane + (int64(0) if step > int64(0) else step)
    is_there = int64(0) <= other < int64(keys.shape[0])
    return first_lane(uint32(cuda.ballot_sync(ALL_LANES, not is_there or keys[other] >> bits != keys[i] >> bits)))


@scalar
def leave_tied(keys, place_bits, made, i):
    """Write a conjugate of a group of many as tied, and note that there is such a group.

    i : int64, its row
    """
    order, begins, is_tied, noted = made
    order[i], begins[i], is_tied[i] = position_in(keys[i], place_bits), begins_at(keys, place_bits, i), True
    if noted[_HAS_MANY] == uint64(0):
        noted[_HAS_MANY] = uint64(1)


@scalar
def list_tied(keys, place_bits, made, listed, stretch):
    """Write what is alone in its group, and list the rest of a warp's stretch, and of the group of its last. Of the
    group that another warp begins nothing is listed, but left tied where it is of many. All lanes take part.

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
    lane = int64(cuda.threadIdx.x) & int64(LANES - 1)
    before = run_at(keys, place_bits, begin, int64(-1))
    is_many = before + run_at(keys, place_bits, begin, int64(1)) >= int64(LANES)
    is_others = before > int64(0)
    end = stop + run_at(keys, place_bits, stop - int64(1), int64(1)) - int64(1)
    at = begin
    while at < end:
        i = at + lane
        is_head = i < stop and begins_at(keys, place_bits, i)
        is_listed = i < end and not (is_head and begins_at(keys, place_bits, i + int64(1)))
        if is_head and not is_listed:
            order[i], begins[i], is_tied[i] = position_in(keys[i], place_bits), True, False
        if is_others:  # (until the first head)
            heads = uint32(cuda.ballot_sync(ALL_LANES, is_head))
            if is_listed and lane < first_lane(heads):
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
def compare_listed(keys, read, how, made, member):
    """Compare the letters of the conjugates of a warp, each of which shares its key with others of them, and write
    what becomes of them; all lanes take part.

    Parameters
    ----------
    keys, read, how, made : as of `take_apart`
    member : (row, heads, is_member): int64, of this lane's conjugate; lanes with which a group begins, or that are
        behind the last; whether this lane has a conjugate

    Returns
    -------
    int64, how many numbers the lane has read
    """
    (numbers, words_of, offsets), (place_bits, known, bits, rounds), (order, begins, is_tied, _) = read, how, made
    (row, heads, is_member), lane = member, int64(cuda.threadIdx.x) & int64(LANES - 1)
    span, rivals, position, looked, before = (lane, lane + int64(1)), uint32(0), uint32(0), int64(0), int64(0)
    there = uint32(0), uint32(0), uint32(1)
    if is_member:
        span = span_of(heads, lane)
        members = (uint64(1) << uint64(span[1])) - (uint64(1) << uint64(span[0]))
        rivals = uint32(members & ~(uint64(1) << uint64(lane)))
        position = uint32(position_in(keys[row], place_bits))
        there = ahead_in_word(words_of, offsets, position, known)
    for _ in range(rounds):
        if cuda.ballot_sync(ALL_LANES, rivals != uint32(0)) == 0:
            break
        number = uint64(0)
        if rivals:
            number, there = next_number(numbers, bits, there)
            looked += int64(1)
        of_round, rivals = count_before(number, (lane, rivals), span)
        before += of_round
    if is_member:
        equal_before = int64(lanes_before(rivals, lane))
        to = row - lane + span[0] + before + equal_before
        order[to], begins[to], is_tied[to] = position, equal_before == int64(0), rivals != uint32(0)
    return looked


@scalar
def lanes_taken(heads):
    """How many lanes are taken at once, and whether these are whole groups of few.

    heads : uint32, lanes with which a group begins, or that are behind the last
    """
    if (heads & uint32(1)) == uint32(0):  # (the rest of a group of many)
        return first_lane(heads), False
    if heads == uint32(1):  # (a group of LANES or more)
        return int64(LANES), False
    return last_lane(heads), True


@kernel
def take_apart(keys, read, how, made):
    """A warp STRETCH keys, and what is left of the group of the last: what sorted keys say, and, of groups of less than
    LANES, what the letters do that follow.

    Parameters
    ----------
    keys : uint64[k], ascending: positions, and above them what the conjugates of a group have in common
    read : (numbers, words_of, offsets), letters as of `PackedLetters`
    how : (place_bits, known, bits, rounds), bits of a position, how many letters a group has in common, bits of a
        letter, and how many numbers of letters more are compared
    made : (order, begins, is_tied, noted), as of `Groups`, whose `noted` is zeros
    """
    listed, count = cuda.shared.array(_LISTED_OF_BLOCK, uint16), int64(keys.shape[0])
    (place_bits, _, _, _), (_, _, _, noted) = how, made
    me, at, sectors = int64(cuda.threadIdx.x), int64(0), int64(0)
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
        taken, is_few = lanes_taken(heads)
        is_taken = is_there and lane < taken
        if is_few:
            looked = compare_listed(keys, read, how, made, (row, heads, is_taken))
            sectors += (looked + int64((1 << _SECTOR_BITS) - 1)) >> int64(_SECTOR_BITS)
        elif is_taken and row < stop:
            leave_tied(keys, place_bits, made, row)
        at += taken
    _, read_here = warp_places(sectors)
    if lane == int64(0) and read_here:
        cuda.atomic.add(noted, _SECTORS, uint64(read_here))


class Groups(NamedTuple):
    """What sorted keys and the letters that follow tell of conjugates."""

    order: Any
    """uint32[k], positions"""
    begins: Any
    """bool[k], whether a group begins here, of what is equal still"""
    is_tied: Any
    """bool[k], whether that group has others"""
    noted: Any
    """uint64[2]: the fewest sectors of 32 bytes that hold what was read of letters, and 1 where a group of LANES or
    more was left as it was"""

    def told(self) -> tuple[int, bool]:
        """What was noted, on the host."""
        sectors, has_many = self.noted.get().tolist()
        return sectors, bool(has_many)


def find_groups(
    keys: Any, place_bits: int, letters: PackedLetters, words: tuple[Any, Any], known: int, order: Any
) -> Groups:
    """Take sorted keys apart, as of `take_apart`.

    words : (words_of, offsets)
    order : uint32[k], which is made
    """
    xp, lanes = cupy(), -(-len(keys) // STRETCH) * LANES
    begins, is_tied = (xp.empty(len(keys), np.bool_) for _ in range(2))
    made, how = Groups(order, begins, is_tied, xp.zeros(2, np.uint64)), (place_bits, known, letters.bits, ROUNDS)
    launch(take_apart, lanes, BLOCK, keys, (letters.numbers, *words), how, tuple(made))
    return made

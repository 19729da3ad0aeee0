"""What keys of letters do not tell apart: a kernel takes sorted keys apart, and where a group of equal ones has few
conjugates compares the letters that follow, so that nothing of it need be sorted again.

Each conjugate of such a group finds its own place: it counts how many of the others come before it. So all threads have
work, and none waits for another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.compiled import int32, int64, scalar, uint32, uint64
from warpseed.compute.device_places import EIGHT, eight_from
from warpseed.compute.gpu import cuda, cupy, kernel, launch
from warpseed.compute.warp import ALL_LANES, LANES, lanes_before
from warpseed.ebwt.gpu_fast import ends_at

__all__ = ["COMPARED", "FEW", "Apart", "compare_letters", "settle_here", "start_of", "take_apart", "taken_apart"]

FEW = 16
"""Conjugates of a group whose letters are compared."""
COMPARED = 256
"""Letters of each that are, at most."""
BLOCK = 256
TAKEN = 8
"""Ranks of a thread."""
_LISTED = BLOCK * TAKEN
_SECTOR_BITS = 5
"""A sector of memory has 32 letters."""


@scalar
def start_of(words_of, offsets, place, known):
    """Where in its word a conjugate is so many letters further on, and where the word begins and ends; all uint32.

    place, known : uint32
    """
    first, last = ends_at(words_of, offsets, place)
    ahead, left = uint32(known % uint32(last - first)), uint32(last - place)
    if ahead < left:
        return uint32(place + ahead), first, last
    return uint32(first + uint32(ahead - left)), first, last


@scalar
def compare_letters(eights, one, other, most):
    """Whether one of two conjugates comes first, by so many letters: below 0, 0 or above, and how many are equal.

    Parameters
    ----------
    eights : uint64[ceil(N / EIGHT)], letters as `eight_from` reads them
    one, other : as of `start_of`
    """
    at, first, last = one
    there, other_first, other_last = other
    left = uint32(most)
    while left > uint32(0):
        step = min(min(uint32(EIGHT), left), min(uint32(last - at), uint32(other_last - there)))
        beyond = uint64(8) * uint64(uint32(EIGHT) - step)  # bits that are not compared, on top
        letters, letters_there = eight_from(eights, at) << beyond, eight_from(eights, there) << beyond
        differ = letters ^ letters_there
        if differ != uint64(0):
            lowest = uint64(cuda.popc(uint64(differ & uint64(~differ + uint64(1))) - uint64(1)))
            byte = lowest & ~uint64(7)
            letter, letter_there = (letters >> byte) & uint64(255), (letters_there >> byte) & uint64(255)
            equal = int64(uint32(most) - left) + ((int64(byte) - int64(beyond)) >> int64(3))
            return int64(letter) - int64(letter_there), equal
        at, there, left = uint32(at + step), uint32(there + step), uint32(left - step)
        if at == last:
            at = uint32(first)
        if there == other_last:
            there = uint32(other_first)
    return int64(0), int64(most)


@scalar
def settle_here(keys, place_bits, read, how, made, i):
    """Of a conjugate that shares its key: find its place in its group, where that has FEW at most.

    keys, place_bits, read, how, made : as of `take_apart`
    i : int64, the row of its key

    Returns
    -------
    int64, sectors of the letters that tell it apart
    """
    (eights, words_of, offsets), (known, most), (order, begins, is_tied, noted) = read, how, made
    bits = uint64(place_bits)
    letters, places = keys[i] >> bits, (uint64(1) << bits) - uint64(1)
    first, end, few = int64(i), int64(i) + int64(1), int64(FEW)
    while first > int64(0) and i - first < few and keys[first - int64(1)] >> bits == letters:
        first -= int64(1)
    while end < int64(keys.shape[0]) and end - first <= few and keys[end] >> bits == letters:
        end += int64(1)
    place = uint32(keys[i] & places)
    if end - first > few:
        order[i], begins[i], is_tied[i] = place, first == i, True
        if noted[1] == uint64(0):
            noted[1] = uint64(1)
        return int64(1)
    start, to, before, equal, deepest = start_of(words_of, offsets, place, uint32(known)), first, 0, 0, int64(0)
    for other in range(first, end):
        if other != i:
            there = start_of(words_of, offsets, uint32(keys[other] & places), uint32(known))
            compared, depth = compare_letters(eights, there, start, most)
            deepest = max(deepest, depth)
            is_equal, is_before = compared == int64(0), other < i
            to += int64(compared < int64(0) or (is_equal and is_before))
            before += int64(is_equal and is_before)
            equal += int64(is_equal)
    order[to], begins[to], is_tied[to] = place, before == int64(0), equal > int64(0)
    return (deepest >> int64(_SECTOR_BITS)) + int64(1)


@kernel
def take_apart(keys, place_bits, read, how, made):
    """A thread TAKEN ranks, and then some of those that share their key: what sorted keys say, and what letters do that
    follow, where few have a key.

    Parameters
    ----------
    keys : uint64[k], ascending, above their positions what groups have in common
    read : (eights, words_of, offsets), letters as of `compare_letters`
    how : (known, most), how many letters a group has in common, and how many more are compared
    made : (order, begins, is_tied, noted): uint32[k], positions; bool[k], whether a group begins here of those that are
        equal still, and whether it has others; uint64[2], to which the sectors that were read are added, and whether a
        group has more than FEW
    """
    listed, number = cuda.shared.array(_LISTED, uint32), cuda.shared.array(2, uint32)
    order, begins, is_tied, noted = made
    me, threads, count = int64(cuda.threadIdx.x), int64(cuda.blockDim.x), int64(keys.shape[0])
    bits, lane = uint64(place_bits), me & int64(LANES - 1)
    if me < int64(2):
        number[me] = uint32(0)
    cuda.syncthreads()
    i = (int64(cuda.grid(1)) - me) * int64(TAKEN) + me
    for _ in range(TAKEN):
        is_listed = False
        if i < count:
            letters = keys[i] >> bits
            is_listed = i > int64(0) and keys[i - int64(1)] >> bits == letters
            is_listed = is_listed or (i + int64(1) < count and keys[i + int64(1)] >> bits == letters)
            if not is_listed:
                order[i], begins[i], is_tied[i] = keys[i] & ((uint64(1) << bits) - uint64(1)), True, False
        lanes = uint32(cuda.ballot_sync(ALL_LANES, is_listed))
        if lanes:
            to = int32(0)
            if lane == int64(0):
                to = int32(cuda.atomic.add(number, 0, uint32(cuda.popc(lanes))))
            to = int32(cuda.shfl_sync(ALL_LANES, to, 0))
            if is_listed:
                listed[int64(to) + int64(lanes_before(lanes, lane))] = uint32(i)
        i += threads
    cuda.syncthreads()
    sectors = int64(0)
    for which in range(me, int64(number[0]), threads):
        sectors += settle_here(keys, place_bits, read, how, made, int64(listed[which]))
    if sectors:
        cuda.atomic.add(number, 1, uint32(sectors))
    cuda.syncthreads()
    if me == int64(0) and number[1]:
        cuda.atomic.add(noted, 0, uint64(number[1]))


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


def taken_apart(keys: Any, place_bits: int, read: tuple[Any, Any, Any], known: int, order: Any) -> Apart:
    """What sorted keys and COMPARED letters more tell, as of `take_apart`.

    order : uint32[k], which is made
    """
    xp = cupy()
    made = Apart(order, *(xp.empty(len(keys), np.bool_) for _ in range(2)), xp.zeros(2, np.uint64))
    launch(take_apart, -(-len(keys) // TAKEN), BLOCK, keys, place_bits, read, (known, COMPARED), tuple(made))
    return made

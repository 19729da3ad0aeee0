"""Sets of numbers in vector registers, and how often each number was in one."""

from __future__ import annotations

import numpy as np
import pytest
from warpseed.compute.bit_sets import (
    IN_SET,
    PLANES,
    SET,
    added,
    both,
    empty_set,
    place_of,
    put_set,
    set_at,
    take_counts,
    with_number,
)
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.vectors import aligned_zeros


@scalar
def put_numbers(numbers, sets, place):
    """Write the set of some numbers to a place, with what is there."""
    some = empty_set()
    for i in range(numbers.shape[0]):
        some = with_number(some, numbers[i])
    put_set(both(some, set_at(sets, int64(place))), sets, int64(place))


@scalar
def add_set(sets, place, planes):
    """Add one set to planes, plane by plane."""
    carry = set_at(sets, int64(place))
    for plane in range(int64(PLANES)):
        total, carry = added(set_at(planes, int64(plane) * int64(SET)), carry, empty_set())
        put_set(total, planes, int64(plane) * int64(SET))


@scalar
def add_three(sets, planes):
    """The sum of the first three sets, and what is carried."""
    total, carry = added(set_at(sets, int64(0)), set_at(sets, int64(SET)), set_at(sets, int64(2 * SET)))
    put_set(total, planes, int64(0))
    put_set(carry, planes, int64(SET))


@scalar
def take_all(planes, counts, ordered):
    take_counts(planes, int64(0), counts, int64(0))
    for number in range(int64(IN_SET)):
        ordered[uint64(number)] = counts[uint64(place_of(int64(number)))]


def sets_of(count: int) -> np.ndarray:
    return aligned_zeros(count * SET, np.dtype(np.uint64))


def members(sets: np.ndarray, place: int = 0) -> list[int]:
    bits = np.unpackbits(sets[place : place + SET].view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).tolist()


def test_a_set_has_the_numbers_that_were_put_in_and_no_larger_ones() -> None:
    sets = sets_of(2)
    put_numbers(np.array([0, 63, 64, 511, 511, 512, 1 << 16, 2**64 - 1], np.uint64), sets, SET)
    put_numbers(np.array([300], np.uint64), sets, SET)
    assert members(sets, SET) == [0, 63, 64, 300, 511] and not members(sets)


@pytest.mark.parametrize("times", [1, 100, 255])
def test_planes_count(times: int) -> None:
    draw, planes = np.random.default_rng(times), sets_of(PLANES)
    sets = sets_of(times)
    sets[:] = draw.integers(0, 2**64, len(sets), np.uint64)
    for number in range(times):
        add_set(sets, number * SET, planes)
    counts, ordered = aligned_zeros(IN_SET, np.dtype(np.uint32)), np.zeros(IN_SET, np.uint32)
    counts += np.uint32(1 << 20)
    take_all(planes, counts, ordered)
    expected = np.unpackbits(sets.reshape(times, SET).view(np.uint8), axis=1, bitorder="little").sum(axis=0)
    assert (ordered - (1 << 20)).tolist() == expected.tolist()
    assert not planes.any()


def test_three_bits_are_added() -> None:
    sets, planes = sets_of(3), sets_of(2)
    for place in range(3):
        put_numbers(np.array([n for n in range(8) if n >> place & 1], np.uint64), sets, place * SET)
    add_three(sets, planes)
    assert members(planes) == [1, 2, 4, 7] and members(planes, SET) == [3, 5, 6, 7]

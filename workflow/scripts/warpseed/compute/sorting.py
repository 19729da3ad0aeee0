"""Sorting in place in compiled code: numbers, and pairs of a key and what goes with it."""

from __future__ import annotations

from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64

__all__ = ["STACK", "middle", "sort_all", "sort_numbers", "sort_pairs"]

STACK = 129
"""Numbers that the stack of a sort has room for: how many ranges wait, then first and last of each."""
_FEW = 24
"""Numbers or pairs that are sorted by insertion."""


@inlined
def middle(a, b, c):
    """The one that is neither the smallest nor the largest."""
    return max(min(a, b), min(max(a, b), c))


@inlined
def _insert_numbers(numbers, first, last):
    """Sort [first, last)."""
    for i in range(first + int64(1), last):
        number = numbers[uint64(i)]
        j = i
        while j > first and numbers[uint64(j - int64(1))] > number:
            numbers[uint64(j)] = numbers[uint64(j - int64(1))]
            j -= int64(1)
        numbers[uint64(j)] = number


@scalar
def _sort_many(numbers, first, last, stack):
    waiting = int64(0)
    while True:
        while last - first > int64(_FEW):
            pivot = _pivot(numbers, first, last)
            i, j = first, last - int64(1)
            while True:
                while numbers[uint64(i)] < pivot:
                    i += int64(1)
                while numbers[uint64(j)] > pivot:
                    j -= int64(1)
                if i >= j:
                    break
                numbers[uint64(i)], numbers[uint64(j)] = numbers[uint64(j)], numbers[uint64(i)]
                i += int64(1)
                j -= int64(1)
            # (Where the pivot is the largest, and the last, it is alone on its side.)
            border = min(j + int64(1), last - int64(1))
            # The larger side waits, so that few do.
            if border - first < last - border:
                stack[waiting], stack[waiting + int64(1)] = border, last
                last = border
            else:
                stack[waiting], stack[waiting + int64(1)] = first, border
                first = border
            waiting += int64(2)
        _insert_numbers(numbers, first, last)
        if waiting == int64(0):
            break
        waiting -= int64(2)
        first, last = stack[waiting], stack[waiting + int64(1)]


@inlined
def sort_numbers(numbers, first, last, stack):
    """Sort [first, last), of which no two numbers are equal.

    Parameters
    ----------
    stack : int64[STACK], to work with
    """
    if last - first <= int64(_FEW):
        _insert_numbers(numbers, first, last)
    else:
        _sort_many(numbers, first, last, stack)


@inlined
def _insert_pairs(keys, places, first, last):
    """Sort the pairs [first, last) by their keys."""
    for i in range(first + int64(1), last):
        key, place = keys[uint64(i)], places[uint64(i)]
        j = i
        while j > first and keys[uint64(j - int64(1))] > key:
            keys[uint64(j)] = keys[uint64(j - int64(1))]
            places[uint64(j)] = places[uint64(j - int64(1))]
            j -= int64(1)
        keys[uint64(j)] = key
        places[uint64(j)] = place


@inlined
def _swap(keys, places, i, j):
    key, place = keys[uint64(i)], places[uint64(i)]
    keys[uint64(i)], places[uint64(i)] = keys[uint64(j)], places[uint64(j)]
    keys[uint64(j)] = key
    places[uint64(j)] = place


@inlined
def _pivot(keys, first, last):
    """The middle one of three keys of [first, last), at places that no order of them makes bad for long."""
    size = uint32(last - first)
    drawn = uint64(first + last) * uint64(0x9E37_79B9_7F4A_7C15)
    a = keys[uint64(first) + ((drawn >> uint64(32)) % uint64(size))]
    b = keys[uint64(first + last) >> uint64(1)]
    c = keys[uint64(last) - uint64(1) - ((drawn >> uint64(40)) % uint64(size))]
    return middle(a, b, c)


@scalar
def sort_pairs(keys, places, stack, budget):
    """Sort ranges of pairs by their keys, in place, as far as about `budget` steps lead.

    Parameters
    ----------
    keys : uint64[…]
    places : uint32[…] or uint64[…], go with the keys; pairs of one key come in any order
    stack : int64[STACK], the number of ranges that are to be sorted, then first and last of each: one to begin with

    Returns
    -------
    bool, whether ranges are left, which are on the stack
    """
    ranges = stack[0]
    while ranges > int64(0) and budget > int64(0):
        ranges -= int64(1)
        first, last = stack[int64(1) + int64(2) * ranges], stack[int64(2) + int64(2) * ranges]
        while last - first > int64(_FEW):
            # Smaller keys to the left, equal ones between, larger ones to the right.
            budget -= last - first
            pivot = _pivot(keys, first, last)
            low, high, i = first, last, first
            while i < high:
                key = keys[uint64(i)]
                if key < pivot:
                    if low != i:
                        _swap(keys, places, low, i)
                    low += int64(1)
                    i += int64(1)
                elif key > pivot:
                    high -= int64(1)
                    _swap(keys, places, i, high)
                else:
                    i += int64(1)
            # The larger side waits, so that few do.
            if low - first < last - high:
                stack[int64(1) + int64(2) * ranges], stack[int64(2) + int64(2) * ranges] = high, last
                last = low
            else:
                stack[int64(1) + int64(2) * ranges], stack[int64(2) + int64(2) * ranges] = first, low
                first = high
            ranges += int64(1)
        _insert_pairs(keys, places, first, last)
    stack[0] = ranges
    return ranges > int64(0)


@inlined
def sort_all(keys, places, first, last, stack):
    """Sort the pairs [first, last) by their keys; those of one key come in any order."""
    if last - first <= int64(_FEW):
        _insert_pairs(keys, places, first, last)
    else:
        stack[0], stack[1], stack[2] = int64(1), first, last
        sort_pairs(keys, places, stack, int64(1) << int64(62))

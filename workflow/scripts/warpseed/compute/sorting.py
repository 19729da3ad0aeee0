"""Sorting in place in compiled code: numbers, pairs of a key and what goes with it, values of queries."""

from __future__ import annotations

from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64

__all__ = [
    "STACK",
    "count_smaller",
    "set_aside",
    "sort_all",
    "sort_numbers",
    "sort_pairs",
    "sort_range",
    "sort_ranges",
    "split_range",
]

_FEW = 16
"""Numbers or pairs that are sorted by counting, of each, how many come before it."""
_WAITING = 129
"""Numbers that a stack has for ranges that wait: how many they are, then first and last of each."""
STACK = _WAITING + 2 * _FEW
"""Numbers of a stack to sort with: for ranges that wait, and a few pairs."""


@inlined
def _pivot(things, first, last, key_of):
    """The middle one of three keys of [first, last), at places that no order of them makes bad for long."""
    size = uint32(last - first)
    drawn = uint64(first + last) * uint64(0x9E37_79B9_7F4A_7C15)
    a = key_of(things, uint64(first) + ((drawn >> uint64(32)) % uint64(size)))
    b = key_of(things, uint64(first + last) >> uint64(1))
    c = key_of(things, uint64(last) - uint64(1) - ((drawn >> uint64(40)) % uint64(size)))
    return max(min(a, b), min(max(a, b), c))


@inlined
def split_range(things, first, last, key_of, swap):
    """Put [first, last) in three ranges: smaller keys to the left, equal ones between, larger ones to the right.

    Parameters
    ----------
    things : what is sorted, as `key_of` and `swap` know it
    key_of : inlined, ``key_of(things, i)`` is the key of what stands at i, a uint64
    swap : inlined, ``swap(things, i, j)`` lets two of them take each other's place

    Returns
    -------
    (low, high) : the borders of the range between, which is not empty
    """
    pivot = _pivot(things, first, last, key_of)
    low, high, i = first, last, first
    while i < high:
        key = key_of(things, uint64(i))
        if key > pivot:
            high -= int64(1)
            swap(things, uint64(i), uint64(high))
            continue
        if key < pivot:
            if low != i:
                swap(things, uint64(low), uint64(i))
            low += int64(1)
        i += int64(1)
    return low, high


@inlined
def set_aside(stack, at, left, right):
    """Write the larger of two ranges, each its first and last, on a stack from `at` on; returns the other one.

    That is at most half of both, so few ranges ever wait.
    """
    (first, low), (high, last) = left, right
    if low - first < last - high:
        stack[at], stack[at + int64(1)] = high, last
        return first, low
    stack[at], stack[at + int64(1)] = first, low
    return high, last


@inlined
def _number_at(numbers, i):
    return numbers[i]


@inlined
def count_smaller(numbers, first, size, number):
    """How many of the numbers [first, first + size), taken as uint64, are smaller than one."""
    count = int64(0)
    for i in range(size):
        count += int64(uint64(numbers[uint64(first + i)]) < number)
    return count


@inlined
def _rank_numbers(numbers, first, last, stack):
    """Sort a few distinct numbers, [first, last)."""
    size = last - first
    for i in range(size):
        stack[uint64(_WAITING + i)] = int64(numbers[uint64(first + i)])
    for i in range(size):
        number = uint64(stack[uint64(_WAITING + i)])
        numbers[uint64(first + count_smaller(stack, int64(_WAITING), size, number))] = number


@inlined
def _rank_pairs(keys, places, first, last, stack):
    """Sort a few pairs, [first, last), by their keys; those of one key stay in order."""
    size = last - first
    for i in range(size):
        stack[uint64(_WAITING + i)] = int64(keys[uint64(first + i)])
        stack[uint64(_WAITING + _FEW + i)] = int64(places[uint64(first + i)])
    for i in range(size):
        key = uint64(stack[uint64(_WAITING + i)])
        place = first
        for j in range(i):
            place += int64(uint64(stack[uint64(_WAITING + j)]) <= key)
        for j in range(i + int64(1), size):
            place += int64(uint64(stack[uint64(_WAITING + j)]) < key)
        keys[uint64(place)] = key
        places[uint64(place)] = stack[uint64(_WAITING + _FEW + i)]


@inlined
def _part_numbers(numbers, first, last, most):
    """Bring those of the numbers [first, last) that are no larger than `most` before the others; returns where these
    begin. (Every number is moved, so that no branch is to be guessed.)"""
    low = first
    for i in range(first, last):
        number = numbers[uint64(i)]
        numbers[uint64(i)] = numbers[uint64(low)]
        numbers[uint64(low)] = number
        low += int64(number <= most)
    return low


@scalar
def _sort_many(numbers, first, last, stack):
    waiting = int64(0)
    while True:
        while last - first > int64(_FEW):
            # (The pivot comes last in its part, or alone where it is the largest.)
            pivot = _pivot(numbers, first, last, _number_at)
            border = _part_numbers(numbers, first, last, pivot)
            if border == last:
                border = _part_numbers(numbers, first, last, pivot - uint64(1))
            first, last = set_aside(stack, waiting, (first, border), (border, last))
            waiting += int64(2)
        _rank_numbers(numbers, first, last, stack)
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
        _rank_numbers(numbers, first, last, stack)
    else:
        _sort_many(numbers, first, last, stack)


@inlined
def _part_pairs(keys, places, first, last, most):
    """Bring those of the pairs [first, last) whose keys are no larger than `most` before the others; returns where
    these begin. (Every pair is moved, so that no branch is to be guessed.)"""
    low = first
    for i in range(first, last):
        key, place = keys[uint64(i)], places[uint64(i)]
        keys[uint64(i)], places[uint64(i)] = keys[uint64(low)], places[uint64(low)]
        keys[uint64(low)], places[uint64(low)] = key, place
        low += int64(key <= most)
    return low


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
        at = int64(1) + int64(2) * ranges
        first, last = stack[at], stack[at + int64(1)]
        while last - first > int64(_FEW):
            budget -= last - first
            pivot = _pivot(keys, first, last, _number_at)
            low = first
            if pivot > uint64(0):
                low = _part_pairs(keys, places, first, last, pivot - uint64(1))
            high = low
            if low == first:
                # Nothing comes before: what is equal is in its place.
                high = _part_pairs(keys, places, first, last, pivot)
            first, last = set_aside(stack, at, (first, low), (high, last))
            ranges, at = ranges + int64(1), at + int64(2)
        _rank_pairs(keys, places, first, last, stack)
    stack[0] = ranges
    return ranges > int64(0)


@inlined
def sort_all(keys, places, first, last, stack):
    """Sort the pairs [first, last) by their keys; those of one key come in any order."""
    if last - first <= int64(_FEW):
        _rank_pairs(keys, places, first, last, stack)
    else:
        stack[0], stack[1], stack[2] = int64(1), first, last
        sort_pairs(keys, places, stack, int64(1) << int64(62))


@scalar
def _sift_down(values, first, root, size):
    value = values[first + root]
    child = 2 * root + 1
    while child < size:
        if child + 1 < size and values[first + child + 1] > values[first + child]:
            child += 1
        if values[first + child] <= value:
            break
        values[first + root] = values[first + child]
        root = child
        child = 2 * root + 1
    values[first + root] = value


@scalar
def sort_range(values, first, last):
    """Sort [first, last) without a stack, in kernels too: by insertion, as most queries have few values, or a heap."""
    size = last - first
    if size <= _FEW:
        for i in range(first + 1, last):
            value = values[i]
            j = i - 1
            while j >= first and values[j] > value:
                values[j + 1] = values[j]
                j -= 1
            values[j + 1] = value
        return
    for root in range(size // 2 - 1, -1, -1):
        _sift_down(values, first, root, size)
    for end in range(size - 1, 0, -1):
        largest = values[first]
        values[first] = values[first + end]
        values[first + end] = largest
        _sift_down(values, first, 0, end)


@scalar
def sort_ranges(values, counts):
    """Sort ranges of values, one behind the other, in place; `counts`, int64[n], are the values of each."""
    first = int64(0)
    for i in range(counts.shape[0]):
        if counts[i] > 1:
            sort_range(values, first, first + counts[i])
        first += counts[i]

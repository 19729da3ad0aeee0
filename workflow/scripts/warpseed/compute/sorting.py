"""Sorting in place in compiled code: numbers, pairs of a key and what goes with it, values of queries."""

from __future__ import annotations

from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64

__all__ = ["STACK", "set_aside", "sort_all", "sort_numbers", "sort_pairs", "sort_range", "sort_ranges", "split_range"]

STACK = 129
"""Numbers that the stack of a sort has room for: how many ranges wait, then first and last of each."""
_FEW = 24
"""Numbers or pairs that are sorted by insertion."""


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
            pivot = _pivot(numbers, first, last, _number_at)
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
            first, last = set_aside(stack, waiting, (first, border), (border, last))
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
def _key_of_pair(pairs, i):
    keys, _ = pairs
    return keys[i]


@inlined
def _swap_pairs(pairs, i, j):
    keys, places = pairs
    keys[i], keys[j] = keys[j], keys[i]
    places[i], places[j] = places[j], places[i]


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
            low, high = split_range((keys, places), first, last, _key_of_pair, _swap_pairs)
            first, last = set_aside(stack, at, (first, low), (high, last))
            ranges, at = ranges + int64(1), at + int64(2)
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

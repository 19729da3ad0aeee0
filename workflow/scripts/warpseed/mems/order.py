"""Matches in order, in place and in n log n whatever order they had: quicksort, by insertion where few are left, and by
a heap where its pivots are bad (introsort)."""

from __future__ import annotations

from typing import Any

from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.mems.matches import PLACE_BITS

__all__ = ["sort_by_part", "sort_matches"]

_SHORT = 16
"""Matches that are sorted by insertion."""
_PLACE = (1 << PLACE_BITS) - 1


@inlined
def _before(place, span, other_place, other_span):
    """Whether a match comes before another in output order."""
    mine, other = place & uint64(_PLACE), other_place & uint64(_PLACE)
    return mine < other or (mine == other and span < other_span)


@inlined
def _before_by_part(place, span, other_place, other_span):
    return span < other_span


@inlined
def _put(hits, i, place, span):
    hits[i].place, hits[i].span = place, span


@inlined
def _swap(hits, i, j):
    place, span = hits[i].place, hits[i].span
    _put(hits, i, hits[j].place, hits[j].span)
    _put(hits, j, place, span)


def _sorter(before: Any) -> Any:
    """The function (hits, first, last) that sorts matches [first, last) by an order."""

    @inlined
    def is_before(hits, i, j):
        return before(hits[i].place, hits[i].span, hits[j].place, hits[j].span)

    @scalar
    def insert(hits, first, last):
        for i in range(first + int64(1), last):
            place, span, to = hits[i].place, hits[i].span, int64(i)
            while to > first and before(place, span, hits[to - int64(1)].place, hits[to - int64(1)].span):
                _put(hits, to, hits[to - int64(1)].place, hits[to - int64(1)].span)
                to -= int64(1)
            _put(hits, to, place, span)

    @scalar
    def sift_down(hits, first, node, count):
        child = int64(2) * node + int64(1)
        while child < count:
            if child + int64(1) < count and is_before(hits, first + child, first + child + int64(1)):
                child += int64(1)
            if not is_before(hits, first + node, first + child):
                return
            _swap(hits, first + node, first + child)
            node, child = child, int64(2) * child + int64(1)

    @scalar
    def sort_by_heap(hits, first, last):
        count = last - first
        for done in range(count // int64(2)):
            sift_down(hits, first, count // int64(2) - int64(1) - int64(done), count)
        for done in range(count - int64(1)):
            behind = count - int64(1) - int64(done)
            _swap(hits, first, first + behind)
            sift_down(hits, first, int64(0), behind)

    @scalar
    def part(hits, first, last):
        """Move matches so that none of [first, cut) comes behind one of [cut, last); returns `cut`, between the two.
        The pivot is the median of the first, the middle and the last one."""
        middle, end = (first + last) >> int64(1), last - int64(1)
        if is_before(hits, middle, first):
            _swap(hits, middle, first)
        if is_before(hits, end, middle):
            _swap(hits, end, middle)
            if is_before(hits, middle, first):
                _swap(hits, middle, first)
        place, span = hits[middle].place, hits[middle].span
        low, high = first, end
        while True:
            low += int64(1)
            while before(hits[low].place, hits[low].span, place, span):
                low += int64(1)
            high -= int64(1)
            while before(place, span, hits[high].place, hits[high].span):
                high -= int64(1)
            if low >= high:
                return low
            _swap(hits, low, high)

    @scalar
    def sort_parts(hits, first, last, cuts):
        while last - first > int64(_SHORT):
            if cuts == int64(0):
                sort_by_heap(hits, first, last)
                return
            cuts -= int64(1)
            cut = part(hits, first, last)
            if cut - first < last - cut:
                sort_parts(hits, first, cut, cuts)
                first = cut
            else:
                sort_parts(hits, cut, last, cuts)
                last = cut
        insert(hits, first, last)

    @scalar
    def sort(hits, first, last):
        count, cuts = last - first, int64(0)
        while count > int64(1):
            count >>= int64(1)
            cuts += int64(2)
        sort_parts(hits, int64(first), int64(last), cuts)

    return sort


_by_place, _by_part = _sorter(_before), _sorter(_before_by_part)


@scalar
def sort_matches(hits, first, last):
    """Put matches [first, last) in output order."""
    _by_place(hits, first, last)


@scalar
def sort_by_part(hits, first, last):
    """Put matches [first, last) of a read in the order of their spans: those of the same part stand together."""
    _by_part(hits, first, last)

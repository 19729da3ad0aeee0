"""Buckets of the fast tier's table, narrowed by the bases behind the K that they are of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import int64, scalar
from warpseed.compute.intrinsics import prefetch
from warpseed.fm_index.text import segment_of, suffix_start

__all__ = [
    "Narrowing",
    "begin_narrowing",
    "compare_suffix",
    "narrow",
    "narrow_together",
    "new_narrowing",
    "prefetch_rows",
    "prefetch_text",
]


class Narrowing(NamedTuple):
    """Buckets of one thread whose rows are narrowed side by side."""

    item: np.ndarray
    """int32[n], what the rows are of"""
    bases: np.ndarray
    """int32[n], how many bases they must begin with, at most 32"""
    wanted: np.ndarray
    """uint64[n], these, packed, the first on top"""
    first: np.ndarray
    """int64[n], where the border that is searched may lie"""
    last: np.ndarray
    """int64[n], behind that"""
    equal: np.ndarray
    """int64[n], a row known to begin with what is wanted, -1 before one is met, -2 where the end is searched"""
    above: np.ndarray
    """int64[n], rows known to be greater begin here"""


def new_narrowing(most: int) -> Narrowing:
    """Room for so many at a time."""
    item, bases = np.empty((2, most), np.int32)
    first, last, equal, above = np.empty((4, most), np.int64)
    return Narrowing(item, bases, np.empty(most, np.uint64), first, last, equal, above)


@scalar
def compare_suffix(fast, row, wanted, length):
    """-1, 0, 1: the first `length` (at most 32) bases of a row's suffix against a packed string."""
    position = suffix_start(fast.suffix_array, row)
    end = int64(fast.segments.text_start[segment_of(fast.segments, position) + int64(1)]) - int64(1)
    there = min(length, end - position)
    mask = prefix_mask(there)
    suffix = fetch_word(fast.text, position) & mask
    if suffix != wanted & mask:
        return int64(-1) if suffix < wanted & mask else int64(1)
    return int64(0) if there == length else int64(-1)


@scalar
def narrow(fast, low, high, wanted, length):
    """The rows of [low, high) whose suffixes begin with `wanted`, by binary search.

    Parameters
    ----------
    wanted : uint64, packed, first base on top
    length : int64, its bases, at most 32

    Returns
    -------
    (low, high) : int64
    """
    first, last = low, high
    while first < last:
        middle = (first + last) >> int64(1)
        if compare_suffix(fast, middle, wanted, length) < int64(0):
            first = middle + int64(1)
        else:
            last = middle
    begin, last = first, high
    while first < last:
        middle = (first + last) >> int64(1)
        if compare_suffix(fast, middle, wanted, length) > int64(0):
            last = middle
        else:
            first = middle + int64(1)
    return begin, first


@scalar
def begin_narrowing(fast, narrowing, at, item, low, high, wanted, bases):
    """Set search `at` to the rows [low, high) of an item, at least one, and prefetch for its first step."""
    narrowing.item[at] = item
    narrowing.bases[at] = bases
    narrowing.wanted[at] = wanted
    narrowing.first[at] = low
    narrowing.last[at] = high
    narrowing.equal[at] = -1
    narrowing.above[at] = high
    prefetch(fast.suffix_array, (low + high) >> int64(1))


@scalar
def narrow_together(fast, narrowing, count, lows, highs):
    """Binary searches of the first `count` side by side: a step of each prefetches for the next pass over them.

    What `narrow` returns of item i goes into ``lows[i]`` and ``highs[i]``.
    """
    searched = count
    while searched > int64(0):
        for c in range(searched):
            middle = (narrowing.first[c] + narrowing.last[c]) >> int64(1)
            prefetch_text(fast, suffix_start(fast.suffix_array, middle))
        going = int64(0)
        for c in range(searched):
            if _step(fast, narrowing, c, lows, highs):
                continue
            prefetch(fast.suffix_array, (narrowing.first[c] + narrowing.last[c]) >> int64(1))
            if going != c:
                narrowing.item[going] = narrowing.item[c]
                narrowing.bases[going] = narrowing.bases[c]
                narrowing.wanted[going] = narrowing.wanted[c]
                narrowing.first[going] = narrowing.first[c]
                narrowing.last[going] = narrowing.last[c]
                narrowing.equal[going] = narrowing.equal[c]
                narrowing.above[going] = narrowing.above[c]
            going += int64(1)
        searched = going


@scalar
def prefetch_rows(fast, low, high):
    """The first and the last of some rows, at least one: those of a small bucket lie in two cache lines at most."""
    prefetch(fast.suffix_array, low)
    prefetch(fast.suffix_array, high - int64(1))


@scalar
def prefetch_text(fast, place):
    """Both words that 32 bases may lie in: every eighth pair of them has its second in another cache line."""
    word = place >> int64(5)
    prefetch(fast.text, word)
    prefetch(fast.text, word + int64(1))


@scalar
def _step(fast, narrowing, c, lows, highs):
    """A step of search c, first for the first row that begins with what is wanted, then for the row behind the last
    one; whether it is done."""
    item = narrowing.item[c]
    middle = (narrowing.first[c] + narrowing.last[c]) >> int64(1)
    order = compare_suffix(fast, middle, narrowing.wanted[c], int64(narrowing.bases[c]))
    to_end = narrowing.equal[c] == int64(-2)
    if order < int64(0) or (to_end and order == int64(0)):
        narrowing.first[c] = middle + int64(1)
    else:
        narrowing.last[c] = middle
        if order > int64(0):
            narrowing.above[c] = middle
        elif narrowing.equal[c] < int64(0):
            narrowing.equal[c] = middle
    first = narrowing.first[c]
    if first < narrowing.last[c]:
        return False
    if not to_end:
        lows[item] = first
        if narrowing.equal[c] >= int64(0):
            first = narrowing.equal[c] + int64(1)
            narrowing.equal[c] = -2
            narrowing.first[c] = first
            narrowing.last[c] = narrowing.above[c]
            if first < narrowing.last[c]:
                return False
    highs[item] = first
    if lows[item] < first:
        prefetch_rows(fast, lows[item], first)
    return True

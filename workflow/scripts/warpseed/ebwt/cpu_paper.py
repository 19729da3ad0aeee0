"""The paper tier on the CPU: one thread."""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import int64, scalar
from warpseed.compute.machine import available_memory
from warpseed.compute.pipeline import check_wanted
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt.paper import (
    EMPTY,
    NO_PAIRS,
    Compared,
    Written,
    all_pairs,
    bitonic_steps,
    comes_after,
    distance_matrix,
    exchange,
    pair_distance,
    prefix_length_that_fits,
    room_for_pointers,
    write_conjugate,
)
from warpseed.ebwt.words import Words
from warpseed.errors import InputError

__all__ = ["SORTS", "compare", "distances", "order_conjugates"]

SORTS = ("bitonic", "merge")
"""The sort of Tables 1 and 2, and the optimised one of Table 3."""
_WORDS_AT_ONCE = 64
_PAIRS_AT_ONCE = 256


@scalar
def _write_words(codes, offsets, first, last, written):
    for word in range(first, last):
        span = int64(offsets[word]), int64(offsets[word + 1])
        for position in range(span[0], span[1]):
            write_conjugate(codes, span, int64(position), written, word)


def _write(words: Words, letters: int) -> Written:
    """Every conjugate, word by word."""
    count = len(words.codes)
    numbers = np.empty(count, np.uint32), np.empty(count, np.uint32)
    written = Written(np.empty((count, letters), np.uint8), *numbers)
    for first in range(0, len(words.offsets) - 1, _WORDS_AT_ONCE):
        check_wanted()
        last = min(first + _WORDS_AT_ONCE, len(words.offsets) - 1)
        _write_words(words.codes, words.offsets, first, last, written)
    return written


# ---- sorts


@scalar
def _run_step(written, pointers, size, stride):
    """One step of the bitonic sort, its threads one after the other."""
    for thread in range(pointers.shape[0] // 2):
        exchange(written, pointers, int64(thread), int64(size), int64(stride))


def _sort_bitonically(words: Words, written: Written) -> np.ndarray:
    count = len(words.codes)
    pointers = np.full(room_for_pointers(words), EMPTY)
    pointers[:count] = np.arange(count)
    for size, stride in bitonic_steps(len(pointers)):
        check_wanted()
        _run_step(written, pointers, size, stride)
    return pointers[:count]


@scalar
def _merge_runs(written, pointers, width, merged):
    """Merge runs of `width` pointers, two by two."""
    count = int64(pointers.shape[0])
    for begin in range(int64(0), count, int64(2) * width):
        middle = min(begin + width, count)
        end = min(middle + width, count)
        left, right = begin, middle
        for place in range(begin, end):
            if right == end or (left < middle and not comes_after(written, pointers[left], pointers[right])):
                merged[place] = pointers[left]
                left += int64(1)
            else:
                merged[place] = pointers[right]
                right += int64(1)


def _sort_by_merging(words: Words, written: Written) -> np.ndarray:
    pointers = np.arange(len(words.codes), dtype=np.uint32)
    merged = np.empty_like(pointers)
    width = 1
    while width < len(pointers):
        check_wanted()
        _merge_runs(written, pointers, width, merged)
        pointers, merged, width = merged, pointers, 2 * width
    return pointers


# ---- distances


@scalar
def _measure_pairs(colours, pairs, measured):
    for i in range(pairs.shape[0]):
        measured[i] = pair_distance(colours, pairs[i, 0], pairs[i, 1])


def _distances(colours: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    measured = np.empty(len(pairs), np.int64)
    for first in range(0, len(pairs), _PAIRS_AT_ONCE):
        check_wanted()
        part = slice(first, first + _PAIRS_AT_ONCE)
        _measure_pairs(colours, pairs[part], measured[part])
    return measured


# ---- all of it


def compare(words: Words, pairs: np.ndarray, sort: str = "bitonic", *, watch: Stopwatch | None = None) -> Compared:
    """Order the conjugates of words, and measure δ of pairs of them.

    Parameters
    ----------
    words : Words
    pairs : uint32[p, 2], numbers of words
    sort : one of SORTS
    watch : takes the seconds of ``conjugates``, ``sort`` and, where there are pairs, ``distance``

    Raises
    ------
    MemoryLimitError : there is no memory for all conjugates
    """
    watch = watch or Stopwatch()
    if sort not in SORTS:
        raise InputError(f"sort is {sort!r}, but 'bitonic' or 'merge' was expected on the CPU.")
    letters = prefix_length_that_fits(words, available_memory())
    with watch.stage("conjugates"):
        written = _write(words, letters)
    with watch.stage("sort"):
        order = {"bitonic": _sort_bitonically, "merge": _sort_by_merging}[sort](words, written)
    if not len(pairs):
        return Compared(order, np.empty(0, np.int64))
    with watch.stage("distance"):
        return Compared(order, _distances(written.words[order], pairs))


def order_conjugates(words: Words, *, sort: str = "bitonic", watch: Stopwatch | None = None) -> np.ndarray:
    """The position of the conjugate of each rank, in ω-order: uint32[N]; parameters and errors as of `compare`."""
    return compare(words, NO_PAIRS, sort, watch=watch).order


def distances(words: Words, order: np.ndarray, *, watch: Stopwatch | None = None) -> np.ndarray:
    """δ of all pairs of words whose conjugates are in order (as `order_conjugates` gives it): int64[m, m]."""
    count = len(words.offsets) - 1
    colours = np.repeat(np.arange(count, dtype=np.uint32), words.lengths)[order]
    with (watch or Stopwatch()).stage("distance"):
        return distance_matrix(count, _distances(colours, all_pairs(count)))

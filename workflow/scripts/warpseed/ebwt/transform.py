"""The extended Burrows-Wheeler transform of words whose conjugates are ordered, and back (Definition 3, Proposition 6).

Ranks are 0-based here, and 1-based in files and in print. Words that are powers are transformed, too: of their
conjugates several are equal, and these stand in the order of words, then of offsets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint8, uint64
from warpseed.compute.pipeline import check_wanted
from warpseed.compute.ranges import STEP, on_threads, spans_of, steps
from warpseed.ebwt.words import Words
from warpseed.errors import InputError
from warpseed.sequences.names import Names, offsets_of

__all__ = ["Transform", "inverse", "transform_of"]

_BEGINS = 256
"""Is added to the letter before a position at which a word begins."""


class Transform(NamedTuple):
    """The pair (L, I) of Definition 3 as of Remark 4, for words in an order."""

    last: np.ndarray
    """uint8[N], L: the last letter of each of the ordered conjugates, which of `letters` it is"""
    indices: np.ndarray
    """int64[m], I: the rank of each word itself among the conjugates, 0-based, in the words' order"""
    letters: bytes
    """the letters that may occur, ascending"""


def transform_of(words: Words, order: np.ndarray, *, threads: int = 1) -> Transform:
    """The transform of words whose conjugates are in ω-order.

    Parameters
    ----------
    words : Words
    order : uint32[N] or uint64[N], the position of the conjugate of each rank, as `cpu.order_conjugates` gives it
    threads : CPU threads
    """
    starts = words.offsets[:-1]
    before = np.empty(len(words.codes), np.uint16)
    before[1:] = words.codes[:-1]
    before[starts] = words.codes[words.offsets[1:] - 1] + np.uint16(_BEGINS)
    last = np.empty(len(words.codes), np.uint8)
    indices = np.empty(len(starts), np.int64)
    spans = spans_of(len(last), threads)
    on_threads(threads, lambda number: _take_last(before, order, spans[number], starts, last, indices), len(spans))
    return Transform(last, indices, words.letters)


@scalar
def _take_last(before, order, span, starts, last, indices):
    """L of the ranks [first, end), and the ranks of words that are there."""
    first, end = span
    for rank in range(first, end):
        position = order[uint64(rank)]
        letter = before[uint64(position)]
        last[uint64(rank)] = uint8(letter)
        if letter >= _BEGINS:
            low, high = int64(0), int64(starts.shape[0])
            while high - low > int64(1):
                middle = (low + high) >> int64(1)
                if starts[middle] <= int64(position):
                    low = middle
                else:
                    high = middle
            indices[low] = rank


def inverse(transform: Transform) -> Words:
    """The words of a transform, in the order of its indices; their names are "0", "1", ….

    By Proposition 6 the i-th occurrence of a letter in L is its i-th among the first letters, so that from the rank of
    a word its letters are met, the last one first. A word that is a power of its root is met as several cycles: that of
    its index, and those of the ranks behind it, which hold no index.

    Raises
    ------
    InputError : the pair is no transform of any words
    """
    last, indices = transform.last, np.asarray(transform.indices, np.int64)
    size = len(last)
    if not (len(indices) and indices.min() >= 0 and indices.max() < size):
        raise InputError(f"The transform has {size} ranks, and an index among them was expected for each word.")
    previous = _previous_ranks(last)
    met, roots = np.zeros(size, np.uint8), np.zeros(len(indices), np.int64)
    state = np.zeros(3, np.int64)
    while state[0] < len(indices):
        check_wanted()
        _walk_cycles(previous, indices, state, met, roots)
    copies = np.empty(len(indices), np.int64)
    _count_copies(met, indices, copies)
    offsets = offsets_of(roots * copies)
    if (roots == 0).any() or offsets[-1] != size:
        raise InputError("The letters of the transform do not lead from its indices to all of them; it is damaged.")
    # All cycles, those of one word behind each other.
    firsts = offsets_of(copies)
    cycles = np.repeat(indices - firsts[:-1], copies) + np.arange(firsts[-1])
    ends = np.cumsum(np.repeat(roots, copies))
    codes = np.empty(size, np.uint8)
    state[:] = 0
    right = True
    while right and state[0] < len(cycles):
        check_wanted()
        right = _take_letters(last, cycles, ends, previous, state, met, codes)
    for number in np.flatnonzero(copies > 1):
        word = codes[offsets[number] : offsets[number + 1]]
        right = right and bool((word[: -roots[number]] == word[roots[number] :]).all())
    if not right:
        raise InputError("The letters of the transform lead from its indices in several ways; it is damaged.")
    return Words(transform.letters, codes, offsets, Names.numbered(b"", len(indices)))


def _previous_ranks(last: np.ndarray) -> np.ndarray:
    """Of each rank that of the conjugate that begins a letter earlier, uint32[N] or uint64[N]."""
    previous = np.empty(len(last), np.uint32 if len(last) < 1 << 32 else np.uint64)
    smaller = offsets_of(np.bincount(last, minlength=256))
    for first, end in steps(0, len(last)):
        _map_to_first(last, first, end, smaller, previous)
    return previous


@scalar
def _map_to_first(last, first, end, smaller, previous):
    """The ranks before [first, end); `smaller`, int64[257], counts of each letter what has been met."""
    for rank in range(first, end):
        letter = uint64(last[uint64(rank)])
        previous[uint64(rank)] = smaller[letter]
        smaller[letter] += 1


@scalar
def _walk_cycles(previous, indices, state, met, roots):
    """Walk through the cycles of indices, some steps; `met` is 1 for their ranks, `roots` how long they are.

    Parameters
    ----------
    state : int64[3], an index, and where its cycle goes on: the rank and the steps before it, 0 at its beginning
    """
    number, rank, length = state[0], state[1], state[2]
    for _ in range(STEP):
        if length == int64(0):
            rank = indices[number]
        if met[uint64(rank)] != uint8(0):
            # At its beginning, or in a cycle that another index has.
            roots[number] = length if rank == indices[number] else int64(0)
            number, length = number + int64(1), int64(0)
            if number == indices.shape[0]:
                break
            continue
        met[uint64(rank)] = 1
        rank = int64(previous[uint64(rank)])
        length += int64(1)
    state[0], state[1], state[2] = number, rank, length


@scalar
def _count_copies(met, indices, copies):
    """Of each index the ranks from it up to the next that is met."""
    for number in range(indices.shape[0]):
        rank = indices[number] + int64(1)
        while rank < met.shape[0] and met[rank] == uint8(0):
            rank += int64(1)
        copies[number] = rank - indices[number]


@scalar
def _take_letters(last, begins, ends, previous, state, met, codes):
    """Walk through cycles, some steps, and write their letters.

    Parameters
    ----------
    begins, ends : int64[c], of each cycle a rank, and the end of its letters in `codes`
    state : int64[3], a cycle, the rank where it goes on, and the letters that are written
    met : uint8[N], set to 2 for ranks whose letters are written

    Returns
    -------
    bool, whether each of these ranks was met for the first time, and each cycle closed where its letters end
    """
    number, rank, written = state[0], state[1], state[2]
    right = True
    for _ in range(STEP):
        begin = ends[number - int64(1)] if number > int64(0) else int64(0)
        if written == begin:
            rank = begins[number]
        right = right and met[uint64(rank)] != uint8(2)
        met[uint64(rank)] = 2
        codes[uint64(ends[number] - int64(1) - (written - begin))] = last[uint64(rank)]
        rank = int64(previous[uint64(rank)])
        written += int64(1)
        if written == ends[number]:
            right = right and rank == begins[number]
            number += int64(1)
            if number == begins.shape[0]:
                break
    state[0], state[1], state[2] = number, rank, written
    return right

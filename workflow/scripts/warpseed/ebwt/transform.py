"""The extended Burrows-Wheeler transform of words whose conjugates are ordered, and back (Definition 3, Proposition 6).

Ranks are 0-based here, and 1-based in files and in print. Words that are powers are transformed, too: of their
conjugates several are equal, and these stand in the order of words, then of offsets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint8, uint64
from warpseed.compute.machine import require_memory
from warpseed.compute.pipeline import check_wanted
from warpseed.compute.ranges import STEP, borders_of, on_threads, spans_of, steps
from warpseed.compute.searching import owner_of
from warpseed.ebwt.fast import threads_for
from warpseed.ebwt.words import Words
from warpseed.errors import InputError
from warpseed.sequences.names import Names

__all__ = ["Transform", "inverse", "transform_of"]

_INVERSE_BYTES = 16
"""Of memory that a letter takes on its way back."""
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

    Raises
    ------
    MemoryLimitError : there is not enough memory
    """
    what = f"The transform of {len(order):,} letters takes"
    require_memory(3 * len(order), what, "take fewer or shorter words, or a machine with more memory")
    starts = words.offsets[:-1]
    before = np.empty(len(words.codes), np.uint16)
    before[1:] = words.codes[:-1]
    before[starts] = words.codes[words.offsets[1:] - 1] + np.uint16(_BEGINS)
    last = np.empty(len(words.codes), np.uint8)
    indices = np.empty(len(starts), np.int64)
    threads = threads_for(len(last), threads)
    spans = spans_of(len(last), threads)
    on_threads(
        threads, lambda number: _take_last(before, order, spans[number], words.offsets, last, indices), len(spans)
    )
    return Transform(last, indices, words.letters)


@scalar
def _take_last(before, order, span, offsets, last, indices):
    """L of the ranks [first, end), and the ranks of words that are there."""
    first, end = span
    for rank in range(first, end):
        position = order[uint64(rank)]
        letter = before[uint64(position)]
        last[uint64(rank)] = uint8(letter)
        if letter >= _BEGINS:
            indices[owner_of(offsets, int64(position))] = rank


def inverse(transform: Transform) -> Words:
    """The words of a transform, in the order of its indices; their names are "0", "1", ….

    By Proposition 6 the i-th occurrence of a letter in L is its i-th among the first letters, so that from the rank of
    a word its letters are met, the last one first. A word that is a power of its root is met as several cycles: that of
    its index, and those of the ranks behind it, which hold no index.

    Raises
    ------
    InputError : the pair is no transform of any words
    MemoryLimitError : there is not enough memory
    """
    last, indices = transform.last, np.asarray(transform.indices, np.int64)
    size = len(last)
    if not (len(indices) and indices.min() >= 0 and indices.max() < size):
        raise InputError(f"The transform has {size} ranks, and an index among them was expected for each word.")
    require_memory(_INVERSE_BYTES * size, f"The words of {size:,} letters take", "use a machine with more memory")
    previous = _previous_ranks(last)
    met, roots = np.zeros(size, np.uint8), np.zeros(len(indices), np.int64)
    least = np.empty((len(indices), 2), np.int64)
    state = np.zeros(3, np.int64)
    while state[0] < len(indices):
        check_wanted()
        _walk_cycles(previous, indices, state, met, roots, least)
    copies = np.empty(len(indices), np.int64)
    _count_copies(met, indices, copies)
    offsets = borders_of(roots * copies)
    if (roots == 0).any() or offsets[-1] != size:
        raise InputError("The letters of the transform do not lead from its indices to all of them; it is damaged.")
    # All cycles, those of one word behind each other.
    firsts = borders_of(copies)
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
    if not _are_in_order(codes, offsets, roots, copies, least, np.argsort(least[:, 0])):
        raise InputError(
            "The indices of words whose conjugates are equal are in another order than these; it is damaged."
        )
    return Words(transform.letters, codes, offsets, Names.numbered(b"", len(indices)))


def _previous_ranks(last: np.ndarray) -> np.ndarray:
    """Of each rank that of the conjugate that begins a letter earlier, uint32[N] or uint64[N]."""
    previous = np.empty(len(last), np.uint32 if len(last) < 1 << 32 else np.uint64)
    counts = np.zeros(256, np.int64)
    for first, end in steps(0, len(last)):
        counts += np.bincount(last[first:end], minlength=256)
    smaller = borders_of(counts)
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
def _walk_cycles(previous, indices, state, met, roots, least):
    """Walk through the cycles of indices, some steps; `met` is 1 for their ranks, `roots` how long they are.

    Parameters
    ----------
    least : int64[m, 2], of each cycle the smallest rank, and the offset in the root at which its conjugate begins
    state : int64[3], an index, and where its cycle goes on: the rank and the steps before it, 0 at its beginning
    """
    number, rank, length = state[0], state[1], state[2]
    for _ in range(STEP):
        if length == int64(0):
            rank = indices[number]
            least[number, 0], least[number, 1] = rank, int64(0)
        if met[uint64(rank)] != uint8(0):
            # At its beginning, or in a cycle that another index has.
            roots[number] = length if rank == indices[number] else int64(0)
            if least[number, 1] > int64(0):
                least[number, 1] = length - least[number, 1]
            number, length = number + int64(1), int64(0)
            if number == indices.shape[0]:
                break
            continue
        met[uint64(rank)] = 1
        if rank < least[number, 0]:
            least[number, 0], least[number, 1] = rank, length
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
def _are_in_order(codes, offsets, roots, copies, least, by_rank):
    """Whether words of the same root, up to rotation, have their ranks in the order of their lengths, then their own.

    Parameters
    ----------
    least : of `_walk_cycles`: where roots are the same the smallest ranks are of the same conjugate
    by_rank : int64[m], the words by their smallest ranks
    """
    for i in range(1, by_rank.shape[0]):
        first, second = by_rank[i - 1], by_rank[i]
        root = roots[first]
        beside = least[second, 0] == least[first, 0] + copies[first] and roots[second] == root
        if not beside or copies[first] < copies[second] or (copies[first] == copies[second] and first < second):
            continue
        same, x = True, int64(0)
        while same and x < root:
            letter = codes[uint64(offsets[first] + (least[first, 1] + x) % root)]
            same = letter == codes[uint64(offsets[second] + (least[second, 1] + x) % root)]
            x += int64(1)
        if same:
            return False
    return True


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

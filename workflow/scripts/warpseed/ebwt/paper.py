"""The paper tier of the extended Burrows-Wheeler transform: what its CPU and GPU side do alike (paper 004, sections III
to VI).

All conjugates are written out, to the length H of section III, which tells any two apart that do not have the same
root. What is sorted are pointers to them; the pointer to a conjugate is its position in the words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint8, uint32, uint64
from warpseed.ebwt.words import Words
from warpseed.errors import MemoryLimitError

__all__ = [
    "EMPTY",
    "NO_PAIRS",
    "Compared",
    "Written",
    "all_pairs",
    "begin_exchange",
    "bitonic_steps",
    "prefix_length_that_fits",
    "comes_after",
    "distance_matrix",
    "exchange",
    "letters_at",
    "pair_distance",
    "prefix_length",
    "room_for_pointers",
    "write_conjugate",
]

EMPTY = np.uint32(0xFFFF_FFFF)
"""The pointer that fills a bitonic sort up to a power of two: it comes after all conjugates."""
NO_PAIRS = np.empty((0, 2), np.uint32)
_LETTERS_A_KEY = 8


class Written(NamedTuple):
    """Conjugates written out; the row of one is its position."""

    prefixes: np.ndarray
    """uint8[N, H], codes of the letters of Pref_H(w^ω)"""
    words: np.ndarray
    """uint32[N], the number of its word, which is its colour"""
    lengths: np.ndarray
    """uint32[N], letters of its word: of words with the same root they stand in for the exponents"""


class Compared(NamedTuple):
    """What comes of a set of words."""

    order: np.ndarray
    """uint32[N], the position of the conjugate of each rank, in ω-order"""
    distances: np.ndarray
    """int64[p], δ of each pair of words that was asked for"""


def prefix_length(words: Words) -> int:
    """H of section III: the most of |u| + |v| - gcd(|u|, |v|) over all pairs of words."""
    lengths = np.unique(words.lengths)
    return max(int((lengths + each - np.gcd(lengths, each)).max()) for each in lengths)


def room_for_pointers(words: Words) -> int:
    """Pointers of a bitonic sort: a power of two."""
    return 1 << (len(words.codes) - 1).bit_length()


def prefix_length_that_fits(words: Words, free: int) -> int:
    """H, as of `prefix_length`, if there is memory for all conjugates.

    Raises
    ------
    MemoryLimitError : there is not, or there are more conjugates than pointers
    """
    count, letters = len(words.codes), prefix_length(words)
    if count >= EMPTY:
        raise MemoryLimitError(
            f"There are {count:,} conjugates, but the paper tier has {EMPTY:,} pointers; use tier='fast'."
        )
    needed = count * (letters + 8) + 12 * room_for_pointers(words)
    if needed > free:
        raise MemoryLimitError(
            f"The paper tier writes out {count:,} conjugates of {letters:,} letters, in {needed / 1e9:.3g} GB, "
            f"but {max(free, 0) / 1e9:.3g} GB are free; use tier='fast', which writes out none."
        )
    return letters


# ---- conjugates


@scalar
def write_conjugate(codes, span, position, written, word):
    """Write out the conjugate at a position of the word number `word`, which lies at [first, end) of the codes."""
    first, end = span
    place = position
    for i in range(written.prefixes.shape[1]):
        written.prefixes[position, i] = codes[place]
        place += int64(1)
        if place == end:
            place = first
    written.words[position] = uint32(word)
    written.lengths[position] = uint32(end - first)


@scalar
def comes_after(written, left, right):
    """Whether the conjugate that one pointer leads to stands behind that of another (Definition 1)."""
    if left == EMPTY or right == EMPTY:
        return left > right
    for i in range(written.prefixes.shape[1]):
        a, b = written.prefixes[left, i], written.prefixes[right, i]
        if a != b:
            return a > b
    if written.lengths[left] != written.lengths[right]:
        return written.lengths[left] > written.lengths[right]
    return left > right


# ---- the bitonic sort


def bitonic_steps(pointers: int) -> list[tuple[int, int]]:
    """(size, stride) of each step of a bitonic sort of so many pointers, a power of two."""
    sizes = [1 << bit for bit in range(1, pointers.bit_length())]
    return [(size, stride) for size in sizes for stride in (size >> bit for bit in range(1, size.bit_length()))]


@scalar
def begin_exchange(thread, stride):
    """The first of the two places that are a thread's in a step; the other is `stride` behind it."""
    return ((thread & ~(stride - int64(1))) << int64(1)) | (thread & (stride - int64(1)))


@scalar
def exchange(written, pointers, thread, size, stride):
    """One thread of a step: exchange two pointers that do not stand as their half of the `size` is to stand."""
    low = begin_exchange(thread, stride)
    high = low + stride
    left, right = pointers[low], pointers[high]
    descending = (low & size) != int64(0)
    if comes_after(written, left, right) != descending:
        pointers[low], pointers[high] = right, left


# ---- the library's sort


@scalar
def letters_at(prefixes, pointer, first):
    """Eight letters of a conjugate from the `first` on, as a number that is ordered as they are."""
    key = uint64(0)
    for i in range(_LETTERS_A_KEY):
        place = first + int64(i)
        letter = prefixes[pointer, place] if place < int64(prefixes.shape[1]) else uint8(0)
        key = (key << uint64(8)) | uint64(letter)
    return key


# ---- distances


def all_pairs(words: int) -> np.ndarray:
    """The pairs (u, v), u < v, of so many words: uint32[p, 2]."""
    return np.column_stack(np.triu_indices(words, 1)).astype(np.uint32)


def distance_matrix(words: int, distances: np.ndarray) -> np.ndarray:
    """δ of `all_pairs` as int64[m, m]; of a word and itself it is 0."""
    matrix = np.zeros((words, words), np.int64)
    matrix[np.triu_indices(words, 1)] = distances
    return matrix + matrix.T


@scalar
def pair_distance(colours, first, second):
    """δ of two words by Definition 24: of the conjugates of both, in order, those that follow one of the same word.

    colours : uint32[N], the word of each rank; all are read
    """
    distance, before = int64(0), EMPTY
    for rank in range(colours.shape[0]):
        colour = colours[rank]
        if colour != first and colour != second:
            continue
        if colour == before:
            distance += int64(1)
        before = colour
    return distance

"""Whether rows are the suffix array of a text, by its packed words and segments, and that array as libdivsufsort makes
it: no code of the library is asked."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from pydivsufsort import divsufsort

__all__ = ["by_libdivsufsort", "is_permutation", "rows_out_of_order"]

WORD = 32
"""Bases of a word, the first on top."""
PIECE = 1 << 21
"""Rows whose positions are marked at a time."""


def is_permutation(suffix_array: np.ndarray, threads: int = 1) -> bool:
    """Whether each position stands in one row."""
    if suffix_array.max() >= len(suffix_array):
        return False
    there = np.zeros(len(suffix_array), np.bool_)

    def mark(first: int) -> None:
        there[suffix_array[first : first + PIECE]] = True

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(mark, range(0, len(suffix_array), PIECE)))
    return bool(there.all())


def rows_out_of_order(
    words: np.ndarray, text_start: np.ndarray, suffix_array: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Those of some rows whose suffix is not smaller than that of the next row.

    A suffix ends where its segment does; one that ends is smaller than what goes on, and of equal ones the first in the
    text is smaller.

    Parameters
    ----------
    words : uint64[n // 32 + 2 or more], bases of the text, separators as any of them
    text_start : uint32[m + 1], where segments begin, each with a separator behind it, and n
    suffix_array : uint32[n]
    rows : int64[r], each below n - 1
    """
    # In the first line of each array stands what belongs to the row, in the second what belongs to the next one.
    positions = np.stack([suffix_array[rows], suffix_array[rows + 1]]).astype(np.int64)
    left = text_start[np.searchsorted(text_start, positions, side="right")] - 1 - positions
    wrong, equal = np.zeros(len(rows), np.bool_), np.arange(len(rows))
    while len(equal):
        both = np.minimum(left.min(axis=0), WORD)
        bases = _first_bases(words, positions, both)
        differ = bases[0] != bases[1]
        ends = ~differ & (both < WORD)
        later = (left[0] > left[1]) | ((left[0] == left[1]) & (positions[0] >= positions[1]))
        wrong[equal] = np.where(differ, bases[0] > bases[1], ends & later)
        goes_on = ~differ & ~ends
        equal, positions, left = equal[goes_on], positions[:, goes_on] + WORD, left[:, goes_on] - WORD
    return rows[wrong]


def _first_bases(words: np.ndarray, positions: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """So many bases, up to 32, from each position on, as numbers whose lowest bits are the last base."""
    place, inside = positions // WORD, (2 * (positions % WORD)).astype(np.uint64)
    # A shift by 64 bits is none, so what may be as far goes in two steps.
    window = (words[place] << inside) | (words[place + 1] >> (np.uint64(62) - inside) >> np.uint64(2))
    half = (WORD - counts).astype(np.uint64)
    return window >> half >> half


def by_libdivsufsort(segments: list[str]) -> np.ndarray:
    """Rows of some segments, whose separators are letters of their own; there are at most 252."""
    symbols = [np.frombuffer(segment.encode(), np.uint8) for segment in segments]
    letters = np.searchsorted(np.frombuffer(b"ACGT", np.uint8), np.concatenate(symbols)) + len(segments)
    ends = np.cumsum([len(segment) for segment in segments])
    text = np.insert(letters, ends, np.arange(len(segments)))
    return divsufsort(text.astype(np.uint8)).astype(np.uint32)

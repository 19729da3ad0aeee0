"""A BWT in the layout of paper 000, section III, from a text and its suffix array."""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.fm_index.parts import Arrays, Sizes, new_arrays

__all__ = ["longest_walk", "make_bwt"]


@scalar
def _fill_blocks(text, suffix_array, occ_interval, sa_interval, arrays, counts):
    """B, ROcc, the separators before each block and RSA in one pass over the suffix array."""
    rocc, bwt, separators, rsa = arrays
    rows = suffix_array.shape[0]
    sampled = int64(0)
    for block in range(separators.shape[0]):
        for c in range(4):
            rocc[4 * block + c] = uint32(counts[c + 1])
        separators[block] = uint32(counts[0])
        for first in range(block * occ_interval, min((block + 1) * occ_interval, rows), 32):
            word = uint64(0)
            for row in range(first, min(first + 32, rows)):
                position = int64(suffix_array[row])
                if row == sampled * sa_interval:
                    rsa[sampled] = uint32(position)
                    sampled += int64(1)
                symbol = int64(0) if position == 0 else int64(text[position - 1])
                counts[symbol] += 1
                word |= uint64(max(symbol - 1, 0)) << uint64(62 - 2 * (row - first))
            bwt[first >> 5] = word


@scalar
def _collect_separators(text, suffix_array, occ_interval, separators, row_of, position_of):
    """The rows whose BWT character is a separator, from the blocks that hold one."""
    rows = suffix_array.shape[0]
    found = 0
    for block in range(separators.shape[0] - 1):
        if separators[block] == separators[block + 1]:
            continue
        for row in range(block * occ_interval, min((block + 1) * occ_interval, rows)):
            position = int64(suffix_array[row])
            if position == 0 or text[position - 1] == 0:
                row_of[found] = uint32(row)
                position_of[found] = uint32(position)
                found += 1


@scalar
def _mark(positions, marks):
    for i in range(positions.shape[0]):
        position = int64(positions[i])
        marks[position >> 6] |= uint64(1) << uint64(position & 63)


@scalar
def _longest_gap(marks, rows):
    longest = int64(0)
    last = int64(0)
    for word in range(marks.shape[0]):
        if marks[word] != uint64(0):
            for bit in range(64):
                if (marks[word] >> uint64(bit)) & uint64(1):
                    position = int64(64) * word + bit
                    longest = max(longest, position - last - int64(1))
                    last = position
    return max(longest, rows - int64(1) - last)


def longest_walk(rsa: np.ndarray, separator_position: np.ndarray, rows: int) -> int:
    """The most LF steps from any row to one whose position is known; every position is below `rows`.

    A step of LF goes one position to the left, so a walk ends at the next known position before its start. Every
    segment's first position is known, the text's own among them.
    """
    marks = np.zeros((rows + 63) // 64, np.uint64)
    _mark(rsa, marks)
    _mark(separator_position, marks)
    return int(_longest_gap(marks, rows))


def make_bwt(part: str, text: np.ndarray, suffix_array: np.ndarray, sizes: Sizes) -> Arrays:
    """The arrays of part `forward` from the text, or of `reverse` from the reversed text.

    Parameters
    ----------
    text : uint8[n], 0 for a separator, 1..4 for ACGT
    suffix_array : uint32[n]
    """
    made = new_arrays(part, sizes)
    occ_interval, sa_interval, _ = sizes.parameters
    counts = np.zeros(5, np.int64)
    filled = (made["rocc"], made["bwt"], made["separators"], made["rsa"])
    _fill_blocks(text, suffix_array, occ_interval, sa_interval, filled, counts)
    ends = (made["separators"], made["separator_row"], made["separator_position"])
    _collect_separators(text, suffix_array, occ_interval, *ends)
    made["first_row"][:] = np.cumsum(counts)
    made["longest_walk"][:] = longest_walk(made["rsa"], made["separator_position"], sizes.rows)
    return made

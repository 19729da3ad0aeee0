"""A BWT in the layout of paper 000, section III, from a text and its suffix array."""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64
from warpseed.compute.ranges import STEP, on_threads, spans_of
from warpseed.fm_index.parts import Arrays, Sizes, new_arrays
from warpseed.fm_index.text import PackedText, mark_positions

__all__ = ["longest_walk", "make_bwt"]


@inlined
def _begins_segment(starts, position):
    return (starts[uint64(position) >> uint64(6)] >> (uint64(position) & uint64(63))) & uint64(1) != uint64(0)


@scalar
def _fill_blocks(words, starts, suffix_array, span, sa_interval, arrays, counts):
    """B, ROcc, separators before each block, and RSA, of the blocks [first, last), counted from the first of them."""
    rocc, bwt, separators, rsa = arrays
    rows = int64(suffix_array.shape[0])
    first_block, last_block, occ_interval = span
    for block in range(first_block, last_block):
        for c in range(4):
            rocc[4 * block + c] = uint32(counts[c + 1])
        separators[block] = uint32(counts[0])
        for first in range(block * occ_interval, min((block + 1) * occ_interval, rows), 32):
            word = uint64(0)
            for row in range(first, min(first + 32, rows)):
                position = uint64(suffix_array[row])
                if row % sa_interval == 0:
                    rsa[row // sa_interval] = uint32(position)
                if _begins_segment(starts, position):
                    counts[0] += 1
                    continue
                before = position - uint64(1)
                base = (words[before >> uint64(5)] >> (uint64(62) - uint64(2) * (before & uint64(31)))) & uint64(3)
                counts[int64(base) + int64(1)] += 1
                word |= base << uint64(62 - 2 * (row - first))
            bwt[first >> 5] = word


@scalar
def _collect_separators(starts, suffix_array, occ_interval, separators, row_of, position_of):
    """The rows whose BWT character is a separator, from the blocks that hold one."""
    rows = suffix_array.shape[0]
    found = 0
    for block in range(separators.shape[0] - 1):
        if separators[block] == separators[block + 1]:
            continue
        for row in range(block * occ_interval, min((block + 1) * occ_interval, rows)):
            if _begins_segment(starts, suffix_array[row]):
                row_of[found] = uint32(row)
                position_of[found] = suffix_array[row]
                found += 1


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
    marks = mark_positions(rsa, rows) | mark_positions(separator_position, rows)
    return int(_longest_gap(marks, rows))


def make_bwt(part: str, text: PackedText, suffix_array: np.ndarray, sizes: Sizes, threads: int = 1) -> Arrays:
    """The arrays of part `forward` from the text, or of `reverse` from the reversed text.

    Parameters
    ----------
    text : PackedText
    suffix_array : uint32[n]
    threads : CPU threads
    """
    made = new_arrays(part, sizes)
    occ_interval, sa_interval, _ = sizes.parameters
    starts = mark_positions(text.segments.text_start[:-1], sizes.rows)
    filled = (made["rocc"], made["bwt"], made["separators"], made["rsa"])
    spans = spans_of(sizes.blocks, threads, max(1, STEP // occ_interval))
    counts = np.zeros((len(spans), 5), np.int64)

    def fill(number: int) -> None:
        span = (*spans[number], occ_interval)
        _fill_blocks(text.words, starts, suffix_array, span, sa_interval, filled, counts[number])

    on_threads(threads, fill, len(spans))
    before = np.cumsum(counts, axis=0) - counts
    for (first, last), own in zip(spans, before.astype(np.uint32), strict=True):
        made["separators"][first:last] += own[0]
        made["rocc"].reshape(-1, 4)[first:last] += own[1:]
    ends = (made["separators"], made["separator_row"], made["separator_position"])
    _collect_separators(starts, suffix_array, occ_interval, *ends)
    made["first_row"][:] = np.cumsum(counts.sum(axis=0))
    made["longest_walk"][:] = longest_walk(made["rsa"], made["separator_position"], sizes.rows)
    return made

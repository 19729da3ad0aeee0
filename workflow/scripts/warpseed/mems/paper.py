"""The paper tier: the algorithms of paper 002, for both targets.

A *pattern* is a read in one orientation, a *MEM start* one of its bases that a match of the least length or more can
end at: from there the search goes to the left, and there begins what Algorithm 1 finds for it (the paper's words). MEM
starts of a pattern go from its last base to the left, those of all patterns have consecutive numbers. Where the printed
algorithms cannot be right, docs/mems.md says what holds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.fm_index.bins import narrowed, pre_calculated
from warpseed.mems.matches import pack_place, pack_span
from warpseed.sequences.packed import base_at

__all__ = [
    "BASES_A_WINDOW",
    "BASES_A_WORD",
    "PAD_WORDS",
    "Entries",
    "Patterns",
    "first_rows",
    "is_redundant",
    "longest_match",
    "match_at",
    "new_rows",
    "packed_bases",
    "row_of",
    "start_of",
    "window_before",
]

BASES_A_WORD = 8
"""Bases of a 32-bit word, four bits each: what is no base has a code of its own."""
BASES_A_WINDOW = 16
PAD_WORDS = 2
"""Words before the first pattern, so that a window may begin before it; one lies behind the last."""
_CODES, _PAIRS, _BYTES, _SHORTS = (
    np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x00FF00FF00FF00FF),
    np.uint64(0x0000FFFF0000FFFF),
)  # fmt: skip
_NO_BASE = np.uint64(0x4444444444444444)


class Patterns(NamedTuple):
    """What is searched for: pattern ``strands · read + strand``. The first two of section 4.2's four arrays, and where
    the other two come from."""

    words: np.ndarray
    """uint32[total + PAD_WORDS + 1], eight bases a word, the first on top"""
    first: np.ndarray
    """int64[p + 1], the word that a pattern begins with"""
    lengths: np.ndarray
    """uint32[n], bases of each read"""
    starts: np.ndarray
    """int64[p + 1], MEM starts of the patterns before each"""
    strands: int
    """1 or 2"""


class Entries(NamedTuple):
    """What stages 1 and 2 give; entries of a pattern follow each other, by start from its end on, the longer match
    first where two start alike."""

    intervals: np.ndarray
    """uint64[e], first row above the row behind the last; 0 where there is no match"""
    spans: np.ndarray
    """uint64[e], start in the pattern above the end, which is not included"""
    patterns: np.ndarray
    """uint32[e]"""


# ---- stage 0


@scalar
def packed_bases(reads, query, strand, first):
    """Eight bases of a read in one orientation as 32 bits; what is no base, and lies behind the end, is 4. uint64."""
    word, length = uint64(0), int64(reads.lengths[query])
    for i in range(8):
        place = first + int64(i)
        code = base_at(reads, query, strand, place) if place < length else int64(4)
        word = (word << uint64(4)) | uint64(code)
    return word


# ---- stage 1


@scalar
def window_before(words, end):
    """The 16 bases before base `end`, counted from the first word on, four bits each and the last one lowest."""
    word, inside = end >> int64(3), uint64(4) * uint64(end & int64(7))
    before = (uint64(words[word - int64(2)]) << uint64(32)) | uint64(words[word - int64(1)])
    return (before << inside) | (uint64(words[word]) >> (uint64(32) - inside))


@scalar
def first_rows(index, window):
    """The rows [low, high) that begin with the last `pre_calc_length` bases of a window, int64; none where one of them
    is no base."""
    length = int64(index.pre_calc_length)
    mask = (uint64(1) << uint64(int64(4) * length)) - uint64(1)
    if window & mask & _NO_BASE != uint64(0):
        return int64(0), int64(0)
    codes = window & _CODES
    codes = (codes | (codes >> uint64(2))) & _PAIRS
    codes = (codes | (codes >> uint64(4))) & _BYTES
    codes = (codes | (codes >> uint64(8))) & _SHORTS
    codes = (codes | (codes >> uint64(16))) & uint64(0xFFFF_FFFF)
    return pre_calculated(index, int64(codes & ((uint64(1) << uint64(int64(2) * length)) - uint64(1))))


@inlined
def start_of(patterns, pattern, number):
    """The place behind the base at which MEM start `number` (of all) of a pattern is, int64."""
    return int64(patterns.lengths[pattern // int64(patterns.strands)]) - (number - int64(patterns.starts[pattern]))


@scalar
def longest_match(index, patterns, pattern, end):
    """Algorithm 1 for one MEM start: the longest match that ends before base `end` of a pattern.

    Returns
    -------
    (low, high, start) : int64; its rows and its first base. No rows, where not even the pre-calculated bases match
    """
    base_number = int64(8) * int64(patterns.first[pattern])
    window = window_before(patterns.words, base_number + end)
    low, high = first_rows(index, window)
    if low >= high:
        return int64(0), int64(0), end
    start, left = end - int64(index.pre_calc_length), int64(BASES_A_WINDOW) - int64(index.pre_calc_length)
    window >>= uint64(4) * uint64(index.pre_calc_length)
    while start > int64(0):
        if left == int64(0):
            window, left = window_before(patterns.words, base_number + start), int64(BASES_A_WINDOW)
        base = int64(window & uint64(15))
        if base > int64(3):
            break
        next_low, next_high = narrowed(index, base, low, high)
        if next_low >= next_high:
            break
        low, high = next_low, next_high
        start -= int64(1)
        left -= int64(1)
        window >>= uint64(4)
    return low, high, start


# ---- stages 2 and 3


@scalar
def _same_start(entries, i):
    """Whether an entry's match starts where that of the entry before does, in the same pattern."""
    if i == int64(0) or entries.patterns[i] != entries.patterns[i - int64(1)]:
        return False
    return entries.spans[i] >> uint64(32) == entries.spans[i - int64(1)] >> uint64(32)


@inlined
def _rows(interval):
    """The rows [low, high) of an interval, int64."""
    return int64(interval >> uint64(32)), int64(interval & uint64(0xFFFF_FFFF))


@scalar
def is_redundant(entries, i):
    """Section 4.4: whether a match starts where the longer one before does, and has as many rows: the same ones."""
    if not _same_start(entries, i):
        return False
    low, high = _rows(entries.intervals[i])
    other_low, other_high = _rows(entries.intervals[i - int64(1)])
    return high - low == other_high - other_low


@scalar
def new_rows(entries, i):
    """Section 4.5: the rows of an entry without those of the longer match with the same start, which are among them.

    Returns
    -------
    (low, gap, after, count) : int64. Rows [low, gap) and those from `after` on, `count` together
    """
    low, high = _rows(entries.intervals[i])
    if not _same_start(entries, i):
        return low, high, high, high - low
    other_low, other_high = _rows(entries.intervals[i - int64(1)])
    # (Those of a damaged index may lie elsewhere.)
    gap = min(max(other_low, low), high)
    after = min(max(other_high, gap), high)
    return low, gap, after, gap - low + high - after


@scalar
def row_of(entries, i, number):
    """The row that is number `number` of the new ones of an entry, int64."""
    low, gap, after, _ = new_rows(entries, i)
    row = low + number
    return row if row < gap else row - gap + after


# ---- stage 4


@scalar
def match_at(patterns, entries, i, place):
    """(place, span) of a match as MATCH has them, uint64, from an entry and a text position."""
    pattern, span = int64(entries.patterns[i]), entries.spans[i]
    strand = pattern % int64(patterns.strands)
    start, end = int64(span >> uint64(32)), int64(span & uint64(0xFFFF_FFFF))
    begin = int64(patterns.lengths[pattern // int64(patterns.strands)]) - end if strand else start
    return pack_place(place, strand), pack_span(end - start, begin)

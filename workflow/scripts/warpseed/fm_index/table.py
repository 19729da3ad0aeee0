"""The lookup table of the fast tier: which rows begin with each string of K bases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64
from warpseed.compute.intrinsics import trailing_zeros
from warpseed.compute.ranges import STEP, on_threads, spans_of

__all__ = [
    "Marks",
    "choose_table_length",
    "first_mark",
    "mark_row",
    "mark_rows",
    "next_mark",
    "table_of",
]


def choose_table_length(rows: int) -> int:
    """K of the lookup table: the longest strings of which a genome of `rows` has at least one each, 4 to 14.

    Four bytes an entry, so at most 4 bytes a base from 256 bases on; longer tables cost more than the shorter
    buckets save (docs/decisions.md has the figures).
    """
    return max(4, min(14, (max(rows, 2).bit_length() - 1) // 2))


class Marks(NamedTuple):
    """How many suffixes begin with each string of K bases, in little memory: n + 4^K bits and some.

    Of each bucket (`suffix_buckets.py`) a 1 for each row, and behind those of each string a 0; a word's first bit is
    its lowest.
    """

    words: np.ndarray
    """uint64[...]; uint64[0] where no table is made"""
    begins: np.ndarray
    """int64[buckets], the word where each bucket begins"""
    bases: int
    """that strings have behind those that their bucket shares"""

    @classmethod
    def of(cls, sizes: np.ndarray, bases: int) -> Marks:
        """None yet, of buckets of some sizes."""
        words = (sizes + 4**bases + 63) // 64
        begins = np.cumsum(words) - words
        return cls(np.zeros(int(words.sum()), np.uint64), begins, bases)

    @classmethod
    def none(cls, buckets: int) -> Marks:
        """Of buckets of which no table is made."""
        return cls(np.empty(0, np.uint64), np.zeros(buckets, np.int64), 0)


@inlined
def mark_row(marks, begin, code, row, mark):
    """Mark a row of a bucket whose marks begin at word `begin`, and the number of its string in the bucket; `mark`: 1,
    or 0 where it is not to be marked."""
    bit = uint64(code) + uint64(row)
    marks.words[uint64(begin) + (bit >> uint64(6))] |= uint64(mark) << (bit & uint64(63))


@inlined
def mark_rows(marks, begin, code, first, last):
    """Mark the rows [first, last) of a bucket, all with one string, as `mark_row` does."""
    bit, stop = uint64(code) + uint64(first), uint64(code) + uint64(last)
    while bit < stop:
        end = min(stop, (bit | uint64(63)) + uint64(1))
        ones = ~uint64(0) >> (uint64(64) - (end - bit))
        marks.words[uint64(begin) + (bit >> uint64(6))] |= ones << (bit & uint64(63))
        bit = end


@inlined
def first_mark(marks, bucket):
    """Where a bucket's marks are, before the first: a word, and those of its rows that are to come."""
    word = marks.begins[uint64(bucket)]
    return word, marks.words[uint64(word)]


@inlined
def next_mark(marks, bucket, word, ones, row):
    """Where a bucket's marks are behind its next row, the `row`-th, and the number of that one's string."""
    while ones == uint64(0):
        word += int64(1)
        ones = marks.words[uint64(word)]
    bit = ((word - marks.begins[uint64(bucket)]) << int64(6)) + trailing_zeros(ones)
    return word, ones & (ones - uint64(1)), bit - row


@scalar
def _fill_borders(marks, borders, span, table):
    """The entries of the buckets [first, last)."""
    first, last = span
    strings = int64(1) << (int64(2) * int64(marks.bases))
    for bucket in range(first, last):
        at, code, stop = borders[bucket], bucket * strings, (bucket + int64(1)) * strings
        word = marks.begins[bucket]
        at += code
        while code < stop:
            # (Of a string's bit, the ones before it are rows and the zeros before it are strings.)
            left = ~marks.words[uint64(word)]
            while left != uint64(0) and code < stop:
                table[uint64(code + int64(1))] = uint32(at + trailing_zeros(left) - code)
                left &= left - uint64(1)
                code += int64(1)
            word, at = word + int64(1), at + int64(64)


def table_of(marks: Marks, borders: np.ndarray, threads: int) -> np.ndarray:
    """Borders of the rows of every string of K bases, uint32[4**K + 1].

    A suffix that ends before it has K bases counts as if A followed. There it stands at the head of its bucket, so that
    the bucket of any string, shorter ones included, holds all suffixes that begin with it.

    Parameters
    ----------
    marks : of all buckets
    borders : int64[buckets + 1], the rows where they begin
    """
    table = np.empty(4**marks.bases * (len(borders) - 1) + 1, np.uint32)
    table[0] = 0
    spans = spans_of(len(borders) - 1, threads, max(1, STEP >> 2 * marks.bases))
    on_threads(threads, lambda number: _fill_borders(marks, borders, spans[number], table), len(spans))
    return table

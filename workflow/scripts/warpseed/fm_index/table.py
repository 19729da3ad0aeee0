"""The lookup table of the fast tier: which rows begin with each string of K bases."""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64
from warpseed.compute.pipeline import check_wanted
from warpseed.compute.ranges import on_threads, spans_of, steps
from warpseed.fm_index.parts import Sizes, new_arrays
from warpseed.fm_index.text import PackedText, segment_of

__all__ = ["choose_table_length", "make_table"]


def choose_table_length(rows: int) -> int:
    """K of the lookup table: the longest strings of which a genome of `rows` has at least one each, 4 to 14.

    Four bytes an entry, so at most 4 bytes a base from 256 bases on; longer tables cost more than the shorter
    buckets save (docs/decisions.md has the figures).
    """
    return max(4, min(14, (max(rows, 2).bit_length() - 1) // 2))


@inlined
def _with_base(text, code, position, top):
    """The code of the bases from a position on, from that of those behind it."""
    word = text.words[uint64(position) >> uint64(5)]
    base = (word >> (uint64(62) - uint64(2) * (uint64(position) & uint64(31)))) & uint64(3)
    return (code >> uint64(2)) | (base << top)


@inlined
def _count(code, codes, table):
    """Count a code in its entry if it is one of [low, high): without a branch, which would go either way as often."""
    low, high = codes
    inside = code - low < high - low
    table[(code if inside else low) + uint64(1)] += uint32(inside)


@scalar
def _count_codes(text, length, span, codes, table):
    """Count the suffixes that begin at [first, last) under the codes of their first bases, A for what they lack.

    Parameters
    ----------
    codes : (low, high), uint64: those that are counted
    table : uint32[4**length + 1], has the number of a code in the entry behind it
    """
    first, last = span
    top = uint64(2) * uint64(length - int64(1))
    starts = text.segments.text_start
    s = segment_of(text.segments, first)
    while s < starts.shape[0] - 1 and int64(starts[s]) < last:
        end = int64(starts[s + int64(1)]) - int64(1)
        stop = min(end, last)
        code = uint64(0)
        for position in range(min(end, stop + int64(length)) - int64(1), stop - int64(1), -1):
            code = _with_base(text, code, position, top)
        if end < last:
            _count(uint64(0), codes, table)
        for position in range(stop - int64(1), max(first, int64(starts[s])) - int64(1), -1):
            code = _with_base(text, code, position, top)
            _count(code, codes, table)
        s += int64(1)


def make_table(text: PackedText, sizes: Sizes, threads: int = 1) -> np.ndarray:
    """Borders of the rows of every string of K bases, uint32[4**K + 1].

    A suffix that ends before it has K bases counts as if A followed. There it stands at the head of its bucket, so that
    the bucket of any string, shorter ones included, holds all suffixes that begin with it. Every thread reads the whole
    text, and counts its share of the strings.
    """
    table = new_arrays("fast", sizes, without="suffix_array")["table"]
    length = sizes.parameters.table_length
    shares = spans_of(4**length, threads, 4**length)

    def count(number: int) -> None:
        codes = np.uint64(shares[number][0]), np.uint64(shares[number][1])
        for span in steps(0, sizes.rows):
            check_wanted()
            _count_codes(text, length, span, codes, table)

    on_threads(threads, count, len(shares))
    return np.cumsum(table, out=table)

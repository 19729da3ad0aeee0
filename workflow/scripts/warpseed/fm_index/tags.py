"""Tags of rows: the two bases behind the K of the table, so that many rows of a bucket are decided in one word.

A tag has 4 bits, and 16 rows share a word, the first row's tag on top. Separators, and what lies behind the text, count
as A, as in the packed text: a tag says which rows cannot match, never that one does.
"""

from __future__ import annotations

import numpy as np

from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import leading_zeros, prefetch, trailing_zeros
from warpseed.compute.ranges import on_threads, spans_of
from warpseed.fm_index.text import PackedText

__all__ = ["MOST_TAGGED", "TAG_BASES", "make_tags", "tag_mask", "tagged_rows"]

TAG_BASES = 2
MOST_TAGGED = 256
"""Rows up to which all tags of a bucket are read; a larger one is narrowed in fewer steps."""
_ROWS_A_WORD = 16
_AHEAD = 48
"""Rows whose text is prefetched before it is read."""
_ONES = np.uint64(0x1111111111111111)


@inlined
def _place_behind(suffix_array, row, table_length):
    """Where the bases of a row's tag lie; no entry of a damaged suffix array leads outside the text."""
    return min(int64(suffix_array[row]), int64(suffix_array.shape[0])) + int64(table_length)


@scalar
def _fill_tags(words, suffix_array, table_length, span, tags):
    """The words [first, last) of tags."""
    rows = int64(suffix_array.shape[0])
    first, last = span
    for at in range(first, last):
        tag = uint64(0)
        begin = int64(_ROWS_A_WORD) * at
        end = min(begin + int64(_ROWS_A_WORD), rows)
        for row in range(begin, end):
            ahead = min(row + int64(_AHEAD), rows - int64(1))
            prefetch(words, _place_behind(suffix_array, ahead, table_length) >> int64(5))
            place = _place_behind(suffix_array, row, table_length)
            tag = (tag << uint64(4)) | (fetch_word(words, place) >> uint64(60))
        if begin < end:
            tags[at] = tag << uint64(int64(4) * (begin + int64(_ROWS_A_WORD) - end))


def make_tags(text: PackedText, suffix_array: np.ndarray, table_length: int, threads: int) -> np.ndarray:
    """The tags of all rows, uint64[n // 16 + 2], zero behind the last one.

    Parameters
    ----------
    suffix_array : uint32[n] of the text
    table_length : K
    """
    tags = np.zeros(len(suffix_array) // _ROWS_A_WORD + 2, np.uint64)
    spans = spans_of(len(tags), threads)
    on_threads(
        threads, lambda number: _fill_tags(text.words, suffix_array, table_length, spans[number], tags), len(spans)
    )
    return tags


@inlined
def tag_mask(bases):
    """The bits of 16 tags that are compared where so many bases behind the K are known, 1 or more."""
    return uint64(0xCCCCCCCCCCCCCCCC) if bases == int64(1) else ~uint64(0)


@inlined
def tagged_rows(tags, low, high, wanted, mask):
    """From the first to the last of the rows [low, high), at least one, whose tags are as wanted.

    Parameters
    ----------
    wanted : uint64, the two bases, in the lowest 4 bits
    mask : as of `tag_mask`

    Returns
    -------
    (low, high) : int64; the first is not below the second where there is none
    """
    sixteen = wanted * uint64(_ONES)
    first = high
    last = low
    row = low
    while row < high:
        differ = (fetch_word(tags, int64(2) * row) ^ sixteen) & mask
        differ |= differ >> uint64(1)
        differ |= differ >> uint64(2)
        equal = ~differ & uint64(_ONES) & prefix_mask(int64(2) * (high - row))
        if equal != uint64(0):
            first = min(first, row + (leading_zeros(equal) >> int64(2)))
            last = row + int64(16) - (trailing_zeros(equal) >> int64(2))
        row += int64(16)
    return first, last

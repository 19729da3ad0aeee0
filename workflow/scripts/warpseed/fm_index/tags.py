"""Tags of rows: the bases around those of the table, so that many rows of a bucket are decided at once.

A tag is a byte, four bases: one has those before a row's position, one those behind its first K. Separators, and what
lies outside the text, count as A, as in the packed text: a tag says which rows cannot match, never that one does.
"""

from __future__ import annotations

import numpy as np

from warpseed.compute.bits import fetch_word
from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import prefetch
from warpseed.compute.ranges import on_threads, spans_of
from warpseed.fm_index.layout import TAG_PADDING, Tags
from warpseed.fm_index.text import PackedText, suffix_start

__all__ = ["FIRST_BASES", "LAST_BASES", "BYTE_TAG_BASES", "first_tag", "make_tags"]

BYTE_TAG_BASES = 4
"""Bases of a tag that is a byte; those of a tagged row are `fm_index.tagged.TAG_BASES`."""
FIRST_BASES, LAST_BASES = np.array([[0, 0x40, 0x50, 0x54, 0x55], [0, 0x01, 0x05, 0x15, 0x55]], np.uint8)
"""uint8[BYTE_TAG_BASES + 1], masks of so many bases of a tag, from its first and to its last: the low bit of each."""
_AHEAD = 48
"""Rows whose text is prefetched before it is read."""


@inlined
def first_tag(word):
    """The tag that the first bases of a packed word are, uint64."""
    return word >> uint64(64 - 2 * BYTE_TAG_BASES)


@inlined
def _bases_around(words, place):
    """The 32 bases from the fourth before a place on, A before the text."""
    if place < int64(BYTE_TAG_BASES):
        return fetch_word(words, int64(0)) >> uint64(int64(2) * (int64(BYTE_TAG_BASES) - place))
    return fetch_word(words, place - int64(BYTE_TAG_BASES))


@scalar
def _fill_tags(words, suffix_array, table_length, span, tags):
    """Both tags of the rows [first, last)."""
    first, last = span
    shift = uint64(int64(2) * (int64(BYTE_TAG_BASES) + table_length))
    for row in range(first, last):
        ahead = min(row + int64(_AHEAD), int64(suffix_array.shape[0]) - int64(1))
        prefetch(words, suffix_start(suffix_array, ahead) >> int64(5))
        around = _bases_around(words, suffix_start(suffix_array, row))
        tags.bases_before[row] = first_tag(around)
        tags.bases_behind[row] = first_tag(around << shift)


def make_tags(text: PackedText, suffix_array: np.ndarray, table_length: int, threads: int) -> Tags:
    """The tags of all rows, zeros behind the last one.

    Parameters
    ----------
    suffix_array : uint32[n] of the text
    table_length : K
    """
    rows = len(suffix_array)
    tags = Tags(*(np.zeros(rows + TAG_PADDING, np.uint8) for _ in Tags._fields))
    spans = spans_of(rows, threads)
    on_threads(
        threads, lambda number: _fill_tags(text.words, suffix_array, table_length, spans[number], tags), len(spans)
    )
    return tags

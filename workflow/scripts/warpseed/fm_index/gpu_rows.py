"""Tagged rows of both strands on the current GPU, made of the text alone: dealt out by counting, sorted where they lie.

The strings of K bases that begin at all positions of both strands are counted; sums of the counts are the table; each
row goes to the next place of its string's bucket; and the rows of a bucket are sorted. Most buckets have few: a thread
sorts them. So no suffix array is needed, and hardly any memory beside rows and table.

Rows of equal tags are in the order of their positions, but that those whose segment ends before K + TAG_BASES bases
come first, the shortest before the others, and of one length in the order of segments. While they are sorted, such a
row holds its length and its segment.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word, prefix_mask, reverse_complement_word
from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.device_sorting import (
    BLOCK_BY_WARPS,
    BY_BLOCK,
    BY_WARP,
    FEW,
    LARGE_BLOCK,
    SORTING_BLOCKS,
    sort_by_block,
    sort_by_thread,
    sort_by_warp,
)
from warpseed.compute.device_sums import TILE, running_sums
from warpseed.compute.gpu import cuda, cupy, kernel, launch, sort
from warpseed.compute.warp import BLOCK
from warpseed.fm_index.gpu_text import words_of_both_strands
from warpseed.fm_index.layout import Segments
from warpseed.fm_index.tagged import (
    TABLE_MODULUS,
    TAG_BASES,
    WHOLE,
    TaggedIndex,
    is_whole_row,
    table_row,
    tagged_row,
)
from warpseed.fm_index.text import PackedText, segment_of, text_length

__all__ = [
    "MOST_SEGMENTS",
    "bytes_for_rows",
    "count_strings",
    "place_ended",
    "place_rows",
    "rows_of_both_strands",
    "sort_buckets",
    "sort_long_buckets",
    "sort_longer_buckets",
]

_LENGTH_SHIFT = 28
"""Bits below the length in a row that is not WHOLE, while it is sorted: its segment, and whether it is of the reverse
complement."""
_LENGTH_MASK = (1 << (WHOLE - _LENGTH_SHIFT)) - 1
MOST_SEGMENTS = 1 << (_LENGTH_SHIFT - 1)
"""Segments, at most, of which a row can hold one."""
_LONG_BUCKET = 1 << 17
"""Rows of a bucket that are sorted by a block, at most."""
_STRINGS = 8
"""Strings whose buckets one thread looks at: most have no row, or one alone."""


@scalar
def _starting(text, position, strand):
    """The string of a strand that begins at a base of the text and at its opposite: (uint64, 32 bases, A behind their
    segment's end; int64, how many there are; int64, number of the segment). None for a separator: (0, 0, …)."""
    segment = segment_of(text.segments, position)
    start = int64(text.segments.text_start[segment])
    end = int64(text.segments.text_start[segment + int64(1)]) - int64(1)
    if position >= end:
        return uint64(0), int64(0), segment
    if strand == int64(0):
        return fetch_word(text.words, position) & prefix_mask(end - position), end - position, segment
    left = position - start + int64(1)
    bases = reverse_complement_word(text.words, int64(0), position + int64(1), int64(0), ~uint64(0))
    return bases & prefix_mask(left), left, segment


@kernel
def count_strings(text, table_length, table):
    """Count the strings of K bases of both strands: thread 2·position + strand.

    ``table``, uint32[4**K + 2 or more]: entry c + 2 counts string c.
    """
    t = int64(cuda.grid(1))
    if t < int64(2) * text_length(text.segments):
        string, left, _ = _starting(text, t >> int64(1), t & int64(1))
        if left > int64(0):
            code = int64(string >> uint64(int64(64) - int64(2) * int64(table_length)))
            cuda.atomic.add(table, code + int64(2), uint32(1))


class Beyond(NamedTuple):
    """Where numbers of rows reach TABLE_MODULUS."""

    entry: int
    """first string whose rows begin there or behind it; 4**K + 1 where there is none"""
    begin: int
    """first row of the string before that"""


@kernel
def place_rows(text, table_length, beyond, table, rows):
    """Put every row of both strands into the next place of its bucket: thread 2·position + strand.

    Parameters
    ----------
    beyond : Beyond
    table : uint32[4**K + 2 or more], first row of string c at entry c + 1, which moves on to the next string's
    rows : uint64[rows]
    """
    t = int64(cuda.grid(1))
    length = text_length(text.segments)
    if t >= int64(2) * length:
        return
    position, strand = t >> int64(1), t & int64(1)
    string, left, segment = _starting(text, position, strand)
    if left == int64(0):
        return
    tag, whole = string << uint64(int64(2) * int64(table_length)), left >= int64(table_length) + int64(TAG_BASES)
    place = position if strand == int64(0) else int64(2) * length - int64(2) - position
    if not whole:
        place = (left << int64(_LENGTH_SHIFT)) | (int64(2) * segment + strand)
    code = int64(string >> uint64(int64(64) - int64(2) * int64(table_length)))
    at = int64(cuda.atomic.add(table, code + int64(1), uint32(1)))
    if code >= beyond.entry or (code + int64(1) == beyond.entry and at < beyond.begin):
        at += int64(TABLE_MODULUS)
    rows[at] = tagged_row(tag, whole, place)


@scalar
def _bucket(index, code):
    """The rows of string `code`: (int64 first, int64 how many)."""
    begin = table_row(index, code)
    return begin, table_row(index, code + int64(1)) - begin


@kernel
def sort_buckets(index, cursors, long):
    """Sort the rows of the buckets that have few, a thread _STRINGS of them, and list those that have more.

    ``cursors[0]`` (uint64) counts what goes to ``long``, uint32[…], which has room for all that there can be.
    """
    first = int64(cuda.grid(1)) * int64(_STRINGS)
    if first >= int64(index.table.shape[0]) - int64(1):
        return
    begin, end = table_row(index, first), table_row(index, first + int64(_STRINGS))
    if end - begin <= int64(1):
        return
    for code in range(first, first + int64(_STRINGS)):
        count = table_row(index, int64(code) + int64(1)) - begin
        if count > int64(FEW):
            long[int64(cuda.atomic.add(cursors, 0, uint64(1)))] = uint32(code)
        elif count > int64(1):
            sort_by_thread(index.rows, begin, begin + count)
        begin += count


@kernel
def sort_long_buckets(index, cursors, long, longer):
    """Sort the buckets that `sort_buckets` listed, a warp each in turn; those of more than BY_WARP rows go to
    ``longer``, uint32[…], which ``cursors[1]`` counts."""
    shared = cuda.shared.array(BLOCK_BY_WARPS, uint64)
    warp = int64(cuda.grid(1)) >> int64(5)
    for number in range(warp, int64(cursors[0]), int64(cuda.gridsize(1)) >> int64(5)):
        begin, count = _bucket(index, int64(long[number]))
        if count <= int64(BY_WARP):
            sort_by_warp(shared, index.rows, begin, count)
        elif int64(cuda.threadIdx.x) & int64(31) == int64(0):
            longer[int64(cuda.atomic.add(cursors, 1, uint64(1)))] = long[number]


@kernel
def sort_longer_buckets(index, cursors, longer, longest):
    """Sort the buckets that `sort_long_buckets` listed, a block each in turn; those of more than _LONG_BUCKET rows go
    to ``longest``, int64[…, 2], as (first row, rows), which ``cursors[2]`` counts."""
    shared = cuda.shared.array(BY_BLOCK, uint64)
    for number in range(int64(cuda.blockIdx.x), int64(cursors[1]), int64(cuda.gridDim.x)):
        begin, count = _bucket(index, int64(longer[number]))
        if count <= int64(_LONG_BUCKET):
            sort_by_block(shared, index.rows, begin, count)
        elif int64(cuda.threadIdx.x) == int64(0):
            slot = int64(cuda.atomic.add(cursors, 2, uint64(1)))
            longest[slot, 0], longest[slot, 1] = begin, count


@kernel
def place_ended(index):
    """Give the rows that hold a segment and a length their positions: one thread a row."""
    t = int64(cuda.grid(1))
    if t >= int64(index.rows.shape[0]):
        return
    row = index.rows[t]
    if is_whole_row(row):
        return
    left = int64(row >> uint64(_LENGTH_SHIFT)) & int64(_LENGTH_MASK)
    owner = int64(row) & ((int64(1) << int64(_LENGTH_SHIFT)) - int64(1))
    starts = index.segments.text_start
    segment = owner >> int64(1)
    position = int64(starts[segment + int64(1)]) - int64(1) - left
    if owner & int64(1) != int64(0):
        opposite = int64(starts[segment]) + left - int64(1)
        position = int64(2) * int64(index.forward) - int64(2) - opposite
    index.rows[t] = tagged_row(row, False, position)


def bytes_for_rows(positions: int, table_length: int) -> int:
    """Device memory that the rows of both strands of a text take while they are made: rows, table, both texts, and the
    lists of buckets that a thread does not sort."""
    listed = 2 * positions // (FEW + 1)
    return 2 * positions * 8 + 4 * 4**table_length + 3 * positions // 4 + 4 * listed + (1 << 20)


def rows_of_both_strands(text: PackedText, segments: Segments, table_length: int) -> TaggedIndex:
    """Tagged rows of both strands of a text, and their table.

    Parameters
    ----------
    text : on the current device
    segments : its segments on the host, at most MOST_SEGMENTS
    table_length : K, 2 to MOST_TABLE_LENGTH
    """
    xp = cupy()
    n, strings = int(segments.text_start[-1]), 4**table_length
    count, table = 2 * (n - len(segments.contig)), xp.zeros(-(-(strings + 2) // TILE) * TILE, np.uint32)
    launch(count_strings, 2 * n, BLOCK, text, table_length, table)
    beyond = _sum_up(table, strings)
    rows = xp.empty(count, np.uint64)
    launch(place_rows, 2 * n, BLOCK, text, table_length, beyond, table, rows)
    words = words_of_both_strands(text, segments)
    index = TaggedIndex(words, rows, table[: strings + 1], text.segments, table_length, n, 1, beyond.entry)
    _sort(index)
    launch(place_ended, count, BLOCK, index)
    return index


def _sum_up(table: Any, strings: int) -> Beyond:
    """Make sums of the counts of so many strings where they lie, modulo TABLE_MODULUS; returns where they reach it. (No
    tile has so many rows: its strings begin with one base, or are few.)"""
    before = running_sums(table)
    if int(before[-1]) < TABLE_MODULUS:
        return Beyond(strings + 1, 0)
    tile = int((before < TABLE_MODULUS).sum()) - 1
    begin, sums = int(before[tile]), table[tile * TILE : (tile + 1) * TILE]
    place = int((sums < np.uint32(begin)).argmax())
    return Beyond(tile * TILE + place - 1, int(sums[place - 1]) if place else begin)


def _sort(index: TaggedIndex) -> None:
    """Sort every bucket."""
    xp = cupy()
    count, rows = len(index.rows), index.rows
    cursors = xp.zeros(3, np.uint64)
    long, longer = (xp.empty(count // (least + 1) + 1, np.uint32) for least in (FEW, BY_WARP))
    longest = xp.empty((count // (_LONG_BUCKET + 1) + 1, 2), np.int64)
    launch(sort_buckets, len(index.table) // _STRINGS, BLOCK, index, cursors, long)
    launch(sort_long_buckets, SORTING_BLOCKS * BLOCK, BLOCK, index, cursors, long, longer)
    shared = index, cursors, longer, longest
    launch(sort_longer_buckets, SORTING_BLOCKS * LARGE_BLOCK, LARGE_BLOCK, *shared)
    for begin, size in longest[: int(cursors[2])].get().tolist():
        sort(rows[begin : begin + size])

"""Tagged rows: a text's suffix array as kernels read it, and how a short string is found in it.

A *tagged row* holds the position of a row of the suffix array and the 15 bases behind the K of the table, so that most
candidates are decided in the one sector that has to be read anyway. The 16 bases before a row's position, where a
search needs them, are kept beside the rows, in their order. The rows are those of the text, and a string is looked up
as it is and as its reverse complement; or those of both strands (`gpu_rows.py`), and it is looked up once.

Whatever a damaged suffix array holds, the rows and the table that are made of it here lead nowhere outside the arrays:
positions are cut to the text, the table holds numbers of rows, and a bucket never ends before it begins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.fm_index.layout import Segments
from warpseed.fm_index.text import inside_segment, segment_of, suffix_start

__all__ = [
    "BASES_BEFORE",
    "MOST_TABLE_LENGTH",
    "POSITION_BITS",
    "TABLE_MODULUS",
    "TAG_BASES",
    "TAG_SHIFT",
    "WHOLE",
    "TaggedIndex",
    "bucket_rows",
    "decided_bases",
    "exact_rows",
    "exact_tag_range",
    "fill_bases_before",
    "fill_device_table",
    "fill_tagged_rows",
    "is_inside",
    "is_whole_row",
    "lower_tag",
    "oriented_string_of",
    "position_of",
    "row_is_inside",
    "row_position",
    "strand_place",
    "table_row",
    "tag_at",
    "tag_mask",
    "tag_of",
    "tag_range",
    "tagged_row",
    "tags_from",
]

TAG_BASES = 15
"""Bases of a tag, the upper bits of a row."""
POSITION_BITS = 33
"""Bits of a position, the lowest of a row: both strands of a text may have more than 2^32."""
WHOLE = POSITION_BITS
"""The bit between a row's tag and its position: its segment has all K + TAG_BASES bases from there on."""
TAG_SHIFT = WHOLE + 1
"""Bits of a row below its tag."""
MOST_TABLE_LENGTH = 16
"""Bases of the table's strings, at most, as many as 32 bits hold; a tag has fewer, so its strings' neighbours are among
those of a table's."""
TABLE_MODULUS = 1 << 32
"""What the table's numbers of rows are counted modulo."""
BASES_BEFORE = 16
"""Bases before a row's position, 32 bits."""
_FEW_ROWS = 8
"""Rows above which a search for a tag reads three of them side by side."""
_LONG_GAP = 1024
"""Entries of the table between two rows from which on they are counted."""


class TaggedIndex(NamedTuple):
    """Text, tagged rows and table on the device."""

    text: np.ndarray
    """uint64[…], packed bases of the reference's text, and behind it, where rows are of both strands, of its reverse
    complement"""
    rows: np.ndarray
    """uint64[rows]: 30 bits, the 15 bases behind a suffix's first K; the bit WHOLE; 33 bits, its text position"""
    table: np.ndarray
    """uint32[4**K + 1], as FastIndex.table, modulo TABLE_MODULUS"""
    segments: Segments
    """of the reference's text"""
    table_length: int
    forward: int
    """positions n of the reference's text; those of its reverse complement come behind them, where the rows are of both
    strands: n + i is opposite n - 2 - i"""
    orientations: int
    """in which a string has to be looked up: 2, or 1 where the rows are of both strands"""
    first_beyond: int
    """the table's first entry that stands for TABLE_MODULUS rows or more, and its length where there is none"""


@scalar
def oriented_string_of(index, number):
    """Which string is looked up, and in which orientation, as 2·q + s, int64; they are numbered string by string."""
    return number << (int64(2) - int64(index.orientations))


@scalar
def strand_place(index, position, strand, length):
    """Where a match of so many bases that begins at a position of the rows' text lies in the reference's: (int64 its
    first position, int64 strand), for a string that was looked up in the orientation `strand`."""
    ahead = position - int64(index.forward)
    if ahead < int64(0):
        return position, strand
    return int64(index.forward) - int64(1) - ahead - length, int64(1)


@scalar
def is_inside(index, position, length):
    """Whether so many bases from a position of the rows' text on lie in one segment."""
    position, _ = strand_place(index, position, int64(0), length)
    return inside_segment(index.segments, position, length)


@scalar
def table_row(index, entry):
    """The row that an entry of the table says, int64."""
    row = int64(index.table[uint64(entry)])
    return row if int64(entry) < int64(index.first_beyond) else row + int64(TABLE_MODULUS)


@scalar
def row_position(row):
    """The position that a tagged row holds, int64."""
    return int64(row & ((uint64(1) << uint64(POSITION_BITS)) - uint64(1)))


@scalar
def tagged_row(tag, whole, position):
    """A row: a tag's bases in the upper bits of a word, whether its segment has all of them, and its position."""
    return ((tag >> uint64(TAG_SHIFT)) << uint64(TAG_SHIFT)) | (uint64(whole) << uint64(WHOLE)) | uint64(position)


@scalar
def is_whole_row(row):
    """Whether the segment that a tagged row lies in has all K + TAG_BASES bases from its position on."""
    return (row >> uint64(WHOLE)) & uint64(1) != uint64(0)


@scalar
def row_is_inside(index, row, length):
    """Whether so many bases, at most K + TAG_BASES, from a tagged row's (uint64) position on are in one segment."""
    return is_whole_row(row) or is_inside(index, row_position(row), length)


@scalar
def _suffix_word(text, segments, position, skip):
    """The 32 bases from `position + skip` on, A behind the end of the segment that `position` lies in."""
    end = int64(segments.text_start[segment_of(segments, position) + int64(1)]) - int64(1)
    begin = position + skip
    if begin >= end:
        return uint64(0)
    return fetch_word(text, begin) & prefix_mask(end - begin)


@kernel
def fill_device_table(text, segments, suffix_array, table_length, table, disorder):
    """Bucket borders of every string of K bases; thread t writes the entries between rows t - 1 and t.

    In suffix array order these are the whole table, each entry once. In a damaged array a row may come before the one
    above it: ``disorder[0]`` (uint64) becomes 1. Each could then fill the table anew, so ``disorder[1]`` counts the
    entries of long gaps, which are written while there are no more of them than the table has.
    """
    t = int64(cuda.grid(1))
    rows = int64(suffix_array.shape[0])
    if t > rows:
        return
    shift = uint64(int64(64) - int64(2) * int64(table_length))
    first = int64(0)
    last = int64(table.shape[0]) - int64(1)
    if t > int64(0):
        before = suffix_start(suffix_array, t - int64(1))
        first = int64(_suffix_word(text, segments, before, int64(0)) >> shift) + int64(1)
    if t < rows:
        last = int64(_suffix_word(text, segments, suffix_start(suffix_array, t), int64(0)) >> shift)
    entries = last + int64(1) - first
    if entries < int64(0):
        disorder[0] = uint64(1)
    if entries > int64(_LONG_GAP):
        counted = int64(cuda.atomic.add(disorder, 1, uint64(entries)))
        if counted + entries > int64(table.shape[0]):
            return
    for m in range(first, last + int64(1)):
        table[m] = uint32(t)


@kernel
def fill_tagged_rows(text, segments, suffix_array, table_length, rows):
    """A row's position with the TAG_BASES bases behind its first K; one thread a row."""
    t = int64(cuda.grid(1))
    if t < int64(suffix_array.shape[0]):
        position = suffix_start(suffix_array, t)
        tag = _suffix_word(text, segments, position, int64(table_length))
        rows[t] = tagged_row(tag, inside_segment(segments, position, int64(table_length) + int64(TAG_BASES)), position)


@kernel
def fill_bases_before(text, rows, before):
    """The BASES_BEFORE bases before the position of each tagged row, uint32[rows], the nearest in the lowest bits; A
    before the text's first base. One thread a row."""
    t = int64(cuda.grid(1))
    if t < int64(rows.shape[0]):
        position = row_position(rows[t])
        missing = max(int64(BASES_BEFORE) - position, int64(0))
        bases = fetch_word(text, position - int64(BASES_BEFORE) + missing) >> uint64(int64(2) * missing)
        before[t] = uint32(bases >> uint64(32))


@scalar
def tag_mask(bases):
    """The first so many bases of a tag, TAG_BASES of them at most, in the upper bits of 32: uint64."""
    return prefix_mask(min(bases, int64(TAG_BASES))) >> uint64(32)


@scalar
def tag_at(rows, row, mask):
    """The tag of a row under a mask, in the upper bits of 32: uint64."""
    return (rows[uint64(row)] >> uint64(32)) & mask


@scalar
def tag_of(index, bases, mask):
    """The tag that 32 bases have under a mask, in the upper bits of 32: uint64."""
    return ((bases << uint64(int64(2) * int64(index.table_length))) >> uint64(32)) & mask


@scalar
def lower_tag(rows, low, high, tag, mask):
    """First row of [low, high) whose tag under `mask` is at least `tag`.

    Where there are many, three are read side by side: one waits for memory half as often.
    """
    while high - low > int64(_FEW_ROWS):
        quarter = (high - low) >> int64(2)
        middle = low + int64(2) * quarter
        left, right = tag_at(rows, low + quarter, mask), tag_at(rows, middle + quarter, mask)
        if tag_at(rows, middle, mask) < tag:
            low = middle + quarter + int64(1) if right < tag else middle + int64(1)
            high = high if right < tag else middle + quarter
        else:
            high = middle if left < tag else low + quarter
            low = low + quarter + int64(1) if left < tag else low
    while low < high:
        middle = (low + high) >> int64(1)
        if tag_at(rows, middle, mask) < tag:
            low = middle + int64(1)
        else:
            high = middle
    return low


@scalar
def tag_range(rows, low, high, tag, mask, most):
    """Rows of a bucket, which are in the order of their tags, whose tags equal `tag` under `mask` (leading bases), both
    in the upper bits of 32; the first most + 1 of them where there are more. (`high` for `most` is no limit.)"""
    return tags_from(rows, lower_tag(rows, low, high, tag, mask), high, tag, mask, most)


@scalar
def tags_from(rows, low, high, tag, mask, most):
    """As `tag_range`, where `low` is the first row whose tag is not below `tag`: all that are equal, or the first most
    + 1 of them."""
    if low >= high or tag_at(rows, low, mask) != tag:
        return low, low
    if low + int64(1) >= high or tag_at(rows, low + int64(1), mask) != tag:
        return low, low + int64(1)
    if most < high - low:
        high = low + most + int64(1)
        if tag_at(rows, high - int64(1), mask) == tag:
            return low, high
    if tag == mask:
        return low, high
    step = (mask & (~mask + uint64(1))) if mask != uint64(0) else uint64(1)
    return low, lower_tag(rows, low, high, tag + step, mask)


@scalar
def position_of(index, row):
    """The position of the row with this number in the rows' text, int64."""
    return row_position(index.rows[uint64(row)])


@scalar
def _skip_short(index, low, high, length):
    """The first of some rows whose suffix does not end before `length` bases.

    Those that do are in an interval of equal bases only because A stands for what lies behind their segment's end; as
    suffixes they are smaller than all others in it, so they come first. (With another last base than A there are
    none.)
    """
    if low < high and not row_is_inside(index, index.rows[uint64(low)], length):
        low += int64(1)
        while low < high:
            middle = (low + high) >> int64(1)
            if row_is_inside(index, index.rows[uint64(middle)], length):
                high = middle
            else:
                low = middle + int64(1)
    return low


@scalar
def bucket_rows(index, bases, seen, change):
    """Rows of the bucket of the first `seen` (at most K) bases, changed by a pattern; low <= high."""
    bucket = (bases >> uint64(int64(64) - int64(2) * seen)) ^ change
    shift = uint64(int64(2) * (int64(index.table_length) - seen))
    low = table_row(index, int64(bucket << shift))
    return low, max(low, table_row(index, int64((bucket + uint64(1)) << shift)))


@scalar
def exact_tag_range(index, low, high, bases, exact, most):
    """Rows of a bucket that agree with the `exact` (capped at the tag's) bases behind the K of the table; the first
    most + 1 of them where there are more."""
    if exact <= int64(0):
        return low, high
    mask = tag_mask(exact)
    return tag_range(index.rows, low, high, tag_of(index, bases, mask), mask, most)


@scalar
def exact_rows(index, word, length, most):
    """Rows that begin with the first min(length, K + TAG_BASES) bases of a word; for a longer k-mer, candidates. Of
    more than `most` matches some may be left out, but more than `most` are there."""
    table_length = int64(index.table_length)
    first, last = bucket_rows(index, word, min(length, table_length), uint64(0))
    if first == last:
        return first, last
    behind = length - table_length
    compared = min(length, decided_bases(index))
    ends_in_a = (word >> uint64(int64(64) - int64(2) * compared)) & uint64(3) == uint64(0)
    # Rows are left out only where all are matches: of candidates, or where some are short, too few might be left.
    most = most if compared == length and not ends_in_a else last
    low, high = exact_tag_range(index, first, last, word, behind, most)
    return _skip_short(index, low, high, compared) if ends_in_a else low, high


@scalar
def decided_bases(index):
    """Bases up to which `exact_rows` gives matches: its rows are then all of them, side by side."""
    return int64(index.table_length) + int64(TAG_BASES)

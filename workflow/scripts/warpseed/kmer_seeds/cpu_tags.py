"""Beside the fast tier's passes on the CPU: rows of buckets that tags say cannot match are left out.

A match has as many mismatches as are allowed beside those of its look-up, at most, so also in the bases of a tag; and
none in those behind the look-up's that are sure.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word
from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import prefetch
from warpseed.compute.vectors import ALL_BYTES, WIDTH, agreeing_bytes, first_in_mask
from warpseed.fm_index.layout import Tags
from warpseed.fm_index.tags import BYTE_TAG_BASES, FIRST_BASES, LAST_BASES, first_tag
from warpseed.kmer_seeds.fast import MAX_MISMATCHES, Scheme, bases_in_tags, changed_bases, neighbours

__all__ = ["Pieces", "TagReading", "first_base", "leave_tagged", "new_pieces", "tag_reading"]

_MOST_TAGGED = 4096
"""Rows of a bucket whose tags are read; what lies behind them is left as it is."""
_MOST_LEFT = 0.1
"""Tags are read where they leave no more of rows with bases drawn at random."""
_SHARES = np.array(
    [
        [neighbours(bases, errors) / 4**bases for errors in range(MAX_MISMATCHES + 1)]
        for bases in range(BYTE_TAG_BASES + 1)
    ]
)
"""At [b, e], of all strings of b bases, how many are within e mismatches of one of them."""
_MORE_PIECES = 1024
"""Pieces that there is room for beside one of each look-up."""


class Pieces(NamedTuple):
    """Rows that are candidates, in the order of their look-ups."""

    item: np.ndarray
    """int32[n], the look-up"""
    low: np.ndarray
    """int64[n], the first row"""
    high: np.ndarray
    """int64[n], behind the last"""


def new_pieces(items: int) -> Pieces:
    """Room for those of so many look-ups."""
    most = items + _MORE_PIECES
    return Pieces(np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most, np.int64))


class TagReading(NamedTuple):
    """Tags, and how they are compared for each pattern of a scheme: masks of four bases, of each the low bit."""

    tags: Tags
    before: np.ndarray
    """uint8[patterns], the bases before the look-up's that are compared"""
    behind: np.ndarray
    """uint8[patterns], those behind its first K that are"""
    sure: np.ndarray
    """uint8[patterns], those behind it in which a match has no mismatch"""
    allowed: np.ndarray
    """uint8[patterns], mismatches that it may have in all others"""


def tag_reading(tags: Tags, scheme: Scheme) -> TagReading:
    """How tags are compared for each pattern: not where they would leave too many rows.

    Parameters
    ----------
    tags : of the rows; NO_TAGS are compared with nothing
    scheme : of the k-mers that are searched
    """
    if len(tags.bases_behind) == 0:
        return TagReading(tags, *(np.empty(0, np.uint8) for _ in TagReading._fields[1:]))
    allowed = scheme.max_mismatches - changed_bases(scheme.patterns).astype(np.int64)
    before = np.clip(scheme.pattern_offset, 0, BYTE_TAG_BASES)
    behind, sure = bases_in_tags(scheme, BYTE_TAG_BASES)
    before[_SHARES[before, allowed] > _MOST_LEFT] = 0
    left = _SHARES[sure, 0] * _SHARES[behind - sure, allowed]
    behind[left > _MOST_LEFT] = 0
    sure[left > _MOST_LEFT] = 0
    return TagReading(tags, LAST_BASES[before], FIRST_BASES[behind], FIRST_BASES[sure], allowed.astype(np.uint8))


@inlined
def first_base(block, scheme, item):
    """Where the bases that are looked up begin in the block's words, and at which base of the k-mer."""
    offset = int64(scheme.pattern_offset[uint64(block.item_pattern[item])])
    return int64(block.item_owner[item]) * int64(block.stride) * int64(32) + offset, offset


@inlined
def _agreeing_rows(reading, pattern, wanted, row):
    """Which of 32 rows agree with a k-mer in the bases before and behind: uint64, a bit for each, the lowest first."""
    before, behind = wanted
    tags = reading.tags
    left = uint64(ALL_BYTES)
    allowed = uint64(reading.allowed[pattern])
    if reading.before[pattern] != 0:
        left &= agreeing_bytes(tags.bases_before, row, before, uint64(0), uint64(reading.before[pattern]), allowed)
    if reading.behind[pattern] != 0:
        sure = uint64(reading.sure[pattern])
        left &= agreeing_bytes(tags.bases_behind, row, behind, sure, uint64(reading.behind[pattern]), allowed)
    return left


@inlined
def _put_agreeing(reading, pattern, wanted, piece, to, kept, most):
    """The rows of a piece whose tags agree, to pieces from `kept` on; returns behind the last of them.

    Parameters
    ----------
    wanted : (uint64, uint64), in the lowest byte the bases of the k-mer before those that are looked up, and behind
    piece : (int32 item, int64 low, int64 high)
    to : Pieces, filled from `kept`, int64, on
    most : int64, pieces from which on no further one is begun: what is not yet read is left whole
    """
    item, low, high = piece
    begin = low
    end = low
    row = low & ~int64(WIDTH - 1)  # so that what is compared lies in one line of the cache
    until = min(high, low + int64(_MOST_TAGGED))
    while row < until and kept < most:
        left = _agreeing_rows(reading, pattern, wanted, row)
        left &= uint64(ALL_BYTES) << uint64(max(low - row, int64(0)))
        left &= uint64(ALL_BYTES) >> uint64(max(row + int64(WIDTH) - high, int64(0)))
        while left != uint64(0):
            first = first_in_mask(left)
            count = first_in_mask(~(left >> uint64(first)))
            if row + first != end:
                to.item[kept] = item
                to.low[kept] = begin
                to.high[kept] = end
                kept += int64(begin < end)
                begin = row + first
            end = row + first + count
            left &= left + (uint64(1) << uint64(first))  # what is carried clears them
        row += int64(WIDTH)
    if row < high:
        # What is not yet read goes on with the run that is open, and with all rows since.
        if begin == end:
            begin = max(row, low)
        end = high
    to.item[kept] = item
    to.low[kept] = begin
    to.high[kept] = end
    return kept + int64(begin < end)


@inlined
def _prefetch_tags(tags, low, high):
    """The lines of the first tag of some rows and of the last."""
    prefetch(tags, low)
    prefetch(tags, high - int64(1))


@scalar
def leave_tagged(reading, scheme, block, count):
    """Of `block.buckets`, the first `count`, leave the rows whose tags agree, in `block.left`.

    Parameters
    ----------
    reading : TagReading of the scheme
    block : Block of cpu_fast.py

    Returns
    -------
    int64, how many pieces these are
    """
    for i in range(uint64(count)):
        pattern = uint64(block.item_pattern[uint64(block.buckets.item[i])])
        low = block.buckets.low[i]
        high = block.buckets.high[i]
        if reading.before[pattern] != 0:
            _prefetch_tags(reading.tags.bases_before, low, high)
        if reading.behind[pattern] != 0:
            _prefetch_tags(reading.tags.bases_behind, low, high)
    kept = int64(0)
    room = int64(block.left.item.shape[0]) - int64(WIDTH)
    for i in range(uint64(count)):
        item = block.buckets.item[i]
        low = block.buckets.low[i]
        high = block.buckets.high[i]
        pattern = uint64(block.item_pattern[uint64(item)])
        if reading.before[pattern] | reading.behind[pattern] != 0:
            start, offset = first_base(block, scheme, uint64(item))
            behind = first_tag(fetch_word(block.words, start + int64(scheme.table_length)))
            # Bases before the k-mer, of which there may be none, are not compared. (No word is shifted by 64 at once.)
            ahead = min(offset, int64(BYTE_TAG_BASES))
            before = fetch_word(block.words, start - ahead) >> (uint64(63) - uint64(int64(2) * ahead)) >> uint64(1)
            most = room - (int64(count) - int64(i))
            kept = _put_agreeing(reading, pattern, (before, behind), (item, low, high), block.left, kept, most)
        else:
            block.left.item[kept] = item
            block.left.low[kept] = low
            block.left.high[kept] = high
            kept += int64(1)
    return kept

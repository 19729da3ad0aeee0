"""Steps of sorting the suffixes of a packed text on the CPU: dealing them out to buckets.

The suffixes of a *bucket* have the same first bases. They are dealt out in the order of the text, those with A first,
then those with C, and so on, with the 16 bases behind these as their keys, by which `suffix_letters.py` sorts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64
from warpseed.compute.intrinsics import leading_zeros, prefetch
from warpseed.fm_index.table import mark_rows
from warpseed.fm_index.text import segment_end, segment_of

__all__ = ["Dealt", "count_prefixes", "deal_out", "mark_suffixes", "set_apart"]

_AHEAD = 24
"""Rows between the one that is marked and the one whose bases are asked for."""
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_HIGH = np.uint64(0xAAAAAAAAAAAAAAAA)


class Dealt(NamedTuple):
    """Which suffixes are dealt out: those with one first base, so that keys of others take no memory, and with some
    second ones; of a dictionary of phrases only those that begin in heads."""

    flip: np.uint64
    """turns both bits of the first base into ones, in each of 32 bases"""
    second_flips: np.ndarray
    """uint64[...], the same of each second base; uint64[0]: all are dealt out"""
    first_row: int
    """of those that are dealt out"""
    head_ends: np.ndarray
    """uint32[segments], the position behind the last one that is dealt out of each segment; uint32[0]: all are"""

    @classmethod
    def quarter(cls, base: int, seconds: Sequence[int], first_row: int, head_ends: np.ndarray) -> Dealt:
        """Those that begin with a base, 0 to 3, and one of some second ones behind it."""
        second_flips = np.array([_flip(second) for second in seconds] if len(seconds) < 4 else [], np.uint64)
        return cls(_flip(base), second_flips, first_row, head_ends)


def _flip(base: int) -> np.uint64:
    """Turns both bits of a base into ones, in each of 32 bases."""
    return _ALL // np.uint64(3) * np.uint64(3 - base)


@inlined
def _part_of(text, head_ends, position, last):
    """Of the segment that a position lies in, where its separator is, and where what is dealt out of it ends."""
    segment = uint64(segment_of(text.segments, position))
    end = int64(text.segments.text_start[segment + uint64(1)]) - int64(1)
    stop = min(end, last)
    if head_ends.shape[0] > 0:
        stop = min(stop, int64(head_ends[segment]))
    return end, stop


@scalar
def count_prefixes(text, prefix, head_ends, span, counts):
    """Count the suffixes that begin in a span by their first bases, separators left out.

    Parameters
    ----------
    prefix : how many these are
    head_ends : of Dealt
    span : (int64 first, int64 last), positions
    counts : int64[4**prefix], grow
    """
    position, last = span
    shift = uint64(64) - uint64(2) * uint64(prefix)
    while position < last:
        end, stop = _part_of(text, head_ends, position, last)
        for at in range(position, stop):
            bases = fetch_word(text.words, at)
            if at > end - int64(prefix):
                bases &= prefix_mask(end - at)
            counts[bases >> shift] += int64(1)
        position = end + int64(1)


@inlined
def _bases_of(text, dealt, first, position, stop):
    """The high bits of those of 32 bases from `first` on that begin what is dealt out and lie in [position, stop)."""
    word, next_word = text.words[uint64(first) >> uint64(5)], text.words[(uint64(first) >> uint64(5)) + uint64(1)]
    found = word ^ dealt.flip
    found &= (found << uint64(1)) & prefix_mask(stop - first) & ~prefix_mask(position - first) & uint64(_HIGH)
    if dealt.second_flips.shape[0] > 0:
        behind, seconds = (word << uint64(2)) | (next_word >> uint64(62)), uint64(0)
        for i in range(dealt.second_flips.shape[0]):
            second = behind ^ dealt.second_flips[i]
            seconds |= second & (second << uint64(1))
        found &= seconds
    return found


@scalar
def deal_out(text, prefix, dealt, span, borders, positions, keys):
    """Deal out the suffixes that begin in a span, as `dealt` says which, separators left out.

    Parameters
    ----------
    prefix : bases that buckets share
    dealt : Dealt
    span : (int64 first, int64 last), positions
    borders : int64[4**prefix], the place of each bucket's next suffix; it moves on
    positions : uint32[n], filled in the rows of what is dealt out
    keys : uint32[m], of these rows, filled
    """
    position, last = span
    bits = uint64(2) * uint64(prefix)
    while position < last:
        end, stop = _part_of(text, dealt.head_ends, position, last)
        for word in range(position >> int64(5), (stop + int64(31)) >> int64(5)):
            begin = word << int64(5)
            left = _bases_of(text, dealt, begin, position, stop)
            while left != uint64(0):
                at = begin + (leading_zeros(left) >> int64(1))
                left &= ~prefix_mask(at - begin + int64(1))
                bases = fetch_word(text.words, at)
                if at > end - int64(32):
                    bases &= prefix_mask(end - at)
                bucket = bases >> (uint64(64) - bits)
                place = borders[bucket]
                borders[bucket] = place + int64(1)
                positions[uint64(place)] = uint32(at)
                keys[uint64(place - dealt.first_row)] = uint32(bases >> (uint64(32) - bits))
        position = end + int64(1)


@scalar
def set_apart(text, prefix, span, positions, ended):
    """Note the suffixes of a bucket that have less than the `prefix` bases that it shares, and bring the others, in
    their order, to its end. (There are some where A stands for what they lack.)

    Parameters
    ----------
    ended : uint64[...], filled with the length of each, in the upper half, and its position

    Returns
    -------
    int64, how many they are
    """
    begin, end = span
    count, put = int64(0), end
    for row in range(end - int64(1), begin - int64(1), int64(-1)):
        position = positions[uint64(row)]
        length = segment_end(text.segments, int64(position)) - int64(position)
        if length < int64(prefix):
            ended[uint64(count)] = (uint64(length) << uint64(32)) | uint64(position)
            count += int64(1)
        else:
            put -= int64(1)
            positions[uint64(put)] = position
    return count


@scalar
def mark_suffixes(text, prefix, span, positions, marks, begin_of_marks):
    """Mark the suffixes of a bucket, the rows [first, last), which share `prefix` bases and are in order."""
    first, last = span
    shift = uint64(63) - uint64(2) * uint64(marks.bases)
    begin, end = int64(0), int64(-1)
    start, string = first, uint64(0)
    for row in range(first, last):
        if row + int64(_AHEAD) < last:
            prefetch(text.words, int64(positions[uint64(row + int64(_AHEAD))]) >> int64(5))
        position = int64(positions[uint64(row)])
        if position < begin or position > end:
            segment = uint64(segment_of(text.segments, position))
            begin = int64(text.segments.text_start[segment])
            end = int64(text.segments.text_start[segment + uint64(1)]) - int64(1)
        bases = fetch_word(text.words, position) & prefix_mask(end - position)
        code = ((bases << (uint64(2) * uint64(prefix))) >> uint64(1)) >> shift
        if code != string:
            mark_rows(marks, begin_of_marks, string, start - first, row - first)
            start, string = row, code
    mark_rows(marks, begin_of_marks, string, start - first, last - first)

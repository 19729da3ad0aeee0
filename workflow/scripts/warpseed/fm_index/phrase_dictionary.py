"""The dictionary of a text's phrases: each different one once, those that end alike side by side.

A string that is the end of several phrases is sorted once, where the first of them has it. The *head* of a phrase is
its part in which such strings begin for the first time; what begins behind it was in the phrase before, or lies in what
the phrase has in common with the next one of the text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word, prefix_mask, reverse_bases
from warpseed.compute.compiled import inlined, int64, scalar, uint8, uint32, uint64
from warpseed.compute.intrinsics import atomic_xor, trailing_zeros
from warpseed.compute.ranges import on_threads, spans_of, steps
from warpseed.compute.sorting import STACK, sort_all
from warpseed.fm_index.layout import PAD_WORDS, Segments
from warpseed.fm_index.phrases import phrase_at
from warpseed.fm_index.suffix_letters import ROUND
from warpseed.fm_index.text import PackedText, make_hint, segment_of

__all__ = ["Dictionary", "keep_heads", "make_dictionary", "sort_by_ends"]

_GROUP_BASES = 4
"""Last bases by which phrases are shared out to threads."""


class Dictionary(NamedTuple):
    """Each different phrase of a text once, in the order of their last bases, so that phrases that end alike are
    neighbours; those that end with their segment stand behind the others."""

    text: PackedText
    """a segment for each phrase"""
    joined: Segments
    """of the same text, but all phrases that do not end with their segment are one: two strings that end such phrases
    differ before either ends, so comparing them need not look up where"""
    overlaps: np.ndarray
    """uint8[d], bases that a phrase has in common with the next one of the text: WINDOW, or 0 where its segment ends"""
    common: np.ndarray
    """uint32[d + 1], last bases that a phrase has in common with the one before, 0 if they are not more than its
    overlap; the last is 0"""
    head_ends: np.ndarray
    """uint32[d], the position behind the head of each"""


@inlined
def _last_bases(text, place, depth):
    """The sort key of a phrase from its end on, without its last `depth` bases: up to ROUND bases, the last one on top,
    above how many are left (ROUND + 1 for more); `place` is where it begins, and its bases."""
    begin, length = place
    left = min(length - depth, int64(ROUND) + int64(1))
    bases = min(left, int64(ROUND))
    if bases == int64(0):
        return uint64(0)
    word = reverse_bases(fetch_word(text.words, begin + length - depth - bases) & prefix_mask(bases))
    # (Zeros before the first base were turned to the front.)
    return (word << (uint64(2) * uint64(int64(32) - bases))) | uint64(left)


@scalar
def _group_by_ends(text, places, firsts, span, groups):
    """A number for each of the different phrases [first, last): of their last bases, those that end with their segment
    behind the others."""
    first, last = span
    for i in range(first, last):
        begin, length, overlap = phrase_at(text, places, firsts[uint64(i)])
        group = _last_bases(text, (begin, length), int64(0)) >> (uint64(64) - uint64(2 * _GROUP_BASES))
        groups[uint64(i)] = group | (uint64(overlap == int64(0)) << uint64(2 * _GROUP_BASES))


@scalar
def _sort_by_ends(text, places, span, order, tied, rows, keys, stack):
    """Sort groups of different phrases by their ends.

    Parameters
    ----------
    span : (first, last), that no group leads out of
    order : uint32[d], of each phrase the first one in the text
    tied : uint8[d], 1 for what is in the group of the one before
    rows, keys : uint32[d] and uint64[d], to work with
    stack : int64[STACK], of compute.sorting
    """
    first, last = span
    count, depth = last - first, int64(0)
    for i in range(count):
        rows[uint64(first + i)] = uint32(first + i)
    while count > int64(0):
        at, left = first, first
        while at < first + count:
            begin = int64(rows[uint64(at)])
            at += int64(1)
            while at < first + count and tied[uint64(rows[uint64(at)])] != uint8(0):
                at += int64(1)
            end = int64(rows[uint64(at - int64(1))]) + int64(1)
            for i in range(begin, end):
                place, length, _ = phrase_at(text, places, order[uint64(i)])
                keys[uint64(i)] = _last_bases(text, (place, length), depth)
            sort_all(keys, order, begin, end, stack)
            for i in range(begin + int64(1), end):
                same = keys[uint64(i)] == keys[uint64(i - int64(1))]
                tied[uint64(i)] = uint8(same)
                if same and tied[uint64(i - int64(1))] == uint8(0):
                    rows[uint64(left)] = uint32(i - int64(1))
                    left += int64(1)
                if same:
                    rows[uint64(left)] = uint32(i)
                    left += int64(1)
        count, depth = left - first, depth + int64(ROUND)


@scalar
def _copy_phrases(text, places, order, starts, span, words, overlaps):
    """Write the phrases [first, last) of a dictionary, whose words are 0 and shared with other threads."""
    first, last = span
    for name in range(first, last):
        begin, length, overlap = phrase_at(text, places, order[uint64(name)])
        to, overlaps[uint64(name)] = int64(starts[uint64(name)]), overlap
        while length > int64(0):
            room = int64(32) - (to & int64(31))
            bases = fetch_word(text.words, begin) & prefix_mask(min(length, room))
            atomic_xor(words, to >> int64(5), bases >> (uint64(2) * (uint64(to) & uint64(31))))
            begin += room
            to += room
            length -= room


@inlined
def _common_end(text, one, two):
    """How many bases two segments have in common at their ends."""
    starts = text.segments.text_start
    end, other = int64(starts[one + uint64(1)]) - int64(1), int64(starts[two + uint64(1)]) - int64(1)
    most = min(end - int64(starts[one]), other - int64(starts[two]))
    common = int64(0)
    while common < most:
        bases = min(int64(32), most - common)
        common += bases
        difference = fetch_word(text.words, end - common) ^ fetch_word(text.words, other - common)
        difference &= prefix_mask(bases)
        if difference != uint64(0):
            return common - bases + ((trailing_zeros(difference) - int64(2) * (int64(32) - bases)) >> int64(1))
    return common


@scalar
def _compare_ends(dictionary, span):
    """Fill what the phrases [first, last) have in common with those before, and where their heads end."""
    first, last = span
    for i in range(first, last):
        name = uint64(i)
        overlap, common = int64(dictionary.overlaps[name]), int64(0)
        if i > int64(0) and int64(dictionary.overlaps[name - uint64(1)]) == overlap:
            common = _common_end(dictionary.text, name - uint64(1), name)
        if common <= overlap:
            common = int64(0)
        dictionary.common[name] = common
        end = int64(dictionary.text.segments.text_start[name + uint64(1)]) - int64(1)
        dictionary.head_ends[name] = end - max(common, overlap)


def sort_by_ends(text: PackedText, places: np.ndarray, firsts: np.ndarray, threads: int) -> np.ndarray:
    """Put different phrases, of each the first one in the text, in the order that a dictionary has, uint32[d]."""
    count = len(firsts)
    groups, spans = np.empty(count, np.uint16), spans_of(count, threads)
    on_threads(threads, lambda number: _group_by_ends(text, places, firsts, spans[number], groups), len(spans))
    numbers = np.argsort(groups, kind="stable").astype(np.uint32)
    groups = groups[numbers]
    tied = np.append(np.uint8(0), groups[1:] == groups[:-1]).astype(np.uint8)
    borders = np.append(np.flatnonzero(tied == 0), count)
    cuts = np.unique(borders[np.searchsorted(borders, [last for _, last in spans])])
    order, rows, keys = firsts[numbers], np.empty(count, np.uint32), np.empty(count, np.uint64)

    def sort(number: int) -> None:
        span = int(cuts[number - 1]) if number else 0, int(cuts[number])
        _sort_by_ends(text, places, span, order, tied, rows, keys, np.empty(STACK, np.int64))

    on_threads(threads, sort, len(cuts))
    return order


def _segments_of(starts: np.ndarray) -> Segments:
    """Segments that begin somewhere in a text, of which no more is known."""
    nowhere = np.zeros(len(starts) - 1, np.int32), np.zeros(len(starts) - 1, np.int64)
    return Segments(starts, *nowhere, make_hint(starts.astype(np.int64)))


def make_dictionary(
    text: PackedText, places: np.ndarray, order: np.ndarray, lengths: np.ndarray, threads: int
) -> Dictionary:
    """The dictionary of a text.

    Parameters
    ----------
    places : uint32[m], where phrases begin, and separators
    order : uint32[d], of each different phrase the first one, as `sort_by_ends` puts them
    lengths : uint32[d], their bases
    """
    count = len(order)
    starts, spans = np.zeros(count + 1, np.uint32), spans_of(count, threads)
    np.cumsum(lengths + np.uint32(1), dtype=np.uint32, out=starts[1:])
    words = np.zeros(int(starts[-1]) // 32 + PAD_WORDS, np.uint64)
    overlaps = np.empty(count, np.uint8)

    def copy(number: int) -> None:
        _copy_phrases(text, places, order, starts, spans[number], words, overlaps)

    on_threads(threads, copy, len(spans))
    whole = int(np.count_nonzero(overlaps))
    dictionary = Dictionary(
        PackedText(words, _segments_of(starts)),
        _segments_of(np.append(np.uint32(0), starts[max(1, whole) :])),
        overlaps,
        np.zeros(count + 1, np.uint32),
        np.empty(count, np.uint32),
    )
    on_threads(threads, lambda number: _compare_ends(dictionary, spans[number]), len(spans))
    return dictionary


@scalar
def _keep_heads(dictionary, span, count, positions):
    """Bring those of the positions [first, last) that lie in heads behind the `count` that are kept; returns how many
    are now."""
    first, last = span
    for row in range(first, last):
        position = positions[uint64(row)]
        if position < dictionary.head_ends[uint64(segment_of(dictionary.text.segments, int64(position)))]:
            positions[uint64(count)] = position
            count += int64(1)
    return count


def keep_heads(dictionary: Dictionary, positions: np.ndarray) -> np.ndarray:
    """Those of some positions that lie in heads of phrases, in their order, uint32[...]; the others are overwritten."""
    count = 0
    for span in steps(0, len(positions)):
        count = int(_keep_heads(dictionary, span, count, positions))
    # (A view would keep the memory of all.)
    return positions[:count].copy()

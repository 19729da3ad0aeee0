"""Parsing a text into phrases, each by its number in a dictionary of the different ones, where that is short.

Most texts do not repeat, or not in long stretches: a sample of the phrases says so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word, mixed, prefix_mask
from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64
from warpseed.compute.ranges import on_threads, spans_of, steps
from warpseed.fm_index.phrase_dictionary import Dictionary, make_dictionary, sort_by_ends
from warpseed.fm_index.phrases import WINDOW, cut_text, phrase_at
from warpseed.fm_index.text import PackedText

__all__ = ["NO_PHRASE", "Parse", "name_phrases", "parse_text"]

NO_PHRASE = np.uint32(0xFFFFFFFF)
"""Instead of the number of a phrase: a separator."""
_LEAST_TEXT = 1 << 16
"""Bases of a text that it is worth to parse."""
_SAMPLE = 1 << 14
"""Phrases that show whether a text repeats, about."""
_MOST_OF_TEXT = 0.95
"""What a dictionary is at most, of the text: with a longer one nothing is saved."""
_CONDITIONS = (6, 5)
"""Of triggers, at first and where the dictionary is not short: of shorter phrases more are equal where differences lie
close together, but they have more in common with the next ones."""
_SHORT = 2 / 3
"""Of the text, what a dictionary has at most that may do."""
_LONG = 1.1
"""Of the text, what one has at least that will not be short with other phrases."""
_STRETCH = 256
"""Bases of a stretch, about; more than it takes letters of to sort what is tied (`suffix_letters.py`)."""
_MOST_DIFFERENT = 0.86
"""Of all stretches, those that are different at most where phrases are worth it: with more, differences lie so close
together that letters sort sooner."""
_VERY_SHORT = 0.3
"""Of the text, what a dictionary has at most that is worth it at any rate."""


class Parse(NamedTuple):
    """A text as phrases and separators, in its order."""

    places: np.ndarray
    """uint32[m], where each phrase begins, and separators"""
    names: np.ndarray
    """uint32[m], the number of the phrase in the dictionary, NO_PHRASE for a separator"""
    counts: np.ndarray
    """uint32[d], how often each different phrase is in the text"""
    dictionary: Dictionary


@inlined
def _hash_phrase(text, place, length, overlap):
    """A number, the same for equal phrases."""
    value = uint64(length + overlap)
    while length > int64(0):
        value = mixed(value ^ (fetch_word(text.words, place) & prefix_mask(length)))
        place += int64(32)
        length -= int64(32)
    return value


@scalar
def _hash_phrases(text, places, span, lengths, hashes):
    """How many bases each of the phrases [first, last) has, and its number."""
    first, last = span
    for number in range(first, last):
        begin, length, overlap = phrase_at(text, places, number)
        lengths[uint64(number)] = length
        hashes[uint64(number)] = _hash_phrase(text, begin, length, overlap)


@scalar
def _hash_stretch(text, places, number, count):
    """A number, the same for equal stretches: so many phrases one behind the other, or fewer where a segment ends."""
    value = uint64(0)
    last = min(number + count, int64(places.shape[0]))
    while number < last:
        begin, length, overlap = phrase_at(text, places, number)
        if length == int64(0):
            break
        value = mixed(value ^ _hash_phrase(text, begin, length, overlap))
        number += int64(1)
    return value


@scalar
def _sample(text, places, span, below, count, lengths, hashes):
    """Of those of the phrases [first, last) whose first bases say so, one behind the other, how many bases each has,
    its number, and that of the stretch of `count` phrases which begins with it, in the columns of `hashes`; returns how
    many they are."""
    first, last = span
    sampled = int64(0)
    for number in range(first, last):
        if mixed(fetch_word(text.words, int64(places[uint64(number)])) + uint64(1)) < uint64(below):
            begin, length, overlap = phrase_at(text, places, number)
            lengths[uint64(sampled)] = length
            hashes[uint64(sampled), 0] = _hash_phrase(text, begin, length, overlap)
            hashes[uint64(sampled), 1] = _hash_stretch(text, places, number, count)
            sampled += int64(1)
    return sampled


def _look_for_repeats(text: PackedText, places: np.ndarray, conditions: int, threads: int) -> tuple[float, float]:
    """About how many letters a dictionary has for each base, and which part of stretches of _STRETCH bases is
    different: of a sample of phrases, each with all that begin like it.

    A text of few different phrases may give no sample at all; then both are 0.
    """
    spans = spans_of(len(places), threads)
    below = np.uint64((1 << 64) // max(1, len(places) // _SAMPLE) - 1)

    def sample(number: int) -> tuple[np.ndarray, np.ndarray]:
        first, last = spans[number]
        lengths, hashes = np.empty(last - first, np.uint32), np.empty((last - first, 2), np.uint64)
        count = int(_sample(text, places, (first, last), below, _STRETCH >> conditions, lengths, hashes))
        return lengths[:count].copy(), hashes[:count].copy()

    lengths, hashes = map(np.concatenate, zip(*on_threads(threads, sample, len(spans)), strict=True))
    _, different = np.unique(hashes[:, 0], return_index=True)
    bases = int(np.maximum(lengths.astype(np.int64) - WINDOW, 1).sum())
    share = (int(lengths[different].sum()) + len(different)) / max(1, bases)
    return share, len(np.unique(hashes[:, 1])) / max(1, len(hashes))


@inlined
def _are_equal(text, places, one, two):
    """Whether two phrases are."""
    begin, length, overlap = phrase_at(text, places, one)
    other, other_length, other_overlap = phrase_at(text, places, two)
    if length != other_length or overlap != other_overlap:
        return False
    while length > int64(0):
        if (fetch_word(text.words, begin) ^ fetch_word(text.words, other)) & prefix_mask(length) != uint64(0):
            return False
        begin += int64(32)
        other += int64(32)
        length -= int64(32)
    return True


class _Naming(NamedTuple):
    """Different phrases as they are found."""

    slots: np.ndarray
    """uint32[power of two], their numbers, by hashes"""
    firsts: np.ndarray
    """uint32[m], of each the first one in the text"""
    counts: np.ndarray
    """uint32[m], how often it is there"""


@scalar
def _name_phrases(text, places, lengths, hashes, span, names, naming, state):
    """Name the phrases [first, last).

    Parameters
    ----------
    state : int64[3]: how many different ones there are, the letters of their dictionary, and how many these may be

    Returns
    -------
    bool, whether they are no more
    """
    first, last = span
    mask = uint64(naming.slots.shape[0] - 1)
    for number in range(first, last):
        length = int64(lengths[uint64(number)])
        if length == int64(0):
            names[uint64(number)] = NO_PHRASE
            continue
        slot = hashes[uint64(number)] & mask
        name = naming.slots[slot]
        while name != NO_PHRASE:
            known = uint64(naming.firsts[uint64(name)])
            if hashes[known] == hashes[uint64(number)] and _are_equal(text, places, int64(known), int64(number)):
                break
            slot = (slot + uint64(1)) & mask
            name = naming.slots[slot]
        if name == NO_PHRASE:
            name = uint32(state[0])
            naming.slots[slot], naming.firsts[uint64(name)], naming.counts[uint64(name)] = name, uint32(number), 0
            state[0] += int64(1)
            state[1] += length + int64(1)
            if state[1] > state[2]:
                return False
        naming.counts[uint64(name)] += uint32(1)
        names[uint64(number)] = name
    return True


@scalar
def _rename(span, names, new_names):
    """Give the phrases [first, last) the names that they have in the dictionary."""
    first, last = span
    for number in range(first, last):
        name = names[uint64(number)]
        if name != NO_PHRASE:
            names[uint64(number)] = new_names[uint64(name)]


def name_phrases(text: PackedText, places: np.ndarray, most: int, threads: int) -> Parse | None:
    """The phrases of a text by name, None if the dictionary would have more than `most` letters.

    Parameters
    ----------
    places : uint32[m], as `cut_text` has them
    """
    count, spans = len(places), spans_of(len(places), threads)
    names, lengths = np.empty((2, count), np.uint32)
    hashes = np.empty(count, np.uint64)
    on_threads(threads, lambda number: _hash_phrases(text, places, spans[number], lengths, hashes), len(spans))
    slots = np.full(1 << (2 * count).bit_length(), NO_PHRASE)
    naming, state = _Naming(slots, *np.empty((2, count), np.uint32)), np.array([0, 0, most], np.int64)
    for span in steps(0, count):
        if not _name_phrases(text, places, lengths, hashes, span, names, naming, state):
            return None
    different = int(state[0])
    order = sort_by_ends(text, places, naming.firsts[:different], threads)
    # (It has the first phrase of each, whose old name says which one it is.)
    old_names = names[order]
    new_names = np.empty(different, np.uint32)
    new_names[old_names] = np.arange(different, dtype=np.uint32)
    dictionary = make_dictionary(text, places, order, lengths[order], threads)
    on_threads(threads, lambda number: _rename(spans[number], names, new_names), len(spans))
    return Parse(places, names, naming.counts[old_names], dictionary)


def parse_text(text: PackedText, threads: int) -> Parse | None:
    """The phrases of a text; None where it is shorter than 65,536 bases, or does not repeat so much that they are worth
    it: they are short, the dictionary would be as long as the text, or differences lie so close together that letters
    are."""
    size = int(text.segments.text_start[-1])
    if size < _LEAST_TEXT:
        return None
    shortest, least_different, found = _MOST_OF_TEXT, 1.0, None
    for conditions in _CONDITIONS:
        places = cut_text(text, conditions, threads)
        if places is None:
            break
        share, different = _look_for_repeats(text, places, conditions, threads)
        least_different = min(least_different, different)
        if share <= shortest:
            shortest, found = share, places
        if not _SHORT < share < _LONG:
            break
    if found is None or (least_different > _MOST_DIFFERENT and shortest > _VERY_SHORT):
        return None
    return name_phrases(text, found, int(_MOST_OF_TEXT * size), threads)

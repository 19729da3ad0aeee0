"""Cutting a text into phrases, so that what repeats in it becomes the same phrases again.

A phrase begins where a segment does, and at every *trigger*: a window of 16 bases that meets some conditions, whatever
stands around it. It goes on to the end of the next trigger's window, which both phrases have, or to the end of its
segment. So equal stretches of a text are cut in the same places, but for their ends, and of a text that is copies of
another the *dictionary*, each different phrase once, is hardly longer than one copy. No string that begins in a phrase
before its last 16 bases and ends with it is the beginning of another such string, as that would have the trigger's
window inside: what follows a phrase never matters for the order of such strings that differ.

Source: prefix-free parsing (C. Boucher, T. Gagie, A. Kuhnle, B. Langmead, G. Manzini, T. Mun, Prefix-free parsing for
building big BWTs, 2019), with windows that are found 32 at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word, mixed, prefix_mask
from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64
from warpseed.compute.intrinsics import leading_zeros
from warpseed.compute.ranges import on_threads, spans_of, steps
from warpseed.fm_index.phrase_dictionary import WINDOW, Dictionary, make_dictionary, phrase_at, sort_by_ends
from warpseed.fm_index.text import PackedText, segment_of

__all__ = ["NO_PHRASE", "Phrases", "cut_text", "find_phrases", "name_phrases"]

_CONDITIONS = 6
"""That a trigger meets: one window of 64 in random bases."""
NO_PHRASE = np.uint32(0xFFFFFFFF)
"""Instead of the number of a phrase: a separator."""
_FEWEST = 1 << 16
"""Bases of a text that it is worth to cut."""
_SAMPLE = 1 << 14
"""Phrases that show whether a text repeats."""
_DENSE = 32
"""Bases for each phrase and separator, at least, in the mean."""
_MOST_OF_TEXT = 0.8
"""What a dictionary is at most, of the text: it must be sorted in less memory."""
_PER_PHRASE = (64 + WINDOW + 1) / 64
"""Letters of the dictionary for each base of different phrases, about."""
_HIGH = np.uint64(0xAAAAAAAAAAAAAAAA)


class Phrases(NamedTuple):
    """A text as phrases and separators, in its order."""

    places: np.ndarray
    """uint32[m], where each phrase begins, and separators"""
    names: np.ndarray
    """uint32[m], the number of the phrase in the dictionary, NO_PHRASE for a separator"""
    dictionary: Dictionary


@inlined
def _triggers(words, word, conditions):
    """The high bits of those of the 32 bases of a word at which a trigger begins, of the text as if it had no end."""
    a, b = words[uint64(word)], words[uint64(word) + uint64(1)]
    two = (a << uint64(4)) | (b >> uint64(60))
    five = (a << uint64(10)) | (b >> uint64(54))
    nine = (a << uint64(18)) | (b >> uint64(46))
    last = (a << uint64(30)) | (b >> uint64(34))
    found = (a ^ (five << uint64(1))) & uint64(_HIGH)
    # (Of one base again and again these cannot be met all.)
    if conditions > int64(1):
        found &= two ^ five ^ (last << uint64(1))
    if conditions > int64(2):
        found &= (two << uint64(1)) ^ (nine << uint64(1)) ^ last
    if conditions > int64(3):
        found &= (a << uint64(1)) ^ nine
    if conditions > int64(4):
        found &= a ^ five ^ (nine << uint64(1))
    if conditions > int64(5):
        found &= (a << uint64(1)) ^ two ^ last
    return found


@inlined
def _note(places, count, position):
    """Note a place, as long as there is room."""
    if count < places.shape[0]:
        places[uint64(count)] = uint32(position)
    return count + int64(1)


@scalar
def _cut(text, conditions, span, places):
    """Note where phrases begin in a span, and separators; returns how many these are, noted or not."""
    first, last = span
    count, position = int64(0), first
    while position < last:
        segment = uint64(segment_of(text.segments, position))
        begin, end = int64(text.segments.text_start[segment]), int64(text.segments.text_start[segment + uint64(1)])
        end -= int64(1)
        if position == begin:
            count = _note(places, count, position)
        position, stop = max(position, begin + int64(1)), min(last, end - int64(WINDOW) + int64(1))
        for word in range(position >> int64(5), (stop + int64(31)) >> int64(5)):
            at = word << int64(5)
            left = _triggers(text.words, word, conditions) & prefix_mask(stop - at) & ~prefix_mask(position - at)
            while left != uint64(0):
                base = leading_zeros(left) >> int64(1)
                left &= ~prefix_mask(base + int64(1))
                count = _note(places, count, at + base)
        if end < last:
            count = _note(places, count, end)
        position = end + int64(1)
    return count


def cut_text(text: PackedText, conditions: int, threads: int) -> np.ndarray | None:
    """Where phrases of a text begin, and separators, uint32[m]; None where they are too dense."""
    size = int(text.segments.text_start[-1])
    spans = spans_of(size, threads)

    def cut(number: int) -> np.ndarray | None:
        first, last = spans[number]
        places = np.empty((last - first) // 4 + 64, np.uint32)
        count = int(_cut(text, conditions, (first, last), places))
        return places[:count].copy() if count <= len(places) else None

    found = [places for places in on_threads(threads, cut, len(spans)) if places is not None]
    are_few = len(found) == len(spans) and sum(map(len, found)) * _DENSE <= size
    return np.concatenate(found) if are_few else None


@scalar
def _hash_phrases(text, places, span, hashes):
    """A number for each of the phrases [first, last), the same for equal ones."""
    first, last = span
    for number in range(first, last):
        begin, length, tail = phrase_at(text, places, number)
        value = uint64(length + tail)
        while length > int64(0):
            value = mixed(value ^ (fetch_word(text.words, begin) & prefix_mask(length)))
            begin += int64(32)
            length -= int64(32)
        hashes[uint64(number)] = value


@scalar
def _sample(text, places, span, below, prints):
    """Write a number for each of the phrases [first, last) whose first bases say so, the same where they begin alike;
    returns how many."""
    first, last = span
    count = int64(0)
    for number in range(first, last):
        place = int64(places[uint64(number)])
        value = mixed(fetch_word(text.words, place) + uint64(1))
        if value < uint64(below):
            prints[uint64(count)] = mixed(value ^ fetch_word(text.words, place + int64(32)))
            count += int64(1)
    return count


def _seems_to_repeat(text: PackedText, places: np.ndarray, threads: int) -> bool:
    """Whether a sample of phrases, each with all that begin like it, has few that are different.

    (So little does it have of a text with few different phrases that it may have none.)
    """
    spans = spans_of(len(places), threads)
    below = np.uint64((1 << 64) // max(1, len(places) // _SAMPLE) - 1)

    def sample(number: int) -> np.ndarray:
        first, last = spans[number]
        prints = np.empty(last - first, np.uint64)
        return prints[: int(_sample(text, places, (first, last), below, prints))].copy()

    prints = np.concatenate(on_threads(threads, sample, len(spans)))
    return len(np.unique(prints)) * _PER_PHRASE <= _MOST_OF_TEXT * len(prints)


@inlined
def _are_equal(text, places, one, two):
    """Whether two phrases are."""
    begin, length, tail = phrase_at(text, places, one)
    other, other_length, other_tail = phrase_at(text, places, two)
    if length != other_length or tail != other_tail:
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


@scalar
def _name_phrases(text, places, hashes, span, names, naming, state):
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
        _, length, _ = phrase_at(text, places, number)
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
            naming.slots[slot], naming.firsts[uint64(name)] = name, uint32(number)
            state[0] += int64(1)
            state[1] += length + int64(1)
            if state[1] > state[2]:
                return False
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


def name_phrases(text: PackedText, places: np.ndarray, most: int, threads: int) -> Phrases | None:
    """The phrases of a text, None if the dictionary would have more than `most` letters.

    Parameters
    ----------
    places : uint32[m], as `cut_text` has them
    """
    count = len(places)
    hashes, spans = np.empty(count, np.uint64), spans_of(count, threads)
    on_threads(threads, lambda number: _hash_phrases(text, places, spans[number], hashes), len(spans))
    names, slots = np.empty(count, np.uint32), np.full(1 << (2 * count).bit_length(), NO_PHRASE)
    naming, state = _Naming(slots, np.empty(count, np.uint32)), np.array([0, 0, most], np.int64)
    for span in steps(0, count):
        if not _name_phrases(text, places, hashes, span, names, naming, state):
            return None
    firsts = naming.firsts[: state[0]].copy()
    order = sort_by_ends(text, places, firsts, threads)
    new_names = np.empty(len(order), np.uint32)
    new_names[names[order]] = np.arange(len(order), dtype=np.uint32)
    dictionary = make_dictionary(text, places, order, int(state[1]), threads)
    on_threads(threads, lambda number: _rename(spans[number], names, new_names), len(spans))
    return Phrases(places, names, dictionary)


def find_phrases(text: PackedText, threads: int) -> Phrases | None:
    """The phrases of a text, None where it does not repeat so much that they are worth it."""
    size = int(text.segments.text_start[-1])
    if size < _FEWEST:
        return None
    places = cut_text(text, _CONDITIONS, threads)
    if places is None or not _seems_to_repeat(text, places, threads):
        return None
    return name_phrases(text, places, int(_MOST_OF_TEXT * size), threads)

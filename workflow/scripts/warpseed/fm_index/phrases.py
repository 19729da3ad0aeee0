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

import numpy as np

from warpseed.compute.bits import prefix_mask
from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64
from warpseed.compute.intrinsics import leading_zeros
from warpseed.compute.ranges import on_threads, spans_of
from warpseed.fm_index.text import PackedText, segment_of

__all__ = ["WINDOW", "cut_text", "phrase_at"]

WINDOW = 16
"""Bases that a phrase has in common with the next, more than those of a string in the lookup table."""
_MOST = 2
"""Phrases and separators, by those of a random text: what is said of them takes no more than a byte a base."""
_ROOM = 4
"""Positions for each phrase that may be noted while a text is cut."""
_HIGH = np.uint64(0xAAAAAAAAAAAAAAAA)


@inlined
def _triggers(words, word, conditions):
    """The high bits of those of the 32 bases of a word at which a trigger begins, of the text as if it had no end;
    `conditions`: 1 to 6."""
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
    """Where phrases of a text begin, and separators.

    Parameters
    ----------
    conditions : 1 to 6, of a trigger: each holds for half of random windows, so that one of 2**conditions is one

    Returns
    -------
    uint32[m]; None where there are more than twice as many as in a random text
    """
    size = int(text.segments.text_start[-1])
    spans = spans_of(size, threads)

    def cut(number: int) -> np.ndarray | None:
        first, last = spans[number]
        places = np.empty((last - first) // _ROOM + 64, np.uint32)
        count = int(_cut(text, conditions, (first, last), places))
        return places[:count].copy() if count <= len(places) else None

    found = [places for places in on_threads(threads, cut, len(spans)) if places is not None]
    are_few = len(found) == len(spans) and sum(map(len, found)) << conditions <= _MOST * size
    return np.concatenate(found) if are_few else None


@inlined
def phrase_at(text, places, number):
    """Where a phrase begins, its bases, and those of them that the next phrase has, too; of a separator 0 bases."""
    begin = int64(places[uint64(number)])
    segment = uint64(segment_of(text.segments, begin))
    end = int64(text.segments.text_start[segment + uint64(1)]) - int64(1)
    if begin == end:
        return begin, int64(0), int64(0)
    following = int64(places[uint64(number) + uint64(1)])
    overlap = int64(0) if following == end else int64(WINDOW)
    return begin, following + overlap - begin, overlap

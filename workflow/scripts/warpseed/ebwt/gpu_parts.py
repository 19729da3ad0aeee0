"""How the gaps of words, in which others are looked for, are dealt out to devices.

All that is counted is a line: WORDS words after the other, the *members*, and of each the words in whose gaps they are
looked for, and of each of these the gaps. Each device has a part of the line, and all parts are about as much work,
whether words are thousands, two, or one that is longer than all others: within a word, to a stretch of ranks
(`gpu_counts.py`).
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from warpseed.ebwt.gpu_between import is_counted
from warpseed.ebwt.gpu_sets import WORDS

__all__ = ["Part", "parts_of"]

_NEAR = 64
"""A part may begin and end by this share of it earlier or later, where it then does so with members, or with a word."""


class Part(NamedTuple):
    """Gaps of words, in which some members are looked for. One is named by its word and by the rank behind it, among
    those of the word: from 0 on, before which there is none."""

    first_word: int
    """the first member"""
    begin: tuple[int, int]
    """(word, rank) of the first gap"""
    end: tuple[int, int]
    """(word, rank) of the one behind the last"""

    @property
    def whole(self) -> slice:
        """The words of which all gaps are there."""
        first = self.begin[0] + (self.begin[1] > 0)
        return slice(first, max(first, self.end[0]))

    @property
    def cut(self) -> set[int]:
        """The words of which some are there, and others on another device."""
        return {word for word, rank in (self.begin, self.end) if rank > 0}

    def split(self, count: int) -> list[Part]:
        """The same gaps in up to so many parts, each of about as many words."""
        first, last = self.begin[0] + 1, self.end[0]
        words = sorted({last - (last - first) * number // count for number in range(1, count)} - {last})
        borders = [self.begin, *((word, 0) for word in words if first <= word < last), self.end]
        return [Part(self.first_word, begin, end) for begin, end in pairwise(borders)]


def parts_of(lengths: np.ndarray, devices: int) -> list[list[Part]]:
    """What each of some devices counts, of words of these lengths, int64[m]; a device may have nothing.

    They have as many gaps, or, where they then end with a word or with members, nearly. The part with the fewest words
    is a device's last: when all is counted, the host waits for what was counted last.
    """
    m, chunks = len(lengths), -(-len(lengths) // WORDS)
    work = np.add.reduceat(lengths, np.arange(0, m, WORDS)) @ _looked_at(chunks)
    places = [(0, 0, 0)]
    for number in range(1, devices):
        wanted = _place(lengths, work, int(work.sum()) * number // devices, int(work.sum()) // devices // _NEAR)
        places.append(max(wanted, places[-1]))
    return [_parts_between(first, last, m) for first, last in pairwise([*places, (chunks, 0, 0)])]


@cache
def _looked_at(chunks: int) -> np.ndarray:
    """bool[chunks, chunks], whether in gaps of the words of a chunk the members of another one are looked for."""
    firsts = [chunk * WORDS for chunk in range(chunks)]
    return np.array([[is_counted.py_func(word, member, chunks * WORDS) for member in firsts] for word in firsts])


def _place(lengths: np.ndarray, work: np.ndarray, before: int, near: int) -> tuple[int, int, int]:
    """(chunk of members, word, rank) of a place in the line, that has so much work before it, or nearly.

    work : int64[chunks], of each chunk of members
    """
    m, ends = len(lengths), np.cumsum(work)
    chunk = min(int(np.searchsorted(ends, before, side="right")), len(work) - 1)
    before -= int(ends[chunk] - work[chunk])
    if min(before, int(work[chunk]) - before) <= near:
        return (chunk, 0, 0) if before <= near else (chunk + 1, 0, 0)
    of_words = np.cumsum(np.where(np.repeat(_looked_at(len(work))[:, chunk], WORDS)[:m], lengths, 0))
    word = int(np.searchsorted(of_words, before, side="right"))
    left = int(of_words[word]) - before
    rank = int(lengths[word]) - left
    if min(rank, left) <= near:
        return (chunk, word, 0) if rank <= near else (chunk, word + 1, 0)
    return chunk, word, rank


def _parts_between(first: tuple[int, int, int], last: tuple[int, int, int], m: int) -> list[Part]:
    """The parts from one place of the line to another one."""
    parts = []
    for chunk in range(first[0], last[0] + 1):
        begin = first[1:] if chunk == first[0] else (0, 0)
        end = last[1:] if chunk == last[0] else (m, 0)
        if begin < end:
            parts.append(Part(chunk * WORDS, begin, end))
    return sorted(parts, key=lambda part: part.whole.start - part.whole.stop)

"""How the gaps of words, in which others are looked for, are dealt out to devices.

All counting is laid out as one line: for each group of WORDS words (the *members*), each word whose gaps are searched
for them, and each of its gaps. Each device counts a part of the line, and all parts are about as much work, whether
there are thousands of words, two, or one that is longer than all others: within a word, a part ends with a stretch of
ranks (`gpu_counts.py`).
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from warpseed.ebwt.gpu_between import is_counted
from warpseed.ebwt.gpu_sets import WORDS

__all__ = ["Part", "counted_chunks", "parts_of"]

_NEAR = 64
"""A part may begin and end by this share of its gaps earlier or later, where it then does so with a word."""
_RANKS_LOOKED_AT = 32
"""Of all words, that are looked at for some members, while a gap is counted (trials, as what follows)."""
_GAPS_COUNTED, _RANKS_IN_SETS = 2, 3
"""Gaps that are counted while so many ranks of members are put in sets."""


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
    def words(self) -> range:
        """Those of which some gaps are in the part."""
        return range(self.begin[0], self.end[0] + (self.end[1] > 0))

    @property
    def complete_words(self) -> slice:
        """The words of which all gaps are in the part."""
        first = self.begin[0] + (self.begin[1] > 0)
        return slice(first, max(first, self.end[0]))

    @property
    def split_words(self) -> set[int]:
        """The words of which some gaps are in the part, and others in another one."""
        return {word for word, rank in (self.begin, self.end) if rank > 0}

    def split(self, count: int) -> list[Part]:
        """The same gaps in up to so many parts, each of about as many words."""
        first, last = self.begin[0] + 1, self.end[0]
        words = sorted({last - (last - first) * number // count for number in range(1, count)} - {last})
        borders = [self.begin, *((word, 0) for word in words if first <= word < last), self.end]
        return [Part(self.first_word, begin, end) for begin, end in pairwise(borders)]


def parts_of(lengths: np.ndarray, devices: int) -> list[list[Part]]:
    """What each of some devices counts, of words of these lengths, int64[m]; a device may have nothing.

    They are as much work, or nearly: a device ends with a word, and not within it, where that is near, and with
    members, where to make the sets of the next ones would take all that is left to it. The part with the fewest words
    is its last: when all is counted, the host waits for what was counted last.
    """
    m, chunks = len(lengths), -(-len(lengths) // WORDS)
    of_chunks = np.add.reduceat(lengths, np.arange(0, m, WORDS))
    work = _Work(lengths, of_chunks @ counted_chunks(chunks), _work_of_sets(of_chunks))
    again = int(work.sets.max())  # (of members that two devices count for, both make the sets)
    total_work, gaps = int(work.gaps.sum() + work.sets.sum()) + (devices - 1) * again, int(work.gaps.sum())
    places = [(0, 0, 0)]
    for number in range(1, devices):
        wanted = _place(work, total_work * number // devices - (number - 1) * again, gaps // devices // _NEAR)
        places.append(max(wanted, places[-1]))
    return [_parts_between(first, last, m) for first, last in pairwise([*places, (chunks, 0, 0)])]


class _Work(NamedTuple):
    """What there is to do, in gaps, or in what takes as long."""

    lengths: np.ndarray
    """int64[m], of the words"""
    gaps: np.ndarray
    """int64[chunks], that are counted for each chunk of members"""
    sets: np.ndarray
    """int64[chunks], to make their sets"""


def _work_of_sets(of_chunks: np.ndarray) -> np.ndarray:
    """Of `_Work`, int64[chunks], where so many letters are of each."""
    among_others = int(of_chunks.sum()) // _RANKS_LOOKED_AT if len(of_chunks) > 1 else 0
    return of_chunks * _GAPS_COUNTED // _RANKS_IN_SETS + among_others


@cache
def counted_chunks(chunks: int) -> np.ndarray:
    """bool[chunks, chunks], whether in gaps of the words of a chunk the members of another one are looked for."""
    firsts = [chunk * WORDS for chunk in range(chunks)]
    table = np.array([[is_counted.py_func(word, member, chunks * WORDS) for member in firsts] for word in firsts])
    table.setflags(write=False)
    return table


def _place(work: _Work, before: int, near: int) -> tuple[int, int, int]:
    """(chunk of members, word, rank) of a place in the line, that has so much work before it, or nearly."""
    lengths, m, ends = work.lengths, len(work.lengths), np.cumsum(work.gaps + work.sets)
    chunk = min(int(np.searchsorted(ends, before, side="right")), len(ends) - 1)
    before -= int(ends[chunk] - work.gaps[chunk])
    if before <= 0:  # (to make their sets would take all that is left)
        return chunk, 0, 0
    of_words = np.cumsum(np.where(np.repeat(counted_chunks(len(ends))[:, chunk], WORDS)[:m], lengths, 0))
    word = min(int(np.searchsorted(of_words, before, side="right")), m - 1)
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
    return sorted(parts, key=lambda part: part.complete_words.start - part.complete_words.stop)

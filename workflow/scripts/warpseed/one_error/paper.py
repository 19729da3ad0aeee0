"""The paper tier: paper 001's search with up to one error (Algorithm 3); its exact one (Algorithm 2) is `extend_left`.

The same scalar functions run in the loop of cpu_paper.py and, one read a thread, in a kernel, as the paper compares
"the same algorithm" on both. Intervals of rows are half-open: [low, high) here is [k, l] there with high = l + 1.
Algorithm 3 cannot be right as it is printed; docs/one_error.md says where and what holds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32
from warpseed.fm_index.search import extend_left, step
from warpseed.one_error.reads import DELETION, INSERTION, MATCH, MISMATCH, edit_word
from warpseed.sequences.packed import base_at

__all__ = ["READS_A_LAUNCH", "RESULT_BYTES", "Results", "search_read"]

READS_A_LAUNCH = 256_000
"""Reads that are given to a kernel at once, at most (section 6)."""
RESULT_BYTES = 12
"""Bytes of a result: two borders of an interval, and an edit."""


class Results(NamedTuple):
    """What searches found: an edit and the rows of the suffixes that begin with what it makes of the read."""

    low: np.ndarray
    """uint32[room], first row"""
    high: np.ndarray
    """uint32[room], the row behind the last"""
    edit: np.ndarray
    """uint32[room], as `edit_word`"""


@scalar
def _add_result(slots, found, edit, low, high):
    """Keep an interval that is not empty, if there is a slot for it; returns how many there were until now."""
    if low >= high:
        return found
    results, first, room = slots
    if found < room:
        results.low[first + found] = uint32(low)
        results.high[first + found] = uint32(high)
        results.edit[first + found] = edit
    return found + int64(1)


@scalar
def _search_edited(index, reads, oriented, slots, found, i, low, high):
    """The edits at base i, for which [low, high) are the rows that begin with the bases behind it: eight branches."""
    query, strand = oriented
    own = base_at(reads, query, strand, i)
    if reads.lengths[query] > 1:
        first, last = extend_left(index, reads, oriented, i - int64(1), low, high)
        found = _add_result(slots, found, edit_word(int64(DELETION), i, int64(0), strand), first, last)
    for symbol in range(4):
        base = int64(symbol)
        next_low = step(index, base, low)
        next_high = step(index, base, high)
        if next_low >= next_high:
            continue
        if base != own:
            first, last = extend_left(index, reads, oriented, i - int64(1), next_low, next_high)
            found = _add_result(slots, found, edit_word(int64(MISMATCH), i, base, strand), first, last)
        first, last = extend_left(index, reads, oriented, i, next_low, next_high)
        found = _add_result(slots, found, edit_word(int64(INSERTION), i + int64(1), base, strand), first, last)
    return found


@scalar
def search_read(index, reads, oriented, slots, found):
    """Algorithm 3: everything that a read in one orientation is up to one edit away from.

    From the last base to the first: at each base the edits are tried, each followed by an exact search of what is left
    of the read, and then the base itself. Before the first base a base can still be put. Every edit is a result of its
    own, also those that make the same of the read.

    Parameters
    ----------
    oriented : (query, strand), int64
    slots : (Results, first, room); results go to first, first + 1, … as far as there is room
    found : int64, results of the read before, in its other orientation

    Returns
    -------
    int64, results of the read, those that had no room included
    """
    query, strand = oriented
    low = int64(0)
    high = int64(index.first_row[4])
    i = int64(reads.lengths[query]) - int64(1)
    while i >= int64(0):
        found = _search_edited(index, reads, oriented, slots, found, i, low, high)
        base = base_at(reads, query, strand, i)
        if base > int64(3):
            return found
        low = step(index, base, low)
        high = step(index, base, high)
        if low >= high:
            return found
        i -= int64(1)
    for symbol in range(4):
        base = int64(symbol)
        first, last = step(index, base, low), step(index, base, high)
        found = _add_result(slots, found, edit_word(int64(INSERTION), int64(0), base, strand), first, last)
    return _add_result(slots, found, edit_word(int64(MATCH), int64(0), int64(0), strand), low, high)

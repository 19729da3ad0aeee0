"""What both ways to find matches on the CPU share: a thread's working arrays, and what is done with a match."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import inlined, int32, int64, scalar, uint64
from warpseed.fm_index.buckets import Narrowing, new_narrowing
from warpseed.mems.fast import key_of
from warpseed.mems.matches import MAXIMAL, PAPER, SUPER, pack_place, pack_span
from warpseed.sequences.packed import all_known, oriented_marks, oriented_word

__all__ = [
    "CANDIDATES",
    "CHOOSE",
    "FIRSTS",
    "ITEMS",
    "NOTE",
    "STORE",
    "Block",
    "Firsts",
    "bound_ends",
    "is_wanted",
    "join_strands",
    "may_begin",
    "new_block",
    "orient",
    "take_match",
]

ITEMS = 512
"""Items of a pass."""
CANDIDATES = 512
FIRSTS = 32
"""Crowded seeds that are remembered."""
_NOWHERE = 0x7FFF_FFFF
NOTE, STORE, CHOOSE = 1, 2, 4
"""What is done with a match: its end is noted; it is stored; only those are, that are wanted."""


class Firsts(NamedTuple):
    """What is remembered of crowded seeds (see cpu_crowded.py)."""

    keys: np.ndarray
    """uint64[FIRSTS, 3], what tells each"""
    counts: np.ndarray
    """int64[FIRSTS], how many rows are listed; below 0 where none are"""
    rows: np.ndarray
    """int64[FIRSTS, CANDIDATES], the rows, ascending"""
    oldest: np.ndarray
    """int64[1], which one makes way for the next"""


class Block(NamedTuple):
    """Working arrays of one thread."""

    words: np.ndarray
    """uint64[w + 3], the read in one orientation, a word of zeros before it and two behind"""
    marks: np.ndarray
    """uint64[w + 3], its marks; uint64[0] where every base is known"""
    ends: np.ndarray
    """int32[2, n + 1]: where the longest match from a place on ends, of super matches by place in the read in the first
    row, of the paper's by strand and place in the read as it is searched for; then, by strand and that place, what the
    end of a match must be (super), or be more than"""
    seed: np.ndarray
    """int64[ITEMS], where an item's seed begins"""
    step: np.ndarray
    """int64[ITEMS], bases before the seed with which another is the first of a match"""
    low: np.ndarray
    """int64[ITEMS], its first row"""
    high: np.ndarray
    """int64[ITEMS], the row behind its last"""
    crowded: np.ndarray
    """int32[ITEMS], items that are taken apart"""
    half_low: np.ndarray
    """int64[ITEMS], first rows of crowded item c taken apart: of its seed at 2·c, of one before it at 2·c + 1"""
    half_high: np.ndarray
    """int64[ITEMS], the rows behind their last"""
    narrowing: Narrowing
    place: np.ndarray
    """int64[CANDIDATES], text position of a seed's row"""
    place_item: np.ndarray
    """int32[CANDIDATES], its item"""
    firsts: Firsts


def new_block(longest: int, known: bool, noting: bool = True) -> Block:
    """Room for reads of up to `longest` bases; `known`: every base is one of A, C, G, T; `noting`: with ends."""
    words = -(-longest // 32) + 3
    firsts = Firsts(
        np.zeros((FIRSTS, 3), np.uint64),
        np.zeros(FIRSTS, np.int64),
        np.empty((FIRSTS, CANDIDATES), np.int64),
        np.zeros(1, np.int64),
    )
    return Block(
        np.zeros(words, np.uint64),
        np.zeros(0 if known else words, np.uint64),
        np.zeros((2, longest + 1 if noting else 0), np.int32),
        np.empty(ITEMS, np.int64),
        np.empty(ITEMS, np.int64),
        np.empty(ITEMS, np.int64),
        np.empty(ITEMS, np.int64),
        np.empty(ITEMS, np.int32),
        np.empty(ITEMS, np.int64),
        np.empty(ITEMS, np.int64),
        new_narrowing(ITEMS),
        np.empty(CANDIDATES, np.int64),
        np.empty(CANDIDATES, np.int32),
        firsts,
    )


@scalar
def orient(reads, query, strand, block):
    """Put a read, in one orientation, behind the first word of the block."""
    length = int64(reads.lengths[query])
    count = (length + int64(31)) >> int64(5)
    known = all_known(reads)
    for w in range(count):
        block.words[w + 1] = oriented_word(reads, query, strand, int64(w))
        if not known:
            block.marks[w + 1] = oriented_marks(reads, query, strand, int64(w))
    for w in range(count + 1, count + 3):
        block.words[w] = uint64(0)
        if not known:
            block.marks[w] = uint64(0)
    return length


@inlined
def is_wanted(how, ends, strand, first, bases):
    """Whether a match is kept, which begins at a base of the oriented read."""
    if how.kind == MAXIMAL:
        return True
    end, bound = first + bases, int64(ends[strand, first])
    return end == bound if how.kind == SUPER else end > bound


@inlined
def may_begin(how, ends, strand, first):
    """Whether a match that is kept may begin at a base of the oriented read; not of maximal ones."""
    if how.kind == SUPER:
        return ends[strand, first] != int32(_NOWHERE)
    return ends[strand, first + int64(1)] > ends[strand, first]


@scalar
def take_match(how, block, length, strand, found_at, sink, state):
    """Do with a match what is to be done.

    Parameters
    ----------
    found_at : (first base in the oriented read, bases, text position)
    state : (matches used, matches found, what is done with them)
    """
    first, bases, start = found_at
    used, found, deed = state
    if deed & int64(NOTE):
        row, key = key_of(how, strand, first, bases, length)
        block.ends[row, key] = max(int64(block.ends[row, key]), key + bases)
    if deed & int64(CHOOSE) and not is_wanted(how, block.ends, strand, first, bases):
        return state
    if start < int64(sink.begin) or start >= int64(sink.end):
        return state
    found += int64(1)
    if deed & int64(STORE) and (found <= int64(sink.max_hits) or deed & int64(NOTE)):
        if used < int64(sink.hits.shape[0]):
            sink.hits[used].place = pack_place(start, strand)
            sink.hits[used].span = pack_span(bases, length - first - bases if strand else first)
        used += int64(1)
    return used, found, deed


@scalar
def join_strands(ends, length):
    """Of ends that were noted strand by strand, as the paper's are: those of both by place in the read, as super
    matches are held to. (Of those that begin alike on strand 1 only the longest was noted, which holds the others.)"""
    for first in range(length):
        end = int64(ends[1, first])
        if end > int64(0):
            ends[0, length - end] = max(int64(ends[0, length - end]), length - int64(first))


@scalar
def bound_ends(how, ends, length):
    """From where matches end to what the end of one that is wanted must be (super), or be more than (paper), for each
    strand."""
    for strand in range(2 if how.kind == PAPER else 1):
        longest = int32(0)
        for begin in range(length + 1):
            end = ends[strand, begin]
            if how.kind == PAPER:
                ends[strand, begin] = longest
            elif end <= longest:
                ends[strand, begin] = int32(_NOWHERE)
            longest = max(longest, end)
    if how.kind == SUPER:
        ends[1, : length + int64(1)] = int32(_NOWHERE)
        for begin in range(length):
            end = int64(ends[0, begin])
            if end != int64(_NOWHERE):
                ends[1, length - end] = length - int64(begin)

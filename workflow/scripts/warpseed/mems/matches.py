"""Maximal exact matches as both tiers and both devices give them, and which of them are wanted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.sink import NO_LIMIT

__all__ = [
    "KINDS",
    "MATCH",
    "MAXIMAL",
    "MOST_OCCURRENCES",
    "PAPER",
    "PLACE_BITS",
    "SUPER",
    "Criteria",
    "count_occurrences",
    "keep_rare",
    "occurrences_of",
    "pack_place",
    "pack_span",
    "place_of",
    "span_of",
    "with_occurrences",
]

MATCH = np.dtype([("place", "<u8"), ("span", "<u8")])
"""A match. `place`: its occurrences, in the upper 31 bits; in the PLACE_BITS below them its first base in the text,
above the strand. `span`: its bases in the upper 32 bits, and in the lower ones where it begins in the read as it is
written, on strand 1 too. In output order when ascending without occurrences.

Its *occurrences* are the matches of its read, of the kind that is wanted, that have the same bases of it, itself among
them: the same place in the read as it is written, and the same length, on both strands together. 0 stands for what was
not counted."""
PLACE_BITS = 33
MOST_OCCURRENCES = (1 << 31) - 1
"""Stands for more, too."""
_PLACE = (1 << PLACE_BITS) - 1

MAXIMAL, PAPER, SUPER = 0, 1, 2
KINDS = {"super": SUPER, "paper": PAPER, "maximal": MAXIMAL}
"""Which matches are kept, by their names. *maximal*: all that can be extended in neither direction. *paper*: of these,
those for which no match on the same strand begins further left and ends as far right, or further (paper 002, definition
2, as its Algorithm 1 and stages 2 and 3 give them); left and right are those of what is searched for, the read or its
reverse complement. *super*: those whose part of the read lies in no longer part that has a match, on either strand."""


class Criteria(NamedTuple):
    """Which matches are searched for."""

    min_length: int
    """bases"""
    kind: int
    """MAXIMAL, PAPER or SUPER"""
    strands: int
    """1 for reads as they are given, 2 for their reverse complements too"""
    max_occurrences: int = NO_LIMIT
    """matches with more are left out"""


@inlined
def pack_place(place, strand):
    """uint64 of a text position and a strand."""
    return (uint64(place) << uint64(1)) | uint64(strand)


@inlined
def pack_span(length, begin):
    """uint64 of a match's bases, and of its first one in the read."""
    return (uint64(length) << uint64(32)) | uint64(begin)


@inlined
def place_of(word):
    """(text position, strand), int64."""
    return int64((word & uint64(_PLACE)) >> uint64(1)), int64(word & uint64(1))


@inlined
def occurrences_of(word):
    """How many matches have the same bases of the read, int64."""
    return int64(word >> uint64(PLACE_BITS))


@inlined
def with_occurrences(word, count):
    """The word of a place with this number of occurrences, uint64."""
    return (word & uint64(_PLACE)) | (uint64(min(count, int64(MOST_OCCURRENCES))) << uint64(PLACE_BITS))


@inlined
def span_of(word):
    """(bases, first base in the read), int64."""
    return int64(word >> uint64(32)), int64(word & uint64(0xFFFF_FFFF))


@scalar
def count_occurrences(hits, first, last):
    """Count the occurrences of matches [first, last), sorted by part, which are all of their read."""
    while first < last:
        behind = first + int64(1)
        while behind < last and hits[behind].span == hits[first].span:
            behind += int64(1)
        for i in range(first, behind):
            hits[i].place = with_occurrences(hits[i].place, behind - first)
        first = behind


@scalar
def keep_rare(hits, first, last, most):
    """Move the matches of [first, last) together that have at most so many occurrences; returns the place behind."""
    to = first
    for i in range(first, last):
        if occurrences_of(hits[i].place) <= most:
            hits[to].place, hits[to].span = hits[i].place, hits[i].span
            to += int64(1)
    return to

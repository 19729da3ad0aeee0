"""Maximal exact matches as both tiers and both devices give them, and which of them are wanted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint64

__all__ = [
    "KINDS",
    "MATCH",
    "MAXIMAL",
    "PAPER",
    "SUPER",
    "Criteria",
    "pack_place",
    "pack_span",
    "place_of",
    "sort_matches",
    "span_of",
]

MATCH = np.dtype([("place", "<u8"), ("span", "<u8")])
"""A match. `place`: its first base in the text, above the strand in the lowest bit; `span`: its bases in the upper 32
bits, and in the lower ones where it begins in the read as it is written, on strand 1 too. In output order when
ascending."""

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
    return int64(word >> uint64(1)), int64(word & uint64(1))


@inlined
def span_of(word):
    """(bases, first base in the read), int64."""
    return int64(word >> uint64(32)), int64(word & uint64(0xFFFF_FFFF))


@scalar
def _swap(hits, i, j):
    place, span = hits[i].place, hits[i].span
    hits[i].place, hits[i].span = hits[j].place, hits[j].span
    hits[j].place, hits[j].span = place, span


@scalar
def _below(hits, i, j):
    if hits[i].place != hits[j].place:
        return hits[i].place < hits[j].place
    return hits[i].span < hits[j].span


@scalar
def sort_matches(hits, first, last):
    """Matches [first, last) in output order: heap sort, in place, and in n log n whatever the order."""
    count = last - first
    for phase in range(2):
        top = count // int64(2) - int64(1) if phase == 0 else count - int64(1)
        while top >= int64(0):
            node, size = top, count
            if phase == 1:
                _swap(hits, first, first + top)
                node, size = int64(0), top
            while True:
                child = int64(2) * node + int64(1)
                if child >= size:
                    break
                if child + int64(1) < size and _below(hits, first + child, first + child + int64(1)):
                    child += int64(1)
                if not _below(hits, first + node, first + child):
                    break
                _swap(hits, first + node, first + child)
                node = child
            top -= int64(1)

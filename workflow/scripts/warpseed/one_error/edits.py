"""The edits of a placement, leftmost: one of the search itself, up to two of any placement that was found.

Of all the ways to make a placement's bases of a read with as few edits as its distance, the one that is told has the
fewest insertions and deletions; then the smallest offset of the first edit, then of the second; then, of a mismatch, an
insertion and a deletion, the kind that comes first here, of the first edit and then of the second. So it follows from
the read and the placement alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word
from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.one_error.agreement import agree_from, agree_until
from warpseed.one_error.reads import (
    DELETION,
    INSERTION,
    MATCH,
    MISMATCH,
    edit_word,
    extra_bases,
    kind_of,
    placement_of,
)
from warpseed.sequences.packed import BASES_A_WORD, all_known, oriented_marks, oriented_word

if TYPE_CHECKING:
    from warpseed.output.rows import Found
    from warpseed.sequences.packed import Packed

__all__ = ["NO_EDIT", "Edits", "edits_of", "one_edit", "two_edits"]

NO_EDIT = -1
"""What stands for an edit where one is not enough, or where there is none."""


@scalar
def _base(text, position):
    return int64(fetch_word(text, position) >> uint64(62))


@inlined
def one_edit(text, start, length, extra, until, since):
    """The leftmost edit that makes of a read the bases of a placement.

    Parameters
    ----------
    start : int64, the placement's first base in the text
    length : int64, bases of the read
    extra : int64, bases that the placement has more: -1, 0 or 1
    until : int64, `agree_until` with the read's first base on the placement's first
    since : int64, `agree_from` with the read's last base on the placement's last; not read where the whole read agrees

    Returns
    -------
    int64, an `edit_word` of strand 0, or NO_EDIT
    """
    if extra < int64(0):
        # One base is taken out: those before it agree from the left, those behind it from the right.
        offset = max(since - int64(1), int64(0))
        return int64(edit_word(int64(DELETION), offset, int64(0), int64(0))) if offset <= until else int64(NO_EDIT)
    if extra == int64(0) and until == length:
        return int64(edit_word(int64(MATCH), int64(0), int64(0), int64(0)))
    offset = since if extra > int64(0) else until
    kind = int64(INSERTION) if extra > int64(0) else int64(MISMATCH)
    if offset > until or since > offset + int64(kind == int64(MISMATCH)):
        return int64(NO_EDIT)
    return int64(edit_word(kind, offset, _base(text, start + offset), int64(0)))


@scalar
def _first_offset(text, start, read, extra, kind, agreed):
    """The smallest offset that the first of two edits can have if it is of some kind; beyond the read where it cannot.

    Parameters
    ----------
    agreed : (until, since), int64, as those of `one_edit`
    """
    until, since = agreed
    beyond = read[3] + int64(1)
    left = extra - extra_bases(kind)
    if left < int64(-1) or left > int64(1):
        return beyond
    # The base of the read from which on the bases behind the first edit are one edit away from what has to be there.
    rest = agree_from(text, start + extra_bases(kind), read, max(since - int64(left < int64(1)), int64(0)))
    if kind == int64(MISMATCH):
        return until if rest <= until + int64(1) else beyond
    offset = max(rest - int64(kind == int64(DELETION)), int64(0))
    return offset if offset <= until else beyond


@scalar
def _second(text, start, read, extra, first, since):
    """The kind and the smallest offset of the second edit, behind the first one, (kind, offset): (int64, int64)."""
    kind, offset = first
    begin = offset + int64(kind != int64(INSERTION))
    left = extra - extra_bases(kind)
    if left > int64(0):
        return int64(INSERTION), max(since, begin)
    if left < int64(0):
        return int64(DELETION), max(since - int64(1), begin)
    return int64(MISMATCH), agree_until(text, start + extra_bases(kind), read, begin)


@scalar
def _word(text, position, kind, offset):
    """An `edit_word` of strand 0, int64, with the base of the text at a position."""
    base = int64(0) if kind == int64(DELETION) else _base(text, position)
    return int64(edit_word(kind, offset, base, int64(0)))


@scalar
def two_edits(text, start, read, extra):
    """The edits of a placement whose distance is two.

    Parameters
    ----------
    text : uint64[], packed
    start : int64, the placement's first base in the text
    read : as in `warpseed.one_error.agreement`, in the orientation of the placement
    extra : int64, bases that the placement has more than the read: -2 to 2

    Returns
    -------
    (int64, int64) : each as `edit_word`, of strand 0
    """
    until = agree_until(text, start, read, int64(0))
    since = agree_from(text, start + extra, read, read[3])
    kind = int64(MATCH)
    offset = other = at = read[3] + int64(1)
    for one in range(int64(MISMATCH), int64(DELETION) + int64(1)):
        first = _first_offset(text, start, read, extra, int64(one), (until, since))
        if first > read[3] or first > offset or (extra == int64(0) and kind == int64(MISMATCH)):
            continue
        two, second = _second(text, start, read, extra, (int64(one), first), since)
        if first < offset or second < at:
            kind, offset, other, at = int64(one), first, two, second
    behind = start + extra_bases(kind) + at
    return _word(text, start + offset, kind, offset), _word(text, behind, other, at)


class Edits(NamedTuple):
    """The edits of h placements, those of each from left to right; MATCH, 0 and 0 where it has fewer than two."""

    kind: np.ndarray
    """int8[h, 2], MATCH, MISMATCH, INSERTION or DELETION"""
    offset: np.ndarray
    """int32[h, 2], bases of the read, in the orientation of the placement, before the edit"""
    base: np.ndarray
    """int8[h, 2], code of the reference's base; 0 for a deletion"""


@scalar
def _orient(reads, query, strand, words, marks):
    """A read in one orientation, in words of its own; returns it as `warpseed.one_error.agreement` takes it."""
    length = int64(reads.lengths[query])
    for w in range((length + int64(31)) >> int64(5)):
        words[w] = oriented_word(reads, query, strand, int64(w))
        if not all_known(reads):
            marks[w] = oriented_marks(reads, query, strand, int64(w))
    return words, marks, int64(0), length


@scalar
def _fill(text, reads, hits, counts, room, edits):
    """The edits of all placements; `room` are the words and marks of one read."""
    hit = int64(0)
    for number in range(counts.shape[0]):
        oriented = int64(-1)
        for i in range(hit, hit + counts[number]):
            start, strand, extra, distance, offset, base = placement_of(hits[i])
            edits.kind[i, 0] = edits.kind[i, 1] = MATCH
            edits.offset[i, 0], edits.offset[i, 1] = offset, 0
            edits.base[i, 0], edits.base[i, 1] = base, 0
            if distance < int64(2):
                edits.kind[i, 0] = kind_of(extra, distance)
                continue
            if oriented != strand:
                read = _orient(reads, int64(number), strand, room[0], room[1])
                oriented = strand
            both = two_edits(text, start, read, extra)
            for e in range(2):
                edits.kind[i, e] = both[e] & int64(3)
                edits.base[i, e] = (both[e] >> int64(2)) & int64(3)
                edits.offset[i, e] = both[e] >> int64(5)
        hit += counts[number]


def edits_of(text: np.ndarray, reads: Packed, found: Found) -> Edits:
    """The edits of placements, leftmost; on one thread, some 100 ns a placement with two.

    Parameters
    ----------
    text : uint64[], the packed text of the index (`SeedIndex.text`)
    reads : Packed, the reads that were searched
    found : Found, their placements
    """
    count, longest = len(found.hits), -(-int(reads.lengths.max(initial=1)) // BASES_A_WORD)
    room = np.zeros(longest, np.uint64), np.zeros(longest if len(reads.marks) else 0, np.uint64)
    edits = Edits(np.empty((count, 2), np.int8), np.empty((count, 2), np.int32), np.empty((count, 2), np.int8))
    _fill(text, reads, found.hits, found.counts, room, edits)
    return edits

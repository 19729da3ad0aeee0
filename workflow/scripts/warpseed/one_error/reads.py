"""Reads, edits and placements as words: what both tiers and both devices take and give.

A *placement* is a place of the reference within a few edits of a read: its strand, its first base and its end. An
*edit* is what has to be done to the read, in the orientation of the placement, to get the reference's bases, in the
words of paper 001. Its *offset* is the number of the read's bases before it.

* match: nothing; offset 0.
* mismatch: the read's base at the offset is replaced by another.
* insertion: a base is put in; the placement has a base more than the read (a deletion, D, in a CIGAR string).
* deletion: the read's base at the offset is taken out; the placement has one less (an insertion, I, in a CIGAR string).
* several: the placement is two edits away; a packed placement does not hold them (edits.py gives them).

In a run of equal bases, any of them may be taken out, and one may be put in anywhere, with the same placement. Its edit
is the *leftmost* of these, the one of the smallest offset. A placement has at least one base.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64
from warpseed.sequences.packed import Bounds, Packed, base_at, pack_bounded

if TYPE_CHECKING:
    from warpseed.sequences.queries import Queries

__all__ = [
    "BOUNDS",
    "DELETION",
    "INSERTION",
    "MATCH",
    "MAX_EDITS",
    "MAX_LENGTH",
    "MISMATCH",
    "ONE_EDIT",
    "SEVERAL",
    "Criteria",
    "edit_word",
    "extra_bases",
    "is_leftmost",
    "kind_of",
    "pack_placement",
    "pack_reads",
    "pack_two_edits",
    "placement_of",
]

MATCH, MISMATCH, INSERTION, DELETION, SEVERAL = 0, 1, 2, 3, 4
"""The types of an edit."""

MAX_EDITS = 2

MAX_LENGTH = (1 << 24) - 2
"""Bases of the longest read: a placement keeps an offset in 24 bits."""
BOUNDS = Bounds("read", MAX_LENGTH)
"""What a read may be."""


class Criteria(NamedTuple):
    """Which placements are searched for."""

    max_edits: int
    """0 to MAX_EDITS; the paper tier finds those of one edit"""
    strands: int
    """1 for those of reads as they are given, 2 for those of their reverse complements too"""


ONE_EDIT = Criteria(1, 2)
"""Placements with at most one edit, on both strands."""


def pack_reads(queries: Queries, first: int = 0) -> Packed:
    """Pack queries for searching; `first` is the number of the first one in its source, for the sentence.

    Raises
    ------
    InputError : a query is empty or longer than MAX_LENGTH
    """
    return pack_bounded(queries, BOUNDS, first)


@scalar
def edit_word(kind, offset, base, strand):
    """An edit of a read in one orientation as one word, uint32; `base` is 0 where none is put."""
    return uint32((offset << int64(5)) | (strand << int64(4)) | (base << int64(2)) | kind)


@scalar
def extra_bases(kind):
    """Bases that a placement has more than its read, int64: 1 for an insertion, -1 for a deletion."""
    return int64(kind == int64(INSERTION)) - int64(kind == int64(DELETION))


@scalar
def kind_of(extra, distance):
    """The type of a placement's edit, int64, by the bases that it has more than its read, and its distance."""
    if distance > int64(1):
        return int64(SEVERAL)
    if extra != int64(0):
        return int64(INSERTION) if extra > int64(0) else int64(DELETION)
    return int64(MISMATCH) if distance else int64(MATCH)


@scalar
def is_leftmost(reads, query, edit):
    """Whether an edit is its placement's: no equal one of a smaller offset leads to the same bases."""
    kind = int64(edit) & int64(3)
    base = (int64(edit) >> int64(2)) & int64(3)
    strand = (int64(edit) >> int64(4)) & int64(1)
    offset = int64(edit) >> int64(5)
    if kind < int64(INSERTION) or offset == int64(0):
        return True
    if kind == int64(DELETION):
        base = base_at(reads, query, strand, offset)
    return base_at(reads, query, strand, offset - int64(1)) != base


@inlined
def pack_placement(position, edit):
    """A placement with at most one edit as one word, uint64; ascending words of a read are in output order.

    From the top: text position (32 bits), strand, bases that the placement has more than the read, plus 2 (3 bits),
    distance (2), offset of its edit (24), base that is put (2).
    """
    kind = uint64(edit) & uint64(3)
    base = (uint64(edit) >> uint64(2)) & uint64(3)
    strand = (uint64(edit) >> uint64(4)) & uint64(1)
    offset = uint64(edit) >> uint64(5)
    word = (uint64(position) << uint64(32)) | (strand << uint64(31)) | (offset << uint64(2)) | base
    distance = uint64(0) if kind == uint64(MATCH) else uint64(1)
    return word | (uint64(extra_bases(int64(kind)) + int64(2)) << uint64(28)) | (distance << uint64(26))


@scalar
def pack_two_edits(position, strand, extra):
    """A placement with two edits as a word like those of `pack_placement`, without offset and base."""
    word = (uint64(position) << uint64(32)) | (uint64(strand) << uint64(31))
    return word | (uint64(extra + int64(2)) << uint64(28)) | (uint64(2) << uint64(26))


@scalar
def placement_of(word):
    """What `pack_placement` or `pack_two_edits` packed.

    Returns
    -------
    (position, strand, extra, distance, offset, base) : int64
    """
    extra = int64((word >> uint64(28)) & uint64(7)) - int64(2)
    distance = int64((word >> uint64(26)) & uint64(3))
    offset = int64((word >> uint64(2)) & uint64(0xFFFFFF))
    strand = int64((word >> uint64(31)) & uint64(1))
    return int64(word >> uint64(32)), strand, extra, distance, offset, int64(word & uint64(3))

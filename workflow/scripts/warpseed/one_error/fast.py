"""The fast tier: one half of a read is exact; it is looked up, and the other half compared with the text beside it.

A placement with at most one edit has the edit in one half of the read or between the halves, so that the other half is
there as it is. K of its bases are looked up in the table. A row of the bucket says where the half lies; the read's
other end then lies as far away as the read says, or a base nearer, or a base farther. In each of these three the number
of bases that agree from the left end on and from the right end on decides.

A placement that both halves lead to is reported by the left one alone. One half leads to a placement once, since the
bases that were looked up lie at one place of the read.

The functions here are the steps of one read that both targets share; the order of the work is cpu_fast.py's.
"""

from __future__ import annotations

from warpseed.compute.bits import prefix_mask
from warpseed.compute.compiled import inlined, int64, scalar
from warpseed.compute.intrinsics import popcount
from warpseed.one_error.agreement import agree_from, agree_until
from warpseed.one_error.edits import NO_EDIT, one_edit

__all__ = ["LEFT", "NO_EDIT", "known_piece", "left_edits", "left_half", "right_edits"]

LEFT = 0
"""The half of a read that holds its left end; the right one is 1."""


@scalar
def left_half(length):
    """Bases of the left half, int64; the right one has as many, or one more."""
    return length >> int64(1)


@scalar
def _unknown_bases(marks, first, begin, end):
    """Bases of [begin, end) that are none, int64; `first` is the word of base 0."""
    unknown = int64(0)
    for w in range(begin >> int64(5), (end + int64(31)) >> int64(5)):
        mask = prefix_mask(end - int64(32) * int64(w)) & ~prefix_mask(begin - int64(32) * int64(w))
        unknown += popcount(marks[first + int64(w)] & mask)
    return unknown


@scalar
def known_piece(marks, first, length, piece, max_edits):
    """Whether a piece of a read, (begin, end), has no unknown base, and the read no more than the edits. (Such a base
    is an edit.) `first` is the word of base 0."""
    if _unknown_bases(marks, first, piece[0], piece[1]) > int64(0):
        return False
    return _unknown_bases(marks, first, int64(0), length) <= int64(max_edits)


@inlined
def left_edits(text, place, read):
    """The edits of the placements that begin at `place`, if the left half of the read is there.

    Parameters
    ----------
    text : uint64[], packed
    place : int64, -1 or more
    read : as in `warpseed.one_error.agreement`

    Returns
    -------
    (int64, int64, int64) : an `edit_word` of strand 0, or NO_EDIT, for the placements that have a base less than the
        read, as many, and one more. Whether they lie in one segment has not been looked at.
    """
    length = read[3]
    until = agree_until(text, place, read, int64(0))
    if until < left_half(length):
        return int64(NO_EDIT), int64(NO_EDIT), int64(NO_EDIT)
    since = int64(0) if until == length else agree_from(text, place, read, length)
    shorter = one_edit(text, place, length, int64(-1), until, agree_from(text, place - int64(1), read, length))
    same = one_edit(text, place, length, int64(0), until, since)
    longer = one_edit(text, place, length, int64(1), until, agree_from(text, place + int64(1), read, length))
    return shorter, same, longer


@inlined
def _right_edit(text, place, read, extra, since):
    """One of `right_edits`: the read begins at `place - extra`."""
    start = place - extra
    if start < int64(0) or (extra == int64(0) and since == int64(0)):
        return int64(NO_EDIT)
    until = agree_until(text, start, read, int64(0))
    if until >= left_half(read[3]):
        return int64(NO_EDIT)
    return one_edit(text, start, read[3], extra, until, since)


@inlined
def right_edits(text, place, read):
    """As `left_edits`, of the placements that end where a read that begins at `place` does, if the right half of the
    read is there; those whose left half is there, too, are left out. They begin a base behind, at, and a base before
    `place`."""
    since = agree_from(text, place, read, read[3])
    if since > left_half(read[3]):
        return int64(NO_EDIT), int64(NO_EDIT), int64(NO_EDIT)
    shorter = _right_edit(text, place, read, int64(-1), since)
    same = _right_edit(text, place, read, int64(0), since)
    return shorter, same, _right_edit(text, place, read, int64(1), since)

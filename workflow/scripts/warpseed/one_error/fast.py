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

from warpseed.compute.bits import fetch_word, mismatch_bits, prefix_mask
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.intrinsics import leading_zeros, popcount, trailing_zeros
from warpseed.one_error.reads import DELETION, INSERTION, MATCH, MISMATCH, edit_word

__all__ = ["LEFT", "NO_EDIT", "RIGHT", "left_edits", "left_half", "may_be_exact", "right_edits"]

LEFT, RIGHT = 0, 1
"""The halves of a read, by the end of it that they hold."""

NO_EDIT = -1
"""What stands for an edit where one is not enough."""


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
def may_be_exact(marks, first, length, half, max_edits):
    """Whether a half has no unknown base, and the other one no more than the edits. (Such a base is an edit.)"""
    middle = left_half(length)
    left = _unknown_bases(marks, first, int64(0), middle)
    right = _unknown_bases(marks, first, middle, length)
    return (left if half == int64(LEFT) else right) == int64(0) and left + right <= int64(max_edits)


@scalar
def _text_word(text, position):
    """The 32 bases from `position` on, which may lie up to 31 before the text: anything may stand there."""
    if position >= int64(0):
        return fetch_word(text, position)
    return text[0] >> (uint64(-position) << uint64(1))


@scalar
def _differing(text, place, read, word):
    """A bit for each base of word `word` of a read in which it differs from the text, the read beginning at `place`."""
    words, marks, first, length = read
    differ = mismatch_bits(_text_word(text, place + int64(32) * word), words[first + word])
    if marks.shape[0]:
        differ |= marks[first + word]
    return differ & prefix_mask(length - int64(32) * word)


@scalar
def _agree_until(text, place, read):
    """The first base in which a read that begins at `place` differs from the text, int64; its length where none does.
    Parameters as `left_edits`."""
    length = read[3]
    word = int64(0)
    while int64(32) * word < length:
        differ = _differing(text, place, read, word)
        if differ != uint64(0):
            return int64(32) * word + (leading_zeros(differ) >> int64(1))
        word += int64(1)
    return length


@scalar
def _agree_from(text, place, read):
    """The first base from which on a read that begins at `place` is as the text, int64; its length where its last base
    differs. Parameters as `left_edits`."""
    word = ((read[3] + int64(31)) >> int64(5)) - int64(1)
    while word >= int64(0):
        differ = _differing(text, place, read, word)
        if differ != uint64(0):
            return int64(32) * (word + int64(1)) - (trailing_zeros(differ) >> int64(1))
        word -= int64(1)
    return int64(0)


@scalar
def _edit_of(text, start, length, extra, until, since):
    """The leftmost edit that makes of a read the bases of a placement.

    Parameters
    ----------
    start : int64, the placement's first base in the text
    length : int64, bases of the read
    extra : int64, bases that the placement has more: -1, 0 or 1
    until : int64, `_agree_until` with the read's first base on the placement's first
    since : int64, `_agree_from` with the read's last base on the placement's last; not read where the whole read agrees

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
    return int64(edit_word(kind, offset, int64(fetch_word(text, start + offset) >> uint64(62)), int64(0)))


@scalar
def left_edits(text, place, read):
    """The edits of the placements that begin at `place`, if the left half of the read is there.

    Parameters
    ----------
    text : uint64[], packed, with as many words behind the place as the read has, and one more
    place : int64, -1 or more
    read : (words, marks, first, length): a packed sequence as in `Packed`, from word `first` on

    Returns
    -------
    (int64, int64, int64) : an `edit_word` of strand 0, or NO_EDIT, for the placements that have a base less than the
        read, as many, and one more. Whether they lie in one segment has not been looked at.
    """
    length = read[3]
    until = _agree_until(text, place, read)
    if until < left_half(length):
        return int64(NO_EDIT), int64(NO_EDIT), int64(NO_EDIT)
    since = int64(0) if until == length else _agree_from(text, place, read)
    shorter = _edit_of(text, place, length, int64(-1), until, _agree_from(text, place - int64(1), read))
    same = _edit_of(text, place, length, int64(0), until, since)
    return shorter, same, _edit_of(text, place, length, int64(1), until, _agree_from(text, place + int64(1), read))


@scalar
def _right_edit(text, place, read, extra, since):
    """One of `right_edits`: the read begins at `place - extra`."""
    start = place - extra
    if start < int64(0) or (extra == int64(0) and since == int64(0)):
        return int64(NO_EDIT)
    until = _agree_until(text, start, read)
    if until >= left_half(read[3]):
        return int64(NO_EDIT)
    return _edit_of(text, start, read[3], extra, until, since)


@scalar
def right_edits(text, place, read):
    """As `left_edits`, of the placements that end where a read that begins at `place` does, if the right half of the
    read is there; those whose left half is there, too, are left out. They begin a base behind, at, and a base before
    `place`."""
    since = _agree_from(text, place, read)
    if since > left_half(read[3]):
        return int64(NO_EDIT), int64(NO_EDIT), int64(NO_EDIT)
    shorter = _right_edit(text, place, read, int64(-1), since)
    same = _right_edit(text, place, read, int64(0), since)
    return shorter, same, _right_edit(text, place, read, int64(1), since)

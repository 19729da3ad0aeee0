"""How far a read agrees with the text beside it: 32 bases at a time, from the left end on and from the right one.

A read *at a place* has its first base on that position of the text. It is (words, marks, first, length): a packed
sequence as in `Packed`, from word `first` on. The text has a word more behind the read than the read has, and a place
may be up to 31 positions before the text: anything may stand there.
"""

from __future__ import annotations

from warpseed.compute.bits import fetch_word, mismatch_bits, prefix_mask
from warpseed.compute.compiled import inlined, int64, uint64
from warpseed.compute.intrinsics import leading_zeros, trailing_zeros

__all__ = ["agree_from", "agree_until"]


@inlined
def _text_word(text, position):
    """The 32 bases from `position` on."""
    if position >= int64(0):
        return fetch_word(text, position)
    return text[0] >> (uint64(-position) << uint64(1))


@inlined
def _differing(text, place, read, word):
    """A bit for each base of word `word` of a read in which it differs from the text; behind the read, any bits."""
    words, marks, first, _ = read
    differ = mismatch_bits(_text_word(text, place + int64(32) * word), words[first + word])
    if marks.shape[0]:
        differ |= marks[first + word]
    return differ


@inlined
def agree_until(text, place, read, begin):
    """The first base, from base `begin` on, in which a read at a place differs from the text; its length where none
    does."""
    length = read[3]
    word = begin >> int64(5)
    if begin >= length:
        return length
    differ = _differing(text, place, read, word) & ~prefix_mask(begin - int64(32) * word)
    while differ == uint64(0):
        word += int64(1)
        if int64(32) * word >= length:
            return length
        differ = _differing(text, place, read, word)
    return min(int64(32) * word + (leading_zeros(differ) >> int64(1)), length)


@inlined
def agree_from(text, place, read, end):
    """The first base from which on a read at a place is as the text, up to base `end`; `end` where the last base before
    it differs, or there is none."""
    word = ((end + int64(31)) >> int64(5)) - int64(1)
    if word < int64(0):
        return int64(0)
    differ = _differing(text, place, read, word) & prefix_mask(end - int64(32) * word)
    while differ == uint64(0):
        if word == int64(0):
            return int64(0)
        word -= int64(1)
        differ = _differing(text, place, read, word)
    return int64(32) * (word + int64(1)) - (trailing_zeros(differ) >> int64(1))

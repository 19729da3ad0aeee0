"""The fast tier of maximal exact matches, per seed, for both targets.

A *seed* is K bases of the oriented read, taken every `step` bases. A match of at least `min_length` bases holds the K
bases of every one of ``min_length - K + 1`` neighbouring places, so that with a step of no more it holds a seed. It is
found from the first one that it holds, before which it has fewer bases than a step: so each match is found once, from
one look-up, and what is compared before a seed is one word.
"""

from __future__ import annotations

from typing import NamedTuple

from warpseed.compute.bits import fetch_word, mismatch_bits
from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import leading_zeros, trailing_zeros
from warpseed.fm_index.text import segment_of
from warpseed.mems.matches import MAXIMAL, SUPER, Criteria

__all__ = [
    "LONGEST_STEP",
    "LONGEST_WORDS",
    "LONGEST_WORK",
    "NO_MATCH",
    "SEED_ROWS",
    "SEED_WORK",
    "How",
    "agree_right",
    "by_longest",
    "finds_longest",
    "how_for",
    "is_first",
    "key_of",
    "match_of",
]

LONGEST_STEP = 32
"""A step is no longer than what one comparison of words tells."""
NO_MATCH = -1
SEED_WORK = 8
"""Look-ups, rows and compared words of seeds, for each base of a read in both orientations, that take a core as long as
the longest match from every base on."""
LONGEST_WORK = 64
"""What those longest matches take at most, but in long runs of a short unit: bases, and words that are compared."""
SEED_ROWS, LONGEST_WORDS = 3, 4
"""Rows of seeds, for each base of a read in both orientations, that take a GPU as long, if the longest match from a
base has no more words than these: it is compared from each base on."""
_SHORT = 2
"""Bases by which a match is longer than strings of which the text has each once, about, from which on seeds are
better."""


class How(NamedTuple):
    """Which matches are searched for, and by which seeds."""

    min_length: int
    """bases of the shortest match that is wanted"""
    kind: int
    strands: int
    max_occurrences: int
    """as those of `warpseed.mems.matches.Criteria`"""
    seed_length: int
    """K, bases of a seed: those of the lookup table, or fewer where shorter matches are wanted"""
    step: int
    """bases from one seed to the next"""
    table_length: int
    """bases of the strings in the lookup table"""
    longest: bool
    """whether matches are found by the longest one from every base on, instead"""


def finds_longest(criteria: Criteria, rows: int) -> bool:
    """Whether matches are found by the longest one from every base on: such as are so short that seeds have many rows,
    of which hardly any has one that is wanted."""
    return criteria.kind != MAXIMAL and 2 * max(criteria.min_length - _SHORT, 0) < rows.bit_length()


def how_for(criteria: Criteria, table_length: int, rows: int) -> How:
    """The longest seeds that the table has, as far apart as no match is missed; `rows`: positions of the text."""
    seed_length = min(criteria.min_length, table_length)
    step = min(criteria.min_length - seed_length + 1, LONGEST_STEP)
    return How(*criteria, seed_length, step, table_length, finds_longest(criteria, rows))


@inlined
def by_longest(how):
    """The same matches, found by the longest one from every base on."""
    seeds = how.seed_length, how.step, how.table_length
    return How(how.min_length, how.kind, how.strands, how.max_occurrences, *seeds, True)


@inlined
def _word_before(text, place):
    """The 32 bases before a place of the text, zeros where there are fewer."""
    if place >= int64(32):
        return fetch_word(text, place - int64(32))
    return uint64(0) if place <= int64(0) else text[0] >> (uint64(int64(32) - place) << uint64(1))


@inlined
def _agree_left(text, words, marks, at, place, step):
    """Bases before `at` that are like those of the text before `place`: as many as `step` tells, at most."""
    differ = mismatch_bits(fetch_word(words, at - int64(32)), _word_before(text, place))
    if marks.shape[0]:
        differ |= fetch_word(marks, at - int64(32))
    return step if differ == uint64(0) else min(trailing_zeros(differ) >> int64(1), step)


@scalar
def agree_right(text, words, marks, at, place, most):
    """Bases from `at` on that are like those of the text from `place` on, `most` at most."""
    agreed = int64(0)
    while agreed < most:
        differ = mismatch_bits(fetch_word(words, at + agreed), fetch_word(text, place + agreed))
        if marks.shape[0]:
            differ |= fetch_word(marks, at + agreed)
        if differ != uint64(0):
            return min(agreed + (leading_zeros(differ) >> int64(1)), most)
        agreed += int64(32)
    return most


@inlined
def is_first(where, read, seed, step, place):
    """Whether no seed a step before holds what a seed's match at a text position holds; all as `match_of` takes them.
    The read has a step's bases before the seed, and all of them are known."""
    text, segments, _ = where
    words, marks, origin, _ = read
    if _agree_left(text, words, marks, origin + seed, place, step) < step:
        return True
    return place - int64(segments.text_start[segment_of(segments, place)]) < step


@inlined
def match_of(where, how, read, seed, step, place):
    """The match of a seed at a text position, if it is long enough and this is the first seed that it holds.

    Parameters
    ----------
    where : (text, segments, positions of the text, int64)
    read : (words, marks, origin, length); words uint64[], 32 bases each, of which base 0 of the oriented read is base
        `origin`, 32 or more; marks beside them, or uint64[0]; a word more behind the last
    seed : int64, where the seed begins in the oriented read; its bases are those of the text
    step : int64, bases of the match before the seed with which another seed is the first
    place : int64, a row's text position

    Returns
    -------
    (left, length) : int64, bases of the match before the seed, and all of them; NO_MATCH for the length where there is
        none
    """
    text, segments, rows = where
    words, marks, origin, length = read
    bases, least = int64(how.seed_length), int64(how.min_length)
    left = min(_agree_left(text, words, marks, origin + seed, place, step), seed)
    # What is before the segment, and behind it, is no base: only for what would count is it looked up where that is.
    at = origin + seed + bases
    first = min(agree_right(text, words, marks, at, place + bases, int64(32)), length - seed - bases)
    if left + bases + first < least and first < int64(32):
        return left, int64(NO_MATCH)
    segment = segment_of(segments, place)
    # (A damaged index must not lead outside the text or the read.)
    left = max(min(left, place - int64(segments.text_start[segment])), int64(0))
    if left >= step:
        return left, int64(NO_MATCH)
    room = min(int64(segments.text_start[segment + int64(1)]) - int64(1), rows) - place
    most = min(length - seed, room) - bases
    right = min(first, most)
    if first == int64(32) and most > int64(32):
        behind = place + bases + int64(32)
        right = int64(32) + agree_right(text, words, marks, at + int64(32), behind, most - int64(32))
    total = left + bases + right
    return left, total if total >= least else int64(NO_MATCH)


@inlined
def key_of(how, strand, first, bases, length):
    """Which of the ends a match is held to: (row, place), int64; `first`: its place in the oriented read."""
    if how.kind == SUPER:
        return int64(0), length - first - bases if strand else first
    return strand, first

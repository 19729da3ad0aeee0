"""Sorting the suffixes of a text that repeats: those of its different phrases, and what follows each of these.

Two suffixes begin with what is left of a phrase (`phrases.py`). If that differs its order is theirs; if not, theirs is
that of what follows, and that are phrases, whose order is found first: by ranks, of phrases instead of bases. So each
string that ends a phrase is looked at once, and its rows are those of the phrase, as they are followed, or of a few
phrases that end alike, merged.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64
from warpseed.compute.groups import TIED, set_states, settle_ties, untied
from warpseed.compute.intrinsics import prefetch
from warpseed.compute.ranges import on_threads, spans_of, steps
from warpseed.compute.sorting import STACK, count_smaller, sort_numbers
from warpseed.fm_index.parse import NO_PHRASE, Parse
from warpseed.fm_index.phrase_dictionary import Dictionary
from warpseed.fm_index.suffix_chains import TiedOrder
from warpseed.fm_index.suffix_ranks import sort_round
from warpseed.fm_index.table import Marks, first_mark, mark_rows, next_mark
from warpseed.fm_index.text import mark_positions

__all__ = ["PhraseOrder", "order_phrases", "write_suffixes"]

_START, _COMMON, _FIRST, _COUNT = range(4)
"""Columns of PhraseOrder.columns."""
_FEW = 16
"""Rows of strings that end alike that are sorted by counting, of each, how many come before it."""
_AHEAD = 8
"""Positions between the steps in which what is read of them is asked for."""
_NAMES = 32
"""Phrases of positions that are known ahead: a power of two above twice _AHEAD."""


class PhraseOrder(NamedTuple):
    """Phrases and separators in the order of the text that begins with them; a *rank* is a place in it."""

    dictionary: Dictionary
    positions: np.ndarray
    """uint32[m], where they begin in the text"""
    following: np.ndarray
    """uint64[m], the rank of what follows each in the text, above the position where that begins; of the last 0"""
    columns: np.ndarray
    """uint32[d + 1, 4], of each different phrase: the _START of its segment in the dictionary, how many last bases it
    has in _COMMON with the one before (`Dictionary.common`), its _FIRST rank, and its _COUNT in the text"""
    holders: np.ndarray
    """uint32[...], the phrase that each 64th position of the dictionary lies in"""


@inlined
def _phrase_holding(columns, holders, position):
    """The number of the phrase that a position of the dictionary lies in, uint64."""
    name = uint64(holders[uint64(position) >> uint64(6)])
    while int64(columns[name + uint64(1), uint64(_START)]) <= position:
        name += uint64(1)
    return name


@scalar
def _phrases_among(endings, columns, holders, starts, span, names):
    """Note the phrases that begin at [first, last) of some positions, in their order; returns how many.

    Parameters
    ----------
    starts : where phrases begin, as `mark_positions` has them
    """
    first, last = span
    count = int64(0)
    for row in range(first, last):
        position = uint64(endings[uint64(row)])
        if (starts[position >> uint64(6)] >> (position & uint64(63))) & uint64(1) != uint64(0):
            names[uint64(count)] = uint32(_phrase_holding(columns, holders, int64(position)))
            count += int64(1)
    return count


def _in_order(endings: np.ndarray, columns: np.ndarray, holders: np.ndarray, threads: int) -> np.ndarray:
    """The phrases that begin at some positions, in their order, uint32[d]."""
    spans, starts = spans_of(len(endings), threads), mark_positions(columns[:-1, _START], int(columns[-1, _START]))

    def find(number: int) -> np.ndarray:
        first, last = spans[number]
        names = np.empty(last - first, np.uint32)
        return names[: int(_phrases_among(endings, columns, holders, starts, (first, last), names))].copy()

    return np.concatenate(on_threads(threads, find, len(spans)))


@scalar
def _deal_out(names, span, ahead, rows):
    """Put phrases into their rows; `ahead` is the next row of each different one, and of separators at last."""
    first, last = span
    separators = uint64(ahead.shape[0]) - uint64(1)
    for number in range(first, last):
        name = names[uint64(number)]
        place = separators if name == NO_PHRASE else uint64(name)
        rows[uint64(ahead[place])] = uint32(number)
        ahead[place] += uint32(1)


@scalar
def _tie(columns, span, tied):
    """Tie the rows of each of the different phrases [first, last)."""
    first, last = span
    for name in range(first, last):
        begin = int64(columns[uint64(name), uint64(_FIRST)])
        set_states(tied, begin + int64(1), begin + int64(columns[uint64(name), uint64(_COUNT)]), TIED)


@scalar
def _write_ranks(rows, span, ranks):
    """The rank of what stands in the rows [first, last)."""
    first, last = span
    for row in range(first, last):
        ranks[uint64(rows[uint64(row)])] = uint32(row)


def _sort_parse(parse: Parse, columns: np.ndarray, threads: int) -> TiedOrder:
    """Phrases and separators of a text, by their number there, in order, with their ranks."""
    count, different = len(parse.places), len(parse.counts)
    order = TiedOrder(np.empty(count, np.uint32), untied(count), np.empty(count, np.uint32))
    # (Separators come before all phrases, each different, in the order of the text.)
    ahead = np.append(columns[:-1, _FIRST], np.uint32(0))
    for span in steps(0, count):
        _deal_out(parse.names, span, ahead, order.rows)
    spans, parts = spans_of(different, threads), spans_of(count, threads)
    on_threads(threads, lambda number: _tie(columns, spans[number], order.tied), len(spans))
    settle_ties(order.rows, order.tied, order.ranks, 1, partial(sort_round, order, threads), threads)
    # (That leaves ranks as they were before its last round.)
    on_threads(threads, lambda number: _write_ranks(order.rows, parts[number], order.ranks), len(parts))
    return order


@scalar
def _write_neighbours(places, order, span, positions, following):
    """Where what stands in the rows [first, last) begins in the text, and `PhraseOrder.following`."""
    first, last = span
    for row in range(first, last):
        number = uint64(order.rows[uint64(row)])
        positions[uint64(row)] = places[number]
        following[uint64(row)] = uint64(0)
        number += uint64(1)
        if number < uint64(order.ranks.shape[0]):
            following[uint64(row)] = (uint64(order.ranks[number]) << uint64(32)) | uint64(places[number])


def order_phrases(parse: Parse, endings: np.ndarray, threads: int) -> PhraseOrder:
    """Sort the phrases of a text by the text that begins with them.

    Parameters
    ----------
    endings : uint32[...], positions of the dictionary in heads of phrases, in the order of its suffixes
    """
    count, dictionary = len(parse.places), parse.dictionary
    starts = dictionary.text.segments.text_start
    columns = np.zeros((len(starts), 4), np.uint32)
    columns[:, _START], columns[:, _COMMON] = starts, dictionary.common
    every = np.arange(0, int(starts[-1]), 64, dtype=np.uint32)
    holders = (np.searchsorted(starts, every, side="right") - 1).astype(np.uint32)
    names = _in_order(endings, columns, holders, threads)
    separators = count - int(parse.counts.sum(dtype=np.int64))
    columns[names, _FIRST] = separators + np.cumsum(parse.counts[names], dtype=np.uint32) - parse.counts[names]
    columns[:-1, _COUNT] = parse.counts
    order = _sort_parse(parse, columns, threads)
    positions, following, spans = np.empty(count, np.uint32), np.empty(count, np.uint64), spans_of(count, threads)

    def write(number: int) -> None:
        _write_neighbours(parse.places, order, spans[number], positions, following)

    on_threads(threads, write, len(spans))
    return PhraseOrder(dictionary, positions, following, columns, holders)


@inlined
def _left_of(order, name, position):
    """How many bases of a phrase there are from a position of the dictionary on."""
    return int64(order.columns[name + uint64(1), uint64(_START)]) - int64(1) - position


@inlined
def _has_company(order, name, left):
    """Whether the phrase behind one ends with its last `left` bases, too."""
    return int64(order.columns[name + uint64(1), uint64(_COMMON)]) >= left


@inlined
def _count_alike(order, name, left):
    """How often a phrase is in the text, and those behind it that end with its last `left` bases, too."""
    count = int64(order.columns[name, uint64(_COUNT)])
    while _has_company(order, name, left):
        name += uint64(1)
        count += int64(order.columns[name, uint64(_COUNT)])
    return count


@inlined
def _collect(order, name, left, shift, into, at):
    """Write from `at` on what follows these phrases, shifted to the right; returns the place behind the last."""
    while True:
        first = uint64(order.columns[name, uint64(_FIRST)])
        for i in range(int64(order.columns[name, uint64(_COUNT)])):
            into[uint64(at)] = order.following[first + uint64(i)] >> uint64(shift)
            at += int64(1)
        if not _has_company(order, name, left):
            return at
        name += uint64(1)


@inlined
def _write_alike(order, name, left, row, rows, stack):
    """Write from a row on what a phrase and those behind it end with, the last `left` bases, which they have in common;
    returns the row behind the last."""
    distance = uint32(left - int64(order.dictionary.overlaps[name]))
    count = _count_alike(order, name, left)
    if count <= int64(_FEW):
        _collect(order, name, left, uint64(0), stack, int64(0))
        for i in range(count):
            found = uint64(stack[uint64(i)])
            rows[uint64(row + count_smaller(stack, int64(0), count, found))] = uint32(found) - distance
        return row + count
    end = _collect(order, name, left, uint64(32), rows, row)
    sort_numbers(rows, row, end, stack)
    for i in range(row, end):
        rows[uint64(i)] = order.positions[uint64(rows[uint64(i)])] - distance
    return end


@inlined
def _write_one(order, name, offset, row, rows):
    """Write from a row on what begins at an offset of a phrase; returns the row behind the last."""
    first, count = uint64(order.columns[name, uint64(_FIRST)]), int64(order.columns[name, uint64(_COUNT)])
    for i in range(count):
        rows[uint64(row + i)] = order.positions[first + uint64(i)] + uint32(offset)
    return row + count


@inlined
def _look_ahead(order, endings, i, span, names):
    """Ask for what will be read of positions behind the i-th, and find the phrase of one of them."""
    first, last = span
    far, near, next_ = i + int64(3 * _AHEAD), i + int64(2 * _AHEAD), i + int64(_AHEAD)
    if far < last:
        prefetch(order.holders, int64(endings[uint64(far)]) >> int64(6))
    if first <= near and near < last:
        prefetch(order.columns, int64(order.holders[uint64(endings[uint64(near)]) >> uint64(6)]) * int64(4))
    if first <= next_ and next_ < last:
        position = int64(endings[uint64(next_)])
        name = _phrase_holding(order.columns, order.holders, position)
        names[uint64(next_) & uint64(_NAMES - 1)] = name
        rank = int64(order.columns[name, uint64(_FIRST)])
        if _has_company(order, name, _left_of(order, name, position)):
            prefetch(order.following, rank)
        else:
            prefetch(order.positions, rank)


@inlined
def _write_ending(order, name, position, row, rows, stack):
    """Write from a row on what begins as the dictionary does at a position, which lies in a phrase, to its end; returns
    the row behind the last."""
    left = _left_of(order, name, position)
    if _has_company(order, name, left):
        return _write_alike(order, name, left, row, rows, stack)
    return _write_one(order, name, position - int64(order.columns[name, uint64(_START)]), row, rows)


@scalar
def _write_buckets(order, endings, span, of_endings, of_rows, rows, names, stack):
    """Write the rows of the buckets [first, last), and their marks, as `write_suffixes`.

    Parameters
    ----------
    of_endings, of_rows : (borders, marks)
    names, stack : uint64[_NAMES] and int64[STACK], to work with

    Returns
    -------
    bool, whether these are the rows of the buckets
    """
    (bucket, last_bucket), (borders, marks), (row_borders, row_marks) = span, of_endings, of_rows
    first, last = borders[uint64(bucket)], borders[uint64(last_bucket)]
    row = row_borders[uint64(bucket)]
    are_marked, word, ones = marks.words.shape[0] > 0, int64(0), uint64(0)
    fits = True
    bucket -= int64(1)
    for i in range(first - int64(3 * _AHEAD), last):
        _look_ahead(order, endings, i, (first, last), names)
        if i < first:
            continue
        while i >= borders[uint64(bucket) + uint64(1)]:
            bucket += int64(1)
            fits &= row == row_borders[uint64(bucket)]
            if are_marked:
                word, ones = first_mark(marks, bucket)
        end = _write_ending(order, names[uint64(i) & uint64(_NAMES - 1)], int64(endings[uint64(i)]), row, rows, stack)
        if are_marked:
            begin = row_borders[uint64(bucket)]
            word, ones, code = next_mark(marks, bucket, word, ones, i - borders[uint64(bucket)])
            mark_rows(row_marks, row_marks.begins[uint64(bucket)], code, row - begin, end - begin)
        row = end
    return fits and row == row_borders[uint64(last_bucket)]


def write_suffixes(
    order: PhraseOrder,
    endings: np.ndarray,
    of_endings: tuple[np.ndarray, Marks],
    of_rows: tuple[np.ndarray, Marks],
    rows: np.ndarray,
    threads: int,
) -> None:
    """Write the rows of all suffixes but separators.

    Parameters
    ----------
    endings : as `order_phrases` takes them
    of_endings, of_rows : (borders, marks): where buckets begin, int64[buckets + 1], and what is marked of them for the
        table, filled for rows; without words where none is made
    rows : uint32[n], filled
    """
    # Buckets in ranges of about as many rows.
    shares = [last for _, last in spans_of(len(rows), 4 * threads)]
    cuts = np.unique([0, *np.searchsorted(of_rows[0], shares)])

    def write(number: int) -> bool:
        span = int(cuts[number]), int(cuts[number + 1])
        names, stack = np.empty(_NAMES, np.uint64), np.empty(STACK, np.int64)
        return bool(_write_buckets(order, endings, span, of_endings, of_rows, rows, names, stack))

    if not all(on_threads(threads, write, len(cuts) - 1)):
        raise AssertionError("phrases tell of other rows than buckets have")

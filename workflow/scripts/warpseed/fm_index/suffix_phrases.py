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

from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64
from warpseed.compute.groups import TIED, set_states, settle_ties, untied
from warpseed.compute.intrinsics import popcount, prefetch
from warpseed.compute.ranges import on_threads, spans_of, steps
from warpseed.compute.sorting import STACK, sort_numbers
from warpseed.fm_index.layout import Segments
from warpseed.fm_index.parse import NO_PHRASE, Parse
from warpseed.fm_index.phrase_dictionary import Dictionary
from warpseed.fm_index.suffix_chains import TiedOrder
from warpseed.fm_index.suffix_ranks import sort_round
from warpseed.fm_index.table import Marks, mark_row
from warpseed.fm_index.text import mark_positions

__all__ = ["PhraseOrder", "order_phrases", "write_suffixes"]

_START, _COMMON, _FIRST, _COUNT = range(4)
"""Columns of PhraseOrder.columns."""
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
    """uint32[m], the rank of what follows each in the text, of the last 0"""
    columns: np.ndarray
    """uint32[d + 1, 4], of each different phrase: the _START of its segment in the dictionary, how many last bases it
    has in _COMMON with the one before (`Dictionary.common`), its _FIRST rank, and its _COUNT in the text"""
    start_bits: np.ndarray
    """uint64[..., 2]: marks of 64 positions of the dictionary (see `mark_positions`), where phrases begin, and how many
    begin before these"""


def _start_bits(segments: Segments) -> np.ndarray:
    """As `PhraseOrder.start_bits`."""
    marks = mark_positions(segments.text_start[:-1], int(segments.text_start[-1]))
    counts = np.bitwise_count(marks)
    return np.stack([marks, np.cumsum(counts, dtype=np.uint64) - counts], axis=1)


@inlined
def _phrase_holding(start_bits, position):
    """The number of the phrase that a position of the dictionary lies in, uint64."""
    word, bit = uint64(position) >> uint64(6), uint64(position) & uint64(63)
    here = start_bits[word, uint64(0)] & (~uint64(0) >> (uint64(63) - bit))
    return start_bits[word, uint64(1)] + uint64(popcount(here)) - uint64(1)


@scalar
def _phrases_among(endings, start_bits, span, names):
    """Note the phrases that begin at [first, last) of some positions, in their order; returns how many."""
    first, last = span
    count = int64(0)
    for row in range(first, last):
        position = uint64(endings[uint64(row)])
        if (start_bits[position >> uint64(6), uint64(0)] >> (position & uint64(63))) & uint64(1) != uint64(0):
            names[uint64(count)] = uint32(_phrase_holding(start_bits, position))
            count += int64(1)
    return count


def _in_order(endings: np.ndarray, start_bits: np.ndarray, threads: int) -> np.ndarray:
    """The phrases that begin at some positions, in their order, uint32[d]."""
    spans = spans_of(len(endings), threads)

    def find(number: int) -> np.ndarray:
        first, last = spans[number]
        names = np.empty(last - first, np.uint32)
        return names[: int(_phrases_among(endings, start_bits, (first, last), names))].copy()

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
    """Where what stands in the rows [first, last) begins in the text, and the ranks of what follows."""
    first, last = span
    for row in range(first, last):
        number = uint64(order.rows[uint64(row)])
        positions[uint64(row)] = places[number]
        following[uint64(row)] = uint32(0)
        if number + uint64(1) < uint64(order.ranks.shape[0]):
            following[uint64(row)] = order.ranks[number + uint64(1)]


def order_phrases(parse: Parse, endings: np.ndarray, threads: int) -> PhraseOrder:
    """Sort the phrases of a text by the text that begins with them.

    Parameters
    ----------
    endings : uint32[...], positions of the dictionary in heads of phrases, in the order of its suffixes
    """
    count, dictionary = len(parse.places), parse.dictionary
    start_bits = _start_bits(dictionary.text.segments)
    names = _in_order(endings, start_bits, threads)
    separators = count - int(parse.counts.sum(dtype=np.int64))
    columns = np.zeros((len(names) + 1, 4), np.uint32)
    columns[:, _START], columns[:, _COMMON] = dictionary.text.segments.text_start, dictionary.common
    columns[names, _FIRST] = separators + np.cumsum(parse.counts[names], dtype=np.uint32) - parse.counts[names]
    columns[:-1, _COUNT] = parse.counts
    order = _sort_parse(parse, columns, threads)
    (positions, following), spans = np.empty((2, count), np.uint32), spans_of(count, threads)

    def write(number: int) -> None:
        _write_neighbours(parse.places, order, spans[number], positions, following)

    on_threads(threads, write, len(spans))
    return PhraseOrder(dictionary, positions, following, columns, start_bits)


@inlined
def _left_of(order, name, position):
    """How many bases of a phrase there are from a position of the dictionary on."""
    return int64(order.columns[name + uint64(1), uint64(_START)]) - int64(1) - position


@inlined
def _has_company(order, name, left):
    """Whether the phrase behind one ends with its last `left` bases, too."""
    return int64(order.columns[name + uint64(1), uint64(_COMMON)]) >= left


@inlined
def _write_alike(order, name, left, row, rows, stack):
    """Write from a row on what a phrase and those behind it end with, the last `left` bases, which they have in common;
    returns the row behind the last."""
    distance = uint32(left - int64(order.dictionary.overlaps[name]))
    end = row
    while True:
        first = uint64(order.columns[name, uint64(_FIRST)])
        for i in range(int64(order.columns[name, uint64(_COUNT)])):
            rows[uint64(end)] = order.following[first + uint64(i)]
            end += int64(1)
        if not _has_company(order, name, left):
            break
        name += uint64(1)
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
        prefetch(order.start_bits, (int64(endings[uint64(far)]) >> int64(6)) << int64(1))
    if first <= near and near < last:
        name = _phrase_holding(order.start_bits, int64(endings[uint64(near)]))
        names[uint64(near) & uint64(_NAMES - 1)] = name
        prefetch(order.columns, int64(name) * int64(4))
    if first <= next_ and next_ < last:
        name = names[uint64(next_) & uint64(_NAMES - 1)]
        rank = int64(order.columns[name, uint64(_FIRST)])
        if _has_company(order, name, _left_of(order, name, int64(endings[uint64(next_)]))):
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


@inlined
def _mark_rows(order, name, position, prefix, rows, marks, begin_of_marks):
    """Mark rows of a bucket, [first, last) of it, all with the string that the dictionary has at a position."""
    first, last = rows
    word = fetch_word(order.dictionary.text.words, position) & prefix_mask(_left_of(order, name, position))
    from_code = uint64(63) - uint64(2) * uint64(marks.bases)
    code = ((word << (uint64(2) * uint64(prefix))) >> uint64(1)) >> from_code
    for row in range(first, last):
        mark_row(marks, begin_of_marks, code, row)


@scalar
def _write_buckets(order, endings, span, borders, rows, marks, names, stack):
    """Write the rows of the buckets [first, last), and their marks, as `write_suffixes`.

    Parameters
    ----------
    names, stack : uint64[_NAMES] and int64[STACK], to work with

    Returns
    -------
    bool, whether these are the rows of the buckets
    """
    (bucket, last_bucket), (prefix, of_endings, of_rows) = span, borders
    first, last = of_endings[uint64(bucket)], of_endings[uint64(last_bucket)]
    begin = row = of_rows[uint64(bucket)]
    fits = True
    for i in range(first - int64(3 * _AHEAD), last):
        _look_ahead(order, endings, i, (first, last), names)
        if i < first:
            continue
        while i >= of_endings[uint64(bucket) + uint64(1)]:
            bucket += int64(1)
            begin = of_rows[uint64(bucket)]
            fits &= row == begin
        position, name = int64(endings[uint64(i)]), names[uint64(i) & uint64(_NAMES - 1)]
        end = _write_ending(order, name, position, row, rows, stack)
        if marks.words.shape[0] > 0:
            marked = row - begin, end - begin
            _mark_rows(order, name, position, prefix, marked, marks, marks.begins[uint64(bucket)])
        row = end
    return fits and row == of_rows[uint64(last_bucket)]


def write_suffixes(
    order: PhraseOrder,
    endings: np.ndarray,
    borders: tuple[int, np.ndarray, np.ndarray],
    rows: np.ndarray,
    marks: Marks,
    threads: int,
) -> None:
    """Write the rows of all suffixes but separators.

    Parameters
    ----------
    endings : as `order_phrases` takes them
    borders : (prefix, of_endings, of_rows): the bases that buckets share, and where they begin in `endings` and in
        `rows`, int64[4**prefix + 1]
    rows : uint32[n], filled
    marks : of the table, filled; without words where none is made
    """
    _, _, of_rows = borders
    # Buckets in ranges of about as many rows.
    shares = [last for _, last in spans_of(len(rows), 4 * threads)]
    cuts = np.unique([0, *np.searchsorted(of_rows, shares)])

    def write(number: int) -> bool:
        span = int(cuts[number]), int(cuts[number + 1])
        names, stack = np.empty(_NAMES, np.uint64), np.empty(STACK, np.int64)
        return bool(_write_buckets(order, endings, span, borders, rows, marks, names, stack))

    if not all(on_threads(threads, write, len(cuts) - 1)):
        raise AssertionError("phrases tell of other rows than buckets have")

"""Suffix arrays: the suffixes of a text in order, on all cores.

A suffix ends where its segment does: separators are smaller than bases, and of two separators the first in the text is
the smaller. Here suffixes are dealt out to buckets, those that begin with A or C before the others, and buckets to
threads; `suffix_letters.py` sorts a bucket, `suffix_ranks.py` what is tied still, and `table.py` makes the lookup table
of what buckets have marked.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.groups import TIED, set_states, untied
from warpseed.compute.ranges import STEP, on_threads, places_of, spans_of
from warpseed.fm_index.suffix_letters import Dealt, Room, deal_out, set_apart, sort_bucket
from warpseed.fm_index.suffix_ranks import sort_by_ranks
from warpseed.fm_index.table import Marks, mark_keys, table_of
from warpseed.fm_index.text import PackedText

__all__ = ["MAX_ROWS", "SORTING_BYTES", "sort_suffixes", "sort_with_table"]

MAX_ROWS = (1 << 32) - 1
"""Rows and text positions are 32-bit words everywhere in the index."""
SORTING_BYTES = 9
"""Of memory that a base takes at most while suffixes are sorted, beside the packed text: its row, its key, in a half of
them at a time, later its rank, and whether it is tied, where ties are left to ranks."""
_BUCKET = 1 << 15
"""Suffixes of a bucket, at most, where they are dealt out evenly: it is sorted in the second-level cache."""
_MOST_PREFIX = 8
_LARGE = 1 << 16
"""Suffixes of a bucket, at most, that is sorted by letters, or a sixteenth of the text if that is more."""
_NONE = np.empty(0, np.uint32)


def sort_suffixes(text: PackedText, threads: int = 1) -> np.ndarray:
    """Suffix array of a text.

    Parameters
    ----------
    text : PackedText, of at most MAX_ROWS bases and separators
    threads : int; the order is the same for every number

    Returns
    -------
    uint32[n], the position of the suffix of each row
    """
    return _Sorter(text, threads).sorted(0)[0]


def sort_with_table(text: PackedText, table_length: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The suffix array of a text and the lookup table, as `sort_suffixes` and `table_of` have them.

    Parameters
    ----------
    table_length : K, 1 to 15
    """
    rows, buckets = _Sorter(text, threads).sorted(table_length)
    return rows, table_of(buckets.marks, buckets.borders, max(1, threads))


class _Buckets(NamedTuple):
    """Which rows the suffixes with the same first bases have."""

    prefix: int
    """how many bases they share"""
    borders: np.ndarray
    """int64[4**prefix + 1], the rows where buckets begin"""
    marks: Marks


class _Sorter:
    """Suffixes on their way to their order."""

    def __init__(self, text: PackedText, threads: int) -> None:
        starts = text.segments.text_start
        ends = starts[1:] - np.uint32(1)
        self._text, self._size, self._threads = text, int(starts[-1]), max(1, threads)
        self._separators = len(ends)
        self._rows = np.empty(self._size, np.uint32)
        """positions"""
        self._rows[: len(ends)] = ends
        self._tied = untied(self._size)
        """of compute.groups"""

    def sorted(self, table_length: int) -> tuple[np.ndarray, _Buckets]:
        """The suffix array, and the buckets, with marks of a table of strings of `table_length` bases if not 0."""
        prefix = 1
        while prefix < min(_MOST_PREFIX, table_length or _MOST_PREFIX) and 4**prefix * _BUCKET < self._size:
            prefix += 1
        places, borders = self._count(prefix)
        sizes = np.diff(borders)
        marks = Marks.of(sizes, table_length - prefix) if table_length else Marks.none(len(sizes))
        buckets = _Buckets(prefix, borders, marks)
        depth = self._sort_halves(buckets, places)
        if depth:
            ranks = np.empty(self._size, np.uint32)
            sort_by_ranks(self._rows, self._tied, ranks, depth, self._threads)
        return self._rows, buckets

    def _spans(self) -> list[tuple[int, int]]:
        """The parts of the text whose suffixes are dealt out side by side."""
        return spans_of(self._size, self._threads, max(STEP, self._size // 64))

    def _count(self, prefix: int) -> tuple[np.ndarray, np.ndarray]:
        """Where each span puts what it has for each bucket, int64[spans, 4**prefix], behind separators, and where
        buckets begin, int64[4**prefix + 1]; see `places_of`."""
        spans = self._spans()
        counts = np.zeros((len(spans), 4**prefix), np.int64)

        def count(number: int) -> None:
            deal_out(self._text, prefix, Dealt.everything(), spans[number], counts[number], _NONE, _NONE)

        on_threads(self._threads, count, len(spans))
        return places_of(counts, self._separators)

    def _sort_halves(self, buckets: _Buckets, places: np.ndarray) -> int:
        """Deal suffixes out and sort them, first those that begin with A or C, then the others, with the same keys;
        returns by how many bases what is tied still is tied at least, 0 if nothing is."""
        middle = len(buckets.borders) // 2
        begin, between, end = (int(buckets.borders[bucket]) for bucket in (0, middle, -1))
        keys = np.empty(max(between - begin, end - between), np.uint32)
        depths: list[int] = []
        for number, first_row in enumerate((begin, between)):
            self._deal_out(buckets.prefix, Dealt.half(number, first_row), places, keys)
            depths += self._sort_buckets(buckets, range(number * middle, (number + 1) * middle), keys)
        return min((depth for depth in depths if depth), default=0)

    def _deal_out(self, prefix: int, dealt: Dealt, places: np.ndarray, keys: np.ndarray) -> None:
        """Put positions and keys of what is dealt out into its buckets."""
        spans = self._spans()

        def deal(number: int) -> None:
            deal_out(self._text, prefix, dealt, spans[number], places[number], self._rows, keys)

        on_threads(self._threads, deal, len(spans))

    def _sort_buckets(self, buckets: _Buckets, chosen: range, keys: np.ndarray) -> list[int]:
        """Sort chosen buckets by letters, `keys` being those of their rows; returns what `sort_bucket` does of each."""
        sizes = np.diff(buckets.borders)[chosen.start : chosen.stop]
        # The largest first, so that no thread is left alone with it.
        order = (chosen.start + np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]).tolist()
        before = int(buckets.borders[chosen.start])
        return on_threads(
            self._threads, lambda number: self._sort_bucket(buckets, order[number], keys, before), len(order)
        )

    def _sort_bucket(self, buckets: _Buckets, bucket: int, keys: np.ndarray, before: int) -> int:
        """As `sort_bucket`; a large one is left to ranks. `keys` are those of the rows from `before` on."""
        prefix, borders, marks = buckets
        begin, end, mark = int(borders[bucket]), int(borders[bucket + 1]), int(marks.begins[bucket])
        keys = keys[begin - before : end - before]
        if end - begin <= max(_LARGE, self._size // 16):
            place, room = (begin, end, mark), Room.of(end - begin)
            return int(sort_bucket(self._text, prefix, place, self._rows, keys, self._tied, marks, room))
        if len(marks.words):
            mark_keys(marks, mark, keys, np.zeros(4**marks.bases, np.int64))
        self._leave_to_ranks(prefix, begin, end)
        return prefix

    def _leave_to_ranks(self, prefix: int, begin: int, end: int) -> None:
        """Call all suffixes of a bucket tied that have the bases which it shares."""
        ended = np.empty(min(end - begin, prefix * self._separators), np.uint64)
        count = set_apart(self._text, prefix, (begin, end), self._rows, ended)
        self._rows[begin : begin + count] = np.sort(ended[:count]).astype(np.uint32)
        set_states(self._tied, begin + count + 1, end, TIED)

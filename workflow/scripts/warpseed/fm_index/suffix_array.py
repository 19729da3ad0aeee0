"""Suffix arrays: the suffixes of a text in order, on all cores.

A suffix ends where its segment does: separators are smaller than bases, and of two separators the first in the text is
the smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from warpseed.compute.groups import border_behind, first_ranks, renew_ranks
from warpseed.compute.pipeline import check_wanted
from warpseed.compute.ranges import STEP, on_threads, spans_of
from warpseed.compute.sorting import STACK
from warpseed.fm_index.suffix_ranks import sort_groups, sort_large_group
from warpseed.fm_index.suffixes import DIGITS, Room, deal_out, set_apart, sort_bucket
from warpseed.fm_index.table import Marks, mark_keys, table_of
from warpseed.fm_index.text import PackedText

__all__ = ["MAX_ROWS", "SORTING_BYTES", "sort_suffixes", "sort_with_table"]

MAX_ROWS = (1 << 32) - 1
"""Rows and text positions are 32-bit words everywhere in the index."""
SORTING_BYTES = 9
"""Of memory that a base takes while suffixes are sorted, beside the packed text: its row, its key, later its rank, and
whether it is tied, where ties are left to ranks."""
_BUCKET = 1 << 15
"""Suffixes of a bucket, at most, where they are dealt out evenly: it is sorted in the second-level cache."""
_MOST_PREFIX = 8
_SPAN = 1 << 26
"""Rows whose ranks are written in one call."""
_ROOM = 1 << 16
"""Suffixes of a group, at most, that are sorted in a thread's own room."""


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
    return _Sorter(text, threads).sorted()


def sort_with_table(text: PackedText, table_length: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The suffix array of a text and the lookup table, as `sort_suffixes` and `table_of` have them.

    Parameters
    ----------
    table_length : K, 1 to 15
    """
    sorter = _Sorter(text, threads, table_length)
    rows = sorter.sorted()
    return rows, sorter.table()


class _Sorter:
    """Suffixes on their way to their order."""

    def __init__(self, text: PackedText, threads: int, table_length: int = 0) -> None:
        starts = text.segments.text_start
        ends = starts[1:] - np.uint32(1)
        self._text, self._size, self._threads = text, int(starts[-1]), max(1, threads)
        self._rows = np.empty(self._size, np.uint32)
        self._rows[: len(ends)] = ends
        self._separators = len(ends)
        self._tied = np.zeros(self._size + 8, np.uint8)

        prefix = 1
        while prefix < min(_MOST_PREFIX, table_length or _MOST_PREFIX) and 4**prefix * _BUCKET < self._size:
            prefix += 1
        self._prefix, self._table_length = prefix, table_length
        self._marks = Marks(np.empty(0, np.uint64), np.empty(0, np.int64), 0)

    def table(self) -> np.ndarray:
        """The lookup table, once suffixes are sorted."""
        return table_of(self._marks, self._borders, self._threads)

    def sorted(self) -> np.ndarray:
        """The suffix array."""
        numbers = np.empty(self._size, np.uint32)  # keys, then ranks
        depth = self._sort_buckets(self._prefix, self._deal_out(self._prefix, numbers), numbers)
        if depth:
            self._sort_ties(depth, numbers)
        return self._rows

    def _deal_out(self, prefix: int, keys: np.ndarray) -> np.ndarray:
        """Put positions and keys into buckets; returns where these begin, int64[4**prefix + 1]."""
        spans = spans_of(self._size, self._threads, max(STEP, self._size // 64))
        counts = np.zeros((len(spans), 4**prefix), np.int64)

        def deal(rows: np.ndarray, keys: np.ndarray, number: int) -> None:
            deal_out(self._text, prefix, spans[number], counts[number], rows, keys)

        on_threads(self._threads, partial(deal, self._rows[:0], keys[:0]), len(spans))
        ends = np.cumsum(counts.T).reshape(4**prefix, len(spans)).T + self._separators
        borders = np.append(self._separators, ends[-1])
        counts = np.ascontiguousarray(ends - counts)
        on_threads(self._threads, partial(deal, self._rows, keys), len(spans))
        self._borders = borders
        if self._table_length:
            self._marks = Marks.of(np.diff(borders), self._table_length - prefix)
        return borders

    def _sort_buckets(self, prefix: int, borders: np.ndarray, keys: np.ndarray) -> int:
        """Sort buckets by letters; returns by how many bases what is tied still is tied at least, 0 if nothing is."""
        sizes = np.diff(borders)
        most = max(_ROOM, self._size // 16)

        def sort(bucket: int) -> int:
            begin, end = map(int, borders[bucket : bucket + 2])
            mark = int(self._marks.begins[bucket]) if self._table_length else 0
            if end - begin > most:
                if self._table_length:
                    counts = np.zeros(4**self._marks.bases, np.int64)
                    mark_keys(self._marks, mark, keys[begin:end], counts)
                return self._leave_to_ranks(prefix, begin, end)
            room, place = self._room(end - begin), (begin, end, mark)
            return int(sort_bucket(self._text, prefix, place, self._rows, keys, self._tied, self._marks, room))

        # The largest first, so that no thread is left alone with it.
        order = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)].tolist()
        depths = on_threads(self._threads, lambda number: sort(order[number]), len(order))
        return min((depth for depth in depths if depth), default=0)

    def _leave_to_ranks(self, prefix: int, begin: int, end: int) -> int:
        """Call all suffixes of a bucket tied that have the bases which it shares; returns how many bases these are."""
        ended = np.empty(min(end - begin, prefix * self._separators), np.uint64)
        count = set_apart(self._text, prefix, (begin, end), self._rows, ended)
        self._rows[begin : begin + count] = np.sort(ended[:count]).astype(np.uint32)
        self._tied[begin + count + 1 : end] = 1
        return prefix

    @staticmethod
    def _room(size: int) -> Room:
        elements, others = np.empty((2, size), np.uint64)
        rows, tied = np.empty(size, np.uint32), np.empty(size, np.uint8)
        return Room(elements, others, np.empty(DIGITS, np.int64), rows, tied, np.empty(STACK, np.int64))

    def _sort_ties(self, depth: int, ranks: np.ndarray) -> None:
        """Sort what is tied by `depth` bases by ranks, until nothing is."""
        self._each_group(lambda span: first_ranks(span, self._rows, self._tied, ranks))
        while self._sort_round(ranks, depth):
            self._each_group(lambda span: renew_ranks(span, self._rows, self._tied, ranks))
            depth *= 2

    def _each_group(self, task: Callable[[tuple[int, int]], object]) -> None:
        spans = self._spans_of_groups()
        on_threads(self._threads, lambda number: task(spans[number]), len(spans))

    def _spans_of_groups(self) -> list[tuple[int, int]]:
        """Rows in ranges that no group leads out of."""
        spans = spans_of(self._size, self._threads * 4 if self._threads > 1 else 1, _SPAN)
        borders = [0, *(border_behind(self._tied, last) for _, last in spans)]
        return [span for span in zip(borders, borders[1:], strict=False) if span[0] < span[1]]

    def _sort_round(self, ranks: np.ndarray, depth: int) -> int:
        """Sort all groups once; returns how many ties are left."""
        spans = self._spans_of_groups()

        def sort(number: int) -> int:
            first, last = spans[number]
            ties, room = 0, self._room(_ROOM)
            while first < last:
                check_wanted()
                first, left = sort_groups(ranks, depth, (first, last), self._rows, self._tied, room)
                ties += left
                if first < last:
                    end = border_behind(self._tied, first + 1)
                    ties += self._sort_large_group(ranks, depth, first, end)
                    first = end
            return ties

        return sum(on_threads(self._threads, sort, len(spans)))

    def _sort_large_group(self, ranks: np.ndarray, depth: int, begin: int, end: int) -> int:
        stack = np.zeros(STACK, np.int64)
        stack[:3] = 1, begin, end
        gone = 0
        while stack[0]:
            check_wanted()
            gone += sort_large_group(ranks, depth, self._rows, self._tied, stack, STEP)
        return end - begin - 1 - gone

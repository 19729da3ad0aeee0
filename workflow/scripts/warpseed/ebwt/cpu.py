"""The fast tier on the CPU: ω-order of all conjugates, and distances of all pairs of words."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from warpseed.compute.groups import SPLIT, TIED, UNTIED, border_behind, settle_ties, spans_of_groups, untied
from warpseed.compute.machine import require_memory
from warpseed.compute.pipeline import check_wanted
from warpseed.compute.ranges import STEP, borders_of, on_threads, places_of, spans_of, steps
from warpseed.compute.sorting import STACK, sort_pairs
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt.cpu_distances import distances
from warpseed.ebwt.cpu_fast import (
    DIGITS,
    Cut,
    Room,
    deal_out,
    fetch_keys,
    lay_out,
    mark_ties,
    note_codes,
    sort_buckets,
    turn_to_positions,
)
from warpseed.ebwt.cpu_ranks import (
    KnownRanks,
    keys_of_order,
    keys_of_ranks,
    known_words,
    sort_groups,
)
from warpseed.ebwt.fast import Laid, threads_for
from warpseed.ebwt.words import Words

__all__ = ["distances", "order_conjugates"]

_BUCKET = 1 << 13
"""Conjugates of a bucket, at most, where they are dealt out evenly: their keys stay in the second-level cache."""
_MOST_BUCKETS = 1 << 16
_ROOM = 1 << 16
"""Conjugates that are sorted in a thread's own room, at most."""
_LONG = 1 << 10
"""Letters of words that few rounds of letters are enough for."""
_WIDE = 1 << 32
"""Numbers from here on take 64 bits."""


def order_conjugates(words: Words, *, threads: int = 1, watch: Stopwatch | None = None) -> np.ndarray:
    """All conjugates of words in ω-order (Definition 1); equal ones in the order of words, then of offsets.

    Parameters
    ----------
    words : Words
    threads : CPU threads; the order is the same for every number
    watch : takes the seconds of the stages ``lay_out``, ``deal_out``, ``letters`` and ``ranks``

    Returns
    -------
    uint32[N], or uint64[N] where positions need it: the position of the conjugate of each rank, both 0-based

    Raises
    ------
    MemoryLimitError : there is not enough memory
    """
    return _Order(words, threads, watch or Stopwatch()).sorted()


class _Order:
    """Conjugates on their way to ω-order."""

    def __init__(self, words: Words, threads: int, watch: Stopwatch) -> None:
        self._words, self._watch = words, watch
        self._size = len(words.codes)
        self._threads = threads_for(self._size, threads)
        self._cut = _cut_of(words, self._threads)
        lengths = words.lengths
        shift = _shift_of(self._cut.base)
        self._digits = _digits_of(self._cut.base, shift)
        letters = 1 << shift
        starts = borders_of((lengths + (self._cut.prefix + 2 * letters - 1)) // letters * letters)
        # Places and positions have one type, which holds the larger ones.
        self._type, of_words = _type_of(starts[-1]), _type_of(len(lengths))
        units = int(starts[-1]) >> shift
        self._need((8 + of_words.itemsize) * units + self._type.itemsize * self._size + self._size // 4)
        by_length = np.argsort(lengths, kind="stable")
        ranked = np.empty(len(lengths), np.int64)
        ranked[by_length] = borders_of(lengths[by_length])[:-1]
        self._laid = Laid(
            np.zeros(units + 1, np.uint64), np.empty(units, of_words), starts, words.offsets, ranked, shift
        )
        self._order = np.empty(self._size, self._type)
        self._tied = untied(self._size)
        """of compute.groups, as cpu_fast and cpu_ranks have it"""

    def sorted(self) -> np.ndarray:
        """The order."""
        watch, units = self._watch, len(self._laid.word_of)
        with watch.stage("lay_out"):
            spans = spans_of(units, self._threads, max(1, STEP >> self._laid.shift))
            codes, code_of = self._words.codes, self._cut.code_of
            on_threads(self._threads, lambda number: lay_out(codes, code_of, spans[number], self._laid), len(spans))
        with watch.stage("deal_out"):
            borders = self._deal_out()
        with watch.stage("letters"):
            depth = self._sort_buckets(borders)
        if depth:
            with watch.stage("ranks"):
                self._sort_ties(depth)
        return self._order if self._size >= _WIDE else self._order.astype(np.uint32, copy=False)

    def _need(self, needed: int) -> None:
        what = f"Sorting the conjugates of words of {self._size:,} letters takes"
        require_memory(needed, what, "take fewer or shorter words, or a machine with more memory")

    def _deal_out(self) -> np.ndarray:
        """Put places into buckets; returns where these begin, int64[buckets + 1]."""
        cut, spans = self._cut, spans_of(self._size, self._threads)
        counts = np.zeros((len(spans), cut.power), np.int64)

        def deal(number: int, places: np.ndarray, order: np.ndarray) -> None:
            deal_out(self._words.codes, cut, self._laid, spans[number], places[number], order)

        on_threads(self._threads, lambda number: deal(number, counts, self._order[:0]), len(spans))
        places, borders = places_of(counts)
        on_threads(self._threads, lambda number: deal(number, places, self._order), len(spans))
        return borders

    def _new_room(self, size: int) -> Room:
        size = min(size, _ROOM)
        keys, places = (np.empty((2, size), kind) for kind in (np.uint64, self._type))
        counts, stack = np.empty(DIGITS, np.uint32), np.empty(STACK, np.int64)
        return Room(keys[0], places[0], keys[1], places[1], np.empty(size, np.uint8), counts, stack, self._digits)

    def _sort_buckets(self, borders: np.ndarray) -> int:
        """Sort buckets by letters; returns by how many of them those are tied that are tied still, 0 if none are."""
        sizes = np.diff(borders)
        laid, cut = self._laid, self._cut
        tasks = _shares(borders, max(8 * self._threads if self._threads > 1 else 1, self._size // STEP))
        self._need(8 * max(0, int(sizes.max()) - _ROOM))

        def sort(number: int) -> tuple[list[int], list[int]]:
            first, last = tasks[number]
            room = self._new_room(int(sizes[first:last].max(initial=0)))
            depths, large = [], []
            while first < last:
                check_wanted()
                first, depth = sort_buckets(laid, cut, borders, (first, last), self._order, self._tied, room)
                depths.append(depth)
                if first < last:
                    large.append(first)
                    first += 1
            return depths, large

        sorted_tasks = on_threads(self._threads, sort, len(tasks))
        depths = [depth for some, _ in sorted_tasks for depth in some]
        for bucket in [bucket for _, large in sorted_tasks for bucket in large]:
            ties = self._sort_large_bucket(*map(int, borders[bucket : bucket + 2]))
            depths.append(cut.prefix + (1 << laid.shift) if ties else 0)
        return min((depth for depth in depths if depth), default=0)

    def _sort_large_bucket(self, begin: int, end: int) -> int:
        """Sort a bucket by one key behind its letters; returns how many are tied still."""
        places, keys = self._order[begin:end], np.empty(end - begin, np.uint64)
        self._in_steps(len(keys), lambda span: fetch_keys(self._laid, self._cut.prefix, places, span, keys))
        _sort_in_steps(keys, places)
        ties = self._in_steps(len(keys), lambda span: mark_ties(keys, span, self._tied, begin, (UNTIED, UNTIED)))
        self._in_steps(len(keys), lambda span: turn_to_positions(self._laid, places, span))
        return sum(ties)

    def _in_steps(self, size: int, task: Callable[[tuple[int, int]], int]) -> list[int]:
        spans = spans_of(size, self._threads)
        return on_threads(self._threads, lambda number: task(spans[number]), len(spans))

    def _sort_ties(self, depth: int) -> None:
        """Sort what is tied by `depth` letters by ranks, until all ties are of equal conjugates, and these as well."""
        offsets, ranked = self._laid.offsets, self._laid.ranked
        del self._laid
        self._need((self._type.itemsize + 1) * self._size)
        known = known_words(offsets, np.empty(self._size, self._type), ranked)
        sort_round = partial(self._sort_round, known)
        settle_ties(self._order, self._tied, known.ranks, depth, sort_round, self._threads)
        sort_round(-1)

    def _sort_round(self, known: KnownRanks, depth: int) -> int:
        """Sort all groups once; returns how many ties are gone."""
        spans = spans_of_groups(self._tied, self._size, self._threads)

        def sort(number: int) -> tuple[int, list[int]]:
            first, last = spans[number]
            gone, large = 0, []
            room = self._new_room(last - first)
            while first < last:
                check_wanted()
                first, splits = sort_groups(known, depth, (first, last), self._order, self._tied, room)
                gone += splits
                if first < last:
                    large.append(first)
                    first = border_behind(self._tied, first + 1)
            return gone, large

        sorted_spans = on_threads(self._threads, sort, len(spans))
        return sum(gone for gone, _ in sorted_spans) + sum(
            self._sort_large_group(known, depth, begin) for _, large in sorted_spans for begin in large
        )

    def _sort_large_group(self, known: KnownRanks, depth: int, begin: int) -> int:
        """Sort a group that is larger than the room of a thread; returns how many ties are gone."""
        end = border_behind(self._tied, begin + 1)
        positions, size = self._order[begin:end], end - begin
        self._need(8 * size)
        keys = np.empty(size, np.uint64)
        equal = depth < 0 or depth >= 2 * max(
            self._in_steps(size, lambda span: keys_of_ranks(known, depth, positions, span, keys))
        )
        if equal:
            self._in_steps(size, lambda span: keys_of_order(known, positions, span, keys))
        _sort_in_steps(keys, positions)
        states = TIED, UNTIED if equal else SPLIT
        ties = sum(self._in_steps(size, lambda span: mark_ties(keys, span, self._tied, begin, states)))
        return size - 1 - ties


def _sort_in_steps(keys: np.ndarray, places: np.ndarray) -> None:
    """Sort pairs by their keys."""
    if all((keys[first:last] <= keys[first + 1 : last + 1]).all() for first, last in steps(0, len(keys) - 1)):
        return
    stack = np.zeros(STACK, np.int64)
    stack[:3] = 1, 0, len(keys)
    while sort_pairs(keys, places, stack, STEP):
        check_wanted()


def _type_of(most: int) -> np.dtype:
    """Of numbers up to `most`."""
    return np.dtype(np.uint32 if most < _WIDE else np.uint64)


def _cut_of(words: Words, threads: int) -> Cut:
    """How the conjugates of words are dealt out."""
    codes = words.codes
    spans = spans_of(len(codes), threads)
    noted = np.zeros((len(spans), 256), np.uint8)
    on_threads(threads, lambda number: note_codes(codes, spans[number], noted[number]), len(spans))
    occurs = noted.any(axis=0)
    base = max(2, int(occurs.sum()))
    prefix = 1
    while base**prefix * _BUCKET < len(codes) and base ** (prefix + 1) <= _MOST_BUCKETS:
        prefix += 1
    long = bool(words.lengths.max() > _LONG)
    return Cut((np.cumsum(occurs) - occurs).astype(np.uint8), base, prefix, base**prefix, long)


def _shift_of(base: int) -> int:
    """log2 of the letters in a uint64, where each has 1, 2, 4 or 8 bits."""
    return 6 - ((base - 1).bit_length() - 1).bit_length()


@cache
def _digits_of(base: int, shift: int) -> np.ndarray:
    """uint16[65536]: of each 16 bits of letters, as a number in the base of the letters."""
    width = 64 >> shift
    quarter = np.arange(1 << 16)
    digits = np.zeros(1 << 16, np.int64)
    for place in range(16 - width, -1, -width):
        digits = digits * base + np.minimum((quarter >> place) & ((1 << width) - 1), base - 1)
    digits = digits.astype(np.uint16)
    digits.flags.writeable = False  # all calls share it
    return digits


def _shares(borders: np.ndarray, count: int) -> list[tuple[int, int]]:
    """Ranges of buckets that have about the same size."""
    wanted = borders[-1] * np.arange(1, count) // count
    cuts = [0, *np.searchsorted(borders, wanted).tolist(), len(borders) - 1]
    return [span for span in zip(cuts, cuts[1:], strict=False) if span[0] < span[1]]

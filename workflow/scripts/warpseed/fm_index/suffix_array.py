"""Suffix arrays: the suffixes of a text in order, on all cores.

A suffix ends where its segment does: separators are smaller than bases, and of two separators the first in the text is
the smaller. Here suffixes are dealt out to buckets (`suffix_buckets.py`), one first base after the other, and buckets
to threads, and `suffix_letters.py` sorts a bucket: of six of the sixteen pairs of first bases, from which
`suffix_induction.py` induces the others. Where ties are left all buckets are sorted, and `suffix_chains.py` and
`suffix_ranks.py` sort what is tied. `table.py` makes the lookup table of what buckets have marked. Of a text that
repeats only the different phrases are sorted so (`parse.py`), and its suffixes by what follows them
(`suffix_phrases.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from warpseed.compute.groups import TIED, set_states, untied
from warpseed.compute.machine import return_freed_memory
from warpseed.compute.pipeline import check_wanted
from warpseed.compute.ranges import STEP, on_threads, places_of, spans_of
from warpseed.fm_index.parse import Parse, parse_text
from warpseed.fm_index.phrase_dictionary import Dictionary, keep_heads
from warpseed.fm_index.suffix_buckets import Dealt, count_prefixes, deal_out, set_apart
from warpseed.fm_index.suffix_chains import TiedOrder
from warpseed.fm_index.suffix_induction import Bucketed, Turns, induce, mark_sorted
from warpseed.fm_index.suffix_letters import ROOM_BYTES, Room, sort_bucket, work_for
from warpseed.fm_index.suffix_phrases import order_phrases, write_suffixes
from warpseed.fm_index.suffix_ranks import sort_by_ranks
from warpseed.fm_index.table import Marks
from warpseed.fm_index.text import PackedText

__all__ = ["MAX_ROWS", "SORTING_BYTES", "sort_suffixes", "sort_with_marks"]

MAX_ROWS = (1 << 32) - 1
"""Rows and text positions are 32-bit words everywhere in the index."""
SORTING_BYTES = 8.625
"""Of memory that a base takes at most while suffixes are sorted, beside the packed text: 4 for its row; 4 for its key,
in a quarter of them at a time, and the room that large buckets are sorted in, later for its rank; two bits for whether
it is tied, one for whether it is the first of these, and up to two of what the table is made of. By phrases it is less,
as of a dictionary only heads are sorted, or all of it if it has no more than _MOST_RANKED of the text's letters."""
_MOST_RANKED = 0.8
"""Of the text's letters, what a dictionary has at most that is sorted by ranks, in the memory that the text has."""
_BUCKET = 1 << 15
"""Suffixes of a bucket, at most, where they are dealt out evenly: it is sorted in the second-level cache."""
_MOST_PREFIX = 8
_LARGE = 1 << 16
"""Suffixes of a bucket that is sorted by letters at any rate, in room that every thread has."""
_RECENT = 16
"""Buckets that show whether suffixes are tied by more bases than it is worth to sort by letters."""
_PROBES = 16
"""Of so many buckets that a thread sorts the first is sorted by letters even then."""
_NONE = np.empty(0, np.uint32)
_NOTHING_TIED = np.empty(0, np.uint64)


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
    return _sort_text(text, 0, threads)[0]


def sort_with_marks(text: PackedText, table_length: int, threads: int = 1) -> tuple[np.ndarray, Marks, np.ndarray]:
    """The suffix array of a text, as `sort_suffixes` has it, and the marks and borders that `table_of` takes.

    The table itself may need as much memory as the suffix array, which can be put elsewhere before it is made.

    Parameters
    ----------
    table_length : K, 1 to 15
    """
    rows, buckets = _sort_text(text, table_length, threads)
    return rows, buckets.marks, buckets.borders


def _sort_text(text: PackedText, table_length: int, threads: int) -> tuple[np.ndarray, _Buckets]:
    """The suffix array, and the buckets, with marks of a table of strings of `table_length` bases if not 0."""
    parse = parse_text(text, threads)
    found = None if parse is None else _sort_by_phrases(text, parse, table_length, threads)
    if found is not None:
        return found
    del parse
    prefix = _choose_prefix(int(text.segments.text_start[-1]), table_length)
    return _Sorter(text, prefix, threads).sorted(table_length)


class _Buckets(NamedTuple):
    """Which rows the suffixes with the same first bases have."""

    prefix: int
    """how many bases they share"""
    borders: np.ndarray
    """int64[4**prefix + 1], the rows where buckets begin"""
    marks: Marks

    @classmethod
    def of(cls, prefix: int, borders: np.ndarray, table_length: int) -> _Buckets:
        """With room for marks of a table of strings of `table_length` bases if not 0."""
        sizes = np.diff(borders)
        marks = Marks.of(sizes, table_length - prefix) if table_length else Marks.none(len(sizes))
        return cls(prefix, borders, marks)

    def place_of(self, bucket: int) -> tuple[int, int, int]:
        """Its first row, the row behind its last, and the word where its marks begin."""
        return int(self.borders[bucket]), int(self.borders[bucket + 1]), int(self.marks.begins[bucket])

    @property
    def marked(self) -> tuple[np.ndarray, Marks]:
        """Their borders and marks."""
        return self.borders, self.marks

    def size_of(self, bucket: int) -> int:
        """How many suffixes are in it."""
        return int(self.borders[bucket + 1] - self.borders[bucket])


def _choose_prefix(size: int, table_length: int) -> int:
    """How many bases the buckets of a text of some size share: no more than strings of the table, if there is one."""
    prefix = 1
    while prefix < min(_MOST_PREFIX, table_length or _MOST_PREFIX) and 4**prefix * _BUCKET < size:
        prefix += 1
    return prefix


def _spans(text: PackedText, threads: int) -> list[tuple[int, int]]:
    """The parts of a text whose suffixes are dealt out side by side."""
    size = int(text.segments.text_start[-1])
    return spans_of(size, threads, max(STEP, size // 64))


def _count(text: PackedText, prefix: int, threads: int, head_ends: np.ndarray = _NONE) -> tuple[np.ndarray, np.ndarray]:
    """Where each span puts what it has for each bucket, int64[spans, 4**prefix], and where buckets begin, behind
    separators if there are no `head_ends`, int64[4**prefix + 1]; see `places_of`."""
    spans = _spans(text, threads)
    counts = np.zeros((len(spans), 4**prefix), np.int64)

    def count(number: int) -> None:
        count_prefixes(text, prefix, head_ends, spans[number], counts[number])

    on_threads(threads, count, len(spans))
    return places_of(counts, 0 if len(head_ends) else len(text.segments.contig))


class _Quarter(NamedTuple):
    """The buckets of one first base, whose suffixes have been dealt out."""

    buckets: _Buckets
    numbers: np.ndarray
    """int64[...], of these buckets"""
    first_row: int
    """of those with the first base"""
    keys: np.ndarray
    """uint32[...], of their rows"""

    def keys_of(self, place: tuple[int, int, int]) -> np.ndarray:
        """Of the rows of a bucket."""
        return self.keys[place[0] - self.first_row : place[1] - self.first_row]


def _share_room(sizes: np.ndarray, spare: int, threads: int) -> tuple[int, int]:
    """How large a bucket is at most that is sorted by letters, and how many of the threads sort those of more than
    _LARGE, where each takes room for the largest that it meets, and all no more than `spare` bytes."""
    most = max(_LARGE, spare // ROOM_BYTES)
    largest = np.sort(sizes[(sizes > _LARGE) & (sizes <= most)])[::-1][:threads]
    return most, int(np.count_nonzero(ROOM_BYTES * np.cumsum(largest) <= spare))


class _Sorter:
    """Suffixes on their way to their order."""

    def __init__(
        self,
        text: PackedText,
        prefix: int,
        threads: int,
        head_ends: np.ndarray = _NONE,
        compared: PackedText | None = None,
    ) -> None:
        """Of a text, or of what begins in heads of a dictionary's phrases, separators left out then.

        Parameters
        ----------
        prefix : bases that buckets share
        head_ends : of `Dealt`
        compared : the text as suffixes are compared in it, if its segments are others there
        """
        self._text, self._threads, self._head_ends = text, max(1, threads), head_ends
        self._compared = text if compared is None else compared
        self._places, self._borders = _count(text, prefix, threads, head_ends)
        self._prefix, self._size = prefix, int(self._borders[-1])
        self._rows = np.empty(self._size, np.uint32)
        """positions"""
        if not len(head_ends):
            self._rows[: self._borders[0]] = text.segments.text_start[1:] - np.uint32(1)
        self._tied = untied(self._size)
        """of compute.groups"""
        self._left = deque[bool](maxlen=_RECENT)
        """of the last buckets, of any thread, that had all the work of letters: whether these left ties"""
        self._stopped = False
        """heads alone cannot be sorted by ranks, so the first ties that are left to these end the work"""
        self._unsorted = False
        """whether a bucket was left to ranks as it is: then nothing induced is marked before all is sorted"""

    def sorted(self, table_length: int = 0) -> tuple[np.ndarray, _Buckets]:
        """The suffix array, and the buckets, with marks of a table of strings of `table_length` bases if not 0."""
        rows, buckets, depth = self.by_letters(table_length)
        if depth:
            return_freed_memory()
            ranks = np.empty(self._size, np.uint32)
            sort_by_ranks(self._text, TiedOrder(rows, self._tied, ranks), depth, self._threads)
        if self._unsorted:
            _mark_all(self._text, rows, buckets, self._threads)
        return rows, buckets

    def by_letters(self, table_length: int = 0) -> tuple[np.ndarray, _Buckets, int]:
        """As `sorted`, but for what is left tied, and by how many bases that is tied at least, 0 if nothing is. Of
        heads nothing more is sorted then."""
        buckets = _Buckets.of(self._prefix, self._borders, table_length)
        if self._prefix < 2 or len(self._head_ends):
            return self._rows, buckets, self._sort_quarters(buckets, [range(4)] * 4)
        turns = Turns.of(self._borders)
        depth = self._sort_quarters(buckets, [turns.behind(base) for base in range(4)])
        marks = Marks.none(len(self._borders) - 1) if self._unsorted else buckets.marks
        tied = self._tied if depth else _NOTHING_TIED
        induce(self._text, Bucketed(self._prefix, self._borders, self._rows, marks, tied), turns, self._threads)
        return self._rows, buckets, depth

    def _sort_quarters(self, buckets: _Buckets, seconds: Sequence[Sequence[int]]) -> int:
        """Deal suffixes out and sort them, one first base after the other, with the same room for keys; returns by how
        many bases what is tied still is tied at least, 0 if nothing is.

        Parameters
        ----------
        seconds : of each first base, the second ones of what is sorted
        """
        each = len(buckets.borders) // 4
        first_rows = buckets.borders[::each]
        keys = np.empty(int(np.diff(first_rows).max()), np.uint32)
        depths: list[int] = []
        for base, first_row in enumerate(first_rows[:-1].tolist()):
            if self._stopped:
                break
            if not seconds[base]:
                continue
            self._deal_out(Dealt.quarter(base, seconds[base], first_row, self._head_ends), keys)
            numbers = np.arange(base * each, (base + 1) * each)
            if len(seconds[base]) < 4:
                numbers = np.concatenate([numbers.reshape(4, -1)[second] for second in sorted(seconds[base])])
            depths += self._sort_quarter(_Quarter(buckets, numbers, first_row, keys))
        return min((depth for depth in depths if depth), default=0)

    def _deal_out(self, dealt: Dealt, keys: np.ndarray) -> None:
        """Put positions and keys of what is dealt out into its buckets."""
        spans = _spans(self._text, self._threads)

        def deal(number: int) -> None:
            deal_out(self._text, self._prefix, dealt, spans[number], self._places[number], self._rows, keys)

        on_threads(self._threads, deal, len(spans))

    def _sort_quarter(self, quarter: _Quarter) -> list[int]:
        """Sort buckets by letters, the largest first, so that no thread is left alone with it, and leave what is too
        large to ranks; returns of each by how many bases what is tied still is tied at least, 0 if nothing is."""
        numbers = quarter.numbers
        sizes = np.diff(quarter.buckets.borders)[numbers]
        order = numbers[np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]].tolist()
        most, threads = _share_room(sizes, 4 * (self._size - len(quarter.keys)), self._threads)
        too_large, large = (int(np.count_nonzero(sizes > size)) for size in (most, _LARGE))
        depths = on_threads(self._threads, lambda number: self._leave_to_ranks(quarter, order[number]), too_large)
        self._unsorted |= too_large > 0
        self._stopped |= self._unsorted and len(self._head_ends) > 0
        return depths + self._sort_by_letters(quarter, order[too_large:large], threads, order[large:])

    def _sort_by_letters(self, quarter: _Quarter, large: list[int], most: int, small: list[int]) -> list[int]:
        """Sort buckets, each as `sort_bucket`: large ones on `most` threads, of which each has room for its first one,
        and all threads the small ones, these last. Where most have ties that are left anyhow, as in copies of a genome,
        what is tied by keys is left at once."""
        prefix, _, marks = quarter.buckets
        firsts = [[bucket] for bucket in large[:most]]
        firsts += [[] for _ in range(min(self._threads - len(firsts), len(small)))]
        others, smalls = iter(large[most:]), iter(small)
        # (What threads allocate the C library may keep when it is freed.)
        rooms = [Room.of(max([_LARGE, *map(quarter.buckets.size_of, first)])) for first in firsts]

        def sort(number: int) -> list[int]:
            depths = []
            first = firsts[number]
            for turn, bucket in enumerate(chain(first, others if first else (), smalls)):
                check_wanted()
                if self._stopped:
                    break
                place = quarter.buckets.place_of(bucket)
                keys, room = quarter.keys_of(place), rooms[number]
                is_hopeful = turn % _PROBES == 0 or 2 * self._left.count(True) < _RECENT
                worked = *place, work_for(place[1] - place[0]) if is_hopeful else 0
                depths.append(sort_bucket(self._compared, prefix, worked, self._rows, keys, self._tied, marks, room))
                self._stopped |= len(self._head_ends) > 0 and depths[-1] > 0
                if is_hopeful:
                    self._left.append(depths[-1] > 0)
            return depths

        return list(chain.from_iterable(on_threads(self._threads, sort, len(firsts))))

    def _leave_to_ranks(self, quarter: _Quarter, bucket: int) -> int:
        """Call all suffixes of a bucket tied that have the bases which it shares; returns how many these are."""
        prefix, (begin, end, _) = self._prefix, quarter.buckets.place_of(bucket)
        ended = np.empty(min(end - begin, prefix * len(self._text.segments.contig)), np.uint64)
        count = set_apart(self._text, prefix, (begin, end), self._rows, ended)
        self._rows[begin : begin + count] = np.sort(ended[:count]).astype(np.uint32)
        set_states(self._tied, begin + count + 1, end, TIED)
        return prefix


def _mark_all(text: PackedText, rows: np.ndarray, buckets: _Buckets, threads: int) -> None:
    """Mark the suffixes of all buckets, when these stand in their rows."""
    of = Bucketed(buckets.prefix, buckets.borders, rows, buckets.marks, _NOTHING_TIED)
    mark_sorted(text, of, range(len(buckets.borders) - 1), threads)


def _sort_heads(
    dictionary: Dictionary, prefix: int, table_length: int, most: float, threads: int
) -> tuple[np.ndarray, _Buckets] | None:
    """What ends phrases of a dictionary, each string once, in order: positions, and their buckets, with marks as
    `_Sorter.sorted`; None if that needs ranks, and the dictionary has more than `most` letters."""
    joined = PackedText(dictionary.text.words, dictionary.joined)
    sorter = _Sorter(dictionary.text, prefix, threads, dictionary.head_ends, joined)
    endings, buckets, depth = sorter.by_letters(table_length)
    if depth:
        # Ranks of what follows are needed, which may begin outside of heads.
        del sorter, endings
        if int(dictionary.text.segments.text_start[-1]) > most:
            return None
        every, _ = _Sorter(dictionary.text, prefix, threads).sorted()
        endings, buckets = keep_heads(dictionary, every), _Buckets.of(prefix, buckets.borders, table_length)
        _mark_all(dictionary.text, endings, buckets, threads)
    return endings, buckets


def _sort_by_phrases(
    text: PackedText, parse: Parse, table_length: int, threads: int
) -> tuple[np.ndarray, _Buckets] | None:
    """As `_Sorter.sorted`, of a text that repeats; None if that would take too much memory."""
    size, ends = int(text.segments.text_start[-1]), text.segments.text_start[1:] - np.uint32(1)
    # (The same buckets, of the text and of the dictionary, so that rows of both begin at known places.)
    prefix = _choose_prefix(size, table_length)
    found = _sort_heads(parse.dictionary, prefix, table_length, _MOST_RANKED * size, threads)
    if found is None:
        return None
    endings, of_endings = found
    return_freed_memory()
    order = order_phrases(parse, endings, threads)
    buckets = _Buckets.of(prefix, _count(text, prefix, threads)[1], table_length)
    rows = np.empty(size, np.uint32)
    rows[: len(ends)] = ends
    write_suffixes(order, endings, of_endings.marked, buckets.marked, rows, threads)
    return rows, buckets

"""Lines in the order of their coordinates: sorted batch by batch, and merged from any number of runs in bounded memory.

The order is total: contig (in the order of the reference), start, end, strand ('+' first), then the query's number.
Lines that have no place stand behind all others, by the query's number. A line may be empty: something is at its place
that is told elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from warpseed.compute.compiled import int64, scalar
from warpseed.compute.letters import SLACK, bytes_of, put_bytes
from warpseed.compute.pipeline import mapped
from warpseed.compute.ranges import borders_of
from warpseed.output.hits import Hits
from warpseed.output.lines import Line

__all__ = [
    "KEY_BYTES",
    "Before",
    "HeldRun",
    "Run",
    "SortedLines",
    "arrange",
    "contig_places",
    "lines_that_fit",
    "merge_lines",
    "merge_runs",
    "sort_lines",
    "stable_order",
    "unplaced",
]

KEY_BYTES = 32
"""What a line takes beside its text."""
_Made = TypeVar("_Made")
_Key: TypeAlias = tuple[int, int, int]
"""What orders a line: place, shape and query of `SortedLines`."""

_ROUND_BYTES = 1 << 23
"""Lines that are merged together, about, keys included."""
_STANDING = 8
"""A run of which nothing is used has room for so small a part of its equal share."""


class FileText(Protocol):
    """Text that lies in a file."""

    def read(self, first: int, last: int) -> np.ndarray:
        """Bytes [first, last) of it, uint8[]; from any thread.

        Raises
        ------
        InputError : they are not there
        """


@dataclass(frozen=True, eq=False)
class SortedLines:
    """Lines in order, and what orders them."""

    place: np.ndarray
    """uint64[n], contig and start as one number"""
    shape: np.ndarray
    """uint64[n], length and strand as one number"""
    query: np.ndarray
    """int64[n], the query's number"""
    offsets: np.ndarray
    """int64[n + 1], line i is text[offsets[i]:offsets[i + 1]]"""
    text: np.ndarray | FileText
    """uint8[], or what reads it from a file"""

    def __len__(self) -> int:
        return len(self.place)

    def keys(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What orders the lines, the first column first."""
        return self.place, self.shape, self.query

    def part(self, first: int, last: int) -> SortedLines:
        """Lines [first, last); a view."""
        part = slice(first, last)
        offsets = self.offsets[first : last + 1]
        return SortedLines(self.place[part], self.shape[part], self.query[part], offsets, self.text)

    def that_are_written(self) -> SortedLines:
        """Those that are not empty."""
        shown = self.offsets[1:] > self.offsets[:-1]
        if shown.all():
            return self
        offsets = np.append(self.offsets[:-1][shown], self.offsets[-1])
        return SortedLines(self.place[shown], self.shape[shown], self.query[shown], offsets, self.text)

    def in_memory(self) -> SortedLines:
        """The same lines, their text read, as by `used_text`."""
        if isinstance(self.text, np.ndarray):
            return self
        return SortedLines(self.place, self.shape, self.query, self.offsets - self.offsets[0], self.used_text())

    def used_text(self) -> np.ndarray:
        """The text of these lines alone, uint8[]: a view, or read anew where it is in a file, which `FileText.read` may
        refuse."""
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        return self.text[first:last] if isinstance(self.text, np.ndarray) else self.text.read(first, last)

    def text_bytes(self) -> int:
        """Bytes of the text of these lines alone."""
        return int(self.offsets[-1] - self.offsets[0])

    def size(self) -> int:
        """Bytes that the lines take, keys included."""
        return KEY_BYTES * len(self) + self.text_bytes()

    def key(self, i: int) -> _Key:
        """What orders line i."""
        return int(self.place[i]), int(self.shape[i]), int(self.query[i])

    def end_of(self, key: _Key, first: int, inclusive: bool) -> int:
        """The first line, from line `first` on, that stands behind a key, or is equal to it where not `inclusive`."""
        last = len(self)
        for column, value in zip(self.keys(), key, strict=True):
            value = column.dtype.type(value)
            first += int(column[first:last].searchsorted(value))
            if first == last or column[first] != value:
                return first
            last = first + int(column[first:last].searchsorted(value, "right"))
        return last if inclusive else first


class Before(NamedTuple):
    """What stands before some lines, of all that are merged."""

    lines: int
    text_bytes: int


class Run(Protocol):
    """Sorted lines somewhere, read from any place on."""

    @property
    def lines(self) -> int: ...

    def read(self, first: int, room: int) -> SortedLines:
        """Lines from `first` on, as many as take about `room` bytes, and at least one."""


class HeldRun(NamedTuple):
    """A Run in memory."""

    held: SortedLines

    @property
    def lines(self) -> int:
        return len(self.held)

    def read(self, first: int, room: int) -> SortedLines:
        """As `Run.read`; a view."""
        last = min(self.lines, first + max(1, room // KEY_BYTES))
        return self.held.part(first, lines_that_fit(self.held.offsets[first : last + 1], room) + first)


def lines_that_fit(offsets: np.ndarray, room: int) -> int:
    """Lines, of those with these int64[n + 1] offsets, whose text fits `room` bytes; at least one."""
    return max(1, int(offsets.searchsorted(offsets[0] + room, "right")) - 1)


def stable_order(*keys: np.ndarray) -> np.ndarray:
    """The order of rows by integer keys, the first of them first, as int64[n]; equal ones stay as they are.

    Keys and row numbers are packed into words, which sort several times faster than rows through an index.
    """
    count = len(keys[0])
    number_bits = count.bit_length()
    order: np.ndarray | None = None
    word, bits = np.zeros(count, np.uint64), 0

    def sort_by_word() -> np.ndarray:
        rows = (word if order is None else word[order]) << np.uint64(number_bits)
        rows |= np.arange(count, dtype=np.uint64)
        rows.sort()
        rows &= np.uint64((1 << number_bits) - 1)
        numbers = rows.view(np.int64)
        return numbers if order is None else order[numbers]

    for key in reversed(keys if count else ()):
        low = key.min()
        key_bits = (int(key.max()) - int(low)).bit_length()
        if bits and bits + key_bits + number_bits > 64:
            order = sort_by_word()
            word, bits = np.zeros(count, np.uint64), 0
        if key_bits + number_bits > 64:
            order = np.argsort(key, kind="stable") if order is None else order[np.argsort(key[order], kind="stable")]
        elif key_bits:
            word |= (key - low).astype(np.uint64, copy=False) << np.uint64(bits)
            bits += key_bits
    if bits:
        order = sort_by_word()
    return np.arange(count) if order is None else order


def _sorted_order(place: np.ndarray, shape: np.ndarray, query: np.ndarray) -> np.ndarray:
    order = stable_order(place, shape)
    # What follows each other in time is mostly in the order of the queries already.
    places, shapes, queries = place[order], shape[order], query[order]
    equal = (places[1:] == places[:-1]) & (shapes[1:] == shapes[:-1])
    if np.any(equal & (queries[1:] < queries[:-1])):
        return stable_order(place, shape, query)
    return order


@scalar
def _gather(text, begins, lengths, order, out):
    """Copy pieces of a text, in an order; SLACK bytes behind the last one may be written too."""
    to = int64(0)
    for i in range(order.shape[0]):
        row = order[i]
        to = put_bytes(out, to, text, begins[row], begins[row] + lengths[row])


def arrange(
    place: np.ndarray, shape: np.ndarray, query: np.ndarray, lengths: np.ndarray, text: np.ndarray
) -> SortedLines:
    """Lines in any order, back to back, as sorted ones; equal keys stay as they are."""
    order = _sorted_order(place, shape, query)
    offsets = borders_of(lengths[order])
    arranged = np.empty(len(text) + SLACK, np.uint8)
    _gather(bytes_of(text), np.cumsum(lengths) - lengths, lengths, order, arranged)
    return SortedLines(place[order], shape[order], query[order], offsets, arranged[: len(text)])


def contig_places(lengths: np.ndarray) -> np.ndarray:
    """The `place` of the first base of each contig, uint64[c]; `lengths` are int64[c]."""
    return (np.cumsum(lengths + 1) - lengths).astype(np.uint64)


def unplaced(lengths: np.ndarray) -> np.uint64:
    """The `place` of what lies on none of the contigs."""
    return np.uint64(int((lengths + 1).sum()) + 1)


def sort_lines(hits: Hits, line: Line, first: int, last: int) -> SortedLines:
    """The lines of hits [first, last), sorted; queries are numbered from `hits.first_query` on."""
    rows = hits.rows_of(first, last)
    start = rows["start"].astype(np.uint64)
    place = contig_places(hits.contig_lengths)[rows["contig"]] + start
    shape = ((rows["end"].astype(np.uint64) - start) << np.uint64(1)) | rows["strand"].astype(np.uint64)
    # Formatted as they come, then moved: names in another order are read far more slowly.
    text, lengths = hits.formatter(line).format_all(rows, first)
    return arrange(place, shape, rows["query"] - hits.first_query, lengths, text)


def merge_lines(parts: Sequence[SortedLines]) -> SortedLines:
    """Lines of several sorted parts as one, in memory; equal keys stay in the order of the parts."""
    if len(parts) == 1:
        return parts[0].in_memory()
    place, shape, query = map(np.concatenate, zip(*(part.keys() for part in parts), strict=True))
    lengths = np.concatenate([part.offsets[1:] - part.offsets[:-1] for part in parts])
    return arrange(place, shape, query, lengths, np.concatenate([part.used_text() for part in parts]))


class _Cursor:
    """How far a run is read and used."""

    def __init__(self, run: Run) -> None:
        self._run, self._lines = run, run.lines
        self._begin = self._used = self._count = 0
        self._loaded: SortedLines
        self._left = 0
        """bytes that are loaded and not used"""
        self.pace = 1
        """bytes that rounds used, each counting half as much as the next one; before the first of them, all the same"""
        self.last_key: _Key | None = None
        """the last key that is loaded; None where no other follows"""

    def load(self, room: int) -> None:
        """See to it that what is loaded and not used is three quarters of what there is room for, or all, and no more
        than twice as much."""
        too_little = 4 * self._left < 3 * room and self._begin + self._count < self._lines
        if too_little or self._left > 2 * room:
            self._begin += self._used
            self._used = 0
            self._loaded = self._run.read(self._begin, room)
            self._left, self._count = self._loaded.size(), len(self._loaded)
            is_last = self._begin + self._count == self._lines
            self.last_key = None if is_last else self._loaded.key(self._count - 1)

    def take(self, key: _Key | None, inclusive: bool) -> SortedLines | None:
        """Lines up to a key, or all that are loaded, if there are any; they are used then."""
        first = self._used
        last = self._count if key is None else self._loaded.end_of(key, first, inclusive)
        self.pace //= 2
        if first == last:
            return None
        self._used = last
        part = self._loaded.part(first, last)
        size = part.size()
        self._left -= size
        self.pace += size
        return part

    def is_over(self) -> bool:
        """Whether all is used."""
        return self._begin + self._used == self._lines


def _rounds(runs: Sequence[Run], room: int) -> Iterator[list[SortedLines]]:
    """Parts of the runs, so that all lines of one round stand before those of the next."""
    cursors = [_Cursor(run) for run in runs if run.lines]
    while cursors:
        # The run of which least is loaded, of what a round would use, ends it: so each has room at its pace.
        least = max(KEY_BYTES, room // (_STANDING * len(cursors)))
        pace = max(1, sum(cursor.pace for cursor in cursors))
        for cursor in cursors:
            cursor.load(max(least, room * cursor.pace // pace))
        # Up to the smallest of the last keys that are loaded, everything is. Of lines that equal it, those of later
        # runs wait until the first such run has no more.
        ends = [(cursor.last_key, i) for i, cursor in enumerate(cursors) if cursor.last_key is not None]
        key, which = min(ends, default=(None, len(cursors)))
        taken = [cursor.take(key, i <= which) for i, cursor in enumerate(cursors)]
        yield [part for part in taken if part is not None]
        cursors = [cursor for cursor in cursors if not cursor.is_over()]


def merge_runs(
    runs: Sequence[Run], *, memory: int, threads: int, make: Callable[[SortedLines, Before], _Made]
) -> Iterator[_Made]:
    """All lines of sorted runs in order, part by part; equal keys stay in the order of the runs.

    Parameters
    ----------
    memory : bytes that are taken beside runs in memory, about; at least a line of each run is held
    threads : threads that merge
    make : what is done with each part beside the others, from any thread

    Yields
    ------
    what `make` made of at least one line

    Raises
    ------
    InputError : a run in a file cannot be read
    """
    # A task takes its lines twice, as parts and merged; four times as much is for what is loaded, and what waits.
    room = min(_ROUND_BYTES, memory // (2 * threads + 4))

    def tasks() -> Iterator[tuple[list[SortedLines], Before]]:
        before = Before(0, 0)
        for parts in _rounds(runs, room):
            yield parts, before
            text_bytes = sum(part.text_bytes() for part in parts)
            before = Before(before.lines + sum(map(len, parts)), before.text_bytes + text_bytes)

    def merged(task: tuple[list[SortedLines], Before]) -> _Made:
        parts, before = task
        return make(merge_lines(parts), before)

    return mapped(tasks(), merged, threads, ahead=1)

"""Lines below headings: the hits of each query, strand by strand, each strand's below a line with the query's name.

A query whose hits come in several parts has its headings once: what belongs below those behind the first one waits
until all of its parts have come.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, BinaryIO, NamedTuple

import numpy as np

from warpseed.compute.pipeline import mapped
from warpseed.output.hits import Hits
from warpseed.output.lines import Format, Formatter, Group
from warpseed.output.opening import folder_of, open_output, refusal
from warpseed.output.sorting import SortedLines, arrange
from warpseed.output.totals import Totals

__all__ = ["open_grouped"]

_LINES_AT_ONCE = 1 << 17
"""Lines that a thread makes together."""
_HELD = 1 << 26
"""Bytes of a strand's waiting lines that are held in memory; more of them wait in a file without a name."""
_COPIED = 1 << 20
"""Bytes of them that are written at once."""
_HEADING_ROW = np.dtype([("query", "<i8")])


class _Piece(NamedTuple):
    """Hits [low, high) of a batch, and the queries [begin, end) that they are of, counted from the batch's first."""

    begin: int
    end: int
    low: int
    high: int
    continues: bool
    """whether a piece behind has more hits of the last one"""


def _pieces(hits: Hits) -> Iterator[_Piece]:
    """A batch in pieces of few lines; a query without hits is in the piece of the next hit, or in the last."""
    ends = np.cumsum(hits.counts)
    begins = ends - hits.counts
    query = low = 0
    while query < len(begins):
        high = min(low + _LINES_AT_ONCE, len(hits))
        if high == len(hits):
            yield _Piece(query, len(begins), low, high, hits.continues)
            break
        end = int(np.searchsorted(begins, high))
        continues = bool(ends[end - 1] > high)
        yield _Piece(query, end, low, high, continues)
        query, low = end - continues, high


class _Lines(NamedTuple):
    """The lines of a piece, all headings with them."""

    piece: _Piece
    lines: SortedLines
    """place: twice the number of query and strand, one more behind the heading"""

    def text(self, begin: int, end: int) -> memoryview:
        """What stands from a place on, up to another."""
        first, last = np.searchsorted(self.lines.place, np.array([begin, end], np.uint64)).tolist()
        return self.lines.part(first, last).used_text().data


def _lines_of(hits: Hits, groups: Sequence[Group], piece: _Piece) -> _Lines:
    """Lines and headings are formatted kind by kind, then moved to where they belong."""
    rows = hits.rows_of(piece.low, piece.high)
    headings = np.arange(piece.begin, piece.end).view(_HEADING_ROW)
    places, texts, lengths = [], [], []
    for strand, group in enumerate(groups):
        heading = Formatter(group.heading, _HEADING_ROW, {"query": hits.query_names})
        own = rows[rows["strand"] == strand]
        queries = own["query"] - hits.first_query
        for formatter, each, numbers, behind in (
            (heading, headings, headings["query"], 0), (hits.formatter(group.line), own, queries, 1)
        ):  # fmt: skip
            text, sizes = formatter.format_all(each)
            texts.append(text)
            lengths.append(sizes)
            places.append((2 * (len(groups) * (numbers - piece.begin) + strand) + behind).astype(np.uint64))
    place = np.concatenate(places)
    nothing = np.zeros(len(place), np.uint64)
    lines = arrange(place, nothing, nothing.view(np.int64), np.concatenate(lengths), np.concatenate(texts))
    return _Lines(piece, lines)


class _GroupedWriter:
    """A Writer of lines below headings, in the order of the queries, written as they come."""

    line: None = None

    def __init__(
        self, handle: BinaryIO, groups: Sequence[Group], waiting: Sequence[IO[bytes]], where: str, threads: int
    ) -> None:
        self.totals = Totals()
        self._handle = handle
        self._groups = groups
        self._waiting = waiting
        self._where = where
        self._threads = threads
        self._begun = False

    def make(self, hits: Hits) -> list[_Lines]:
        """The lines."""
        return [_lines_of(hits, self._groups, piece) for piece in _pieces(hits)]

    def put(self, hits: Hits, made: list[_Lines] | None = None) -> None:
        """Write the lines, but for what waits for more of the last query."""
        self.totals.add(hits)
        parts: Iterable[_Lines] = made or mapped(
            _pieces(hits), lambda piece: _lines_of(hits, self._groups, piece), self._threads
        )
        for part in parts:
            self._put(part)

    def _put(self, part: _Lines) -> None:
        queries, each = part.piece.end - part.piece.begin, 2 * len(self._groups)
        first, last = int(self._begun), queries - int(part.piece.continues)
        if self._begun:
            self._put_strands(part, 0, 1)
            if last > 0:
                self._put_waiting()
        if first < last:
            self._handle.write(part.text(first * each, last * each))
        if first <= last < queries:
            self._put_strands(part, last, 0)
        self._begun = part.piece.continues

    def _put_strands(self, part: _Lines, query: int, behind: int) -> None:
        """Write the first strand's lines of a query that is in several parts; those of others wait."""
        for strand in range(len(self._groups)):
            place = 2 * (len(self._groups) * query + strand)
            text = part.text(place + behind, place + 2)
            if strand == 0:
                self._handle.write(text)
                continue
            try:
                self._waiting[strand - 1].write(text)
            except OSError as error:
                raise refusal(self._where, error) from error

    def _put_waiting(self) -> None:
        for file in self._waiting:
            file.seek(0)
            shutil.copyfileobj(file, self._handle, _COPIED)
            file.seek(0)
            file.truncate()


@contextmanager
def open_grouped(
    path: str | os.PathLike[str],
    format: Format,
    *,
    threads: int = 1,
    inputs: Sequence[str | os.PathLike[str]] = (),
) -> Iterator[_GroupedWriter]:
    """A writer as `open_writer` gives it, of lines below headings.

    Raises
    ------
    InputError : the file cannot be written, or is one of the inputs
    """
    with open_output(path, inputs, threads=threads) as handle, ExitStack() as stack:
        handle.write(format.heading)
        folder = folder_of(path)
        where = tempfile.gettempdir() if folder is None else os.fspath(folder)
        waiting = [stack.enter_context(tempfile.SpooledTemporaryFile(_HELD, dir=where)) for _ in format.groups[1:]]
        yield _GroupedWriter(handle, format.groups, waiting, where, threads)

"""From text to results: what each thread does with a piece of a source, and in which room.

On the CPU a thread takes a piece and does all there is to do with it: it parses the text, prepares the queries,
searches them and makes of the hits what goes out. Results come out in the order of the queries, and no thread holds
more of them than there is room for: what has none is searched again, fewer queries at once, or a single one in one part
of the text after the other.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from warpseed.compute.pipeline import fed, ordered
from warpseed.compute.sink import WHOLE_TEXT
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.sequences.packed import NamedSet

if TYPE_CHECKING:
    from warpseed.batches import Options
    from warpseed.output.hits import Hits
    from warpseed.output.lines import Line
    from warpseed.output.rows import Found, Result
    from warpseed.sequences.packed import Packed
    from warpseed.sequences.pieces import Piece, Pieces
    from warpseed.sequences.queries import Queries

__all__ = ["Batch", "Done", "Room", "Search", "Sequences", "Tasks"]

_QUERIES_AT_ONCE = 1 << 17
"""Queries that a thread prepares and searches at most."""
_ROOM = 1 << 17
"""Results that it has room for."""
_LARGE_ROOM = 1 << 22
"""Room for the results of a single query, where those do not fit into a thread's."""
_BESIDE_DEVICE = 6
"""Threads that prepare queries and make lines beside a device, at most: more of them wait for the interpreter."""
_SHARES = 4
"""Parts for each thread that the queries of a source are searched in, at least, so that none idles long."""
_LEAST_QUERIES, _LEAST_BASES = 64, 1 << 16
"""Queries that are not worth being dealt out, nor that many bases."""
_TURN = 0.15e-3
"""Seconds of the interpreter that a part takes. Threads have it one after the other: where a part works for less than a
turn of each of them, it waits for its own longer than it works."""
_LEAST_WORK = 2e-3
"""Seconds of work that a part has at least: to hand it to another thread, and back, takes a fraction of them."""
_FILL = 0.75
"""How full the room should be of batches whose results are known about."""


class Room(NamedTuple):
    """What a search has room for."""

    results: int
    """results that can be taken"""
    text: tuple[int, int] = WHOLE_TEXT
    """results are wanted that begin in these positions of the text"""


class Sequences(Protocol):
    """Queries, or what they are cut from when they are wanted."""

    def __len__(self) -> int:
        """How many queries there are."""

    def slice(self, start: int, stop: int) -> Queries:
        """The queries [start, stop)."""


class Search(Protocol):
    """What a system brings: how its queries are prepared and searched. Called from several threads at once."""

    options: Options
    """its threads read, prepare, search and make; one alone is the calling thread"""
    text_length: int
    """positions of the text"""
    on_device: bool
    """whether queries go through `stream` instead of `find`"""
    as_written: bool
    """whether queries are read with what only an output needs: qualities, and letters for several bases"""

    def queries(self, records: Queries, watch: Stopwatch) -> Sequences:
        """What is searched of the records of a source."""

    def pack(self, queries: Queries, first: int) -> Packed:
        """Queries as they are searched; `first` is the number of the first one in its source, for sentences."""

    def find(self, queries: Packed, room: Room, watch: Stopwatch) -> Found:
        """The results of the first queries, as many as have room and take a fraction of a second, which a signal waits
        for; of none where those of the very first have no room. (A search that never returns none holds all results of
        a query at once, and is never asked for a part of the text.)"""

    def stream(
        self, sets: Generator[NamedSet, None, None], watch: Stopwatch, line: Line | None = None
    ) -> Iterator[Result]:
        """The results of sets of queries, in order: those of consecutive queries of one set, part by part, with their
        lines where one is given and a device can make them. Sets are taken in a thread of its own."""

    def hits(self, queries: Queries, found: Found, first: int, continues: bool) -> Hits:
        """What was found of consecutive queries, of which the first has number `first`."""


class Batch(NamedTuple):
    """Consecutive queries and what was found of them."""

    first: int
    """number of the first query in its source"""
    queries: Queries
    found: Found
    continues: bool
    """whether the next batch has more results of the last query, which begin further on in the text"""
    made: Any
    """what was made of it beside the search; None where nothing was to be, or it is large"""


class _Part(NamedTuple):
    """Queries [begin, end) of a piece that are to be searched."""

    sequences: Sequences
    begin: int
    end: int
    room: Room
    continues: bool
    """whether more results of the last query are searched for elsewhere"""
    most: int
    """queries that are searched together, at most"""
    shared: int
    """as many, where threads share a piece, unless so few are not worth a turn"""


class Done(NamedTuple):
    """What a task gives: a batch, numbered from 0, or what has to be said of a mistake where its place is known."""

    watch: Stopwatch
    batch: Batch | None = None
    piece: int = -1
    """number of the piece, where this is the first of it"""
    records: int = 0
    lines: int = 0
    """of the piece, where this is the first of it"""
    fail: Callable[[int, int, int], object] | None = None
    """function of the numbers of records, lines and queries before; it raises the sentence"""


class _Ready(NamedTuple):
    """Queries that can be searched, and the part that they are the first of."""

    queries: Queries
    packed: Packed
    part: _Part


class _Searched(NamedTuple):
    """What a device found of queries from `begin` on, and made of it."""

    ready: _Ready
    begin: int
    result: Result


class Tasks:
    """The tasks of one source, for any of the threads.

    Attributes
    ----------
    threads : how many do each stage
    """

    def __init__(
        self, pieces: Pieces, search: Search, make: Callable[[Hits], Any] | None, line: Line | None = None
    ) -> None:
        self._pieces = pieces
        self._search = search
        self._make = make
        self._line = line
        most = _BESIDE_DEVICE if search.on_device else search.options.threads
        self.threads = min(search.options.threads, most)

    def done(self, watch: Stopwatch) -> Iterator[Done]:
        """What the tasks of the whole source give, in its order; `watch` takes the stages of a device."""
        if self._search.on_device:
            return self._over_device(watch)
        return ordered(self._pieces, self._run, self.threads)

    def _run(self, task: Piece | _Part) -> tuple[Done, Iterable[_Part] | None]:
        """From text to results: a piece, or a part of one that had no room."""
        done, ready = self._prepare(task)
        if ready is None:
            return done, None
        begun = time.perf_counter()
        found = self._search.find(ready.packed, ready.part.room, done.watch)
        took = time.perf_counter() - begun
        settled = len(found.counts)
        if settled:
            queries = ready.queries.slice(0, settled)
            done = done._replace(batch=self._batch(queries, found, ready.part.continues, done.watch))
        return done, self._rest(ready.part, settled, len(found.hits), took)

    def _prepare(self, task: Piece | _Part) -> tuple[Done, _Ready | None]:
        """From text to the first queries that are ready to be searched; none where there are none, or a mistake."""
        watch = Stopwatch()
        done, part = (Done(watch), task) if isinstance(task, _Part) else self._parse(task, watch)
        if part is None or part.begin == part.end:
            return done, None
        with watch.stage("pack"):
            queries = part.sequences.slice(part.begin, min(part.end, part.begin + part.most))
            try:
                return done, _Ready(queries, self._search.pack(queries, 0), part)
            except InputError:
                return done._replace(fail=lambda records, lines, first: self._search.pack(queries, first)), None

    def _parse(self, piece: Piece, watch: Stopwatch) -> tuple[Done, _Part | None]:
        try:
            with watch.stage("read"):
                parsed = self._pieces.parse(piece)
        except InputError:
            fail = partial(self._explain, piece)
            return Done(watch, piece=piece.number, fail=fail), None
        watch.share = self._pieces.share_until(piece)
        sequences = self._search.queries(parsed.queries, watch)
        done = Done(watch, piece=piece.number, records=len(parsed.queries), lines=parsed.lines)
        most = self._most(piece, parsed.queries, len(sequences))
        return done, _Part(sequences, 0, len(sequences), Room(_ROOM), False, most, most)

    def _most(self, piece: Piece, records: Queries, queries: int) -> int:
        """Queries of a piece to search together: where a source has few pieces, threads share each of them."""
        if self.threads == 1 or self._search.on_device:
            return _QUERIES_AT_ONCE
        pieces = (piece.number + 1) / (self._pieces.share_until(piece) or 1.0)
        shares = max(1, int(_SHARES * self.threads / pieces))
        bases = int(records.offsets[-1] - records.offsets[0])
        least = min(_LEAST_QUERIES, max(1, _LEAST_BASES * queries // max(1, bases)))
        return min(_QUERIES_AT_ONCE, max(least, -(-queries // shares)))

    def _explain(self, piece: Piece, records: int, lines: int, queries: int) -> None:
        self._pieces.explain(piece, records, lines)

    def _rest(self, part: _Part, settled: int, results: int, took: float = 0.0) -> Iterator[_Part] | None:
        """What is left of a part, as parts that should have room for their results, and be worth a turn each; `took`
        is how many seconds were spent on what is settled."""
        begin, end, room = part.begin + settled, part.end, part.room
        if begin == end:
            return None
        if settled or end - begin > 1 or room.results < _LARGE_ROOM:
            tried = min(end - part.begin, part.most)
            part = part._replace(begin=begin, most=max(part.shared, self._worth(settled, took)))
            most = int(_FILL * room.results * settled / max(1, results)) if settled else part.most
            most = max(1, min(most, part.most))
            return _parts(part, most if settled == tried else max(1, settled), most)
        low, high = room.text[0], min(room.text[1], self._search.text_length)
        if high - low == 1:  # what begins at one place of the text is no more than the query has places
            return iter([part._replace(room=Room(2 * room.results, room.text))])
        middle = (low + high) // 2
        left = part._replace(room=Room(_LARGE_ROOM, (low, middle)), continues=True)
        return iter([left, part._replace(room=Room(_LARGE_ROOM, (middle, high)))])

    def _worth(self, settled: int, took: float) -> int:
        """Queries that are worth a turn, where so many took so long, a turn among it; 0 where that is not known."""
        if not (settled and took):
            return 0
        worth, work = max(_TURN * self.threads, _LEAST_WORK), took - _TURN
        return int(min(settled * worth / work, _QUERIES_AT_ONCE)) if work > 0 else _QUERIES_AT_ONCE

    def _batch(
        self, queries: Queries, found: Found, continues: bool, watch: Stopwatch, text: memoryview | None = None
    ) -> Batch:
        """Results as a batch, with what is to be made of them unless they are many; their lines may be there."""
        made = None if text is None else [text]
        if text is None and self._make is not None and len(found.hits) <= 2 * _ROOM:
            with watch.stage("format"):
                made = self._make(self._search.hits(queries, found, 0, continues))
        return Batch(0, queries, found, continues, made)

    def _over_device(self, watch: Stopwatch) -> Iterator[Done]:
        """Threads prepare queries and take up results; between them the device searches."""
        waiting: deque[tuple[Done, _Ready | None]] = deque()

        def prepare(task: Piece | _Part) -> tuple[tuple[Done, _Ready | None], Iterable[_Part] | None]:
            done, ready = self._prepare(task)
            return (done, ready), None if ready is None else self._rest(ready.part, len(ready.queries), 0)

        def sets() -> Generator[NamedSet, None, None]:
            prepared: tuple[Done, _Ready | None]
            for prepared in ordered(self._pieces, prepare, self.threads):
                waiting.append(prepared)
                if prepared[1] is not None:
                    queries, packed, _ = prepared[1]
                    yield NamedSet(packed, queries.names)

        def found() -> Iterator[tuple[Done, _Searched | None]]:
            begin = 0
            for result in self._search.stream(sets(), watch, self._line):
                while waiting[0][1] is None:
                    yield waiting.popleft()[0], None
                done, ready = waiting.popleft()
                assert ready is not None
                yield done, _Searched(ready, begin, result)
                begin += len(result.found.counts) - result.continues
                if begin < len(ready.queries):
                    waiting.appendleft((Done(Stopwatch()), ready))
                else:
                    begin = 0
            for done, _ in waiting:
                yield done, None

        def finish(task: tuple[Done, _Searched | None]) -> Done:
            done, part = task
            if part is None:
                return done
            results, continues, text = part.result
            queries = part.ready.queries.slice(part.begin, part.begin + len(results.counts))
            return done._replace(batch=self._batch(queries, results, continues, done.watch, text))

        return fed(found(), finish, self.threads)


def _parts(part: _Part, size: int, most: int) -> Iterator[_Part]:
    """A part as parts that follow each other: of `size` queries, then of twice as many each time, of at most `most`.

    So little is tried again where one part fails as the first had, and few parts are made where none does. A query that
    is alone has a large room at once.
    """
    begin = part.begin
    while begin < part.end:
        size = min(size, most, part.end - begin)
        yield part._replace(begin=begin, end=begin + size, room=Room(_ROOM if size > 1 else _LARGE_ROOM))
        begin, size = begin + size, 2 * size

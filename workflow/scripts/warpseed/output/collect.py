"""Hits of a set of queries, whose number is not known beforehand, from searches of ranges on several threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from warpseed.compute.ranges import fill_in_parts, run_ranges
from warpseed.compute.sink import NO_LIMIT, WHOLE_TEXT, Sink, limit_of
from warpseed.output.rows import Found, joined_parts
from warpseed.sequences.packed import Packed, part_of

__all__ = ["RangeSearch", "search_first"]

_MOST_WORK = 1 << 23
"""Look-ups and candidates of `RangeSearch.first`, besides what its last query has: a fraction of a second."""
_Result = TypeVar("_Result")

_Searcher: TypeAlias = "Callable[[int, int, int, tuple[np.ndarray, np.ndarray]], tuple[int, np.ndarray, int]]"
"""``search(first, last, room, (counts, dropped))`` searches the queries [first, last) as far as there is room; it fills
in their counts and adds to what was dropped (see `warpseed.compute.sink.Sink`), and returns the query it stopped at,
the hits, and the room that this query needs."""


def _collect_first(count: int, room: int, search: _Searcher) -> Found:
    """The hits of the first of `count` queries, as many as `search` does at once with room for so many hits; of none
    where those of the very first have no room."""
    counts, dropped = np.zeros(count, np.int64), np.zeros(2, np.int64)
    stop, hits, _ = search(0, count, room, (counts, dropped))
    return Found(hits if 2 * len(hits) > room else hits.copy(), counts[:stop], *map(int, dropped))


def _collect_found(
    count: int, threads: int, room: int, new_searcher: Callable[[], _Searcher], hit_type: Any = np.uint64
) -> Found:
    """The hits of `count` queries.

    Parameters
    ----------
    room : int, hits a query that there is room for at first; 0 where only counts are asked for
    hit_type : type of the hits
    new_searcher : makes the searcher of one range, with working arrays of its own
    """

    def task(first: int, last: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        counts, dropped = np.zeros(last - first, np.int64), np.zeros(2, np.int64)
        search = new_searcher()

        def fill(begin: int, room: int) -> tuple[int, np.ndarray, int]:
            return search(begin, last, room, (counts[begin - first :], dropped))

        return fill_in_parts(first, last, room * (last - first) + 64 if room else 0, fill), counts, dropped

    results = run_ranges(count, threads, task)
    return Found(
        joined_parts([part for parts, _, _ in results for part in parts], hit_type, threads),
        joined_parts([counts for _, counts, _ in results], np.int64, threads),
        int(sum(dropped[0] for _, _, dropped in results)),
        int(sum(dropped[1] for _, _, dropped in results)),
    )


class RangeSearch(NamedTuple):
    """A compiled search of ranges of queries, whose hits go to a Sink."""

    run: Callable[..., tuple[int, int, int]]
    """``run(*shared, block, first, last, sink)`` searches the queries [first, last) as far as there is room and work is
    left, and returns the query it stopped at, the hits used, and the room that this query needs"""
    shared: tuple[Any, ...]
    """what all threads read"""
    new_block: Callable[[], Any]
    """makes the working arrays of one thread"""
    queries: int
    """how many there are"""
    hit_type: Any = np.uint64
    """type of the hits"""

    def _searcher(
        self,
        max_hits: int | None,
        *,
        store: bool = True,
        window: tuple[int, int] = WHOLE_TEXT,
        most_work: int = NO_LIMIT,
    ) -> _Searcher:
        block = self.new_block()

        def search(
            first: int, last: int, room: int, into: tuple[np.ndarray, np.ndarray]
        ) -> tuple[int, np.ndarray, int]:
            sink = Sink(np.empty(room, self.hit_type), *into, limit_of(max_hits), store, *window, most_work)
            stop, used, needed = self.run(*self.shared, block, first, last, sink)
            return stop, sink.hits[:used], needed

        return search

    def all(self, threads: int, *, max_hits: int | None, guess: int, count_only: bool = False) -> Found:
        """The hits of all queries, or with `count_only` their numbers; `guess` is how many a query has, about."""
        room, new_searcher = 0 if count_only else guess, partial(self._searcher, max_hits, store=not count_only)
        return _collect_found(self.queries, threads, room, new_searcher, self.hit_type)

    def first(self, room: int, window: tuple[int, int], *, max_hits: int | None) -> Found:
        """The hits of the first queries that begin in these positions of the text, as many as have room and are soon
        done; of none where those of the very first have no room."""
        # A part of the text does not show all hits of a query: whether it is dropped was decided in the whole of it.
        limit = max_hits if window == WHOLE_TEXT else None
        return _collect_first(self.queries, room, self._searcher(limit, window=window, most_work=_MOST_WORK))


def search_first(
    queries: Packed, room: int, search: Callable[[Packed], _Result], counts_of: Callable[[_Result], np.ndarray]
) -> tuple[Packed, _Result]:
    """The first queries whose hits have so much room, at least one, and what a search of them finds: one that holds all
    hits of its queries at once.

    Parameters
    ----------
    counts_of : function of what was found that gives the hits of each query, int64[n]
    """
    found = search(queries)
    stop = max(1, int(np.searchsorted(np.cumsum(counts_of(found)), room, side="right")))
    if stop >= len(queries.lengths):
        return queries, found
    # Those behind are searched again in the next batch, and dropped there.
    queries = part_of(queries, 0, stop)
    return queries, search(queries)

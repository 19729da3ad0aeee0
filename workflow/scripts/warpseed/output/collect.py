"""Hits of a set of queries, whose number is not known beforehand, from searches of ranges on several threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from warpseed.compute.ranges import fill_in_parts, run_ranges
from warpseed.output.rows import Found

__all__ = ["Searcher", "collect_first", "collect_found", "first_that_fit", "joined_parts"]

Searcher: TypeAlias = "Callable[[int, int, int, tuple[np.ndarray, np.ndarray]], tuple[int, np.ndarray, int]]"
"""``search(first, last, room, (counts, dropped))`` searches the queries [first, last) as far as there is room; it fills
in their counts and adds to what was dropped (see `warpseed.compute.sink.Sink`), and returns the query it stopped at,
the hits, and the room that this query needs."""


def joined_parts(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    """Arrays one behind the other; an empty one where there are none."""
    return np.concatenate([np.empty(0, dtype), *parts])


def first_that_fit(counts: np.ndarray, room: int) -> int:
    """How many of the first queries have their hits (int64[n], of each) in so much room; at least one."""
    return max(1, int(np.searchsorted(np.cumsum(counts), room, side="right")))


def collect_first(count: int, room: int, search: Searcher) -> Found:
    """The hits of the first of `count` queries, as many as `search` does at once with room for so many hits; of none
    where those of the very first have no room."""
    counts, dropped = np.zeros(count, np.int64), np.zeros(2, np.int64)
    stop, hits, _ = search(0, count, room, (counts, dropped))
    return Found(hits if 2 * len(hits) > room else hits.copy(), counts[:stop], *map(int, dropped))


def collect_found(count: int, threads: int, room: int, new_searcher: Callable[[], Searcher]) -> Found:
    """The hits of `count` queries.

    Parameters
    ----------
    room : int, hits a query that there is room for at first; 0 where only counts are asked for
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
        joined_parts([part for parts, _, _ in results for part in parts], np.uint64),
        joined_parts([counts for _, counts, _ in results], np.int64),
        int(sum(dropped[0] for _, _, dropped in results)),
        int(sum(dropped[1] for _, _, dropped in results)),
    )

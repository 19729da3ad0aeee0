"""Where searches put hits, and how those of each query are settled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar
from warpseed.compute.sorting import sort_range

__all__ = ["NO_LIMIT", "WHOLE_TEXT", "Sink", "close_queries", "limit_of"]

NO_LIMIT = np.iinfo(np.int64).max
WHOLE_TEXT = (0, 1 << 62)
"""Every position of a text."""


def limit_of(number: int | None) -> int:
    """A limit as compiled code takes it; None is none."""
    return NO_LIMIT if number is None else number


class Sink(NamedTuple):
    """Where the hits of a range of queries go."""

    hits: np.ndarray
    """[room], as their system packs them, in output order when ascending: uint64, or what its own type is"""
    counts: np.ndarray
    """int64[queries of the range], hits of each, 0 for one that was dropped"""
    dropped: np.ndarray
    """int64[2], dropped queries and their hits, as far as these were counted"""
    max_hits: int
    store: bool
    """False where only counts are asked for"""
    begin: int
    """hits are those that begin in the text from here on"""
    end: int
    """and before here"""
    work: int
    """look-ups and candidates behind which no further query is begun"""


@scalar
def close_queries(found, begin, end, first, sink, used):
    """Settle the queries [begin, end) of a range from `first` on: drop, sort and move together.

    Returns
    -------
    (next query, hits used, room that it needs) : it stops at the first query whose hits did not fit
    """
    read = used
    for query in range(begin, end):
        count = found[query - begin]
        if count > sink.max_hits:
            sink.counts[query - first] = 0
            sink.dropped[0] += 1
            sink.dropped[1] += count
            read += sink.max_hits if sink.store else 0
            continue
        if sink.store:
            if read + count > sink.hits.shape[0]:
                return query, used, count
            if read != used:
                for i in range(count):
                    sink.hits[used + i] = sink.hits[read + i]
            sort_range(sink.hits, used, used + count)
            read += count
            used += count
        sink.counts[query - first] = count
    return end, used, int64(0)

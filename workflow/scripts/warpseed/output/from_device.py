"""What searches on devices find of packed queries: at once, or part by part as the line takes it, in their order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from warpseed.compute.device_batches import run_batches
from warpseed.compute.device_stream import Share, Source, StreamRun, stream_batches
from warpseed.compute.gpu import pinned
from warpseed.compute.stopwatch import Stopwatch
from warpseed.output.rows import Found, join_found
from warpseed.sequences.packed import Packed, join_packed, part_of

__all__ = ["DeviceHits", "Result", "Start", "find_results", "packed_bytes", "stream_results"]

_ROOM = 1 << 17
"""Hits that are handed on together at most: what of them is made into lines is made beside the search."""
_CHUNK = 1 << 20
"""Hits that are copied to the host together."""

Result: TypeAlias = tuple[Found, bool]
"""What was found of consecutive queries, and whether the next result has more hits of the last one."""


class DeviceHits(NamedTuple):
    """Hits on the device, query by query."""

    hits: Any
    """uint64[h], as their system packs them; empty where only counts were asked for"""
    counts: Any
    """uint32[n] or uint64[n], hits of each query, 0 for one that was dropped"""
    results: int
    dropped_queries: int
    dropped_hits: int

    def found(self) -> Found:
        """The same on the host."""
        return Found(self.hits.get(), self.counts.get().astype(np.int64), self.dropped_queries, self.dropped_hits)


class _Cut(NamedTuple):
    """Queries [begin, end) of a batch with their hits [low, high)."""

    begin: int
    end: int
    low: int
    high: int
    continues: bool
    """whether the last query has more hits, behind these"""


def _cuts(borders: np.ndarray, sizes: Iterable[int]) -> Iterator[_Cut]:
    """A batch in parts of at most _ROOM hits, none of which holds queries of two shares.

    Parameters
    ----------
    borders : int64[n + 1], where the hits of each query begin
    sizes : queries of each share
    """
    query = border = 0
    for size in sizes:
        border += size
        low = int(borders[query])
        while query < border:
            end = min(int(np.searchsorted(borders, low + _ROOM, side="right")) - 1, border)
            if end > query:
                yield _Cut(query, end, low, int(borders[end]), False)
                query, low = end, int(borders[end])
            else:
                yield _Cut(query, query + 1, low, low + _ROOM, True)
                low += _ROOM


def _in_parts(
    counts: np.ndarray, dropped: tuple[int, int], sizes: Iterable[int], hits_of: Callable[[int, int], np.ndarray]
) -> Iterator[list[Result]]:
    """The results of a batch, chunk by chunk as they are asked for.

    Parameters
    ----------
    counts : int64[n], hits of each query
    dropped : queries of the batch that had too many hits, and their hits; the first result has them
    sizes : queries of each share
    hits_of : function of (low, high) that brings these hits of the batch
    """
    borders = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=borders[1:])

    def bring(cuts: list[_Cut]) -> list[Result]:
        nonlocal dropped
        first = cuts[0].low
        hits = hits_of(first, cuts[-1].high)
        results = []
        for begin, end, low, high, continues in cuts:
            # Of a query that is cut, these are the hits that are here.
            here = np.diff(np.clip(borders[begin : end + 1], low, high))
            results.append((Found(hits[low - first : high - first], here, *dropped), continues))
            dropped = (0, 0)
        return results

    chunk: list[_Cut] = []
    for cut in _cuts(borders, sizes):
        if chunk and cut.high - chunk[0].low > _CHUNK:
            yield bring(chunk)
            chunk = []
        chunk.append(cut)
    if chunk:
        yield bring(chunk)


def _from_device(found: DeviceHits, sizes: Iterable[int], watch: Stopwatch) -> Iterator[list[Result]]:
    """Hits that lie on the device in output order, through pinned memory: parts of it are what the results hold."""

    def hits_of(low: int, high: int) -> np.ndarray:
        hits = pinned(high - low, np.uint64)
        if len(hits):
            with watch.stage("device_to_host"):
                found.hits[low:high].get(out=hits)
        return hits

    with watch.stage("device_to_host"):
        counts = found.counts.get(out=pinned(len(found.counts), found.counts.dtype)).astype(np.int64)
    return _in_parts(counts, (found.dropped_queries, found.dropped_hits), sizes, hits_of)


Start: TypeAlias = "Callable[[Stopwatch], Callable[[Packed], DeviceHits | Found]]"
"""What brings to the current device what all sets share, and returns what searches a set that lies on the host."""


def packed_bytes(queries: Packed) -> int:
    """Bytes of a packed query, on average."""
    return sum(array.nbytes for array in queries) // max(1, len(queries.lengths))


def find_results(
    queries: Packed, start: Start, bytes_each: int, *, watch: Stopwatch, devices: Sequence[int] = (0,)
) -> Found:
    """What is found of packed queries, from the host's memory to the host's memory.

    Parameters
    ----------
    start : Start, called once on each device
    bytes_each : device memory that a query and its results take, about
    watch : takes the seconds of each stage (see `run_batches`)
    devices : numbers of the GPUs that share the queries
    """

    def begin(watch: Stopwatch) -> Callable[[int, int], Found]:
        search = start(watch)

        def run(first: int, last: int) -> Found:
            found = search(part_of(queries, first, last))
            if isinstance(found, Found):
                return found
            with watch.stage("device_to_host"):
                return found.found()

        return run

    return join_found(run_batches(len(queries.lengths), bytes_each, begin, watch=watch, devices=devices))


def _start(start: Start, watch: Stopwatch) -> StreamRun[Packed, Result]:
    search = start(watch)

    def run(shares: list[Share[Packed]]) -> Iterator[list[Result]]:
        with watch.stage("join"):
            parts = [part_of(work, begin, end) for work, begin, end in shares]
            queries, sizes = join_packed(parts, pinned), [len(part.lengths) for part in parts]
        found = search(queries)
        if isinstance(found, DeviceHits):
            return _from_device(found, sizes, watch)
        dropped = found.dropped_queries, found.dropped_hits
        return _in_parts(found.counts, dropped, sizes, lambda low, high: found.hits[low:high])

    return run


def stream_results(
    works: Generator[Packed, None, None],
    start: Start,
    bytes_each: Callable[[Packed], int],
    *,
    watch: Stopwatch,
    devices: Sequence[int] = (0,),
) -> Iterator[Result]:
    """What is found of sets of packed queries, in their order.

    Parameters
    ----------
    works : sets of at least one query, taken one by one in a thread of its own
    start : Start, called twice on each device
    bytes_each : device memory that a query of a set and its results take, about
    watch : takes the seconds of each stage (see `stream_batches`)
    devices : numbers of the GPUs that share the queries

    Yields
    ------
    (Found, bool) : what was found of consecutive queries of one set, and whether the next result has more hits of the
        last one. The hits may lie in pinned memory, which is given back with them. How many queries were dropped is
        said of several results at once, in one of them.
    """
    source = Source(works, lambda queries: len(queries.lengths), bytes_each)
    return stream_batches(source, partial(_start, start), watch=watch, devices=devices)

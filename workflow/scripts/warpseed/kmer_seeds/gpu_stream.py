"""Sets of k-mers that come one by one, searched on GPUs while others are read and the hits of earlier ones written."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from warpseed.compute.device_stream import Run, Share, Source, stream_batches
from warpseed.compute.gpu import pinned
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.layout import SeedIndex
from warpseed.kmer_seeds.gpu import DeviceHits, FastSearch, Search, bytes_each, paper_batch, search_for
from warpseed.output.rows import Found
from warpseed.sequences.packed import Packed, join_packed, part_of

__all__ = ["stream_hits"]

_ROOM = 1 << 17
"""Hits that are handed on together at most: what of them is made into lines is made beside the search."""
_CHUNK = 1 << 20
"""Hits that are copied to the host together."""

Result: TypeAlias = tuple[Found, bool]
"""What was found of consecutive k-mers, and whether the next result has more hits of the last one."""


class _Cut(NamedTuple):
    """k-mers [begin, end) of a batch with their hits [low, high)."""

    begin: int
    end: int
    low: int
    high: int
    continues: bool
    """whether the last k-mer has more hits, behind these"""


def _cuts(borders: np.ndarray, sizes: Iterable[int]) -> Iterator[_Cut]:
    """A batch in parts of at most _ROOM hits, none of which holds k-mers of two shares.

    Parameters
    ----------
    borders : int64[n + 1], where the hits of each k-mer begin
    sizes : k-mers of each share
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


def _results(
    counts: np.ndarray, dropped: tuple[int, int], sizes: Iterable[int], hits_of: Callable[[int, int], np.ndarray]
) -> Iterator[list[Result]]:
    """The results of a batch, chunk by chunk as they are asked for.

    Parameters
    ----------
    counts : int64[n], hits of each k-mer
    dropped : k-mers of the batch that had too many hits, and their hits; the first result has them
    sizes : k-mers of each share
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
            # Of a k-mer that is cut, these are the hits that are here.
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
        counts = found.counts.get(out=pinned(len(found.counts), np.uint32)).astype(np.int64)
    return _results(counts, (found.dropped_queries, found.dropped_hits), sizes, hits_of)


def _joined(shares: Sequence[Share[Packed]], empty: Callable[[int, type], np.ndarray]) -> tuple[Packed, list[int]]:
    """The k-mers of shares as one set, and how many each has."""
    parts = [part_of(work, begin, end) for work, begin, end in shares]
    return join_packed(parts, empty), [len(part.lengths) for part in parts]


def _start_fast(index: SeedIndex, search: Search, watch: Stopwatch) -> Run[Packed, Result]:
    fast = FastSearch(index, search, watch)

    def run(shares: list[Share[Packed]]) -> Iterator[list[Result]]:
        with watch.stage("join"):
            kmers, sizes = _joined(shares, pinned)
        return _from_device(fast.sorted_hits(kmers), sizes, watch)

    return run


def _start_paper(index: SeedIndex, search: Search, threads: int, watch: Stopwatch) -> Run[Packed, Result]:
    run_batch = paper_batch(index, search, threads, watch)

    def run(shares: list[Share[Packed]]) -> Iterator[list[Result]]:
        with watch.stage("join"):
            kmers, sizes = _joined(shares, np.empty)
        hits, counts, *dropped = run_batch(kmers)
        return _results(counts, (dropped[0], dropped[1]), sizes, lambda low, high: hits[low:high])

    return run


def stream_hits(
    index: SeedIndex,
    works: Generator[Packed, None, None],
    max_mismatches: int,
    *,
    tier: str,
    threads: int = 1,
    max_hits: int | None = None,
    watch: Stopwatch,
    devices: Sequence[int] = (0,),
) -> Iterator[Result]:
    """All hits of sets of packed k-mers, in their order.

    Parameters
    ----------
    works : sets of at least one k-mer, taken one by one in a thread of its own
    tier : 'fast' or 'paper'
    threads : CPU threads that look up RSA, in the paper tier
    max_hits : a k-mer with more hits loses them all
    watch : takes the seconds of each stage (see `stream_batches`)
    devices : numbers of the GPUs that share the k-mers

    Yields
    ------
    (Found, bool) : the hits of consecutive k-mers of one set, and whether the next result has more hits of the last
        one. The hits may lie in pinned memory, which is given back with them. How many k-mers were dropped is said of
        several results at once, in one of them.
    """
    search = search_for(max_mismatches, max_hits)
    if tier == "fast":
        start: Callable[[Stopwatch], Run[Packed, Result]] = partial(_start_fast, index, search)
    else:
        start = partial(_start_paper, index, search, threads)
    source = Source(works, lambda kmers: len(kmers.lengths), lambda kmers: bytes_each(kmers, search))
    return stream_batches(source, start, watch=watch, devices=devices)

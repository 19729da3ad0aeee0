"""What searches on devices find of packed queries: at once, or part by part as they are asked for, in order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Generic, NamedTuple, TypeAlias, TypedDict, TypeVar

import numpy as np

from warpseed.compute.device_batches import run_batches, share_of
from warpseed.compute.device_copies import copied_to_host, sent_from_host
from warpseed.compute.device_marks import marked_on_device
from warpseed.compute.device_stream import Share, Source, StreamRun, stream_batches
from warpseed.compute.gpu import cupy, current_device, device_errors, is_out_of_memory, on_device, synchronize
from warpseed.compute.locked_memory import locked, parts_by_line, pinned
from warpseed.compute.ranges import borders_of
from warpseed.compute.sink import limit_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.output.device_lines import DeviceLines, LinesWanted
from warpseed.output.rows import Found, Result, join_found
from warpseed.sequences.names import Names
from warpseed.sequences.packed import NamedSet, Packed, join_packed, part_of, view_of

__all__ = [
    "DeviceArguments",
    "DeviceHits",
    "DeviceOptions",
    "Request",
    "Start",
    "brought",
    "find_results",
    "packed_bytes",
    "stream_results",
]

_ROOM = 1 << 17
"""Hits that are handed on together at most where the host makes their lines, beside the search."""
_SHORT_BYTES = 64
"""Bytes of a packed query of some 200 bases, which is a short one."""
_CHUNK = 1 << 20
"""Hits that are copied to the host together; their lines are made together, too."""

_Criteria = TypeVar("_Criteria")


class Request(NamedTuple, Generic[_Criteria]):
    """What is asked of every query."""

    criteria: _Criteria
    """what a hit is held to, as its system has it"""
    max_hits: int
    """a query with more hits loses them all; NO_LIMIT where none does"""
    count_only: bool = False
    threads: int = 1
    """CPU threads that bring the queries of a batch to the device, where they are not there yet"""


class DeviceArguments(TypedDict, total=False):
    """DeviceOptions as callers give them, by their names."""

    threads: int
    max_hits: int | None
    count_only: bool
    watch: Stopwatch | None
    devices: Sequence[int]


class DeviceOptions(NamedTuple):
    """How any system is to search on GPUs, whatever its criteria."""

    threads: int = 1
    """CPU threads: they bring results to the host's memory, and do what a tier leaves to the CPU"""
    max_hits: int | None = None
    """a query with more hits loses them all; None keeps every hit"""
    count_only: bool = False
    """whether numbers of hits are all that is wanted"""
    watch: Stopwatch | None = None
    """takes the seconds of each stage"""
    devices: Sequence[int] = (0,)
    """numbers of the GPUs that share the queries"""

    @property
    def threads_each(self) -> int:
        """CPU threads for each GPU."""
        return max(1, self.threads // len(self.devices))

    def request(self, criteria: _Criteria) -> Request[_Criteria]:
        """What is asked of every query."""
        return Request(criteria, limit_of(self.max_hits), self.count_only, self.threads_each)


class DeviceHits(NamedTuple):
    """Hits on the device, query by query."""

    hits: Any
    """uint64[h], as their system packs them, or several words for each; empty where only counts were asked for"""
    counts: Any
    """uint32[n], uint64[n] or int64[n], hits of each query, 0 for one that was dropped"""
    results: int
    dropped_queries: int
    dropped_hits: int
    hit_type: np.dtype = np.dtype(np.uint64)
    """type of a hit, of one or more words"""

    def part(self, low: int, high: int) -> Any:
        """The words of the hits [low, high)."""
        words = self.hit_type.itemsize // 8
        return self.hits[words * low : words * high]

    def found(self, threads: int = 1) -> Found:
        """The same on the host, brought there by so many threads."""
        hits = copied_to_host(self.hits, threads).view(self.hit_type)
        counts = copied_to_host(self.counts.astype(np.int64), threads)
        return Found(hits, counts, self.dropped_queries, self.dropped_hits)

    def bring(self, hits: np.ndarray, counts: np.ndarray) -> None:
        """Begin to copy the words of the hits, uint64[…], and the counts, which have to be int64[n], to the host from
        the current device, on this thread's stream."""
        for there, here in ((self.counts, counts), (self.hits, hits)):
            for part in parts_by_line(here):
                if len(here[part]):
                    there[part].get(out=here[part], blocking=False)


class _Cut(NamedTuple):
    """Queries [begin, end) of a batch with their hits [low, high)."""

    begin: int
    end: int
    low: int
    high: int
    continues: bool
    """whether the last query has more hits, behind these"""


def _cuts(borders: np.ndarray, sizes: Iterable[int], room: int) -> Iterator[_Cut]:
    """A batch in parts of at most `room` hits, none of which holds queries of two shares.

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
            end = min(int(np.searchsorted(borders, low + room, side="right")) - 1, border)
            if end > query:
                yield _Cut(query, end, low, int(borders[end]), False)
                query, low = end, int(borders[end])
            else:
                yield _Cut(query, query + 1, low, low + room, True)
                low += room


def _in_parts(
    counts: np.ndarray,
    dropped: tuple[int, int],
    sizes: Iterable[int],
    hits_of: Callable[[int, int], np.ndarray],
    texts_of: Callable[[int, np.ndarray], Sequence[memoryview | None]] | None = None,
) -> Iterator[list[Result]]:
    """The results of a batch, chunk by chunk as they are asked for.

    Parameters
    ----------
    counts : int64[n], hits of each query
    dropped : queries of the batch that had too many hits, and their hits; the first result has them
    sizes : queries of each share
    hits_of : function of (low, high) that brings these hits of the batch
    texts_of : function of (low, borders) that brings the lines of the hits between borders, counted from the first on,
        or None for each
    """
    borders = borders_of(counts)

    def bring(cuts: list[_Cut]) -> list[Result]:
        nonlocal dropped
        first = cuts[0].low
        hits = hits_of(first, cuts[-1].high)
        ends = np.array([first, *(cut.high for cut in cuts)]) - first
        texts = texts_of(first, ends) if texts_of is not None else [None] * len(cuts)
        results = []
        for (begin, end, low, high, continues), text in zip(cuts, texts, strict=True):
            # Of a query that is cut, these are the hits that are here.
            here = np.diff(np.clip(borders[begin : end + 1], low, high))
            results.append(Result(Found(hits[low - first : high - first], here, *dropped), continues, text))
            dropped = (0, 0)
        return results

    chunk: list[_Cut] = []
    for cut in _cuts(borders, sizes, _ROOM if texts_of is None else _CHUNK):
        if chunk and cut.high - chunk[0].low > _CHUNK:
            yield bring(chunk)
            chunk = []
        chunk.append(cut)
    if chunk:
        yield bring(chunk)


def _from_device(
    found: DeviceHits, sizes: Iterable[int], lines: DeviceLines | None, watch: Stopwatch
) -> Iterator[list[Result]]:
    """Hits that lie on the device in output order, through pinned memory: parts of it are what the results hold."""

    def hits_of(low: int, high: int) -> np.ndarray:
        words = found.part(low, high)
        hits = pinned(len(words), np.uint64)
        if len(hits):
            with watch.stage("device_to_host"):
                words.get(out=hits)
        return hits.view(found.hit_type)

    with watch.stage("device_to_host"):
        counts = found.counts.get(out=pinned(len(found.counts), found.counts.dtype)).astype(np.int64)
    texts_of = None if lines is None else lines.texts
    return _in_parts(counts, (found.dropped_queries, found.dropped_hits), sizes, hits_of, texts_of)


Start: TypeAlias = "Callable[[Stopwatch], Callable[[Packed], DeviceHits | Iterator[DeviceHits] | Found]]"
"""What brings to the current device what all sets share, and returns what searches a set that lies on the host, or in a
fast tier on the device. Of a single query it may give the hits of one part of the text after the other, where they
would not fit together."""


def packed_bytes(queries: Packed) -> int:
    """Bytes of a packed query, on average."""
    return sum(array.nbytes for array in queries) // max(1, len(queries.lengths))


@contextmanager
def brought(queries: Packed, first: int, last: int, threads: int, watch: Stopwatch) -> Iterator[Packed]:
    """Queries [first, last), which lie on the host or on the current device, as CuPy arrays there, for a block; stage
    host_to_device. They may be on their way yet, on this thread's stream, and are there when the block ends: what the
    block does before it needs them is done meanwhile."""
    part, before = view_of(queries, first, last)
    with marked_on_device(watch) as mark:
        try:
            there = sent_from_host(part, threads)
            if before:
                there = there._replace(first=there.first - cupy().uint32(before))
            mark("host_to_device")
            yield there
        finally:
            synchronize()  # (whatever failed: nothing is copied any more from what the caller may let go)


def find_results(
    queries: Packed, start: Start, bytes_each: int, options: DeviceOptions, *, takes_device: bool = False
) -> Found:
    """What is found of packed queries, from the host's memory to the host's memory.

    Parameters
    ----------
    start : Start, called once on each device
    bytes_each : device memory that a query and its results take, about
    options : whose watch takes the seconds of each stage (see `run_batches`)
    takes_device : whether the searches take queries that lie on the device, too, which then are brought there as they
        lie on the host
    """
    watch, count, devices = options.watch or Stopwatch(), len(queries.lengths), len(options.devices)

    def begin(watch_here: Stopwatch) -> Callable[[int, int], Found | _There]:
        search = start(watch_here)

        def run(first: int, last: int) -> Found | _There:
            if takes_device:
                with brought(queries, first, last, options.threads_each, watch_here) as part:
                    found = search(part)
            else:
                found = search(part_of(queries, first, last))
            if isinstance(found, Found):
                return found
            if not isinstance(found, DeviceHits):
                return _joined([part.found() for part in found])
            # A device's whole share waits there until it is known how many hits come before; so does what ends a set.
            if last - first == share_of(count, devices) or (devices > 1 and last == count):
                counts = found.counts.astype(np.int64, copy=False)  # here, where a batch may be halved yet
                return _There(current_device(), found._replace(counts=counts))
            with watch_here.stage("device_to_host"):
                return found.found(options.threads_each)

        return run

    parts = run_batches(count, bytes_each, begin, watch=watch, devices=options.devices)
    there = [part for part in parts if isinstance(part, _There)]
    if there and len(there) == len(parts):
        return _to_host(there, options, watch)
    here = [part if isinstance(part, Found) else part.found_here(options.threads, watch) for part in parts]
    if len(here) == 1:
        return here[0]
    with watch.stage("join"):
        return join_found(here, options.threads)


class _There(NamedTuple):
    """Hits of a batch that are still on the device that found them."""

    device: int
    found: DeviceHits

    def found_here(self, threads: int, watch: Stopwatch) -> Found:
        """The same on the host."""
        with on_device(self.device), watch.stage("device_to_host"):
            return self.found.found(threads)


def _to_host(parts: list[_There], options: DeviceOptions, watch: Stopwatch) -> Found:
    """The hits of consecutive batches, from all devices at once into the arrays that hold them together."""
    found = [part.found for part in parts]
    hit_ends, count_ends = (np.cumsum([*map(len, each)]) for each in zip(*(each[:2] for each in found), strict=True))
    with device_errors(), watch.stage("device_to_host"), ExitStack() as copying:
        with cupy().cuda.Device(parts[0].device):
            # In one piece: a copy to memory that is not locked, as that of counts alone may be, is waited for.
            memory = locked(int(hit_ends[-1]) + int(count_ends[-1]), np.uint64, options.threads)
        hits, counts = memory[: hit_ends[-1]], memory[hit_ends[-1] :].view(np.int64)
        shares = zip(parts, np.split(hits, hit_ends[:-1]), np.split(counts, count_ends[:-1]), strict=True)
        for (device, each), hits_here, counts_here in shares:
            copying.callback(_wait_for, device)
            with cupy().cuda.Device(device):
                each.bring(hits_here, counts_here)
    dropped = sum(each.dropped_queries for each in found), sum(each.dropped_hits for each in found)
    return Found(hits.view(found[0].hit_type), counts, *dropped)


def _wait_for(device: int) -> None:
    """As `synchronize`, of a device that need not be the current one."""
    with cupy().cuda.Device(device):
        synchronize()


def _joined(parts: list[Found]) -> Found:
    """The hits of a single query in parts of the text, together."""
    hits, counts, dropped_queries, dropped_hits = zip(*parts, strict=True)
    return Found(np.concatenate(hits), np.sum(counts, axis=0), sum(dropped_queries), sum(dropped_hits))


def _in_turn(parts: Iterator[DeviceHits], watch: Stopwatch) -> Iterator[list[Result]]:
    """The hits of a single query in parts of the text, each brought here before the next is searched."""
    waiting: Result | None = None
    for part in parts:
        for results in _from_device(part, [1], None, watch):
            if waiting is not None:
                yield [waiting._replace(continues=True)]
            *before, waiting = results
            yield before
    if waiting is not None:
        yield [waiting]


def _start(start: Start, wanted: LinesWanted | None, watch: Stopwatch) -> StreamRun[NamedSet, Result]:
    search = start(watch)

    def run(shares: list[Share[NamedSet]]) -> Iterator[list[Result]]:
        with watch.stage("join"):
            parts = [part_of(work.packed, begin, end) for work, begin, end in shares]
            queries, sizes = join_packed(parts, pinned), [len(part.lengths) for part in parts]
        found = search(queries)
        if isinstance(found, DeviceHits):
            lines = None
            if wanted is not None:
                names = Names.joined([work.names.slice(begin, end) for work, begin, end in shares], pinned)
                try:
                    lines = DeviceLines.of(wanted, found, queries.lengths, names, _CHUNK, watch)
                except Exception as error:
                    # Fewer queries have fewer lines; those of a single one are left to the host.
                    if len(queries.lengths) > 1 or not is_out_of_memory(error):
                        raise
            return _from_device(found, sizes, lines, watch)
        if not isinstance(found, Found):
            return _in_turn(found, watch)
        dropped = found.dropped_queries, found.dropped_hits
        return _in_parts(found.counts, dropped, sizes, lambda low, high: found.hits[low:high])

    return run


def stream_results(
    sets: Generator[NamedSet, None, None],
    start: Start,
    bytes_each: Callable[[Packed], int],
    *,
    lines: LinesWanted | None = None,
    watch: Stopwatch,
    devices: Sequence[int] = (0,),
) -> Iterator[Result]:
    """What is found of sets of packed queries, in their order.

    Parameters
    ----------
    sets : of at least one query, taken one by one in a thread of its own
    start : Start, called twice on each device
    bytes_each : device memory that a query of a set and its results take, about
    lines : what else is to be made of results that lie on the device
    watch : takes the seconds of each stage (see `stream_batches`)
    devices : numbers of the GPUs that share the queries

    Yields
    ------
    Result : what was found of consecutive queries of one set. The hits and their lines may lie in pinned memory, which
        is given back with them. How many queries were dropped is said of several results at once, in one of them.
    """
    source = Source(
        sets,
        size_of=lambda queries: len(queries.packed.lengths),
        weight_of=lambda queries: max(1, packed_bytes(queries.packed) // _SHORT_BYTES),
        bytes_each=lambda queries: bytes_each(queries.packed),
    )
    return stream_batches(source, partial(_start, start, lines), watch=watch, devices=devices)

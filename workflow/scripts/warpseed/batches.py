"""Around every search of queries: options checked, the index opened, results batch by batch, results joined."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypedDict

import numpy as np

from warpseed.compute.devices import device_name, devices_of, is_on_gpu, target_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError, check_number
from warpseed.fm_index.layout import SeedIndex
from warpseed.output.rows import Found, join_found
from warpseed.sequences.names import Names
from warpseed.sequences.pieces import open_pieces
from warpseed.sequences.queries import Queries, read_queries
from warpseed.tasks import Batch, Search, Tasks

if TYPE_CHECKING:
    from warpseed.output.columns import DeviceColumns
    from warpseed.output.hits import Hits
    from warpseed.output.lines import Line
    from warpseed.output.totals import Totals
    from warpseed.output.writers import Writer
    from warpseed.sequences.packed import Bounds, Packed

__all__ = [
    "ColumnSearch",
    "OptionArguments",
    "Options",
    "Search",
    "Settings",
    "Source",
    "check_source",
    "checked_options",
    "find_all",
    "find_on_device",
    "iter_batches",
    "iter_hits",
    "lies_on_device",
    "opened",
    "single_gpu",
    "write_results",
]

_MOST_HITS = 1 << 62

Source: TypeAlias = "str | os.PathLike[str] | Sequence[str] | Sequence[bytes] | Queries"
"""Queries as users give them: the path of a FASTA or FASTQ file, sequences in memory, or Queries."""


class OptionArguments(TypedDict, total=False):
    """Options as callers give them, by their names."""

    tier: str
    device: str
    devices: Sequence[int] | None
    threads: int
    max_hits: int | None


class Options(NamedTuple):
    """How any system is to search (`checked_options` makes them of what callers give)."""

    tier: str = "fast"
    """'fast' or 'paper'"""
    device: str = "cpu"
    """'cpu'; 'gpu', the first one; or GPUs by number, 'gpu:1', 'gpu:0,1', 'gpu:all'"""
    threads: int = 1
    """CPU threads"""
    max_hits: int | None = None
    """a query with more hits loses them all; None keeps every hit"""

    @property
    def gpus(self) -> int:
        """How many GPUs share the queries; 0 on the CPU."""
        return len(devices_of(self.device))

    def checked(self) -> Options:
        """The same options as plain values.

        Raises
        ------
        InputError : one of them is of another kind or out of its range
        """
        if not isinstance(self.tier, str) or self.tier not in ("fast", "paper"):
            raise InputError(f"tier is {self.tier!r}, but 'fast' or 'paper' was expected.")
        target_of(self.device)
        threads = check_number("threads", self.threads, 1)
        expected = "1 or more, or None for all hits, was expected"
        limit = None if self.max_hits is None else check_number("max_hits", self.max_hits, 1, expected=expected)
        # No query has as many hits; what is beyond 64 bits would not fit the searches.
        limit = None if limit is None else min(limit, _MOST_HITS)
        return Options(str(self.tier), str(self.device), threads, limit)


def checked_options(options: Mapping[str, Any], others: Iterable[str] = ()) -> Options:
    """Options by their names, checked; `others` are the names that the caller takes itself.

    ``device='gpu', devices=[0, 1]`` is the device 'gpu:0,1'.

    Raises
    ------
    InputError : there is no such option, or one is of another kind or out of its range
    """
    names = [*Options._fields, "devices"]
    for name in options:
        if name not in names:
            known = [*others, *names]
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean '{close[0]}'?" if close else f"known are {', '.join(known)}."
            raise InputError(f"the option '{name}' is not known: {hint}")
    given = dict(options)
    devices = given.pop("devices", None)
    if devices is not None:
        given["device"] = device_name(given.get("device", "gpu"), devices)
    return Options(**given).checked()


class Settings(NamedTuple):
    """How a case is run: in every tier on every device, on the CPU with every number of threads."""

    tiers: Sequence[str]
    devices: Sequence[str]
    threads: Sequence[int]

    def options(self, max_hits: int | None) -> Iterator[Options]:
        """One for each run; beside a GPU work as many CPU threads as there may be."""
        for tier in self.tiers:
            for device in self.devices:
                for count in self.threads if device == "cpu" else [max(self.threads)]:
                    yield Options(tier, device, count, max_hits)

    def on_one_gpu(self) -> Settings:
        """The same for what is not timed on several GPUs: one stands for them."""
        devices = ["gpu" if len(devices_of(device)) > 1 else device for device in self.devices]
        return self._replace(devices=list(dict.fromkeys(devices)))


def opened(index: SeedIndex | str | os.PathLike[str]) -> SeedIndex:
    """An index as it is, or the one in a folder.

    Raises
    ------
    InputError : neither an index nor the name of a folder
    IndexFormatError : the folder holds no usable index
    """
    from warpseed.fm_index.store import open_index

    if isinstance(index, SeedIndex):
        return index
    if isinstance(index, str | os.PathLike):
        return open_index(index)
    raise InputError(
        f"index is {index!r:.60}, but an index (from build_index or open_index) or the folder of one was expected."
    )


def check_source(source: Source) -> None:
    """Refuse what is no queries: of a table or a mapping, the column names or keys would be searched; a set has no
    order to number hits by."""
    if isinstance(source, Queries | str | os.PathLike):
        return
    if lies_on_device(source):
        raise InputError(
            "the queries lie on a GPU, where find_kmers, find_reads, find_mems and match_stream "
            "take them, with device='gpu' and on_device=True; or copy them to the host."
        )
    if isinstance(source, bytes | bytearray | memoryview):
        raise InputError(f"the queries are {type(source).__name__}, which is one sequence: put it in a list.")
    kind = getattr(source, "dtype", None)
    unfit = hasattr(source, "columns") or isinstance(source, Mapping | Set) or not isinstance(source, Iterable)
    unfit = unfit or getattr(source, "ndim", 1) != 1
    if unfit or getattr(kind, "kind", "O") not in "OSU":
        raise InputError(
            f"the queries are {type(source).__name__}, but the path of a FASTA or FASTQ file, sequences of letters "
            "(str or bytes), or Queries were expected."
        )


def iter_batches(
    source: Source,
    search: Search,
    *,
    make: Callable[[Hits], Any] | None = None,
    line: Line | None = None,
    share: tuple[int, int] | None = None,
    watch: Stopwatch,
) -> Iterator[Batch]:
    """Search queries and hand the results on in their order, in bounded memory.

    Parameters
    ----------
    search : Search
    make : called beside the search, from any thread, with the hits of a batch that is not large, whose queries are
        numbered from 0 on
    line : the line of which `make` makes a list of texts, where that is what it does: a device may make them
    share : (i, n) searches every n-th piece of the source, from the i-th on; queries are then numbered by piece, the
        first of piece p with ``p << 32``, so that what n such searches find can be put in order
    watch : takes the seconds of each stage, those of several threads as their mean: ``read``, ``pack``, ``search``,
        and ``format`` for what is made

    Yields
    ------
    Batch, with at least one query
    """
    check_source(source)
    first = records = lines = 0
    threads, as_written = search.options.threads, search.as_written
    with open_pieces(source, threads=threads, as_written=as_written, share=share or (0, 1)) as pieces:
        tasks = Tasks(pieces, search, make, line)
        for done in tasks.done(watch):
            watch.take(done.watch, 1 / tasks.threads)
            if done.piece >= 0 and share is not None:
                first = done.piece << 32
            if done.fail is not None:
                done.fail(records, lines, first)
                raise AssertionError(f"{pieces.name}: what failed behind record {records} did not fail again")
            records += done.records
            lines += done.lines
            if done.batch is not None:
                yield done.batch._replace(first=first)
                first += len(done.batch.queries) - done.batch.continues


def iter_hits(
    source: Source,
    search: Search,
    *,
    make: Callable[[Hits], Any] | None = None,
    line: Line | None = None,
    share: tuple[int, int] | None = None,
    watch: Stopwatch | None = None,
) -> Iterator[tuple[Hits, Any]]:
    """As `iter_batches`: the hits of each batch, and what was made of them beside the search."""
    for first, queries, found, continues, made in iter_batches(
        source, search, make=make, line=line, share=share, watch=watch or Stopwatch()
    ):
        yield search.hits(queries, found, first, continues), made


def write_results(
    source: Source,
    search: Search,
    writer: AbstractContextManager[Writer],
    *,
    share: tuple[int, int] | None = None,
    watch: Stopwatch,
    tell: Callable[[Totals, Iterator[tuple[Hits, Any]]], Iterable[tuple[Hits, Any]]] | None = None,
) -> Totals:
    """Search queries, and write what is found as it comes.

    Parameters
    ----------
    source, search, share : as `iter_batches` takes them
    writer : such as `warpseed.output.writers.open_writer` gives
    watch : as that of `iter_batches`, and ``write``: the seconds in which the calling thread hands batches to the
        writer, and closes it
    tell : function of the writer's totals and the batches that gives the same batches, and tells how far they are

    Returns
    -------
    Totals
    """
    with ExitStack() as stack:
        taking = stack.enter_context(writer)
        found = iter_hits(source, search, make=taking.make, line=taking.line, share=share, watch=watch)
        for hits, made in found if tell is None else tell(taking.totals, found):
            with watch.stage("write"):
                taking.put(hits, made)
        with watch.stage("write"):
            stack.close()
    return taking.totals


def find_all(source: Source, search: Search, *, watch: Stopwatch) -> tuple[Queries, Found]:
    """All queries of a source and their results, in memory."""
    parts: list[Found] = []
    queries: list[Queries] = []
    goes_on = False
    for batch in iter_batches(source, search, watch=watch):
        parts.append(_joined_to(parts.pop(), batch.found) if goes_on else batch.found)
        queries.append(batch.queries.slice(int(goes_on), len(batch.queries)))
        goes_on = batch.continues
    return Queries.concatenate(queries), join_found(parts, search.options.threads)


def _joined_to(before: Found, more: Found) -> Found:
    """Results whose last query is the first of `more`."""
    counts = np.concatenate([before.counts[:-1], [before.counts[-1] + more.counts[0]], more.counts[1:]])
    dropped = before.dropped_queries + more.dropped_queries, before.dropped_hits + more.dropped_hits
    return Found(np.concatenate([before.hits, more.hits]), counts, *dropped)


# ------------------------------------------------------------------------------------------------- on the device


class ColumnSearch(Search, Protocol):
    """A search whose results can stay on the GPU that finds them."""

    bounds: Bounds
    """what a query may be"""

    def columns(self, queries: Packed, names_of: Callable[[], Names], watch: Stopwatch) -> DeviceColumns:
        """The results of all queries, which lie on the host or on the GPU; `names_of` gives their names."""


def lies_on_device(source: Any) -> bool:
    """Whether queries are letters on a GPU (`warpseed.sequences.device_queries`)."""
    return is_on_gpu(source[0] if isinstance(source, tuple) and len(source) == 2 else source)


def single_gpu(options: Options) -> int:
    """The number of the GPU on which results stay.

    Raises
    ------
    InputError : there is none, there are several, or the tier leaves a part of the search to the CPU
    """
    devices = devices_of(options.device)
    if options.tier != "fast" or len(devices) != 1:
        raise InputError(
            "on_device=True leaves results on the one GPU that finds them, by the fast tier, "
            f"but device is {options.device!r} and tier {options.tier!r}; give device='gpu' and tier='fast'."
        )
    return devices[0]


def find_on_device(source: Any, search: ColumnSearch, *, watch: Stopwatch) -> DeviceColumns:
    """All queries of a source and their results, on the GPU.

    Parameters
    ----------
    source : Source, which is read and packed by one thread before it is searched; or letters on that GPU
    watch : takes the seconds of each stage: ``read``, ``pack``, and those of the search

    Raises
    ------
    InputError : the options name no single GPU, or the queries are not what was expected
    MemoryLimitError : what is found does not fit the GPU
    """
    number = single_gpu(search.options)
    from warpseed.compute.gpu import on_device
    from warpseed.output.device_columns import room_on_device
    from warpseed.sequences.device_queries import pack_on_device

    with on_device(number), room_on_device():
        if lies_on_device(source):
            with watch.stage("pack"):
                packed = pack_on_device(source, search.bounds)
            return search.columns(packed, partial(Names.numbered, b"", len(packed.lengths)), watch)
        check_source(source)
        with watch.stage("read"):
            records = read_queries(source)
        with watch.stage("pack"):
            sequences = search.queries(records, watch)
            queries = sequences.slice(0, len(sequences))
            packed = search.pack(queries, 0)
        return search.columns(packed, lambda: queries.names, watch)

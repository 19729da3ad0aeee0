"""Columns of hits, made on the device that found them, of what a search leaves there.

A thread makes a hit: the row that the host would have, in registers, and from there a value into each column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar
from warpseed.compute.device_batches import run_batches
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.device_sums import borders_of
from warpseed.compute.gpu import Rows, cuda, cupy, free_memory, is_out_of_memory, launch
from warpseed.compute.searching import owner_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.warp import BLOCK
from warpseed.errors import MemoryLimitError
from warpseed.fm_index.device import text_on_device
from warpseed.output.columns import DeviceColumns
from warpseed.output.from_device import DeviceHits, DeviceOptions, Start, brought
from warpseed.sequences.packed import Packed

if TYPE_CHECKING:
    from warpseed.fm_index.layout import SeedIndex, Segments
    from warpseed.sequences.names import Names

__all__ = [
    "ColumnsWanted",
    "Filled",
    "HitColumns",
    "column_maker",
    "fill_columns",
    "put_hit",
    "refuse_results",
    "room_on_device",
    "search_columns",
]


class HitColumns(NamedTuple):
    """The columns of HIT_ROW (`warpseed.output.rows`), an entry a hit, on the device."""

    query: Any
    contig: Any
    start: Any
    end: Any
    strand: Any
    distance: Any


@inlined
def put_hit(columns, i, row):
    """The fields that every system's hits have, from a row into columns."""
    columns.query[i] = row.query
    columns.contig[i] = row.contig
    columns.start[i] = row.start
    columns.end[i] = row.end
    columns.strand[i] = row.strand
    columns.distance[i] = row.distance


def column_maker(expand: Any, row_type: np.dtype, put: Any) -> Any:
    """What makes columns of packed hits on a device, for a system's kernel to call: a function of (packed, hit_first,
    first_query, lengths, segments, columns), which makes one hit a thread.

    Parameters
    ----------
    expand : as of `warpseed.output.hits.PackedRows`
    row_type : type of the rows that it makes
    put : function of (columns, i, row) that puts the fields of a row into entry i of columns
    """
    aligned = np.dtype(row_type.descr, align=True)

    @scalar
    def make_columns(packed, hit_first, first_query, lengths, segments, columns):
        i = int64(cuda.grid(1))
        if i < int64(packed.shape[0]):
            row = cuda.local.array(1, aligned)
            expand(packed, hit_first, owner_of(hit_first, i), i, lengths, segments, int64(first_query), row)
            put(columns, i, row[0])

    return make_columns


@dataclass(frozen=True)
class ColumnsWanted:
    """Columns that are wanted of what a search finds on a device.

    Attributes
    ----------
    row_type : type of the rows that the host has of such hits
    kind : NamedTuple of the columns that the kernel takes, which are named as fields of the rows
    make : kernel that does what `column_maker` makes of the system's `expand`
    index : SeedIndex that is searched
    finish : function of columns by name that fills in what the kernel leaves out, or None
    """

    row_type: np.dtype
    kind: Callable[..., Any]
    make: Any
    index: SeedIndex
    finish: Callable[[dict[str, Any]], None] | None = None


class Filled(NamedTuple):
    """The columns of consecutive queries' hits, on the device."""

    columns: dict[str, Any]
    """by name, CuPy[h] each"""
    counts: Any
    """int64[n], CuPy"""
    dropped_queries: int
    dropped_hits: int


def fill_columns(found: DeviceHits, lengths: Any, first: int, segments: Segments, wanted: ColumnsWanted) -> Filled:
    """The columns of what was found on the current device.

    Parameters
    ----------
    found : DeviceHits, in output order
    lengths : uint32[n], bases of each query, on the device
    first : number of the first query
    segments : Segments of the index, on the device
    """
    xp = cupy()
    count = len(found.hits) * 8 // found.hit_type.itemsize
    hit_first = borders_of(found.counts)
    columns = {name: xp.empty(count, wanted.row_type[name]) for name in wanted.row_type.names or ()}
    if count:
        packed = found.hits
        if found.hit_type != np.uint64:
            packed = Rows(packed, np.dtype(found.hit_type.descr, align=True))
        read = packed, hit_first, first, lengths, segments
        launch(wanted.make, count, BLOCK, *read, wanted.kind(*columns.values()))
        if wanted.finish is not None:
            wanted.finish(columns)
    return Filled(columns, xp.diff(hit_first), found.dropped_queries, found.dropped_hits)


def _joined(parts: Sequence[Filled], row_type: np.dtype) -> Filled:
    """The columns of consecutive sets of queries as those of one set; each column of a part goes when it is joined."""
    if len(parts) == 1:
        return parts[0]
    xp = cupy()
    none = {name: xp.empty(0, row_type[name]) for name in row_type.names or ()}
    columns = {name: xp.concatenate([none[name], *(part.columns.pop(name) for part in parts)]) for name in none}
    counts = xp.concatenate([xp.empty(0, xp.int64), *(part.counts for part in parts)])
    return Filled(
        columns, counts, sum(part.dropped_queries for part in parts), sum(part.dropped_hits for part in parts)
    )


def refuse_results(error: Exception) -> NoReturn:
    """Say that results do not fit beside what else is there.

    Raises
    ------
    MemoryLimitError
    """
    raise MemoryLimitError(
        f"The queries and their results do not fit the GPU's memory ({free_memory() / 1e9:.1f} GB are free), where "
        "on_device=True leaves them; search fewer queries a call, or leave on_device out."
    ) from error


@contextmanager
def room_on_device() -> Iterator[None]:
    """Say what to do where memory does not suffice.

    Raises
    ------
    MemoryLimitError
    """
    try:
        yield
    except Exception as error:
        if is_out_of_memory(error):
            refuse_results(error)
        raise


def search_columns(
    queries: Packed,
    names_of: Callable[[], Names],
    start: Start,
    bytes_each: int,
    wanted: ColumnsWanted,
    options: DeviceOptions,
) -> DeviceColumns:
    """What is found of packed queries, which lie on the host or on the device, left on the device that searches.

    Parameters
    ----------
    names_of : gives the queries' names, if they are asked for
    start : Start
    bytes_each : device memory that a query and its results take, about
    options : with one device, whose watch takes the seconds of each stage; `columns` is that of making them

    Raises
    ------
    MemoryLimitError : what is found does not fit the device
    """

    def begin(watch: Stopwatch) -> Callable[[int, int], Filled]:
        search, segments = start(watch), text_on_device(wanted.index, watch).segments

        def run(first: int, last: int) -> Filled:
            with brought(queries, first, last, options.threads_each, watch) as part:
                found = search(part)
                if not isinstance(found, DeviceHits):
                    refuse_results(MemoryError("one query has more results than the device holds at a time"))
                with time_on_device(watch, "columns"):
                    return fill_columns(found, part.lengths, first, segments, wanted)

        return run

    watch, count = options.watch or Stopwatch(), len(queries.lengths)
    parts = run_batches(count, bytes_each, begin, watch=watch, devices=options.devices, refuse=refuse_results)
    filled = _joined(parts, wanted.row_type)
    contigs = tuple(wanted.index.names), np.asarray(wanted.index.lengths, np.int64)
    dropped = filled.dropped_queries, filled.dropped_hits
    return DeviceColumns(filled.columns, filled.counts, names_of, *contigs, *dropped, wanted.row_type)

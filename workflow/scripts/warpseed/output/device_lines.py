"""Lines of hits that lie on a device, made there: what comes to the host is written as it is.

A thread makes a line. What the line takes is worked out first, so that each knows where its own begins; then the lines
are put, byte by byte, as nobody may write where another's line begins.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint8, uint64
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.device_sums import borders_of
from warpseed.compute.gpu import Rows, cuda, cupy, is_out_of_memory, kernel, launch, to_device
from warpseed.compute.letters import bytes_of, number_putter
from warpseed.compute.locked_memory import pinned
from warpseed.compute.resident import resident
from warpseed.compute.searching import owner_of
from warpseed.compute.warp import BLOCK
from warpseed.output.lines import Line, Number, Parts, Plan, Tables, line_putter, plan_of
from warpseed.sequences.names import Names

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.fm_index.layout import SeedIndex, Segments
    from warpseed.output.from_device import DeviceHits

__all__ = ["DeviceLines", "LinesWanted", "put_lines", "row_maker", "size_lines"]

_LONGEST_LINE = 512
"""Bytes of the longest line that every hit is given room for on the device."""
_ROWS_A_THREAD = 8
"""Rows that a thread makes."""


@inlined
def _put_exactly(out, to, word, size):
    for i in range(size):
        out[to + i] = uint8(word >> uint64(int64(8) * i))


@scalar
def _put_bytes_exactly(out, to, source, first, last):
    for i in range(last - first):
        out[to + i] = source[first + i]
    return to + last - first


@inlined
def _put_nothing(out, to, word, size):
    return


@scalar
def _skip_bytes(out, to, source, first, last):
    return to + last - first


_put_line = line_putter(_put_exactly, number_putter(_put_exactly), _put_bytes_exactly)
_size_of_line = line_putter(_put_nothing, number_putter(_put_nothing), _skip_bytes)


def row_maker(expand: Any) -> Any:
    """What makes rows of packed hits on a device, for a system's kernel to call: a function of (packed, hit_first,
    first, lengths, segments, rows).

    `expand` is as of `warpseed.output.hits.PackedRows`. A thread makes _ROWS_A_THREAD rows of the hits from `first` on,
    so that it looks for the first one's query alone; queries are numbered from 0.
    """

    @scalar
    def make_rows(packed, hit_first, first, lengths, segments, rows):
        begin = int64(cuda.grid(1)) * int64(_ROWS_A_THREAD)
        if begin < int64(rows.shape[0]):
            hit = int64(first) + begin
            mine = rows[begin : min(begin + int64(_ROWS_A_THREAD), int64(rows.shape[0]))]
            expand(packed, hit_first, owner_of(hit_first, hit), hit, lengths, segments, int64(0), mine)

    return make_rows


@kernel
def size_lines(rows, width, parts, names, sizes):
    """The bytes of the line of each row, of uint8[n * width]: sizes, int64[n]."""
    i = int64(cuda.grid(1))
    if i < int64(sizes.shape[0]):
        # (Every query has a name, and every contig; so that no number may be anything else, none is negative.)
        sizes[i] = max(_size_of_line(rows, i * width, parts, names, int64(0), rows, int64(0)), int64(0))


@kernel
def put_lines(rows, width, parts, names, ends, out):
    """The lines of rows one behind the other: `ends`, int64[n], has where each ends in `out`."""
    i = int64(cuda.grid(1))
    if i < int64(ends.shape[0]):
        begin = ends[i - int64(1)] if i > int64(0) else int64(0)
        if begin < ends[i]:
            _put_line(rows, i * width, parts, names, int64(0), out, begin)


@dataclass(frozen=True)
class LinesWanted:
    """Lines that are wanted of what a search finds on a device.

    Attributes
    ----------
    line : Line, which says nothing of a batch's own: no number of a query
    row_type : type of the rows that it names fields of, each of which is aligned, as devices want it
    make_rows : kernel that does what `row_maker` makes of the system's `expand`; queries are numbered in their batch
    index : SeedIndex that is searched
    """

    line: Line
    row_type: np.dtype
    make_rows: Any
    index: SeedIndex

    @classmethod
    def of(cls, line: Line | None, row_type: np.dtype, make_rows: Any, index: SeedIndex) -> LinesWanted | None:
        """What is wanted; None where no line is, or one that a device cannot make."""
        if line is None or any(isinstance(part, Number) and part.field == "query" for part in line):
            return None
        return cls(line, np.dtype(row_type.descr, align=True), make_rows, index)

    @property
    def plan(self) -> Plan:
        """How a line is put."""
        return plan_of(self.line, self.row_type)

    @cached_property
    def contigs(self) -> Names:
        """The contigs' names."""
        return Names.of(self.index.names)


class _Shared(NamedTuple):
    """What all lines of an index are made with, on the device."""

    parts: Parts
    segments: Segments
    contigs: Names


class DeviceLines:
    """The lines of the hits of one batch, made some at a time; `of` makes it.

    Parameters
    ----------
    wanted : LinesWanted
    found : DeviceHits, in output order
    lengths : uint32[n], bases of each query
    names : Names, of the queries
    most : hits whose lines are made together at most, and at least one
    room : bytes that a line takes at most
    watch : takes the seconds of the stages format and device_to_host
    """

    def __init__(
        self,
        wanted: LinesWanted,
        found: DeviceHits,
        lengths: np.ndarray,
        names: Names,
        most: int,
        room: int,
        watch: Stopwatch,
    ) -> None:
        xp = cupy()
        self._wanted = wanted
        self._watch = watch
        self._hits = found.hits
        self._shared: _Shared = resident(wanted.index, f"lines {wanted.line}", partial(_share, wanted))
        self._names = Tables(*self._shared.contigs, *_to_device(names))
        self._lengths = to_device(lengths)
        self._hit_first = borders_of(found.counts)
        # Eight bytes are read together, of the first row as well.
        self._rows = xp.empty(max(8, most * wanted.row_type.itemsize), xp.uint8)
        self._sizes, self._ends = xp.empty(most, xp.int64), xp.empty(most, xp.int64)
        self._out = xp.empty(most * room, xp.uint8)

    @classmethod
    def of(
        cls, wanted: LinesWanted, found: DeviceHits, lengths: np.ndarray, names: Names, most: int, watch: Stopwatch
    ) -> DeviceLines | None:
        """The lines of a batch; None where there are none, or they may be so long that the host makes them."""
        most = min(most, len(found.hits))
        longest = {"contig": _longest(wanted.contigs), "query": _longest(names)}
        plan = wanted.plan
        room = plan.room + sum(longest[table] for table in plan.tables)
        return cls(wanted, found, lengths, names, most, room, watch) if most and room <= _LONGEST_LINE else None

    def texts(self, first: int, borders: np.ndarray) -> Sequence[memoryview | None]:
        """The lines of hits, on the host in pinned memory; None for each where others have left the device, or the
        host's pinned memory, no room to make them.

        Parameters
        ----------
        first : the first hit
        borders : int64[p + 1], hits counted from the first on: a text for those of [borders[i], borders[i + 1])
        """
        count = int(borders[-1])
        if not count:
            return [memoryview(b"")] * (len(borders) - 1)
        try:
            return self._texts(first, borders, count)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            return [None] * (len(borders) - 1)

    def _texts(self, first: int, borders: np.ndarray, count: int) -> list[memoryview]:
        with time_on_device(self._watch, "format"):
            self._make(first, count)
        with self._watch.stage("device_to_host"):
            places = np.zeros(len(borders), np.int64)
            places[borders > 0] = self._ends[cupy().asarray(borders[borders > 0] - 1)].get()
            text = pinned(int(places[-1]), np.uint8)
            self._out[: len(text)].get(out=text)
        return [text[begin:end].data for begin, end in itertools.pairwise(places)]

    def _make(self, first: int, count: int) -> None:
        """Put the lines of `count` hits from the first on into `_out`, and where they end into `_ends`."""
        wanted, shared, sizes, ends = self._wanted, self._shared, self._sizes[:count], self._ends[:count]
        width = wanted.row_type.itemsize
        rows, typed = self._rows, Rows(self._rows[: count * width], wanted.row_type)
        made_of = (self._hits, self._hit_first, first, self._lengths, shared.segments)
        launch(wanted.make_rows, -(-count // _ROWS_A_THREAD), BLOCK, *made_of, typed)
        launch(size_lines, count, BLOCK, rows, width, shared.parts, self._names, sizes)
        cupy().cumsum(sizes, out=ends)
        launch(put_lines, count, BLOCK, rows, width, shared.parts, self._names, ends, self._out)


def _share(wanted: LinesWanted) -> _Shared:
    return _Shared(to_device(wanted.plan.parts), to_device(wanted.index.segments), _to_device(wanted.contigs))


def _to_device(names: Names) -> Names:
    return to_device(Names(bytes_of(names.text), names.offsets))


def _longest(names: Names) -> int:
    return int(np.diff(names.offsets).max(initial=0))

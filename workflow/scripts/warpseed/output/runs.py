"""Runs of sorted lines in a file: what waits to be merged, in one process or for another one."""

from __future__ import annotations

import json
import os
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from warpseed.compute.descriptors import fill_from, write_at
from warpseed.errors import InputError
from warpseed.output.opening import refusal
from warpseed.output.sorting import KEY_BYTES, Before, SortedLines, lines_that_fit
from warpseed.output.totals import Totals

__all__ = ["MAGIC", "About", "RunFile", "Spool", "open_run_file", "open_spool"]

MAGIC = b"warpseed runs 2\n"
"""The bytes that a run file begins and ends with."""
_TRAILER = struct.Struct(f"<Q{len(MAGIC)}s")
_COLUMNS = (np.dtype("<u8"), np.dtype("<u8"), np.dtype("<i8"), np.dtype("<i8"))


class _Place(NamedTuple):
    """Where a run lies in a file: place, shape, query, then offsets with one more entry, then the text."""

    begin: int
    lines: int
    text_bytes: int

    def column(self, which: int) -> int:
        """Where a column begins; behind the last one, the text."""
        return self.begin + 8 * self.lines * which + (8 if which == len(_COLUMNS) else 0)

    def end(self) -> int:
        return self.column(len(_COLUMNS)) + self.text_bytes


@dataclass
class About:
    """What there is to say of the lines in a run file."""

    columns: str = ""
    """names of the columns, as a header has them"""
    heading: str = ""
    """what goes before the first line of an output"""
    preset: str | None = None
    """that of their format"""
    contigs: str = ""
    """a line with name and length of each contig; empty where no query was searched"""
    totals: Totals = field(default_factory=Totals)


class Spool:
    """A file that takes runs, one behind the other, and gives them back as `Run`s.

    Parameters
    ----------
    handle : binary file, open for reading and writing, unbuffered
    where : what error sentences name: the file, or the folder that it is in
    """

    def __init__(self, handle: BinaryIO, where: str | os.PathLike[str]) -> None:
        self._handle = handle
        self._where = where
        self._end = len(MAGIC)
        self.places: list[_Place] = []

    def begin_run(self, lines: int, text_bytes: int) -> Callable[[SortedLines, Before], None]:
        """Begin a run of so many lines.

        Returns
        -------
        function of each part of it, of at least one line, and of what stands before it, which writes the part, from any
        thread; it raises InputError where that cannot be done
        """
        place = _Place(-(-self._end // 8) * 8, lines, text_bytes)
        self.places.append(place)
        self._end = place.end()

        def write(part: SortedLines, before: Before) -> None:
            # (The last offset of a part is the first one of the next, which may be written at the same time.)
            offsets = part.offsets + (before.text_bytes - part.offsets[0])
            for which, column in enumerate((*part.keys(), offsets)):
                self._write(column, place.column(which) + 8 * before.lines)
            self._write(part.used_text(), place.column(len(_COLUMNS)) + before.text_bytes)

        return write

    def _write(self, values: np.ndarray, at: int) -> None:
        try:
            write_at(self._handle.fileno(), at, np.ascontiguousarray(values).data.cast("B"))
        except OSError as error:
            raise refusal(self._where, error) from error

    def runs(self) -> list[SpooledRun]:
        """The runs, which can be read when all of them are written, while the file is open."""
        return [SpooledRun(_Source(self._where, self._handle.fileno()), place) for place in self.places]

    def close_as_file(self, about: About) -> None:
        """Write what makes the file a run file."""
        described = vars(about) | {"totals": about.totals.numbers(), "runs": self.places}
        text = json.dumps(described).encode()
        trailer = text + _TRAILER.pack(len(text), MAGIC)
        self._write(np.frombuffer(MAGIC, np.uint8), 0)
        self._write(np.frombuffer(trailer, np.uint8), self._end)


class _Source(NamedTuple):
    """A file with runs."""

    where: str | os.PathLike[str]
    """what error sentences name"""
    descriptor: int | None = None
    """None where it is opened whenever it is read: there may be more files than can be open"""


def _read_column(source: _Source, dtype: np.dtype, begin: int, count: int) -> np.ndarray:
    values = np.empty(count, dtype)
    buffer = values.data.cast("B")
    where = os.fspath(source.where)
    try:
        opened = os.open(where, os.O_RDONLY | os.O_CLOEXEC) if source.descriptor is None else source.descriptor
        try:
            filled = fill_from(opened, begin, buffer)
        finally:
            if source.descriptor is None:
                os.close(opened)
    except OSError as error:
        raise InputError(f"{where}: the runs cannot be read ({error.strerror}).") from error
    if filled < len(buffer):
        raise InputError(f"{where}: the runs end too early; make the file again.")
    return values


class _RunText(NamedTuple):
    """The text of a run, a `FileText`."""

    source: _Source
    begin: int

    def read(self, first: int, last: int) -> np.ndarray:
        """As `FileText.read`."""
        return _read_column(self.source, np.dtype(np.uint8), self.begin + first, last - first)


class SpooledRun(NamedTuple):
    """A Run in a file."""

    source: _Source
    place: _Place

    @property
    def lines(self) -> int:
        return self.place.lines

    def read(self, first: int, room: int) -> SortedLines:
        """As `Run.read`; the text is read where it is wanted.

        Raises
        ------
        InputError : the file is shorter than it was
        """
        last = min(self.lines, first + max(1, room // KEY_BYTES))
        offsets = self._column(3, first, last + 1)
        last = first + lines_that_fit(offsets, room)
        offsets = offsets[: last - first + 1]
        place, shape, query = (self._column(which, first, last) for which in range(3))
        return SortedLines(place, shape, query, offsets, _RunText(self.source, self.place.column(len(_COLUMNS))))

    def _column(self, which: int, first: int, last: int) -> np.ndarray:
        return _read_column(self.source, _COLUMNS[which], self.place.column(which) + 8 * first, last - first)


@contextmanager
def open_spool(folder: str | os.PathLike[str] | None) -> Iterator[Spool]:
    """A spool without a name: nothing of it is left, however the process ends.

    Parameters
    ----------
    folder : where it is; None for the system's folder of temporary files

    Raises
    ------
    InputError : it cannot be made
    """
    try:
        handle = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115 (closed below)
    except OSError as error:
        raise refusal(folder or tempfile.gettempdir(), error) from error
    with handle:
        yield Spool(handle, folder or tempfile.gettempdir())


class RunFile(NamedTuple):
    """A run file as it was found."""

    path: Path
    about: About
    places: Sequence[_Place]

    def runs(self) -> list[SpooledRun]:
        """Its runs."""
        return [SpooledRun(_Source(self.path), place) for place in self.places]


def open_run_file(path: str | os.PathLike[str]) -> RunFile:
    """What a run file holds.

    Raises
    ------
    InputError : there is no such file, or it is none, or it is cut
    """
    unfit = f"{os.fspath(path)}: this is no whole run file; make it again."
    try:
        with open(path, "rb") as handle:
            size = handle.seek(0, os.SEEK_END)
            handle.seek(max(0, size - _TRAILER.size))
            end = handle.read(_TRAILER.size)
            if len(end) < _TRAILER.size:
                raise InputError(unfit)
            length, magic = _TRAILER.unpack(end)
            if magic != MAGIC or length > size - _TRAILER.size:
                raise InputError(unfit)
            handle.seek(size - _TRAILER.size - length)
            described: dict[str, Any] = json.loads(handle.read(length))
    except OSError as error:
        raise InputError(f"{os.fspath(path)}: cannot be read ({error.strerror}).") from error
    except ValueError:
        raise InputError(unfit) from None
    places = [_Place(*place) for place in described.pop("runs")]
    described["totals"] = Totals(**described["totals"])
    return RunFile(Path(path), About(**described), places)

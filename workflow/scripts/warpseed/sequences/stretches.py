"""The contigs of a plain FASTA file, whose stretches are read and parsed side by side.

A stretch may begin anywhere in a contig. Each is parsed as if its first byte was one of a sequence, or a '>' that opens
a record, and whether that is so is known when the stretch before it has been parsed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from warpseed.compute.pipeline import mapped
from warpseed.errors import InputError
from warpseed.sequences.fastx import FastxParser
from warpseed.sequences.parse import Records

if TYPE_CHECKING:
    from warpseed.sequences.files import ByteStream

__all__ = ["STRETCH_BYTES", "read_stretches"]

STRETCH_BYTES = 4 << 20
_LINE_BYTES = 1 << 12
"""Behind a place where a stretch could end, in which the end of a line is looked for."""
_HEADER = ord(">")


class _Room(NamedTuple):
    """What a stretch is read into and parsed into, and when that is done with, another one."""

    text: memoryview
    parser: FastxParser

    @classmethod
    def of(cls, name: str) -> _Room:
        """Room for a stretch of a file of that name."""
        parser = FastxParser(name, "FASTA", lines=True, before=(0, -1))
        return cls(np.empty(STRETCH_BYTES + _LINE_BYTES, np.uint8).data, parser)


class _Parsed(NamedTuple):
    """What a stretch holds."""

    room: _Room
    """where its records are"""
    records: Records
    continues: bool
    """whether its first record is the rest of the one before it"""
    lines: int
    """lines that end in it"""
    in_sequence: bool
    """whether a base may follow it"""
    at_line: bool
    """whether it ends where a line does"""


@dataclass
class _Joined:
    """What stretches make together, but for the codes."""

    bases: int = 0
    name_bytes: int = 0
    lines: int = 0
    starts: list[np.ndarray] = field(default_factory=list)
    names: list[np.ndarray] = field(default_factory=list)
    name_starts: list[np.ndarray] = field(default_factory=list)
    header_lines: list[np.ndarray] = field(default_factory=list)

    def add(self, parsed: _Parsed) -> None:
        records, first = parsed.records, int(parsed.continues)
        self.starts.append(records.offsets[first:-1] + self.bases)
        self.name_starts.append(records.name_offsets[first:-1] + self.name_bytes)
        self.header_lines.append(records.lines[first:] + self.lines)
        self.names.append(records.names.copy())
        self.bases += len(records.codes)
        self.name_bytes += len(records.names)
        self.lines += parsed.lines

    def records(self, codes: np.ndarray) -> Records:
        ends = np.array([self.bases]), np.array([self.name_bytes])
        return Records(
            codes,
            np.concatenate([*self.starts, ends[0]]),
            np.concatenate(self.names),
            np.concatenate([*self.name_starts, ends[1]]),
            np.empty(0, np.uint8),
            np.concatenate(self.header_lines),
        )


def read_stretches(stream: ByteStream, first: int, threads: int) -> Records | None:
    """The contigs of a plain FASTA file.

    Parameters
    ----------
    stream : the file, of which any place can be read
    first : byte at which its text begins, which is that of its first record in all files but odd ones
    threads : int, which read and parse

    Returns
    -------
    Records, with the lines of headers; None where something is wrong with the file, or may be: then it has to be
        parsed from its beginning, which tells
    """
    codes = np.empty(stream.size - first, np.uint8)
    joined = _Joined()
    free: deque[_Room] = deque()

    def parse(place: tuple[int, int]) -> _Parsed | None:
        try:
            room = free.pop()
        except IndexError:
            room = _Room.of(stream.name)
        return _parse(stream, *place, room)

    def placed() -> Iterator[tuple[int, _Parsed]]:
        before = None
        for parsed in mapped(_cut(stream, first), parse, threads):
            if parsed is None or not _fit(before, parsed):
                raise _Unfit
            before, at = parsed, joined.bases
            joined.add(parsed)
            yield at, parsed

    def put(part: tuple[int, _Parsed]) -> None:
        at, parsed = part
        of_stretch = parsed.records.codes
        codes[at : at + len(of_stretch)] = of_stretch
        free.append(parsed.room)

    try:
        for _ in mapped(placed(), put, threads):
            pass
    except _Unfit:
        return None
    codes.resize(joined.bases, refcheck=False)
    contigs = joined.records(codes)
    return contigs if (np.diff(contigs.offsets) > 0).all() else None


class _Unfit(Exception):
    """Stretches do not follow each other as they were parsed."""


def _cut(stream: ByteStream, first: int) -> Iterator[tuple[int, int]]:
    """Stretches as [begin, end), which end behind a line where one ends soon."""
    begin = first
    while begin < stream.size:
        end = min(begin + STRETCH_BYTES, stream.size)
        end += stream.read_at(end, end + _LINE_BYTES).find(b"\n") + 1
        yield begin, end
        begin = end


def _parse(stream: ByteStream, begin: int, end: int, room: _Room) -> _Parsed | None:
    text, parser = room.text[: end - begin], room.parser
    if stream.fill_from(begin, text) < len(text):
        return None
    parser.restart()
    continues = text[0] != _HEADER
    try:
        parser.feed(b">\n" if continues else b"\n")
        parser.feed(text)
    except InputError:
        return None
    in_sequence, at_line, lines = parser.in_sequence, parser.at_line, parser.line - 1
    return _Parsed(room, parser.view(), continues, lines, in_sequence, at_line)


def _fit(before: _Parsed | None, parsed: _Parsed) -> bool:
    """Whether a stretch was parsed as what it is behind that one."""
    if before is None:
        return not parsed.continues
    return before.in_sequence if parsed.continues else before.at_line

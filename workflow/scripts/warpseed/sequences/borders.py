"""Where records begin: the places at which a FASTA or FASTQ file may be cut into pieces."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

__all__ = ["Border", "Reader", "find_border"]

Reader: TypeAlias = Callable[[int, int], bytes]
"""``read(begin, end)``: these bytes of a file, fewer where it ends before."""


class Border(NamedTuple):
    """A place between two records."""

    place: int
    """byte of the file at which a record begins"""
    seen: int
    """end of the bytes that were looked at to know so"""


_MARKS = {"FASTA": b"\n>", "FASTQ": b"\n@"}
# A line of qualities may begin with '@', too, but what follows it is a header or nothing.
_BORDERS = {
    "FASTA": re.compile(rb"\n>"),
    "FASTQ": re.compile(rb"\n@[^\n]*\n[ACGTURYSWKMBDHVNacgturyswkmbdhvn]"),
}
_WINDOW = 1 << 12
_LARGEST_WINDOW = 1 << 20


def find_border(read: Reader, place: int, format: str) -> Border | None:
    """The first border at or behind `place`, which is above 0; None where no further record begins.

    In a file without errors every border is the start of a record: in FASTA a line that begins with '>', in FASTQ a
    line that begins with '@' and is followed by one that begins with a base.
    """
    mark, pattern = _MARKS[format], _BORDERS[format]
    start, size = place - 1, _WINDOW
    while True:
        window = read(start, start + size)
        at = window.find(mark)
        while at >= 0:
            if border := pattern.match(window, at):
                return Border(start + at + 1, start + border.end())
            at = window.find(mark, at + 1)
        if len(window) < size:
            return None
        last = window.rfind(mark)  # the line behind it may begin outside of the window
        start += last if last >= 0 else size - 1
        size = 2 * size if last == 0 else min(2 * size, _LARGEST_WINDOW)

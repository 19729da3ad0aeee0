"""What the paper tier finds before it locates, as paper 001 counts, keeps and writes it."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import numpy as np

from warpseed.one_error.paper import READS_A_LAUNCH
from warpseed.output.lines import Format, Formatter, Letter, Name, Number, format_rows, header, tab_separated
from warpseed.output.opening import open_output

if TYPE_CHECKING:
    from warpseed.one_error.cpu import PaperResults
    from warpseed.sequences.queries import Queries

__all__ = ["digest_results", "fullest_launch", "stored_in", "write_results"]

RESULT_ROW = np.dtype(
    [
        ("read", "<i8"),
        ("strand", "i1"),
        ("kind", "i1"),
        ("offset", "<i4"),
        ("base", "i1"),
        ("low", "<u4"),
        ("high", "<u4"),
    ]
)
"""A result: number of the read, strand 0 or 1, type and place of the edit, base code, interval [low, high) of rows."""
_LINE = tab_separated(
    Name("read", "query"), Letter("strand", b"+-"), Letter("kind", b"=XDI"), Number("offset"), Letter("base", b"ACGT"),
    Number("low"), Number("high"),
)  # fmt: skip
FORMAT = Format(_LINE, header(_LINE))
"""How results are written: kinds as the letters of CIGAR strings; of a match or a deletion the base is A."""


def digest_results(searched: PaperResults) -> str:
    """SHA-256 of the results read by read, and of how many each read had and kept."""
    digest = hashlib.sha256()
    for column in (searched.counts, searched.stored, *searched.results):
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()


def stored_in(counts: np.ndarray, slots: int) -> int:
    """Results that are kept of reads which have `counts` of them, where each has so many slots."""
    return int(np.minimum(counts, slots).sum())


def fullest_launch(counts: np.ndarray, slots: int) -> int:
    """The most results that the reads of one launch keep."""
    kept, firsts = np.minimum(counts, slots), range(0, len(counts), READS_A_LAUNCH)
    return max((int(kept[first : first + READS_A_LAUNCH].sum()) for first in firsts), default=0)


def write_results(path: str | os.PathLike[str], reads: Queries, searched: PaperResults, *, threads: int = 1) -> None:
    """Write every result as a line, in the order of the reads."""
    owner = np.repeat(np.arange(len(searched.stored)), searched.stored)
    results = searched.results

    def rows_of(first: int, last: int) -> np.ndarray:
        rows = np.empty(last - first, RESULT_ROW)
        edit = results.edit[first:last]
        rows["read"] = owner[first:last]
        rows["low"], rows["high"] = results.low[first:last], results.high[first:last]
        rows["kind"], rows["base"] = edit & 3, (edit >> 2) & 3
        rows["strand"], rows["offset"] = (edit >> 4) & 1, edit >> 5
        return rows

    formatter = Formatter(FORMAT.line, RESULT_ROW, {"query": reads.names})
    with open_output(path, threads=threads) as handle:
        handle.write(FORMAT.heading)
        for text in format_rows(formatter, len(owner), rows_of, threads):
            handle.write(text)

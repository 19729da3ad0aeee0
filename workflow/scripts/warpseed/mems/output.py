"""Maximal exact matches as they go out: from packed to rows, and from rows to TSV, PAF, BED and MUMmer's text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warpseed.compute.compiled import scalar
from warpseed.fm_index.text import contig_place
from warpseed.mems.matches import MATCH, occurrences_of, place_of, span_of
from warpseed.output.hits import BED, Hits, PackedRows
from warpseed.output.lines import Format, Group, Letter, Line, Name, Number, Text, header, tab_separated
from warpseed.output.rows import HIT_ROW, Found

if TYPE_CHECKING:
    from warpseed.fm_index.layout import SeedIndex
    from warpseed.sequences.queries import Queries

__all__ = ["LINES", "MATCH_ROW", "PAF", "TSV", "expand", "make_hits", "mums"]

MATCH_ROW = np.dtype(
    [*HIT_ROW.descr, ("read_start", "<i8"), ("read_end", "<i8"), ("length", "<i8"), ("read_length", "<i8"),
     ("contig_length", "<i8"), ("occurrences", "<i8")]
)  # fmt: skip
"""A match: as HIT_ROW, with the read's bases [read_start, read_end) that are the contig's bases [start, end), or their
reverse complement where the strand is 1; `length`: how many these are; `read_length` and `contig_length`: bases of the
read and of the contig; `occurrences`: the read's matches, of the kind that is wanted, with the same bases of it."""

TSV = tab_separated(
    Name("query", "query"), Name("contig", "contig"), Number("start"), Number("end"), Letter("strand", b"+-"),
    Number("read_start"), Number("read_end"), Number("occurrences"),
)  # fmt: skip
_UNKNOWN_QUALITY = Text(b"255")
PAF = (
    *tab_separated(
        Name("query", "query"), Number("read_length"), Number("read_start"), Number("read_end"),
        Letter("strand", b"+-"), Name("contig", "contig"), Number("contig_length"), Number("start"), Number("end"),
        Number("length"), Number("length"), _UNKNOWN_QUALITY,
    )[:-1],
    Text(b"\tNH:i:"), Number("occurrences"), Text(b"\tcg:Z:"), Number("length"), Text(b"=\n"),
)  # fmt: skip


def _mums_group(strand: bytes, place: Number) -> Group:
    """A strand's lines in MUMmer's form, with these numbers for where a match begins in the read."""
    gap = Text(b"  ")
    places = Number("start", first=1, width=8), gap, place, gap, Number("length", width=8)
    line: Line = (gap, Name("contig", "contig", padded=True), gap, *places, Text(b"\n"))
    return Group((Text(b"> "), Name("query", "query"), Text(strand + b"\n")), line)


def mums(both_strands: bool) -> Format:
    """MUMmer's form, with headings for one strand or both; places are counted from 1."""
    forward = _mums_group(b"", Number("read_start", first=1, width=8))
    # Of a match with the reverse complement, its last base in the read as it is written.
    reverse = _mums_group(b" Reverse", Number("read_end", width=8))
    return Format((), groups=(forward, reverse) if both_strands else (forward,))


LINES = {
    "tsv": Format(TSV, header(TSV)),
    "paf": Format(PAF, preset="paf"),
    "bed": Format(BED, preset="bed"),
    "mums": mums(both_strands=True),
}
"""What each format writes for a match, and before the first one."""


@scalar
def expand(packed, hit_first, query, first, read_lengths, segments, first_query, rows):
    """Packed matches from `first` on, which is one of read `query`, to rows; the contigs' lengths are left out."""
    for i in range(rows.shape[0]):
        while hit_first[query + 1] <= first + i:
            query += 1
        match = packed[first + i]
        place, strand = place_of(match.place)
        length, begin = span_of(match.span)
        contig, start = contig_place(segments, place)
        row = rows[i]
        row.query = first_query + query
        row.contig = contig
        row.start = start
        row.end = start + length
        row.strand = strand
        row.distance = 0
        row.read_start = begin
        row.read_end = begin + length
        row.length = length
        row.read_length = read_lengths[query]
        row.occurrences = occurrences_of(match.place)


class _MatchRows(PackedRows):
    """The rows of packed matches, with the lengths of their contigs."""

    def __init__(self, index: SeedIndex, queries: Queries, found: Found, first_query: int) -> None:
        super().__init__(expand, index, queries, found, first_query, MATCH_ROW)
        self._lengths = np.asarray(index.lengths, np.int64)

    def __call__(self, first: int, last: int) -> np.ndarray:
        rows = super().__call__(first, last)
        rows["contig_length"] = self._lengths[rows["contig"]]
        return rows


def make_hits(index: SeedIndex, queries: Queries, found: Found, first_query: int = 0, continues: bool = False) -> Hits:
    """What a search found, as hits whose rows are MATCH_ROW; `first_query` is the number of the first query in the
    whole set, and `continues` says that more matches of the last one come."""
    if not len(found.hits):
        found = found._replace(hits=np.empty(0, MATCH))
    return _MatchRows(index, queries, found, first_query).hits(continues)

"""Placements of reads as they go out: from packed placements to rows, and from rows to TSV, BED and BAM."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from warpseed.compute.compiled import scalar
from warpseed.errors import InputError
from warpseed.fm_index.text import contig_place
from warpseed.one_error.edits import edits_of
from warpseed.one_error.reads import kind_of, placement_of
from warpseed.output.hits import BED, Hits, PackedRows
from warpseed.output.lines import Format, Letter, Name, Number, header, tab_separated
from warpseed.output.rows import HIT_ROW, Found
from warpseed.output.writers import format_of, open_writer, write_batches
from warpseed.sequences.packed import Packed, pack, part_of

if TYPE_CHECKING:
    from warpseed.fm_index.layout import SeedIndex
    from warpseed.sequences.queries import Queries

__all__ = ["EDITED_ROW", "LINES", "PLACEMENT_ROW", "TSV", "expand", "make_hits", "write_placements"]

PLACEMENT_ROW = np.dtype([*HIT_ROW.descr, ("kind", "i1"), ("offset", "<i4"), ("base", "i1")])
"""A placement: as HIT_ROW, with its edit, the leftmost on the forward strand of the reference. `kind`: MATCH, MISMATCH,
INSERTION or DELETION of `warpseed.one_error.reads`; the placement has as many bases as the read, one more for an
insertion, one less for a deletion. `offset`: bases of the placement before it; `base`: code of the reference's base
there, 0 for a deletion. Both are 0 where the distance is. At distance 2 `kind` is SEVERAL and they are 0, too:
`warpseed.one_error.edits` has both edits."""

_EDIT = (("kind", "i1"), ("offset", "<i4"), ("base", "i1"))
EDITED_ROW = np.dtype([*PLACEMENT_ROW.descr, *((f"{which}_{n}", t) for which in ("first", "second") for n, t in _EDIT)])
"""A placement with its read at hand: as PLACEMENT_ROW, with its edits as `warpseed.one_error.edits.Edits` has them."""

TSV = tab_separated(
    Name("query", "query"), Name("contig", "contig"), Number("start"), Number("end"), Letter("strand", b"+-"),
    Number("distance"), Letter("kind", b"=XDI*"), Number("offset"),
)  # fmt: skip
LINES = {"tsv": Format(TSV, header(TSV)), "bed": Format(BED, preset="bed")}
"""What each format writes for a placement, and before the first one. The kinds are the letters of CIGAR strings,
and a star for several edits."""


@scalar
def expand(packed, hit_first, query, first, read_lengths, segments, first_query, rows):
    """Packed placements from `first` on, which is one of read `query`, to rows."""
    for i in range(rows.shape[0]):
        while hit_first[query + 1] <= first + i:
            query += 1
        place, strand, extra, distance, offset, base = placement_of(packed[first + i])
        contig, start = contig_place(segments, place)
        row = rows[i]
        row.query = first_query + query
        row.contig = contig
        row.strand = strand
        row.distance = distance
        row.kind = kind_of(extra, distance)
        row.offset = offset
        row.base = base
        row.start = start
        row.end = start + read_lengths[query] + extra


class _EditedRows(PackedRows):
    """The rows of packed placements with the edits of each, of which a packed one holds one."""

    def __init__(self, index: SeedIndex, queries: Queries, found: Found, first_query: int) -> None:
        super().__init__(expand, index, queries, found, first_query, EDITED_ROW, keep_queries=True)
        self._text = index.text

    @cached_property
    def _reads(self) -> Packed:
        assert self.queries is not None
        return pack(self.queries)

    def __call__(self, first: int, last: int) -> np.ndarray:
        rows = super().__call__(first, last)
        if first == last:
            return rows
        begin, end = self.query_of(first), self.query_of(last - 1) + 1
        counts = np.diff(np.clip(self.hit_first[begin : end + 1], first, last))
        found = Found(self.found.hits[first:last], counts, 0, 0)
        edits = edits_of(self._text, part_of(self._reads, begin, end), found)
        for column, (name, _) in zip(edits, _EDIT, strict=True):
            rows[f"first_{name}"], rows[f"second_{name}"] = column.T
        return rows


def make_hits(
    index: SeedIndex,
    queries: Queries,
    found: Found,
    first_query: int = 0,
    continues: bool = False,
    keep_reads: bool = False,
) -> Hits:
    """What a search found, as hits whose rows are PLACEMENT_ROW; `first_query` is the number of the first query in the
    whole set, and `continues` says that more placements of the last one come. With `keep_reads` they have the reads,
    and their rows are EDITED_ROW."""
    if keep_reads:
        return _EditedRows(index, queries, found, first_query).hits(continues)
    return PackedRows(expand, index, queries, found, first_query, PLACEMENT_ROW).hits(continues)


def write_placements(
    path: str | os.PathLike[str],
    batches: Hits | Iterable[Hits],
    *,
    sorted: bool = False,
    multiple: str = "secondary",
    threads: int = 1,
    inputs: Sequence[str | os.PathLike[str]] = (),
) -> int:
    """Write placements of reads as TSV, BED or BAM; the same bytes for any number of threads or batches.

    Parameters
    ----------
    path : file that ends in .tsv or .bed (or .tsv.gz, .bed.gz) or in .bam, which gets an index; '-' is TSV on standard
        output
    batches : Hits of `find_reads`, or the batches of `iter_read_hits`, which are written as they come; for BAM found
        with keep_reads=True, and best with report='best'
    sorted : whether lines are ordered by contig, start, end, strand and query, not by query; BAM always is
    multiple : in BAM, whether placements beside a read's primary one are 'secondary' records, or are listed in the tag
        XA of its record ('xa')
    inputs : files that are being read, which the output must not be

    Returns
    -------
    int, placements written

    Raises
    ------
    InputError : the ending says no format, or the file cannot be written or is an input; in BAM, placements come
        without their reads, or a name is none for BAM
    """
    from warpseed.one_error.bam import MULTIPLE, bam_format

    formats = {**LINES, "bam": bam_format(multiple)}
    format = format_of(path, formats)
    if multiple != MULTIPLE[0] and format is not formats["bam"]:
        raise InputError(f"{path}: multiple={multiple!r} says what becomes of records in BAM; name a file.bam.")
    writer = open_writer(path, format, sorted=sorted, threads=threads, inputs=inputs)
    return write_batches(writer, batches)

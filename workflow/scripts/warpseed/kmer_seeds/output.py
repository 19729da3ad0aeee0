"""Hits of k-mers as they go out: from packed hits to rows, and from rows to BED and TSV."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.fm_index.text import contig_place
from warpseed.output.hits import BED, Hits, PackedRows
from warpseed.output.lines import Format, Letter, Name, Number, header, tab_separated
from warpseed.output.writers import format_of, open_writer, write_batches

if TYPE_CHECKING:
    from warpseed.fm_index.layout import SeedIndex
    from warpseed.output.rows import Found
    from warpseed.sequences.queries import Queries

__all__ = ["BED", "LINES", "TSV", "TSV_HEADER", "expand", "make_hits", "write_hits"]

TSV = tab_separated(
    Name("query", "query"), Name("contig", "contig"), Number("start"), Number("end"), Letter("strand", b"+-"),
    Number("distance"),
)  # fmt: skip
TSV_HEADER = header(TSV)
LINES = {"bed": Format(BED, preset="bed"), "tsv": Format(TSV, TSV_HEADER)}
"""What each format writes for a hit, and before the first one."""


@scalar
def expand(packed, hit_first, query, first, lengths, segments, first_query, rows):
    """Packed hits from `first` on, which is one of k-mer `query`, to rows: text positions become contig coordinates."""
    for i in range(rows.shape[0]):
        h = first + i
        while hit_first[query + 1] <= h:
            query += 1
        hit = packed[h]
        contig, start = contig_place(segments, int64(hit >> uint64(3)))
        row = rows[i]
        row.query = first_query + query
        row.contig = contig
        row.start = start
        row.end = start + lengths[query]
        row.strand = int64((hit >> uint64(2)) & uint64(1))
        row.distance = int64(hit & uint64(3))


def make_hits(index: SeedIndex, queries: Queries, found: Found, first_query: int = 0, continues: bool = False) -> Hits:
    """What a search found, as hits; `first_query` is the number of the first query in the whole set, and `continues`
    says that more hits of the last one come."""
    return PackedRows(expand, index, queries, found, first_query).hits(continues)


def write_hits(
    path: str | os.PathLike[str],
    batches: Hits | Iterable[Hits],
    *,
    sorted: bool = False,
    threads: int = 1,
    format: str | None = None,
    inputs: Sequence[str | os.PathLike[str]] = (),
) -> int:
    """Write hits in output order, or sorted; the same bytes for any number of threads or batches.

    Parameters
    ----------
    path : file that ends in .bed or .tsv (or .bed.gz, .tsv.gz), or '-' for standard output
    batches : Hits, or the batches of `iter_kmer_hits`, which are written as they come
    sorted : whether lines are ordered by contig, start, end, strand and query; a .bed.gz gets a tabix index then
    format : 'bed' (contig, start, end, name, distance, strand) or 'tsv' (a header line; query, contig, start, end,
        strand, distance); by the file's ending where None
    inputs : files that are being read, which the output must not be

    Returns
    -------
    int, hits written. An empty name is written as a dot. The file appears when it is complete; a named pipe or a
    device is written as it stands.

    Raises
    ------
    InputError : the ending says no format, or the file cannot be written or is an input
    """
    writer = open_writer(path, format_of(path, LINES, format), sorted=sorted, threads=threads, inputs=inputs)
    return write_batches(writer, batches)

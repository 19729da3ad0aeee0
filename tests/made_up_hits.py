"""Hits that no search found, with whatever a row can hold, and their lines sorted by plain Python."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from warpseed.kmer_seeds.output import TSV_HEADER
from warpseed.one_error.output import EDITED_ROW
from warpseed.output.hits import Hits
from warpseed.output.rows import HIT_ROW, order_rows
from warpseed.sequences.names import Names
from warpseed.sequences.queries import Queries

CONTIGS = {"chr2": 3000, "chr10": 40, "a|b;c=1,2": 500, "empty": 0, "chr1:10-20": 5_000_000}
"""In an order that no sorting by name gives."""


def hits_of(
    rows: Sequence[tuple[int, ...]], queries: Sequence[str], contigs: dict[str, int] | None = None, first: int = 0
) -> Hits:
    """Hits of all these queries, of which the first has number `first`; rows are as in HIT_ROW, in any order."""
    contigs = CONTIGS if contigs is None else contigs
    ordered = order_rows(np.array(rows, HIT_ROW))
    counts = np.bincount(ordered["query"] - first, minlength=len(queries)).astype(np.int64)
    lengths = np.array(list(contigs.values()), np.int64)
    return Hits(lambda a, b: ordered[a:b], counts, Names.of(queries), tuple(contigs), lengths, first_query=first)


def placements_of(lengths: dict[str, int], rows: list[tuple[int, ...]], reads: list[str]) -> Hits:
    """Placements that no search found, with the reads they are of."""
    ordered = order_rows(np.array([(*row, *(0,) * 6) for row in rows], EDITED_ROW))
    counts = np.bincount(ordered["query"], minlength=len(reads)).astype(np.int64)
    names = Names.of([f"q{i}" for i in range(len(reads))])
    bases, queries = np.array(list(lengths.values()), np.int64), Queries.from_sequences(reads, names.decoded())
    return Hits(
        lambda a, b: ordered[a:b], counts, names, tuple(lengths), bases, dtype=EDITED_ROW, queries=queries
    )  # fmt: skip


def draw_hits(seed: int, queries: int = 400, hits: int = 3000, places: int = 10**7) -> Hits:
    """Hits of many queries, some of which have none, one or hundreds, with many at the same place."""
    draw = random.Random(seed)
    lengths = list(CONTIGS.values())
    rows = []
    for _ in range(hits):
        query = min(draw.randrange(queries), draw.randrange(queries))
        contig = draw.choice([0, 1, 2, 4])
        start = draw.randrange(min(places, lengths[contig] - 30))
        rows.append((query, contig, start, start + draw.choice([20, 20, 25]), draw.randrange(2), draw.randrange(3)))
    names = [f"{'q' * draw.choice([0, 1, 1, 5, 40])}{i if i % 7 else ''}" for i in range(queries)]
    return hits_of(rows, names)


def batches_of(hits: Hits, sizes: Iterator[int]) -> Iterator[Hits]:
    """The same hits, some queries at a time; where a size is 0, the next query's hits come in two batches."""
    begin, ends = 0, np.concatenate([[0], np.cumsum(hits.counts)])
    while begin < len(hits.counts):
        size = next(sizes)
        end = min(begin + max(size, 1), len(hits.counts))
        middle = (int(ends[begin]) + int(ends[end])) // 2
        cuts = [int(ends[begin]), int(ends[end])] if size else [int(ends[begin]), middle, int(ends[end])]
        for i, (low, high) in enumerate(zip(cuts, cuts[1:], strict=False)):
            yield replace(
                part_of(hits, begin, end, low, high), continues=i + 2 < len(cuts)
            )  # fmt: skip
        begin = end


def part_of(hits: Hits, begin: int, end: int, low: int, high: int) -> Hits:
    """Queries [begin, end) with the hits [low, high)."""
    rows = hits.rows()[low:high]
    offsets = hits.query_names.offsets[begin : end + 1]
    counts = np.bincount(rows["query"] - begin, minlength=end - begin).astype(np.int64)
    return replace(
        hits, rows_of=lambda a, b: rows[a:b], counts=counts, query_names=Names(hits.query_names.text, offsets),
        first_query=begin,
    )  # fmt: skip


def sorted_text(hits: Hits, kind: str) -> bytes:
    """The lines of all hits as they are to be sorted."""
    names = [name or "." for name in hits.query_names.decoded()]
    rows = sorted(hits.rows().tolist(), key=lambda row: (row[1], row[2], row[3], row[4], row[0]))
    lines = []
    for query, contig, start, end, strand, distance in rows:
        place, sign = f"{hits.contig_names[contig]}\t{start}\t{end}", "+-"[strand]
        bed = f"{place}\t{names[query]}\t{distance}\t{sign}\n"
        lines.append(bed if kind == "bed" else f"{names[query]}\t{place}\t{sign}\t{distance}\n")
    return (b"" if kind == "bed" else TSV_HEADER) + "".join(lines).encode()

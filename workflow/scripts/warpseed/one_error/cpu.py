"""Both tiers on the CPU: ranges of reads, one range a task, any number of threads, results in query order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from warpseed.compute.ranges import borders_of, fill_in_parts, run_ranges
from warpseed.compute.sink import limit_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.layout import SeedIndex
from warpseed.one_error import cpu_fast, cpu_paper
from warpseed.one_error.paper import Results
from warpseed.one_error.reads import ONE_EDIT, Criteria
from warpseed.output.collect import RangeSearch, search_first
from warpseed.output.rows import Found, joined_parts
from warpseed.sequences.packed import BASES_A_WORD, Packed, part_of
from warpseed.tasks import Room

__all__ = [
    "CROWDED",
    "SEEDS",
    "PaperResults",
    "find_fast",
    "find_first_fast",
    "find_first_paper",
    "find_paper",
    "join_results",
    "locate_results",
    "search_paper",
    "settle_results",
]

CROWDED, SEEDS = 8, 3
"""Where the first K bases of a piece have more rows, others are looked up, and of three places the one with the fewest
rows is taken: real genomes repeat themselves. On 4.6 Mbp few pieces are crowded; on 100 Mbp reads are as fast with 8 as
with 16, and slower with 4 and 32."""
_MOST_BASES = 1 << 17
"""Bases of the reads of `find_first_paper`, besides its first: as many as take a fraction of a second."""


class PaperResults(NamedTuple):
    """What the paper tier's search finds before it locates, read by read."""

    results: Results
    counts: np.ndarray
    """int64[n], results of each read, those without a slot included"""
    stored: np.ndarray
    """int64[n], results of each read that are in `results`; 0 for one that was dropped"""
    placements: np.ndarray
    """int64[n], placements of these; 0 for one that was dropped"""
    dropped_queries: int
    dropped_hits: int


def _range_search(index: SeedIndex, reads: Packed, criteria: Criteria) -> RangeSearch:
    """The fast tier's search of packed reads."""
    pieces = max(criteria.max_edits, 1) + 1
    how = cpu_fast.How(criteria.strands, criteria.max_edits, index.table_length, CROWDED, SEEDS, pieces)
    longest = int(reads.lengths.max(initial=1))
    new_block = partial(cpu_fast.new_block, -(-longest // BASES_A_WORD), len(reads.marks) == 0, how)
    return RangeSearch(cpu_fast.search_range, (index.fast, reads, how), new_block, len(reads.lengths))


def find_fast(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria = ONE_EDIT,
    *,
    threads: int = 1,
    max_hits: int | None = None,
    count_only: bool = False,
    watch: Stopwatch | None = None,
) -> Found:
    """All placements of packed reads, or with `count_only` their numbers; see `warpseed.one_error.find_reads`."""
    search = _range_search(index, reads, criteria)
    with (watch or Stopwatch()).stage("search"):
        return search.all(threads, max_hits=max_hits, guess=6, count_only=count_only)


def find_first_fast(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria,
    room: Room,
    *,
    max_hits: int | None,
    watch: Stopwatch,
) -> Found:
    """The placements of the first reads of a set, as many as have room and are soon done; of none where those of the
    very first have no room."""
    search = _range_search(index, reads, criteria)
    with watch.stage("search"):
        return search.first(room.results, room.text, max_hits=max_hits)


def search_paper(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria = ONE_EDIT,
    *,
    slots: int | None = None,
    threads: int = 1,
    max_hits: int | None = None,
) -> PaperResults:
    """Paper tier, search only (paper 001, Algorithm 3): of each read at most `slots` results, or all."""
    most, limit = limit_of(slots), limit_of(max_hits)
    bwt = index.forward

    def task(first: int, last: int) -> tuple[list[Results], np.ndarray, np.ndarray]:
        columns, dropped = np.zeros((3, last - first), np.int64), np.zeros(2, np.int64)

        def fill(begin: int, room: int) -> tuple[int, Results, int]:
            results = Results(np.empty(room, np.uint32), np.empty(room, np.uint32), np.empty(room, np.uint32))
            counts, stored, placements = columns[:, begin - first :]
            sink = cpu_paper.ResultSink(results, counts, stored, placements, dropped, most, limit)
            stop, used, needed = cpu_paper.search_range(bwt, reads, criteria.strands, begin, last, sink)
            return stop, Results(*(column[:used] for column in results)), needed

        return fill_in_parts(first, last, 16 * (last - first) + 64, fill), columns, dropped

    parts = []
    for each, (counts, stored, placements), dropped in run_ranges(len(reads.lengths), threads, task):
        results = Results(*(joined_parts([part[i] for part in each], np.uint32) for i in range(3)))
        parts.append(PaperResults(results, counts, stored, placements, int(dropped[0]), int(dropped[1])))
    return join_results(parts)


def join_results(parts: Sequence[PaperResults]) -> PaperResults:
    """The results of consecutive sets of reads as those of one set; no parts give those of no reads."""
    if len(parts) == 1:
        return parts[0]
    return PaperResults(
        Results(*(joined_parts([part.results[i] for part in parts], np.uint32) for i in range(3))),
        joined_parts([part.counts for part in parts], np.int64),
        joined_parts([part.stored for part in parts], np.int64),
        joined_parts([part.placements for part in parts], np.int64),
        sum(part.dropped_queries for part in parts),
        sum(part.dropped_hits for part in parts),
    )


def settle_results(
    reads: Packed, results: Results, counts: np.ndarray, stored: np.ndarray, *, max_hits: int | None, threads: int
) -> PaperResults:
    """What a search on a device found, with the placements of each read counted, less the reads with too many.

    Parameters
    ----------
    results, counts, stored : as those of PaperResults, of reads of which none has been dropped
    """
    borders = borders_of(stored)
    placements = np.zeros(len(stored), np.int64)
    run_ranges(
        len(stored),
        threads,
        lambda first, last: cpu_paper.count_range(reads, first, last, results, borders, placements),
    )
    over = placements > limit_of(max_hits)
    if not over.any():
        return PaperResults(results, counts, stored, placements, 0, 0)
    kept = np.repeat(~over, stored)
    dropped = int(over.sum()), int(placements[over].sum())
    results = Results(*(column[kept] for column in results))
    return PaperResults(results, counts, np.where(over, 0, stored), np.where(over, 0, placements), *dropped)


def locate_results(index: SeedIndex, reads: Packed, searched: PaperResults, *, threads: int = 1) -> Found:
    """Paper tier, from intervals to places: every row of every result by LF steps, each place of a read once."""
    counts = searched.placements
    borders = borders_of(searched.stored), borders_of(counts)
    hits = np.empty(int(borders[1][-1]), np.uint64)

    def task(first: int, last: int) -> None:
        cpu_paper.locate_range(index.forward, reads, first, last, searched.results, borders, hits)

    run_ranges(len(counts), threads, task)
    return Found(hits, counts, searched.dropped_queries, searched.dropped_hits)


def find_first_paper(
    index: SeedIndex, reads: Packed, criteria: Criteria, room: Room, *, max_hits: int | None, watch: Stopwatch
) -> Found:
    """The placements of the first reads of a set, as many as have room and are soon done; at least those of one, in the
    whole text and held at once: `room.text` is asked for only where a first read had no room."""
    soon = int(np.searchsorted(np.cumsum(reads.lengths, dtype=np.int64), _MOST_BASES, side="right"))
    reads = part_of(reads, 0, min(len(reads.lengths), max(1, soon)))
    search = partial(search_paper, index, criteria=criteria, max_hits=max_hits)
    with watch.stage("search"):
        reads, searched = search_first(reads, room.results, search, lambda searched: searched.placements)
    with watch.stage("locate"):
        return locate_results(index, reads, searched)


def find_paper(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria = ONE_EDIT,
    *,
    threads: int = 1,
    max_hits: int | None = None,
    count_only: bool = False,
    watch: Stopwatch | None = None,
) -> Found:
    """All placements of packed reads by the paper tier; with `count_only`, which does not locate, their numbers."""
    watch = watch or Stopwatch()
    with watch.stage("search"):
        searched = search_paper(index, reads, criteria, threads=threads, max_hits=max_hits)
    if count_only:
        nothing = np.empty(0, np.uint64)
        return Found(nothing, searched.placements, searched.dropped_queries, searched.dropped_hits)
    with watch.stage("locate"):
        return locate_results(index, reads, searched, threads=threads)

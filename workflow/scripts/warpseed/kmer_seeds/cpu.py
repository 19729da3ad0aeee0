"""Both tiers on the CPU: ranges of k-mers, one range a task, any number of threads, results in query order."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from warpseed.compute.ranges import borders_of, fill_in_parts, run_ranges
from warpseed.compute.sink import limit_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.layout import SeedIndex
from warpseed.kmer_seeds import cpu_fast, cpu_paper
from warpseed.kmer_seeds.cpu_tags import tag_reading
from warpseed.kmer_seeds.fast import Costs
from warpseed.kmer_seeds.paper import Work
from warpseed.kmer_seeds.plans import plan_scheme
from warpseed.output.collect import RangeSearch, search_first
from warpseed.output.rows import Found, joined_parts
from warpseed.sequences.packed import BASES_A_WORD, Packed, part_of
from warpseed.tasks import Room

__all__ = [
    "COSTS",
    "Intervals",
    "find_fast",
    "find_first_fast",
    "find_first_paper",
    "find_paper",
    "locate_intervals",
    "search_paper",
]

COSTS = Costs(look_up=1.0, short_look_up=1.0, row=0.3, narrowing=1.5, narrow_above=cpu_fast.NARROW_ABOVE)
"""Measured on genomes of 4.6 and 100 Mbp; a row takes some 6 ns of 20 for a look-up (docs/decisions.md)."""
_MOST_QUERIES = (1 << 12, 1 << 10, 1 << 8)
"""k-mers of `find_first_paper`, by mismatches: as many as take a fraction of a second."""


class Intervals(NamedTuple):
    """What the paper tier's search finds before it locates: intervals of rows, k-mer by k-mer."""

    low: np.ndarray
    """uint32[i], first row"""
    size: np.ndarray
    """uint32[i], rows"""
    kind: np.ndarray
    """uint8[i], strand << 2 | distance"""
    counts: np.ndarray
    """int64[n], intervals of each k-mer"""
    hits: np.ndarray
    """int64[n], rows of each k-mer, 0 for one that was dropped"""
    dropped_queries: int
    dropped_hits: int


def _range_search(index: SeedIndex, kmers: Packed, max_mismatches: int) -> RangeSearch:
    """The fast tier's search of packed k-mers."""
    scheme = plan_scheme(index, kmers.lengths, max_mismatches, COSTS)
    stride = -(-int(kmers.lengths.max(initial=1)) // BASES_A_WORD) + 1
    new_block = partial(cpu_fast.new_block, stride, int(scheme.look_ups.max()))
    return RangeSearch(
        cpu_fast.search_range,
        (index.fast, tag_reading(index.tags, scheme), kmers, scheme),
        new_block,
        len(kmers.lengths),
    )


def find_fast(
    index: SeedIndex,
    kmers: Packed,
    max_mismatches: int,
    *,
    threads: int = 1,
    max_hits: int | None = None,
    count_only: bool = False,
    watch: Stopwatch | None = None,
) -> Found:
    """All hits of packed k-mers, or with `count_only` their numbers; see `warpseed.kmer_seeds.find_kmers`."""
    search = _range_search(index, kmers, max_mismatches)
    with (watch or Stopwatch()).stage("search"):
        return search.all(threads, max_hits=max_hits, guess=2, count_only=count_only)


def find_first_fast(
    index: SeedIndex, kmers: Packed, max_mismatches: int, room: Room, *, max_hits: int | None, watch: Stopwatch
) -> Found:
    """The hits of the first k-mers of a set, as many as have room and are soon done; of none where those of the very
    first have no room."""
    search = _range_search(index, kmers, max_mismatches)
    with watch.stage("search"):
        return search.first(room.results, room.text, max_hits=max_hits)


def search_paper(
    index: SeedIndex, kmers: Packed, max_mismatches: int, *, threads: int = 1, max_hits: int | None = None
) -> Intervals:
    """Paper tier, search only (paper 000, Table II): exact on bwt, inexact on rbwt."""
    limit = limit_of(max_hits)
    longest = int(kmers.lengths.max(initial=1))
    bwts = index.forward, index.reverse

    def task(first: int, last: int) -> tuple[list[cpu_paper.IntervalSink], np.ndarray, np.ndarray, np.ndarray]:
        counts, rows = np.zeros(last - first, np.int64), np.zeros(last - first, np.int64)
        dropped = np.zeros(2, np.int64)
        work = Work(*(np.empty(longest, dtype) for dtype in (np.uint8, np.uint32, np.uint32, np.uint8)))

        def fill(begin: int, room: int) -> tuple[int, cpu_paper.IntervalSink, int]:
            out = np.empty(room, np.uint32), np.empty(room, np.uint32), np.empty(room, np.uint8)
            sink = cpu_paper.IntervalSink(*out, counts[begin - first :], rows[begin - first :], dropped, limit)
            stop, used, needed = cpu_paper.search_range(bwts, kmers, max_mismatches, begin, last, work, sink)
            return stop, sink._replace(low=sink.low[:used], size=sink.size[:used], kind=sink.kind[:used]), needed

        return fill_in_parts(first, last, 2 * (last - first) + 64, fill), counts, rows, dropped

    results = run_ranges(len(kmers.lengths), threads, task)
    sinks = [sink for parts, *_ in results for sink in parts]
    return Intervals(
        joined_parts([sink.low for sink in sinks], np.uint32),
        joined_parts([sink.size for sink in sinks], np.uint32),
        joined_parts([sink.kind for sink in sinks], np.uint8),
        joined_parts([counts for _, counts, _, _ in results], np.int64),
        joined_parts([rows for _, _, rows, _ in results], np.int64),
        int(sum(dropped[0] for *_, dropped in results)),
        int(sum(dropped[1] for *_, dropped in results)),
    )


def locate_intervals(
    index: SeedIndex, kmers: Packed, intervals: Intervals, max_mismatches: int, *, threads: int = 1
) -> Found:
    """Paper tier, Equation 2 on the CPU: every row one by one, on as many threads as given (Figure 5: one)."""
    bwt = index.reverse if max_mismatches else index.forward
    borders = borders_of(intervals.counts), borders_of(intervals.hits)
    hits = np.empty(int(borders[1][-1]), np.uint64)

    def task(first: int, last: int) -> None:
        cpu_paper.locate_range(bwt, kmers, max_mismatches > 0, first, last, intervals[:3], borders, hits)

    run_ranges(len(kmers.lengths), threads, task)
    return Found(hits, intervals.hits, intervals.dropped_queries, intervals.dropped_hits)


def find_first_paper(
    index: SeedIndex, kmers: Packed, max_mismatches: int, room: Room, *, max_hits: int | None, watch: Stopwatch
) -> Found:
    """The hits of the first k-mers of a set, as many as have room and are soon done.

    At least one is done, in the whole text: all hits of a k-mer are held at once, however many, and `room.text` is not
    looked at, since `warpseed.tasks` asks for a part of the text only where the first k-mer had no room.
    """
    kmers = part_of(kmers, 0, min(len(kmers.lengths), _MOST_QUERIES[max_mismatches]))
    search = partial(search_paper, index, max_mismatches=max_mismatches, max_hits=max_hits)
    with watch.stage("search"):
        kmers, found = search_first(kmers, room.results, search, lambda found: found.hits)
    with watch.stage("locate"):
        return locate_intervals(index, kmers, found, max_mismatches)


def find_paper(
    index: SeedIndex,
    kmers: Packed,
    max_mismatches: int,
    *,
    threads: int = 1,
    max_hits: int | None = None,
    count_only: bool = False,
    watch: Stopwatch | None = None,
) -> Found:
    """All hits of packed k-mers by the paper tier, or with `count_only`, which does not locate, their numbers."""
    watch = watch or Stopwatch()
    with watch.stage("search"):
        found = search_paper(index, kmers, max_mismatches, threads=threads, max_hits=max_hits)
    if count_only:
        return Found(np.empty(0, np.uint64), found.hits, found.dropped_queries, found.dropped_hits)
    with watch.stage("locate"):
        return locate_intervals(index, kmers, found, max_mismatches, threads=threads)

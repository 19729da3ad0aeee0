"""Both tiers on the CPU: any number of threads, results in query order."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from warpseed.compute.pipeline import check_wanted, mapped
from warpseed.compute.ranges import borders_of, run_ranges
from warpseed.compute.sink import NO_LIMIT, WHOLE_TEXT, limit_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.binned import PAPER_PARAMETERS, BinnedIndex, BinParameters, binned_index
from warpseed.fm_index.layout import SeedIndex
from warpseed.mems import cpu_fast, cpu_paper
from warpseed.mems.cpu_block import new_block
from warpseed.mems.cpu_steps import find_in_steps
from warpseed.mems.fast import how_for
from warpseed.mems.matches import MATCH, PLACE_BITS, Criteria
from warpseed.mems.paper import BASES_A_WORD, PAD_WORDS, Entries, Patterns
from warpseed.output.collect import RangeSearch
from warpseed.output.rows import Found, join_found, joined_parts
from warpseed.sequences.packed import Packed, part_of
from warpseed.tasks import Room

__all__ = ["PaperMatches", "find_fast", "find_first_fast", "find_first_paper", "find_paper", "search_paper"]

LONG_READ = 1 << 17
"""Bases from which on a read is searched in steps, which threads share."""
_LEAST_BASES = 1 << 16
"""Bases of reads that are not worth being dealt out."""
_SHARES = 8
"""Parts for each thread, about, so that none idles long."""
_GUESS, _BASES_A_MATCH = 64, 32
"""Matches of a read that there is room for at first, and one more for so many bases."""
_MOST_BASES = 1 << 16
"""Bases of the reads of `find_first_paper`, besides its first: as many as take a fraction of a second."""
_PLACE = np.uint64((1 << PLACE_BITS) - 1)
_CHUNK = 1 << 20
"""Rows that are split and located together."""


class PaperMatches(NamedTuple):
    """What the paper tier has found before it locates (stages 0 to 2), and how many matches that are."""

    patterns: Patterns
    entries: Entries
    borders: np.ndarray
    """int64[e + 1], where the rows that each entry has for itself begin"""
    occurrences: np.ndarray
    """int64[e], matches of each entry's read that have the same part of it"""
    counts: np.ndarray
    """int64[n], matches of each read"""


def _range_search(index: SeedIndex, reads: Packed, criteria: Criteria) -> RangeSearch:
    """The fast tier's search of packed reads."""
    longest = int(reads.lengths.max(initial=1))
    block_of = partial(new_block, longest, len(reads.marks) == 0)
    shared = index.fast, reads, how_for(criteria, index.table_length, index.rows)
    return RangeSearch(cpu_fast.search_range, shared, block_of, len(reads.lengths), MATCH)


def find_fast(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria,
    *,
    threads: int = 1,
    max_hits: int | None = None,
    count_only: bool = False,
    watch: Stopwatch | None = None,
) -> Found:
    """All wanted matches of packed reads, or with `count_only` their numbers; see `warpseed.mems.find_mems`."""
    # Occurrences are counted of matches that are held.
    hold = criteria.max_occurrences != NO_LIMIT

    def task(part: tuple[int, int]) -> Found:
        few = part_of(reads, *part)
        if few.lengths[0] >= LONG_READ:
            everything = Room(NO_LIMIT)
            return find_in_steps(
                index, few, criteria, everything, threads=threads, max_hits=max_hits, count_only=count_only
            )  # fmt: skip
        search = _range_search(index, few, criteria)
        guess = _GUESS + int(few.lengths.mean() / _BASES_A_MATCH)
        return search.all(1, max_hits=max_hits, guess=guess, count_only=count_only and not hold)

    with (watch or Stopwatch()).stage("search"):
        parts = _parts(reads.lengths, threads)
        found = join_found(list(mapped(parts, task, threads)))
    return found._replace(hits=np.empty(0, MATCH)) if count_only or not parts else found


def _parts(lengths: np.ndarray, threads: int) -> list[tuple[int, int]]:
    """Reads in parts of about as many bases, [begin, end) each; a long one is alone."""
    ends = np.cumsum(lengths, dtype=np.int64)
    most = max(_LEAST_BASES, int(ends[-1]) // (_SHARES * threads)) if len(ends) else 0
    parts, begin = [], 0
    while begin < len(lengths):
        end = begin + 1
        if lengths[begin] < LONG_READ:
            before = int(ends[begin]) - int(lengths[begin])
            end = max(end, int(np.searchsorted(ends, before + most, side="right")))
            long = np.flatnonzero(lengths[begin:end] >= LONG_READ)
            end = begin + int(long[0]) if len(long) else end
        parts.append((begin, end))
        begin = end
    return parts


def find_first_fast(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria,
    room: Room,
    *,
    max_hits: int | None,
    watch: Stopwatch,
    threads: int = 1,
) -> Found:
    """The matches of the first reads of a set, as many as have room and are soon done; of none where those of the very
    first have no room. Threads share a read that is long."""
    with watch.stage("search"):
        if room.text == WHOLE_TEXT:
            long = np.flatnonzero(reads.lengths >= LONG_READ)
            few = part_of(reads, 0, int(long[0])) if len(long) else reads
            if len(few.lengths):
                found = _range_search(index, few, criteria).first(room.results, room.text, max_hits=max_hits)
                if len(found.counts):
                    return found
        # A part of the text is asked for where the read's matches do not fit together: others are searched beside it.
        threads = threads if room.text == WHOLE_TEXT else 1
        return find_in_steps(index, part_of(reads, 0, 1), criteria, room, threads=threads, max_hits=max_hits)


# ------------------------------------------------------------------------------------------------- paper tier


def _pack(reads: Packed, criteria: Criteria, threads: int) -> Patterns:
    """Stage 0: the patterns, packed, and the MEM starts that each has."""
    lengths = np.repeat(reads.lengths.astype(np.int64), criteria.strands)
    first = borders_of(-(-lengths // BASES_A_WORD))
    starts = borders_of(np.maximum(lengths - criteria.min_length + 1, 0))
    words = np.zeros(int(first[-1]) + PAD_WORDS + 1, np.uint32)
    patterns = Patterns(words, first + PAD_WORDS, reads.lengths, starts, criteria.strands)
    run_ranges(len(lengths), threads, lambda begin, end: cpu_paper.pack_patterns(reads, patterns, begin, end))
    return patterns


def _new_entries(count: int) -> Entries:
    return Entries(np.empty(count, np.uint64), np.empty(count, np.uint64), np.empty(count, np.uint32))


def _find_intervals(index: BinnedIndex, patterns: Patterns, min_length: int, threads: int) -> Entries:
    """Stage 1: the longest match of each MEM start, where it is long enough."""

    def task(first: int, last: int) -> Entries:
        entries, used = _new_entries(last - first), 0
        while first < last:
            check_wanted()
            used, first = cpu_paper.find_intervals(index, patterns, min_length, first, last, entries, used)
        return Entries(*(column[:used].copy() for column in entries))

    parts = run_ranges(int(patterns.starts[-1]), threads, task)
    kinds = (np.uint64, np.uint64, np.uint32)
    return Entries(*(joined_parts([part[i] for part in parts], kind) for i, kind in enumerate(kinds)))


def _occurrences(patterns: Patterns, entries: Entries, counts: np.ndarray, threads: int) -> np.ndarray:
    """The rows, int64[e], of all entries with the same part of the same read as it is written; `counts`: of each."""
    reads, sums = len(patterns.lengths), counts.copy()
    if patterns.strands == 2:
        borders = np.searchsorted(entries.patterns, np.arange(2 * reads + 1))

        def add(first: int, last: int) -> None:
            cpu_paper.add_other_strand(patterns, entries, borders, first, last, sums)

        run_ranges(reads, threads, add)
    return sums


def _counts_of(entries: Entries, borders: np.ndarray, strands: int, reads: int) -> np.ndarray:
    """The matches of each read, int64[n]."""
    return np.diff(borders[np.searchsorted(entries.patterns, np.arange(reads + 1) * strands)])


def _chosen(entries: Entries, which: np.ndarray) -> Entries:
    return Entries(*(column[which] for column in entries))


def search_paper(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria,
    *,
    parameters: BinParameters = PAPER_PARAMETERS,
    threads: int = 1,
    watch: Stopwatch | None = None,
) -> PaperMatches:
    """Paper tier, stages 0 to 2 of section 4: the intervals of all matches; stage 3 so far as it counts them.

    Parameters
    ----------
    parameters : what the index of section 4.1 is made with, where it is not there yet
    watch : takes the seconds of the stages pack, intervals, filter and split
    """
    binned, watch = binned_index(index, criteria.min_length, parameters, threads=threads), watch or Stopwatch()
    with watch.stage("pack"):
        patterns = _pack(reads, criteria, threads)
    with watch.stage("intervals"):
        entries = _find_intervals(binned, patterns, criteria.min_length, threads)
    with watch.stage("filter"):
        kept = np.empty(len(entries.patterns), np.uint8)
        run_ranges(len(kept), threads, lambda first, last: cpu_paper.drop_redundant(entries, first, last, kept))
        entries = _chosen(entries, kept != 0)
    with watch.stage("split"):
        counts = np.empty(len(entries.patterns), np.int64)
        run_ranges(len(counts), threads, lambda first, last: cpu_paper.count_rows(entries, first, last, counts))
        borders = borders_of(counts)
        occurrences = _occurrences(patterns, entries, counts, threads)
        counts = _counts_of(entries, borders, criteria.strands, len(reads.lengths))
        return PaperMatches(patterns, entries, borders, occurrences, counts)


def _settled(searched: PaperMatches, stop: int, limit: int, criteria: Criteria) -> tuple[PaperMatches, int, int]:
    """What was found of the first `stop` reads, less those with more than `limit` matches, and less matches with too
    many occurrences; how many reads were dropped, and how many matches."""
    patterns, entries, borders, occurrences, counts = searched
    counts, most = counts[:stop], criteria.max_occurrences
    over = counts > limit
    if stop == len(searched.counts) and not over.any() and occurrences.max(initial=0) <= most:
        return searched, 0, 0
    query = entries.patterns // np.uint32(patterns.strands)
    kept = (query < stop) & ~np.append(over, False)[np.minimum(query, stop)]
    # An entry with too many stays, with no rows: it says which rows the next one has not for itself.
    rows = np.where(occurrences <= most, np.diff(borders), 0)[kept]
    borders, entries = borders_of(rows), _chosen(entries, kept)
    left = _counts_of(entries, borders, patterns.strands, stop)
    rest = PaperMatches(patterns, entries, borders, occurrences[kept], left)
    return rest, int(over.sum()), int(counts.sum() - left.sum())


def _locate_chunk(
    binned: BinnedIndex, searched: PaperMatches, first: int, hits: np.ndarray, threads: int, watch: Stopwatch
) -> None:
    """Stages 3 and 4 for the matches from number `first` on, as many as there is room for."""
    patterns, entries, borders, occurrences, _ = searched
    rows, owners = np.empty(len(hits), np.uint32), np.empty(len(hits), np.int64)

    def split(begin: int, end: int) -> None:
        cpu_paper.split_rows(entries, borders, first + begin, rows[begin:end], owners[begin:end])

    def locate(begin: int, end: int) -> None:
        cpu_paper.locate_rows(binned, patterns, entries, (rows, owners, occurrences), begin, end, hits)

    with watch.stage("split"):
        run_ranges(len(hits), threads, split)
    with watch.stage("locate"):
        run_ranges(len(hits), threads, locate)


def _locate_all(binned: BinnedIndex, searched: PaperMatches, threads: int, watch: Stopwatch) -> np.ndarray:
    """The matches, in output order."""
    hits = np.empty(int(searched.borders[-1]), MATCH)
    for first in range(0, len(hits), _CHUNK):
        _locate_chunk(binned, searched, first, hits[first : first + _CHUNK], threads, watch)
    borders = borders_of(searched.counts)
    with watch.stage("sort"):
        run_ranges(len(borders) - 1, threads, lambda first, last: cpu_paper.sort_reads(borders, first, last, hits))
    return hits


def _locate_in(
    binned: BinnedIndex, searched: PaperMatches, window: tuple[int, int], room: int, watch: Stopwatch
) -> np.ndarray | None:
    """The matches of one read that begin in these positions of the text, in output order; None for more than `room`."""
    parts, total, held = [], int(searched.borders[-1]), 0
    for first in range(0, total, _CHUNK):
        hits = np.empty(min(_CHUNK, total - first), MATCH)
        _locate_chunk(binned, searched, first, hits, 1, watch)
        places = (hits["place"] & _PLACE) >> np.uint64(1)
        parts.append(hits[(places >= window[0]) & (places < window[1])])
        held += len(parts[-1])
        if held > room:
            return None
    hits = joined_parts(parts, MATCH)
    with watch.stage("sort"):
        cpu_paper.sort_reads(np.array([0, held]), 0, 1, hits)
    return hits


def find_first_paper(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria,
    room: Room,
    *,
    max_hits: int | None,
    watch: Stopwatch,
    threads: int = 1,
) -> Found:
    """The matches of the first reads of a set, as many as have room and are soon done; of none where those of the very
    first have no room. What is held of a read before it is located follows its length. Threads share a read that is
    long."""
    soon = int(np.searchsorted(np.cumsum(reads.lengths, dtype=np.int64), _MOST_BASES, side="right"))
    reads = part_of(reads, 0, min(len(reads.lengths), max(1, soon)))
    binned = binned_index(index, criteria.min_length)
    threads = threads if int(reads.lengths[0]) > _MOST_BASES and room.text == WHOLE_TEXT else 1
    searched = search_paper(index, reads, criteria, threads=threads, watch=watch)
    nothing = Found(np.empty(0, MATCH), np.empty(0, np.int64), 0, 0)
    if room.text != WHOLE_TEXT:
        # A part of the text is asked for of one read, which was not dropped: that was decided in the whole of it.
        searched, _, rest = _settled(searched, 1, NO_LIMIT, criteria)
        hits = _locate_in(binned, searched, room.text, room.results, watch)
        # What is left out, wherever it begins, is counted with the first part of the text.
        return nothing if hits is None else Found(hits, np.array([len(hits)]), 0, rest if room.text[0] == 0 else 0)
    limit = limit_of(max_hits)
    kept = np.where(searched.counts > limit, 0, searched.counts)
    stop = int(np.searchsorted(np.cumsum(kept), room.results, side="right"))
    searched, *dropped = _settled(searched, stop, limit, criteria)
    return Found(_locate_all(binned, searched, threads, watch), searched.counts, *dropped) if stop else nothing


def find_paper(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria,
    *,
    parameters: BinParameters = PAPER_PARAMETERS,
    threads: int = 1,
    max_hits: int | None = None,
    count_only: bool = False,
    watch: Stopwatch | None = None,
) -> Found:
    """All matches of packed reads by the paper tier, which are of its own kind; with `count_only`, which does not
    locate, their numbers."""
    watch = watch or Stopwatch()
    searched = search_paper(index, reads, criteria, parameters=parameters, threads=threads, watch=watch)
    searched, *dropped = _settled(searched, len(reads.lengths), limit_of(max_hits), criteria)
    if count_only:
        return Found(np.empty(0, MATCH), searched.counts, *dropped)
    binned = binned_index(index, criteria.min_length, parameters)
    return Found(_locate_all(binned, searched, threads, watch), searched.counts, *dropped)

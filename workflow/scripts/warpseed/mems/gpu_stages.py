"""The paper tier on the GPU, stage by stage: what launches the kernels of gpu_paper.

What a batch leaves between its stages stays on the device. MEM starts go in launches, since what a launch has for each
of them would fill the device; what they find is compacted, and stands together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.device_copies import copied_to_device
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.device_sums import borders_of
from warpseed.compute.gpu import cupy, free_memory, launch, to_device
from warpseed.compute.sink import NO_LIMIT
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.warp import BLOCK
from warpseed.fm_index.binned import PAPER_PARAMETERS, BinnedIndex, BinParameters
from warpseed.fm_index.device import binned_on_device
from warpseed.fm_index.layout import SeedIndex
from warpseed.mems.gpu_paper import (
    Started,
    assign_starts,
    compact_found,
    compact_kept,
    count_kept,
    count_matches,
    count_new_rows,
    drop_reads,
    find_intervals,
    locate_matches,
    pack_pattern_words,
    split_intervals,
)
from warpseed.mems.gpu_shared import (
    BYTES_A_MATCH,
    MatchRequest,
    bytes_each,
    hits_of,
    in_windows,
    put_occurrences_among,
    results_of,
)
from warpseed.mems.matches import MATCH, Criteria
from warpseed.mems.paper import BASES_A_WORD, PAD_WORDS, Entries, Patterns
from warpseed.output.from_device import DeviceHits
from warpseed.sequences.packed import Packed, part_of

__all__ = ["Searched", "paper_batch", "paper_bytes_each", "paper_matches", "paper_run", "search_on_device"]

STARTS_A_LAUNCH = 1 << 26
"""MEM starts of a launch, at most; a multiple of BLOCK."""
ROWS_A_LAUNCH = 1 << 26
"""Rows that are split and located together, at most."""
_BYTES_A_BASE = 100
"""Device memory of a base of a read, about: a thread of each orientation, and what that finds."""
_BASES_A_RUN = 1 << 25
"""Bases of the reads that `paper_run` searches at once, about."""


class Searched(NamedTuple):
    """What a batch left on the device before it is located (stages 0 to 3)."""

    patterns: Patterns
    entries: Entries
    borders: Any
    """int64[e + 1], where the rows that each entry has for itself begin"""
    counts: Any
    """int64[n], matches of each read, 0 for one that was dropped"""
    total: int
    """matches of all"""
    dropped: tuple[int, int]
    """reads with too many matches, and those"""


def _blocks(threads: int) -> int:
    return -(-threads // BLOCK)


def _new_entries(count: int) -> tuple[Any, ...]:
    xp = cupy()
    return xp.empty(count, xp.uint64), xp.empty(count, xp.uint64), xp.empty(count, xp.uint32)


def _packed_patterns(reads: Packed, criteria: Criteria) -> Patterns:
    """Stage 0, the first two arrays, of reads that lie on the device."""
    xp = cupy()
    lengths = xp.repeat(reads.lengths.astype(xp.int64), criteria.strands)
    first = borders_of((lengths + (BASES_A_WORD - 1)) // BASES_A_WORD) + PAD_WORDS
    starts = borders_of(xp.maximum(lengths - (criteria.min_length - 1), 0))
    words = xp.zeros(int(first[-1]) + 1, xp.uint32)
    patterns = Patterns(words, first, reads.lengths, starts, criteria.strands)
    launch(pack_pattern_words, len(words) - PAD_WORDS - 1, BLOCK, reads, patterns)
    return patterns


def _found_by(
    index: BinnedIndex, patterns: Patterns, min_length: int, first: int, count: int, watch: Stopwatch
) -> tuple[Any, ...]:
    """Stages 1 and 2 for `count` MEM starts from number `first` on: the columns of their entries, those that are empty
    left out."""
    xp = cupy()
    with time_on_device(watch, "pack"):
        started = Started(xp.empty(count, xp.uint32), xp.empty(count, xp.uint32))
        launch(assign_starts, count, BLOCK, patterns.starts, first, started)
    columns = xp.empty(count, xp.uint64), xp.empty(count, xp.uint64), xp.empty(0, xp.uint32)
    found, counts = Entries(*columns), xp.empty(_blocks(count), xp.uint32)
    with time_on_device(watch, "intervals"):
        launch(find_intervals, count, BLOCK, index, patterns, started, min_length, found, counts)
    with time_on_device(watch, "filter"):
        borders = borders_of(counts)
        compacted = _new_entries(int(borders[-1]))
        launch(
            compact_found, count, BLOCK, found, started.patterns, borders, Entries(*compacted)
        )  # fmt: skip
    return compacted


def _filtered(columns: list[tuple[Any, ...]]) -> Entries:
    """Stage 2: the entries of all launches without those that are redundant."""
    xp = cupy()
    entries = Entries(*(parts[0] if len(parts) == 1 else xp.concatenate(parts) for parts in zip(*columns, strict=True)))
    count = entries.patterns.shape[0]
    counts = xp.empty(_blocks(count), xp.uint32)
    launch(count_kept, count, BLOCK, entries, counts)
    borders = borders_of(counts)
    kept = Entries(*_new_entries(int(borders[-1])))
    launch(compact_kept, count, BLOCK, entries, borders, kept)
    return kept


def _counted(entries: Entries, reads: int, strands: int, max_hits: int) -> tuple[Any, Any, tuple[int, int]]:
    """Stage 3, first: where the rows of each entry begin, the matches of each read, and the reads that are dropped and
    their matches."""
    xp = cupy()
    rows, counts = xp.empty(entries.patterns.shape[0], xp.int64), xp.empty(reads, xp.int64)
    launch(count_new_rows, len(rows), BLOCK, entries, rows)
    borders = borders_of(rows)
    launch(count_matches, reads, BLOCK, entries, borders, strands, counts)
    over = counts > max_hits
    dropped = int(over.sum())
    if not dropped:
        return borders, counts, (0, 0)
    launch(drop_reads, len(rows), BLOCK, entries, strands, max_hits, counts, rows)
    hits = int(counts[over].sum())
    counts[over] = 0
    return borders_of(rows), counts, (dropped, hits)


def search_on_device(
    index: BinnedIndex, reads: Packed, criteria: Criteria, max_hits: int, watch: Stopwatch
) -> Searched:
    """Stages 0 to 2 for reads that lie on the device, and stage 3 so far as it counts."""
    with time_on_device(watch, "pack"):
        patterns = _packed_patterns(reads, criteria)
        starts = int(patterns.starts[-1])
    found = [_new_entries(0)]
    for first in range(0, starts, STARTS_A_LAUNCH):
        count = min(STARTS_A_LAUNCH, starts - first)
        found.append(_found_by(index, patterns, criteria.min_length, first, count, watch))
    with time_on_device(watch, "filter"):
        entries = _filtered(found[1:] or found)
    found.clear()
    with time_on_device(watch, "split"):
        borders, counts, dropped = _counted(entries, len(reads.lengths), criteria.strands, max_hits)
        return Searched(patterns, entries, borders, counts, int(borders[-1]), dropped)


def _locate(index: BinnedIndex, searched: Searched, first: int, into: tuple[Any, Any], watch: Stopwatch) -> None:
    """Stages 3 and 4 for the matches from number `first` on: keys and spans, as many as there is room for."""
    xp = cupy()
    rows, owners = (xp.empty(len(into[0]), xp.uint32) for _ in range(2))
    patterns, entries, borders, *_ = searched
    with time_on_device(watch, "split"):
        launch(split_intervals, len(rows), BLOCK, entries, borders, first, rows, owners)
    with time_on_device(watch, "locate"):
        launch(locate_matches, len(rows), BLOCK, index, patterns, entries, rows, owners, *into)


def _new_matches(count: int) -> tuple[Any, Any]:
    xp = cupy()
    return xp.empty(count, xp.uint64), xp.empty(count, xp.uint64)


def _all_matches(index: BinnedIndex, searched: Searched, request: MatchRequest, watch: Stopwatch) -> DeviceHits:
    """The matches, in output order."""
    keys, spans = _new_matches(searched.total)
    for first in range(0, searched.total, ROWS_A_LAUNCH):
        part = slice(first, first + ROWS_A_LAUNCH)
        _locate(index, searched, first, (keys[part], spans[part]), watch)
    with time_on_device(watch, "sort"):
        return hits_of(keys, spans, searched.counts, searched.dropped, request)


def _located(index: BinnedIndex, searched: Searched, room: int, watch: Stopwatch) -> Iterator[tuple[Any, Any]]:
    """Keys and spans of all matches, `room` at a time at most."""
    step = min(ROWS_A_LAUNCH, room)
    for first in range(0, searched.total, step):
        matches = _new_matches(min(step, searched.total - first))
        _locate(index, searched, first, matches, watch)
        yield matches


def _matches_in(
    window: tuple[int, int], room: int, located: Callable[[], Iterator[tuple[Any, Any]]], request: MatchRequest
) -> DeviceHits | None:
    """The matches of a single read, of all that are located, that begin in these positions of the text; None for more
    than `room`."""
    xp = cupy()
    low, high = (xp.uint64(place << 1) for place in window)
    parts, held = [_new_matches(0)], 0
    for keys, spans in located():
        mine = (keys >= low) & (keys < high)
        parts.append((keys[mine], spans[mine]))
        held += len(parts[-1][0])
        if held > room:
            return None
    keys, spans = map(xp.concatenate, zip(*parts, strict=True))
    counts = xp.asarray(np.array([held], np.int64))

    def put_among_all(hits: Any, *_: Any) -> None:
        put_occurrences_among((spans for _, spans in located()), hits)

    return hits_of(keys, spans, counts, (0, 0), request, put_among_all)


def _in_windows(
    index: BinnedIndex, searched: Searched, request: MatchRequest, watch: Stopwatch
) -> Iterator[DeviceHits]:
    """The matches of a single read, in windows of the text that memory suffices for, located again for each."""
    room = max(64, free_memory() // (4 * BYTES_A_MATCH))
    located = partial(_located, index, searched, room, watch)
    text_end = int(index.first_row[4])
    return in_windows(text_end, lambda begin, end: _matches_in((begin, end), room, located, request))


def paper_matches(
    index: BinnedIndex, reads: Packed, request: MatchRequest, watch: Stopwatch
) -> DeviceHits | Iterator[DeviceHits]:
    """The matches of reads that lie on the device, which stay there; `watch` takes the seconds of each stage.

    Returns
    -------
    DeviceHits; of a single read with more matches than the device holds at a time, those of one part of the text after
    the other
    """
    searched = search_on_device(index, reads, request.criteria, request.max_hits, watch)
    if request.count_only and request.criteria.max_occurrences == NO_LIMIT:
        return DeviceHits(cupy().empty(0, np.uint64), searched.counts, searched.total, *searched.dropped, MATCH)
    if len(reads.lengths) == 1 and searched.total * BYTES_A_MATCH > free_memory() // 2:
        return _in_windows(index, searched, request, watch)
    return _all_matches(index, searched, request, watch)


# ---- batches


def paper_bytes_each(reads: Packed) -> int:
    """Device memory that a read of the paper tier takes, about."""
    return bytes_each(reads, _BYTES_A_BASE)


def paper_batch(
    index: SeedIndex, request: MatchRequest, watch: Stopwatch, parameters: BinParameters = PAPER_PARAMETERS
) -> Callable[[Packed], DeviceHits | Iterator[DeviceHits]]:
    """What searches one batch that lies on the host; brings the index of section 4.1 to the device. Its matches stay
    there, in output order."""
    binned = binned_on_device(index, request.criteria.min_length, parameters, watch)

    def run(reads: Packed) -> DeviceHits | Iterator[DeviceHits]:
        return paper_matches(binned, copied_to_device(reads, watch, request.threads), request, watch)

    return run


def _parts(reads: Packed) -> list[Packed]:
    """Reads in parts of about _BASES_A_RUN bases, or of one read."""
    ends = np.cumsum(reads.lengths, dtype=np.int64)
    numbers = np.unique((ends - 1) // _BASES_A_RUN, return_index=True)[1]
    return [
        part_of(reads, int(first), int(last)) for first, last in zip(numbers, [*numbers[1:], len(ends)], strict=True)
    ]


def paper_run(
    index: SeedIndex, reads: Packed, request: MatchRequest, parameters: BinParameters, watch: Stopwatch
) -> Callable[[], int]:
    """A search of reads that lie on the current device and whose matches stay there, in parts that leave room for what
    each thread has; it returns their number."""
    binned = binned_on_device(index, request.criteria.min_length, parameters, watch)
    parts = [to_device(part) for part in _parts(reads)]
    return lambda: sum(results_of(paper_matches(binned, part, request, watch)) for part in parts)

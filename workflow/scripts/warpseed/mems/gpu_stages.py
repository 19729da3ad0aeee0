"""The paper tier on the GPU, stage by stage: what launches the kernels of gpu_paper.

What a batch leaves between its stages stays on the device. MEM starts go in launches, since what a launch has for each
of them would fill the device; what they find is compacted, and stands together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.gpu import cupy, launch, synchronize, time_on_device, to_device, view
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
from warpseed.mems.gpu_shared import Request, in_order
from warpseed.mems.matches import MATCH, Criteria
from warpseed.mems.paper import BASES_A_WORD, PAD_WORDS, Entries, Patterns
from warpseed.output.from_device import DeviceHits, packed_bytes
from warpseed.sequences.packed import Packed, part_of

__all__ = ["DeviceMatches", "paper_batch", "paper_bytes_each", "paper_run", "search_on_device"]

STARTS_A_LAUNCH = 1 << 26
"""MEM starts of a launch, at most; a multiple of BLOCK."""
ROWS_A_LAUNCH = 1 << 26
"""Rows that are split and located together, at most."""
_BYTES_A_BASE = 100
"""Device memory of a base of a read, about: a thread of each orientation, and what that finds."""
_BASES_A_RUN = 1 << 25
"""Bases of the reads that `paper_run` searches at once, about."""


class DeviceMatches(NamedTuple):
    """What a batch left on the device: matches in any order, each read's together."""

    keys: Any
    """uint64[h], the query above PLACE_BITS, below it a match's place; none where only counts were asked for"""
    spans: Any
    """uint64[h]"""
    counts: Any
    """int64[n], matches of each read, 0 for one that was dropped"""
    results: int
    dropped_queries: int
    dropped_hits: int


def _borders(counts: Any) -> Any:
    """Where what each has begins, int64[n + 1]."""
    xp = cupy()
    borders = xp.zeros(len(counts) + 1, xp.int64)
    xp.cumsum(counts, dtype=xp.int64, out=borders[1:])
    return borders


def _blocks(threads: int) -> int:
    return -(-threads // BLOCK)


def _new_entries(count: int) -> tuple[Any, ...]:
    xp = cupy()
    return xp.empty(count, xp.uint64), xp.empty(count, xp.uint64), xp.empty(count, xp.uint32)


def _packed_patterns(reads: Packed, criteria: Criteria) -> Patterns:
    """Stage 0, the first two arrays, of reads that lie on the device."""
    xp = cupy()
    lengths = xp.repeat(xp.asarray(reads.lengths).astype(xp.int64), criteria.strands)
    first = _borders((lengths + (BASES_A_WORD - 1)) // BASES_A_WORD) + PAD_WORDS
    starts = _borders(xp.maximum(lengths - (criteria.min_length - 1), 0))
    words = xp.zeros(int(first[-1]) + 1, xp.uint32)
    patterns = Patterns(view(words), view(first), reads.lengths, view(starts), criteria.strands)
    launch(pack_pattern_words, len(words) - PAD_WORDS - 1, BLOCK, reads, patterns)
    return patterns


def _found_by(
    index: BinnedIndex, patterns: Patterns, min_length: int, first: int, count: int, watch: Stopwatch
) -> tuple[Any, ...]:
    """Stages 1 and 2 for `count` MEM starts from number `first` on: the columns of their entries, those that are empty
    left out."""
    xp = cupy()
    with time_on_device(watch, "pack"):
        started = Started(view(xp.empty(count, xp.uint32)), view(xp.empty(count, xp.uint32)))
        launch(assign_starts, count, BLOCK, patterns.starts, first, started)
    columns = xp.empty(count, xp.uint64), xp.empty(count, xp.uint64), xp.empty(0, xp.uint32)
    found, counts = Entries(*map(view, columns)), xp.empty(_blocks(count), xp.uint32)
    with time_on_device(watch, "intervals"):
        launch(find_intervals, count, BLOCK, index, patterns, started, min_length, found, view(counts))
    with time_on_device(watch, "filter"):
        borders = _borders(counts)
        compacted = _new_entries(int(borders[-1]))
        launch(
            compact_found, count, BLOCK, found, started.patterns, view(borders), Entries(*map(view, compacted))
        )  # fmt: skip
    return compacted


def _filtered(columns: list[tuple[Any, ...]]) -> Entries:
    """Stage 2: the entries of all launches without those that are redundant."""
    xp = cupy()
    entries = Entries(
        *(view(parts[0] if len(parts) == 1 else xp.concatenate(parts)) for parts in zip(*columns, strict=True))
    )
    count = entries.patterns.shape[0]
    counts = xp.empty(_blocks(count), xp.uint32)
    launch(count_kept, count, BLOCK, entries, view(counts))
    borders = _borders(counts)
    kept = Entries(*map(view, _new_entries(int(borders[-1]))))
    launch(compact_kept, count, BLOCK, entries, view(borders), kept)
    return kept


def _counted(entries: Entries, reads: int, strands: int, max_hits: int) -> tuple[Any, Any, tuple[int, int]]:
    """Stage 3, first: where the rows of each entry begin, the matches of each read, and the reads that are dropped and
    their matches."""
    xp = cupy()
    rows, counts = xp.empty(entries.patterns.shape[0], xp.int64), xp.empty(reads, xp.int64)
    launch(count_new_rows, len(rows), BLOCK, entries, view(rows))
    borders = _borders(rows)
    launch(count_matches, reads, BLOCK, entries, view(borders), strands, view(counts))
    over = counts > max_hits
    dropped = int(over.sum())
    if not dropped:
        return borders, counts, (0, 0)
    launch(drop_reads, len(rows), BLOCK, entries, strands, max_hits, view(counts), view(rows))
    hits = int(counts[over].sum())
    counts[over] = 0
    return _borders(rows), counts, (dropped, hits)


def search_on_device(
    index: BinnedIndex,
    reads: Packed,
    criteria: Criteria,
    *,
    max_hits: int,
    count_only: bool = False,
    watch: Stopwatch,
) -> DeviceMatches:
    """Stages 0 to 4 for reads that lie on the device; `watch` takes the seconds of each."""
    xp = cupy()
    with time_on_device(watch, "pack"):
        patterns = _packed_patterns(reads, criteria)
        starts = int(xp.asarray(patterns.starts)[-1])
    found = [_new_entries(0)]
    for first in range(0, starts, STARTS_A_LAUNCH):
        count = min(STARTS_A_LAUNCH, starts - first)
        found.append(_found_by(index, patterns, criteria.min_length, first, count, watch))
    with time_on_device(watch, "filter"):
        entries = _filtered(found[1:] or found)
    found.clear()
    with time_on_device(watch, "split"):
        borders, counts, dropped = _counted(entries, len(reads.lengths), criteria.strands, max_hits)
        total = int(borders[-1])
    room = 0 if count_only else total
    keys, spans = xp.empty(room, xp.uint64), xp.empty(room, xp.uint64)
    for first in range(0, room, ROWS_A_LAUNCH):
        part = slice(first, min(first + ROWS_A_LAUNCH, room))
        rows, owners = (view(xp.empty(part.stop - first, xp.uint32)) for _ in range(2))
        with time_on_device(watch, "split"):
            launch(split_intervals, len(rows), BLOCK, entries, view(borders), first, rows, owners)
        with time_on_device(watch, "locate"):
            into = view(keys[part]), view(spans[part])
            launch(locate_matches, len(rows), BLOCK, index, patterns, entries, rows, owners, *into)
    return DeviceMatches(keys, spans, counts, total, *dropped)


# ---- batches


def paper_bytes_each(reads: Packed) -> int:
    """Device memory that a read of the paper tier takes, about."""
    bases = int(reads.lengths.sum(dtype=np.int64)) // max(1, len(reads.lengths))
    return 3 * packed_bytes(reads) + _BYTES_A_BASE * bases


def _hits_of(found: DeviceMatches, watch: Stopwatch) -> DeviceHits:
    """What the paper tier found, in output order."""
    with time_on_device(watch, "sort"):
        hits = in_order(found.keys, found.spans)
    return DeviceHits(hits, found.counts, found.results, found.dropped_queries, found.dropped_hits, MATCH)


def paper_batch(
    index: SeedIndex, request: Request, watch: Stopwatch, parameters: BinParameters = PAPER_PARAMETERS
) -> Callable[[Packed], DeviceHits]:
    """What searches one batch that lies on the host; brings the index of section 4.1 to the device. Its matches stay
    there, in output order."""
    binned = binned_on_device(index, request.criteria.min_length, parameters, watch)

    def run(reads: Packed) -> DeviceHits:
        with watch.stage("host_to_device", synchronise=synchronize):
            on_device = to_device(reads)
        found = search_on_device(
            binned, on_device, request.criteria, max_hits=request.max_hits, count_only=request.count_only, watch=watch
        )
        return _hits_of(found, watch)

    return run


def _parts(reads: Packed) -> list[Packed]:
    """Reads in parts of about _BASES_A_RUN bases, or of one read."""
    ends = np.cumsum(reads.lengths, dtype=np.int64)
    numbers = np.unique((ends - 1) // _BASES_A_RUN, return_index=True)[1]
    return [
        part_of(reads, int(first), int(last)) for first, last in zip(numbers, [*numbers[1:], len(ends)], strict=True)
    ]


def paper_run(
    index: SeedIndex, reads: Packed, request: Request, parameters: BinParameters, watch: Stopwatch
) -> Callable[[], int]:
    """`device_run` of the paper tier, in parts that leave room for what each thread has."""
    binned = binned_on_device(index, request.criteria.min_length, parameters, watch)
    parts = [to_device(part) for part in _parts(reads)]

    def search(part: Packed) -> int:
        found = search_on_device(binned, part, request.criteria, max_hits=request.max_hits, watch=watch)
        return _hits_of(found, watch).results

    return lambda: sum(map(search, parts))

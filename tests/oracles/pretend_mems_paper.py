"""The kernels of paper 002's stages, played by the functions that the CPU's stages are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from warpseed.compute.warp import BLOCK
from warpseed.mems import cpu_paper
from warpseed.mems.gpu_fast import PLACE_BITS
from warpseed.mems.matches import MATCH
from warpseed.mems.paper import PAD_WORDS, Entries

__all__ = ["PaperKernels"]


def _plain(value: Any) -> Any:
    """Arrays of the pretended device as NumPy's, also those of a NamedTuple, as compiled functions know them."""
    if isinstance(value, tuple):
        return type(value)(*map(_plain, value))
    return value.view(np.ndarray) if isinstance(value, np.ndarray) else value


def _of_blocks(kept: np.ndarray) -> np.ndarray:
    """How many are kept of each block's."""
    return np.add.reduceat(kept.astype(np.int64), range(0, len(kept), BLOCK))


class PaperKernels:
    """Kernels by their names; arguments are those that the device's take."""

    def pack_pattern_words(self, reads, patterns) -> None:
        count = len(patterns.first) - 1
        assert len(patterns.words) == int(patterns.first[-1]) + 1 and int(patterns.first[0]) == PAD_WORDS
        cpu_paper.pack_patterns(_plain(reads), _plain(patterns), 0, count)

    def assign_starts(self, starts, first, started) -> None:
        numbers = first + np.arange(len(started.patterns))
        started.patterns[...] = np.searchsorted(starts, numbers, side="right") - 1
        started.mems[...] = numbers - np.asarray(starts)[started.patterns]

    def find_intervals(self, index, patterns, started, min_length, found, counts) -> None:
        patterns, count = _plain(patterns), len(started.patterns)
        entries = Entries(np.empty(count, np.uint64), np.empty(count, np.uint64), np.empty(count, np.uint32))
        numbers = patterns.starts[started.patterns] + started.mems
        first = number = int(numbers[0])
        used = 0
        while number < first + count:
            used, number = cpu_paper.find_intervals(
                _plain(index), patterns, min_length, number, first + count, entries, used
            )
        intervals, spans, owners = (column[:used] for column in entries)
        ends = (spans & np.uint64(0xFFFF_FFFF)).astype(np.int64)
        threads = patterns.starts[owners] + patterns.lengths[owners // np.uint32(patterns.strands)] - ends - first
        found.intervals[...] = 0
        found.intervals[threads], found.spans[threads] = intervals, spans
        counts[...] = _of_blocks(found.intervals != 0)

    def compact_found(self, found, patterns, borders, into) -> None:
        kept = np.asarray(found.intervals != 0)
        self._compact(Entries(found.intervals, found.spans, patterns), kept, borders, into)

    def _kept(self, entries) -> np.ndarray:
        kept = np.empty(len(entries.patterns), np.uint8)
        cpu_paper.drop_redundant(_plain(entries), 0, len(kept), kept)
        return kept != 0

    def count_kept(self, entries, counts) -> None:
        counts[...] = _of_blocks(self._kept(entries))

    def compact_kept(self, entries, borders, into) -> None:
        self._compact(entries, self._kept(entries), borders, into)

    def _compact(self, entries, kept, borders, into) -> None:
        assert np.diff(borders).tolist() == _of_blocks(kept).tolist() and len(into.spans) == int(borders[-1])
        for column, all_of_it in zip(into, entries, strict=True):
            column[...] = all_of_it[kept]

    def count_new_rows(self, entries, counts) -> None:
        cpu_paper.count_rows(_plain(entries), 0, len(counts), _plain(counts))

    def count_matches(self, entries, borders, strands, counts) -> None:
        first = np.searchsorted(entries.patterns, np.arange(len(counts) + 1) * strands)
        counts[...] = np.diff(borders[first])

    def drop_reads(self, entries, strands, max_hits, counts, rows) -> None:
        rows[counts[entries.patterns // np.uint32(strands)] > max_hits] = 0

    def split_intervals(self, entries, borders, first, rows, owners) -> None:
        mine = np.empty(len(owners), np.int64)
        cpu_paper.split_rows(_plain(entries), _plain(borders), first, _plain(rows), mine)
        owners[...] = mine

    def locate_matches(self, index, patterns, entries, rows, owners, keys, spans) -> None:
        entries, hits = _plain(entries), np.empty(len(rows), MATCH)
        uncounted = np.zeros(len(entries.patterns), np.int64)
        split = _plain(rows), _plain(owners).astype(np.int64), uncounted
        cpu_paper.locate_rows(_plain(index), _plain(patterns), entries, split, 0, len(rows), hits)
        query = entries.patterns[split[1]].astype(np.uint64) // np.uint64(patterns.strands)
        keys[...], spans[...] = (query << np.uint64(PLACE_BITS)) | hits["place"], hits["span"]

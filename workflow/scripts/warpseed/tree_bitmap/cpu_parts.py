"""Sets in parts, on several threads: the fast tier's way for k-mers of which there are too many for bits."""

from __future__ import annotations

import numpy as np

from warpseed.compute.pipeline import check_wanted
from warpseed.compute.ranges import STEP, borders_of, on_threads, places_of, steps
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap.cpu_fast import (
    Cut,
    Grouped,
    Runs,
    Said,
    answer_parts,
    answer_runs,
    count_new,
    cut_range,
    gather_new,
    group_runs,
    part_of_kmers,
    slots_for,
)
from warpseed.tree_bitmap.fast import add_kmers, clear_set, move_kmers, new_set, tell_counts
from warpseed.tree_bitmap.room import require_room
from warpseed.tree_bitmap.windows import BLOCK, new_windows

__all__ = ["Parts", "ranges_of"]

_PART_KMERS = 1 << 15
"""Places of a part: its set stays in the second-level cache."""
_MOST_PART_BITS = 14
_STEP_RUNS = STEP // 256
"""Runs that are answered in one call, of a part with many: most are short, but one may be a whole block."""
_MOST_M = 12
_ROOM_SLOTS = 1 << 18
"""Slots of the set that a thread begins with; one that does not suffice is grown."""
_LOAD = 0.625
_RUN_BYTES = 14
"""A run's place, its part and its word."""
_SORTED_BYTES = 26
"""Of a known k-mer while it goes to its part: its part twice, its number in that order, the k-mer itself, and a copy
that sorting takes."""


def ranges_of(places: int, threads: int, most: int | None = None) -> list[tuple[int, int]]:
    """The places in ranges of whole blocks, one for each thread, or more of them that have about `most` places."""
    blocks = -(-places // BLOCK)
    count = threads if most is None else max(threads, -(-places // most))
    borders = [min(places, BLOCK * (blocks * number // count)) for number in range(count + 1)]
    return [span for span in zip(borders, borders[1:], strict=False) if span[0] < span[1]]


class Parts:
    """Sets in parts: each is filled when its places come, with the k-mers of it that are known, and given up.

    Parameters
    ----------
    k : bases of a k-mer
    known : uint64[d], distinct k-mers that are known before
    threads : CPU threads
    places : how many places the largest block has

    Attributes
    ----------
    known : uint64[d], the k-mers that are known, in an order of its own
    """

    def __init__(self, k: int, known: np.ndarray, threads: int, places: int) -> None:
        self._threads = threads
        bits = min(_MOST_PART_BITS, max(0, (max(places, len(known)) - 1) // _PART_KMERS).bit_length())
        self._cut = Cut(k, min(_MOST_M, (k + 1) // 2), bits)
        require_room(_SORTED_BYTES * len(known), f"To deal out {len(known):,} known {k}-mers", "give fewer")
        parts = np.empty(len(known), np.uint16)
        for first, last in steps(0, len(known)):
            part_of_kmers(known[first:last], self._cut, parts[first:last])
        order = np.argsort(parts, kind="stable")
        self.known = known[order]
        self._borders = np.searchsorted(parts[order], np.arange((1 << bits) + 1)).astype(np.int64)

    def answer(self, codes: np.ndarray, said: Said) -> Grouped:
        """Say what the next places of the stream are.

        Parameters
        ----------
        codes : uint8[…], from the first of these places on; those behind the last are read too
        said : zeros, filled

        Returns
        -------
        Grouped, the places as `learn` takes them
        """
        self._check_room(said)
        grouped = self._group(codes, len(said.answers))
        tasks, counting = self._tasks(), len(said.first_counts) > 0

        def work(number: int) -> None:
            first, last = tasks[number]
            largest = slots_for(int((grouped.kmers + np.diff(grouped.known_borders))[first:last].max()))
            kmers = new_set(min(_ROOM_SLOTS, largest), counting=counting)
            while (first := answer_parts(grouped, (first, last), self._cut.k, kmers, said)) < last:
                self._answer_large(grouped, first, said)
                first += 1
                check_wanted()

        on_threads(self._threads, work, len(tasks))
        return grouped

    def learn(self, grouped: Grouped, answers: np.ndarray, origins: bool = False) -> np.ndarray:
        """Have the k-mers that are NEW among those that are known.

        Parameters
        ----------
        grouped, answers : of the last block
        origins : whether it is asked where each k-mer comes from

        Returns
        -------
        int64[known], the place of a k-mer that was NEW, and of one that was known before -1 - its number then; int64[0]
        unasked
        """
        tasks, more = self._tasks(), np.zeros(len(grouped.kmers), np.int64)
        on_threads(self._threads, lambda number: count_new(grouped, tasks[number], answers, more), len(tasks))
        borders = borders_of(more + np.diff(grouped.known_borders))
        each = 16 if origins else 8
        require_room(each * int(borders[-1]), f"To keep {borders[-1]:,} {self._cut.k}-mers")
        known = np.empty(int(borders[-1]), np.uint64)
        sources = np.empty(len(known) if origins else 0, np.int64)

        def gather(number: int) -> None:
            gather_new(grouped, tasks[number], self._cut.k, answers, borders, known, sources)

        on_threads(self._threads, gather, len(tasks))
        self.known, self._borders = known, borders
        return sources

    def _check_room(self, said: Said) -> None:
        """Refuse places for whose answers, runs and bases there is no memory."""
        # A byte for the answer, two bits for the base, and a share of a run, which has some (k - m + 2) / 2 places.
        each = 1.25 + _RUN_BYTES * 2 / (self._cut.k - self._cut.m + 2)
        needed = int(each * len(said.answers)) + said.first_counts.nbytes + said.known_counts.nbytes
        require_room(needed, f"To search {len(said.answers):,} places")

    def _tasks(self) -> list[tuple[int, int]]:
        """The parts in ranges, some for each thread, of about STEP places at most."""
        count = 1 << self._cut.bits
        size = max(1, min(-(-count // (4 * self._threads)), STEP // _PART_KMERS))
        return [(first, min(first + size, count)) for first in range(0, count, size)]

    def _group(self, codes: np.ndarray, places: int) -> Grouped:
        """The places, part by part."""
        spans = ranges_of(places, self._threads, STEP)
        parts = 1 << self._cut.bits
        words = np.zeros(places // BASES_A_WORD + 4, np.uint64)

        def cut(number: int) -> tuple[Runs, int]:
            room = spans[number][1] - spans[number][0] + 1
            counts = np.zeros(parts, np.int64), np.zeros(parts, np.int64)
            runs = Runs(np.empty(room, np.uint32), np.empty(room, np.uint16), *counts)
            return runs, cut_range(codes, spans[number], self._cut, new_windows(), words, runs)

        cuts = on_threads(self._threads, cut, len(spans))
        # Of each part, in order, the runs of the first range, then those of the next.
        counts = np.array([runs.runs for runs, _ in cuts], np.int64).reshape(len(spans), parts)
        starts, borders = places_of(counts)
        grouped = np.empty(int(borders[-1]), np.uint64)

        def group(number: int) -> None:
            runs, used = cuts[number]
            group_runs(runs, used, starts[number], grouped)

        on_threads(self._threads, group, len(spans))
        kmers = np.array([runs.kmers for runs, _ in cuts], np.int64).reshape(len(spans), parts).sum(axis=0)
        return Grouped(words, grouped, borders, kmers, self.known, self._borders)

    def _answer_large(self, grouped: Grouped, part: int, said: Said) -> None:
        """A part with many places, which may have few k-mers: its set grows with them."""
        counting = len(said.first_counts) > 0
        begin, end = map(int, grouped.borders[part : part + 2])
        known, known_end = map(int, grouped.known_borders[part : part + 2])
        slots = max(_ROOM_SLOTS, slots_for(known_end - known))
        kmers, used = new_set(slots, counting=counting), known_end - known
        clear_set(kmers, slots)
        add_kmers(kmers, slots, grouped.known, known, known_end, len(said.first_counts) - known)
        while True:
            room = slots, used, int(_LOAD * slots)
            check_wanted()
            stop = min(end, begin + _STEP_RUNS)
            begin, used = answer_runs(grouped, (begin, stop), self._cut.k, kmers, room, said.answers)
            if begin == end:
                break
            if begin == stop:
                continue
            larger = new_set(2 * slots, counting=counting)
            clear_set(larger, 2 * slots)
            move_kmers(kmers, slots, larger, 2 * slots)
            kmers, slots = larger, 2 * slots
        if counting:
            tell_counts(kmers, slots, said.first_counts, said.known_counts[known:known_end])

"""The distinct k-mers of a stream and how often each comes, on the CPU: counted at places of their own, or in sets."""

from __future__ import annotations

import numpy as np

from warpseed.compute.ranges import on_threads, steps
from warpseed.tree_bitmap.cpu_fast import Said, Tally, add_tally, count_places
from warpseed.tree_bitmap.cpu_listing import NewPlaces
from warpseed.tree_bitmap.cpu_parts import Parts, ranges_of
from warpseed.tree_bitmap.room import require_room
from warpseed.tree_bitmap.stream import KmerCounts, place_type
from warpseed.tree_bitmap.windows import new_windows

__all__ = ["CountTable", "CountedSets"]

_ENTRY_BYTES = 24
"""Of each k-mer that there can be: its count, and its number and first place in the list of those that came."""
_NONE = np.empty(0, np.uint64)


class CountTable:
    """A count for each k-mer that there can be, for every thread its own, and those that came in order.

    Parameters
    ----------
    k : bases of a k-mer
    threads : CPU threads
    """

    held = 0

    def __init__(self, k: int, threads: int) -> None:
        self._k, self._threads = k, threads
        require_room(threads * _ENTRY_BYTES * 4**k, f"To count all {k}-mers")
        # The first range of a block goes on where what was counted before ends; the others have tallies of their own.
        self._tallies = [_new_tally(k) for _ in range(threads)]
        self._used = 0
        self._places = 0

    def take(self, codes: np.ndarray, more: bool) -> None:
        """As `HostCounts.take`."""
        spans = ranges_of(len(codes), self._threads)

        def count(number: int) -> int:
            windows, used = new_windows(), 0 if number else self._used
            for span in steps(*spans[number]):
                used = count_places(codes, span, self._k, windows, self._places, self._tallies[number], used)
            return used

        whole, *parts = self._tallies
        used = on_threads(self._threads, count, len(spans))
        self._used = used[0] if used else self._used
        for part, part_used in zip(parts, used[1:], strict=False):
            self._used = add_tally(part, part_used, whole, self._used)
        self._places += len(codes) + 1

    def counted(self) -> KmerCounts:
        """As `HostCounts.counted`."""
        counts, kmers, places = self._tallies[0]
        kmers, made_type = kmers[: self._used], place_type(self._places)
        return KmerCounts(kmers, places[: self._used].astype(made_type), counts[kmers].astype(made_type))


def _new_tally(k: int) -> Tally:
    return Tally(np.zeros(4**k, np.int64), np.empty(4**k, np.uint64), np.empty(4**k, np.int64))


class CountedSets:
    """Sets in parts, whose k-mers have counts.

    Parameters
    ----------
    k : bases of a k-mer
    threads : CPU threads
    places : how many places the largest block has, about
    """

    def __init__(self, k: int, threads: int, places: int) -> None:
        self._k, self._threads = k, threads
        self._parts = Parts(k, _NONE, threads, places)
        self._ranks = np.empty(0, np.int64)
        """int64[known], of the parts' k-mers, which of all k-mers each is"""
        self._codes: list[np.ndarray] = []
        self._firsts: list[np.ndarray] = []
        self._counts = np.empty(0, place_type(0))
        self._places = 0

    def take(self, codes: np.ndarray, more: bool) -> None:
        """As `HostCounts.take`."""
        places = len(codes) + 1
        answers, first_counts = np.zeros(places, np.uint8), np.zeros(places, np.uint32)
        known_counts = np.zeros(len(self._ranks), np.int64)
        grouped = self._parts.answer(codes, Said(answers, first_counts, known_counts))
        new, made_type = NewPlaces(answers, self._threads), np.dtype(place_type(self._places + places))
        # Places and counts of new k-mers, and all counts anew.
        needed = made_type.itemsize * (3 * new.count + len(self._counts)) + 8 * len(self._ranks)
        require_room(needed, f"To count {new.count:,} new {self._k}-mers")
        self._counts = self._counts.astype(made_type, copy=False)
        for first, last in steps(0, len(self._ranks)):
            self._counts[self._ranks[first:last]] += known_counts[first:last]
        firsts, counts = new.counts(first_counts, self._places)
        if more:
            origins = self._parts.learn(grouped, answers, origins=True)
            ranks = np.empty(len(origins), np.int64)
            for first, last in steps(0, len(origins)):
                there = (self._places + origins[first:last]).astype(made_type)
                ranks[first:last] = len(self._counts) + np.searchsorted(firsts, there)
            old = origins < 0
            ranks[old] = self._ranks[-1 - origins[old]]
            self._ranks = ranks
        self._codes.append(new.kmers(codes, self._k))
        self._counts = np.concatenate([self._counts, counts]) if len(self._counts) else counts
        self._firsts.append(firsts)
        self._places += places

    @property
    def held(self) -> int:
        """As `HostKmers.held`."""
        return len(self._parts.known)

    def counted(self) -> KmerCounts:
        """As `HostCounts.counted`."""
        return KmerCounts(_joined(self._codes), _joined(self._firsts), self._counts)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """Arrays, at least one, one behind the other; they are given up."""
    joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
    parts.clear()
    return joined

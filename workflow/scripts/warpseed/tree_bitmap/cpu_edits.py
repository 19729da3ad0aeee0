"""True Levenshtein distances in a stream on the CPU: the neighbourhood of a dictionary, and the look-ups."""

from __future__ import annotations

import numpy as np

from warpseed.compute.bits import first_slot
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.intrinsics import prefetch
from warpseed.compute.machine import available_memory
from warpseed.compute.pipeline import check_wanted
from warpseed.compute.ranges import run_ranges
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import MemoryLimitError
from warpseed.tree_bitmap.cpu_pieces import Pieces, candidates_at, find_by_pieces, new_room, pieces_of
from warpseed.tree_bitmap.edits import (
    TOO_FAR,
    Neighbourhood,
    code_below,
    key_of,
    length_of,
    longest_window,
    neighbour,
    neighbours,
    place_distance,
    radius_of,
    slot_of,
    slots_for,
    strings_near,
)
from warpseed.tree_bitmap.slots import EMPTY
from warpseed.tree_bitmap.stream import NO_BASE

__all__ = ["HostDistances", "neighbourhood_of", "room_for"]

_MOST_SLOTS = 1 << 25
"""Of a neighbourhood that is made in a second or two."""
_STEP_SLOTS = 1 << 18
"""Whose strings' neighbours are put in one call, which a signal waits for."""
_PLACES = 16
"""Places whose look-ups are in flight together."""


@scalar
def _put_kmers(kmers, k, slots):
    for i in range(kmers.shape[0]):
        key = key_of(kmers[i], int64(k))
        slots[slot_of(slots, key)] = key << uint64(2)


@scalar
def _put_neighbours(slots, level, span):
    """Put the neighbours of the strings of a distance that are in the slots [begin, end), one further, where they are
    not there already."""
    for i in range(span[0], span[1]):
        held = slots[i]
        if held == EMPTY or int64(held & uint64(3)) != int64(level):
            continue
        length = length_of(held >> uint64(2))
        code = code_below(held >> uint64(2), length)
        for edit in range(neighbours(length)):
            other, bases = neighbour(code, length, int64(edit))
            if bases > int64(0):
                key = key_of(other, bases)
                slot = slot_of(slots, key)
                if slots[slot] == EMPTY:
                    slots[slot] = (key << uint64(2)) | uint64(level + 1)


@scalar
def _look_up(codes, near, first, last, windows, runs, distances):
    """Distances at the places [first, last); `windows` uint64[_PLACES] and `runs` int64[_PLACES] are room to work."""
    window, run = uint64(0), int64(0)
    begin = max(int64(0), first - longest_window(near))
    filled = int64(0)
    for place in range(begin, last):
        code = uint64(codes[place])
        run = run + int64(1) if code < uint64(NO_BASE) else int64(0)
        window = (window << uint64(2)) | (code & uint64(3))
        if place < first:
            continue
        windows[filled], runs[filled] = window, run
        filled += int64(1)
        for length in range(max(int64(1), near.k - near.radius), min(run, near.k + near.radius) + int64(1)):
            prefetch(near.slots, first_slot(key_of(code_below(window, length), length), near.slots.shape[0]))
        if filled == int64(_PLACES) or place + int64(1) == last:
            for i in range(filled):
                there = place + int64(1) - filled + i
                distances[there] = place_distance(near, windows[i], runs[i])
            filled = int64(0)


def room_for(kmers: np.ndarray, k: int, max_edits: int, free: int) -> int:
    """Slots of the neighbourhood of some k-mers.

    Raises
    ------
    MemoryLimitError : they take more than the bytes that are free
    """
    slots = slots_for(len(kmers), k, radius_of(max_edits))
    if 8 * slots > free:
        raise MemoryLimitError(
            f"All strings within {radius_of(max_edits)} edits of {len(kmers):,} {k}-mers may take "
            f"{8 * slots / 1e9:.1f} GB, but {free / 1e9:.1f} GB are free; allow fewer edits, or take fewer k-mers."
        )
    return slots


def neighbourhood_of(kmers: np.ndarray, k: int, max_edits: int) -> Neighbourhood:
    """All strings near some k-mers, as far as `HostDistances` looks them up.

    Parameters
    ----------
    kmers : uint64[d], codes
    k : bases of each; k + max_edits <= MOST_LENGTH
    max_edits : 0 to MOST_EDITS, below k
    """
    slots = np.full(room_for(kmers, k, max_edits, available_memory()), EMPTY)
    _put_kmers(kmers, k, slots)
    for level in range(radius_of(max_edits)):
        for first in range(0, len(slots), _STEP_SLOTS):
            check_wanted()
            _put_neighbours(slots, level, (first, min(first + _STEP_SLOTS, len(slots))))
    return Neighbourhood(slots, k, radius_of(max_edits), max_edits)


class HostDistances:
    """What is near some k-mers, to be found in one stream after the other: by their pieces, or their neighbourhood.

    Parameters
    ----------
    kmers : uint64[d], codes of distinct k-mers
    k : bases of each; k + max_edits <= MOST_LENGTH
    max_edits : 0 to MOST_EDITS, below k
    threads : CPU threads
    watch : takes the seconds of ``build``, and then of ``search``

    Raises
    ------
    MemoryLimitError : what they are looked up in does not fit the memory that is free
    """

    def __init__(self, kmers: np.ndarray, k: int, max_edits: int, *, threads: int = 1, watch: Stopwatch) -> None:
        self._threads, self._watch = threads, watch
        make = neighbourhood_of if _has_handy_neighbourhood(len(kmers), k, max_edits) else pieces_of
        with watch.stage("build"):
            self._held: Neighbourhood | Pieces = make(kmers, k, max_edits)

    def find(self, codes: np.ndarray) -> np.ndarray:
        """For each place the least Levenshtein distance of a k-mer and any bases of the stream that end there.

        Parameters
        ----------
        codes : uint8[n], the stream; 4 where there is no base, at which nothing ends and which nothing reaches over

        Returns
        -------
        uint8[n], by the last base of what ends there, TOO_FAR where the least distance is more than max_edits
        """
        distances = np.full(len(codes), TOO_FAR, np.uint8)
        held = self._held

        def search(first: int, last: int) -> None:
            if isinstance(held, Pieces):
                find_by_pieces(codes, held, (first, last), new_room(), distances)
            else:
                windows, runs = np.empty(_PLACES, np.uint64), np.empty(_PLACES, np.int64)
                _look_up(codes, held, first, last, windows, runs, distances)

        with self._watch.stage("search"):
            run_ranges(len(codes), self._threads, search)
        return distances


def _has_handy_neighbourhood(kmers: int, k: int, max_edits: int) -> bool:
    """Whether the strings near so many k-mers are few, and looked up in less time than candidates of pieces take."""
    radius = radius_of(max_edits)
    look_ups = 2.0 * radius + 1
    if radius < max_edits and kmers:
        # Neighbours are looked up until one is there.
        near, everything = strings_near(kmers, k, radius)
        look_ups += min((2 * max_edits + 1) * neighbours(k), everything / near)
    return candidates_at(kmers, k, max_edits) > look_ups and slots_for(kmers, k, radius) <= _MOST_SLOTS

"""True Levenshtein distances in a stream on the GPU: a thread a k-mer, a string, or a place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpseed.compute.bits import fetch_word, first_slot
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.device_batches import serve_devices
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.gpu import cuda, cupy, free_memory, kernel, launch, on_own_stream
from warpseed.compute.stopwatch import Stopwatch
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap.cpu_edits import room_for
from warpseed.tree_bitmap.edits import (
    Neighbourhood,
    code_below,
    key_of,
    length_of,
    neighbour,
    neighbours,
    place_distance,
    radius_of,
)
from warpseed.tree_bitmap.gpu_packed import pack_codes
from warpseed.tree_bitmap.slots import EMPTY, next_slot
from warpseed.tree_bitmap.stream import NO_BASE

__all__ = [
    "BLOCK_BASES",
    "DeviceDistances",
    "distances_there",
    "look_up_places",
    "put_kmers",
    "put_neighbours",
]

BLOCK_BASES = 1 << 24
"""Bases that are on the device together: a multiple of 32."""
_BLOCK = 256
_OF_FREE = 0.8


@scalar
def _put(slots, key, level):
    """Put a string into the set, unless it is there."""
    slot = first_slot(key, slots.shape[0])
    while True:
        held = slots[slot]
        if held == EMPTY:
            held = cuda.atomic.cas(slots, slot, EMPTY, (key << uint64(2)) | uint64(level))
        if held == EMPTY or held >> uint64(2) == key:
            return
        slot = next_slot(slot, slots.shape[0])


@kernel
def put_kmers(kmers, k, slots):
    """A thread a k-mer by its code."""
    i = cuda.grid(1)
    if i < kmers.shape[0]:
        _put(slots, key_of(kmers[i], int64(k)), int64(0))


@kernel
def put_neighbours(slots, level):
    """A thread a slot: the neighbours of strings of a distance, one further, where they are not there already."""
    i = cuda.grid(1)
    if i >= slots.shape[0] or slots[i] == EMPTY or int64(slots[i] & uint64(3)) != level:
        return
    key = slots[i] >> uint64(2)
    length = length_of(key)
    for edit in range(neighbours(length)):
        other, bases = neighbour(code_below(key, length), length, int64(edit))
        if bases > int64(0):
            _put(slots, key_of(other, bases), int64(level) + int64(1))


@kernel
def look_up_places(near, words, marks, places, distances):
    """A thread a place of a stretch of the stream: what ends there.

    words, marks : uint64[…], packed; the 32 bases before the stretch are the first
    distances : uint8[places]
    """
    place = cuda.grid(1)
    if place >= places:
        return
    window = fetch_word(words, int64(place) + int64(1))
    unknown = fetch_word(marks, int64(place) + int64(1))
    run = int64(0)
    while run < int64(BASES_A_WORD) and (unknown >> uint64(int64(2) * run)) & uint64(1) == uint64(0):
        run += int64(1)
    distances[place] = place_distance(near, window, run)


def _neighbourhood(kmers: np.ndarray, k: int, max_edits: int) -> Neighbourhood:
    """As `warpseed.tree_bitmap.cpu_edits.neighbourhood_of`, on the current device."""
    xp = cupy()
    slots = xp.empty(room_for(kmers, k, max_edits, int(_OF_FREE * free_memory())), xp.uint64)
    slots[...] = EMPTY
    launch(put_kmers, len(kmers), _BLOCK, xp.asarray(kmers), k, slots)
    for level in range(radius_of(max_edits)):
        launch(put_neighbours, len(slots), _BLOCK, slots, level)
    return Neighbourhood(slots, k, radius_of(max_edits), max_edits)


class DeviceDistances:
    """What `warpseed.tree_bitmap.cpu_edits.HostDistances` is, on GPUs: each has the neighbourhood of all k-mers, and
    they share the blocks of a stream.

    Parameters
    ----------
    kmers, k, max_edits : as for HostDistances
    devices : numbers of GPUs
    watch : takes the seconds of ``build``, and then of ``host_to_device``, ``search`` and ``device_to_host``, of
        several devices those of the slowest

    Raises
    ------
    MemoryLimitError : the neighbourhood of the k-mers does not fit a device
    DeviceError : a device does not answer
    """

    def __init__(
        self, kmers: np.ndarray, k: int, max_edits: int, *, devices: Sequence[int] = (0,), watch: Stopwatch
    ) -> None:
        self._devices, self._watch = devices, watch

        def build(_: int, watch_here: Stopwatch) -> Neighbourhood:
            with on_own_stream(0), time_on_device(watch_here, "build"):
                return _neighbourhood(kmers, k, max_edits)

        self._near = serve_devices(devices, build, watch)

    def find(self, codes: np.ndarray) -> np.ndarray:
        """The distances, uint8[n], at the places of a stream, uint8[n], as those of `HostDistances`."""
        distances = np.empty(len(codes), np.uint8)
        firsts = range(0, len(codes), BLOCK_BASES)

        def search(number: int, watch_here: Stopwatch) -> None:
            with on_own_stream(0):
                for first in firsts[number :: len(self._devices)]:
                    _find_in_block(codes, first, self._near[number], distances, watch_here)

        serve_devices(self._devices, search, self._watch)
        return distances


def _find_in_block(codes: np.ndarray, first: int, near: Neighbourhood, distances: np.ndarray, watch: Stopwatch) -> None:
    """The distances at the places of the block that begins with the place `first`."""
    xp = cupy()
    last = min(first + BLOCK_BASES, len(codes))
    padded = np.full((-(-(last - first) // BASES_A_WORD) + 1) * BASES_A_WORD, NO_BASE)
    before = min(first, BASES_A_WORD)
    padded[BASES_A_WORD - before : BASES_A_WORD + last - first] = codes[first - before : last]
    with time_on_device(watch, "host_to_device"):
        there = xp.asarray(padded)
    found = xp.empty(last - first, xp.uint8)
    with time_on_device(watch, "search"):
        _look_up(there, near, found)
    with time_on_device(watch, "device_to_host"):
        found.get(out=distances[first:last])


def _look_up(padded: Any, near: Neighbourhood, found: Any) -> None:
    """The distances at as many places as `found` has: those of bases on the device, whole words of them, of which the
    first is that before the places."""
    words, marks = (cupy().zeros(len(padded) // BASES_A_WORD + 1, np.uint64) for _ in range(2))
    launch(pack_codes, len(words), _BLOCK, padded.view(np.uint64), 0, words, marks)
    launch(look_up_places, len(found), _BLOCK, near, words, marks, len(found), found)


def distances_there(codes: Any, kmers: np.ndarray, k: int, max_edits: int, watch: Stopwatch) -> Any:
    """As `DeviceDistances.find`, of codes on the current device; so are the distances, uint8[n]."""
    xp = cupy()
    with time_on_device(watch, "build"):
        near = _neighbourhood(kmers, k, max_edits)
    distances = xp.empty(len(codes), xp.uint8)
    with time_on_device(watch, "search"):
        for first in range(0, len(codes), BLOCK_BASES):
            last, before = min(first + BLOCK_BASES, len(codes)), min(first, BASES_A_WORD)
            padded = xp.full((-(-(last - first) // BASES_A_WORD) + 1) * BASES_A_WORD, NO_BASE, xp.uint8)
            padded[BASES_A_WORD - before : BASES_A_WORD + last - first] = codes[first - before : last]
            _look_up(padded, near, distances[first:last])
    return distances

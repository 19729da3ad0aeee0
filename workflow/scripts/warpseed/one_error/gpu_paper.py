"""The paper tier on the GPU: one thread a read, launches of 256,000 reads, a fixed number of slots a read (paper 001,
sections 5 and 6).

Vector C lies in shared memory, matrix O in the device's. Kernel first, and the host functions that launch it behind.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, uint32
from warpseed.compute.device_copies import copied_to_device
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.device_sums import borders_of
from warpseed.compute.gpu import cuda, cupy, kernel, launch
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.layout import PaperIndex
from warpseed.one_error.paper import Results, search_read
from warpseed.sequences.packed import Packed

__all__ = ["BEST_BLOCK", "DeviceResults", "search_launch", "search_on_device", "search_reads"]

BEST_BLOCK = 32
"""Threads of a block: the best of those that the paper tried (Figure 7)."""


@kernel
def search_reads(index, reads, strands, slots, borders, results, found):
    """Algorithm 3 for one read a thread, in one or both orientations.

    Results of read q go to slots q·slots on, and `slots` of them are kept; where `slots` is negative they go to
    borders[q] on (int64[n + 1]), as far as the next read's. ``found[q]`` is how many there are.
    """
    first_row = cuda.shared.array(5, uint32)
    for base in range(int64(cuda.threadIdx.x), 5, int64(cuda.blockDim.x)):
        first_row[base] = index.first_row[base]
    cuda.syncthreads()
    query = int64(cuda.grid(1))
    if query >= int64(reads.lengths.shape[0]):
        return
    shared = PaperIndex(
        index.rocc, index.bwt, index.separators, index.separator_row, index.separator_position, first_row, index.rsa,
        index.longest_walk, index.occ_shift, index.sa_inverse, index.sa_shift,
    )  # fmt: skip
    first = query * int64(slots)
    room = int64(slots)
    if slots < 0:
        first = borders[query]
        room = borders[query + int64(1)] - first
    total = int64(0)
    for strand in range(strands):
        total = search_read(shared, reads, (query, int64(strand)), (results, first, room), total)
    found[query] = uint32(total)


class DeviceResults(NamedTuple):
    """What a launch left on the device."""

    low: Any
    """uint32[reads · slots], or uint32[r] where every result has its place"""
    high: Any
    edit: Any
    found: Any
    """uint32[n], results of each read, those without a slot included"""

    @property
    def memory(self) -> int:
        """Bytes of device memory that the results take."""
        return int(sum(array.nbytes for array in self))


def search_on_device(
    index: PaperIndex, reads: Packed, strands: int, slots: int | None, block: int = BEST_BLOCK
) -> DeviceResults:
    """Search reads that lie on the device; without `slots` they are searched twice, first to count the results."""
    xp = cupy()
    count = len(reads.lengths)
    found, borders = xp.empty(count, xp.uint32), xp.zeros(count + 1, xp.int64)

    def search(room: int, slots: int) -> Results:
        results = Results(*(xp.empty(room, xp.uint32) for _ in range(3)))
        given = Results(*results)
        launch(search_reads, count, block, index, reads, strands, slots, borders, given, found)
        return results

    if slots is not None:
        return DeviceResults(*search(count * slots, slots), found)
    search(0, 0)
    borders = borders_of(found)
    return DeviceResults(*search(int(borders[-1]), -1), found)


def _to_host(found: DeviceResults, slots: int | None) -> tuple[Results, np.ndarray, np.ndarray]:
    """Results on the host, read by read without the empty slots: (results, found int64[n], stored int64[n])."""
    columns = [array.get() for array in found[:3]]
    counts = found.found.get().astype(np.int64)
    if slots is None:
        return Results(*columns), counts, counts
    stored = np.minimum(counts, slots)
    used = np.arange(slots) < stored[:, None]
    return Results(*(column.reshape(len(counts), slots)[used] for column in columns)), counts, stored


def search_launch(
    index: PaperIndex, reads: Packed, strands: int, slots: int | None, watch: Stopwatch
) -> tuple[Results, np.ndarray, np.ndarray]:
    """One launch, from the host's memory to the host's memory, each stage timed; returns as `_to_host`."""
    on_device = copied_to_device(reads, watch)
    with time_on_device(watch, "kernel"):
        found = search_on_device(index, on_device, strands, slots)
    with watch.stage("device_to_host"):
        return _to_host(found, slots)

"""K-mers that GPUs have counted, brought to the host in the order of their first places."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from warpseed.compute.device_batches import take_step
from warpseed.compute.device_copies import from_device, sent_to_host, wait_for_sent
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.gpu import on_device, synchronize
from warpseed.compute.locked_memory import locked
from warpseed.compute.ranges import borders_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.tree_bitmap.gpu_listing import Listed
from warpseed.tree_bitmap.gpu_table import DeviceKmers
from warpseed.tree_bitmap.room import require_room
from warpseed.tree_bitmap.stream import KmerCounts

__all__ = ["counted_on"]


def counted_on(
    devices: Sequence[int],
    kmers: Sequence[DeviceKmers],
    listed: Sequence[Sequence[Listed]],
    threads: int,
    watch: Stopwatch,
) -> KmerCounts:
    """All k-mers that were counted, by their first places, in memory of the host that is kept.

    Parameters
    ----------
    devices : numbers of GPUs
    kmers : what each has counted; no k-mer is on two of them
    listed : of each device its share of each block, in order; of a block the shares come in the order of the devices
    threads : CPU threads that copy
    watch : takes the seconds of ``look_up``, in which each device looks up how often k-mers have come while these go to
        the host, and of ``device_to_host``, in which the host waits for what comes; both of the slowest device

    Raises
    ------
    MemoryLimitError : there is too little memory, on a device or on the host
    DeviceError : a device does not answer
    """
    lengths = np.array([[len(each.kmers) for each in own] for own in listed], np.int64)
    borders = borders_of(lengths.T.reshape(-1))
    spans = [
        [slice(*borders[first : first + 2].tolist()) for first in range(here, lengths.size, len(devices))]
        for here in range(len(devices))
    ]
    total = int(borders[-1])
    what = f"To take {total:,} counted {kmers[0].k}-mers"
    # (of the columns that are still to come)
    rooms = [partial(require_room, 8 * left * total, what, "use the CPU") for left in (3, 2, 1)]
    with on_device(devices[0]):
        codes, places, counts = (locked(total, np.uint64, threads, require=room) for room in rooms)
    copying = max(1, threads // len(devices))

    def send(column: Any, out: np.ndarray, span: slice) -> None:
        sent_to_host(column[None], out[None, span], copying)

    def look_up(number: int, watch_here: Stopwatch) -> list[list[Any]]:
        """How often the k-mers of each device have come, as far as this one knows; its own are sent meanwhile."""
        mine = listed[number]
        for column, out in ((0, codes), (1, places)):
            for each, span in zip(mine, spans[number], strict=True):
                send(each[column].view(np.uint64), out, span)
        with time_on_device(watch_here, "look_up"):
            known = [[kmers[number].counts_of(_here(each.kmers, own is mine)) for each in own] for own in listed]
        return known

    def give(number: int, watch_here: Stopwatch) -> None:
        others = [known[number] for known in (*found[:number], *found[number + 1 :])]
        with watch_here.stage("device_to_host", synchronise=synchronize):
            for known, span, *theirs in zip(found[number][number], spans[number], *others, strict=True):
                for more in theirs:
                    known += from_device(more)
                send(known, counts, span)
            wait_for_sent()

    try:
        found = take_step(devices, look_up, watch)
        take_step(devices, give, watch)
    except BaseException:
        take_step(devices, lambda *_: wait_for_sent(), Stopwatch())  # (nothing goes to memory that is given up)
        raise
    return KmerCounts(codes, places.view(np.int64), counts.view(np.int64))


def _here(array: Any, is_mine: bool) -> Any:
    """An array on the current device."""
    return array if is_mine else from_device(array)

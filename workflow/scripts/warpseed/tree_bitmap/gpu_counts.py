"""K-mers that GPUs have counted, brought to the host in the order of their first places."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from warpseed.compute.device_batches import take_step
from warpseed.compute.device_copies import copies_stream, from_device, sent_to_host, wait_for_sent
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.gpu import on_device, synchronize
from warpseed.compute.locked_memory import locked, parts_by_line
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.waits import wait_for_all
from warpseed.tree_bitmap.gpu_listing import FirstKmers
from warpseed.tree_bitmap.gpu_table import DeviceKmers
from warpseed.tree_bitmap.room import require_room
from warpseed.tree_bitmap.stream import KmerCounts, place_type

__all__ = ["counted_on"]


def counted_on(
    devices: Sequence[int],
    kmers: Sequence[DeviceKmers],
    first_kmers: Sequence[list[FirstKmers]],
    threads: int,
    watch: Stopwatch,
) -> KmerCounts:
    """All k-mers that were counted, by their first places, in memory of the host that is kept.

    Parameters
    ----------
    devices : numbers of GPUs
    kmers : what each has counted; no k-mer is on two of them
    first_kmers : of each device those of its share of each block, in order; of a block the shares come in the order of
        the devices
    threads : CPU threads that copy
    watch : takes the seconds of ``device_to_host``, in which k-mers and numbers are sent and the host waits for them,
        and of ``look_up``, in which each device looks up how often k-mers have come, while they are on their way; both
        of the slowest device

    Raises
    ------
    MemoryLimitError : there is too little memory, on a device or on the host
    DeviceError : a device does not answer
    """
    spans = _spans_of(first_kmers)
    total = sum(len(each.kmers) for own in first_kmers for each in own)
    what = f"To take {total:,} counted {kmers[0].k}-mers"
    of_places = np.dtype(place_type(kmers[0].bases))
    size = of_places.itemsize
    # (With the bytes of a k-mer that are still to come.)
    columns = [(np.dtype(np.uint64), 8 + 2 * size), (of_places, 2 * size), (of_places, size)]
    with on_device(devices[0]):
        codes, places, counts = (
            locked(total, column, threads, require=partial(require_room, left * total, what, "use the CPU"))
            for column, left in columns
        )
    copying = max(1, threads // len(devices))

    def send(column: Any, out: np.ndarray, span: slice) -> None:
        # What several devices have stands side by side, and begins anywhere in a line.
        here = out[span]
        for part in parts_by_line(here):
            sent_to_host(column[part].reshape(1, -1), here[part].reshape(1, -1), copying)

    def look_up(number: int, watch_here: Stopwatch) -> list[list[Any]]:
        """How often the k-mers of each device have come, as far as this one knows: of each block [n]."""
        with watch_here.stage("device_to_host"):
            mine = first_kmers[number]
            with copies_stream():
                for i, each in enumerate(mine):
                    # Those of a long stream's first blocks may have fewer bits.
                    mine[i] = each._replace(places=each.places.astype(of_places, copy=False))
            wait_for_sent()  # (what this thread copies itself comes behind that)
            for column, out in ((0, codes), (1, places)):
                for each, span in zip(mine, spans[number], strict=True):
                    send(each[column], out, span)
        with time_on_device(watch_here, "look_up"):
            return [
                [kmers[number].counts_of(each.kmers if here == number else from_device(each.kmers)) for each in own]
                for here, own in enumerate(first_kmers)
            ]

    def give(number: int, watch_here: Stopwatch) -> None:
        """Add up what all devices know of this one's k-mers, and send it."""
        mine, others = times[number][number], [times[other][number] for other in range(len(devices)) if other != number]
        with watch_here.stage("device_to_host", synchronise=synchronize):
            for own, span, *theirs in zip(mine, spans[number], *others, strict=True):
                for more in theirs:
                    own += from_device(more)
                send(own, counts, span)
            wait_for_sent()

    try:
        times = take_step(devices, look_up, watch)
        take_step(devices, give, watch)
    except BaseException:  # (nothing goes to memory that is given up)
        wait_for_all([lambda: take_step(devices, lambda *_: wait_for_sent(), Stopwatch())])
        raise
    return KmerCounts(codes, places, counts)


def _spans_of(first_kmers: Sequence[Sequence[FirstKmers]]) -> list[list[slice]]:
    """Where the k-mers of each device and block stand among all."""
    lengths = np.array([[len(each.kmers) for each in own] for own in first_kmers], np.int64).T
    ends = np.cumsum(lengths).reshape(lengths.shape)
    return [
        [slice(*span) for span in zip(begins.tolist(), own_ends.tolist(), strict=True)]
        for begins, own_ends in zip((ends - lengths).T, ends.T, strict=True)
    ]

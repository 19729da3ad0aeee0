"""K-mers that GPUs have counted, in the order of their first places: each device puts a share of them in order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from warpseed.compute.device_batches import take_step
from warpseed.compute.device_copies import copied_to_host, joined_from
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.gpu import cupy, on_device
from warpseed.compute.locked_memory import locked
from warpseed.compute.ranges import borders_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.tree_bitmap.gpu_table import DeviceKmers, order_of
from warpseed.tree_bitmap.room import require_room
from warpseed.tree_bitmap.stream import KmerCounts

__all__ = ["counted_on"]

_Columns: TypeAlias = "tuple[Any, Any, Any]"
"""Codes, turns and counts of k-mers, uint64[d] each, on one device, by their turns."""


def counted_on(devices: Sequence[int], kmers: Sequence[DeviceKmers], threads: int, watch: Stopwatch) -> KmerCounts:
    """All k-mers that were counted, by their first places, in memory of the host that is kept.

    Parameters
    ----------
    devices : numbers of GPUs
    kmers : what each has counted, which is given up; no k-mer is on two of them
    threads : CPU threads that copy
    watch : takes the seconds of ``order`` and ``device_to_host``, of the slowest device

    Raises
    ------
    MemoryLimitError : there is too little memory, on a device or on the host
    DeviceError : a device does not answer
    """

    def order(number: int, watch_here: Stopwatch) -> _Columns:
        with time_on_device(watch_here, "order"):
            return kmers[number].counted()

    counted = take_step(devices, order, watch)
    total = sum(len(codes) for codes, _, _ in counted)
    what = f"To take {total:,} counted {kmers[0].k}-mers"
    # (of the columns that are still to come)
    rooms = [partial(require_room, 8 * left * total, what, "use the CPU") for left in (3, 2, 1)]
    with on_device(devices[0]):
        columns = [locked(total, np.uint64, threads, require=room) for room in rooms]
    cuts = _cuts(devices, [turns for _, turns, _ in counted])
    firsts = borders_of(np.diff(cuts).sum(axis=0))

    def give(number: int, watch_here: Stopwatch) -> None:
        spans = [slice(*cut[number : number + 2]) for cut in cuts.tolist()]
        with time_on_device(watch_here, "order"):
            share = _share(counted, spans, number, kmers[number].bases)
        with watch_here.stage("device_to_host"):
            for column, out in zip(share, columns, strict=True):
                copied_to_host(column, max(1, threads // len(devices)), out[firsts[number] : firsts[number + 1]])

    take_step(devices, give, watch)
    codes, places, counts = columns
    return KmerCounts(codes, places.view(np.int64), counts.view(np.int64))


def _cuts(devices: Sequence[int], turns: Sequence[Any]) -> np.ndarray:
    """Where the k-mers of each device are cut, int64[devices, devices + 1]: of all about as many lie between two cuts.

    turns : uint64[…] on each device, ascending. Those of all are spread alike, as a hash has dealt k-mers out
    """
    ends, of = [len(own) for own in turns], len(devices)
    longest = int(np.argmax(ends))
    if of == 1 or not ends[longest]:
        return np.array([[0] * of + [end] for end in ends], np.int64)
    with on_device(devices[longest]):
        at = cupy().asarray(np.array([ends[longest] * number // of for number in range(1, of)], np.int64))
        borders = turns[longest][at].get()

    def cut(number: int, _: Stopwatch) -> list[int]:
        inner = cupy().searchsorted(turns[number], cupy().asarray(borders))
        return [0, *inner.get().tolist(), ends[number]]

    return np.array(take_step(devices, cut, Stopwatch()), np.int64)


def _share(counted: Sequence[_Columns], spans: Sequence[slice], here: int, bases: int) -> _Columns:
    """The k-mers of a span of each device's, on the current one, `here`: codes, places and counts, by their places in a
    stream of so many bases."""
    codes, turns, counts = (
        joined_from([column[span] for column, span in zip(columns, spans, strict=True)], here)
        for columns in zip(*counted, strict=True)
    )
    if len(counted) > 1:
        order = order_of(turns, bases)
        codes, turns, counts = codes[order], turns[order], counts[order]
    return codes, turns - np.uint64(1), counts

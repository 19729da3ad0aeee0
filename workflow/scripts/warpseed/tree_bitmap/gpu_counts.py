"""K-mers that GPUs have counted, in the order of their first places: each device puts a share of them in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from warpseed.compute.device_batches import take_step
from warpseed.compute.device_copies import copied_to_host, joined_from
from warpseed.compute.gpu import argsort, cupy, on_device
from warpseed.compute.locked_memory import locked
from warpseed.compute.ranges import borders_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.tree_bitmap.gpu_table import DeviceKmers
from warpseed.tree_bitmap.room import require_room
from warpseed.tree_bitmap.stream import KmerCounts

__all__ = ["counted_on"]

_Columns: TypeAlias = "tuple[Any, Any, Any]"
"""Codes, turns and counts, uint64[d] each, on one device."""


def counted_on(devices: Sequence[int], kmers: Sequence[DeviceKmers], threads: int) -> KmerCounts:
    """All k-mers that were counted, by their first places.

    Parameters
    ----------
    devices : numbers of GPUs
    kmers : what each has counted, which is given up; no k-mer is on two of them
    threads : CPU threads that copy
    """
    held = take_step(devices, lambda number, _: kmers[number].counted(), Stopwatch())
    total = sum(len(codes) for codes, _, _ in held)
    require_room(3 * 8 * total, f"To take {total:,} counted {kmers[0].k}-mers", "use the CPU")
    with on_device(devices[0]):
        whole = [locked(total, np.uint64, threads) for _ in range(3)]
    cuts = _cuts(devices, held)
    firsts = borders_of(np.diff(cuts).sum(axis=0))

    def give(number: int, _: Stopwatch) -> None:
        spans = [slice(*cut[number : number + 2]) for cut in cuts.tolist()]
        for column, out in zip(_share(held, spans, number), whole, strict=True):
            copied_to_host(column, max(1, threads // len(devices)), out[firsts[number] : firsts[number + 1]])

    take_step(devices, give, Stopwatch())
    codes, places, counts = whole
    return KmerCounts(codes, places.view(np.int64), counts.view(np.int64))


def _cuts(devices: Sequence[int], held: Sequence[_Columns]) -> np.ndarray:
    """Where the k-mers of each device, by their turns, are cut, int64[devices, devices + 1]: of all of them about as
    many lie between two cuts."""
    turns = [columns[1] for columns in held]
    most = turns[0]  # (those of all devices are spread alike, as a hash deals k-mers out)
    borders = [int(most[len(most) * number // len(devices)]) for number in range(1, len(devices))] if len(most) else []

    def cut(number: int, _: Stopwatch) -> list[int]:
        own = turns[number]
        inner = cupy().searchsorted(own, cupy().asarray(np.array(borders, np.uint64))).get().tolist()
        return [0, *(inner or [0] * (len(devices) - 1)), len(own)]

    return np.array(take_step(devices, cut, Stopwatch()) if len(devices) > 1 else [[0, len(most)]], np.int64)


def _share(held: Sequence[_Columns], spans: Sequence[slice], here: int) -> _Columns:
    """The k-mers of a span of each device's, on the current one, `here`: codes, places and counts, by their places."""
    codes, turns, counts = (
        joined_from([column[span] for column, span in zip(columns, spans, strict=True)], here)
        for columns in zip(*held, strict=True)
    )
    if len(held) > 1:
        order = argsort(turns)
        codes, turns, counts = codes[order], turns[order], counts[order]
    return codes, turns - np.uint64(1), counts

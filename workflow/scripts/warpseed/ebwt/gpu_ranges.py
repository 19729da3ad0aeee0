"""The ω-order by several devices: each has all words, and orders those conjugates whose first letters are in its range.

What is equal so far never leaves its range, so that letters are all that is needed, until what is tied is told apart by
ranks: then each device tells the others those of its range, and, round by round, what became of the tied ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.device_batches import take_step
from warpseed.compute.device_copies import copied_from_host, copied_to_host, from_device, joined_from
from warpseed.compute.device_marks import marked_on_device, time_on_device
from warpseed.compute.gpu import cupy
from warpseed.compute.locked_memory import is_locked, locked
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt.gpu_order import (
    DeviceWords,
    Ordering,
    begin_order,
    end_order,
    letters_in,
    order_further,
    rank_all,
    transform_of,
)
from warpseed.ebwt.transform import Transform
from warpseed.ebwt.words import Words

__all__ = ["Ordered", "order_shared", "order_to_host", "transform_to_host"]


class Ordered(NamedTuple):
    """What one device has of the order: the conjugates of some ranks."""

    words: DeviceWords
    order: Any
    """uint32[n], positions"""
    first: int
    """the first of these ranks"""

    @property
    def ranks(self) -> slice:
        """Those in the whole order."""
        return slice(self.first, self.first + len(self.order))


def order_shared(words: Words, devices: Sequence[int], threads: int, watch: Stopwatch) -> list[Ordered]:
    """Bring words to devices, and order their conjugates there.

    Parameters
    ----------
    words : of less than 2^32 letters
    devices : their numbers; the first is the current one
    threads : of the host, that copy to it
    watch : takes the seconds of ``host_to_device``, ``order`` and ``device_to_device``: of each step those of the
        slowest
    """
    parts = _brought(words, devices, threads, watch)

    def begin(number: int, mine: Stopwatch) -> Ordering:
        with marked_on_device(mine) as mark:
            codes, offsets, occurs = (joined_from(each, number) for each in zip(*parts, strict=True))
            mark("device_to_device")
            there = DeviceWords.there(words, codes, offsets)
            mark("host_to_device")
            made = begin_order(there, occurs.reshape(len(devices), -1).any(axis=0), mine, number, len(devices))
            mark("order")
        return made

    made = take_step(devices, begin, watch)
    _order_by_ranks(made, devices, watch)
    return [Ordered(each.words, each.order[each.range], each.range.start) for each in made]


class _Brought(NamedTuple):
    """What one device has taken from the host."""

    codes: Any
    """uint8[n], part of the letters"""
    offsets: Any
    """int64[k], part of where words begin and end"""
    occurs: Any
    """bool[256], which letters occur in the part"""


def _brought(words: Words, devices: Sequence[int], threads: int, watch: Stopwatch) -> list[_Brought]:
    """Words on devices: from memory that is locked each takes a part, as each has a way of its own to it; from ordinary
    memory, which threads of the host copy, the first takes all, as those of several devices take longer."""
    takers = len(devices) if is_locked(words.codes) else 1

    def bring(number: int, mine: Stopwatch) -> _Brought:
        def part_of(values: np.ndarray) -> np.ndarray:
            first, last = (len(values) * min(end, takers) // takers for end in (number, number + 1))
            return values[first:last]

        with marked_on_device(mine) as mark:
            codes, offsets = (copied_from_host(part_of(each), threads) for each in (words.codes, words.offsets))
            mark("host_to_device")
            occurs = letters_in(codes)
            mark("order")
        return _Brought(codes, offsets, occurs)

    return take_step(devices, bring, watch)


def _order_by_ranks(made: Sequence[Ordering], devices: Sequence[int], watch: Stopwatch) -> None:
    """End the order on all devices: by ranks, until nothing is tied, or stays so, and by lengths."""

    def tell_all(number: int, mine: Stopwatch) -> Any:
        with time_on_device(mine, "order"):
            rank_all(made[number])
            # (A copy: this device may go on, and change its order, while others still read what they are told.)
            return _told(made[number], made[number].order[made[number].range].copy())

    def go_on(number: int, mine: Stopwatch) -> Any:
        with marked_on_device(mine) as mark:
            for places, ranks in (*told[:number], *told[number + 1 :]):
                made[number].ranks[from_device(places)] = from_device(ranks)
            mark("device_to_device")
            order_further(made[number], mine)
            mine_told = _told(made[number], made[number].order[made[number].rows])
            mark("order")
        return mine_told

    def end(number: int, mine: Stopwatch) -> None:
        with time_on_device(mine, "order"):
            end_order(made[number])

    if any(each.is_open for each in made):
        told, groups = take_step(devices, tell_all, watch), -1
        while any(each.is_open for each in made) and sum(each.split.groups for each in made) != groups:
            groups = sum(each.split.groups_tied for each in made)
            told = take_step(devices, go_on, watch)
    if any(len(each.split.tied) for each in made):
        take_step(devices, end, watch)


def _told(made: Ordering, places: Any) -> tuple[Any, Any]:
    """Positions, which are nobody else's to change, and their ranks."""
    return places, made.ranks[places]


def transform_to_host(
    ordered: Sequence[Ordered], letters: bytes, devices: Sequence[int], threads: int, watch: Stopwatch
) -> Transform:
    """The transform, of which each device makes what it has the order of."""
    last = locked(sum(len(each.order) for each in ordered), np.uint8, threads)

    def make(number: int, mine: Stopwatch) -> Any:
        with time_on_device(mine, "transform"):
            letters_there, indices = transform_of(*ordered[number])
        with time_on_device(mine, "device_to_host"):
            copied_to_host(letters_there, threads, last[ordered[number].ranks])
        return indices

    indices, *others = take_step(devices, make, watch)
    if others:
        with time_on_device(watch, "device_to_device"):
            for other in others:
                indices = cupy().maximum(indices, from_device(other))
    with time_on_device(watch, "device_to_host"):
        here = copied_to_host(indices, threads, locked(len(indices), np.int64, threads))
    return Transform(last, here, letters)


def order_to_host(ordered: Sequence[Ordered], devices: Sequence[int], threads: int, watch: Stopwatch) -> np.ndarray:
    """The whole order, uint32[N]."""
    order = locked(sum(len(each.order) for each in ordered), np.uint32, threads)

    def bring(number: int, mine: Stopwatch) -> None:
        with time_on_device(mine, "device_to_host"):
            copied_to_host(ordered[number].order, threads, order[ordered[number].ranks])

    take_step(devices, bring, watch)
    return order

"""Distances of all pairs of words on GPUs: each pair is measured in shares of the ranks, one for each device.

Every rank is looked at once for each word but its own, so shares of as many ranks are as much work, whatever the words
are: thousands, two, or one that is longer than all others. The first device has the order, and makes of it the word of
each rank, its *colour*; the others are brought the colours of their shares, and need nothing else. Each lays out its
ranks by words, is told where each word was last before them, and counts; then it adds up, in its share of the rows,
what all of them counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from warpseed.compute.device_batches import serve_devices
from warpseed.compute.device_copies import copied_to_host, from_device
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.gpu import argsort, cupy, launch, on_own_stream
from warpseed.compute.locked_memory import locked
from warpseed.ebwt.gpu_fast import count_repeats, cut_positions, find_words
from warpseed.ebwt.gpu_few_words import stretches_for

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.ebwt.gpu_order import DeviceWords

__all__ = ["distances_of", "shared_distances", "shares_of"]

_Result = TypeVar("_Result")

_BLOCK = 256
_PAIR_BLOCK = 64
_LEAST_LOCKED = 1 << 22
"""Bytes of distances up to which a copy by the driver takes no longer than one to memory that is locked."""
_FEW_WORDS = 1 << 16
"""Their numbers have 16 bits, which are sorted in half the time."""


class _Ranked(NamedTuple):
    """What the distances are counted from, on one device: k ranks from its first on."""

    positions: Any
    """uint32[k], the ranks of each word's conjugates less the first, ascending, one word behind the other"""
    offsets: Any
    """int64[m + 1], where words begin in it"""
    cuts: Any
    """int64[m, stretches + 1], where a word's ranks of each stretch begin in it, and those of the last end"""
    lasts: Any
    """int64[m], the last of each word's ranks, -1 of a word that has none"""


def distances_of(words: DeviceWords, order: Any) -> Any:
    """δ of all pairs of words, by the current device.

    Parameters
    ----------
    words : DeviceWords
    order : uint32[N] on the device, the position of the conjugate of each rank

    Returns
    -------
    uint64[m, m] on the device
    """
    ranked = _rank(words.words_of[order], len(words.offsets) - 1, 0)
    return _count(ranked, _before([ranked], 0, 0))


def shared_distances(
    words: DeviceWords, order: Any, devices: Sequence[int], threads: int, watch: Stopwatch
) -> np.ndarray:
    """The same, by one or more devices, brought to the host.

    Parameters
    ----------
    words, order : as of `distances_of`, on the first device, which is the current one
    devices : their numbers
    threads : of the host, that copy from each device
    watch : takes the seconds of ``distances`` and ``device_to_host``, and of several devices of ``device_to_device``:
        of each step those of the slowest

    Returns
    -------
    int64[m, m]

    Raises
    ------
    MemoryLimitError : one of the devices has no room
    DeviceError : one does not answer
    """
    m, shares = len(words.offsets) - 1, shares_of(len(order), len(devices))
    with time_on_device(watch, "distances"):
        colours = words.words_of[order]

    def rank(number: int, mine: Stopwatch) -> _Ranked:
        own = colours[shares[number]]
        if number > 0:
            with time_on_device(mine, "device_to_device"):
                own = from_device(own)
        with time_on_device(mine, "distances"):
            return _rank(own, m, shares[number].start)

    def count(number: int, mine: Stopwatch) -> Any:
        with time_on_device(mine, "distances"):
            return _count(ranked[number], _before(ranked, number, shares[number].start))

    def add_up(number: int, mine: Stopwatch) -> None:
        share = rows[number]
        distances = counted[number][share]
        if len(counted) > 1:
            with time_on_device(mine, "device_to_device"):
                for other in (*counted[:number], *counted[number + 1 :]):
                    distances += from_device(other[share])
        with time_on_device(mine, "device_to_host"):
            copied_to_host(distances.view(np.int64), threads, out=found[share])

    ranked = _serve(devices, rank, watch)
    counted = _serve(devices, count, watch)
    found, rows = locked(m * m, np.int64, threads, _LEAST_LOCKED).reshape(m, m), shares_of(m, len(devices))
    _serve(devices, add_up, watch)
    return found


def shares_of(count: int, devices: int) -> list[slice]:
    """So many rows in parts of one size, or nearly, one for each device."""
    ends = [count * number // devices for number in range(devices + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]


def _serve(devices: Sequence[int], work: Callable[[int, Stopwatch], _Result], watch: Stopwatch) -> list[_Result]:
    """What each device comes to in one step, by its number from 0 on; all of it is done then, on every device."""

    def there(number: int, mine: Stopwatch) -> _Result:
        with on_own_stream(0):
            return work(number, mine)

    return serve_devices(devices, there, watch)


def _rank(colours: Any, m: int, first: int) -> _Ranked:
    """The ranks of each of m words in a part of the order, from the rank `first` on, cut where stretches begin.

    colours : uint32[k], the word of each of these ranks
    """
    xp, count = cupy(), len(colours)
    positions = argsort(colours.astype(np.uint16) if m <= _FEW_WORDS else colours).astype(np.uint32)
    offsets, lasts = xp.empty(m + 1, np.int64), xp.empty(m, np.int64)
    launch(find_words, m, _BLOCK, colours, positions, first, offsets, lasts)
    stretches = stretches_for(count, m)
    cuts = xp.empty((m, stretches + 1), np.int64)
    launch(cut_positions, m * (stretches + 1), _BLOCK, positions, offsets, -(-count // stretches), cuts)
    return _Ranked(positions, offsets, cuts, lasts)


def _before(ranked: Sequence[_Ranked], number: int, first: int) -> Any:
    """int64[m], the last rank of each word on the devices before one, less the first of that; the same of all that have
    none, and less than any other."""
    xp = cupy()
    before = xp.full(len(ranked[number].lasts), -1, np.int64)
    for each in ranked[:number]:
        before = xp.maximum(before, from_device(each.lasts))
    return before - first


def _count(ranked: _Ranked, before: Any) -> Any:
    """What the ranks of one device add to δ of all pairs, uint64[m, m]."""
    m, stretches = len(ranked.cuts), ranked.cuts.shape[1] - 1
    distances, blocks = cupy().zeros((m, m), np.uint64), -(-m // _PAIR_BLOCK) * stretches * m
    read = ranked.positions, ranked.offsets, ranked.cuts, before
    launch(count_repeats, blocks * _PAIR_BLOCK, _PAIR_BLOCK, *read, distances)
    return distances

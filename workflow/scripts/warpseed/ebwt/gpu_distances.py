"""Distances of all pairs of words on GPUs: each pair is measured in stretches of ranks, which are dealt out to devices.

Every rank is looked at once for each word but its own, so stretches of as many ranks are as much work, whatever the
words are: thousands, two, or one that is longer than all others. The other devices are brought each word's ranks by the
one that made the order, which adds up what all of them counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpseed.compute.device_batches import serve_devices
from warpseed.compute.device_copies import from_device
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.gpu import argsort, cupy, launch, on_own_stream
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt.gpu_fast import count_alternations, cut_positions
from warpseed.ebwt.gpu_few_words import stretches_for

if TYPE_CHECKING:
    from warpseed.ebwt.gpu_order import DeviceWords

__all__ = ["distances_of", "shared_distances", "share_of"]

_BLOCK = 256
_PAIR_BLOCK = 64


class _Ranked(NamedTuple):
    """What the distances are counted from, on one device."""

    positions: Any
    """uint32[N], the ranks of each word's conjugates, ascending, one word behind the other"""
    offsets: Any
    """int64[m + 1], where words begin in it"""
    cuts: Any
    """int64[m, stretches + 1], where a word's ranks of each stretch begin in it, and those of the last end"""


def share_of(stretches: int, devices: int, number: int) -> tuple[int, int]:
    """The first of the stretches that one of the devices counts in, and how many these are: as many for each.

    Parameters
    ----------
    stretches : a multiple of the devices
    number : of the device, from 0 on
    """
    each = stretches // devices
    return number * each, each


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
    return _count(_rank(words, order, 1), 1, 0)


def shared_distances(words: DeviceWords, order: Any, devices: Sequence[int], watch: Stopwatch) -> Any:
    """The same, by several devices, of which the first is the current one, and has words, order and distances.

    Parameters
    ----------
    words, order : as of `distances_of`
    devices : numbers of GPUs
    watch : takes the seconds of ``distances``, and of several devices of ``device_to_device``: of the slowest

    Raises
    ------
    MemoryLimitError : one of the devices has no room
    DeviceError : one does not answer
    """
    if len(devices) == 1:
        with time_on_device(watch, "distances"):
            return distances_of(words, order)
    with time_on_device(watch, "distances"):
        ranked = _rank(words, order, len(devices))

    def count(number: int, mine: Stopwatch) -> Any:
        with on_own_stream(0):
            there = ranked
            if number:
                with time_on_device(mine, "device_to_device"):
                    there = from_device(ranked)
            with time_on_device(mine, "distances"):
                return _count(there, len(devices), number)

    distances, *others = serve_devices(devices, count, watch)
    with time_on_device(watch, "device_to_device"):
        for other in others:  # (each is kept until it was copied)
            distances += from_device(other)
    return distances


def _rank(words: DeviceWords, order: Any, devices: int) -> _Ranked:
    """Each word's ranks, cut where the stretches begin that so many devices count in."""
    count, m, offsets = len(words.codes), len(words.offsets) - 1, words.offsets
    positions = argsort(words.words_of[order]).astype(np.uint32)
    stretches = stretches_for(count, m, devices)
    cuts = cupy().empty((m, stretches + 1), np.int64)
    launch(cut_positions, m * (stretches + 1), _BLOCK, positions, offsets, -(-count // stretches), cuts)
    return _Ranked(positions, offsets, cuts)


def _count(ranked: _Ranked, devices: int, number: int) -> Any:
    """What one of so many devices counts, uint64[m, m]: the sum of all is δ of all pairs, modulo 2^64."""
    m, stretches = len(ranked.cuts), ranked.cuts.shape[1] - 1
    share, distances = share_of(stretches, devices, number), cupy().zeros((m, m), np.uint64)
    blocks = -(-m // _PAIR_BLOCK) * share[1] * m
    launch(count_alternations, blocks * _PAIR_BLOCK, _PAIR_BLOCK, *ranked, share, distances)
    return distances

"""The fast tier on a GPU: words go there, conjugates are ordered, and what is asked for of the order comes back."""

from __future__ import annotations

import numpy as np

from warpseed.compute.device_marks import time_on_device
from warpseed.compute.gpu import free_memory, on_device, on_own_stream
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import gpu_order
from warpseed.ebwt.gpu_few_words import Found, are_few, find_few
from warpseed.ebwt.gpu_order import DeviceWords
from warpseed.ebwt.transform import Transform
from warpseed.ebwt.words import Words
from warpseed.errors import MemoryLimitError

__all__ = ["Found", "find"]

_BYTES = 96
"""Of the device's memory that a letter takes while conjugates are sorted, at most."""
_PAIR_BYTES = 40
"""That a pair of words takes."""
_MOST = 1 << 32
"""Conjugates have ranks of 32 bits."""
_OF_FREE = 0.9
_LITTLE = 1 << 24
"""Bytes that are taken without a question what is free, which takes as long as the order of few conjugates."""


def find(
    words: Words,
    *,
    order: bool = False,
    transform: bool = False,
    distances: bool = False,
    device: int = 0,
    watch: Stopwatch,
) -> Found:
    """Order the conjugates of words on a GPU, and bring from there what is wanted.

    Parameters
    ----------
    words : Words
    order, transform, distances : what is wanted
    device : number of the GPU
    watch : takes the seconds of ``host_to_device``, ``order``, ``transform``, ``distances`` and ``device_to_host``

    Raises
    ------
    MemoryLimitError : there are too many letters, or pairs of words, for the device's memory
    DeviceError : the device does not answer
    """
    with on_device(device), on_own_stream(0):
        is_few = are_few(words, distances)
        if is_few:
            few = find_few(words, order=order, transform=transform, distances=distances, watch=watch)
            if few is not None:
                return few
        _check_room(words, distances)
        with time_on_device(watch, "host_to_device"):
            there = DeviceWords.of(words)
        with time_on_device(watch, "order"):
            ordered = gpu_order.order_of(there, at_once=not is_few)
        found = Found(None, None, None)
        if transform:
            with time_on_device(watch, "transform"):
                last, indices = gpu_order.transform_of(there, ordered)
            with time_on_device(watch, "device_to_host"):
                found = found._replace(transform=Transform(last.get(), indices.get(), words.letters))
        if distances:
            with time_on_device(watch, "distances"):
                pairs = gpu_order.distances_of(there, ordered)
            with time_on_device(watch, "device_to_host"):
                found = found._replace(distances=pairs.get().view(np.int64))
        if order:
            with time_on_device(watch, "device_to_host"):
                found = found._replace(order=ordered.get())
    return found


def _check_room(words: Words, distances: bool) -> None:
    letters, pairs = len(words.codes), len(words.names) ** 2 if distances else 0
    needed = _BYTES * letters + _PAIR_BYTES * pairs
    if needed <= _LITTLE:
        return
    free = int(_OF_FREE * free_memory())
    if letters > _MOST or needed > free:
        raise MemoryLimitError(
            f"{letters:,} letters{f' and {pairs:,} pairs of words' if pairs else ''} take {needed / 1e9:.1f} GB of the "
            f"GPU's memory, of which {free / 1e9:.1f} GB are free, and at most {_MOST:,} letters go there; use "
            "device='cpu', or fewer sequences."
        )

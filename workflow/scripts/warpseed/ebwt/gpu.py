"""The fast tier on GPUs: words go there, conjugates are ordered, and what is asked for of the order comes back.

Several GPUs share all of it, where words are not few (`gpu_ranges.py`, `gpu_distances.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from warpseed.compute.device_marks import time_on_device
from warpseed.compute.gpu import free_memory, on_device, on_own_stream, require_visible
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import gpu_few
from warpseed.ebwt.fast import Found
from warpseed.ebwt.gpu_distances import bytes_of_distances, shared_distances
from warpseed.ebwt.gpu_few_words import MOST_WORDS, are_few, find_few
from warpseed.ebwt.gpu_order import DeviceWords, order_of
from warpseed.ebwt.gpu_parts import parts_of
from warpseed.ebwt.gpu_ranges import Ordered, order_shared, order_to_host, transform_to_host
from warpseed.ebwt.words import Words
from warpseed.errors import MemoryLimitError, say

__all__ = ["bytes_needed", "find"]

_BYTES = 96
"""Bytes of a device's memory that one letter takes at most while conjugates are sorted."""
_MOST = (1 << 32) - 1
"""Letters, and what is behind the last, have places of 32 bits."""
_OF_FREE = 0.9
_LITTLE = 1 << 24
"""Bytes that are taken without a question what is free, which takes as long as the order of few conjugates."""
_told: set[int] = set()
"""The GPU of which a line said that it does all of it: one line a process."""


def find(
    words: Words,
    *,
    order: bool = False,
    transform: bool = False,
    distances: bool = False,
    devices: Sequence[int] = (0,),
    threads: int = 1,
    watch: Stopwatch,
) -> Found:
    """Order the conjugates of words on GPUs, and bring from there what is wanted.

    Parameters
    ----------
    words : Words
    order, transform, distances : what is wanted
    devices : numbers of GPUs, which share the work; where words are few the first does all of it, and a line says so,
        once
    threads : of the host, that copy to and from each device
    watch : takes the seconds of ``host_to_device``, ``order``, ``transform``, ``distances`` and ``device_to_host``;
        with several GPUs also of ``device_to_device``, behind the first of ``order``: which letters occur

    Returns
    -------
    Found, all of it on the host: the order as uint32[N]; the transform as uint8[N] and int64[m]; the distances as
    [m, m], of `distance_type`. What was not asked for is None.

    Raises
    ------
    MemoryLimitError : there are too many letters, or pairs of words, for the memory of one of the devices
    DeviceError : a device does not answer
    """
    is_few = are_few(words, distances)
    if len(devices) > 1:
        for device in devices:
            require_visible(device)
        if is_few:
            _tell_who_works(devices[0])
            devices = devices[:1]
    if is_few:
        with on_device(devices[0]), on_own_stream(0):
            few = find_few(words, order=order, transform=transform, distances=distances, watch=watch)
        if few is not None:
            return few
    _check_room(words, distances, devices)
    found = Found(None, None, None)
    parts = cache(lambda: parts_of(words.lengths, len(devices)))
    with on_device(devices[0]), on_own_stream(0):
        if len(devices) == 1 and len(words.codes) <= gpu_few.MOST_FEW:
            ordered = _order(words, is_few, threads, watch)
        else:
            asked: dict[str, Any] = {"with_colours": True, "meanwhile": parts} if distances else {}
            ordered = order_shared(words, devices, threads, watch, **asked)
        if transform:
            made = transform_to_host(ordered, words.letters, devices, threads, watch)
            found = found._replace(transform=made)
        if distances:
            found = found._replace(distances=shared_distances(ordered, parts(), devices, threads, watch))
        if order:
            found = found._replace(order=order_to_host(ordered, devices, threads, watch))
    return found


def _order(words: Words, was_few: bool, threads: int, watch: Stopwatch) -> list[Ordered]:
    """Bring few words to the current device, and order their conjugates there.

    was_few : whether blocks that wait for each other have been tried, and did not run at once
    """
    with time_on_device(watch, "host_to_device"):
        there = DeviceWords.of(words, threads)
    with time_on_device(watch, "order"):
        return [Ordered(there, order_of(there, at_once=not was_few), 0)]


def _tell_who_works(device: int) -> None:
    """Say once, in one line, that of several GPUs this one does all of it."""
    if not _told:
        _told.add(device)
        say(
            f"Note: GPU {device} does all of it; several GPUs share more than {gpu_few.MOST_FEW:,} letters, or the "
            f"distances of more than {MOST_WORDS:,} words."
        )


def bytes_needed(letters: int, words: int, longest: int | None) -> int:
    """Of the memory of each device, at most.

    longest : letters of the longest word, where distances are wanted
    """
    return _BYTES * letters + (0 if longest is None else bytes_of_distances(letters, words, longest))


def _check_room(words: Words, distances: bool, devices: Sequence[int]) -> None:
    letters, count = len(words.codes), len(words.offsets) - 1
    needed = bytes_needed(letters, count, int(words.lengths.max()) if distances else None)
    for device in devices if needed > _LITTLE else ():
        with on_device(device):
            free = int(_OF_FREE * free_memory())
        if letters > _MOST or needed > free:
            raise MemoryLimitError(
                f"{letters:,} letters{f' and {count**2:,} pairs of words' if distances else ''} take "
                f"{needed / 1e9:.1f} GB of the memory of GPU {device}, of which {free / 1e9:.1f} GB are free, and at "
                f"most {_MOST:,} letters go there; use device cpu, or fewer sequences."
            )

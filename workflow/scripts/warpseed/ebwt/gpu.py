"""The fast tier on GPUs: words go there, conjugates are ordered, and what is asked for of the order comes back.

Several GPUs share the distances of many words (`gpu_distances.py`), and nothing else: the first makes the order.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpseed.compute.device_copies import copied_to_host
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.gpu import free_memory, on_device, on_own_stream, require_visible
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import gpu_order
from warpseed.ebwt.gpu_distances import bytes_of_distances, shared_distances
from warpseed.ebwt.gpu_few import MOST_FEW
from warpseed.ebwt.gpu_few_words import MOST_WORDS, Found, are_few, find_few
from warpseed.ebwt.gpu_order import DeviceWords
from warpseed.ebwt.transform import Transform
from warpseed.ebwt.words import Words
from warpseed.errors import MemoryLimitError, say

__all__ = ["Found", "bytes_needed", "find"]

_BYTES = 96
"""Of the memory of the first device that a letter takes while conjugates are sorted, at most."""
_BYTES_BESIDE = 48
"""Of the memory of every other device that a letter takes, at most: its word and its place, and sorting these."""
_MOST = 1 << 32
"""Conjugates have ranks of 32 bits."""
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
    devices : numbers of GPUs. They share the distances of words that are not few; the first does all else, and where
        that is everything a line says so, once
    threads : of the host, that copy to and from each device
    watch : takes the seconds of ``host_to_device``, ``order``, ``transform``, ``distances`` and ``device_to_host``;
        with several GPUs also of ``device_to_device``

    Raises
    ------
    MemoryLimitError : there are too many letters, or pairs of words, for the memory of one of the devices
    DeviceError : a device does not answer
    """
    is_few = are_few(words, distances)
    if len(devices) > 1:
        for device in devices:
            require_visible(device)
        if is_few or not distances:
            _tell_who_works(devices[0])
            devices = devices[:1]
    if is_few:
        with on_device(devices[0]), on_own_stream(0):
            few = find_few(words, order=order, transform=transform, distances=distances, watch=watch)
        if few is not None:
            return few
    _check_room(words, distances, devices)
    with on_device(devices[0]), on_own_stream(0):
        with time_on_device(watch, "host_to_device"):
            there = DeviceWords.of(words, threads)
        with time_on_device(watch, "order"):
            ordered = gpu_order.order_of(there, at_once=not is_few)
        found = Found(None, None, None)
        if transform:
            with time_on_device(watch, "transform"):
                last, indices = gpu_order.transform_of(there, ordered)
            with time_on_device(watch, "device_to_host"):
                made = Transform(copied_to_host(last, threads), copied_to_host(indices, threads), words.letters)
            found = found._replace(transform=made)
        if distances:
            found = found._replace(distances=shared_distances(there, ordered, devices, threads, watch))
        if order:
            with time_on_device(watch, "device_to_host"):
                found = found._replace(order=copied_to_host(ordered, threads))
    return found


def _tell_who_works(device: int) -> None:
    """Say once, in one line, that of several GPUs this one does all of it."""
    if not _told:
        _told.add(device)
        say(
            f"Note: GPU {device} does all of it; several GPUs share the distances of more than {MOST_FEW:,} letters, "
            f"or {MOST_WORDS:,} words, and nothing else."
        )


def bytes_needed(letters: int, words: int, distances: bool, number: int) -> int:
    """Of the memory of one of some devices, at most; the first has the number 0."""
    needed = (_BYTES_BESIDE if number > 0 else _BYTES) * letters
    return needed + (bytes_of_distances(letters, words) if distances else 0)


def _check_room(words: Words, distances: bool, devices: Sequence[int]) -> None:
    letters, count = len(words.codes), len(words.lengths)
    for number, device in enumerate(devices):
        needed = bytes_needed(letters, count, distances, number)
        if needed <= _LITTLE:
            continue
        with on_device(device):
            free = int(_OF_FREE * free_memory())
        if letters > _MOST or needed > free:
            raise MemoryLimitError(
                f"{letters:,} letters{f' and {count**2:,} pairs of words' if distances else ''} take "
                f"{needed / 1e9:.1f} GB of the memory of GPU {device}, of which {free / 1e9:.1f} GB are free, and at "
                f"most {_MOST:,} letters go there; use device='cpu', or fewer sequences."
            )

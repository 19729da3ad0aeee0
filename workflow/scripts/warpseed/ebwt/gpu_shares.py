"""What several GPUs share of one task, step by step: rows of an array, that each has some of, and words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from warpseed.compute.device_batches import serve_devices
from warpseed.compute.device_copies import copied_from_host, from_device
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.gpu import on_own_stream
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt.gpu_order import DeviceWords
from warpseed.ebwt.words import Words

__all__ = ["Gpus", "bring_rows", "shared_words", "shares_of"]

_Result = TypeVar("_Result")


class Gpus(NamedTuple):
    """GPUs that work on one task; the first is the current one."""

    devices: Sequence[int]
    """their numbers"""
    watch: Stopwatch
    """takes the seconds of each stage, of each step those of the slowest"""

    def serve(self, work: Callable[[int, Stopwatch], _Result]) -> list[_Result]:
        """What each comes to in one step, by its number from 0 on; all of it is done then, on every device."""

        def there(number: int, mine: Stopwatch) -> _Result:
            with on_own_stream(0):
                return work(number, mine)

        return serve_devices(self.devices, there, self.watch)


def shares_of(count: int, devices: int) -> list[slice]:
    """So many rows in parts of one size, or nearly, one for each device."""
    ends = [count * number // devices for number in range(devices + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]


def bring_rows(parts: Sequence[tuple[Any, slice]], number: int, wanted: slice, watch: Stopwatch) -> None:
    """Bring to the current device the rows that are wanted of an array, of which each device knows some.

    Parameters
    ----------
    parts : (array, rows) of each device: the array, all of one shape, and which of its rows are known there
    number : of the current device
    watch : takes the seconds of ``device_to_device``, where there are several
    """
    if len(parts) == 1:
        return
    mine, _ = parts[number]
    with time_on_device(watch, "device_to_device"):
        for other, (array, known) in enumerate(parts):
            first, last = max(known.start, wanted.start), min(known.stop, wanted.stop)
            if other != number and first < last:
                mine[first:last] = from_device(array[first:last])


def shared_words(gpus: Gpus, words: Words, threads: int) -> list[DeviceWords]:
    """Bring words to each of the devices: to the first from the host, at its full speed, and to the others from there.

    threads : of the host
    """
    with time_on_device(gpus.watch, "host_to_device"):
        codes = copied_from_host(words.codes, threads)

    def lay_out(number: int, mine: Stopwatch) -> DeviceWords:
        here = codes
        if number > 0:
            with time_on_device(mine, "device_to_device"):
                here = from_device(codes)
        with time_on_device(mine, "host_to_device"):
            return DeviceWords.of(words, here)

    return gpus.serve(lay_out)

"""Work on one or more GPUs in batches: dealt out to the devices, halved where memory is short, joined in order."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any, NoReturn, TypeAlias, TypeVar

from warpseed.compute.device_copies import wait_for_sent
from warpseed.compute.gpu import free_memory, give_back_memory, is_out_of_memory, on_device, on_own_stream
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import MemoryLimitError, say

__all__ = [
    "LARGEST_BATCH",
    "BatchRun",
    "Meeting",
    "Refuse",
    "refuse_one_query",
    "run_batches",
    "serve_devices",
    "share_of",
    "take_step",
    "tell_short_memory",
]

LARGEST_BATCH = 1 << 25
"""Queries of a batch at most, however much memory there is."""

_MOST_SERVING = 1 << 10
"""Threads that serve devices at most: more than are ever at work at once, so that none waits for another."""

_Result = TypeVar("_Result")
BatchRun: TypeAlias = Callable[[int, int], _Result]
"""What runs the queries [first, last) on the current device, copies included, and returns their result, on the host or
there."""
Refuse: TypeAlias = Callable[[Exception], NoReturn]
"""What says that memory does not suffice for a single query; it is given the error that told so."""

_told: set[int] = set()
"""Devices whose short memory was told of."""


class _Deal:
    """The queries [0, count), of which each device takes the next few."""

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._next = 0
        self._count = count

    def take(self, size: int) -> tuple[int, int] | None:
        """The next `size` queries as [first, last), or None where no more are left."""
        with self._lock:
            first = self._next
            self._next = min(first + size, self._count)
            return (first, self._next) if first < self._next else None

    def stop(self) -> None:
        """Leave nothing to be taken."""
        with self._lock:
            self._next = self._count


def tell_short_memory(device: int, size: int) -> None:
    """Say once, in one line, that the memory of a device decides the size of batches."""
    if device not in _told:
        _told.add(device)
        say(
            f"GPU {device} is short of memory ({free_memory() / 1e9:.1f} GB are free): "
            f"it is given at most {size:,} queries at a time."
        )


def refuse_one_query(error: Exception) -> NoReturn:
    """Say that what failed for want of memory was a single query, which cannot be halved.

    Raises
    ------
    MemoryLimitError
    """
    raise MemoryLimitError(
        f"One query has more results than the GPU's memory holds ({free_memory() / 1e9:.1f} GB were free "
        "when it failed); set max_hits, use a larger GPU, or device cpu."
    ) from error


def _run_shrinking(
    device: int, first: int, last: int, run: BatchRun[_Result], refuse: Refuse
) -> tuple[int, list[tuple[int, _Result]]]:
    """Run the queries [first, last), in halves of halves where memory does not suffice.

    Returns
    -------
    (size, results) : the size of batch that went well last, and (first query, result) of each batch
    """
    size = last - first
    results = []
    while first < last:
        end = min(first + size, last)
        try:
            results.append((first, run(first, end)))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if end - first == 1:
                refuse(error)
            size = -(-(end - first) // 2)
        else:
            first = end
            continue
        # Only here is the exception gone, whose traceback held the arrays of the batch that failed.
        gc.collect()
        give_back_memory()
        tell_short_memory(device, size)
    return size, results


def serve_devices(
    devices: Sequence[int],
    serve: Callable[[int, Stopwatch], _Result],
    watch: Stopwatch,
    failed: Callable[[], None] = lambda: None,
) -> list[_Result]:
    """Work on several devices at once: on the first in this thread, on each of the others in one of its own.

    Parameters
    ----------
    devices : numbers of the devices
    serve : does the work of a device, which is the current one then; called with its index in `devices`, and with the
        stopwatch to use there
    watch : takes the seconds of each stage; of several devices those of the slowest
    failed : called when the work of a device has ended in an error, while the others go on

    Returns
    -------
    list of what `serve` returned, in the order of the devices
    """

    def there(index: int) -> tuple[Stopwatch, _Result]:
        watch_here = watch if len(devices) == 1 else Stopwatch()
        try:
            with on_device(devices[index]):
                return watch_here, serve(index, watch_here)
        except BaseException:
            failed()
            raise

    if len(devices) == 1:
        return [there(0)[1]]
    others: list[Future[tuple[Stopwatch, _Result]]] = []
    try:
        for index in range(1, len(devices)):  # (each known at once, whatever interrupts the next)
            others.append(_serving_threads().submit(there, index))
        served = [there(0)]
        while others:
            served.append(others.pop(0).result())
    except BaseException:
        failed()
        raise
    finally:
        wait(others)
        others.clear()  # an error would be held by itself, and with it all that its frames hold
    watch.take_slowest(each for each, _ in served)
    return [result for _, result in served]


class Meeting:
    """Where devices tell each other, once within a step, what they have begun.

    count : how many come
    """

    def __init__(self, count: int) -> None:
        self._barrier = threading.Barrier(count)
        self._told: list[Any] = [None] * count

    def tell(self, number: int, value: Any) -> list[Any] | None:
        """Tell the others, and wait for what they tell: the values of all, or None, where one of them never comes."""
        self._told[number] = value
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError:
            return None
        return self._told

    def end(self) -> None:
        """Let nobody wait."""
        self._barrier.abort()


def take_step(
    devices: Sequence[int],
    work: Callable[[int, Stopwatch], _Result],
    watch: Stopwatch,
    failed: Callable[[], None] = lambda: None,
) -> list[_Result]:
    """As `serve_devices`, each on this thread's own stream there: what was given to it is done on return, on every
    device, and what was sent to the host is there, also where one of them has failed."""

    def there(number: int, watch_here: Stopwatch) -> _Result:
        with on_own_stream(0):
            try:
                return work(number, watch_here)
            except BaseException:
                wait_for_sent()
                raise

    return serve_devices(devices, there, watch, failed)


@cache
def _serving_threads() -> ThreadPoolExecutor:
    """Threads that serve devices, of any search: a new one takes a millisecond until a device is its current one."""
    return ThreadPoolExecutor(_MOST_SERVING, thread_name_prefix="serving")


# A child has none of the threads.
os.register_at_fork(after_in_child=_serving_threads.cache_clear)


def share_of(count: int, devices: int) -> int:
    """Queries of a batch of `run_batches`, where there is room for so many."""
    return -(-count // devices)


def run_batches(
    count: int,
    bytes_each: int,
    start: Callable[[Stopwatch], BatchRun[_Result]],
    *,
    watch: Stopwatch,
    devices: Sequence[int] = (0,),
    refuse: Refuse = refuse_one_query,
) -> list[_Result]:
    """Run `count` queries in batches on one or more devices.

    Parameters
    ----------
    bytes_each : device memory that a query and its results take, about; a batch that takes more is halved
    start : called once on each device, in its thread, with the stopwatch to use there: brings there what all batches
        share, and returns what runs one of them
    watch : takes the seconds of each stage; of several devices those of the slowest
    devices : numbers of the devices, each served by a host thread of its own
    refuse : raises what is said where a single query does not fit

    Returns
    -------
    list of what the batches returned, in the order of the queries

    Raises
    ------
    MemoryLimitError : what all batches share, or a single query, does not fit
    DeviceError : a device does not answer
    """
    deal = _Deal(count)
    share = share_of(count, len(devices))

    def serve(number: int, watch_here: Stopwatch) -> list[tuple[int, _Result]]:
        results: list[tuple[int, _Result]] = []
        run = start(watch_here)
        wanted = max(1, min(LARGEST_BATCH, share))
        size = max(1, min(wanted, free_memory() // (2 * max(1, bytes_each))))
        if size < wanted:
            tell_short_memory(devices[number], size)
        while (taken := deal.take(size)) is not None:
            size, parts = _run_shrinking(devices[number], *taken, run, refuse)
            results += parts
        return results

    served = serve_devices(devices, serve, watch, deal.stop)
    return [result for _, result in sorted((part for parts in served for part in parts), key=lambda part: part[0])]

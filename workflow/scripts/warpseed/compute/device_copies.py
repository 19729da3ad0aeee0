"""Copies of large arrays: from the host to the current device and back, and from another device.

A copy from or to ordinary memory is bound by the host. So several threads take pieces through pinned memory; each works
on one piece while the device copies its other one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from ctypes import memmove
from functools import cache
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from warpseed.compute.gpu import cupy, current_device, device_count, device_errors, pinned, synchronize, to_device, view
from warpseed.compute.pipeline import wanted_by_this_thread
from warpseed.compute.stopwatch import Stopwatch

__all__ = ["copied_from_host", "copied_in_turn", "copied_to_device", "copied_to_host", "from_device"]

_PIECE = 1 << 22
"""Bytes that a thread copies at a time; an array of no more is copied at once."""
_MOST_COPYING = 8
"""Threads that copy to or from one device."""
_Pair: TypeAlias = "tuple[np.ndarray, Any]"
"""An array of the host and one of the current device, of as many bytes; both hold them in order."""


class _Piece(NamedTuple):
    """Bytes of the host, and their place on the current device. (By their addresses: pieces that are arrays, and CuPy's
    calls for them, take the threads longer than to copy what they hold, as they do so one after the other.)"""

    here: int
    there: int
    size: int


def _pieces_of(pair: _Pair) -> Iterator[_Piece]:
    here, there = pair
    host, device = here.ctypes.data, there.data.ptr
    for first in range(0, here.nbytes, _PIECE):
        yield _Piece(host + first, device + first, min(_PIECE, here.nbytes - first))


def copied_from_host(value: Any, threads: int = 1) -> Any:
    """As `to_device`, large arrays of the host by several threads."""
    pairs: list[_Pair] = []
    there = _room_for(value, pairs)
    _copy_in_pieces(pairs, threads, to_device=True)
    return there


def copied_in_turn(values: Sequence[Any], threads: int = 1) -> Generator[Any, None, None]:
    """As `copied_from_host` of several values, each given as soon as it is there, while those behind it are on their
    way. To be closed, if not taken to its end."""
    groups: list[list[_Pair]] = [[] for _ in values]
    there = [_room_for(value, pairs) for value, pairs in zip(values, groups, strict=True)]
    with closing(_copying(groups, threads, to_device=True)) as arriving:
        yield from (value for value, _ in zip(there, arriving, strict=True))


def _room_for(value: Any, pairs: list[_Pair]) -> Any:
    """As `to_device`, but that the copies of large arrays are left to be made."""
    if isinstance(value, tuple):
        return type(value)(*(_room_for(part, pairs) for part in value))
    if not isinstance(value, np.ndarray) or value.nbytes <= _PIECE:
        return to_device(value)
    there = cupy().empty(value.shape, value.dtype)
    pairs.append((np.ascontiguousarray(value), there))
    return view(there)


def copied_to_device(value: Any, watch: Stopwatch, threads: int = 1) -> Any:
    """As `to_device`, by several threads as `copied_from_host` where there are; stage host_to_device."""
    with watch.stage("host_to_device", synchronise=synchronize):
        return copied_from_host(value, threads) if threads > 1 else to_device(value)


def copied_to_host(value: Any, threads: int = 1) -> np.ndarray:
    """Copy a CuPy array, C-contiguous, to the host, a large one by several threads; an array of the host stays."""
    if isinstance(value, np.ndarray):
        return value
    if value.nbytes <= _PIECE:
        return np.asarray(value.get())
    host = np.empty(value.shape, value.dtype)
    _copy_in_pieces([(host, value)], threads, to_device=False)
    return host


def _copy_in_pieces(pairs: Sequence[_Pair], threads: int, *, to_device: bool) -> None:
    """Copy between the host and the current device; all is done on return."""
    for _ in _copying([pairs], threads, to_device=to_device):
        pass


def _copying(groups: Iterable[Sequence[_Pair]], threads: int, *, to_device: bool) -> Generator[None, None, None]:
    """Copy between the host and the current device, group by group, and go on when each is done, while the threads are
    at those behind it. All have left the arrays when the iterator ends, or is closed."""
    in_use: list[Any] = [*groups]  # as long as any thread is at work
    parts = [[piece for pair in group for piece in _pieces_of(pair)] for group in in_use]
    if not any(parts):
        yield from (None for _ in parts)
        return
    device, workers = current_device(), max(1, min(threads, _MOST_COPYING, max(map(len, parts))))
    check, stopped, arrived = wanted_by_this_thread(), threading.Event(), SimpleQueue[int | BaseException]()
    runtime = cupy().cuda.runtime

    def begin(piece: _Piece, buffer: int) -> None:
        if to_device:
            memmove(buffer, piece.here, piece.size)
            runtime.memcpyAsync(piece.there, buffer, piece.size, runtime.memcpyHostToDevice, stream.ptr)
        else:
            runtime.memcpyAsync(buffer, piece.there, piece.size, runtime.memcpyDeviceToHost, stream.ptr)

    def land(piece: _Piece, buffer: int, copied: Any) -> None:
        copied.synchronize()
        if not to_device:
            memmove(piece.here, buffer, piece.size)

    def copy(mine: list[_Piece], addresses: list[int]) -> None:
        flying = deque[tuple[_Piece, int, Any]]()
        for number, piece in enumerate(mine):
            check()
            if stopped.is_set():
                return
            if len(flying) == len(addresses):
                land(*flying.popleft())
            begin(piece, addresses[number % 2])
            flying.append((piece, addresses[number % 2], stream.record()))
        for each in flying:
            land(*each)

    def work(worker: int) -> None:
        shares = [pieces[worker::workers] for pieces in parts]
        # (To make the device Numba's, too, takes a thread as long as to copy some megabytes.)
        try:
            with device_errors(), cupy().cuda.Device(device):
                buffers = [pinned(_PIECE, np.uint8) for _ in max(shares, key=len)[:2]]
                in_use.extend(buffers)
                for number, mine in enumerate(shares):
                    copy(mine, [buffer.ctypes.data for buffer in buffers])
                    arrived.put(number)
        except BaseException as error:  # raised again where the copies are waited for
            arrived.put(error)

    synchronize()
    stream = cupy().cuda.Stream(non_blocking=True)
    working: list[Future[None]] = []
    done = [0] * len(parts)
    try:
        if workers == len(parts) == 1:
            work(0)
        else:
            for worker in range(workers):  # (each known at once, whatever interrupts the next)
                working.append(_copying_threads().submit(work, worker))
        for number in range(len(parts)):
            while done[number] < workers:
                if isinstance(part := arrived.get(), BaseException):
                    raise part
                done[part] += 1
            yield
    finally:
        stopped.set()
        wait(working)
        stream.synchronize()


@cache
def _copying_threads() -> ThreadPoolExecutor:
    """Threads that wait for copies of any device: to start some takes as long as to copy a hundred megabytes."""
    return ThreadPoolExecutor(_MOST_COPYING * device_count(), thread_name_prefix="copying")


def from_device(value: Any) -> Any:
    """As `to_device`, from another device."""
    if isinstance(value, tuple):
        return type(value)(*map(from_device, value))
    if not hasattr(value, "__cuda_array_interface__"):
        return value
    package = cupy()
    there = package.asarray(value)
    here = package.empty(there.shape, there.dtype)
    here.data.copy_from_device_async(there.data, there.nbytes)
    return view(here)

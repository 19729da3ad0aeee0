"""Copies of large arrays: from the host to the current device and back, and from another device.

A copy from or to ordinary memory is bound by the host. So several threads take pieces through pinned memory; each works
on one piece while the device copies its other one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.gpu import cupy, current_device, device_count, device_errors, pinned, synchronize, to_device, view
from warpseed.compute.pipeline import wanted_by_this_thread
from warpseed.compute.stopwatch import Stopwatch

__all__ = ["copied_from_host", "copied_to_device", "copied_to_host", "from_device"]

_PIECE = 1 << 23
"""Bytes that a thread copies at a time; an array of no more is copied at once."""
_MOST_COPYING = 8
"""Threads that copy."""


class _Copy(NamedTuple):
    """Bytes of the host, and their place on the current device, of one length."""

    here: np.ndarray
    there: Any

    def pieces(self) -> Iterator[_Copy]:
        for first in range(0, len(self.here), _PIECE):
            piece = slice(first, min(first + _PIECE, len(self.here)))
            yield _Copy(self.here[piece], self.there[piece])


def _bytes_of(array: Any) -> Any:
    return array.reshape(-1).view(np.uint8)


def copied_from_host(value: Any, threads: int = 1) -> Any:
    """As `to_device`, large arrays of the host by several threads."""
    copies: list[_Copy] = []
    there = _room_for(value, copies)

    def begin(piece: _Copy, buffer: np.ndarray, stream: Any) -> None:
        buffer[...] = piece.here
        piece.there.set(buffer, stream=stream)

    _copy_in_pieces(copies, threads, begin)
    return there


def _room_for(value: Any, copies: list[_Copy]) -> Any:
    """As `to_device`, but that the copies of large arrays are left to be made."""
    if isinstance(value, tuple):
        return type(value)(*(_room_for(part, copies) for part in value))
    if not isinstance(value, np.ndarray) or value.nbytes <= _PIECE:
        return to_device(value)
    there = cupy().empty(value.shape, value.dtype)
    copies.append(_Copy(_bytes_of(np.ascontiguousarray(value)), _bytes_of(there)))
    return view(there)


def copied_to_device(value: Any, watch: Stopwatch, threads: int = 1) -> Any:
    """As `to_device`, by several threads as `copied_from_host` where there are; stage host_to_device."""
    with watch.stage("host_to_device", synchronise=synchronize):
        return copied_from_host(value, threads) if threads > 1 else to_device(value)


def copied_to_host(value: Any, threads: int = 1) -> np.ndarray:
    """Copy a CuPy array to the host, a large one by several threads; an array of the host stays."""
    if isinstance(value, np.ndarray):
        return value
    if value.nbytes <= _PIECE:
        return np.asarray(value.get())
    host = np.empty(value.shape, value.dtype)

    def begin(piece: _Copy, buffer: np.ndarray, stream: Any) -> None:
        piece.there.get(out=buffer, stream=stream, blocking=False)

    def end(piece: _Copy, buffer: np.ndarray) -> None:
        piece.here[...] = buffer

    _copy_in_pieces([_Copy(_bytes_of(host), _bytes_of(value))], threads, begin, end)
    return host


def _copy_in_pieces(
    copies: Iterable[_Copy],
    threads: int,
    begin: Callable[[_Copy, np.ndarray, Any], None],
    end: Callable[[_Copy, np.ndarray], None] | None = None,
) -> None:
    """Copy between the host and the current device; all is done on return.

    Parameters
    ----------
    begin : puts the copy between a piece's place on the device and a buffer in pinned memory on a stream
    end : called with piece and buffer when that copy is done, before the buffer is used again
    """
    pieces = [piece for copy in copies for piece in copy.pieces()]
    if not pieces:
        return
    device, workers = current_device(), max(1, min(threads, _MOST_COPYING, len(pieces)))
    check, stopped = wanted_by_this_thread(), threading.Event()

    def land(piece: _Copy, buffer: np.ndarray, copied: Any) -> None:
        copied.synchronize()
        if end is not None:
            end(piece, buffer)

    def copy(worker: int) -> None:
        mine = pieces[worker::workers]
        # (To make the device Numba's, too, takes a thread as long as to copy some megabytes.)
        with device_errors(), cupy().cuda.Device(device):
            buffers, flying = [pinned(_PIECE, np.uint8) for _ in mine[:2]], deque[tuple[_Copy, np.ndarray, Any]]()
            in_use.extend(buffers)
            for number, piece in enumerate(mine):
                check()
                if stopped.is_set():
                    return
                if len(flying) == len(buffers):
                    land(*flying.popleft())
                buffer = buffers[number % 2][: len(piece.here)]
                begin(piece, buffer, stream)
                if end is not None or len(mine) > len(buffers):
                    flying.append((piece, buffer, stream.record()))
            for each in flying:
                land(*each)

    synchronize()
    in_use: list[np.ndarray] = []  # until all is done
    stream = cupy().cuda.Stream(non_blocking=True)
    copying = [_copying_threads().submit(copy, worker) for worker in range(workers)]
    try:
        for each in as_completed(copying):
            each.result()
    finally:
        stopped.set()
        wait(copying)
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

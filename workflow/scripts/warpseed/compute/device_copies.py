"""Copies of large arrays: from the current device to the host, and from another device."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpseed.compute.gpu import cupy, current_device, on_device, pinned, synchronize, view
from warpseed.compute.ranges import on_threads

__all__ = ["copied_to_host", "from_device"]

_PIECE = 1 << 25
"""Bytes that are copied to the host at a time."""
_MOST_COPYING = 8
"""Threads that do."""


def copied_to_host(value: Any, threads: int = 1) -> np.ndarray:
    """Copy a CuPy array to the host, a large one by several threads; an array of the host stays.

    A copy into ordinary memory is bound by the host: each thread takes pieces out of pinned memory while the device
    puts its next one there.
    """
    if isinstance(value, np.ndarray):
        return value
    if value.nbytes <= _PIECE:
        return np.asarray(value.get())
    host, device = np.empty(value.shape, value.dtype), current_device()
    target, source, step = host.reshape(-1), value.reshape(-1), _PIECE // value.itemsize
    workers = max(1, min(threads, _MOST_COPYING))
    synchronize()

    def copy(worker: int) -> None:
        package = cupy()
        begin, end = (len(target) * number // workers for number in (worker, worker + 1))
        buffers, waiting = [pinned(step, value.dtype) for _ in range(2)], []
        with on_device(device), package.cuda.Stream(non_blocking=True) as stream:
            for first in range(begin, end, step):
                last = min(first + step, end)
                buffer = buffers[first // step % 2][: last - first]
                source[first:last].get(out=buffer, stream=stream, blocking=False)
                waiting.append((first, buffer, stream.record()))
                if len(waiting) > 1:
                    _take_piece(target, *waiting.pop(0))
            for piece in waiting:
                _take_piece(target, *piece)

    on_threads(workers, copy, workers)
    return host


def _take_piece(target: np.ndarray, first: int, buffer: np.ndarray, copied: Any) -> None:
    copied.synchronize()
    target[first : first + len(buffer)] = buffer


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

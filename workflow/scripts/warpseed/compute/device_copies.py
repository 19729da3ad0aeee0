"""Copies of large arrays: from the host to the current device and back, and from another device.

A copy from or to ordinary memory is bound by the host. So several threads take pieces through pinned memory; each works
on one piece while the device copies its other one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from warpseed.compute.gpu import cupy, current_device, on_device, pinned, synchronize, to_device, view
from warpseed.compute.pipeline import check_wanted
from warpseed.compute.ranges import on_threads
from warpseed.compute.stopwatch import Stopwatch

__all__ = ["copied_from_host", "copied_to_device", "copied_to_host", "from_device"]

_PIECE = 1 << 23
"""Bytes that a thread copies at a time; an array of no more is copied at once."""
_MOST_COPYING = 8
"""Threads that copy."""


def copied_from_host(value: Any, threads: int = 1) -> Any:
    """As `to_device`, a large array of the host by several threads."""
    if isinstance(value, tuple):
        return type(value)(*(copied_from_host(part, threads) for part in value))
    if not isinstance(value, np.ndarray) or value.nbytes <= _PIECE:
        return to_device(value)
    there = cupy().empty(value.shape, value.dtype)
    target, source = there.reshape(-1), value.reshape(-1)

    def begin(piece: slice, buffer: np.ndarray, stream: Any) -> None:
        buffer[...] = source[piece]
        target[piece].set(buffer, stream=stream)

    _copy_in_pieces(source, threads, begin)
    return view(there)


def copied_to_device(value: Any, watch: Stopwatch, threads: int = 1) -> Any:
    """As `to_device`, by several threads as `copied_from_host` where there are; stage host_to_device."""
    with watch.stage("host_to_device", synchronise=synchronize):
        return copied_from_host(value, threads) if threads > 1 else to_device(value)


def copied_to_host(value: Any, threads: int = 1, out: np.ndarray | None = None) -> np.ndarray:
    """Copy a CuPy array to the host, a large one by several threads; an array of the host stays.

    out : of the same shape and type, to be filled with either; else there is a new one for what lies on the device
    """
    if isinstance(value, np.ndarray):
        if out is None:
            return value
        out[...] = value
        return out
    if value.nbytes <= _PIECE:
        return np.asarray(value.get(out=out))
    host = np.empty(value.shape, value.dtype) if out is None else out
    target, source = host.reshape(-1), value.reshape(-1)

    def begin(piece: slice, buffer: np.ndarray, stream: Any) -> None:
        source[piece].get(out=buffer, stream=stream, blocking=False)

    def end(piece: slice, buffer: np.ndarray) -> None:
        target[piece] = buffer

    _copy_in_pieces(target, threads, begin, end)
    return host


def _copy_in_pieces(
    host: np.ndarray,
    threads: int,
    begin: Callable[[slice, np.ndarray, Any], None],
    end: Callable[[slice, np.ndarray], None] = lambda piece, buffer: None,
) -> None:
    """Copy between an array of the host, of one dimension, and one of the current device; all is done on return.

    Parameters
    ----------
    begin : puts the copy between the device's piece and a buffer in pinned memory on a stream
    end : called with piece and buffer when that copy is done, before the buffer is used again
    """
    device, step = current_device(), _PIECE // host.itemsize
    pieces = [slice(first, min(first + step, len(host))) for first in range(0, len(host), step)]
    workers = max(1, min(threads, _MOST_COPYING, len(pieces)))
    synchronize()

    def land(piece: slice, buffer: np.ndarray, copied: Any) -> None:
        copied.synchronize()
        end(piece, buffer)

    def copy(worker: int) -> None:
        mine = pieces[worker::workers]
        with _stream_on(device) as stream:
            buffers, flying = [pinned(step, host.dtype) for _ in mine[:2]], deque[tuple[slice, np.ndarray, Any]]()
            for number, piece in enumerate(mine):
                check_wanted()
                if len(flying) == len(buffers):
                    land(*flying.popleft())
                buffer = buffers[number % 2][: piece.stop - piece.start]
                begin(piece, buffer, stream)
                flying.append((piece, buffer, stream.record()))
            for each in flying:
                land(*each)

    on_threads(workers, copy, workers)


@contextmanager
def _stream_on(device: int) -> Iterator[Any]:
    """A stream for this thread on a device; what was put on it is done when the block ends, however it does."""
    with on_device(device), cupy().cuda.Stream(non_blocking=True) as stream:
        try:
            yield stream
        finally:
            stream.synchronize()


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

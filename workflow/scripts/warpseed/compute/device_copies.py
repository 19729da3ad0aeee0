"""Copies of large arrays: from the host to the current device and back, and from another device.

A copy from or to ordinary memory is bound by the host. So several threads take pieces through pinned memory; each works
on one piece while the device copies its other one. What lies in locked memory is copied as it is.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from ctypes import memmove
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from warpseed.compute.gpu import (
    cupy,
    current_device,
    device_count,
    device_errors,
    kept_stream,
    synchronize,
    to_device,
)
from warpseed.compute.locked_memory import is_locked, pinned
from warpseed.compute.pipeline import wanted_by_this_thread
from warpseed.compute.stopwatch import Stopwatch

__all__ = [
    "LEAST_LOCKED",
    "copied_from_host",
    "copied_to_device",
    "copied_to_host",
    "copies_stream",
    "from_device",
    "joined_from",
    "sent_from_host",
    "sent_to_host",
    "wait_for_sent",
]

_PIECE = 1 << 22
"""Bytes that a thread copies at a time; an array of no more is copied at once."""
LEAST_LOCKED = 1 << 22
"""Bytes up to which a copy by the driver takes no longer than one to memory that is locked."""
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
    try:
        return sent_from_host(value, threads)
    finally:
        synchronize()


def sent_from_host(value: Any, threads: int = 1) -> Any:
    """As `copied_from_host`, but that what lies in locked memory may be on its way still, on this thread's stream. It
    must stay as it is until that stream was waited for."""
    pairs: list[_Pair] = []
    there = _room_for(value, pairs)
    _copy_in_pieces(pairs, threads, to_device=True)
    return there


def _room_for(value: Any, pairs: list[_Pair]) -> Any:
    """As `to_device`, but that the copies of arrays of the host are left to be made."""
    if isinstance(value, tuple):
        return type(value)(*(_room_for(part, pairs) for part in value))
    if not isinstance(value, np.ndarray):
        return to_device(value)
    there = cupy().empty(value.shape, value.dtype)
    pairs.append((np.asarray(value, order="C"), there))
    return there


def copied_to_device(value: Any, watch: Stopwatch, threads: int = 1) -> Any:
    """As `copied_from_host`; stage host_to_device. Of what lies there already nothing is waited for."""
    if not _lies_on_host(value):
        return to_device(value)
    with watch.stage("host_to_device", synchronise=synchronize):
        return copied_from_host(value, threads)


def _lies_on_host(value: Any) -> bool:
    """Whether an array, or any array of a tuple, is of the host."""
    return any(map(_lies_on_host, value)) if isinstance(value, tuple) else isinstance(value, np.ndarray)


def copied_to_host(value: Any, threads: int = 1, out: np.ndarray | None = None) -> np.ndarray:
    """Copy a CuPy array, C-contiguous, to the host, a large one by several threads; an array of the host stays.

    out : where to, an array of the same shape and type, C-contiguous; else a new one
    """
    if out is None and isinstance(value, np.ndarray):
        return value
    host = np.empty(value.shape, value.dtype) if out is None else out
    if value.nbytes <= _PIECE:
        value.get(out=host)
    else:
        _copy_in_pieces([(host, value)], threads, to_device=False)
    return host


def copies_stream() -> Any:
    """The stream of the current device on which results go to the host, and what other devices tell comes, beside what
    a thread puts on its own."""
    return kept_stream("copies")


def sent_to_host(value: Any, out: np.ndarray, threads: int = 1) -> None:
    """Copy some rows and columns of a matrix to the host; to locked memory beside what this thread puts on its stream
    from now on, until `wait_for_sent`.

    Parameters
    ----------
    value, out : of the same shape and type, [rows, columns], the columns one behind the other
        They must stay as they are until then. `out` is of an array that is locked as a whole, or not at all.
    """
    if not value.size:
        return
    if not is_locked(out):
        there = cupy().ascontiguousarray(value)
        if out.flags.c_contiguous:
            copied_to_host(there, threads, out)
        else:
            out[...] = copied_to_host(there, threads)
        return
    runtime, stream = cupy().cuda.runtime, copies_stream()
    stream.wait_event(cupy().cuda.get_current_stream().record())
    rows, width = len(value), value.shape[1] * value.itemsize
    to, of = (out.ctypes.data, out.strides[0]), (value.data.ptr, value.strides[0])
    runtime.memcpy2DAsync(*to, *of, width, rows, runtime.memcpyDeviceToHost, stream.ptr)


def wait_for_sent() -> None:
    """Let this thread's stream wait until all that was put on the current device's `copies_stream`, by `sent_to_host`
    and by others, is done."""
    cupy().cuda.get_current_stream().wait_event(copies_stream().record())


def _copy_in_pieces(pairs: Iterable[_Pair], threads: int, *, to_device: bool) -> None:
    """Copy between the host and the current device; all is done on return, but what is small, and what goes to the
    device where all that is large lies in locked memory: that is on this thread's stream."""
    in_use: list[Any] = [*pairs]  # as long as any thread is at work
    small: list[_Pair] = []
    locked: list[_Piece] = []
    pieces: list[_Piece] = []
    for here, there in in_use:
        if here.nbytes <= _PIECE:
            small.append((here, there))
        elif is_locked(here):
            locked.append(_Piece(here.ctypes.data, there.data.ptr, here.nbytes))
        else:
            pieces += _pieces_of((here, there))
    runtime = cupy().cuda.runtime
    if not pieces and (to_device or not locked):
        stream = cupy().cuda.get_current_stream()
        _copy_small(small, to_device=to_device)
        for here, there, size in locked:
            runtime.memcpyAsync(there, here, size, runtime.memcpyHostToDevice, stream.ptr)
        return
    device, workers = current_device(), min(max(1, threads), _MOST_COPYING, len(pieces))
    check, stopped = wanted_by_this_thread(), threading.Event()

    def move(here: int, there: int, size: int) -> None:
        if to_device:
            runtime.memcpyAsync(there, here, size, runtime.memcpyHostToDevice, stream.ptr)
        else:
            runtime.memcpyAsync(here, there, size, runtime.memcpyDeviceToHost, stream.ptr)

    def begin(piece: _Piece, buffer: int) -> None:
        if to_device:
            memmove(buffer, piece.here, piece.size)
        move(buffer, piece.there, piece.size)

    def land(piece: _Piece, buffer: int, copied: Any) -> None:
        copied.synchronize()
        if not to_device:
            memmove(piece.here, buffer, piece.size)

    def copy(worker: int) -> None:
        mine = pieces[worker::workers]
        with device_errors(), cupy().cuda.Device(device):
            buffers, flying = [pinned(_PIECE, np.uint8) for _ in mine[:2]], deque[tuple[_Piece, int, Any]]()
            in_use.extend(buffers)
            addresses, again = [buffer.ctypes.data for buffer in buffers], len(mine) > len(buffers)
            for number, piece in enumerate(mine):
                check()
                if stopped.is_set():
                    return
                if len(flying) == len(buffers):
                    land(*flying.popleft())
                begin(piece, addresses[number % 2])
                if again or not to_device:
                    flying.append((piece, addresses[number % 2], stream.record()))
            for each in flying:
                land(*each)

    synchronize()
    stream = copies_stream()
    copying: list[Future[None]] = []
    try:
        for piece in locked:
            move(*piece)
        _copy_small(small, to_device=to_device)  # (beside the large ones)
        if workers == 1:
            copy(0)
        else:
            for worker in range(workers):  # (each known at once, whatever interrupts the next)
                copying.append(_copying_threads().submit(copy, worker))
        for each in as_completed(copying):
            each.result()
    finally:
        stopped.set()
        wait(copying)
        stream.synchronize()


def _copy_small(pairs: Iterable[_Pair], *, to_device: bool) -> None:
    """Copy on this thread's stream, as the driver does it from and to any memory."""
    for here, there in pairs:
        if to_device:
            there.set(here)
        else:
            there.get(out=here)


@cache
def _copying_threads() -> ThreadPoolExecutor:
    """Threads that wait for copies of any device: to start some takes as long as to copy a hundred megabytes."""
    return ThreadPoolExecutor(_MOST_COPYING * device_count(), thread_name_prefix="copying")


# A child has none of the threads.
os.register_at_fork(after_in_child=_copying_threads.cache_clear)


def from_device(value: Any, out: Any = None) -> Any:
    """As `to_device`, from another device.

    out : where to, of an array: one of the current device, of as many bytes; both hold them in order
    """
    if isinstance(value, tuple):
        return type(value)(*map(from_device, value))
    if not hasattr(value, "__cuda_array_interface__"):
        return value
    here = cupy().empty(value.shape, value.dtype) if out is None else out
    here.data.copy_from_device_async(value.data, value.nbytes)
    return here


def joined_from(values: Sequence[Any], here: int) -> Any:
    """Concatenate arrays of several devices on the current one.

    `values[here]` lies there already, and is itself returned if all others are empty.
    """
    if sum(map(len, values)) == len(values[here]):
        return values[here]
    joined, first = cupy().empty(sum(map(len, values)), values[0].dtype), 0
    for value in values:
        from_device(value, joined[first : first + len(value)])
        first += len(value)
    return joined

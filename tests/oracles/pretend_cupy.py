"""CuPy's arrays, streams and what is made of them, as NumPy's: what the library uses of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import memmove, memset
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

__all__ = ["Array", "OutOfMemoryError", "PretendCupy", "TheirArray"]

NO_LIMIT = np.iinfo(np.int64).max


class Array(np.ndarray):
    """A NumPy array that can be asked for the host's copy, and on which device it lies."""

    device = SimpleNamespace(id=0)  # type: ignore[assignment]

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data, memset_async=partial(memset, self.ctypes.data))

    def get(self, out: np.ndarray | None = None, blocking: bool = True, stream: Stream | None = None) -> np.ndarray:
        if out is None:
            return np.array(self)
        out[...] = self
        return out

    def set(self, values: np.ndarray, stream: Stream | None = None) -> None:
        self[...] = values
        if stream is not None:
            stream.on_its_way.append((values, values.copy()))


class TheirArray(Array):
    """An array of a device as a caller gives it."""

    __cuda_array_interface__: ClassVar[dict[str, Any]] = {}


class Stream:
    """A stream, which has nothing to wait for; but what goes to the device on it must stay until somebody has."""

    def __init__(self, non_blocking: bool = False, priority: int = 0) -> None:
        self.ptr = id(self)
        self.waited = False
        """whether the host has waited for it"""
        self.on_its_way: list[tuple[np.ndarray, np.ndarray]] = []
        """arrays of the host, and what they held"""

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def synchronize(self) -> None:
        self.waited = True
        while self.on_its_way:
            values, sent = self.on_its_way.pop()
            assert np.array_equal(values, sent), "what was on its way to a device was changed"

    def record(self) -> Stream:
        """An event, whose end comes with that of the stream."""
        return self

    def wait_event(self, event: object) -> None:
        pass


def _move_rows(to: int, step: int, of: int, step_of: int, width: int, rows: int, kind: int, stream: int) -> None:
    for row in range(rows):
        memmove(to + row * step, of + row * step_of, width)


class OutOfMemoryError(MemoryError):
    """CuPy's."""


class CUDARuntimeError(RuntimeError):
    """CuPy's."""


class PretendCupy:
    """What the library uses of CuPy; an array of more than `largest` bytes does not fit."""

    ndarray = Array
    uint8, uint32, uint64, int64 = np.uint8, np.uint32, np.uint64, np.int64

    def __init__(self) -> None:
        self.largest, self.devices = NO_LIMIT, 1
        self.free = 1 << 40
        self.current = threading.local()
        pool = SimpleNamespace(
            free_bytes=lambda: 0, used_bytes=lambda: 0, get_limit=lambda: 0, free_all_blocks=lambda: None
        )
        self.get_default_memory_pool = lambda: pool
        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(
                CUDARuntimeError=CUDARuntimeError,
                getDeviceCount=lambda: self.devices,
                getDevice=lambda: getattr(self.current, "number", 0),
                memGetInfo=lambda: (self.free, 1 << 41),
                memcpyHostToDevice=1,
                memcpyDeviceToHost=2,
                memcpyAsync=lambda to, of, size, kind, stream: memmove(to, of, size),
                memcpy2DAsync=_move_rows,
                hostRegister=lambda address, size, flags: None,
                hostUnregister=lambda address: None,
                memoryTypeHost=1,
                pointerGetAttributes=lambda address: SimpleNamespace(type=0),
            ),
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            Device=self.device,
            Stream=Stream,
            Event=lambda: SimpleNamespace(record=lambda: None, synchronize=lambda: None),
            get_elapsed_time=lambda begin, end: 1.0,
            get_current_stream=Stream,
            alloc_pinned_memory=bytearray,
        )

    @contextmanager
    def device(self, number: int) -> Iterator[None]:
        self.current.number = number
        yield

    def _given(self, array: np.ndarray) -> Array:
        if array.nbytes > self.largest:
            raise OutOfMemoryError(f"out of memory allocating {array.nbytes} bytes")
        return array.view(Array)

    def empty(self, shape: Any, dtype: Any) -> Array:
        given = self._given(np.empty(shape, dtype))
        given.view(np.uint8)[...] = 0xAB
        return given

    def zeros(self, shape: Any, dtype: Any) -> Array:
        return self._given(np.zeros(shape, dtype))

    def ones(self, shape: Any, dtype: Any) -> Array:
        return self._given(np.ones(shape, dtype))

    def full(self, shape: Any, value: int, dtype: Any) -> Array:
        return self._given(np.full(shape, value, dtype))

    def asarray(self, array: np.ndarray) -> Array:
        return array if isinstance(array, Array) else self._given(np.array(array))

    def arange(self, *limits: int, dtype: Any) -> Array:
        return self._given(np.arange(*limits, dtype=dtype))

    def diff(self, array: Array) -> Array:
        return np.diff(array).view(Array)

    def argsort(self, array: Array) -> Array:
        return np.argsort(array, kind="stable").view(Array)

    def maximum(self, array: Array, least: Any, out: Array | None = None) -> Array:
        return np.maximum(array, least, out=out).view(Array)

    def minimum(self, array: Array, most: int) -> Array:
        return np.minimum(array, most).view(Array)

    def searchsorted(self, array: Array, values: Array) -> Array:
        return np.searchsorted(array, values).view(Array)

    def argmax(self, array: Array) -> Any:
        return np.argmax(array)

    def bincount(self, array: Array, minlength: int = 0) -> Array:
        return np.bincount(array, minlength=minlength).view(Array)

    def repeat(self, array: Array, times: int) -> Array:
        return np.repeat(array, times).view(Array)

    def concatenate(self, arrays: Sequence[Array]) -> Array:
        return np.concatenate(arrays).view(Array)

    def flatnonzero(self, array: Array) -> Array:
        return np.flatnonzero(array).view(Array)

    def cumsum(self, array: Array, axis: int | None = None, dtype: Any = None, out: Array | None = None) -> Array:
        return np.cumsum(array, axis=axis, dtype=dtype, out=out).view(Array)

    def ascontiguousarray(self, array: Array) -> Array:
        return np.ascontiguousarray(array).view(Array)

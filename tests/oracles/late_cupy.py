"""CuPy on late streams: what a stream of bases needs of it, and the kernels for it, which the CPU plays when they run.

Memory of the host has to be held, and what goes to a device to stay as it is, until the copy has run.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from ctypes import memmove
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from oracles import pretend_gpu
from oracles.late_streams import Event, LateDevices, LateStream, Memory, Use
from oracles.pretend_cupy import PretendCupy
from oracles.pretend_stream import StreamKernels

__all__ = ["LateArray", "Launches", "install"]

_WRITTEN = {
    "count_new": ["counts"],
    "count_short_kmers": ["table"],
    "find_runs": ["starts"],
    "insert_kmers": ["table", "answers"],
    "insert_kmers_of_part": ["table", "seen"],
    "insert_known": ["table"],
    "insert_short_kmers": ["table", "answers"],
    "insert_short_kmers_of_part": ["table", "seen"],
    "insert_short_known": ["table"],
    "join_runs": ["ranks_by_word"],
    "list_new": ["kmers", "places"],
    "look_up_counts": ["counts"],
    "look_up_kmers": ["answers"],
    "look_up_short_counts": ["counts"],
    "move_slots": ["table"],
    "pack_codes": ["words", "marks"],
    "place_runs": ["shifts"],
    "put_answers": ["answers"],
    "spread_slots": ["table"],
}
"""What kernels write to."""


def _holder(array: np.ndarray) -> weakref.ref[Any]:
    """What holds an array's memory."""
    held: Any = array
    while (base := getattr(held, "base", None)) is not None:
        held = base.obj if isinstance(base, memoryview) else base
    return weakref.ref(held)


def _send(array: LateArray, address: int, holder: weakref.ref[Any], stream: LateStream) -> None:
    """Put a copy to memory of the host on a stream."""
    values, devices = array.values, array.memory.devices

    def copy() -> None:
        if holder() is None:
            devices.problems.append("a copy goes to memory of the host that is given up")
        else:
            memmove(address, np.ascontiguousarray(values).ctypes.data, values.nbytes)

    if values.size:
        devices.run(copy, "copy to the host", array.use(writes=False), stream=stream)


class LateArray:
    """An array of a device, whose values are what has run by now."""

    __cuda_array_interface__: ClassVar[dict[str, Any]] = {}

    def __init__(self, memory: Memory, values: np.ndarray) -> None:
        self.memory, self.values = memory, values
        self.shape, self.dtype, self.strides = values.shape, values.dtype, values.strides
        self.size, self.nbytes, self.itemsize = values.size, values.nbytes, values.itemsize

    def use(self, *, writes: bool) -> Use:
        """To write to it, or read it; it has no gaps."""
        first = self.values.ctypes.data - self.memory.bytes.ctypes.data if self.nbytes else 0
        return Use(self.memory, first, first + self.nbytes, writes)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: Any) -> LateArray:
        values = self.values[key]
        return LateArray(self.memory, values if isinstance(values, np.ndarray) else self.values[key : key + 1])

    def __setitem__(self, key: Any, value: LateArray) -> None:
        part = self[key]
        mine, theirs = part.values, value.values
        part._change(lambda: np.copyto(mine, theirs, casting="unsafe"), "assignment", value)

    def __iadd__(self, other: LateArray) -> LateArray:
        mine, theirs = self.values, other.values  # (what runs later holds no memory)
        self._change(lambda: np.add(mine, theirs, out=mine), "sum", other)
        return self

    def __int__(self) -> int:
        return int(self.get()[0])

    def _change(self, run: Callable[[], object], what: str, *read: LateArray) -> None:
        uses = [self.use(writes=True), *(array.use(writes=False) for array in read)]
        self.memory.devices.run(run, what, *uses)

    def view(self, dtype: Any) -> LateArray:
        return LateArray(self.memory, self.values.view(dtype))

    def reshape(self, *shape: int) -> LateArray:
        values = self.values.reshape(*shape)
        assert np.shares_memory(values, self.values) or not self.size
        return LateArray(self.memory, values)

    def astype(self, dtype: Any, copy: bool) -> LateArray:
        assert not copy
        if dtype == self.dtype:
            return self
        made: LateArray = sys.modules["cupy"].empty(self.shape, dtype)
        mine, theirs = made.values, self.values
        made._change(lambda: np.copyto(mine, theirs), "conversion", self)
        return made

    def get(self, stream: LateStream | None = None, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
        stream = stream or self.memory.devices.current_stream()
        out = np.empty(self.shape, self.dtype) if out is None else out
        assert out.shape == self.shape and out.dtype == self.dtype and out.flags.c_contiguous
        _send(self, out.ctypes.data, _holder(out), stream)
        if blocking:
            stream.synchronize()
        return out

    def set(self, values: np.ndarray, stream: LateStream | None = None) -> None:
        assert values.shape == self.shape and values.dtype == self.dtype
        there, problems, before = self.values, self.memory.devices.problems, values.copy()
        address, holder = values.ctypes.data, _holder(values)

        def copy() -> None:
            if holder() is None:
                problems.append("a copy comes from memory of the host that is given up")
                return
            now = np.empty_like(before)
            memmove(now.ctypes.data, address, now.nbytes)
            if not np.array_equal(now, before):
                problems.append("what was on its way to a device was changed")
            there[...] = now

        if values.size:
            self.memory.devices.run(copy, "copy from the host", self.use(writes=True), stream=stream)

    @property
    def data(self) -> Any:
        """As CuPy's pointer."""
        return SimpleNamespace(
            ptr=self.values.ctypes.data,
            array=self,
            memset_async=self._fill,
            copy_from_device_async=lambda data, size: self._take(data.array, size),
        )

    def _fill(self, value: int, size: int) -> None:
        there = self.values.reshape(-1).view(np.uint8)
        assert size == len(there)
        self._change(lambda: there.fill(value), "filling")

    def _take(self, other: LateArray, size: int) -> None:
        self.memory.require_current("a copy from another device")
        mine, theirs = (array.values.reshape(-1).view(np.uint8) for array in (self, other))
        if size:
            self._change(lambda: mine.__setitem__(slice(0, size), theirs[:size]), "copy from a device", other)


class _Pinned(bytearray):
    """Memory of the host, which can be told to be given up."""


class _LateCupy(PretendCupy):
    """CuPy, as far as a stream on devices needs it."""

    ndarray = LateArray  # type: ignore[assignment]

    def __init__(self, devices: LateDevices) -> None:
        self._devices = devices
        self._memories: weakref.WeakValueDictionary[int, Memory] = weakref.WeakValueDictionary()
        """by their addresses"""
        super().__init__()
        cuda, runtime = self.cuda, self.cuda.runtime
        runtime.getDevice, runtime.memcpy2DAsync, runtime.memcpyAsync = devices.current_device, self._send_row, None
        cuda.Stream, cuda.get_current_stream = self._stream, devices.current_stream
        cuda.Event, cuda.alloc_pinned_memory = lambda: Event(devices), _Pinned

    def device(self, number: int) -> Any:
        return self._devices.device(number)

    def _stream(self, non_blocking: bool, priority: int = 0) -> LateStream:
        assert non_blocking
        return LateStream(self._devices, self._devices.current_device(), priority)

    def _send_row(self, to: int, step: int, of: int, step_of: int, width: int, rows: int, kind: int, ptr: int) -> None:
        assert rows == 1 and kind == self.cuda.runtime.memcpyDeviceToHost
        stream = next(stream for stream in self._devices.streams if stream.ptr == ptr)
        with self._devices.lock:  # (other threads take memory)
            there = list(self._memories.items())
        begin, memory = next(each for each in there if each[0] <= of <= each[0] + len(each[1].bytes) - width)
        holder = self._devices.holder_of(to, width)
        assert holder is not None, "memory of the host is not locked"
        _send(LateArray(memory, memory.bytes[of - begin :][:width]), to, holder, stream)

    def empty(self, shape: Any, dtype: Any) -> Any:
        memory = Memory(self._devices, int(np.prod(shape)) * np.dtype(dtype).itemsize)
        with self._devices.lock:
            self._memories[memory.bytes.ctypes.data] = memory
        return LateArray(memory, memory.bytes.view(dtype).reshape(shape))

    def zeros(self, shape: Any, dtype: Any) -> Any:
        array = self.empty(shape, dtype)
        array.data.memset_async(0, array.nbytes)
        return array

    def asarray(self, array: Any) -> Any:
        if isinstance(array, LateArray):
            return array
        there, copied = self.empty(array.shape, array.dtype), array.copy()  # (at once, as it is not locked)
        values = there.values
        self._devices.run(lambda: np.copyto(values, copied), "copy from the host", there.use(writes=True))
        return there

    def cumsum(self, array: Any, out: Any) -> None:  # type: ignore[override]
        values, sums = array.values, out.values
        self._devices.run(lambda: np.cumsum(values, out=sums), "sums", array.use(writes=False), out.use(writes=True))

    def argsort(self, array: Any) -> Any:
        made = self.empty(array.shape, np.int64)
        there, values = made.values, array.values
        made._change(lambda: np.copyto(there, np.argsort(values, kind="stable")), "order", array)
        return made

    def ascontiguousarray(self, array: Any) -> Any:
        assert array.values.flags.c_contiguous
        return array


class Launches:
    """Kernels that run late, played by functions of their names."""

    def __init__(self, devices: LateDevices, kernels: Any) -> None:
        self._devices, self._kernels = devices, kernels

    def launch(self, function: Any, threads: int, block: int, *arguments: Any) -> None:
        if threads <= 0:
            return
        name, names = function.py_func.__name__, function.py_func.__code__.co_varnames[: len(arguments)]
        uses: list[Use] = []
        written = _WRITTEN[name]
        assert {*written} <= {*names}
        given = [
            self._values(argument, each in written, name, uses) for each, argument in zip(names, arguments, strict=True)
        ]
        if name == "pack_codes":
            codes, first, *packed = arguments
            words = slice(first, first + len(codes) // 4)
            uses = [codes.use(writes=False), *(array[words].use(writes=True) for array in packed)]
        run = getattr(self._kernels, name)
        self._devices.run(lambda: run(*given), name, *uses)

    def _values(self, argument: Any, writes: bool, name: str, uses: list[Use]) -> Any:
        """What a kernel is given, whose arrays are noted as used."""
        if isinstance(argument, LateArray):
            argument.memory.require_current(name)
            uses.append(argument.use(writes=writes))
            return argument.values
        if isinstance(argument, tuple):
            parts = [self._values(part, writes, name, uses) for part in argument]
            return type(argument)(*parts)
        return argument


def install(monkeypatch: Any, order: str, seed: int, devices: int = 1) -> LateDevices:
    """Put late streams of some devices where the library looks for CuPy, and kernels that run there."""
    from warpseed.compute import device_copies
    from warpseed.tree_bitmap import gpu, gpu_counts, gpu_flight, gpu_listing, gpu_packed, gpu_rooms, gpu_structures

    late = LateDevices(order, seed)
    pretend_gpu.install(monkeypatch, None, devices)
    package = _LateCupy(late)
    package.devices = devices
    monkeypatch.setitem(sys.modules, "cupy", package)
    for module in (gpu_listing, gpu_packed, gpu_rooms, gpu_structures):
        monkeypatch.setattr(module, "launch", Launches(late, StreamKernels()).launch)
    for module in (gpu, gpu_counts):
        monkeypatch.setattr(module, "locked", late.locked)
    for module in (gpu_flight, device_copies):
        monkeypatch.setattr(module, "is_locked", late.is_locked)
    return late

"""Kernels run as they are written, without a GPU: a thread of Python for each of the device's, in warps that wait for
each other where they exchange values. For a few blocks: it is slow."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

__all__ = ["run_kernel"]

WARP = 32


class _Group:
    """Threads that wait for each other and show each other a value."""

    def __init__(self, size: int) -> None:
        self._barrier = threading.Barrier(size)
        self._values: list[Any] = [None] * size

    def shown(self, me: int, value: Any) -> list[Any]:
        """The values of all, when all have shown theirs."""
        self._values[me] = value
        self._barrier.wait()
        values = list(self._values)
        self._barrier.wait()
        return values

    def abort(self) -> None:
        """Let nobody wait any more."""
        self._barrier.abort()


class _Block:
    """One block: what its threads share."""

    def __init__(self, number: int, size: int, blocks: int) -> None:
        self.number, self.size, self.blocks = number, size, blocks
        self.all, self.warps = _Group(size), [_Group(min(WARP, size - first)) for first in range(0, size, WARP)]
        self.shared: dict[int, np.ndarray] = {}


class _Atomic:
    """What threads do to a value in one step; each gives the value before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def _change(self, array: np.ndarray, place: Any, change: Callable[[Any], Any]) -> Any:
        with self._lock:
            before = array[place]
            array[place] = change(before)
        return before

    def cas(self, array: np.ndarray, place: Any, expected: Any, value: Any) -> Any:
        return self._change(array, place, lambda before: value if before == expected else before)

    def min(self, array: np.ndarray, place: Any, value: Any) -> Any:
        return self._change(array, place, lambda before: min(before, value))

    def max(self, array: np.ndarray, place: Any, value: Any) -> Any:
        return self._change(array, place, lambda before: max(before, value))

    def or_(self, array: np.ndarray, place: Any, value: Any) -> Any:
        return self._change(array, place, lambda before: before | value)

    def add(self, array: np.ndarray, place: Any, value: Any) -> Any:
        if not value:
            time.sleep(0)  # Who only looks waits for others, so they go on.
        return self._change(array, place, lambda before: before + value)


class _Cuda:
    """What the kernels use of numba.cuda, for the thread that asks."""

    def __init__(self) -> None:
        self.here = threading.local()
        self.shared = SimpleNamespace(array=self._shared_array)
        self.atomic = _Atomic()

    @property
    def threadIdx(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(x=self.here.thread)

    @property
    def blockIdx(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(x=self.here.block.number)

    @property
    def blockDim(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(x=self.here.block.size)

    @property
    def gridDim(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(x=self.here.block.blocks)

    def gridsize(self, dimensions: int) -> int:
        return int(self.here.block.blocks * self.here.block.size)

    def grid(self, dimensions: int) -> int:
        return int(self.here.block.number * self.here.block.size + self.here.thread)

    def _shared_array(self, shape: int, dtype: Any) -> np.ndarray:
        number, self.here.arrays = self.here.arrays, self.here.arrays + 1
        # What lies there at first is anything.
        return self.here.block.shared.setdefault(number, np.full(shape, 0xAB, dtype))

    def _of_warp(self, value: Any) -> list[Any]:
        warp, lane = divmod(self.here.thread, WARP)
        values: list[Any] = self.here.block.warps[warp].shown(lane, value)
        return values

    def any_sync(self, mask: int, value: Any) -> bool:
        return any(self._of_warp(value))

    def ballot_sync(self, mask: int, value: Any) -> int:
        return sum(1 << lane for lane, each in enumerate(self._of_warp(value)) if each)

    def shfl_sync(self, mask: int, value: Any, lane: int) -> Any:
        return self._of_warp(value)[int(lane)]

    def shfl_xor_sync(self, mask: int, value: Any, bits: int) -> Any:
        return self._of_warp(value)[(self.here.thread % WARP) ^ bits]

    def shfl_up_sync(self, mask: int, value: Any, delta: int) -> Any:
        lane = self.here.thread % WARP
        return self._of_warp(value)[max(lane - delta, 0) if lane >= delta else lane]

    def ldcg(self, array: np.ndarray, place: Any) -> Any:
        return array[place]

    def popc(self, value: Any) -> int:
        return int(value).bit_count()

    def clz(self, value: Any) -> int:
        return 32 - int(value).bit_length()

    def threadfence(self) -> None:
        pass  # All threads see what one writes at once.

    def syncwarp(self) -> None:
        self._of_warp(None)

    def syncthreads(self) -> None:
        self.here.block.all.shown(self.here.thread, None)

    def syncthreads_count(self, value: int) -> int:
        return sum(1 for each in self.here.block.all.shown(self.here.thread, value) if each)


def _run_blocks(blocks: Sequence[_Block], cuda: _Cuda, function: Callable[..., None], arguments: Sequence[Any]) -> None:
    """Run some blocks side by side."""
    failed: list[BaseException] = []

    def run(block: _Block, thread: int) -> None:
        cuda.here.block, cuda.here.thread, cuda.here.arrays = block, thread, 0
        try:
            with np.errstate(over="ignore"):
                function(*arguments)
        except BaseException as error:
            failed.append(error)
            for group in (block.all, *block.warps):
                group.abort()

    threads = [threading.Thread(target=run, args=(block, number)) for block in blocks for number in range(block.size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise next((error for error in failed if not isinstance(error, threading.BrokenBarrierError)), failed[0])


def run_kernel(
    modules: Sequence[ModuleType],
    device_functions: Sequence[Any],
    launch: tuple[Any, int, int],
    *arguments: Any,
    together: int = 1,
) -> None:
    """Run a kernel on arrays of the host.

    Parameters
    ----------
    modules : where `cuda` is looked up
    device_functions : the jitted functions that use `cuda` themselves, and run as Python too
    launch : the kernel, its threads, and those of a block
    together : how many blocks run side by side: all, where they wait for each other
    """
    kernel, count, size = launch
    cuda = _Cuda()
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            patch.setattr(module, "cuda", cuda)
            for function in device_functions:
                if getattr(module, function.__name__, None) is function:
                    patch.setattr(module, function.__name__, function.py_func)
        blocks = -(-count // size)
        grid = [_Block(number, size, blocks) for number in range(blocks)]
        for first in range(0, blocks, together):
            _run_blocks(grid[first : first + together], cuda, kernel.py_func, arguments)

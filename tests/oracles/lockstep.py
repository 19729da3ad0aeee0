"""Kernels run as they are written, without a GPU: a greenlet for each of the device's threads, in warps that wait for
each other where they exchange values. For a few blocks: it is slow.

Between two places where threads wait they run one after the other, each time in another order that is drawn, so that a
result seldom stays the same that hangs on one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from greenlet import getcurrent, greenlet

__all__ = ["run_kernel"]

WARP = 32
_ORDERS = random.Random(5)


class _Thread(greenlet):
    """One thread of the device."""

    def __init__(self, run: Callable[[], None], block: _Block, number: int) -> None:
        super().__init__(run)
        self.block, self.thread = block, number
        self.arrays = 0
        """shared arrays that it has asked for"""
        self.waits_for: _Group | None = None
        self.turn = 0
        """of that group, when the thread came"""

    def wait(self, group: _Group | None = None) -> None:
        """Let others run; if a group is given, until all of it have come."""
        self.waits_for, self.turn = group, group.turn if group else 0
        self.parent.switch()
        self.waits_for = None


def _here() -> _Thread:
    current = getcurrent()
    assert isinstance(current, _Thread)
    return current


class _Group:
    """Threads that wait for each other and show each other a value."""

    def __init__(self, size: int) -> None:
        self._values: list[Any] = [None] * size
        self._came, self._shown = 0, list[Any]()
        self.turn = 0
        self._ballot = 0

    def shown(self, me: int, value: Any) -> list[Any]:
        """The values of all, when all have shown theirs."""
        self._values[me] = value
        self._came += 1
        if self._came < len(self._values):
            _here().wait(self)
        else:  # (who came before has what was shown before it shows what comes next)
            self._came, self.turn, self._shown = 0, self.turn + 1, list(self._values)
            self._ballot = -1
        return self._shown

    def ballot(self, me: int, value: Any) -> int:
        """The bits of those that show what is true."""
        shown = self.shown(me, value)
        if self._ballot < 0:
            self._ballot = sum(1 << lane for lane, each in enumerate(shown) if each)
        return self._ballot


class _Block:
    """One block: what its threads share."""

    def __init__(self, number: int, size: int, blocks: int) -> None:
        self.number, self.size, self.blocks = number, size, blocks
        self.all, self.warps = _Group(size), [_Group(min(WARP, size - first)) for first in range(0, size, WARP)]
        self.shared: dict[int, np.ndarray] = {}


class _Atomic:
    """What threads do to a value in one step; each gives the value before."""

    def _change(self, array: np.ndarray, place: Any, change: Callable[[Any], Any]) -> Any:
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
            _here().wait()  # Who only looks waits for others, so they go on.
        return self._change(array, place, lambda before: before + value)


class _Cuda:
    """What the kernels use of numba.cuda, for the thread that asks."""

    def __init__(self) -> None:
        self.shared = SimpleNamespace(array=self._shared_array)
        self.atomic = _Atomic()

    @property
    def threadIdx(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(x=_here().thread)

    @property
    def blockIdx(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(x=_here().block.number)

    @property
    def blockDim(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(x=_here().block.size)

    @property
    def gridDim(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(x=_here().block.blocks)

    def gridsize(self, dimensions: int) -> int:
        return int(_here().block.blocks * _here().block.size)

    def grid(self, dimensions: int) -> int:
        return int(_here().block.number * _here().block.size + _here().thread)

    def _shared_array(self, shape: int, dtype: Any) -> np.ndarray:
        here = _here()
        number, here.arrays = here.arrays, here.arrays + 1
        # What lies there at first is anything.
        return here.block.shared.setdefault(number, np.full(shape, 0xAB, dtype))

    def _of_warp(self, value: Any) -> list[Any]:
        here = _here()
        warp, lane = divmod(here.thread, WARP)
        return here.block.warps[warp].shown(lane, value)

    def any_sync(self, mask: int, value: Any) -> bool:
        return any(self._of_warp(value))

    def ballot_sync(self, mask: int, value: Any) -> int:
        here = _here()
        warp, lane = divmod(here.thread, WARP)
        return here.block.warps[warp].ballot(lane, value)

    def shfl_sync(self, mask: int, value: Any, lane: int) -> Any:
        return self._of_warp(value)[int(lane)]

    def shfl_xor_sync(self, mask: int, value: Any, bits: int) -> Any:
        return self._of_warp(value)[(_here().thread % WARP) ^ bits]

    def shfl_up_sync(self, mask: int, value: Any, delta: int) -> Any:
        lane = _here().thread % WARP
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
        _here().block.all.shown(_here().thread, None)

    def syncthreads_count(self, value: int) -> int:
        return sum(1 for each in _here().block.all.shown(_here().thread, value) if each)


def _run_blocks(blocks: Sequence[_Block], function: Callable[..., None], arguments: Sequence[Any]) -> None:
    """Run some blocks side by side."""

    def run() -> None:
        with np.errstate(over="ignore"):
            function(*arguments)

    threads = [_Thread(run, block, number) for block in blocks for number in range(block.size)]
    while threads:
        ready = [each for each in threads if each.waits_for is None or each.waits_for.turn > each.turn]
        if not ready:
            waiting = [(thread.block.number, thread.thread) for thread in threads]
            raise AssertionError(f"threads wait for others that have ended; (block, thread): {waiting}")
        _ORDERS.shuffle(ready)
        for thread in ready:
            thread.switch()
        threads = [thread for thread in threads if not thread.dead]


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
            _run_blocks(grid[first : first + together], kernel.py_func, arguments)

"""Memory of the host that devices copy from and to: locked, so that they do it at full speed, and kept for later use.

New memory costs more than to copy to it: the system clears it page by page when it is touched, and a device copies
to memory that is not locked through some that is. So several threads touch it, it is locked at once, and when nobody
holds it any more it waits for the next results. Where none that waits suits, as much is given back as is taken, and no
more waits than a quarter of the memory that was free at first.

`pinned` is for small buffers that copies go through: CuPy keeps those, in few sizes.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any
from weakref import finalize

import numpy as np

from warpseed.compute.gpu import cupy, current_device, is_of_device
from warpseed.compute.machine import available_memory
from warpseed.compute.ranges import equal_share, on_threads
from warpseed.errors import say

__all__ = ["is_locked", "locked", "locked_copy", "parts_by_line", "pinned"]

_LEAST = 1 << 25
"""Bytes up to which memory is the system's, which then has it at hand; what is larger has pages of its own."""
_STEPS = 8
"""Sizes between a power of two and the next."""
_SPARE = 4
"""Memory that waits serves what takes this part of it less."""
_PAGE = 4096
_CACHE_LINE = 64
"""Bytes of a line of the host's cache."""
_LEAST_PINNED_BITS = 16
"""Of the size of the smallest piece of pinned memory."""
_PORTABLE = 1
"""For all devices (cudaHostRegisterPortable)."""

_waiting: deque[_Block] = deque()
_told: list[str] = []


class _Block:
    """Memory that is touched and locked; it goes back to the system with this object."""

    def __init__(self, size: int, threads: int) -> None:
        memory = np.empty(size + _PAGE, np.uint8)  # (NumPy asks for large pages)
        begin = -memory.ctypes.data % _PAGE  # (devices write faster from where a cache line begins)
        memory = memory[begin : begin + size]
        on_threads(threads, lambda number: memory[equal_share(size, number, threads)][::_PAGE].fill(0), threads)
        self.size, self.address = size, memory.ctypes.data
        if _lock(self.address, size):
            finalize(self, _unlock, current_device(), self.address, memory).atexit = False
        else:
            self._memory = memory


def _lock(address: int, size: int) -> bool:
    """Lock memory; where the system does not let it, say so once: results come there all the same, but slower."""
    try:
        cupy().cuda.runtime.hostRegister(address, size, _PORTABLE)
    except Exception as error:
        if not is_of_device(error):
            raise
        if not _told:
            _told.append(" ".join(str(error).split())[:200])
            say(f"Memory cannot be locked ({_told[0]}): copies between it and the GPU are slower.")
        return False
    return True


def _unlock(device: int, address: int, memory: np.ndarray) -> None:
    """Called, anywhere, with the memory that is given back to the system after this. (A device that has failed has said
    so already.)"""
    try:
        with cupy().cuda.Device(device):
            cupy().cuda.runtime.hostUnregister(address)
    except Exception as error:
        if not is_of_device(error):
            raise


class _Lent:
    """What arrays in a block hold on to; the block waits for others when none is left."""

    def __init__(self, block: _Block) -> None:
        place = {"version": 3, "shape": (block.size,), "typestr": "|u1", "data": (block.address, False)}
        self.__array_interface__ = place
        finalize(self, _let_wait, block, _most_waiting()).atexit = False


def _let_wait(block: _Block, most: int) -> None:
    _waiting.append(block)
    _give_back(sum(each.size for each in list(_waiting)) - most)


def _give_back(size: int) -> None:
    """Give at least so many bytes of what waits back to the system, what has waited longest first."""
    while size > 0:
        try:
            size -= _waiting.popleft().size
        except IndexError:
            return


@cache
def _most_waiting() -> int:
    return available_memory() // 4


# A child would have a copy of what is locked.
os.register_at_fork(before=_waiting.clear)


def locked(
    count: int,
    dtype: Any,
    threads: int = 1,
    least: int | None = None,
    require: Callable[[], None] | None = None,
) -> np.ndarray:
    """An array on the host, [count], not initialised, that devices copy to at full speed where it is large.

    Parameters
    ----------
    threads : CPU threads that touch memory where it is new
    least : bytes up to which memory is the system's; none for those up to which that has it at hand
    require : called before memory is asked of the system; raises an error where there is too little
    """
    size = count * np.dtype(dtype).itemsize
    is_small = size <= (_LEAST if least is None else least)
    block = None if is_small else _waiting_block(size)
    if block is None and require is not None:
        require()
    if is_small:
        return np.empty(count, dtype)
    return np.asarray(_Lent(block or _new_block(size, threads)))[:size].view(dtype)


def locked_copy(value: Any, threads: int = 1) -> Any:
    """An array, or every array of a NamedTuple, in memory of `locked` where it is large; small ones stay."""
    if isinstance(value, tuple):
        return type(value)(*(locked_copy(part, threads) for part in value))
    if value.nbytes <= _LEAST:
        return value
    there = locked(value.size, value.dtype, threads).reshape(value.shape)
    there[...] = value
    return there


def is_locked(array: np.ndarray) -> bool:
    """Whether an array, C-contiguous and not empty, lies in memory that is locked, by whomever."""
    runtime, first = cupy().cuda.runtime, array.ctypes.data
    ends = first, first + array.nbytes - 1
    return all(runtime.pointerGetAttributes(end).type == runtime.memoryTypeHost for end in ends)


def parts_by_line(array: np.ndarray) -> tuple[slice, slice]:
    """What an array, C-contiguous, has before the first whole line of the host's cache, and what begins with that line;
    either may be empty. Several devices at once write faster where their copies begin with a line."""
    border = min(len(array), -array.ctypes.data % _CACHE_LINE // array.itemsize)
    return slice(0, border), slice(border, len(array))


def _waiting_block(size: int) -> _Block | None:
    """The smallest that waits and suits, if there is one. (Others may take one, or give one back, at any time.)"""
    for block in sorted(list(_waiting), key=lambda block: block.size):
        if size <= block.size <= size + size // _SPARE:
            try:
                _waiting.remove(block)
            except ValueError:
                continue
            return block
    return None


def _new_block(size: int, threads: int) -> _Block:
    _give_back(size)
    step = max(_PAGE, (1 << (size.bit_length() - 1)) // _STEPS)
    return _Block(-(-size // step) * step, max(1, threads))


def pinned(count: int, dtype: Any) -> np.ndarray:
    """An array on the host, not initialised, in memory that devices copy from and to at full speed.

    The memory is kept for later arrays when nobody holds this one or a part of it. Sizes are powers of two, so that
    there are few.
    """
    size = count * np.dtype(dtype).itemsize
    if not size:
        return np.empty(0, dtype)
    memory = cupy().cuda.alloc_pinned_memory(1 << max(_LEAST_PINNED_BITS, (size - 1).bit_length()))
    return np.frombuffer(memory, dtype, count)

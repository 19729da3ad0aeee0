"""Memory of the host for results from devices: locked, so that they come there at full speed, and kept for later ones.

New memory costs more than to copy to it: the system clears it page by page when it is touched, and a device copies
to memory that is not locked through some that is. So several threads touch it, it is locked at once, and when nobody
holds it any more it waits for the next results. What waits when none of it suits is given back: no more is kept than
was used at a time.
"""

from __future__ import annotations

from collections import deque
from typing import Any
from weakref import finalize

import numpy as np

from warpseed.compute.gpu import cupy, is_of_device
from warpseed.compute.ranges import on_threads
from warpseed.errors import say

__all__ = ["locked"]

_LEAST = 1 << 25
"""Bytes up to which memory is the system's, which then has it at hand; what is larger has pages of its own."""
_STEPS = 8
"""Sizes between a power of two and the next."""
_PAGE = 4096
_PORTABLE = 1
"""For all devices (cudaHostRegisterPortable)."""

_waiting: deque[_Block] = deque()
_told: list[str] = []


class _Block:
    """Memory that is touched and locked; it goes back to the system with this object."""

    def __init__(self, size: int, threads: int) -> None:
        memory = np.empty(size, np.uint8)  # (NumPy asks for large pages)
        borders = [size * number // threads for number in range(threads + 1)]
        on_threads(threads, lambda number: memory[borders[number] : borders[number + 1] : _PAGE].fill(0), threads)
        self.size, self.address = size, memory.ctypes.data
        if _lock(self.address, size):
            finalize(self, _unlock, self.address, memory).atexit = False
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
            say(f"Memory for results cannot be locked ({_told[0]}): they come from the GPU more slowly.")
        return False
    return True


def _unlock(address: int, memory: np.ndarray) -> None:
    """Called with the memory that is given back to the system after this."""
    cupy().cuda.runtime.hostUnregister(address)


class _Lent:
    """What arrays in a block hold on to; the block waits for others when none is left."""

    def __init__(self, block: _Block) -> None:
        place = {"version": 3, "shape": (block.size,), "typestr": "|u1", "data": (block.address, False)}
        self.__array_interface__ = place
        finalize(self, _waiting.append, block).atexit = False


def locked(count: int, dtype: Any, threads: int = 1) -> np.ndarray:
    """An array on the host, not initialised, that devices copy to at full speed where it is large.

    threads : touch memory that is new
    """
    size = count * np.dtype(dtype).itemsize
    if size <= _LEAST:
        return np.empty(count, dtype)
    return np.asarray(_Lent(_waiting_block(size) or _new_block(size, threads)))[:size].view(dtype)


def _waiting_block(size: int) -> _Block | None:
    """The smallest that waits and suits, if there is one. (Others may take one, or give one back, at any time.)"""
    for block in sorted(list(_waiting), key=lambda block: block.size):
        if size <= block.size <= 2 * size:
            try:
                _waiting.remove(block)
            except ValueError:
                continue
            return block
    return None


def _new_block(size: int, threads: int) -> _Block:
    _waiting.clear()
    step = max(_PAGE, (1 << (size.bit_length() - 1)) // _STEPS)
    return _Block(-(-size // step) * step, max(1, threads))

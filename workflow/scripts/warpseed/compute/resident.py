"""What lies on devices as long as an index, or whatever it belongs to, lives: made there once, let go where memory is
short."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from warpseed.compute.gpu import current_device, free_memory, give_back_memory, require_gpu
from warpseed.errors import MemoryLimitError

__all__ = ["copies_of", "release", "resident"]

_Result = TypeVar("_Result")

_parts: WeakKeyDictionary[Any, dict[tuple[str, int], Any]] = WeakKeyDictionary()
"""Of each owner (an index), what lies on which device: parts by name and device. It goes with its owner."""
_parts_lock = threading.Lock()
_device_locks: dict[int, threading.RLock] = {}


def resident(
    owner: Any, part: str, make: Callable[[], _Result], needed: int = 0, shares: tuple[str, ...] = ()
) -> _Result:
    """A part of `owner` on the current device, made there once.

    Parameters
    ----------
    owner : the index; weakly held: its parts are freed with it
    part : name of the part
    make : puts it on the device, where it is not there yet
    needed : bytes it takes. Where they are not free, other owners' parts are let go first, then this one's
    shares : parts of the same owner that `make` shares, which stay

    Raises
    ------
    MemoryLimitError : the part does not fit the device
    DeviceError : no GPU answers
    """
    require_gpu()
    device = current_device()
    with _device_locks.setdefault(device, threading.RLock()):
        with _parts_lock:
            held = _parts.setdefault(owner, {})
        if (part, device) not in held:
            if needed > free_memory():
                _let_go(device, lambda other, _: other is not owner)
            if needed > free_memory():
                _let_go(device, lambda other, name: other is not owner or name not in shares)
            if needed > (free := free_memory()):
                raise MemoryLimitError(
                    f"The index needs {needed / 1e9:.1f} GB of device memory for its part '{part}', but "
                    f"{free / 1e9:.1f} GB are free; use a larger GPU, or device cpu."
                )
            held[part, device] = make()
        return held[part, device]


def copies_of(owner: Any, part: str) -> dict[int, Any]:
    """A part of `owner` by the devices that it lies on."""
    with _parts_lock:
        held = dict(_parts.get(owner, {}))
    return {device: value for (name, device), value in held.items() if name == part}


def release(owner: Any, part: str | None = None) -> None:
    """Let a part of `owner`, or all, on the current device go, if it is there; a search that uses it keeps it until it
    ends."""
    if part is None or current_device() in copies_of(owner, part):
        _let_go(current_device(), lambda other, name: other is owner and part in (None, name))


def _let_go(device: int, which: Callable[[Any, str], bool]) -> None:
    with _parts_lock:
        for owner, held in list(_parts.items()):
            for name, where in list(held):
                if where == device and which(owner, name):
                    del held[name, where]
    give_back_memory()

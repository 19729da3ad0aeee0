"""What the names of devices stand for: 'cpu', 'gpu', and GPUs by number."""

from __future__ import annotations

import re
from collections.abc import Iterable
from numbers import Integral
from typing import Any

from warpseed.errors import InputError

__all__ = ["device_name", "devices_of", "is_on_gpu", "target_of"]

_DLPACK_CUDA = 2
"""What DLPack calls a GPU of CUDA."""


def target_of(device: Any) -> tuple[str, tuple[int, ...]]:
    """What a device's name stands for: 'cpu' or 'gpu', and the numbers of the GPUs, none for all that are visible.

    Raises
    ------
    InputError : it is no device's name
    """
    name = device if isinstance(device, str) else ""
    if name == "cpu":
        return "cpu", ()
    if name in ("gpu", "gpu:all"):
        return "gpu", (0,) if name == "gpu" else ()
    numbers = name[4:].split(",") if re.fullmatch(r"gpu:[0-9]+(,[0-9]+)*", name) else []
    if not numbers or len(set(map(int, numbers))) < len(numbers):
        raise InputError(
            f"device is {device!r}, but 'cpu' or 'gpu' was expected, or GPUs by number: 'gpu:1', 'gpu:0,1', 'gpu:all'."
        )
    return "gpu", tuple(map(int, numbers))


def device_name(device: Any, devices: Iterable[int]) -> str:
    """The name of GPUs by number, where a caller gives ``device='gpu', devices=[0, 1]``.

    Raises
    ------
    InputError : the device is no GPU, or these are no numbers
    """
    numbers = list(devices) if isinstance(devices, Iterable) and not isinstance(devices, str) else []
    if not numbers or not all(isinstance(number, Integral) and number >= 0 for number in numbers):
        raise InputError(f"devices is {devices!r}, but numbers of GPUs, such as [0, 1], were expected.")
    if device != "gpu":
        raise InputError(f"devices goes with device='gpu', but device is {device!r}.")
    return "gpu:" + ",".join(str(int(number)) for number in numbers)


def devices_of(device: str) -> tuple[int, ...]:
    """The numbers of the GPUs that a device's name stands for; none for the CPU.

    Raises
    ------
    InputError : it is no device's name
    DeviceError : all that are visible are asked for, and no GPU answers
    """
    target, numbers = target_of(device)
    if target == "cpu" or numbers:
        return numbers
    from warpseed.compute.gpu import visible_devices

    return visible_devices()


def is_on_gpu(value: Any) -> bool:
    """Whether a value is an array that lies on a GPU, of whatever library."""
    if hasattr(value, "__cuda_array_interface__"):
        return True
    return hasattr(value, "__dlpack_device__") and int(value.__dlpack_device__()[0]) == _DLPACK_CUDA

"""A CuPy that tests make up, of two small devices."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from warpseed.compute import device_marks, gpu


class OutOfMemoryError(MemoryError):
    """Stands for CuPy's."""


class CUDARuntimeError(RuntimeError):
    """Stands for CuPy's."""


class CUDADriverError(RuntimeError):
    """Stands for CuPy's."""


class Pool:
    """CuPy's memory pool."""

    def __init__(self) -> None:
        self.limit = self.used = self.kept = 0

    def get_limit(self) -> int:
        return self.limit

    def used_bytes(self) -> int:
        return self.used

    def free_bytes(self) -> int:
        return self.kept

    def free_all_blocks(self) -> None:
        self.kept = 0


class Owner:
    """Something that parts belong to, as an index."""


def make_up(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Devices of 1000 bytes; `device` is the current one."""
    told = SimpleNamespace(device=0, devices=2, free=1000, pool=Pool())
    runtime = SimpleNamespace(
        getDevice=lambda: told.device,
        getDeviceCount=lambda: told.devices,
        driverGetVersion=lambda: 13000,
        memGetInfo=lambda: (told.free, 1000),
        CUDARuntimeError=CUDARuntimeError,
    )
    package = SimpleNamespace(
        cuda=SimpleNamespace(runtime=runtime, memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError)),
        get_default_memory_pool=lambda: told.pool,
    )
    for module in (gpu, device_marks):
        monkeypatch.setattr(module, "cupy", lambda: package)
    return told


def takes(told: SimpleNamespace, size: int, made: list[Any]) -> Callable[[], Any]:
    """A `make` that takes memory until what it made is gone."""

    class Part:
        def __init__(self) -> None:
            told.free -= size
            made.append((told.device, size))

        def __del__(self) -> None:
            told.free += size

    return Part

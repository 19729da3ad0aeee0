"""Kernels that the CPU plays: functions by the kernels' names, on the host's view of the device's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["PlayedKernels"]


class PlayedKernels:
    """Methods have the kernels' names and arguments; what is launched is noted."""

    def __init__(self) -> None:
        self.launched: list[tuple[str, int, int]] = []
        """name, threads and threads of a block of each launch"""

    def launch(self, function: Any, threads: int, block: int, *arguments: Any) -> None:
        """Play a kernel."""
        name = function.py_func.__name__
        self.launched.append((name, threads, block))
        if threads:
            getattr(self, name)(*map(_plain, arguments))


def _plain(value: Any) -> Any:
    """Arrays of the pretended device as NumPy's, which compiled functions know."""
    if isinstance(value, tuple):
        parts = map(_plain, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value.view(np.ndarray) if isinstance(value, np.ndarray) else value

"""The GPU: the only file that imports numba.cuda and CuPy; kernels take them from here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from warpseed.errors import DeviceError

try:
    import numba_cuda  # noqa: F401  (numba alone brings a numba.cuda that is too old for us)
    from numba import cuda as numba_cuda_target
except ImportError as error:
    raise DeviceError(
        f"device='gpu' needs the package numba-cuda, which cannot be imported ({error}); "
        "install requirements-gpu.txt, or use device='cpu'."
    ) from error

# Its types are those of the host side: threadIdx, shared.array and the like stand for something else in a kernel.
cuda: Any = numba_cuda_target

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch

__all__ = [
    "bounded_kernel",
    "cuda",
    "cupy",
    "free_memory",
    "kernel",
    "kernels",
    "launch",
    "require_gpu",
    "time_on_device",
    "to_device",
    "view",
]

kernels: dict[str, Any] = {}
"""Every kernel of the library by name, for the test that compiles them all without a GPU."""


def kernel(function: Callable[..., None]) -> Any:
    """Decorate a kernel: compiled for the device it meets, and cached on disk."""
    return bounded_kernel(None)(function)


def bounded_kernel(registers: int | None) -> Callable[[Callable[..., None]], Any]:
    """As `kernel`, with at most `registers` registers a thread, so that more warps are resident."""

    def decorate(function: Callable[..., None]) -> Any:
        compiled = cuda.jit(cache=True, max_registers=registers)(function)
        kernels[function.__name__] = compiled
        return compiled

    return decorate


def require_gpu() -> None:
    """Raise DeviceError, saying what is missing, unless a GPU answers."""
    cupy()
    if not cuda.is_available():
        raise DeviceError(
            "device='gpu' was asked for, but no NVIDIA GPU answers (no driver, or no device is visible); "
            "run 'python -m warpseed check', or use device='cpu'."
        )


def cupy() -> Any:
    """CuPy, for prefix sums and sorting on the device."""
    try:
        import cupy as package
    except ImportError as error:
        raise DeviceError(
            f"device='gpu' needs the package cupy, which cannot be imported ({error}); "
            "install requirements-gpu.txt, or use device='cpu'."
        ) from error
    return package


def free_memory() -> int:
    """Bytes of device memory that can be allocated, CuPy's own free blocks included."""
    package = cupy()
    return int(package.cuda.runtime.memGetInfo()[0]) + int(package.get_default_memory_pool().free_bytes())


def view(array: Any) -> Any:
    """A CuPy array as a Numba device array, without a copy."""
    return cuda.as_cuda_array(array)


def to_device(value: Any) -> Any:
    """Copy an array, or every array of a NamedTuple (nested ones too), to the device; numbers stay."""
    if isinstance(value, np.ndarray):
        return view(cupy().asarray(value))
    if isinstance(value, tuple):
        return type(value)(*(to_device(part) for part in value))
    return value


def launch(function: Any, threads: int, block: int, *arguments: Any) -> None:
    """Run a kernel with at least `threads` threads in blocks of `block`; nothing for no threads."""
    if threads > 0:
        function[-(-threads // block), block](*arguments)


@contextmanager
def time_on_device(watch: Stopwatch, stage: str) -> Iterator[None]:
    """Time what the block puts on the default stream, with CUDA events."""
    begin, end = cuda.event(), cuda.event()
    begin.record()
    yield
    end.record()
    end.synchronize()
    watch.add(stage, cuda.event_elapsed_time(begin, end) / 1e3)

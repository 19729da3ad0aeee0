"""Compiling kernels with Numba, for the device that they are to run on. It is imported where one has to be compiled; no
other file imports numba.cuda.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from warpseed.compute.arguments import with_arrays
from warpseed.compute.compiler import register_types
from warpseed.compute.gpu import Cuda, Kernel, Rows, current_device
from warpseed.compute.objects import Code
from warpseed.errors import DeviceError

try:
    import numba_cuda  # noqa: F401
    from numba import cuda as numba_cuda_target
    from numba.cuda import types as numba_cuda_types
    from numba.cuda.descriptor import cuda_target
    from numba.cuda.extending import typeof_impl  # type: ignore[attr-defined]
except ImportError as error:
    raise DeviceError(
        f"device gpu needs the package numba-cuda, which cannot be imported ({error}); "
        "install requirements-gpu.txt, or use device cpu."
    ) from error

__all__ = ["compile_kernel", "cuda"]

# Its types are those of the host side: threadIdx, shared.array and the like stand for something else in a kernel.
cuda: Any = numba_cuda_target
types: Any = numba_cuda_types

register_types(typeof_impl, cuda_target)


@typeof_impl.register(Cuda)
def _type_of_cuda(stand_in: Cuda, context: Any) -> Any:
    return types.Module(cuda)


@cache
def _dispatcher_of(kernel: Kernel) -> Any:
    """What Numba knows a kernel as."""
    return cuda.jit(max_registers=kernel.registers)(kernel.py_func)


def compile_kernel(kernel: Kernel, arguments: tuple[Any, ...], arrays: tuple[type, ...]) -> Code:
    """Machine code of a kernel and all that it calls, for arguments of these types on the current device.

    (Numba loads it there, too, and on no other device, so it unloads it once in the end; what is launched is loaded
    apart.)

    Parameters
    ----------
    arrays : the types of arrays, of which those of CuPy are the first

    Raises
    ------
    numba.TypingError : the kernel does not fit them
    """

    def typed(array: Any) -> Any:
        if isinstance(array, Rows):
            return cuda.as_cuda_array(array.content, sync=False).view(array.dtype)
        return cuda.as_cuda_array(array, sync=False)

    dispatcher = _dispatcher_of(kernel)
    with cuda.gpus[current_device()]:
        numbas = with_arrays(arguments, arrays, typed)
        compiled = dispatcher.compile(tuple(map(dispatcher.typeof_pyval, numbas)))
        return Code(compiled.entry_name, bytes(compiled.library.get_cubin().code))

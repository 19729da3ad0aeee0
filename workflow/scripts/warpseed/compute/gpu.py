"""The GPUs: the only file that imports CuPy; kernels take it, and Numba's `cuda`, from here.

A kernel is compiled by Numba (gpu_compiler.py) where it first meets a device and arguments of some types, and what
comes out is kept on disk (objects.py): a later process loads that, and does without Numba, whose import takes longer
than most searches.

Devices have the numbers that CUDA gives to those that are visible. A function here works on the *current* device of the
thread that calls it, which `on_device` chooses; device_batches.py shares work among devices.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from warpseed.compute import objects
from warpseed.compute.arguments import kernel_runner, take
from warpseed.compute.first_compilation import tell_of_compilation
from warpseed.compute.waits import wait_for_all
from warpseed.errors import DeviceError, MemoryLimitError, WarpseedError

if find_spec("numba_cuda") is None:  # (numba alone brings a numba.cuda that is too old for us)
    raise DeviceError(
        "device gpu needs the package numba-cuda, which is not installed; "
        "install requirements-gpu.txt, or use device cpu."
    )


class Cuda:
    """Stands for `numba.cuda` in kernels, which Numba takes it for when it compiles them."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # (who only asks what this is does not mean Numba)
            raise AttributeError(name)
        from warpseed.compute.gpu_compiler import cuda

        return getattr(cuda, name)


cuda: Any = Cuda()

__all__ = [
    "Cuda",
    "Kernel",
    "Rows",
    "argsort",
    "bounded_kernel",
    "cuda",
    "cupy",
    "current_device",
    "device_count",
    "device_errors",
    "fill_bytes",
    "free_memory",
    "give_back_memory",
    "is_of_device",
    "is_out_of_memory",
    "kept_stream",
    "kernel",
    "kernels",
    "launch",
    "multiprocessors",
    "on_device",
    "on_own_stream",
    "require_gpu",
    "require_visible",
    "sort",
    "synchronize",
    "to_device",
    "visible_devices",
]

kernels: dict[str, Any] = {}
"""Every kernel of the library by name, for the test that compiles them all without a GPU."""

_REFUSED = "INVALID_IMAGE", "NO_BINARY_FOR_GPU", "INVALID_PTX", "UNSUPPORTED_PTX_VERSION", "NOT_FOUND"
"""In the driver's words, that code is not for it, or not for the device."""

_SORTING = 1.5
"""Memory that sorting takes beside an array of numbers, in sizes of the array."""

_loading = threading.RLock()  # held where a kernel is compiled and loaded
_runs: dict[tuple[Any, ...], Callable[[int, int, list[Any]], None]] = {}
"""What runs a kernel with so many blocks, threads of each and words, by kernel, device and kinds of the arguments."""

_streams_lock = threading.Lock()
_streams: dict[tuple[int, int | str, int], Any] = {}
"""CuPy's streams by device, name and priority."""

# ------------------------------------------------------------------------------------------------- kernels


class Kernel:
    """A kernel, which runs as machine code of the device it meets.

    Attributes
    ----------
    py_func : the kernel as it is written
    registers : that a thread has, at most; None where the compiler may choose
    is_kept : whether its code is kept on disk, by its name; not of kernels outside the library, which may change
    handles : by device, that of the form that was loaded last, as the driver knows it
    """

    def __init__(self, py_func: Callable[..., None], registers: int | None = None, *, is_kept: bool = False) -> None:
        self.__doc__ = py_func.__doc__
        self.py_func, self.registers = py_func, registers
        self.name = f"{py_func.__module__}.{py_func.__qualname__}"
        self.is_kept = is_kept and self.name.startswith("warpseed.")
        self.handles: dict[int, int] = {}


def kernel(function: Callable[..., None]) -> Any:
    """Decorate a kernel: compiled for the device it meets, and kept on disk."""
    return bounded_kernel(None)(function)


def bounded_kernel(registers: int | None) -> Callable[[Callable[..., None]], Any]:
    """As `kernel`, with at most `registers` registers a thread, so that more warps are resident."""

    def decorate(function: Callable[..., None]) -> Any:
        compiled = Kernel(function, registers, is_kept=True)
        if function.__qualname__ != function.__name__:
            raise ValueError(f"{function.__qualname__} is kept on disk by its name, which no other one may have")
        if kernels.setdefault(function.__name__, compiled) is not compiled:
            raise ValueError(f"two kernels are called {function.__name__}: the tests find them by name")
        return compiled

    return decorate


def launch(function: Any, threads: int, block: int, *arguments: Any) -> None:
    """Run a kernel with at least `threads` threads in blocks of `block` on this thread's stream; none for none.
    Arguments are CuPy arrays, `Rows`, numbers, and tuples of them."""
    if threads <= 0:
        return
    kinds: list[Any] = [function, current_device()]
    words: list[Any] = []
    take(arguments, kinds, words, _arrays(), _take_array)
    key = tuple(kinds)
    run = _runs.get(key) or _load(key, arguments)
    run(-(-threads // block), block, words)


class Rows:
    """The bytes of a CuPy array as rows of several fields, without a copy, for a kernel: CuPy has no such arrays.

    Attributes
    ----------
    content : uint8[n], CuPy, C-contiguous
    dtype : of a row
    """

    def __init__(self, content: Any, dtype: np.dtype) -> None:
        self.content, self.dtype = content, dtype


@cache
def _arrays() -> tuple[Any, Any]:
    return cupy().ndarray, Rows


def _take_array(array: Any, kinds: list[Any], words: list[Any]) -> None:
    """What a kernel is handed of an array: two words that the host keeps to itself, and how the array lies."""
    if isinstance(array, Rows):
        size = array.dtype.itemsize
        count = array.content.nbytes // size
        kinds.append((array.dtype, 1, None))
        words += 0, 0, count, size, array.content.data.ptr, count, size
        return
    strides = array.strides
    # An array that repeats itself has a kind of its own for Numba, and so has one with gaps, whatever these are.
    c_order, f_order, repeats = array.flags.c_contiguous, array.flags.f_contiguous, 0 in strides
    kinds.append((array.dtype, array.ndim, None if c_order and not repeats else (c_order, f_order, repeats)))
    words += 0, 0, array.size, array.itemsize, array.data.ptr, *array.shape, *strides


def _load(key: tuple[Any, ...], arguments: tuple[Any, ...]) -> Callable[[int, int, list[Any]], None]:
    """What runs a kernel on the current device with arguments of these kinds: from the disk, or compiled and put
    there."""
    with _loading:  # two threads do not compile the same
        if key not in _runs:
            function, device, *kinds = key
            place = objects.place_of(_folder(), function.name, repr(kinds)) if function.is_kept else None
            code = objects.read(place) if place else None
            handle = _handle_of(code) if code else None
            if handle is None:
                tell_of_compilation()
                from warpseed.compute.gpu_compiler import compile_kernel

                code = compile_kernel(function, arguments, _arrays())
                handle = _loaded(code)
                if place:
                    objects.write(place, code)
            function.handles[device] = handle
            _runs[key] = kernel_runner(handle, kinds, cupy().cuda)
        return _runs[key]


def _folder() -> str:
    """The folder of what Numba makes for the current device, and the driver takes."""
    runtime, here = cupy().cuda.runtime, cupy().cuda.Device()
    return objects.folder_of(
        "kernels", "numba_cuda", here.compute_capability, runtime.driverGetVersion(), objects.toolkit()
    )


def _handle_of(code: objects.Code) -> int | None:
    """As `_loaded`; None where the driver does not take the code."""
    try:
        return _loaded(code)
    except cupy().cuda.driver.CUDADriverError as error:
        if any(reason in str(error) for reason in _REFUSED):
            return None
        raise


def _loaded(code: objects.Code) -> int:
    """The kernel of some code, as the driver knows it on the current device. It stays, as long as the process."""
    driver = cupy().cuda.driver
    cupy().cuda.runtime.memGetInfo()  # (so that this thread has the device's context)
    return int(driver.moduleGetFunction(driver.moduleLoadData(code.image), code.call))


def kept_stream(name: int | str, priority: int = 0) -> Any:
    """A stream of the current device beside others, by its name and priority: all threads that ask for it wait for what
    others put there, too. Memory that CuPy keeps for later is kept stream by stream."""
    package, key = cupy(), (current_device(), name, priority)
    with _streams_lock:
        if key not in _streams:
            _streams[key] = package.cuda.Stream(non_blocking=True, priority=priority)
        return _streams[key]


@contextmanager
def on_own_stream(number: int) -> Iterator[None]:
    """Put what this thread gives the current device on a stream of its own, beside those of other threads; at the end,
    also of a block that fails, and of an interrupt while this waits, all of it is done."""
    stream = kept_stream(number)
    with stream:
        try:
            yield
        finally:
            wait_for_all([stream.synchronize])


def synchronize() -> None:
    """Wait for what this thread has put on its stream."""
    cupy().cuda.get_current_stream().synchronize()


# ------------------------------------------------------------------------------------------------- devices


def cupy() -> Any:
    """CuPy, for memory, copies, sums and sorting on the device, and to load and launch kernels."""
    try:
        import cupy as package
    except ImportError as error:
        raise DeviceError(
            f"device gpu needs the package cupy, which cannot be imported ({error}); "
            "install requirements-gpu.txt, or use device cpu."
        ) from error
    return package


def require_gpu() -> None:
    """Raise DeviceError, saying what is missing, unless a GPU answers."""
    device_count()


def device_count() -> int:
    """GPUs that are visible to this process, one at least; DeviceError where none answers."""
    with device_errors():
        runtime, error = cupy().cuda.runtime, None
        try:
            count = int(runtime.getDeviceCount())
        except runtime.CUDARuntimeError as raised:
            count, error = 0, raised
        if count:
            return count
        told = " ".join(str(error).split()) if error else "no device is visible"
        raise DeviceError(
            f"device gpu was asked for, but no NVIDIA GPU answers ({told[:200]}); "
            "run 'python -m warpseed check', or use device cpu."
        ) from error


def visible_devices() -> tuple[int, ...]:
    """The numbers of all devices that are visible."""
    return tuple(range(device_count()))


def require_visible(number: int) -> None:
    """Raise DeviceError unless a GPU of this number is visible."""
    visible = device_count()
    if not 0 <= number < visible:
        raise DeviceError(f"GPU {number} was asked for, but {visible} are visible, which have the numbers from 0 on.")


_entered = threading.local()
"""`device` is the one that a thread is on by `on_device`: to come there again takes it no time."""


@contextmanager
def on_device(number: int) -> Iterator[None]:
    """Make one of the visible GPUs the current one of this thread, and its errors ours (see `device_errors`)."""
    with device_errors():
        if getattr(_entered, "device", None) == number == current_device():
            yield
        else:
            require_visible(number)
            with cupy().cuda.Device(number), _remembered(number):
                yield


@contextmanager
def _remembered(device: int) -> Iterator[None]:
    """Until the end this thread knows that it is on a device."""
    before, _entered.device = getattr(_entered, "device", None), device
    try:
        yield
    finally:
        _entered.device = before


def current_device() -> int:
    """The number of this thread's device."""
    return int(cupy().cuda.runtime.getDevice())


def multiprocessors() -> int:
    """Of the current device: so many blocks of any kernel run at once, at least."""
    return int(cupy().cuda.Device().attributes["MultiProcessorCount"])


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception of CuPy, Numba or the driver says that device memory is short."""
    if isinstance(error, cupy().cuda.memory.OutOfMemoryError):
        return True
    text = str(error)
    return is_of_device(error) and ("OUT_OF_MEMORY" in text or "cudaErrorMemoryAllocation" in text)


def is_of_device(error: BaseException) -> bool:
    """Whether an exception comes from CUDA: the driver, its compiler and linker, or CuPy on top of them."""
    module = type(error).__module__
    return module.startswith("numba.cuda.cudadrv") or module.split(".")[0] in ("cupy", "cupy_backends", "cuda")


@contextmanager
def device_errors() -> Iterator[None]:
    """Turn what the driver, Numba or CuPy raise about the device into one sentence.

    Raises
    ------
    MemoryLimitError : device memory is short
    DeviceError : anything else: no device, a driver that is too old, a kernel that could not be linked
    """
    try:
        yield
    except WarpseedError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise MemoryLimitError(
                f"The GPU's memory does not suffice{_free_in_words()}; use a larger GPU, or device cpu."
            ) from error
        if is_of_device(error):
            told = " ".join(str(error).split()) or type(error).__name__
            raise DeviceError(
                f"The GPU cannot be used ({told[:300]}); run 'python -m warpseed check', or use device cpu."
            ) from error
        raise


# ------------------------------------------------------------------------------------------------- memory


def free_memory() -> int:
    """Bytes of device memory that can be allocated, CuPy's own free blocks included, and no more than its limit."""
    package = cupy()
    pool = package.get_default_memory_pool()
    free = int(package.cuda.runtime.memGetInfo()[0]) + int(pool.free_bytes())
    limit = int(pool.get_limit())
    return max(0, min(free, limit - int(pool.used_bytes()))) if limit else free


def _free_in_words() -> str:
    """What is free, for a sentence; nothing where there is too little even for a context, which the question takes."""
    try:
        return f" ({free_memory() / 1e9:.1f} GB are free)"
    except Exception as error:
        if not is_of_device(error):
            raise
        return ""


def give_back_memory() -> None:
    """Give what CuPy's pool keeps for later back to the device, where others, the driver too, may take it."""
    cupy().get_default_memory_pool().free_all_blocks()


def to_device(value: Any) -> Any:
    """Copy an array, or every array of a NamedTuple (nested ones too), to the device; the rest stays."""
    if isinstance(value, np.ndarray) or hasattr(value, "__cuda_array_interface__"):
        return cupy().asarray(value)
    if isinstance(value, tuple):
        return type(value)(*map(to_device, value))
    return value


def fill_bytes(array: Any, value: int) -> None:
    """Set each byte of a CuPy array, C-contiguous: CuPy itself takes 3 times as long for words, 20 times for bytes."""
    array.data.memset_async(value, array.nbytes)


def sort(array: Any) -> None:
    """Sort a CuPy array in place."""
    _probe(_SORTING * array.nbytes)
    array.sort()


def argsort(array: Any) -> Any:
    """The order of a CuPy array, int64[n]."""
    if not array.nbytes:
        return cupy().empty(0, np.int64)
    _probe(3 * _SORTING * array.nbytes)
    return cupy().argsort(array)


def _probe(size: float) -> None:
    """Fail here, cleanly, where memory is too short for a sort: its library does not notice, and sorts nothing."""
    cupy().empty(int(size) + (1 << 20), np.uint8)

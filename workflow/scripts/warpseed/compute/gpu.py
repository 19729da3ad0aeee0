"""The GPUs: the only file that imports numba.cuda and CuPy; kernels take them from here.

Devices have the numbers that CUDA gives to those that are visible. A function here works on the *current* device of the
thread that calls it, which `on_device` chooses; device_batches.py shares work among devices.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from warpseed.compute.arguments import kernel_runner, take, with_arrays
from warpseed.compute.compiler import register_types
from warpseed.compute.waits import wait_for_all
from warpseed.errors import DeviceError, MemoryLimitError, WarpseedError

try:
    import numba_cuda  # noqa: F401  (numba alone brings a numba.cuda that is too old for us)
    from numba import cuda as numba_cuda_target
    from numba.cuda.cudadrv.devicearray import DeviceNDArray
    from numba.cuda.descriptor import cuda_target
    from numba.cuda.extending import typeof_impl  # type: ignore[attr-defined]
except ImportError as error:
    raise DeviceError(
        f"device='gpu' needs the package numba-cuda, which cannot be imported ({error}); "
        "install requirements-gpu.txt, or use device='cpu'."
    ) from error

# Its types are those of the host side: threadIdx, shared.array and the like stand for something else in a kernel.
cuda: Any = numba_cuda_target

__all__ = [
    "argsort",
    "bounded_kernel",
    "copies_of",
    "cuda",
    "cupy",
    "current_device",
    "device_count",
    "device_errors",
    "fill_bytes",
    "free_memory",
    "give_back_memory",
    "in_rows",
    "is_of_device",
    "is_out_of_memory",
    "kept_stream",
    "kernel",
    "kernels",
    "launch",
    "multiprocessors",
    "on_device",
    "on_own_stream",
    "release",
    "require_gpu",
    "require_visible",
    "resident",
    "sort",
    "synchronize",
    "to_device",
    "visible_devices",
]

_Result = TypeVar("_Result")

kernels: dict[str, Any] = {}
"""Every kernel of the library by name, for the test that compiles them all without a GPU."""

_SORTING = 1.5
"""Memory that sorting takes beside an array of numbers, in sizes of the array."""

_initialising = threading.RLock()

_loading = threading.RLock()
"""Held where a kernel is compiled and loaded."""
_runs: dict[tuple[Any, ...], Callable[[int, int, list[Any]], None]] = {}
"""What runs a kernel with so many blocks, threads of each and words, by kernel, device and kinds of the arguments."""

_streams: dict[tuple[int, int | str, int], Any] = {}
"""CuPy's streams by device, name and priority."""

_at_exit = ExitStack()
"""What is entered when the process ends, and never left."""


# ------------------------------------------------------------------------------------------------- kernels


register_types(typeof_impl, cuda_target)


def kernel(function: Callable[..., None]) -> Any:
    """Decorate a kernel: compiled for the device it meets, and cached on disk."""
    return bounded_kernel(None)(function)


def bounded_kernel(registers: int | None) -> Callable[[Callable[..., None]], Any]:
    """As `kernel`, with at most `registers` registers a thread, so that more warps are resident."""

    def decorate(function: Callable[..., None]) -> Any:
        compiled = cuda.jit(cache=True, max_registers=registers)(function)
        if kernels.setdefault(function.__name__, compiled) is not compiled:
            raise ValueError(f"two kernels are called {function.__name__}: the tests find them by name")
        return compiled

    return decorate


def launch(function: Any, threads: int, block: int, *arguments: Any) -> None:
    """Run a kernel with at least `threads` threads in blocks of `block` on this thread's stream; none for none.
    Arguments are CuPy arrays, those of `in_rows`, numbers, and tuples of them."""
    if threads <= 0:
        return
    kinds: list[Any] = [function, current_device()]
    words: list[Any] = []
    take(arguments, kinds, words, _arrays(), _take_array)
    key = tuple(kinds)
    run = _runs.get(key) or _load(key, arguments)
    run(-(-threads // block), block, words)


@cache
def _arrays() -> tuple[Any, Any]:
    """CuPy's arrays, and Numba's."""
    return cupy().ndarray, DeviceNDArray


def _take_array(array: Any, kinds: list[Any], words: list[Any]) -> None:
    """What a kernel is handed of an array: two words that the host keeps to itself, and how the array lies."""
    if isinstance(array, _arrays()[0]):
        strides, address, size = array.strides, array.data.ptr, array.itemsize
        # An array that repeats itself has a kind of its own for Numba, and so has one with gaps.
        c_order, f_order = array.flags.c_contiguous, array.flags.f_contiguous
        laid_out = None if c_order and 0 not in strides else (c_order, f_order, strides)
    else:
        strides, address, size = array.strides, array.__cuda_array_interface__["data"][0], array.dtype.itemsize
        laid_out = (array.is_c_contiguous(), array.is_f_contiguous(), strides)
    kinds.append((array.dtype, array.ndim, laid_out))
    words += 0, 0, array.size, size, address, *array.shape, *strides


def _load(key: tuple[Any, ...], arguments: tuple[Any, ...]) -> Callable[[int, int, list[Any]], None]:
    """What runs a kernel on the current device with arguments of these kinds, compiled where it has to be."""
    with _loading, cuda.gpus[current_device()]:  # two threads do not compile the same
        if key not in _runs:
            function, _, *kinds = key
            numbas = with_arrays(arguments, _arrays()[0], partial(cuda.as_cuda_array, sync=False))
            compiled = function.compile(tuple(map(function.typeof_pyval, numbas)))
            compiled.bind()
            handle = int(compiled.library.get_cufunc().handle)
            _runs[key] = kernel_runner(handle, kinds, cupy().cuda)
        return _runs[key]


def kept_stream(name: int | str, priority: int = 0) -> Any:
    """A stream of the current device beside others, by its name and priority: all threads that ask for it wait for what
    others put there, too. Memory that CuPy keeps for later is kept stream by stream."""
    package, key = cupy(), (current_device(), name, priority)
    with _parts_lock:
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
    """CuPy, for prefix sums and sorting on the device."""
    try:
        import cupy as package
    except ImportError as error:
        raise DeviceError(
            f"device='gpu' needs the package cupy, which cannot be imported ({error}); "
            "install requirements-gpu.txt, or use device='cpu'."
        ) from error
    return package


def require_gpu() -> None:
    """Raise DeviceError, saying what is missing, unless a GPU answers."""
    cupy()
    if not cuda.is_available():
        raise DeviceError(
            "device='gpu' was asked for, but no NVIDIA GPU answers (no driver, or no device is visible); "
            "run 'python -m warpseed check', or use device='cpu'."
        )


def device_count() -> int:
    """GPUs that are visible to this process."""
    # The driver is initialised by the first who asks; a second thread must not go on before that is done.
    with _initialising, device_errors():
        require_gpu()
        return len(cuda.gpus)


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
            with cupy().cuda.Device(number), _remembered(number):  # (whose context Numba takes, too)
                yield


@contextmanager
def _remembered(device: int) -> Iterator[None]:
    """Until the end this thread knows that it is on a device."""
    _defer_cleanup_at_exit(device)
    before, _entered.device = getattr(_entered, "device", None), device
    try:
        yield
    finally:
        _entered.device = before


@cache
def _defer_cleanup_at_exit(number: int) -> None:
    """Leave what this device, the current one, has loaded to the driver when the process ends.

    Numba shares a kernel's library among devices of one kind, and unloads it for each: a crash, where two were used.
    """
    atexit.register(_at_exit.enter_context, cuda.gpus[number].get_primary_context().defer_cleanup())


def current_device() -> int:
    """The number of this thread's device."""
    return int(cupy().cuda.runtime.getDevice())


def multiprocessors() -> int:
    """Of the current device: so many blocks of any kernel run at once, at least."""
    return int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


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
                f"The GPU's memory does not suffice{_free_in_words()}; use a larger GPU, or device='cpu'."
            ) from error
        if is_of_device(error):
            told = " ".join(str(error).split()) or type(error).__name__
            raise DeviceError(
                f"The GPU cannot be used ({told[:300]}); run 'python -m warpseed check', or use device='cpu'."
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


def in_rows(array: Any, row_type: np.dtype) -> Any:
    """The bytes of a CuPy array as rows of several fields, without a copy, for a kernel: CuPy has no such arrays."""
    return cuda.as_cuda_array(array, sync=False).view(row_type)


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


# ------------------------------------------------------------------------------------------------- what lies there

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
                    f"{free / 1e9:.1f} GB are free; use a larger GPU, or device='cpu'."
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

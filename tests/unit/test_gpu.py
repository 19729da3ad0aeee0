"""What compute/gpu.py keeps, frees and says, with a CuPy that the tests make up; no GPU is needed."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from numba.cuda.api_util import prepare_shape_strides_dtype
from numba.cuda.cudadrv.devicearray import DeviceNDArray
from numba.cuda.cudadrv.driver import CudaAPIError
from numba.cuda.cudadrv.error import CudaSupportError
from warpseed.compute import device_marks, gpu
from warpseed.compute.device_marks import marked_on_device, time_on_device
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import DeviceError, InputError, MemoryLimitError


class OutOfMemoryError(MemoryError):
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


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Devices of 1000 bytes; `device` is the current one."""
    told = SimpleNamespace(device=0, free=1000, pool=Pool())
    runtime = SimpleNamespace(getDevice=lambda: told.device, memGetInfo=lambda: (told.free, 1000))
    package = SimpleNamespace(
        cuda=SimpleNamespace(runtime=runtime, memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError)),
        get_default_memory_pool=lambda: told.pool,
    )
    for module in (gpu, device_marks):
        monkeypatch.setattr(module, "cupy", lambda: package)
    monkeypatch.setattr(gpu, "cuda", SimpleNamespace(is_available=lambda: True, gpus=[nullcontext()] * 2))
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


# ---- devices


def test_a_thread_that_is_on_a_device_stays_there(monkeypatch: pytest.MonkeyPatch, made_up: SimpleNamespace) -> None:
    """It enters one only where it is on another, by whatever way, and is back where it was in the end."""
    entered: list[int] = []

    @contextmanager
    def enter(number: int) -> Iterator[None]:
        entered.append(number)
        before, made_up.device = made_up.device, number
        try:
            yield
        finally:
            made_up.device = before

    gpu.cupy().cuda.Device = enter
    gpu.cuda.gpus = [nullcontext()] * 2
    monkeypatch.setattr(gpu, "_defer_cleanup_at_exit", lambda number: None)
    with gpu.on_device(0), gpu.on_device(0), gpu.on_device(1), gpu.on_device(1):
        with gpu.on_device(0):
            assert made_up.device == 0
        with enter(0), gpu.on_device(1):  # (as another library would)
            assert made_up.device == 1
        with pytest.raises(ZeroDivisionError), gpu.on_device(0):
            raise ZeroDivisionError
        assert made_up.device == 1
    assert entered == [0, 1, 0, 0, 1, 0]
    made_up.device = 1
    with gpu.on_device(0):
        assert made_up.device == 0
    made_up.device = 0
    with gpu.on_device(0), pytest.raises(DeviceError), gpu.on_device(0):
        raise CudaAPIError(700, "an illegal address")
    assert entered[6:] == [0, 0]


# ---- residency


def test_a_part_is_made_once_for_each_device(made_up: SimpleNamespace) -> None:
    owner, other, made = Owner(), Owner(), []
    for device in (0, 1, 0, 1):
        made_up.device = device
        part = gpu.resident(owner, "text", lambda: made.append(made_up.device) or [len(made)])
        assert part == [device + 1]
    made_up.device = 0
    assert gpu.resident(owner, "table", lambda: "table") == "table"
    assert gpu.resident(other, "text", lambda: "other") == "other"
    assert made == [0, 1]


def test_parts_go_with_their_owner(made_up: SimpleNamespace) -> None:
    owner = Owner()
    gpu.resident(owner, "text", takes(made_up, 600, []), needed=600)
    assert made_up.free == 400
    del owner
    gc.collect()
    assert made_up.free == 1000


def test_release_lets_one_part_or_all_go(made_up: SimpleNamespace) -> None:
    owner = Owner()
    for name in ("text", "table", "rows"):
        gpu.resident(owner, name, takes(made_up, 100, []))
    gpu.release(owner, "table")
    assert made_up.free == 800
    made_up.device = 1
    gpu.release(owner)
    assert made_up.free == 800
    made_up.device = 0
    gpu.release(owner)
    assert made_up.free == 1000


def test_other_owners_make_room_before_the_own_parts_do(made_up: SimpleNamespace) -> None:
    owner, other, made = Owner(), Owner(), []
    gpu.resident(other, "text", takes(made_up, 300, made), needed=300)
    gpu.resident(owner, "text", takes(made_up, 200, made), needed=200)
    gpu.resident(owner, "bwt", takes(made_up, 200, made), needed=200)
    gpu.resident(owner, "rows", takes(made_up, 500, made), needed=500, shares=("text",))
    assert made_up.free == 1000 - 200 - 200 - 500
    gpu.release(owner, "rows")
    gpu.resident(owner, "rows", takes(made_up, 700, made), needed=700, shares=("text",))
    assert made_up.free == 1000 - 200 - 700
    assert gpu.resident(owner, "text", lambda: None) is not None
    with pytest.raises(MemoryLimitError, match="'table'"):
        gpu.resident(owner, "table", takes(made_up, 2000, made), needed=2000, shares=("text", "rows"))


def test_free_memory_knows_the_limit_of_the_pool(made_up: SimpleNamespace) -> None:
    made_up.pool.kept = 50
    assert gpu.free_memory() == 1050
    made_up.pool.limit, made_up.pool.used = 700, 100
    assert gpu.free_memory() == 600
    made_up.pool.used = 800
    assert gpu.free_memory() == 0


# ---- room, errors, warnings


def test_sorting_asks_for_its_memory_first(made_up: SimpleNamespace) -> None:
    """The library that sorts does not notice that CuPy gave it none, and returns without having sorted."""

    class Numbers:
        nbytes, ordered = 8_000_000, False

        def sort(self) -> None:
            self.ordered = True

    def empty(size: int, dtype: Any) -> None:
        if size > made_up.free:
            raise OutOfMemoryError

    gpu.cupy().empty, gpu.cupy().argsort = empty, lambda numbers: "order"
    made_up.free, numbers = 20_000_000, Numbers()
    gpu.sort(numbers)
    assert numbers.ordered
    with pytest.raises(OutOfMemoryError):
        gpu.argsort(numbers)
    made_up.free, numbers = 12_000_000, Numbers()
    with pytest.raises(OutOfMemoryError):
        gpu.sort(numbers)
    assert not numbers.ordered


@pytest.mark.parametrize(
    ("raised", "expected", "told"),
    [
        (OutOfMemoryError("out of memory allocating 12 bytes"), MemoryLimitError, "does not suffice"),
        (CudaAPIError(2, "Call to cuLinkComplete results in CUDA_ERROR_OUT_OF_MEMORY"), MemoryLimitError, "suffice"),
        (CudaAPIError(222, "Call to cuModuleLoad results in\nUNSUPPORTED_PTX"), DeviceError, "in UNSUPPORTED_PTX"),
        (CudaSupportError("Error at driver init"), DeviceError, "Error at driver init"),
        (InputError("a k-mer is empty"), InputError, "a k-mer is empty"),
        (ZeroDivisionError("mine"), ZeroDivisionError, "mine"),
    ],
)
def test_errors_of_the_device_are_one_sentence(
    made_up: SimpleNamespace, raised: Exception, expected: type[Exception], told: str
) -> None:
    with pytest.raises(expected) as caught, gpu.device_errors():
        raise raised
    assert type(caught.value) is expected
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_a_device_too_full_to_be_asked_is_one_sentence(made_up: SimpleNamespace) -> None:
    """Others have taken all its memory: not even the question of what is free is answered."""
    full = CudaAPIError(2, "Call to cuDevicePrimaryCtxRetain results in CUDA_ERROR_OUT_OF_MEMORY")

    def ask() -> tuple[int, int]:
        raise full

    gpu.cupy().cuda.runtime.memGetInfo = ask
    with pytest.raises(MemoryLimitError, match="does not suffice; use a larger GPU"), gpu.device_errors():
        raise full


def test_no_gpu_is_one_sentence(made_up: SimpleNamespace) -> None:
    gpu.cuda.is_available = lambda: False
    with pytest.raises(DeviceError, match="no NVIDIA GPU answers"), gpu.on_device(0):
        pass
    with pytest.raises(DeviceError, match="no NVIDIA GPU answers"):
        gpu.resident(Owner(), "text", lambda: None)
    gpu.cuda.is_available = lambda: True
    gpu.cuda.gpus = [None, None]
    with pytest.raises(DeviceError, match="GPU 2 was asked for, but 2 are visible"), gpu.on_device(2):
        pass


class Far(np.ndarray):
    """Stands for CuPy's arrays."""

    @property
    def data(self) -> SimpleNamespace:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data)


def far(values: Any, dtype: type = np.uint32) -> Any:
    return np.array(values, dtype).view(Far)


class Kernel:
    """What is told to compile for arguments of some types, and the kernels that come out."""

    def __init__(self) -> None:
        self.compiled: list[tuple[Any, ...]] = []

    typeof_pyval = staticmethod(lambda value: value)

    def compile(self, types: tuple[Any, ...]) -> SimpleNamespace:
        self.compiled.append(types)
        handle = 100 + len(self.compiled)
        library = SimpleNamespace(get_cufunc=lambda: SimpleNamespace(handle=handle))
        return SimpleNamespace(bind=lambda: None, library=library)


@pytest.fixture
def driver(made_up: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A driver that is given kernels of 14 words, and notes what it would read; `stream` is the current one."""
    told = SimpleNamespace(launched=[], stream=0, words=14)

    def launch_kernel(handle: int, *rest: int) -> None:
        *shape, shared, stream, parameters, extra = rest
        assert (shared, extra) == (0, 0)
        places = (ctypes.c_uint64 * told.words).from_address(parameters)
        told.launched.append((handle, shape, stream, [ctypes.c_int64.from_address(place).value for place in places]))

    package = gpu.cupy()
    package.cuda.driver = SimpleNamespace(launchKernel=launch_kernel)
    package.cuda.get_current_stream = lambda: SimpleNamespace(ptr=told.stream)
    gpu.cuda.as_cuda_array = lambda array, sync: ("Numba's", array)
    monkeypatch.setattr(gpu, "_arrays", lambda: (Far, DeviceNDArray))
    monkeypatch.setattr(gpu, "_runs", {})
    return told


class Both(NamedTuple):
    one: Any
    other: Any


def test_the_driver_is_handed_the_words_of_each_argument(driver: SimpleNamespace) -> None:
    """Of an array: two that are nothing here, entries, bytes of each, address, shape, strides."""
    kernel, array = Kernel(), far(range(6))
    gpu.launch(kernel, 129, 128, Both(array[::2], (-7,)), np.uint8(200), True, 1.5, (1 << 64) - 1, np.float32(0.25), 3)
    gpu.launch(kernel, 0, 128, "nothing")
    bits = [ctypes.c_int64.from_buffer(ctypes.c_double(1.5)).value, -1]
    expected = [0, 0, 3, 4, array.ctypes.data, 3, 8, -7, 200, 1, *bits]
    ((handle, shape, stream, words),) = driver.launched
    assert (handle, shape, stream) == (101, [2, 1, 1, 128, 1, 1], 0)
    assert words[:12] == expected and words[13] == 3
    assert ctypes.c_float.from_buffer(ctypes.c_int64(words[12])).value == 0.25
    ((given, *_),) = kernel.compiled
    assert type(given) is Both and given.one[0] == "Numba's" and given.other == (-7,)
    with pytest.raises(TypeError, match="takes arrays, numbers and tuples of them, not str"):
        gpu.launch(kernel, 1, 128, "nothing")
    with pytest.raises(TypeError, match="not float16"):
        gpu.launch(kernel, 1, 128, np.float16(1))


def test_a_kernel_is_compiled_once_for_arguments_of_a_kind_and_device(
    driver: SimpleNamespace, made_up: SimpleNamespace
) -> None:
    kernel, driver.words = Kernel(), 0
    numbers, wide = far(range(8)), far(range(8), np.uint64)
    for given in ((numbers,), (numbers[:3],), (wide,), (numbers.reshape(2, 4),), (numbers[::2],), (numbers, 1)):
        gpu.launch(kernel, 1, 32, *given)
    assert [handle for handle, *_ in driver.launched] == [101, 101, 102, 103, 104, 105]
    made_up.device = 1
    gpu.launch(kernel, 1, 32, numbers[1:])
    gpu.launch(Kernel(), 1, 32, numbers)
    assert [handle for handle, *_ in driver.launched][6:] == [106, 101]


def test_kinds_are_as_fine_as_the_types_of_numba(driver: SimpleNamespace) -> None:
    """What has one kind has one type, whatever the layout."""
    square = far(np.arange(36).reshape(6, 6))
    row = far(np.arange(6))
    arrays = [
        square, square[:3], square.T, square[::2, ::2], square[:1], square[:, :1], row,
        row[::2], row[:1], np.broadcast_to(row, (4, 6), subok=True), np.broadcast_to(row[:1], 6, subok=True),
        far(row, np.int32), far(row, np.uint64), square.reshape(2, 3, 6),
        square.T[:3], np.broadcast_to(row, (1, 6), subok=True), np.broadcast_to(row[:1], 1, subok=True),
        row[:, None], np.broadcast_to(row[:, None], (6, 4), subok=True),
    ]  # fmt: skip
    kinds: dict[Any, Any] = {}
    for array in arrays:
        mine: list[Any] = []
        gpu._take_array(array, mine, [])
        strides = None if array.flags.c_contiguous else array.strides  # as CuPy's interface has them
        shape, strides, dtype = prepare_shape_strides_dtype(array.shape, strides, array.dtype, order="C")
        type_there = DeviceNDArray(shape, strides, dtype, gpu_data=object())._numba_type_
        assert kinds.setdefault(tuple(mine), type_there) == type_there


def test_a_thread_with_a_stream_of_its_own_launches_on_it(
    driver: SimpleNamespace, made_up: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams are kept, by device and number."""
    here, entered, driver.words = threading.local(), [], 0

    class Stream:
        made = 0

        def __init__(self, non_blocking: bool, priority: int) -> None:
            assert non_blocking and priority == 0
            Stream.made += 1
            self.ptr = Stream.made

        def __enter__(self) -> None:
            here.stream = self
            entered.append(self.ptr)

        def __exit__(self, *error: object) -> None:
            del here.stream
            entered.append(-self.ptr)

        def synchronize(self) -> None:
            pass

    gpu.cupy().cuda.Stream = Stream
    gpu.cupy().cuda.get_current_stream = lambda: getattr(here, "stream", SimpleNamespace(ptr=0))
    monkeypatch.setattr(gpu, "_streams", {})
    kernel = Kernel()

    def serve(device: int, number: int) -> None:
        made_up.device = device
        with gpu.on_own_stream(number):
            gpu.launch(kernel, 1, 32)
            thread = threading.Thread(target=gpu.launch, args=(kernel, 1, 32))
            thread.start()
            thread.join()
        gpu.launch(kernel, 1, 32)

    for device, number in ((0, 0), (0, 1), (1, 0), (0, 0)):
        serve(device, number)
    assert [stream for _, _, stream, _ in driver.launched] == [1, 0, 0, 2, 0, 0, 3, 0, 0, 1, 0, 0]
    assert entered == [1, -1, 2, -2, 3, -3, 1, -1]


def test_stages_are_marked_and_waited_for_once(made_up: SimpleNamespace) -> None:
    """A stage lasts from the mark before to its own; one that comes again adds up."""
    done: list[Any] = []

    class Event:
        def record(self) -> None:
            done.append(self)

        def synchronize(self) -> None:
            done.append("waited")

    gpu.cupy().cuda.Event = Event
    gpu.cupy().cuda.get_elapsed_time = lambda began, ended: 100 * done.index(began) + done.index(ended)
    watch = Stopwatch()
    with marked_on_device(watch) as mark:
        mark("order")
        mark("device_to_host")
        mark("order")
        assert len(done) == 4 and "waited" not in done
    assert done[4:] == ["waited"] and watch.seconds == pytest.approx({"order": 0.204, "device_to_host": 0.102})
    done.clear()
    with time_on_device(watch, "kernel"):
        assert len(done) == 1
    assert done[2:] == ["waited"] and watch.seconds["kernel"] == pytest.approx(0.001)
    watch = Stopwatch()
    for failing in (marked_on_device(watch), time_on_device(watch, "kernel")):
        with pytest.raises(ZeroDivisionError), failing:
            raise ZeroDivisionError
    assert watch.seconds == {}


def test_two_kernels_of_one_name_are_refused() -> None:
    """The tests of kernels find them by name, and would compile the second one alone."""

    def gather_sectors(words: Any) -> None:
        pass

    from warpseed.measure import gpu_floors  # noqa: F401

    with pytest.raises(ValueError, match="two kernels are called gather_sectors"):
        gpu.kernel(gather_sectors)

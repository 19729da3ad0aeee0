"""What compute/gpu.py keeps, frees and says, with a CuPy that the tests make up; no GPU is needed."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

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
    monkeypatch.setattr(gpu, "cuda", SimpleNamespace(is_available=lambda: True, gpus=[None, None]))
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


def test_lists_grow_to_what_they_needed() -> None:
    asked = []

    def attempt(hits: int, crowded: int) -> tuple[tuple[int, ...], int]:
        asked.append((hits, crowded))
        # What a crowded bucket holds is known only once there was room for the bucket.
        return (5 if crowded < 4 else 20, 4), len(asked)

    assert gpu.with_room((8, 2), attempt) == 3
    assert asked == [(8, 2), (8, 4), (20, 4)]


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


def test_small_grids_are_launched_without_a_warning() -> None:
    """Numba's own launch configuration, which warns below 128 blocks; what the user has set stays set."""
    from numba.cuda.core import config
    from numba.cuda.core.errors import NumbaPerformanceWarning
    from numba.cuda.dispatcher import _LaunchConfiguration

    launched: list[Any] = []

    class Kernel:
        def __getitem__(self, grid: tuple[int, int, int]) -> Callable[..., None]:
            _LaunchConfiguration(self, (grid[0], 1, 1), (grid[1], 1, 1), grid[2], 0)
            return lambda *arguments: launched.append((grid, arguments))

    with warnings.catch_warnings():
        warnings.simplefilter("error", NumbaPerformanceWarning)
        with pytest.raises(NumbaPerformanceWarning):
            Kernel()[2, 128, 0]
        gpu.launch(Kernel(), 129, 128, "a", "b")
        gpu.launch(Kernel(), 0, 128, "nothing")
    assert launched == [((2, 128, 0), ("a", "b"))]
    assert config.CUDA_LOW_OCCUPANCY_WARNINGS


def test_a_thread_with_a_stream_of_its_own_launches_on_it(made_up: SimpleNamespace) -> None:
    """CuPy's stream and Numba's are the same one; streams are kept, by device and number."""
    launched: list[int] = []
    entered: list[int] = []

    class Stream:
        made = 0

        def __init__(self, non_blocking: bool) -> None:
            assert non_blocking
            Stream.made += 1
            self.ptr = Stream.made

        def __enter__(self) -> None:
            entered.append(self.ptr)

        def __exit__(self, *error: object) -> None:
            entered.append(-self.ptr)

        def synchronize(self) -> None:
            pass

    class Kernel:
        def __getitem__(self, grid: tuple[int, int, int]) -> Callable[..., None]:
            return lambda: launched.append(grid[2])

    gpu.cupy().cuda.Stream = Stream
    gpu.cuda.external_stream = lambda pointer: 10 * pointer
    gpu._streams.clear()

    def serve(device: int, number: int) -> None:
        made_up.device = device
        with gpu.on_own_stream(number):
            gpu.launch(Kernel(), 1, 32)
            thread = threading.Thread(target=gpu.launch, args=(Kernel(), 1, 32))
            thread.start()
            thread.join()
        gpu.launch(Kernel(), 1, 32)

    try:
        for device, number in ((0, 0), (0, 1), (1, 0), (0, 0)):
            serve(device, number)
    finally:
        gpu._streams.clear()
    assert launched == [10, 0, 0, 20, 0, 0, 30, 0, 0, 10, 0, 0]
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


def test_pinned_memory_comes_in_few_sizes(made_up: SimpleNamespace) -> None:
    asked: list[int] = []
    gpu.cupy().cuda.alloc_pinned_memory = lambda size: asked.append(size) or bytearray(size)
    for count in (1, 8192, 8193, 100_000, 0):
        numbers = gpu.pinned(count, np.uint64)
        numbers[...] = 7
        assert numbers.shape == (count,) and numbers.dtype == np.uint64 and numbers.flags.writeable
    assert asked == [1 << 16, 1 << 16, 1 << 17, 1 << 20]


def test_two_kernels_of_one_name_are_refused() -> None:
    """The tests of kernels find them by name, and would compile the second one alone."""

    def gather_sectors(words: Any) -> None:
        pass

    from warpseed.measure import gpu_floors  # noqa: F401

    with pytest.raises(ValueError, match="two kernels are called gather_sectors"):
        gpu.kernel(gather_sectors)

"""What compute/gpu.py keeps, frees and says, with a CuPy that the tests make up; no GPU is needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from made_up_gpu import CUDARuntimeError, OutOfMemoryError, Owner, make_up
from numba.cuda.cudadrv.driver import CudaAPIError
from numba.cuda.cudadrv.error import CudaSupportError
from warpseed.compute import gpu, resident
from warpseed.compute.device_marks import marked_on_device, time_on_device
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import DeviceError, InputError, MemoryLimitError


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    return make_up(monkeypatch)


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
    def fail() -> int:
        raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")

    runtime = gpu.cupy().cuda.runtime
    answer, runtime.getDeviceCount = runtime.getDeviceCount, fail
    with (
        pytest.raises(DeviceError, match="no NVIDIA GPU answers .cudaErrorNoDevice: no CUDA-capable"),
        gpu.on_device(0),
    ):
        pass
    runtime.getDeviceCount = lambda: 0
    with pytest.raises(DeviceError, match="no NVIDIA GPU answers .no device is visible"):
        resident.resident(Owner(), "text", lambda: None)
    runtime.getDeviceCount = answer
    with pytest.raises(DeviceError, match="GPU 2 was asked for, but 2 are visible"), gpu.on_device(2):
        pass


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

"""Batches on devices: order, halving and what is said, with devices and memory that the tests make up."""

from __future__ import annotations

import gc
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from warpseed.compute import device_batches
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import DeviceError, MemoryLimitError, WarpseedError


class OutOfMemory(Exception):
    """Stands for CuPy's."""


class Device:
    """Made-up devices: what may be run at once, and what was tried, by device."""

    def __init__(self, free: int) -> None:
        self.free = free
        self.tried: dict[int, list[tuple[int, int]]] = {}
        self.given_back = 0
        self.current = threading.local()

    @contextmanager
    def on_device(self, number: int) -> Iterator[None]:
        self.current.number = number
        yield

    def give_back(self) -> None:
        self.given_back += 1

    def start(self, watch: Stopwatch, fits: Callable[[int, int], bool] = lambda first, last: True):
        def run(first: int, last: int) -> list[int]:
            self.tried.setdefault(self.current.number, []).append((first, last))
            watch.add("kernel", 1.0)
            if not fits(first, last):
                raise OutOfMemory
            return list(range(first, last))

        return run


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    """Devices with memory for everything, and nothing told of yet."""
    made_up = Device(1 << 40)
    monkeypatch.setattr(device_batches, "on_device", made_up.on_device)
    monkeypatch.setattr(device_batches, "free_memory", lambda: made_up.free)
    monkeypatch.setattr(device_batches, "give_back_memory", made_up.give_back)
    monkeypatch.setattr(device_batches, "is_out_of_memory", lambda error: isinstance(error, OutOfMemory))
    monkeypatch.setattr(device_batches, "_told", set())
    return made_up


def flat(parts: list[list[int]]) -> list[int]:
    return [number for part in parts for number in part]


def test_one_batch_where_memory_suffices(device: Device, capsys: pytest.CaptureFixture[str]) -> None:
    assert flat(device_batches.run_batches(1000, 10, device.start, watch=Stopwatch())) == list(range(1000))
    assert device.tried == {0: [(0, 1000)]}
    assert capsys.readouterr().err == ""


def test_no_queries_start_a_device_and_run_nothing(device: Device) -> None:
    started = []

    def start(watch: Stopwatch):
        started.append(watch)
        return device.start(watch)

    assert device_batches.run_batches(0, 10, start, watch=Stopwatch()) == []
    assert len(started) == 1 and device.tried == {}


def test_largest_batch_bounds_every_batch(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_batches, "LARGEST_BATCH", 300)
    assert flat(device_batches.run_batches(1000, 10, device.start, watch=Stopwatch())) == list(range(1000))
    assert device.tried[0] == [(0, 300), (300, 600), (600, 900), (900, 1000)]


def test_estimate_makes_batches_smaller_and_says_so(device: Device, capsys: pytest.CaptureFixture[str]) -> None:
    device.free = 8000
    assert flat(device_batches.run_batches(1000, 10, device.start, watch=Stopwatch())) == list(range(1000))
    assert device.tried[0] == [(0, 400), (400, 800), (800, 1000)]
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "GPU 0" in told and "400 queries" in told


def test_short_memory_halves_the_batch_for_good_and_says_so_once(
    device: Device, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_batches, "LARGEST_BATCH", 400)

    def start(watch: Stopwatch):
        return device.start(watch, lambda first, last: last - first <= 120)

    for _ in range(2):
        device.tried.clear()
        assert flat(device_batches.run_batches(800, 10, start, watch=Stopwatch())) == list(range(800))
        assert device.tried[0][:4] == [(0, 400), (0, 200), (0, 100), (100, 200)]
        assert all(last - first <= 100 for first, last in device.tried[0][2:])
    assert device.given_back == 4
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "200 queries" in told


def test_one_query_that_does_not_fit_is_refused(device: Device) -> None:
    def start(watch: Stopwatch):
        return device.start(watch, lambda first, last: not first <= 13 < last)

    with pytest.raises(MemoryLimitError, match="One query"):
        device_batches.run_batches(100, 10, start, watch=Stopwatch())
    assert device.tried[0][-1] == (13, 14)


def test_several_devices_share_the_queries_in_order(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both take part: each waits, in its first batch, until the other has one too."""
    monkeypatch.setattr(device_batches, "LARGEST_BATCH", 64)
    meet = threading.Barrier(2, timeout=20)

    def start(watch: Stopwatch):
        inner, first_time = device.start(watch), [True]

        def run(first: int, last: int) -> list[int]:
            if first_time.pop() if first_time else False:
                meet.wait()
            return inner(first, last)

        return run

    watch = Stopwatch()
    assert flat(device_batches.run_batches(1000, 10, start, watch=watch, devices=(0, 3))) == list(range(1000))
    assert set(device.tried) == {0, 3}
    # The devices work side by side: what counts is the slower one.
    assert watch.seconds["kernel"] == max(map(len, device.tried.values()))


def test_an_error_on_one_device_ends_the_others(device: Device) -> None:
    class Broken(WarpseedError):
        pass

    def start(watch: Stopwatch):
        number, inner = device.current.number, device.start(watch)
        if number == 1:
            raise Broken("no such device")
        return inner

    with pytest.raises(Broken):
        device_batches.run_batches(1000, 10, start, watch=Stopwatch(), devices=(0, 1))


def test_errors_that_are_not_about_memory_pass(device: Device) -> None:
    def start(watch: Stopwatch):
        def run(first: int, last: int) -> None:
            raise ZeroDivisionError

        return run

    with pytest.raises(ZeroDivisionError):
        device_batches.run_batches(10, 10, start, watch=Stopwatch())


def test_a_device_that_is_not_there_ends_the_work_of_the_others(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped, stop = threading.Event(), device_batches._Deal.stop

    @contextmanager
    def on_device(number: int) -> Iterator[None]:
        if number == 7:
            raise DeviceError("GPU 7 was asked for")
        with device.on_device(number):
            yield

    def noted(deal: device_batches._Deal) -> None:
        stop(deal)
        stopped.set()

    def start(watch: Stopwatch):
        inner = device.start(watch)

        def run(first: int, last: int) -> list[int]:
            assert stopped.wait(20)
            return inner(first, last)

        return run

    monkeypatch.setattr(device_batches, "LARGEST_BATCH", 10)
    monkeypatch.setattr(device_batches, "on_device", on_device)
    monkeypatch.setattr(device_batches._Deal, "stop", noted)
    with pytest.raises(DeviceError, match="GPU 7"):
        device_batches.run_batches(1000, 10, start, watch=Stopwatch(), devices=(0, 7))
    assert len(device.tried.get(0, [])) <= 1


class Held:
    """What the work of a device holds."""


def test_what_failed_on_another_device_is_let_go_at_once(device: Device) -> None:
    """Not when the garbage collector comes: it may be most of the device's memory."""
    held: list[weakref.ref[Held]] = []

    def serve(index: int, watch: Stopwatch) -> None:
        mine = Held()
        held.append(weakref.ref(mine))
        if index:
            raise DeviceError("broken")

    gc.disable()
    try:
        with pytest.raises(DeviceError, match="broken"):
            device_batches.serve_devices((0, 1, 2), serve, Stopwatch())
        assert len(held) == 3
        assert [reference() for reference in held] == 3 * [None]
    finally:
        gc.enable()


def test_stages_come_in_the_order_of_the_devices(device: Device) -> None:
    watch, names = Stopwatch(), ["d", "a", "c", "b"]

    def serve(index: int, watch_here: Stopwatch) -> None:
        for name in names[index : index + 3]:
            watch_here.add(name, 1.0 + index)

    device_batches.serve_devices((0, 1), serve, watch)
    assert list(watch.seconds.items()) == [("d", 1.0), ("a", 2.0), ("c", 2.0), ("b", 2.0)]


def test_a_child_process_has_threads_of_its_own(device: Device) -> None:
    def numbers() -> list[int]:
        return device_batches.serve_devices((0, 1, 2), lambda index, watch: index, Stopwatch())

    assert numbers() == [0, 1, 2]
    child = os.fork()
    if not child:
        signal.alarm(60)  # which ends it
        os._exit(0 if numbers() == [0, 1, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0

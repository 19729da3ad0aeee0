"""Works that come piece by piece: order, what is gathered, memory, errors, with devices that the tests make up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from warpseed.compute import device_batches, device_stream
from warpseed.compute.device_stream import Share, Source, stream_batches
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import MemoryLimitError

WAIT = 20
"""Seconds after which something that should have happened has not."""


class OutOfMemory(Exception):
    """Stands for CuPy's."""


class Work(NamedTuple):
    """Queries that are told apart by their numbers."""

    first: int
    count: int

    def numbers(self, begin: int, end: int) -> list[int]:
        return list(range(self.first + begin, self.first + end))


class Devices:
    """Made-up devices, where a query takes `memory` of what is free; what was run, by device, in queries."""

    def __init__(self) -> None:
        self.free = 1 << 40
        self.sizes: dict[int, list[int]] = {}
        self.taken: dict[int, int] = {}
        self.largest = 1 << 40
        self.most_at_once = 0
        self.per_chunk = 1 << 40
        self.before: Callable[[int, list[Share]], None] = lambda number, shares: None
        self.lock = threading.Lock()
        self.current = threading.local()

    @contextmanager
    def on_device(self, number: int) -> Iterator[None]:
        self.current.number = number
        yield

    def start(self, watch: Stopwatch) -> Callable[[list[Share]], Iterator[list[int]]]:
        number = self.current.number

        def run(shares: list[Share]) -> Iterator[list[int]]:
            size = sum(share.end - share.begin for share in shares)
            with self.lock:
                self.sizes.setdefault(number, []).append(size)
                if self.taken.get(number, 0) + size > self.largest:
                    raise OutOfMemory
                self.taken[number] = self.taken.get(number, 0) + size
                self.most_at_once = max(self.most_at_once, self.taken[number])
            watch.add("kernel", 1.0)
            self.before(number, shares)
            return self.chunks(number, shares, size)

        return run

    def chunks(self, number: int, shares: list[Share], size: int) -> Iterator[list[int]]:
        results = [each for work, begin, end in shares for each in work.numbers(begin, end)]
        try:
            for first in range(0, len(results), self.per_chunk):
                yield results[first : first + self.per_chunk]
        finally:
            with self.lock:
                self.taken[number] -= size


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> Devices:
    """Devices with memory for everything, batches of 100 and 20 queries, and nothing told of yet."""
    made_up = Devices()
    monkeypatch.setattr(device_stream, "on_device", made_up.on_device)
    monkeypatch.setattr(device_stream, "on_own_stream", lambda lane: nullcontext())
    monkeypatch.setattr(device_stream, "give_back_memory", lambda: None)
    monkeypatch.setattr(device_stream, "is_out_of_memory", lambda error: isinstance(error, OutOfMemory))
    for module in (device_stream, device_batches):
        monkeypatch.setattr(module, "free_memory", lambda: made_up.free)
    monkeypatch.setattr(device_stream, "LARGEST_BATCH", 100)
    monkeypatch.setattr(device_stream, "LEAST_BATCH", 20)
    monkeypatch.setattr(device_batches, "_told", set())
    return made_up


def works(sizes: list[int]) -> Iterator[Work]:
    first = 0
    for size in sizes:
        yield Work(first, size)
        first += size


def source(pieces: Iterator[Work], weight: int = 1) -> Source[Work]:
    return Source(pieces, lambda work: work.count, lambda work: weight, lambda work: 10 * weight)


def stream(devices: Devices, sizes: list[int], numbers: tuple[int, ...] = (0,), **options: Any) -> list[int]:
    options.setdefault("watch", Stopwatch())
    return list(stream_batches(source(works(sizes)), devices.start, devices=numbers, **options))


def no_threads_left() -> bool:
    return threading.active_count() == 1 or not [
        thread for thread in threading.enumerate() if "serve" in thread.name
    ]  # fmt: skip


@pytest.mark.parametrize("numbers", [(0,), (0, 3), (0, 1, 2)])
@pytest.mark.parametrize("sizes", [[], [0], [1], [0, 5, 0, 7, 0], [13] * 80, [1000], [3, 250, 1, 99, 100, 101]])
def test_results_come_in_the_order_of_the_works(devices: Devices, numbers: tuple[int, ...], sizes: list[int]) -> None:
    assert stream(devices, sizes, numbers) == list(range(sum(sizes)))
    assert all(size <= 100 for tried in devices.sizes.values() for size in tried)
    assert set(devices.taken.values()) <= {0} and no_threads_left()


def test_a_work_is_cut_only_where_it_is_larger_than_a_batch(devices: Devices) -> None:
    seen: list[Share] = []
    devices.before = lambda number, shares: seen.extend(shares)
    stream(devices, [60, 60, 250, 60])
    seen.sort(key=lambda share: (share.work, share.begin))
    assert [(share.begin, share.end) for share in seen if share.work.count == 60] == [(0, 60)] * 3
    assert [(share.begin, share.end) for share in seen if share.work.count == 250] == [(0, 100), (100, 200), (200, 250)]


def test_long_queries_count_for_many_short_ones(devices: Devices) -> None:
    """Of 30 each, three make a batch; one of 250 is a batch of its own. So it is where memory decides."""
    for weight, largest in ((30, 3), (250, 1)):
        devices.sizes.clear()
        assert list(stream_batches(source(works([7] * 9), weight), devices.start, watch=Stopwatch())) == list(range(63))
        assert max(devices.sizes[0]) == largest
    devices.sizes.clear()
    devices.free = 2 * 2 * 10 * 60
    assert list(stream_batches(source(works([7] * 9), 30), devices.start, watch=Stopwatch())) == list(range(63))
    assert max(devices.sizes[0]) == 2


def test_a_busy_device_waits_for_a_batch_that_is_worth_while(devices: Devices) -> None:
    """The first work is run at once. The next, of 8 queries each, come while it is: they wait until they are 20."""
    busy, go_on = threading.Event(), threading.Event()

    def before(number: int, shares: list[Share]) -> None:
        if shares[0].work.first == 0:
            busy.set()
            assert go_on.wait(WAIT)

    def pieces() -> Iterator[Work]:
        for work in works([8] * 6):
            if work.first == 8:
                assert busy.wait(WAIT)
            if work.first == 40:
                go_on.set()
            elif work.first > 0:
                time.sleep(0.02)  # a thread that did not wait would take it now
            yield work

    devices.before = before
    results = stream_batches(source(pieces()), devices.start, watch=Stopwatch())
    assert list(results) == list(range(48))
    assert devices.sizes[0][0] == 8 and min(devices.sizes[0][1:-1], default=20) >= 20


def test_two_batches_are_on_a_device_at_once(devices: Devices) -> None:
    meet = threading.Barrier(2, timeout=WAIT)
    devices.before = lambda number, shares: meet.wait() and None
    assert stream(devices, [100, 100]) == list(range(200))
    assert devices.most_at_once == 200


def test_all_devices_take_part(devices: Devices) -> None:
    """Each waits, in its first batches, until the others have some too; what counts is the slowest device's time."""
    meet = threading.Barrier(6, timeout=WAIT)
    devices.before = lambda number, shares: meet.wait() and None
    watch = Stopwatch()
    assert stream(devices, [100] * 6, (0, 1, 5), watch=watch) == list(range(600))
    assert devices.sizes == {0: [100, 100], 1: [100, 100], 5: [100, 100]}
    assert watch.seconds == {"kernel": 2.0}


def test_little_memory_makes_batches_smaller_and_is_told_once(
    devices: Devices, capsys: pytest.CaptureFixture[str]
) -> None:
    devices.free = 2 * 2 * 10 * 15
    for _ in range(2):
        assert stream(devices, [40, 40]) == list(range(80))
    assert max(devices.sizes[0]) == 15
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "GPU 0" in told and "15 queries" in told


def test_batches_that_fail_go_on_alone_and_in_halves(devices: Devices, capsys: pytest.CaptureFixture[str]) -> None:
    """A device holds 30 queries, whatever their number at once; the estimate sees plenty."""
    devices.largest = 30
    assert stream(devices, [7] * 100) == list(range(700))
    assert devices.most_at_once <= 30 and devices.taken == {0: 0}
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "GPU 0 is short of memory" in told


def test_many_results_wait_on_the_device(devices: Devices) -> None:
    """While the first result is not taken, a batch has CHUNKS_AHEAD chunks on the host; then batches get smaller."""
    devices.per_chunk = 2
    results = stream_batches(source(works([100] * 30)), devices.start, watch=Stopwatch())
    assert next(results) == 0
    deadline = time.monotonic() + WAIT
    while len(devices.sizes[0]) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    # Two batches are on the device, none is through: 4 chunks of 2 are on the host for 50 each.
    assert devices.sizes[0] == [100, 100] and devices.taken[0] == 200
    assert list(results) == list(range(1, 3000))
    assert max(devices.sizes[0][6:]) <= 16


def test_devices_do_not_run_far_ahead_of_a_slow_one(devices: Devices) -> None:
    """The first batch takes as long as the other threads have anything to do; its results are the first to go out."""
    ran_ahead: list[int] = []

    def before(number: int, shares: list[Share]) -> None:
        if shares[0].work.first == 0:
            seen = -1
            while seen < (now := sum(map(len, devices.sizes.values()))):
                seen = now
                time.sleep(0.2)
            ran_ahead.append(seen)

    devices.before = before
    assert stream(devices, [20] * 200, (0, 1)) == list(range(4000))
    assert ran_ahead[0] <= 8


def test_a_batch_that_needs_memory_is_not_kept_waiting_by_one_behind_it(devices: Devices) -> None:
    """The second batch holds memory and has more results than the host takes; the first finds no memory beside it."""
    devices.per_chunk = 1
    devices.largest = 150
    second = threading.Event()

    def pieces() -> Iterator[Work]:
        yield Work(0, 100)
        yield Work(100, 100)

    def start(watch: Stopwatch) -> Callable[[list[Share]], Iterator[list[int]]]:
        run = devices.start(watch)

        def in_turn(shares: list[Share]) -> Iterator[list[int]]:
            if shares[0].work.first == 0:
                assert second.wait(WAIT)
                return run(shares)
            chunks = run(shares)
            second.set()
            return chunks

        return in_turn

    assert list(stream_batches(source(pieces()), start, watch=Stopwatch())) == list(range(200))
    assert devices.sizes[0] == [100, 100, 100]


def test_one_query_that_does_not_fit_is_refused(devices: Devices) -> None:
    devices.largest = 0
    with pytest.raises(MemoryLimitError, match="One query"):
        stream(devices, [5, 5])
    assert devices.sizes[0][-1] == 1 and no_threads_left()


def test_a_work_that_fails_ends_the_stream_behind_the_results_before_it(devices: Devices) -> None:
    def pieces() -> Iterator[Work]:
        yield from works([30, 30, 30])
        raise KeyError("piece 4")

    results = stream_batches(source(pieces()), devices.start, watch=Stopwatch())
    assert [next(results) for _ in range(90)] == list(range(90))
    with pytest.raises(KeyError, match="piece 4"):
        next(results)
    assert no_threads_left()


@pytest.mark.parametrize("numbers", [(0,), (0, 1)])
def test_an_error_on_a_device_ends_the_stream(devices: Devices, numbers: tuple[int, ...]) -> None:
    def before(number: int, shares: list[Share]) -> None:
        if any(share.work.first >= 500 for share in shares):
            raise ZeroDivisionError

    devices.before = before
    with pytest.raises(ZeroDivisionError):
        stream(devices, [20] * 100, numbers)
    assert no_threads_left()


def test_a_device_that_cannot_start_ends_the_stream(devices: Devices) -> None:
    def start(watch: Stopwatch) -> Any:
        if devices.current.number == 1:
            raise ConnectionError("no such device")
        return devices.start(watch)

    with pytest.raises(ConnectionError):
        list(stream_batches(source(works([20] * 100)), start, watch=Stopwatch(), devices=(0, 1)))
    assert no_threads_left()


@pytest.mark.parametrize("per_chunk", [1, 1000])
def test_a_consumer_may_stop_early(devices: Devices, per_chunk: int) -> None:
    devices.per_chunk = per_chunk
    taken: list[int] = []

    def pieces() -> Iterator[Work]:
        for work in works([10] * 10_000):
            taken.append(work.first)
            yield work

    results = stream_batches(source(pieces()), devices.start, watch=Stopwatch(), devices=(0, 1))
    assert [next(results) for _ in range(150)] == list(range(150))
    results.close()
    assert no_threads_left() and set(devices.taken.values()) == {0}
    assert len(taken) < 300


def test_nothing_runs_before_the_first_result_is_asked_for(devices: Devices) -> None:
    results = stream_batches(source(works([10])), devices.start, watch=Stopwatch())
    assert devices.sizes == {} and no_threads_left()
    assert list(results) == list(range(10))

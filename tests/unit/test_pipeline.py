"""Tasks on several threads: results in order, what did not fit right behind, mistakes in their place, no hanging."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator

import pytest
from warpseed.compute.pipeline import GivenUp, behind, check_wanted, fed, mapped, ordered

THREADS = pytest.mark.parametrize("threads", [1, 2, 5])


def halved(task: tuple[int, int]) -> tuple[list[int], Iterable[tuple[int, int]] | None]:
    """Numbers [first, last): three at once, the rest in halves."""
    first, last = task
    time.sleep(0.0005 * (first % 3))
    stop = min(first + 3, last)
    if stop == last:
        return list(range(first, last)), None
    middle = (stop + last) // 2
    return list(range(first, stop)), [part for part in ((stop, middle), (middle, last)) if part[0] < part[1]]


@THREADS
def test_a_rest_comes_right_behind_what_was_done(threads: int) -> None:
    tasks = [(0, 50), (50, 51), (51, 51), (51, 90)]
    assert [number for part in ordered(tasks, halved, threads) for number in part] == list(range(90))
    assert list(ordered([], halved, threads)) == []


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_wait_for_the_first_of_a_rest(threads: int) -> None:
    """While a task of a rest takes long, the others go on with as many more, and with what comes behind them."""
    reached = threading.Event()

    def run(task: tuple[int, int]) -> tuple[bool, Iterable[tuple[int, int]] | None]:
        kind, number = task
        if kind == 0:
            return True, ((1, part) for part in range(3 * threads)) if number == 0 else None
        if number == 0:
            return reached.wait(20), None
        if number == 2 * threads - 1:
            reached.set()
        return True, None

    assert all(ordered(((0, number) for number in range(3)), run, threads))


@THREADS
def test_tasks_are_taken_a_few_ahead(threads: int) -> None:
    taken = []

    def tasks() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    results = ordered(tasks(), lambda number: (number, None), threads)
    assert [next(results), next(results)] == [0, 1]
    assert len(taken) <= 2 + 3 * threads
    results.close()  # type: ignore[attr-defined]


@THREADS
def test_a_mistake_comes_in_its_place(threads: int) -> None:
    def run(number: int) -> tuple[int, None]:
        if number >= 3:
            raise ValueError(f"at {number}")
        time.sleep(0.002)
        return number, None

    results = ordered(range(100), run, threads)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="at 3"):
        next(results)


def test_what_is_fed_comes_while_the_next_task_is_waited_for() -> None:
    more = threading.Event()

    def tasks() -> Iterator[int]:
        yield 1
        assert more.wait(10)
        yield 2

    results = fed(tasks(), lambda number: -number, 2)
    assert next(results) == -1
    more.set()
    assert list(results) == [-2]


def test_what_feeds_may_fail_and_may_be_left() -> None:
    closed = []

    def tasks() -> Iterator[int]:
        try:
            yield from range(5)
            raise KeyError("tasks")
        finally:
            closed.append(threading.current_thread() is not threading.main_thread())

    results = fed(tasks(), lambda number: number, 2)
    with pytest.raises(KeyError, match="tasks"):
        assert list(results) == "never"
    results = fed(tasks(), lambda number: number, 1)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert closed == [True, True]
    assert not [thread for thread in threading.enumerate() if "warpseed" in thread.name]


def test_what_is_taken_behind_is_taken_in_order_and_whole() -> None:
    taken: list[tuple[int, int]] = []
    with behind(lambda task: taken.append((task, threading.get_ident()))) as put:
        for task in range(50):
            put(task)
    assert [task for task, _ in taken] == list(range(50))
    assert {thread for _, thread in taken} != {threading.get_ident()}


def test_a_mistake_behind_is_raised_with_a_later_task_or_at_the_end() -> None:
    taken: list[int] = []

    def take(task: int) -> None:
        if task == 3:
            raise ValueError("no room")
        taken.append(task)

    with pytest.raises(ValueError, match="no room"), behind(take) as put:
        for task in range(1000):
            put(task)
        raise AssertionError("a thousand tasks were handed over behind a failure")
    with pytest.raises(ValueError, match="no room"), behind(take) as put:
        put(3)
    assert taken == [0, 1, 2]


def test_what_waits_behind_is_given_up_where_the_block_fails() -> None:
    begun, go_on, taken = threading.Event(), threading.Event(), []

    def take(task: int) -> None:
        begun.set()
        go_on.wait(10)
        taken.append(task)

    with pytest.raises(KeyError, match="elsewhere"), behind(take) as put:
        for task in range(3):
            put(task)
        begun.wait(10)
        threading.Timer(0.05, go_on.set).start()
        raise KeyError("elsewhere")
    assert taken == [0]


def test_a_task_that_nobody_waits_for_can_tell() -> None:
    """One fails; another, which goes on until it is given up, and a third that it has begun, end soon."""
    going = threading.Barrier(3, timeout=10)
    ended = []

    def go_on(name: str) -> None:
        going.wait()
        try:
            while True:
                check_wanted()
                time.sleep(0.001)
        except GivenUp:
            ended.append(name)
            raise

    def run(task: int) -> None:
        if task == 0:
            going.wait()
            raise ValueError("the first one fails")
        list(mapped([0, 1], lambda inner: go_on("inner") if inner else None, 2)) if task == 1 else go_on("outer")

    with pytest.raises(ValueError, match="the first one fails"):
        list(mapped(range(3), run, 3))
    assert sorted(ended) == ["inner", "outer"]
    check_wanted()  # a thread that belongs to nothing is wanted


def test_what_is_at_work_behind_gives_up_where_the_block_fails() -> None:
    begun, ended = threading.Event(), []

    def take(task: int) -> None:
        begun.set()
        try:
            for _ in range(10_000):
                # Threads that a task begins belong to it.
                list(mapped(range(2), lambda _: check_wanted(), 2))
                time.sleep(0.001)
        except GivenUp:
            ended.append(task)
            raise

    with pytest.raises(KeyError, match="elsewhere"), behind(take) as put:
        put(7)
        assert begun.wait(10)
        raise KeyError("elsewhere")
    assert ended == [7]


def test_a_signal_while_what_is_behind_is_waited_for_gives_it_up() -> None:
    ended = []

    def take(task: int) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        try:
            for _ in range(10_000):
                check_wanted()
                time.sleep(0.001)
        except GivenUp:
            ended.append(task)
            raise

    def stop(number: int, frame: object) -> None:
        raise KeyError("stopped")

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with pytest.raises(KeyError, match="stopped"), behind(take, 1) as put:
            put(7)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert ended == [7]

"""Copies by threads that need nothing of Python: what was asked for, all of it, whoever else asks or is interrupted."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.slow_copies import SlowCopies
from warpseed.compute import host_copies
from warpseed.compute.host_copies import HostCopies

LIBRARY = str(Path(host_copies.__file__).parents[2])


@pytest.fixture(autouse=True)
def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_copies, "_LEAST_SHARED", 16)


def drawn(size: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 4097, 1_000_003])
@pytest.mark.parametrize("threads", [1, 2, 3, 200])
@pytest.mark.parametrize("first", [0, 3])
def test_all_is_copied_and_nothing_beside_it(size: int, threads: int, first: int) -> None:
    value, out = drawn(size + 9), np.full(size + 9, 77, np.uint8)
    copies = HostCopies()
    copies.begin(out[first : first + size], value[first : first + size], threads)
    copies.wait()
    assert np.array_equal(out[first : first + size], value[first : first + size])
    assert (out[:first] == 77).all() and (out[first + size :] == 77).all()


@pytest.mark.parametrize("dtype", [np.uint64, np.float32])
def test_numbers_of_any_kind_and_order(dtype: Any) -> None:
    """Rows as they lie; what has gaps, or becomes another kind, by NumPy."""
    value = drawn(6000).astype(dtype).reshape(60, 100)
    copies, outs = HostCopies(), [np.zeros_like(value) for _ in range(3)]
    copies.begin(outs[0], value, 4)
    copies.begin(outs[1][::2], value[::2], 4)
    copies.begin(outs[2], value.astype(np.uint8), 4)
    copies.wait()
    assert np.array_equal(outs[0], value) and np.array_equal(outs[2], value)
    assert np.array_equal(outs[1][::2], value[::2]) and not outs[1][1::2].any()


def test_more_copies_than_the_pipe_takes() -> None:
    """It is full long before: whoever asks waits until threads have taken some."""
    value, out = drawn(400_000), np.zeros(400_000, np.uint8)
    copies = HostCopies()
    for first in range(0, 400_000, 100):
        copies.begin(out[first : first + 100], value[first : first + 100], 6)
    copies.wait()
    assert np.array_equal(out, value)


def test_many_wait_at_once() -> None:
    """Each for its own copies, again and again."""
    wrong: list[int] = []

    def copy_some(number: int) -> None:
        draw, copies = random.Random(number), HostCopies()
        for turn in range(60):
            values = [drawn(draw.randrange(5000), turn) for _ in range(draw.randrange(4))]
            outs = [np.zeros_like(value) for value in values]
            for value, out in zip(values, outs, strict=True):
                copies.begin(out, value, draw.randrange(1, 9))
            copies.wait()
            if not all(map(np.array_equal, values, outs)) or copies._begun.held:
                wrong.append(number)

    threads = [threading.Thread(target=copy_some, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_who_is_interrupted_may_wait_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the counter had been read by then: it says nothing, the counts do."""
    slow, read = SlowCopies(monkeypatch), os.eventfd_read
    value, out = drawn(900), np.zeros(900, np.uint8)
    copies = HostCopies()
    with monkeypatch.context() as patch:

        def read_and_stop(event: int) -> None:
            read(event)
            raise KeyboardInterrupt

        patch.setattr(os, "eventfd_read", read_and_stop)
        copies.begin(out, value, 4)
        with pytest.raises(KeyboardInterrupt):
            copies.wait()
        assert not slow.are_done()
    copies.wait()
    assert np.array_equal(out, value) and not host_copies._unfinished
    slow.end()


def test_a_signal_whose_handler_returns_ends_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowCopies(monkeypatch, 0.02)
    value, out = drawn(900), np.zeros(900, np.uint8)
    came: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: came.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
    try:
        copies = HostCopies()
        copies.begin(out, value, 5)
        copies.wait()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert np.array_equal(out, value) and len(came) > 5
    slow.end()


def test_what_nobody_waits_for_stays_until_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays and counts; what wakes the one who waits then serves others, and is not closed."""
    gc.collect()
    slow = SlowCopies(monkeypatch)
    value, out = drawn(5000), np.zeros(5000, np.uint8)
    kept = weakref.ref(value)
    copies = HostCopies()
    event = copies._begun.event
    copies.begin(out, value, 5)
    del copies, value
    gc.collect()
    assert kept() is not None and event not in host_copies._idle and not slow.are_done()
    while not slow.are_done():
        time.sleep(0.01)
    time.sleep(0.05)
    others = [HostCopies() for _ in range(len(host_copies._idle) + 2)]
    assert kept() is None and np.array_equal(out, drawn(5000)) and not host_copies._unfinished
    assert event in {other._begun.event for other in others} and os.fstat(event)
    slow.end()


@pytest.mark.parametrize("waited", [True, False])
def test_given_up_and_done(waited: bool) -> None:
    gc.collect()
    value, out = drawn(5000), np.zeros(5000, np.uint8)
    copies = HostCopies()
    event = copies._begun.event
    copies.begin(out, value, 5)
    if waited:
        copies.wait()
    while copies._begun.left:
        time.sleep(0.001)
    del copies
    gc.collect()
    assert list(host_copies._idle).count(event) == 1 and not host_copies._unfinished
    assert np.array_equal(out, value)


RUNNING = """
import numpy as np
from warpseed.compute.host_copies import HostCopies
value, out = np.ones(1 << 28, np.uint8), np.ones(1 << 28, np.uint8)
copies = HostCopies()
copies.begin(out, value, 4)
copies.wait()
copies.begin(out, value, 4)
"""


ANOTHER_WAITS = """
import threading, time
threading.Thread(target=copies.wait, daemon=True).start()
time.sleep(0.005)
"""


@pytest.mark.parametrize(
    "end", ["", "raise SystemExit(0)", "del copies, value, out", "copies = None", *[ANOTHER_WAITS] * 6]
)
def test_a_process_ends_while_copies_run(end: str) -> None:
    """As it should, and not by a fault of what has gone under the threads' hands."""
    python = [sys.executable, "-X", "dev", "-c", RUNNING + end]
    done = subprocess.run(
        python, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": LIBRARY}
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_threads_cannot_load_is_the_callers_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError("no room for code")

    monkeypatch.setattr(host_copies, "_copy_what_comes", fail)
    before = threading.active_count()
    with pytest.raises(MemoryError, match="no room"):
        host_copies._started.__wrapped__()
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [1, 4])
def test_what_cannot_be_copied_is_refused(threads: int) -> None:
    """By NumPy, and nothing is written, however many threads there are."""
    value, out = drawn(4000), np.zeros(4000, np.uint8)
    out.flags.writeable = False
    copies = HostCopies()
    for wrong in (out, np.zeros(3000, np.uint8)):
        with pytest.raises(ValueError, match=r"read-only|broadcast"):
            copies.begin(wrong, value, threads)
        assert not wrong.any()
    objects = np.array([[]] * 400 + [[1]], object)
    copied = np.empty_like(objects)
    copies.begin(copied, objects, threads)
    copies.wait()
    assert copied.tolist() == objects.tolist()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_has_threads_of_its_own() -> None:
    """It shares neither the pipe nor what wakes its parent."""
    value, out = drawn(100_000), np.zeros(100_000, np.uint8)
    parent, idle = HostCopies(), HostCopies()
    parent.begin(out, value, 2)
    parent.wait()
    del idle
    gc.collect()
    assert host_copies._idle
    child = os.fork()
    if not child:
        signal.alarm(30)
        try:
            is_own = not host_copies._idle
            copies = HostCopies()
            copies.begin(out, drawn(100_000, 2), 2)
            copies.wait()
            os._exit(0 if is_own and np.array_equal(out, drawn(100_000, 2)) else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert np.array_equal(out, value)
    out[:] = 0
    parent.begin(out, value, 2)
    parent.wait()
    assert np.array_equal(out, value)


def test_signals_do_not_stop_threads() -> None:
    """Neither those that copy, which a signal would wake in vain, nor the one that asks."""
    value, out = drawn(4_000_000), np.zeros(4_000_000, np.uint8)
    came: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: came.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        copies = HostCopies()
        for turn in range(200):
            out[:] = turn
            for first in range(0, 4_000_000, 500_000):
                copies.begin(out[first : first + 500_000], value[first : first + 500_000], 64)
            copies.wait()
            assert np.array_equal(out, value)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(came) > 10


def test_a_pipe_that_is_closed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no copy that was begun is left, so that nobody waits for it."""
    reader, pipe = os.pipe()
    os.close(reader), os.close(pipe)
    monkeypatch.setattr(host_copies, "_pipe_to_threads", lambda: pipe)
    copies = HostCopies()
    with pytest.raises(OSError, match="Bad file descriptor"):
        copies.begin(np.zeros(100, np.uint8), drawn(100), 3)
    copies.wait()


def test_threads_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have begun end, and nothing is asked for."""
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def start_one(thread: threading.Thread) -> None:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(host_copies, "usable_cores", lambda: 4)
    monkeypatch.setattr(threading.Thread, "start", start_one)
    files = len(os.listdir("/proc/self/fd"))
    with pytest.raises(RuntimeError, match="new thread"):
        host_copies._started.__wrapped__()
    assert not started[0].is_alive() and len(os.listdir("/proc/self/fd")) == files

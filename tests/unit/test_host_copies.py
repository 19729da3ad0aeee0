"""Copies by threads that need nothing of Python: what was asked for, all of it, whoever else asks or is interrupted."""

from __future__ import annotations

import gc
import os
import random
import threading
from typing import Any

import numpy as np
import pytest
from warpseed.compute import host_copies
from warpseed.compute.host_copies import HostCopies


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
            if not all(map(np.array_equal, values, outs)) or copies._held:
                wrong.append(number)

    threads = [threading.Thread(target=copy_some, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_who_is_interrupted_may_wait_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the counter had been read by then: it says nothing, the counts do."""
    value, out = drawn(3_000_000), np.zeros(3_000_000, np.uint8)
    copies, read = HostCopies(), os.eventfd_read

    def read_and_stop(event: int) -> None:
        read(event)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "eventfd_read", read_and_stop)
    monkeypatch.setattr(host_copies, "_left", lambda *_: 1)  # (as if it were asked before the last is done)
    copies.begin(out, value, 3)
    with pytest.raises(KeyboardInterrupt):
        copies.wait()
    copies.wait()
    assert np.array_equal(out, value)


def test_what_nobody_waits_for_is_done_before_it_goes() -> None:
    """What wakes it serves others then, and is not closed."""
    gc.collect()
    value, out = drawn(2_000_000), np.zeros(2_000_000, np.uint8)
    before = set(host_copies._idle)
    copies = HostCopies()
    event = copies._event
    copies.begin(out, value, 5)
    del copies
    gc.collect()
    assert np.array_equal(out, value) and event in host_copies._idle
    assert {HostCopies()._event for _ in range(len(before) + 1)} >= {event} and os.fstat(event)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_has_threads_of_its_own() -> None:
    """It shares neither the pipe nor what wakes its parent."""
    value, out = drawn(100_000), np.zeros(100_000, np.uint8)
    parent, idle = HostCopies(), HostCopies()
    parent.begin(out, value, 2)
    parent.wait()
    del idle
    child = os.fork()
    if not child:
        copies = HostCopies()
        copies.begin(out, drawn(100_000, 2), 2)
        copies.wait()
        os._exit(0 if np.array_equal(out, drawn(100_000, 2)) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert np.array_equal(out, value)
    out[:] = 0
    parent.begin(out, value, 2)
    parent.wait()
    assert np.array_equal(out, value)


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
    with pytest.raises(RuntimeError, match="new thread"):
        host_copies._Copiers()
    started[0].join(60)
    assert not started[0].is_alive()

"""What ends the way of a stream through GPUs: memory that is short, interrupts, devices and threads that fail.

Nothing is on its way then to memory that is given up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles import pretend_cupy
from oracles.pretend_cupy import OutOfMemoryError, PretendCupy
from oracles.slow_copies import SlowCopies
from streams_on_gpus import NONE, K, noted, play, stream
from warpseed.compute.host_copies import HostCopies
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import DeviceError, MemoryLimitError
from warpseed.tree_bitmap import cpu, gpu, gpu_flight, gpu_rooms, gpu_table
from warpseed.tree_bitmap.gpu_flight import Flight
from warpseed.tree_bitmap.gpu_memory import Need


@pytest.fixture(autouse=True)
def played(monkeypatch: pytest.MonkeyPatch) -> PretendCupy:
    return play(monkeypatch)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowCopies]:
    copies = SlowCopies(monkeypatch, 0.003)
    yield copies
    copies.end()


@pytest.mark.parametrize("locked", [False, True])
def test_what_was_taken_is_the_callers_again(monkeypatch: pytest.MonkeyPatch, slow: SlowCopies, locked: bool) -> None:
    """However long the threads that copy take; and what has been answered is there."""
    monkeypatch.setattr(gpu_flight, "is_locked", lambda array: locked)
    codes, answers = stream(2100), np.full(2100, 77, np.uint8)
    expected, _ = cpu.find_answers(codes, K, watch=Stopwatch())
    told = []
    with Flight([0], Need.of(K, len(codes)), NONE, threads=3) as flight:
        flight.take(codes[:0], answers)
        for part in np.split(codes, [100, 650, 1300, 1900]):
            given = part.copy()
            flight.take(given)
            given[...] = 4
            told.append(flight.answered)
            assert answers[: told[-1]].tolist() == expected[: told[-1]].tolist()
        flight.end()
    assert answers.tolist() == expected.tolist() and 0 < told[-1] < 2100


def test_memory_that_is_short_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends in a sentence, when all that was on its way has come."""
    flights: list[Any] = []
    noted(monkeypatch, Flight, "__init__", lambda flight, *_: flights.append(flight))
    searched: list[int] = []

    def fail(self: Any, *_: Any) -> None:
        searched.append(1)
        if len(searched) == 6:
            raise OutOfMemoryError("out of memory allocating 5 bytes")

    noted(monkeypatch, gpu_table.DeviceKmers, "search", fail)
    with pytest.raises(MemoryLimitError, match="memory does not suffice"):
        gpu.find_answers(stream(), K, devices=(0, 1), threads=3, watch=Stopwatch())
    [flight] = flights
    assert not any(lane._filling._begun.held for lane in flight._lanes)
    assert all_are_idle(flight)


def all_are_idle(flight: Flight) -> bool:
    """Whether all that takes memory was waited for."""
    rooms = [room for block in flight._blocks for room in block.rooms]
    assert len(rooms) == 3 * len(flight.kmers)
    return all(room.copies.waited for room in rooms) and not flight._copying._begun.held


@pytest.mark.parametrize("landing", range(1, 7))
@pytest.mark.parametrize("locked", [False, True])
def test_an_interrupt_while_the_host_waits(
    monkeypatch: pytest.MonkeyPatch, slow: SlowCopies, landing: int, locked: bool
) -> None:
    """All devices are idle when it is told, and what was taken has been read."""
    monkeypatch.setattr(gpu_flight, "is_locked", lambda array: locked)
    flights: list[Any] = []
    noted(monkeypatch, Flight, "__init__", lambda flight, *_: flights.append(flight))
    landed: list[int] = []

    def interrupt(*_: Any) -> None:
        landed.append(1)
        if len(landed) == landing:
            raise KeyboardInterrupt

    noted(monkeypatch, gpu_rooms.Room, "land", interrupt)
    with pytest.raises(KeyboardInterrupt):
        gpu.find_answers(stream(), K, devices=(0, 1), threads=3, watch=Stopwatch())
    assert all_are_idle(flights[0])


@pytest.mark.parametrize("call", [1, 2, 5, 7, 8])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_while_devices_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, call: int, error: type[BaseException]
) -> None:
    """At the end: all others are waited for, and what was interrupted again."""
    flight, calls = Flight((0, 1), Need.of(K, 4000), NONE, threads=3), list[pretend_cupy.Stream]()
    synchronize = pretend_cupy.Stream.synchronize

    def fail(stream: pretend_cupy.Stream) -> None:
        calls.append(stream)
        if len(calls) == call:
            raise error
        synchronize(stream)

    with pytest.raises(error), flight:
        flight.take(stream())
        monkeypatch.setattr(pretend_cupy.Stream, "synchronize", fail)
    rooms = [room.copies for block in flight._blocks for room in block.rooms]
    missed = [copies for copies in rooms if not copies.waited]
    assert len(missed) <= (error is ValueError)


@pytest.mark.parametrize("what", ["pinned memory", "where memory lies", "waiting"])
def test_an_error_of_the_device_has_a_sentence(monkeypatch: pytest.MonkeyPatch, played: PretendCupy, what: str) -> None:
    """Wherever the host asks for something there."""

    class CUDARuntimeError(Exception):
        __module__ = "cupy_backends.cuda.api.runtime"

    def fail(*_: Any) -> None:
        raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")

    place: Any = {
        "pinned memory": played.cuda,
        "where memory lies": played.cuda.runtime,
        "waiting": pretend_cupy.Stream,
    }
    name = {
        "pinned memory": "alloc_pinned_memory",
        "where memory lies": "pointerGetAttributes",
        "waiting": "synchronize",
    }
    monkeypatch.setattr(place[what], name[what], fail)
    with pytest.raises(DeviceError, match="cannot be used"):
        gpu.find_answers(stream(), K, devices=(0, 1), threads=3, watch=Stopwatch())


@pytest.mark.parametrize("most", range(1, 12))
def test_copies_that_are_cut_short_are_waited_for(monkeypatch: pytest.MonkeyPatch, slow: SlowCopies, most: int) -> None:
    """Where one cannot begin, as no thread can, those before it end before what they copy goes."""
    begun: list[int] = []
    begin = HostCopies.begin

    def begin_some(copies: HostCopies, *given: Any) -> None:
        if len(begun) == most:
            raise RuntimeError("can't start new thread")
        begun.append(1)
        begin(copies, *given)

    monkeypatch.setattr(HostCopies, "begin", begin_some)
    with pytest.raises(RuntimeError, match="new thread"):
        gpu.find_answers(stream(), K, threads=3, watch=Stopwatch())
    assert len(begun) == most and slow.are_done()

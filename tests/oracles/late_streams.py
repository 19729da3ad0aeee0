"""Streams of devices that are late: what is put on one runs when somebody waits for it, in any order that waits allow.

Each use of a device's memory is compared with those before: two that nothing puts in order, of which one writes, are a
race, whatever came first here. (Vector clocks tell what is in order; so is what the host launches behind a wait.) CuPy
keeps memory that nobody holds any more for others on the stream that it was taken on: there it is overwritten, and what
is taken may be overwritten on that stream still.
"""

from __future__ import annotations

import random
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

__all__ = ["ORDERS", "Event", "LateDevices", "LateStream", "Memory", "Use"]

_Clock: TypeAlias = "dict[int, int]"
"""Of each stream, by its number, how much of what was put on it comes before."""

AT_ONCE, WHEN_WAITED_FOR = "at once", "when waited for"
_LAST: dict[str, Callable[[LateStream], int]] = {
    "any": lambda stream: 0,
    "searches last": lambda stream: stream.priority == 0,
    "copies last": lambda stream: stream.priority < 0,
    "first devices last": lambda stream: -stream.device,
}
"""Of the streams that may go on one goes of which this is least."""
ORDERS = (AT_ONCE, WHEN_WAITED_FOR, *_LAST)
"""In which what was put on streams may run."""
_GOES_ON = 0.3
"""How often something runs before anybody waits, where it may."""
_NEW, _FREED = 0xAB, 0xCD
"""Bytes of memory that was taken, and that was given up, as others leave them."""


def _join(clock: _Clock, other: _Clock) -> None:
    for number, count in other.items():
        clock[number] = max(clock.get(number, 0), count)


class Use(NamedTuple):
    """Bytes of a device's memory that something reads or writes."""

    memory: Memory
    first: int
    last: int
    writes: bool


class _Used(NamedTuple):
    """A use of memory that was put on a stream, and what it was for."""

    first: int
    last: int
    writes: bool
    stream: LateStream
    turn: int
    """how much had been put on the stream, with this"""
    what: str


class Work(NamedTuple):
    """What stands on a stream."""

    run: Callable[[], object] | None
    wait: Event | None
    """what has to come before"""
    event: Event | None
    """what has come then"""


class Event:
    """A place on a stream."""

    def __init__(self, devices: LateDevices) -> None:
        self._devices = devices
        self.stream: LateStream | None = None
        self.has_come = False
        self.clock: _Clock = {}

    def record(self) -> None:
        self._devices.current_stream().record(self)

    def synchronize(self) -> None:
        assert self.stream is not None
        self._devices.wait(lambda: self.has_come, self.stream, self.clock)


class LateStream:
    """What was put on a stream, and has not run."""

    def __init__(self, devices: LateDevices, device: int, priority: int = 0) -> None:
        self._devices, self.device = devices, device
        self.priority = priority
        self.ptr = id(self)
        self.work: deque[Work] = deque()
        self.count = 0
        """how much has been put here"""
        self.clock: _Clock = {}
        """of what was put here last"""
        with devices.lock:
            self.number = len(devices.streams)
            devices.streams.append(self)

    def __str__(self) -> str:
        return f"stream {self.number} of device {self.device}"

    def __enter__(self) -> LateStream:
        if self._devices.current_device() != self.device:
            self._devices.problems.append(f"{self} was entered on another device")
        self._devices.entered().append(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._devices.entered().pop()

    @property
    def may_go_on(self) -> bool:
        """Whether something can run here now."""
        return bool(self.work) and (self.work[0].wait is None or self.work[0].wait.has_come)

    def go_on(self) -> None:
        """Run what stands first."""
        run, _, event = self.work.popleft()
        if run is not None:
            run()
        if event is not None:
            event.has_come = True

    def record(self, event: Event | None = None) -> Event:
        event = event or Event(self._devices)
        event.stream, event.has_come = self, False
        self._devices.put(self, Work(None, None, event))
        return event

    def wait_event(self, event: Event) -> None:
        self._devices.put(self, Work(None, event, None))

    def synchronize(self) -> None:
        self._devices.wait(lambda: not self.work, self, self.clock)


class Memory:
    """Memory of the current device, and how it was used so far. Arrays hold it."""

    def __init__(self, devices: LateDevices, size: int) -> None:
        self.devices, self.device, self.stream = devices, devices.current_device(), devices.current_stream()
        self.bytes = np.empty(size, np.uint8)
        self.used: list[_Used] = []
        devices.run(partial(self.bytes.fill, _NEW), "an earlier use of memory", Use(self, 0, size, True))

    def __del__(self) -> None:
        self.devices.freed.append(self)

    def require_current(self, what: str) -> None:
        """Note whether its device is the current one."""
        if self.device != self.devices.current_device():
            self.devices.problems.append(f"{what} has an array of a device that is not current")

    def note(self, now: _Used) -> None:
        """Note a use, the last that was put on its stream, and whether it races with earlier ones."""
        kept = []
        for use in self.used:
            comes_before = now.stream.clock.get(use.stream.number, 0) >= use.turn
            meet = now.first < use.last and use.first < now.last
            if meet and (now.writes or use.writes) and not comes_before:
                self.devices.problems.append(f"race: {now.what} on {now.stream}, {use.what} on {use.stream}")
            # (What comes behind one that writes over another comes behind that, too.)
            if not (comes_before and now.writes and now.first <= use.first and use.last <= now.last):
                kept.append(use)
        self.used = [*kept, now]


class LateDevices:
    """Devices with their streams, and what the host does there.

    Attributes
    ----------
    problems : what went wrong, in words
    streams : all there are
    freed : memory that nobody holds any more, and that others have not taken

    Parameters
    ----------
    order : of ORDERS
    seed : of what is drawn
    """

    def __init__(self, order: str, seed: int) -> None:
        self._order, self._draw = order, random.Random(seed)
        self.lock = threading.RLock()
        self.problems: list[str] = []
        self.streams: list[LateStream] = []
        self.freed: deque[Memory] = deque()
        self._host_clock: _Clock = {}
        """of what the host has waited for"""
        self._first_streams: dict[int, LateStream] = {}
        """of each device, which is current where none was entered"""
        self._here = threading.local()
        self._locked: list[tuple[int, int, weakref.ref[np.ndarray]]] = []
        """where locked memory of the host begins and ends"""

    # ---- where a thread is

    def current_device(self) -> int:
        return getattr(self._here, "device", 0)

    @contextmanager
    def device(self, number: int) -> Iterator[None]:
        before, self._here.device = self.current_device(), number
        try:
            yield
        finally:
            self._here.device = before

    def entered(self) -> list[LateStream]:
        """Streams of the current device that this thread has entered."""
        all_entered: dict[int, list[LateStream]] = self._here.__dict__.setdefault("entered", {})
        return all_entered.setdefault(self.current_device(), [])

    def current_stream(self) -> LateStream:
        device, entered = self.current_device(), self.entered()
        with self.lock:
            if not entered and device not in self._first_streams:
                self._first_streams[device] = LateStream(self, device)
        return entered[-1] if entered else self._first_streams[device]

    # ---- what runs

    def put(self, stream: LateStream, work: Work, what: str = "", uses: list[Use] | None = None) -> None:
        """Put work on a stream."""
        with self.lock:
            self._overwrite_freed()
            self._append(stream, work, what, uses or [])
            if self._order == AT_ONCE:
                while self._go_on():
                    pass
            elif self._order != WHEN_WAITED_FOR:
                while self._draw.random() < _GOES_ON and self._go_on():
                    pass

    def run(self, run: Callable[[], object], what: str, *uses: Use, stream: LateStream | None = None) -> None:
        """Put a function on a stream, or this thread's."""
        self.put(stream or self.current_stream(), Work(run, None, None), what, list(uses))

    def wait(self, has_come: Callable[[], bool], stream: LateStream, clock: _Clock) -> None:
        """Let the host wait for what comes on a stream."""
        with self.lock:
            self._overwrite_freed()
            while not has_come():
                assert self._go_on(stream), "the host waits for what never comes"
            _join(self._host_clock, clock)

    def finish(self) -> None:
        """Run all that is left."""
        with self.lock:
            self._overwrite_freed()
            while self._go_on():
                pass
            if any(stream.work for stream in self.streams):
                self.problems.append("a stream waits for what never comes")

    def _append(self, stream: LateStream, work: Work, what: str, uses: list[Use]) -> None:
        stream.count += 1
        _join(stream.clock, self._host_clock)
        if work.wait is not None:
            _join(stream.clock, work.wait.clock)
        stream.clock[stream.number] = stream.count
        if work.event is not None:
            work.event.clock = dict(stream.clock)
        for use in uses:
            use.memory.note(_Used(use.first, use.last, use.writes, stream, stream.count, what))
        stream.work.append(work)

    def _overwrite_freed(self) -> None:
        while self.freed:
            memory = self.freed.popleft()
            overwrite = Work(partial(memory.bytes.fill, _FREED), None, None)
            self._append(memory.stream, overwrite, "a later use of memory", [Use(memory, 0, len(memory.bytes), True)])

    def _go_on(self, waited_for: LateStream | None = None) -> bool:
        """Run something, on the stream that is waited for or what that waits for, or on any; whether there was any."""
        if waited_for is not None and self._order == WHEN_WAITED_FOR:
            stream: LateStream | None = waited_for
            while stream is not None and stream.work and not stream.may_go_on:
                event = stream.work[0].wait
                stream = event.stream if event else None
            ready = [stream] if stream is not None and stream.work else []
        else:
            ready = [stream for stream in self.streams if stream.may_go_on]
        if ready:
            rank = _LAST.get(self._order, _LAST["any"])
            least = min(map(rank, ready))
            self._draw.choice([stream for stream in ready if rank(stream) == least]).go_on()
        return bool(ready)

    # ---- the host's memory

    def locked(self, count: int, dtype: Any, *_: Any, **__: Any) -> np.ndarray:
        """As `locked_memory.locked`, however small."""
        array = np.empty(count, dtype)
        array.view(np.uint8)[...] = _NEW
        with self.lock:
            self._locked.append((array.ctypes.data, array.ctypes.data + array.nbytes, weakref.ref(array)))
        return array

    def holder_of(self, address: int, size: int) -> weakref.ref[np.ndarray] | None:
        """The array in locked memory that has some bytes."""
        with self.lock:
            self._locked = [each for each in self._locked if each[2]() is not None]
        fits = (array for first, last, array in self._locked if first <= address and address + size <= last)
        return next(fits, None)

    def is_locked(self, array: np.ndarray) -> bool:
        return self.holder_of(array.ctypes.data, array.nbytes) is not None

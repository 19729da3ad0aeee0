"""Copies within the host's memory, by threads that need nothing of Python while they work.

A thread of Python that has slept goes on when the interpreter lets it, and another that is busy there keeps it for
milliseconds, in which tens of megabytes could be copied. So these threads sleep, copy and tell of it in compiled code:
what they are to copy comes through a pipe, and who waits for it is woken by a counter of the system (eventfd(2)).
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections import deque
from contextlib import suppress
from functools import cache
from typing import Any
from weakref import finalize

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.intrinsics import add_at, copy_memory, read_words, write_words
from warpseed.compute.machine import usable_cores
from warpseed.compute.ranges import spans_of

__all__ = ["HostCopies"]

_LEAST_SHARED = 1 << 19
"""Bytes that a thread copies at least where others do, too."""
_MOST_THREADS = 16
"""Threads that copy at once; more would wait for memory. Jobs for all of them go to the pipe together: 1024 bytes,
which others' do not come between (PIPE_BUF)."""
_JOB_WORDS = 8
"""Words of a job, as many as a cache line has: where to, where from, how many bytes, whose counts, and whom to wake."""
_WORD_BYTES = 8
_ASKED_EVERY = 0.001
"""Seconds, at the end of the process."""


@scalar
def _copy_what_comes(reader, job, one):
    """Copy, job by job, what comes through a pipe, until its end.

    Parameters
    ----------
    reader : number of the pipe's end
    job : uint64[_JOB_WORDS], room for one
    one : uint64[1], 1
    """
    came = int64(1)
    while came > int64(0):
        came = read_words(reader, job)
        if came == int64(_JOB_WORDS * _WORD_BYTES):
            copy_memory(job[0], job[1], job[2])
            # (Whoever sees the last one counted may go, and its counts with it; what wakes it stays: see `_idle`. So
            # what was begun is read before: it may be too few, of which more are done then, never too many.)
            begun = add_at(job[3], uint64(0))
            done = add_at(job[3] + uint64(_WORD_BYTES), uint64(1)) + uint64(1)
            if done >= begun:
                write_words(int64(job[4]), one)


@scalar
def _hand_out(pipe, jobs, counts, done):
    """Put jobs, uint64[n·_JOB_WORDS], n at most _MOST_THREADS, into a pipe, and count them as begun; or none, where
    that fails: then they count as done, too. `done` is the address of counts[1]. Returns whether it went well."""
    begun = uint64(jobs.shape[0] // int64(_JOB_WORDS))
    counts[0] += begun
    if write_words(pipe, jobs) < int64(0):
        # (A thread may have read that they are begun, and wakes nobody before as many are done.)
        add_at(done, begun)
        return False
    return True


def _address_of_done(counts: np.ndarray) -> np.uint64:
    return np.uint64(counts[1:].ctypes.data)


@scalar
def _left(counts, done):
    """How many copies that were begun are not done; `done` is the address of counts[1]."""
    return int64(counts[0] - add_at(done, uint64(0)))


_starting = threading.RLock()


def _pipe_to_threads() -> int:
    """The number of the pipe that threads wait at, which begin with the first copy."""
    with _starting:
        return _started()


@cache
def _started() -> int:
    count = min(_MOST_THREADS, usable_cores())
    rooms = [(np.empty(_JOB_WORDS, np.uint64), np.ones(1, np.uint64)) for _ in range(count)]
    _load(*rooms[0])
    reader, pipe = os.pipe()
    threads: list[threading.Thread] = []
    try:
        for room in rooms:
            thread = threading.Thread(target=_serve, args=(reader, *room), name="copying on the host", daemon=True)
            thread.start()
            threads.append(thread)
    except BaseException:
        os.close(pipe)  # those that have begun end
        for thread in threads:
            thread.join()
        os.close(reader)
        raise
    return pipe


def _load(job: np.ndarray, one: np.ndarray) -> None:
    """Have what the threads run compiled and loaded, and what says whether they are done: what fails then fails here,
    and none of them waits for others that load something."""
    reader, pipe = os.pipe()
    os.close(pipe)
    counts = np.zeros(2, np.uint64)
    try:
        _left(counts, _address_of_done(counts))
        _copy_what_comes(reader, job, one)
    finally:
        os.close(reader)


def _serve(reader: int, job: np.ndarray, one: np.ndarray) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # (one would end a read)
    _copy_what_comes(reader, job, one)


_idle: deque[int] = deque()
"""Numbers of counters that wake nobody now. None is closed: a thread may still be about to count there, and the number
would be another file's."""


class _Begun:
    """Copies that were begun, and what they need until they are done."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.counts = np.zeros(2, np.uint64)
        """copies begun, and done"""
        self.done = _address_of_done(self.counts)
        self.event = _idle_event()
        self.held: list[Any] = []
        """arrays"""
        self.given_up = False
        """whether nobody waits any more"""

    @property
    def left(self) -> int:
        """Copies that are not done."""
        return int(_left(self.counts, self.done))

    def wait(self) -> None:
        """Wait until all are done."""
        while self.left:
            with suppress(InterruptedError):  # (a signal came, whose handler runs next)
                os.eventfd_read(self.event)  # (or what was counted there before, which says nothing)
        self.held.clear()
        _unfinished.pop(id(self), None)


_unfinished: dict[int, _Begun] = {}
"""Those with copies that nobody has waited for, by their identity: what is copied stays until it has been, whoever
gives it up."""


def _idle_event() -> int:
    for begun in list(_unfinished.values()):
        if begun.given_up and not begun.left:
            _let_go(begun)
    try:
        return _idle.popleft()
    except IndexError:
        return os.eventfd(0)


def _let_go(begun: _Begun) -> None:
    """Let what was copied go, and what woke its owner wake others; once, whoever else does it now."""
    if _unfinished.pop(id(begun), None):
        begun.held.clear()
        _idle.append(begun.event)


def _give_up(begun: _Begun) -> None:
    """Called, anywhere, when nobody holds the copies any more."""
    if begun.process != os.getpid():
        return
    if id(begun) not in _unfinished:
        _idle.append(begun.event)
        return
    begun.given_up = True
    if not begun.left:
        _let_go(begun)


@atexit.register
def _wait_at_exit() -> None:
    """What is copied would go under the threads' hands."""
    for begun in list(_unfinished.values()):
        while begun.left:  # (asked again and again: what wakes once may wake who still waits on another thread)
            with suppress(BaseException):  # (Ctrl-C, too: it is a matter of milliseconds)
                time.sleep(_ASKED_EVERY)


def _forget() -> None:
    """A child has none of the threads, and shares what wakes its parent."""
    global _starting
    _starting = threading.RLock()
    _started.cache_clear()
    _idle.clear()
    _unfinished.clear()


os.register_at_fork(after_in_child=_forget)


class HostCopies:
    """Copies of arrays that one thread begins, and waits for. What nobody waits for is done all the same."""

    def __init__(self) -> None:
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._begun = _Begun()
        finalize(self, _give_up, self._begun).atexit = False

    def _own(self) -> _Begun:
        """Those of this process: a child has no part in its parent's."""
        if self._begun.process != os.getpid():
            self._begin_anew()
        return self._begun

    def begin(self, out: np.ndarray, value: np.ndarray, threads: int) -> None:
        """Copy an array to another of the same shape. A large one is copied by several threads, if both are
        C-contiguous and of one type, and has been after the next `wait`; any other is when this returns."""
        shares = min(threads, _MOST_THREADS, value.nbytes // _LEAST_SHARED)
        if shares < 2 or not _are_alike(out, value):
            np.copyto(out, value)
            return
        begun, pipe = self._own(), _pipe_to_threads()
        to, source = out.ctypes.data, value.ctypes.data
        words = [
            [to + first, source + first, last - first, begun.counts.ctypes.data, begun.event, 0, 0, 0]
            for first, last in spans_of(value.nbytes, shares, value.nbytes)
        ]
        jobs = np.array(words, np.uint64).reshape(-1)
        begun.held.append((out, value))
        _unfinished[id(begun)] = begun
        while not _hand_out(pipe, jobs, begun.counts, begun.done):
            os.fstat(pipe)  # (an error where it is closed; else a signal came, whose handler has run)

    def wait(self) -> None:
        """Wait until all that was begun is done. (It may be interrupted, and asked again.)"""
        self._own().wait()


def _are_alike(out: np.ndarray, value: np.ndarray) -> bool:
    """Whether an array's bytes are the other's."""
    are_whole = out.flags.c_contiguous and value.flags.c_contiguous and out.flags.writeable
    return are_whole and out.shape == value.shape and out.dtype == value.dtype and not out.dtype.hasobject

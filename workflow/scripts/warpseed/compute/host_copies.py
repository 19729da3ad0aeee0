"""Copies within the host's memory, by threads that need nothing of Python while they work.

A thread of Python that has slept goes on when the interpreter lets it, and another that is busy there keeps it for
milliseconds, in which tens of megabytes could be copied. So these threads sleep, copy and tell of it in compiled code:
what they are to copy comes through a pipe, and who waits for it is woken by a counter of the system (eventfd(2)).
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from functools import cache
from typing import Any
from weakref import finalize

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.intrinsics import add_at, copy_bytes, read_words, write_words
from warpseed.compute.machine import usable_cores
from warpseed.compute.ranges import spans_of

__all__ = ["HostCopies"]

_LEAST_SHARED = 1 << 19
"""Bytes that a thread copies at least where others do, too."""
_MOST_THREADS = 16
"""That copy at once: as many fill what memory there is to go through."""
_JOB_WORDS = 8
"""Words of a job, as many as a cache line has: where to, where from, how many bytes, whose counts, and whom to wake."""
_WORD_BYTES = 8
_MOST_JOBS = 64
"""That go to the pipe together: 4096 bytes, which others' do not come between (PIPE_BUF)."""


@scalar
def _copy_what_comes(jobs, job, one):
    """Copy, job by job, what comes through a pipe, until its end.

    Parameters
    ----------
    jobs : number of the pipe's end
    job : uint64[_JOB_WORDS], room for one
    one : uint64[1], 1
    """
    came = int64(1)
    while came != int64(0):
        came = read_words(jobs, job)
        if came == int64(_JOB_WORDS * _WORD_BYTES):
            copy_bytes(job[0], job[1], job[2])
            # (Whoever sees the last one counted may go, and its counts with it; what wakes it stays: see _idle.)
            add_at(job[3] + uint64(_WORD_BYTES), uint64(1))
            write_words(int64(job[4]), one)


@scalar
def _hand_out(pipe, jobs, counts):
    """Put jobs, uint64[n·_JOB_WORDS], n at most _MOST_JOBS, into a pipe, and count them as begun."""
    counts[0] += uint64(jobs.shape[0] // int64(_JOB_WORDS))
    while write_words(pipe, jobs) < int64(0):  # a signal came
        pass


@scalar
def _left(counts, done):
    """How many copies that were begun are not done; `done` is the address of counts[1]."""
    return int64(counts[0] - add_at(done, uint64(0)))


class _Copiers:
    """The threads, and the pipe that they wait at."""

    def __init__(self) -> None:
        jobs, self.pipe = os.pipe()
        try:
            for _ in range(min(_MOST_THREADS, usable_cores())):
                threading.Thread(target=self._serve, args=(jobs,), name="copying", daemon=True).start()
        except BaseException:
            os.close(self.pipe)  # those that have begun end
            raise

    @staticmethod
    def _serve(jobs: int) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # (which would end a read)
        _copy_what_comes(jobs, np.empty(_JOB_WORDS, np.uint64), np.ones(1, np.uint64))


@cache
def _copiers() -> _Copiers:
    return _Copiers()


_idle: deque[int] = deque()
"""Numbers of counters that wake nobody now. None is closed: a thread may still be about to count there, and the number
would be another file's."""


def _idle_event() -> int:
    try:
        return _idle.popleft()
    except IndexError:
        return os.eventfd(0)


def _forget() -> None:
    """A child has none of the threads, and shares what wakes its parent."""
    _copiers.cache_clear()
    _idle.clear()


os.register_at_fork(after_in_child=_forget)


class HostCopies:
    """Copies of arrays that one thread begins, and waits for."""

    def __init__(self) -> None:
        self._counts = np.zeros(2, np.uint64)
        """copies begun, and done"""
        self._done = np.uint64(self._counts[1:].ctypes.data)
        self._event = _idle_event()
        self._held: list[Any] = []
        finalize(self, _give_up, os.getpid(), self._counts, self._done, self._event, self._held).atexit = False

    def begin(self, out: np.ndarray, value: np.ndarray, threads: int) -> None:
        """Copy an array to another of the same shape and type, a large one by several threads, if both are
        C-contiguous: it has been copied after the next `wait`."""
        jobs = min(threads, _MOST_JOBS, value.nbytes // _LEAST_SHARED)
        if jobs < 2 or not (out.flags.c_contiguous and value.flags.c_contiguous and out.dtype == value.dtype):
            np.copyto(out, value)
            return
        to, of = out.ctypes.data, value.ctypes.data
        whom = self._counts.ctypes.data, self._event
        spans = spans_of(value.nbytes, jobs, value.nbytes)
        words = [[to + first, of + first, last - first, *whom, 0, 0, 0] for first, last in spans]
        self._held.append((out, value))
        _hand_out(_copiers().pipe, np.array(words, np.uint64).reshape(-1), self._counts)

    def wait(self) -> None:
        """Wait until all that was begun is done. (It may be interrupted, and asked again.)"""
        _finish(self._counts, self._done, self._event)
        self._held.clear()


def _finish(counts: np.ndarray, done: Any, event: int) -> None:
    while _left(counts, done):
        os.eventfd_read(event)  # (or what was counted there before, which says nothing)


def _give_up(process: int, counts: np.ndarray, done: Any, event: int, held: list[Any]) -> None:
    """Called when nobody holds the copies any more: what they copy goes when they are done."""
    if process == os.getpid():
        _finish(counts, done, event)
        held.clear()
        _idle.append(event)

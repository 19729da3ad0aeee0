"""What a program of its own has to settle, the command line as a rule's script: signals, descriptors, streams."""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

from warpseed.compute.machine import peak_memory
from warpseed.errors import InputError, advice_for, say

__all__ = [
    "Stopped",
    "end_of_stop",
    "end_of_work",
    "flush_output",
    "leave_nothing_behind",
    "log_to_standard_error",
    "may_be_raised",
    "open_descriptors",
    "say_what_it_took",
    "start_quickly",
    "stop_behind",
    "stop_on_signals",
    "tell",
]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SOON, _AGAIN = 0.002, 1.0
"""Seconds after which `Stopped` is raised where it may not be at once, and again, unless it has come to where it is
handled."""
_WHOLE = {
    *("contextlib", "threading", "queue", "concurrent.futures._base", "concurrent.futures.thread"),
    *("weakref", "_weakrefset", "importlib._bootstrap", "_frozen_importlib"),
}
"""Modules whose functions end before it is raised: locks would stay locked, generators be left between two steps, and
what weak references call swallows it."""
_raised_for: list[int] = []
"""The signal that `Stopped` was raised for, if any was."""


class Stopped(BaseException):
    """A signal that asks to end: what is half-written is removed by whatever was writing it, as after any exception.

    (Where a KeyboardInterrupt passes exec, Python exits by SIGINT even if handled.)
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def status(self) -> int:
        """The exit status that tells of it."""
        return 128 + self.number

    def __str__(self) -> str:
        return f"Interrupted by {signal.Signals(self.number).name}; no half-written file is left."


def _is_stopping(number: int, frame: object) -> None:
    """Nothing more: what is half-written is being removed, which a second Ctrl-C would cut short."""


def _stop(number: int, frame: FrameType | None) -> None:
    for each in _SIGNALS:
        signal.signal(each, _is_stopping)
    # At once: threads in compiled code end when that returns.
    tell(f"Stopping after {signal.Signals(number).name}.")
    _raised_for.append(number)
    signal.signal(signal.SIGALRM, _stop_again)
    _raise_if_it_may(frame)


def _stop_again(number: int, frame: FrameType | None) -> None:
    """Raise `Stopped` where it was not, or again where nothing handles it: Python swallows what a destructor raises.

    What runs while any exception is handled is not interrupted, such as what removes files.
    """
    if sys.exc_info()[1] is None:
        _raise_if_it_may(frame)


def _raise_if_it_may(frame: FrameType | None) -> None:
    may_be = may_be_raised(frame)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN if may_be else _SOON, _AGAIN)
    if may_be:
        raise Stopped(_raised_for[0])


def may_be_raised(frame: FrameType | None) -> bool:
    """Whether a signal may raise an exception where the main thread is: outside of what threads wait for each other by,
    or where it waits there."""
    if frame is None or frame.f_globals.get("__name__") not in _WHOLE:
        return True
    here = frame.f_locals
    if frame.f_code is not threading.Condition.wait.__code__ or "saved_state" not in here:
        return False
    return here["waiter"] in here["self"]._waiters  # (which forgets whom it wakes)


def tell(text: str) -> None:
    """Say a line on standard error (not by `say`: a write may be going on). If whoever reads it takes nothing now, that
    goes nowhere from now on, so that nothing waits for them any more."""
    with suppress(OSError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, f"{text}\n".encode())
        else:
            _send_nowhere(2)


def stop_on_signals() -> None:
    """From now on SIGINT, SIGTERM and SIGHUP raise `Stopped` in the main thread, the first of them.

    One that is ignored, as under nohup, stays so. In another thread nothing happens: Python takes handlers in none.
    """
    if threading.current_thread() is threading.main_thread():
        sys.unraisablehook = partial(_say_unless_stopped, sys.unraisablehook)
        for each in _SIGNALS:
            if signal.getsignal(each) is not signal.SIG_IGN:
                signal.signal(each, _stop)


def _say_unless_stopped(say_it: Callable[[Any], object], ignored: Any) -> None:
    """What is said of an exception that Python swallows: of `Stopped`, which is raised again, nothing."""
    if not isinstance(ignored.exc_value, Stopped):
        say_it(ignored)


def flush_output() -> None:
    """Write now what Python would else write when it exits, where a full disk is no sentence any more.

    Raises
    ------
    InputError : standard output cannot be written
    """
    if sys.stdout is not None and not sys.stdout.closed:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise InputError(f"standard output: cannot be written ({error.strerror}); {advice_for(error)}.") from error


def end_of_work() -> None:
    """Work is done: a signal changes nothing from now on.

    Raises
    ------
    Stopped : one came, and Python swallowed what it raised
    """
    _pay_no_more_heed()
    if _raised_for:
        raise Stopped(_raised_for[0])


def _pay_no_more_heed() -> None:
    if _raised_for:
        signal.setitimer(signal.ITIMER_REAL, 0)
    for each in (*_SIGNALS, signal.SIGALRM) if threading.current_thread() is threading.main_thread() else ():
        if signal.getsignal(each) in (_stop, _stop_again, _is_stopping):
            with suppress(Stopped):  # (of a signal that has come already)
                signal.signal(each, signal.SIG_IGN)
            signal.signal(each, signal.SIG_IGN)


def stop_behind(error: BaseException) -> Stopped | None:
    """The signal that an exception comes from; None for one that comes from none.

    Once `Stopped` was raised, any does: what it passes may raise another, as the import of NumPy an ImportError.
    """
    if isinstance(error, Stopped):
        return error
    if _raised_for:
        return Stopped(_raised_for[0])
    return Stopped(signal.SIGINT) if isinstance(error, KeyboardInterrupt) else None


def end_of_stop(error: BaseException) -> None:
    """Where an exception that comes from a signal is handled: it is not raised again.

    Variables of all functions that it came past are forgotten, so that generators among them remove what they wrote:
    one whose turn it was may not have been told to.
    """
    _pay_no_more_heed()
    before: BaseException | None = error
    while before is not None:
        traceback.clear_frames(before.__traceback__)
        before = before.__context__


def start_quickly() -> None:
    """What a process that may be short settles before NumPy is imported."""
    # What imports make stays: looking through it for garbage, some fifty times, finds none.
    gc.set_threshold(100_000)
    # NumPy's linear algebra, which nothing here uses, would start its threads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def open_descriptors() -> None:
    """Open what is closed of standard input, output and error: the next file would take its number, and what libraries
    print would go there."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def leave_nothing_behind() -> None:
    """Send nowhere what a stream did not take: Python keeps it, tries again when it exits, and changes the status.

    After a signal standard output takes nothing more: of a pipe that nobody reads, it might never. Another one is
    ignored, which would meet no handler when Python has given them back. Nor is anything looked through for garbage
    once more: the memory goes with the process.
    """
    _pay_no_more_heed()
    gc.freeze()
    if _raised_for:
        _send_nowhere(1)
    for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):  # (ValueError: closed)
            _send_nowhere(descriptor)


def _send_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def log_to_standard_error() -> None:
    """From now on, what the library logs (`logging`, logger "warpseed") is said with the time."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    handler.handleError = lambda record: None  # type: ignore[method-assign]  # as `say`: there is nobody to tell
    logger = logging.getLogger("warpseed")
    logger.setLevel(logging.INFO)
    logger.handlers = [handler]


def say_what_it_took(stages: dict[str, float], tell: Callable[[str], None] = say) -> None:
    """The seconds of each stage, and the peak memory of this process."""
    tell("seconds: " + ", ".join(f"{name} {seconds:.3f}" for name, seconds in stages.items()))
    tell(f"peak memory: {peak_memory() / 2**20:,.0f} MiB")

"""What a program of its own has to settle, the command line as a rule's script: signals, descriptors, streams."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress

from warpseed.compute.machine import peak_memory
from warpseed.errors import say

__all__ = [
    "Stopped",
    "leave_nothing_behind",
    "log_to_standard_error",
    "open_descriptors",
    "say_what_it_took",
    "start_quickly",
    "stop_behind",
    "stop_on_signals",
]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN = 0.2
"""Seconds after which `Stopped` is raised again, unless it has come to where it is handled."""
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


def _stop(number: int, frame: object) -> None:
    for each in _SIGNALS:
        signal.signal(each, _is_stopping)
    with suppress(
        OSError
    ):  # at once: threads in compiled code end when that returns (not `say`: a write may be going on)
        os.write(2, f"Stopping after {signal.Signals(number).name}.\n".encode())
    _raised_for.append(number)
    signal.signal(signal.SIGALRM, _stop_again)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN, _AGAIN)
    raise Stopped(number)


def _stop_again(number: int, frame: object) -> None:
    """Raise `Stopped` again where nothing handles it: Python swallows what is raised in a destructor or a callback."""
    if _raised_for and sys.exc_info()[1] is None:
        raise Stopped(_raised_for[0])


def _say_unless_stopped(ignored: sys.UnraisableHookArgs) -> None:
    """What is said of an exception that Python swallows: of `Stopped`, which is raised again, nothing."""
    if not isinstance(ignored.exc_value, Stopped):
        sys.__unraisablehook__(ignored)


def stop_on_signals() -> None:
    """From now on SIGINT, SIGTERM and SIGHUP raise `Stopped` in the main thread, the first of them.

    One that is ignored, as under nohup, stays so. In another thread nothing happens: Python takes handlers in none.
    """
    if threading.current_thread() is threading.main_thread():
        sys.unraisablehook = _say_unless_stopped
        for each in _SIGNALS:
            if signal.getsignal(each) is not signal.SIG_IGN:
                signal.signal(each, _stop)


def stop_behind(error: BaseException) -> Stopped | None:
    """The signal that an exception comes from; None for one that comes from none. Asked where it is handled.

    Once `Stopped` was raised, any does: what it passes may raise another, as the import of NumPy an ImportError. What
    it came past is let go of, generators among it that are to remove what they wrote and were not yet told to.
    """
    if isinstance(error, Stopped):
        stopped = error
    elif _raised_for:
        stopped = Stopped(_raised_for[0])
    else:
        return Stopped(signal.SIGINT) if isinstance(error, KeyboardInterrupt) else None
    signal.setitimer(signal.ITIMER_REAL, 0)
    _let_go(error)
    return stopped


def _let_go(error: BaseException | None) -> None:
    """Forget the variables of all functions that an exception, and those before it, came past."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


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

    After a signal standard output takes nothing more: of a pipe that nobody reads, it might never; and another is
    ignored, which would meet no handler when Python has given them back. Nor is anything looked through for garbage
    once more: the memory goes with the process.
    """
    gc.freeze()
    if _raised_for:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
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

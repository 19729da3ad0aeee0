"""Something that is done again and again, and interrupted at one place after the other."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from types import FrameType

from warpseed.workflow.program import Stopped, end_of_stop, may_be_raised


class _Interrupting:
    """A profiler that raises `Stopped` at the n-th place: where a function begins, or one in C has ended, as Python
    looks for signals there; if it may not be raised there, at the next one."""

    def __init__(self, place: int) -> None:
        self.left = place
        self.raised = False

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_return"):
            self.left -= 1
            if self.left <= 0 and may_be_raised(frame):
                sys.setprofile(None)
                self.raised = True
                raise Stopped(signal.SIGTERM)


def interrupted(act: Callable[[], None]) -> Iterator[int]:
    """Do something again and again, interrupted at one place after the other; yields the place after each time, and
    ends when there are no more. One time in some, Python swallows it."""
    for place in count(1):
        interrupting = _Interrupting(place)
        try:
            sys.setprofile(interrupting)
            try:
                act()
            finally:
                sys.setprofile(None)
        except BaseException as error:
            passed: BaseException | None = error
            while not isinstance(passed, Stopped):  # (it may have become another)
                assert passed is not None
                passed = passed.__context__
            end_of_stop(error)
        if not interrupting.raised:
            return
        yield place

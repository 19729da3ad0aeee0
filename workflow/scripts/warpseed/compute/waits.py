"""Waiting for work that others do in memory which is given up next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

__all__ = ["wait_for_all"]


def wait_for_all(waits: Iterable[Callable[[], object]]) -> None:
    """Call functions that wait, one after the other, so that in the end nothing is at work that any of them waits for:
    one that an interrupt ends is called again, and where one fails the others are called all the same.

    Raises
    ------
    what the first of them has raised, when all have been called
    """
    left = deque(waits)
    try:
        while left:
            left[0]()
            left.popleft()
    except BaseException as error:
        if isinstance(error, Exception):  # (and no KeyboardInterrupt, or what another signal is turned into)
            left.popleft()
        # Here, where one is handled, `Stopped` is not raised again (see `warpseed.workflow.program`).
        with suppress(BaseException):
            wait_for_all(left)
        raise

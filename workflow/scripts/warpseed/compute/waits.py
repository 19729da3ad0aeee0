"""Waiting for work that others do in memory which is given up next."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["wait_for_all"]


def wait_for_all(waits: Iterable[Callable[[], object]]) -> None:
    """Call functions that wait, one after the other, so that in the end nothing is at work that any of them waits for:
    one that an interrupt ends is called again, and where one fails the others are called all the same.

    Raises
    ------
    what the first of them has raised, when all have been called
    """
    raised: list[BaseException] = []
    for wait in waits:
        while not _waited(wait, raised):
            pass
    if raised:
        raise raised[0]


def _waited(wait: Callable[[], object], raised: list[BaseException]) -> bool:
    """Whether there is nothing more to wait for."""
    try:
        wait()
    except Exception as error:
        raised.append(error)
    except BaseException as interrupt:  # (KeyboardInterrupt, or what another signal is turned into)
        raised.append(interrupt)
        return False
    return True

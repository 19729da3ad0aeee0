"""Who is told that something is compiled, which takes seconds."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["on_first_compilation", "tell_of_compilation"]

_to_tell: list[Callable[[], None]] = []


def on_first_compilation(tell: Callable[[], None]) -> None:
    """Have `tell` called once, before this process compiles what no earlier one has kept."""
    _to_tell[:] = [tell]


def tell_of_compilation() -> None:
    """Say that something is compiled now, to whoever asked to be told and was not."""
    try:
        tell = _to_tell.pop()
    except IndexError:  # nobody asked, or another thread has told them
        return
    tell()

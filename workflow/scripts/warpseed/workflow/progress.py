"""How far a search has come: one line on a terminal that is written anew, a line now and then in a log."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from warpseed.errors import say

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.output.totals import Totals

__all__ = ["Progress", "hits_of"]

_ON_TERMINAL, _IN_LOG = 0.5, 10.0
"""Seconds from one line to the next."""
_SILENT = 1.0
"""Seconds that a terminal shows nothing: most searches are over by then."""

_Batch = TypeVar("_Batch")


class Progress:
    """Tells on standard error what has been searched and found, while batches pass.

    Parameters
    ----------
    done : says what that is, such as `hits_of` does
    watch : Stopwatch of the search, which knows the share of the input that was read
    """

    def __init__(self, done: Callable[[], str], watch: Stopwatch) -> None:
        self._done = done
        self._watch = watch

    def told(self, batches: Iterable[_Batch]) -> Iterator[_Batch]:
        """The same batches, told; they are counted elsewhere before the next one is asked for."""
        on_terminal = sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()
        began = time.monotonic()
        told = began + (_SILENT - _ON_TERMINAL if on_terminal else 0.0)
        shown = False
        try:
            for batch in batches:
                yield batch
                now = time.monotonic()
                if now - told >= (_ON_TERMINAL if on_terminal else _IN_LOG):
                    told = now
                    line = self._line(now - began)
                    if on_terminal:
                        say(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}", end="")
                        shown = True
                    else:
                        say(line)
        finally:
            if shown:
                say("\r\x1b[K", end="")

    def _line(self, seconds: float) -> str:
        share = self._watch.share
        read = "" if share is None else ", all of the input read" if share == 1 else f", {share:.0%} of the input read"
        return f"{self._done()}{read}, {seconds:.0f} s"


def hits_of(totals: Totals, queries: str) -> Callable[[], str]:
    """Says how many queries were searched, such as 'k-mers', and what was found, by totals of the same batches."""
    return lambda: f"{totals.queries:,} {queries}, {totals.hits:,} hits"

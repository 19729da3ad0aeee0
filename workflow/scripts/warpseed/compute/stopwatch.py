"""Seconds spent in named stages, and what was counted there."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from warpseed.errors import InputError

__all__ = ["Stopwatch", "check_stage", "checked_watch"]

_LOGGER = logging.getLogger(__name__)
_LONG = 1.0
"""Seconds of a stage that the log tells of."""
_STAGE = re.compile(r"[a-z][a-z_]*")


class Stopwatch:
    """Seconds spent in named stages, and what was counted there; the same name twice adds up.

    Attributes
    ----------
    seconds : dict of str to float
        Seconds for each stage that ran, in the order in which stages first ended.
    counts : dict of str to int
        What was counted on the way, such as the reads that k-mers were cut from.
    share : float or None
        How much of the input is done, 0 to 1, where that is known.

    Examples
    --------
    >>> watch = Stopwatch()
    >>> with watch.stage("search"):
    ...     pass
    >>> watch.add("kernel", 0.25)
    >>> sorted(watch.seconds)
    ['kernel', 'search']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.counts: dict[str, int] = {}
        self.share: float | None = None

    @contextmanager
    def stage(self, name: str, synchronise: Callable[[], object] | None = None) -> Iterator[None]:
        """Time a block with a monotonic clock, and add it to stage `name`.

        Parameters
        ----------
        name : str
            A word of small letters and underscores; figures stack stages in the order of their first records.
        synchronise : callable, optional
            Called before the clock is read at the end, so that work a device still does is counted here.

        Raises
        ------
        ValueError
            If `name` is no such word.
        """
        check_stage(name)
        start = time.perf_counter()
        try:
            yield
            if synchronise is not None:
                synchronise()
        finally:
            seconds = time.perf_counter() - start
            self.add(name, seconds)
            if seconds >= _LONG:
                _LOGGER.info("%s: %.1f s", name, seconds)

    def add(self, name: str, seconds: float) -> None:
        """Add `seconds` measured elsewhere (CUDA events) to stage `name`.

        Raises
        ------
        ValueError
            If `name` is no such word.
        """
        check_stage(name)
        self.seconds[name] = self.seconds.get(name, 0.0) + float(seconds)

    def take(self, other: Stopwatch, share: float = 1.0) -> None:
        """Add what another stopwatch took and counted, of its seconds a share: of n threads that is one n-th each."""
        for name, seconds in other.seconds.items():
            self.add(name, share * seconds)
        for name, number in other.counts.items():
            self.count(name, number)
        self.share = self.share if other.share is None else other.share

    def take_slowest(self, others: Iterable[Stopwatch]) -> None:
        """Add what others took side by side: of each stage the seconds of the slowest. What they counted adds up."""
        slowest: dict[str, float] = {}
        for other in others:
            slowest |= {name: max(seconds, slowest.get(name, 0.0)) for name, seconds in other.seconds.items()}
            for name, number in other.counts.items():
                self.count(name, number)
        for name, seconds in slowest.items():
            self.add(name, seconds)

    def count(self, name: str, number: int) -> None:
        """Add `number` to what was counted of `name`."""
        self.counts[name] = self.counts.get(name, 0) + int(number)


def check_stage(name: str) -> None:
    """Raise ValueError unless `name` can be a stage: small letters and underscores, a letter first."""
    if not _STAGE.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a stage: small letters and underscores are expected")


def checked_watch(watch: Any) -> Stopwatch:
    """The stopwatch that a caller gives, or a new one for None; InputError for anything else."""
    if watch is not None and not isinstance(watch, Stopwatch):
        raise InputError(f"watch is {watch!r:.60}, but a warpseed.compute.stopwatch.Stopwatch was expected, or None.")
    return Stopwatch() if watch is None else watch

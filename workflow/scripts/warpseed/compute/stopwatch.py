"""Seconds spent in named stages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["STAGES", "Stopwatch"]

STAGES = (
    # what comes before a search
    "load",
    "index_to_device",
    # a search, from the k-mer file to hits in memory
    "read",
    "pack",
    "host_to_device",
    "kernel",
    "search",
    "locate",
    "device_to_host",
    "lookup",
    "sort",
    "write",
    # building an index
    "suffix_array",
    "bwt",
    "blocks",
    "table",
    "save",
    # a peer's whole process, and the sum that tables show
    "process",
    "total",
)
"""Every stage name a record may carry, in the order in which figures stack them."""


class Stopwatch:
    """Seconds spent in named stages; the same stage twice adds up.

    Attributes
    ----------
    seconds : dict of str to float
        Seconds for each stage that ran, in the order in which stages first ended.

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

    @contextmanager
    def stage(self, name: str, synchronise: Callable[[], object] | None = None) -> Iterator[None]:
        """Time a block with a monotonic clock, and add it to stage `name`.

        Parameters
        ----------
        name : str
            One of `STAGES`.
        synchronise : callable, optional
            Called before the clock is read at the end, so that work a device still does is counted here.

        Raises
        ------
        ValueError
            If `name` is not one of `STAGES`.
        """
        _check_stage(name)
        start = time.perf_counter()
        try:
            yield
            if synchronise is not None:
                synchronise()
        finally:
            self.add(name, time.perf_counter() - start)

    def add(self, name: str, seconds: float) -> None:
        """Add `seconds` measured elsewhere (CUDA events) to stage `name`.

        Raises
        ------
        ValueError
            If `name` is not one of `STAGES`.
        """
        _check_stage(name)
        self.seconds[name] = self.seconds.get(name, 0.0) + float(seconds)


def _check_stage(name: str) -> None:
    # A misspelt stage would drop out of every table and figure without a word.
    if name not in STAGES:
        raise ValueError(f"{name!r} is no stage; the stages are {', '.join(STAGES)}")

"""Processes as runs that are timed: our command line or another tool, from start to end, with its peak memory."""

from __future__ import annotations

from collections.abc import Callable

from warpseed.compute.stopwatch import Stopwatch
from warpseed.measure.peers.process import Process
from warpseed.measure.timing import PEAK, Outcome, Run

__all__ = ["process_run", "tool_run"]


def process_run(start: Callable[[], Process], outcome: Callable[[], Outcome]) -> Run:
    """A process, as stage `process`; `outcome` works out what it found."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        took = start()
        watch.add("process", took.seconds)
        watch.count(PEAK, took.peak_bytes)
        return outcome

    return run


def tool_run(load: Callable[[], Process], start: Callable[[], Process], outcome: Callable[[], Outcome]) -> Run:
    """A tool's process; that which does next to nothing but load what it needs, as stage `load`; as `total` the one
    less the other."""
    whole = process_run(start, outcome)

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        loading = load().seconds
        watch.add("load", loading)
        finish = whole(watch)
        # On tiny inputs the process that only loads may take longer: such a difference is noise, and no time.
        if watch.seconds["process"] > loading:
            watch.add("total", watch.seconds["process"] - loading)
        return finish

    return run

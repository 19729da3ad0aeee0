"""Times of stages on a device; of several in a row the host waits once, when all of them are given to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

from warpseed.compute.gpu import cupy

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch

__all__ = ["marked_on_device", "time_on_device"]


@contextmanager
def marked_on_device(watch: Stopwatch) -> Iterator[Callable[[str], None]]:
    """Time what the block puts on this thread's stream, with CUDA events; at the end of the block all of it is done.

    Yields
    ------
    mark(stage) : ends a stage, which began where the one before ended, or else with the block
    """
    package = cupy()
    marks = [("", package.cuda.Event())]
    marks[0][1].record()

    def mark(stage: str) -> None:
        watch.add(stage, 0.0)  # (its place among the stages: others may end before this block)
        event = package.cuda.Event()
        event.record()
        marks.append((stage, event))

    yield mark
    marks[-1][1].synchronize()
    for (_, began), (stage, ended) in pairwise(marks):
        watch.add(stage, package.cuda.get_elapsed_time(began, ended) / 1e3)


@contextmanager
def time_on_device(watch: Stopwatch, stage: str) -> Iterator[None]:
    """As `marked_on_device`, where the block is one stage."""
    with marked_on_device(watch) as mark:
        yield
        mark(stage)

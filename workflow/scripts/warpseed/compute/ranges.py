"""Work on ranges of queries: threads over ranges, what these deal out, results of unknown size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from warpseed.compute.pipeline import check_wanted, mapped

__all__ = [
    "STEP",
    "borders_of",
    "equal_share",
    "fill_in_parts",
    "on_threads",
    "places_of",
    "run_ranges",
    "spans_of",
    "steps",
]

STEP = 1 << 22
"""What compiled code works on in one call, where an item takes some nanoseconds: a signal waits for its end."""
_RANGE = 8192
_SMALL, _FEW = 1 << 12, 64
_Result = TypeVar("_Result")
_Part = TypeVar("_Part")


def steps(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """[begin, end) in ranges of at most STEP, as long as the work is wanted."""
    for first in range(begin, end, STEP):
        check_wanted()
        yield first, min(first + STEP, end)


def spans_of(count: int, threads: int, most: int = STEP) -> list[tuple[int, int]]:
    """[0, count) in ranges of at most `most`, as many for each of the threads where there is enough for all; more than
    _FEW are not smaller than one in _SMALL of `most`."""
    enough = max(_FEW, count // max(1, most // _SMALL))
    parts = max(1, min(threads * -(-count // (threads * most)), enough, count))
    shares = (equal_share(count, part, parts) for part in range(parts))
    return [(share.start, share.stop) for share in shares]


def equal_share(count: int, number: int, of: int) -> slice:
    """One of so many equal shares of [0, count)."""
    return slice(count * number // of, count * (number + 1) // of)


def on_threads(threads: int, task: Callable[[int], _Result], count: int) -> list[_Result]:
    """`task` of every number below `count`, as long as it is wanted."""

    def wanted_task(number: int) -> _Result:
        check_wanted()
        return task(number)

    return list(mapped(range(count), wanted_task, max(1, min(threads, count))))


def borders_of(counts: np.ndarray) -> np.ndarray:
    """Where what each has begins, back to back, and where all ends, int64[n + 1]; of whole numbers of any kind."""
    borders = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, dtype=np.int64, out=borders[1:])
    return borders


def places_of(counts: np.ndarray, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Where spans that are dealt out to buckets put what they have: bucket by bucket, in each one span by span.

    Parameters
    ----------
    counts : int64[spans, buckets], what each span has for each bucket
    first : place of the first bucket

    Returns
    -------
    places : int64[spans, buckets], where each span begins in each bucket
    borders : int64[buckets + 1], where buckets begin
    """
    spans, buckets = counts.shape
    ends = first + np.cumsum(counts.T).reshape(buckets, spans).T
    return np.ascontiguousarray(ends - counts), first + np.append(0, counts.sum(axis=0).cumsum())


def run_ranges(count: int, threads: int, task: Callable[[int, int], _Result]) -> list[_Result]:
    """`task(first, last)` for ranges that cover [0, count), on `threads` threads; results in order.

    A range has at most 8,192 queries, and fewer where that would leave a thread without work.
    """

    def wanted_task(first: int, last: int) -> _Result:
        check_wanted()
        return task(first, last)

    size = max(1, min(_RANGE, -(-count // (4 * threads)) if threads > 1 else _RANGE))
    ranges = [(first, min(first + size, count)) for first in range(0, count, size)]
    if threads == 1 or len(ranges) < 2:
        return [wanted_task(*each) for each in ranges]
    return list(mapped(ranges, lambda each: wanted_task(*each), threads))


def fill_in_parts(first: int, last: int, room: int, fill: Callable[[int, int], tuple[int, _Part, int]]) -> list[_Part]:
    """Results of queries [first, last) whose number is not known beforehand, part by part.

    Parameters
    ----------
    room : int
        Results that the first part has room for.
    fill : callable
        ``fill(first, room)`` works from query `first` on until `last`, or until a query's results do not fit. It
        returns the query that it stopped at, its part, and the room which that query needs (0 at the end).
    """
    parts: list[_Part] = []
    while first < last:
        first, part, needed = fill(first, room)
        parts.append(part)
        room = max(2 * room, needed) if needed else room
    return parts

"""Around every search of queries: options checked, the index opened, queries taken in batches, results joined."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict

from warpseed.errors import InputError
from warpseed.fm_index.layout import SeedIndex
from warpseed.output.rows import Found, join_found
from warpseed.sequences.queries import Queries, iter_queries

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch

__all__ = [
    "RESULTS_AT_ONCE",
    "Batch",
    "OptionArguments",
    "Options",
    "Settings",
    "Source",
    "check_number",
    "find_all",
    "iter_batches",
    "opened",
    "target_of",
]

RESULTS_AT_ONCE = 1 << 26
"""Results that a batch should have where they are handed on batch by batch."""
_FIRST_BATCH = 1 << 16
_GROWTH = 16
_MOST_HITS = 1 << 62

Source: TypeAlias = "str | os.PathLike[str] | Sequence[str] | Sequence[bytes] | Queries"
"""Queries as users give them: the path of a FASTA or FASTQ file, sequences in memory, or Queries."""


class OptionArguments(TypedDict, total=False):
    """Options as callers give them, by their names."""

    tier: str
    device: str
    threads: int
    max_hits: int | None


class Options(NamedTuple):
    """How any system is to search."""

    tier: str = "fast"
    """'fast' or 'paper'"""
    device: str = "cpu"
    """'cpu'; 'gpu', the first one; or GPUs by number, 'gpu:1', 'gpu:0,1', 'gpu:all'"""
    threads: int = 1
    """CPU threads"""
    max_hits: int | None = None
    """a query with more hits loses them all; None keeps every hit"""

    def checked(self) -> Options:
        """The same options as plain values.

        Raises
        ------
        InputError : one of them is of another kind or out of its range
        """
        if self.tier not in ("fast", "paper"):
            raise InputError(f"tier is {self.tier!r}, but 'fast' or 'paper' was expected.")
        target_of(self.device)
        threads = check_number("threads", self.threads, 1)
        expected = "0 or more, or None for all hits, was expected"
        limit = None if self.max_hits is None else check_number("max_hits", self.max_hits, 0, expected=expected)
        # No query has as many hits; what is beyond 64 bits would not fit the searches.
        limit = None if limit is None else min(limit, _MOST_HITS)
        return Options(str(self.tier), str(self.device), threads, limit)


class Settings(NamedTuple):
    """How a case is run: in every tier on every device, on the CPU with every number of threads."""

    tiers: Sequence[str]
    devices: Sequence[str]
    threads: Sequence[int]

    def options(self, max_hits: int | None) -> Iterator[Options]:
        """One for each run; a GPU run uses one host thread."""
        for tier in self.tiers:
            for device in self.devices:
                for count in self.threads if device == "cpu" else [1]:
                    yield Options(tier, device, count, max_hits)


def target_of(device: Any) -> tuple[str, tuple[int, ...]]:
    """What a device's name stands for: 'cpu' or 'gpu', and the numbers of the GPUs, none for all that are visible.

    Raises
    ------
    InputError : it is no device's name
    """
    if device == "cpu":
        return "cpu", ()
    if device in ("gpu", "gpu:all"):
        return "gpu", (0,) if device == "gpu" else ()
    numbers = device[4:].split(",") if isinstance(device, str) and re.fullmatch(r"gpu:[0-9]+(,[0-9]+)*", device) else []
    if not numbers or len(set(map(int, numbers))) < len(numbers):
        raise InputError(
            f"device is {device!r}, but 'cpu' or 'gpu' was expected, or GPUs by number: 'gpu:1', 'gpu:0,1', 'gpu:all'."
        )
    return "gpu", tuple(map(int, numbers))


def check_number(name: str, value: Any, low: int, high: int | None = None, expected: str = "") -> int:
    """A whole number in its range as an int; InputError, naming it and what was `expected`, for anything else."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise InputError(f"{name} is {value!r}, but a whole number was expected.")
    number = int(value)
    if number < low or (high is not None and number > high):
        limits = f"{low} or more was" if high is None else f"{low} to {high} was"
        raise InputError(f"{name} is {number}, but {expected or limits + ' expected'}.")
    return number


def opened(index: SeedIndex | str | os.PathLike[str]) -> SeedIndex:
    """An index as it is, or the one in a folder.

    Raises
    ------
    InputError : neither an index nor the name of a folder
    IndexFormatError : the folder holds no usable index
    """
    from warpseed.fm_index.store import open_index

    if isinstance(index, SeedIndex):
        return index
    if isinstance(index, str | os.PathLike):
        return open_index(index)
    raise InputError(
        f"index is {index!r:.60}, but an index (from build_index or open_index) or the folder of one was expected."
    )


class Batch(NamedTuple):
    """Consecutive queries and what was found of them."""

    first: int
    """number of the first query in its source"""
    queries: Queries
    found: Found


def _read(source: Source) -> Iterable[Queries]:
    if isinstance(source, Queries):
        return [source]
    if isinstance(source, str | os.PathLike):
        return iter_queries(source)
    kind = getattr(source, "dtype", None)
    # Of a table or a mapping, the column names or the keys would be searched; a set has no order to number hits by.
    unfit = hasattr(source, "columns") or isinstance(source, Mapping | Set) or not isinstance(source, Iterable)
    if unfit or getattr(kind, "kind", "O") not in "OSU":
        raise InputError(
            f"the queries are {type(source).__name__}, but the path of a FASTA or FASTQ file, sequences of letters "
            "(str or bytes), or Queries were expected."
        )
    return iter_queries(source)


def iter_batches(
    source: Source,
    search: Callable[[Queries, int], Found],
    *,
    watch: Stopwatch,
    cut: Callable[[Queries], Any] | None = None,
    results_at_once: int | None = RESULTS_AT_ONCE,
) -> Iterator[Batch]:
    """Search queries batch by batch, in their order, for inputs whose results need not fit in memory.

    A batch is as many queries as should have `results_at_once` results, judged by those before it; None takes all
    that were read together.

    Parameters
    ----------
    search : callable
        ``search(queries, first)`` finds the results of consecutive queries, of which the first has number `first`.
    watch : Stopwatch
        Takes the seconds of reading as stage ``read``.
    cut : callable, optional
        What is searched of sequences that were read: has a length and `slice`, as Queries have.
    """
    first, parts = 0, iter(_read(source))
    while True:
        with watch.stage("read"):
            queries = next(parts, None)
        if queries is None:
            return
        if cut is not None:
            queries = cut(queries)
        begin, size = 0, len(queries) if results_at_once is None else _FIRST_BATCH
        while begin < len(queries):
            with watch.stage("pack"):
                part = queries.slice(begin, begin + size)
            found = search(part, first)
            yield Batch(first, part, found)
            first += len(part)
            begin += len(part)
            if results_at_once is not None:
                size = max(1, min(_GROWTH * size, results_at_once * len(part) // max(1, len(found.hits))))


def find_all(
    source: Source,
    search: Callable[[Queries, int], Found],
    *,
    watch: Stopwatch,
    cut: Callable[[Queries], Any] | None = None,
) -> tuple[Queries, Found]:
    """All queries of a source and their results, in memory; `search` and `cut` as for `iter_batches`."""
    parts = list(iter_batches(source, search, watch=watch, cut=cut, results_at_once=None))
    return Queries.concatenate([part.queries for part in parts]), join_found([part.found for part in parts])

"""Timing: a warm-up, repeats with a stopwatch each, and what a run found, worked out after the clock; as records.

A system says what its items run and on what; how it is timed is said here, once for all of them and for their peers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from warpseed.compute.devices import devices_of, target_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.measure.records import measured_rows

if TYPE_CHECKING:
    from warpseed.batches import Options

__all__ = ["PEAK", "Outcome", "Run", "Side", "add_total", "each_taken", "side_fields", "time_sides", "where_taken"]

_LOGGER = logging.getLogger(__name__)
_Value = TypeVar("_Value")
PEAK = "peak_bytes"
"""What a stopwatch counts of a process: its peak resident memory, which becomes a record."""
_ONCE = "index_to_device"
"""The stage that only the first run on a device has: later ones find the index there."""


class Outcome(NamedTuple):
    """What a run found, by which runs are held to each other."""

    queries: int
    results: int
    digest: str


Run: TypeAlias = "Callable[[Stopwatch], Callable[[], Outcome]]"
"""Does the work once, its stages on the stopwatch. What it returns works out the outcome, off the clock."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison: what is timed, and what its records say of it."""

    run: Run
    warm_up: Callable[[Stopwatch], object]
    """called once before the clock: compiles, and brings the index to a device"""
    fields: Mapping[str, Any]
    """the columns of its records that are the same in each of them (see `warpseed.measure.records`)"""
    once: Mapping[str, float] = field(default_factory=dict)
    """seconds of stages that came before and are in no total, such as `load`; they stand in each repeat's records"""
    rate_unit: str = ""
    """with a unit such as 'k-mers/s', each repeat has a record of metric `throughput`: queries over its total"""


def side_fields(system: str, *, tier: str, device: str, threads: int) -> dict[str, Any]:
    """The columns that say where our own code runs; `device` as users name it, such as 'gpu:0,1'."""
    kind, gpus = target_of(device)[0], len(devices_of(device))
    return {"system": system, "tool": "warpseed", "tier": tier, "device": kind, "gpus": gpus, "threads": threads}


def where_taken(value: _Value, options: Options) -> _Value:
    """An array, or a tuple of arrays, where what is timed takes it from: on a GPU, in memory that it copies from at
    full speed, if it is large, as results come to such."""
    if options.device == "cpu":
        return value
    from warpseed.compute.locked_memory import locked_copy

    copied: _Value = locked_copy(value, options.threads)
    return copied


def each_taken(value: _Value, targets: Iterable[Options]) -> Iterator[tuple[Options, _Value]]:
    """Each target with a value where it takes it from (`where_taken`); all GPUs take it from one copy."""
    copied: _Value | None = None
    for options in targets:
        if options.device != "cpu" and copied is None:
            copied = where_taken(value, options)
        yield options, value if options.device == "cpu" or copied is None else copied


def add_total(run: Run) -> Run:
    """The same run with its wall time as stage `total`."""

    def timed(watch: Stopwatch) -> Callable[[], Outcome]:
        began = time.perf_counter()
        finish = run(watch)
        watch.add("total", time.perf_counter() - began)
        return finish

    return timed


def time_sides(sides: Sequence[Side], repeats: int, fields: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Time sides in turns, so that a machine whose speed drifts drifts for all of them.

    Parameters
    ----------
    sides : sequence of Side
        Each is warmed up once, right before its first run.
    repeats : int
        Runs of each side.
    fields : mapping or None
        Columns of the records of all sides, which take the place of their own.

    Returns
    -------
    list of dict
        Records, one for each side, repeat and stage, in the order in which they were measured.
    """
    sides = [replace(side, fields={**side.fields, **(fields or {})}) for side in sides]
    rows: list[dict[str, Any]] = []
    before: list[dict[str, float]] = []
    for repeat in range(repeats):
        for number, side in enumerate(sides):
            if repeat == 0:
                before.append(_before(side))
            watch = Stopwatch()
            for stage, seconds in before[number].items():
                watch.add(stage, seconds)
            began = time.perf_counter()
            finish = side.run(watch)
            took = time.perf_counter() - began
            outcome = finish()
            del finish  # and what it holds, or the next run would need memory of its own beside it
            _LOGGER.info("%s, run %d of %d: %.3f s", _description(side), repeat + 1, repeats, took)
            shared = {**side.fields, "repeat": repeat, **outcome._asdict()}
            rows += measured_rows(watch, **shared)
            if PEAK in watch.counts:
                peak = {"stage": "process", "metric": "memory", "value": watch.counts[PEAK], "unit": "bytes"}
                rows.append({**shared, **peak})
            if side.rate_unit:
                rate = outcome.queries / watch.seconds["total"]
                rows.append({**shared, "stage": "total", "metric": "throughput", "value": rate, "unit": side.rate_unit})
    return rows


def _description(side: Side) -> str:
    """What a side is, in the words of its records."""
    names = ("item", "case", "parameters", "tool", "tier", "device", "threads")
    words = {name: side.fields[name] for name in names if side.fields.get(name) not in (None, "", "-")}
    return ", ".join(
        f"{name} {value}" if name in ("device", "threads") else str(value) for name, value in words.items()
    )


def _before(side: Side) -> dict[str, float]:
    """Seconds of what happens once: what the side says, and bringing the index to a device, which the warm-up did."""
    watch = Stopwatch()
    side.warm_up(watch)
    moved = {_ONCE: watch.seconds[_ONCE]} if _ONCE in watch.seconds else {}
    return {**side.once, **moved}

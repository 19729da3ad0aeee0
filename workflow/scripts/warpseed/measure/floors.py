"""How near kernels come to what the device can do.

floor = sum over arrays of (32-byte sectors that must be read, or read and written / rate of such random sectors in a
table of that size, measured in the same run); share = floor / time. A system says how many its kernels must touch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from warpseed.compute.stopwatch import Stopwatch
from warpseed.measure.records import RATE_CASE, join_parameters, split_parameters

if TYPE_CHECKING:
    from warpseed.fm_index.layout import SeedIndex

__all__ = ["SECTOR", "floor_seconds", "gather_rates", "kernel_seconds", "limit_rows", "measure_kernels"]

_LOGGER = logging.getLogger(__name__)

SECTOR = 32
"""Bytes that the device fetches at least."""
_READS_PER_THREAD = 64
_THREADS = 1 << 21


def kernel_seconds(run: Callable[[], Any], repeats: int) -> list[float]:
    """Seconds of each repeat by CUDA events, after a warm-up; what `run` returns is kept until the clock stops."""
    from warpseed.compute.device_marks import time_on_device

    run()
    seconds = []
    for _ in range(repeats):
        watch = Stopwatch()
        with time_on_device(watch, "kernel"):
            kept = run()
        del kept
        seconds.append(watch.seconds["kernel"])
    return seconds


def gather_rates(
    arrays: Mapping[str, Any], repeats: int, fields: Mapping[str, Any], *, written: bool = False
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Random 32-byte sectors a second from tables of these arrays' sizes.

    Parameters
    ----------
    arrays : mapping of name to array on the device
    repeats : int
    fields : mapping
        Columns of every record (system, item, tool, device, ...).
    written : bool
        Whether a sector is written, too, when it has been read: what the arrays hold is lost.

    Returns
    -------
    dict of name to rate, and a record with metric `rate` for each array
    """
    rates, rows = {}, []
    for name, array in arrays.items():
        rates[name] = _touch_rate(array, repeats) if written else _gather_rate(array, repeats)
        parameters = join_parameters({"array": name, "bytes": array.nbytes})
        how = ", read and written" if written else ""
        what = {"case": f"{RATE_CASE}{name}{how}", "parameters": parameters, "stage": "kernel"}
        rows.append({**fields, **what, "metric": "rate", "value": rates[name], "unit": "1/s"})
    return rates, rows


def _gather_rate(array: Any, repeats: int) -> float:
    from warpseed.compute.gpu import cupy, launch
    from warpseed.measure.gpu_floors import gather_sectors

    words, sums = _as_sectors(array), cupy().empty(_THREADS, np.uint32)
    seconds = kernel_seconds(lambda: launch(gather_sectors, _THREADS, 256, words, _READS_PER_THREAD, sums), repeats)
    return _THREADS * _READS_PER_THREAD / float(np.median(seconds))


def _touch_rate(array: Any, repeats: int) -> float:
    """Random sectors that are read and written a second, by the faster of two kernels."""
    from warpseed.compute.gpu import launch
    from warpseed.measure.gpu_floors import add_to_sectors, touch_sectors

    words = _as_sectors(array)
    given = _THREADS, 256, words, _READS_PER_THREAD, _THREADS
    ways = [kernel_seconds(partial(launch, way, *given), repeats) for way in (touch_sectors, add_to_sectors)]
    return _THREADS * _READS_PER_THREAD / float(np.median(ways, axis=1).min())


def _as_sectors(array: Any) -> Any:
    """The whole sectors of an array on the device, as uint32[]."""
    from warpseed.compute.gpu import cupy

    whole = cupy().asarray(array)
    return whole[: whole.nbytes // SECTOR * SECTOR // whole.itemsize].view(np.uint32)


def floor_seconds(sectors: Mapping[str, int], rates: Mapping[str, float]) -> float:
    """Seconds that to touch so many sectors of each array takes at least."""
    return float(sum(count / rates[name] for name, count in sectors.items()))


def limit_rows(
    seconds: Sequence[float], floor: float | None, fields: Mapping[str, Any], *, unit: str
) -> list[dict[str, Any]]:
    """Records of one case: metric `time` of each repeat, `throughput`, and where there is a floor `floor` and `share`.

    Parameters
    ----------
    seconds : one for each repeat
    floor : seconds, or None where what must be read is not known
    fields : the other columns; `queries` is what the throughput counts
    unit : of the throughput, such as 'k-mers/s'
    """
    shared = {**fields, "stage": "kernel"}
    rows = [
        {**shared, "repeat": repeat, "metric": "time", "value": value, "unit": "s"}
        for repeat, value in enumerate(seconds)
    ]
    median = float(np.median(seconds))
    rows.append({**shared, "metric": "throughput", "value": fields["queries"] / median, "unit": unit})
    if floor is not None:
        rows.append({**shared, "metric": "floor", "value": floor, "unit": "s"})
        rows.append({**shared, "metric": "share", "value": floor / median, "unit": "1"})
    return rows


def measure_kernels(
    index: SeedIndex,
    repeats: int,
    fields: Mapping[str, Any],
    *,
    run_of: Callable[[], Callable[[], int]],
    sectors_of: Callable[[], Mapping[str, int]],
    unit: str,
) -> list[dict[str, Any]]:
    """Time a tier's kernels with queries on the device, beside the floor of the fast tier's.

    Parameters
    ----------
    fields : columns of every record; of its `tier` the kernels are timed, `case` and `parameters` say what of,
        `queries` how many there are
    run_of : brings queries and index to the current device, and gives the search, which returns the number of results
    sectors_of : sectors that the fast tier must read at least, by array
    unit : as that of `limit_rows`

    Returns
    -------
    list of records with item `limits`: metric rate (random sectors a second of each array; with the fast tier's),
    time, throughput, floor and share
    """
    from warpseed.compute.gpu import on_device
    from warpseed.fm_index.device import tagged_on_device

    fields = {**fields, "item": "limits"}
    floor: float | None = None
    rows: list[dict[str, Any]] = []
    with on_device(0):
        if fields["tier"] == "fast":
            tagged = tagged_on_device(index, Stopwatch())
            arrays = {name: getattr(tagged, name) for name in ("table", "rows", "text")}
            rates, rows = gather_rates(arrays, repeats, {**fields, "queries": -1})
            floor = floor_seconds(sectors_of(), rates)
        run = run_of()
        parameters = {**split_parameters(fields["parameters"]), "count": fields["queries"]}
        found_there = {"results": run(), "parameters": join_parameters(parameters)}
        seconds = kernel_seconds(run, repeats)
        _LOGGER.info("%s, %s tier: %.6f s", fields["case"], fields["tier"], min(seconds))
        return rows + limit_rows(seconds, floor, {**fields, **found_there}, unit=unit)

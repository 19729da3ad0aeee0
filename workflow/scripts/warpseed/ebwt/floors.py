"""How near the fast tier on a GPU comes to what the device can do: words on the device, what comes of them left there.

The floor of the order has two parts. *Sorting*: n conjugates are not told apart by fewer than log2 n bits, and a radix
sort, the fastest that GPUs have, takes eight bits a pass, in which each position and the letters that it is still to be
sorted by, 32 bits of them, are read and written once; the first pass reads letters, the last writes positions alone.
Bytes are moved at the rate of a copy within the device's memory. *Ties*: what is equal to others by its first letters
reads those further on in its word, packed, then ranks, as long as it still is: random sectors of 32 bytes at the rate
of a table of all letters or ranks. (A second key of letters that are not packed counts as one.) Rates are measured in
the same run.

Of distances no floor is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from warpseed.compute.stopwatch import Stopwatch
from warpseed.measure.floors import floor_seconds, gather_rates, kernel_seconds, limit_rows
from warpseed.measure.records import join_parameters, split_parameters

if TYPE_CHECKING:
    from warpseed.ebwt.words import Words

__all__ = ["bytes_to_sort", "measure_limits"]

_DIGIT_BITS = 8
_POSITION, _LETTERS = 4, 4
"""Bytes of a position, and of the letters that go with it from pass to pass."""
_COPIED = 1 << 28
"""Bytes that are copied at least, so that they do not stay in the device's cache."""


def bytes_to_sort(count: int) -> int:
    """Bytes that a radix sort of the conjugates of so many letters reads and writes at least."""
    passes = max(1, -(-(count - 1).bit_length() // _DIGIT_BITS))
    return count * (1 + 2 * (passes - 1) * (_POSITION + _LETTERS) + _POSITION)


def _copy_rate(count: int, repeats: int) -> float:
    """Bytes a second, read and written, of a copy within the device's memory."""
    from warpseed.compute.gpu import cupy

    xp, size = cupy(), max(count, _COPIED // 4)
    source, target = xp.zeros(size, np.uint32), xp.empty(size, np.uint32)
    copies = kernel_seconds(lambda: xp.copyto(target, source), repeats)
    return 2 * source.nbytes / float(np.median(copies))


def measure_limits(
    words: Words, repeats: int, fields: Mapping[str, Any], *, with_distances: bool
) -> list[dict[str, Any]]:
    """Time the order of the conjugates, beside its floor, and, with them, the distances of all pairs.

    Parameters
    ----------
    fields : columns of every record but `queries` and `results`; its `parameters` get the step, and of the order the
        bytes that are moved to sort, and the sectors that ties read
    with_distances : whether distances are timed

    Returns
    -------
    list of records with item `limits`: metric rate (random sectors a second of what ties read), time,
    throughput, floor and share
    """
    from warpseed.compute.gpu import on_device
    from warpseed.ebwt import gpu_distances, gpu_order

    letters, pairs = len(words.codes), len(words.lengths) * (len(words.lengths) - 1) // 2
    fields = {**fields, "item": "limits", "queries": letters}
    with on_device(0):
        there, watch = gpu_order.DeviceWords.of(words), Stopwatch()
        order = gpu_order.order_of(there, watch)
        tables = {"letters": gpu_order.packed_letters(there), "ranks": order}
        read = {name: tables[name] for name in watch.counts}
        rates, rows = gather_rates(read, repeats, {**fields, "queries": -1})
        moved = bytes_to_sort(letters)
        floor = moved / _copy_rate(letters, repeats) + floor_seconds(watch.counts, rates)
        facts = {"step": "order", "moved": moved, "read": sum(watch.counts.values())}
        seconds = kernel_seconds(lambda: gpu_order.order_of(there), repeats)
        rows += limit_rows(seconds, floor, _with(fields, facts, letters), unit="letters/s")
        if with_distances:
            seconds = kernel_seconds(lambda: gpu_distances.distances_of(there, order), repeats)
            rows += limit_rows(seconds, None, _with(fields, {"step": "distances"}, pairs), unit="letters/s")
    return rows


def _with(fields: Mapping[str, Any], facts: Mapping[str, Any], results: int) -> dict[str, Any]:
    parameters = join_parameters({**split_parameters(fields["parameters"]), **facts})
    return {**fields, "parameters": parameters, "results": results}

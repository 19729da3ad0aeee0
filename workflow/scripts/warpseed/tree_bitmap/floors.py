"""How near the GPU kernels of the fast tier come to what the device can do: codes on the device, answers left there.

The floor is that of `warpseed.measure.floors`. What must be touched at least: of every base, whose k-mer goes to a
table that is too large for a cache, one sector, which is read and written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from warpseed.measure.floors import floor_seconds, gather_rates, kernel_seconds, limit_rows
from warpseed.measure.timing import side_fields
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap.stream import NEW, NO_BASE

__all__ = ["measure_limits"]


def measure_limits(
    codes: np.ndarray, k: int, repeats: int, fields: Mapping[str, Any], parameters: str
) -> list[dict[str, Any]]:
    """Time the fast tier's kernels on one GPU with a stream that lies there, and an empty table, beside their floor.

    Parameters
    ----------
    codes : uint8[n]
    k : bases of a k-mer
    repeats : runs after a warm-up
    fields : columns of every record
    parameters : what its records say of the stream

    Returns
    -------
    list of records with item `limits`: metric rate (sectors of the table a second), time, throughput, floor and share
    """
    from warpseed.compute.gpu import on_device

    places = len(codes) - k + 1
    named = {"case": f"k={k}, {len(codes):,} bases", "parameters": parameters, "queries": len(codes)}
    shared = {**fields, **side_fields("tree_bitmap", tier="fast", device="gpu", threads=1), "item": "limits", **named}
    with on_device(0):
        search, table = _search(codes, k)
        results = int((search() == NEW).sum())
        seconds = kernel_seconds(search, repeats)
        rates, rows = gather_rates({"table": table}, repeats, {**shared, "queries": -1}, written=True)
    floor = floor_seconds({"table": max(places, 0)}, rates)
    return rows + limit_rows(seconds, floor, {**shared, "results": results}, unit="bases/s")


def _search(codes: np.ndarray, k: int) -> tuple[Callable[[], Any], Any]:
    """A search of the codes, brought to the current device, from an empty table on, which gives what places are; and an
    array as large as its table."""
    from warpseed.compute.gpu import cupy, view
    from warpseed.tree_bitmap.gpu_table import DeviceKmers

    xp = cupy()
    padded = np.full(-(-len(codes) // BASES_A_WORD) * BASES_A_WORD, NO_BASE)
    padded[: len(codes)] = codes
    there, answers = view(xp.asarray(padded)), xp.empty(len(padded), xp.uint8)

    def search() -> Any:
        kmers = DeviceKmers(k, len(padded))
        kmers.append(there)
        return answers[: kmers.search(answers, max(len(codes) - k + 1, 0))]

    return search, xp.empty_like(xp.asarray(DeviceKmers(k, len(padded)).table.slots)).reshape(-1)

"""How near the GPU kernels of the fast tier come to what the device can do: codes on the device, answers left there.

The floor is that of `warpseed.measure.floors`. What must be touched at least: of a hash table, and of turns without
bits, one sector for every base, which is read, and for every distinct k-mer written, too; where there are bits a sector
of these for every base, which is read, and for every distinct k-mer one of the turns, read and written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from warpseed.measure.floors import floor_seconds, gather_rates, kernel_seconds, limit_rows
from warpseed.measure.timing import side_fields
from warpseed.tree_bitmap.stream import NEW

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

    places = max(len(codes) - k + 1, 0)
    named = {"case": f"k={k}, {len(codes):,} bases", "parameters": parameters, "queries": len(codes)}
    shared = {**fields, **side_fields("tree_bitmap", tier="fast", device="gpu", threads=1), "item": "limits", **named}
    with on_device(0):
        search, arrays = _search(codes, k)
        results = int((search() == NEW).sum())
        seconds = kernel_seconds(search, repeats)
        floor = 0.0
        rows: list[dict[str, Any]] = []
        for name, sectors, written in _touched(arrays, places, results):
            told_of = {**shared, "queries": -1}
            rates, told = gather_rates({name: arrays[name]}, repeats, told_of, written=written)
            floor, rows = floor + floor_seconds({name: sectors}, rates), rows + told
    return rows + limit_rows(seconds, floor, {**shared, "results": results}, unit="bases/s")


def _touched(arrays: Mapping[str, Any], places: int, distinct: int) -> list[tuple[str, int, bool]]:
    """Of which array how many sectors must be touched at least, and whether they are written, too."""
    if "table" in arrays:
        return [("table", places - distinct, False), ("table", distinct, True)]
    return [("seen", places, False), ("turns", distinct, True)]


def _search(codes: np.ndarray, k: int) -> tuple[Callable[[], Any], dict[str, Any]]:
    """A search of the codes, brought to the current device, from an empty table on, which gives what places are; and
    arrays as large as those of its table, by name."""
    from warpseed.compute.gpu import cupy
    from warpseed.tree_bitmap.gpu_memory import BLOCK_BASES
    from warpseed.tree_bitmap.gpu_structures import Kept
    from warpseed.tree_bitmap.gpu_table import DeviceKmers, search_there

    xp = cupy()
    there, answers = xp.asarray(codes), xp.empty(len(codes), xp.uint8)

    def search() -> Any:
        return answers[: search_there(DeviceKmers(Kept(k), len(codes)), there, answers, BLOCK_BASES)]

    return search, DeviceKmers(Kept(k), len(codes)).structure.arrays()

"""What the text of paper 004 says of its tables, and ours: how many times a GPU is as fast as one CPU thread."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from warpseed.report.measurements import Measurements, agreement, frame, rows_of, times
from warpseed.report.tables import published_rest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["STATEMENT_COLUMNS", "statements_table"]

STATEMENT_COLUMNS = ["system", "printed", "statement", "published", "unit", "note"]
_SAID = {
    "table_1": "the text: sorting on one processor is significantly better",
    "table_2": "the text: a significant improvement by the library's sort",
    "table_3": "the text says 2 times",
}
"""Notes of the means of the printed times."""
_MEAN = "mean speedup of the GPU over the CPU"


def statements_table(measurements: Measurements) -> pd.DataFrame:
    """What the text says of Tables 1 to 3 and what their printed times give, and in a column a machine ours.

    Returns
    -------
    pandas.DataFrame
        A row a statement. Ours is the paper tier's mean over the printed lengths that were measured; NaN, or no column,
        where a machine has no GPU, or no results agree.
    """
    ours = {item: _measured(measurements, item) for item in _SAID}
    places = list(dict.fromkeys(place for values in ours.values() for place in values))
    rows = []
    for item, note in _SAID.items():
        facts = measurements.paper.items[item]
        stated = {"printed": facts["printed"], "statement": f"{_MEAN}, {facts['stage']}, of the printed times"}
        rows.append({**stated, "published": _printed(measurements, item), "unit": "x", "note": note, "item": item})
    for row in rows_of(published_rest(measurements)):
        item = measurements.paper.item_of(row["case"])
        stated = {"printed": row["case"], "statement": f"{row['metric']}, as the text says"}
        rows.append({**stated, "published": row["digits"], "unit": row["unit"], "note": row["note"], "item": item})
    for row in rows:
        row["system"] = measurements.paper.system
        row |= {_name(place): ours.get(row["item"], {}).get(place, math.nan) for place in places}
    return frame(rows, [*STATEMENT_COLUMNS, *map(_name, places)])


def _name(place: tuple[str, str]) -> str:
    source, machine = place
    return "here" if source == "here" else machine


def _printed(measurements: Measurements, item: str) -> str:
    """The mean of the printed times on the CPU over those on the GPU, a ratio a length."""
    published, stage = measurements.published, measurements.paper.items[item]["stage"]
    own = published[(published["item"] == item) & (published["metric"] == stage)]
    seconds = own.pivot_table(index="case", columns="method", values="value")
    return f"{(seconds['CPU'] / seconds['CUDA']).mean():.3g}"


def _measured(measurements: Measurements, item: str) -> dict[tuple[str, str], float]:
    """Of each machine the mean of ours, by source and machine."""
    published = measurements.published
    printed = set(published.loc[published["item"] == item, "case"])
    table = times(measurements, [item])
    own = table[(table["stage"] == measurements.paper.items[item]["stage"]) & (table["tier"] == "paper")]
    own = own[own["case"].isin(printed) & ((own["device"] == "gpu") | (own["threads"] == 1))]
    ratios: dict[tuple[str, str], list[float]] = {}
    for (source, machine, *_), group in own.groupby(["source", "machine", "case", "parameters"], sort=False):
        devices = {row["device"]: row for row in rows_of(group)}
        if {"cpu", "gpu"} <= devices.keys() and not agreement(devices["cpu"], devices["gpu"]):
            speedup = devices["cpu"]["median_s"] / devices["gpu"]["median_s"]
            ratios.setdefault((str(source), str(machine)), []).append(speedup)
    return {place: sum(values) / len(values) for place, values in ratios.items()}

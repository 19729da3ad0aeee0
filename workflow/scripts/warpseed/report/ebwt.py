"""Paper 004, the extended Burrows-Wheeler transform: its tables, its figures and its section of the page. Nothing of it
is elsewhere.

Every function takes the measurements of this system alone (`Measurements.of`). Importing this module costs
nothing: the rules take the names of files from TABLES and FIGURES.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from warpseed.errors import how_many
from warpseed.measure.records import split_parameters
from warpseed.report import blocks, parts, points, style, tables
from warpseed.report import ebwt_values as values_of
from warpseed.report.charts import best_source
from warpseed.report.measurements import Measurements, frame, rows_of, times
from warpseed.report.measurements import speedups as speedups_within
from warpseed.report.words import METHOD, format_number, format_scaled, format_seconds, machine_label, method_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FIGURES", "SAMPLES", "TABLES", "section", "speedups"]

SAMPLES = blocks.SampleTable(
    "Records compared",
    "Of each pair the distance of the extended Burrows-Wheeler transform.",
    {"records": "records", "bases": "bases", "pairs": "pairs"},
)
_STAGES = {"table_1": ("sort",), "table_2": ("sort",), "table_3": ("sort", "distance", "total")}
"""What each table prints."""
_OURS = ("transform", "pairs")
_POSITIONS = "positions of the weighted sequence"
_FLOOR = (
    "Floor of an order: the bytes that a radix sort must move, at the rate of a copy within the GPU's memory, and the "
    "letters and ranks that ties read, at that of random sectors, both measured in the same run; where no bytes are "
    "named, as in older records, letters read and positions written, once. Of distances no floor is known. Share: "
    "floor over time. Medians; the words lie on the device, their order and distances stay there."
)


def speedups(measurements: Measurements) -> pd.DataFrame:
    """Every speedup within an item."""
    return speedups_within(measurements, [*_STAGES, *_OURS])


# Figures


def _positions(case: str) -> int:
    """Of the case "100 positions"."""
    return int(case.split()[0])


def printed_values(measurements: Measurements, item: str) -> pd.DataFrame:
    """Seconds of the stages that a table prints, against positions: what was measured, and what is printed.

    Returns
    -------
    pandas.DataFrame
        system, source, machine, tool, tier, device, gpus, threads, positions, stage, seconds; source "published" where
        it is printed
    """
    rows = []
    for row in rows_of(times(measurements, [item])):
        if row["stage"] in _STAGES[item]:
            shared = {key: row[key] for key in ("system", *METHOD, "tool", "stage")}
            rows.append({**shared, "positions": _positions(row["case"]), "seconds": row["median_s"]})
    published = measurements.published[measurements.published["item"] == item]
    for row in rows_of(published[published["unit"] == "s"]):
        method = measurements.paper.methods[row["method"]]
        shared = {"system": row["system"], "source": "published", "machine": "", "tier": "-", "tool": "published"}
        shared |= {"device": method["device"], "gpus": method.get("gpus", 0), "threads": method["threads"]}
        stage = {"time": measurements.paper.items[item]["stage"]}.get(row["metric"], row["metric"])
        rows.append({**shared, "stage": stage, "positions": _positions(row["case"]), "seconds": row["value"]})
    return frame(rows, ["system", *METHOD, "tool", "positions", "stage", "seconds"])


def _published_curves(table: pd.DataFrame) -> list[points.Points]:
    """One for each device; dashed on the CPU."""
    curves = []
    for device, own in table.groupby("device", sort=False):
        own = own.sort_values("positions")
        name, x, y = f"published, {str(device).upper()}", list(own["positions"]), list(own["seconds"])
        curves.append(points.Points(name, style.GREY, x, y, device == "cpu"))
    return curves


def _describe(table: pd.DataFrame, what: str) -> str:
    machines = table.loc[table["source"] != "published", ["source", "machine"]].drop_duplicates()
    names = [machine_label(row["source"], row["machine"]) for row in rows_of(machines)]
    return "\n".join(f"{name}: {what}" for name in names)


def _figure(measurements: Measurements, item: str) -> style.Drawn:
    """A printed table as a figure."""
    facts = measurements.paper.items[item]
    title = f"{facts['printed']}: {facts['title']}"
    values = printed_values(measurements, item)
    measured = values[values["source"] != "published"]
    if measured.empty:
        return style.empty_figure(title, style.NOTHING), values
    chosen, printed = best_source(measured), values[values["source"] == "published"]
    panels = []
    for stage in _STAGES[item]:
        curves = _published_curves(printed[printed["stage"] == stage])
        curves += points.method_curves(chosen[chosen["stage"] == stage], "positions", "seconds")
        panels.append(points.Panel(f"{stage}, s", curves))
    subtitle = _describe(chosen, f"{chosen['positions'].min()} to {chosen['positions'].max()} positions")
    figure = points.panels(panels, points.ticks(values["positions"]), _POSITIONS, title, subtitle, log_x=False)
    return figure, values


def collection_values(measurements: Measurements) -> pd.DataFrame:
    """Seconds of L against letters, in memory and of the whole command, and the command's peak memory.

    Returns
    -------
    pandas.DataFrame
        system, source, machine, tool, tier, device, gpus, threads, letters, words, length, what, value; length is
        letters of a word, what is ns a letter of "memory" or "command", or "peak", bytes
    """
    rows = []
    stages = {("transform", "total"): "memory", ("files", "process"): "command"}
    for row in rows_of(times(measurements, ["transform", "files"])):
        what = stages.get((row["item"], row["stage"]))
        if what and "differ" not in split_parameters(row["parameters"]):
            rows.append({**_facts(row), "what": what, "value": row["median_s"] / row["queries"] * 1e9})
    records = measurements.records
    peaks = records[(records["item"] == "files") & (records["metric"] == "memory")]
    peaks = peaks.loc[["differ" not in split_parameters(parameters) for parameters in peaks["parameters"]]]
    rows += [
        {**_facts(rows_of(own)[0]), "what": "peak", "value": float(own["value"].median())}
        for _, own in peaks.groupby([*METHOD, "parameters"], sort=False)
    ]
    return frame(rows, ["system", *METHOD, "tool", "letters", "words", "length", "what", "value"])


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    facts = split_parameters(row["parameters"])
    shared = {key: row[key] for key in ("system", *METHOD, "tool")}
    letters, words = int(facts["letters"]), int(facts["words"])
    return {**shared, "letters": letters, "words": words, "length": letters // words}


def _of_one_length(table: pd.DataFrame) -> pd.DataFrame:
    """Words of the length that most collections have, of several the shortest: a curve is of one length."""
    sizes = table.groupby("length")["letters"].nunique()
    return table[table["length"] == sizes.idxmax()]


def collections(measurements: Measurements) -> style.Drawn:
    """Time and memory of the fast tier against letters."""
    title = "Time and memory of the fast tier"
    values = collection_values(measurements)
    if values.empty:
        return style.empty_figure(title, style.NOTHING), values
    chosen = _of_one_length(best_source(values))
    labels = {
        "memory": "L in memory, ns a letter",
        "command": "command, ns a letter",
        "peak": "peak, bytes",
    }
    panels = [
        points.Panel(label, points.method_curves(chosen[chosen["what"] == what], "letters", "value"))
        for what, label in labels.items()
        if (chosen["what"] == what).any()
    ]
    subtitle = _describe(chosen, f"words of {how_many(int(chosen['length'].iloc[0]), 'random letter')}")
    ticks = [(float(letters), format_scaled(letters)) for letters in sorted(set(chosen["letters"]))]
    return points.panels(panels, ticks, "letters", title, subtitle, log_x=True), values


FIGURES: Mapping[str, Callable[[Measurements], style.Drawn]] = {
    **{item: partial(_figure, item=item) for item in _STAGES},
    "collections": collections,
}
"""Figures by the stem of their files, in the order of the page."""

TABLES: Mapping[str, Callable[[Measurements], Any]] = {
    "summary": lambda m: tables.summary_table(speedups(m)),
    "statements": values_of.statements_table,
    **{item: partial(printed_values, item=item) for item in _STAGES},
    "collections": collection_values,
    **{item: partial(tables.long_table, item=item) for item in _OURS},
    "speedups": speedups,
    "gpu_limits": tables.limits_table,
    "gpu_rates": tables.rates_table,
}
"""Tables by the stem of their files."""


# The page


def section(measurements: Measurements, files: blocks.Files) -> list[blocks.Block]:
    """The blocks of this system's section."""
    paper, over = measurements.paper, speedups(measurements)
    return [
        blocks.Text(paper.about),
        blocks.Text(f"Published: {paper.reference}, some {paper.queries:,} {paper.queries_name}; {paper.machine}."),
        *_statements(measurements),
        blocks.links(files, ("statements", "speedups")),
        *blocks.figures(measurements, files, FIGURES),
        *(block for item in _STAGES for block in _printed_table(measurements, item)),
        blocks.links(files, (*_STAGES, "collections")),
        *parts.of_ours(measurements, files, _OURS, over),
        *parts.limits(measurements, _FLOOR, _step),
        *blocks.differences(measurements),
    ]


def _step(row: Mapping[str, Any]) -> str:
    """What a GPU made of a collection."""
    facts = split_parameters(row["parameters"])
    moved = f", {int(facts['moved']) // row['queries']} bytes a letter" if "moved" in facts else ""
    return f"{row['case']}: {facts['step']}{moved}"


def _statements(measurements: Measurements) -> list[blocks.Block]:
    """What the paper's text says of its tables, and ours."""
    note = (
        "Ours is the paper tier's GPU over one CPU thread of the same machine, the mean over the printed lengths that "
        "were measured; only machines with a GPU have a column. The paper's 2 times is not the mean of its printed "
        "totals."
    )
    table = values_of.statements_table(measurements)
    return parts.statements(table, values_of.STATEMENT_COLUMNS, "What the paper says of its tables", note)


def _printed_table(measurements: Measurements, item: str) -> list[blocks.Block]:
    """A table of the paper: a row for each number of positions, in it what is printed, what we measured, and how many
    times as long the printed time is as the paper tier's."""
    facts = measurements.paper.items[item]
    values = printed_values(measurements, item)
    chosen = best_source(values[values["source"] != "published"])
    printed = values[values["source"] == "published"]
    methods = [rows_of(own)[0] for _, own in chosen.groupby(METHOD, sort=False)]
    heads = ["Positions", "published,\nGPU", "published,\nCPU", *map(_column, methods), "GPU,\nratio", "CPU,\nratio"]
    groups = []
    for stage in _STAGES[item]:
        rows = []
        for positions in sorted(set(values["positions"])):
            theirs, ours = (own[(own["stage"] == stage) & (own["positions"] == positions)] for own in (printed, chosen))
            rows.append(blocks.Row([blocks.Cell(str(positions)), *_cells(theirs, ours, methods)]))
        groups.append(blocks.Group(stage, rows))
    return [
        blocks.Heading(f"{facts['printed']}: {facts['title']}"),
        blocks.Text(
            f"{facts['note']} Ratio: the printed time over the paper tier's, on one thread or one GPU. An empty cell: "
            "not measured, or not printed.",
            soft=True,
        ),
        blocks.Table([[blocks.Cell(head) for head in heads]], groups, len(heads)),
    ]


def _column(row: Mapping[str, Any]) -> str:
    where = row["machine"] if row["source"] == "reference" else "here"
    return method_of(row).label.replace(", ", ",\n", 1) + f"\n{where}"


def _cells(printed: pd.DataFrame, measured: pd.DataFrame, methods: list[dict[str, Any]]) -> list[blocks.Cell]:
    """Those of a row behind its positions."""
    published = {row["device"]: row["seconds"] for row in rows_of(printed)}
    ours = {tuple(row[key] for key in METHOD): row["seconds"] for row in rows_of(measured)}
    seconds = [published.get("gpu"), published.get("cpu")]
    seconds += [ours.get(tuple(method[key] for key in METHOD)) for method in methods]
    cells = [blocks.Cell("" if value is None else format_seconds(value)) for value in seconds]
    for device in ("gpu", "cpu"):
        paper = next(
            (row["seconds"] for row in rows_of(measured) if (row["tier"], row["device"]) == ("paper", device)), None
        )
        known = paper is not None and device in published
        cells.append(blocks.Cell(format_number(published[device] / paper) if known else ""))
    return cells

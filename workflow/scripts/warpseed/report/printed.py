"""A paper's printed table, with what was measured below each printed row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from warpseed.report import tables
from warpseed.report.blocks import Block, Cell, Group, Heading, Row, Table, Text, as_printed, shown_speedup
from warpseed.report.measurements import (
    Measurements,
    by_method,
    cases_of,
    found_nothing,
    printed_threads,
    published_of,
    rows_of,
)
from warpseed.report.words import case_title, format_number, format_range, format_seconds

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["printed_table"]

_NO_HITS = "no hits: each query has more than max_hits, or none"


def printed_table(measurements: Measurements, item: str, speedups: pd.DataFrame) -> list[Block]:
    """A table of the paper: a group a case, in it the printed row, then each machine's methods.

    A printed method that the paper's file does not know, or that has no column, has a row of its own.
    """
    paper = measurements.paper
    table = tables.long_table(measurements, item)
    table = table[table["source"] != "published"]
    over = speedups[(speedups["item"] == item) & (speedups["scope"] == "index_open")]
    over = over[over["comparison"] == "gpu_over_cpu"]
    groups = []
    for case, parameters in cases_of(measurements, item):
        rows = _published_rows(measurements, rows_of(published_of(measurements, item, case, parameters)))
        own = table[(table["case"] == case) & (table["parameters"] == parameters)]
        for (source, machine), group in own.groupby(["source", "machine"], sort=False):
            theirs = over[(over["source"] == source) & (over["machine"] == machine)]
            theirs = theirs[(theirs["case"] == case) & (theirs["parameters"] == parameters)]
            rows += _machine_rows(measurements, group, theirs)
        groups.append(Group(case_title(case, parameters), rows))
    names = ["Method", paper.queries_name, "1 core", "n cores", "GPU", "GPU over\n1 core", "GPU over\nn cores"]
    facts = paper.items[item]
    return [
        Heading(f"{facts['printed']}: {facts['title']}"),
        Text(f"{facts['note']}{_repeats(table)}", soft=True),
        _without_empty_columns(Table([[Cell(name) for name in names]], groups, len(names))),
    ]


def _repeats(table: pd.DataFrame) -> str:
    """How many repeats the medians of a table are of."""
    counts = sorted(set(table["repeats"].astype(int)))
    if not counts or counts[-1] == 1:
        return ""
    return f" Medians of {' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))} repeats."


def _without_empty_columns(table: Table) -> Table:
    """The table without the columns that no row says anything in; the last cell of a short row spans what is left."""
    rows = [row.cells for group in table.groups for row in group.rows]
    kept = [place for place in range(table.columns) if any(place < len(cells) and cells[place].text for cells in rows)]

    def shorter(cells: list[Cell]) -> list[Cell]:
        left = [cells[place] for place in kept if place < len(cells)]
        return [*left[:-1], left[-1]._replace(span=len(kept) - len(left) + 1)] if left else []

    groups = [Group(g.title, [Row(shorter(row.cells), row.css) for row in g.rows]) for g in table.groups]
    return Table([shorter(head) for head in table.heads], groups, len(kept))


def _published_rows(measurements: Measurements, values: list[dict[str, Any]]) -> list[Row]:
    """The printed row, and one more for each value that none of its columns is for."""
    paper = measurements.paper
    known = {value["method"]: paper.methods.get(value["method"], {}) for value in values}
    most = max((method.get("threads", 1) for method in known.values() if "gpus" not in method), default=1)
    columns: dict[tuple[str, str, int], int] = {("time", "cpu", 1): 2, ("time", "cpu", most): 3, ("time", "gpu", 1): 4}
    columns |= {("speedup", "over", 1): 5, ("speedup", "over", most): 6}
    if most == 1:
        columns = {key: place for key, place in columns.items() if place not in (3, 6)}
        columns |= {("time", "cpu", 1): 2, ("speedup", "over", 1): 5}
    cells = [Cell("")] * 5
    rest = []
    for value in values:
        method = known[value["method"]]
        kind = "over" if "over" in method else method.get("device", "")
        place = columns.get((value["metric"], kind, method.get("gpus", method.get("threads", 0))))
        if place is None or cells[place - 2].text:
            rest.append(value)
        else:
            unit = f" {value['unit']}" if value["metric"] == "time" else ""
            cells[place - 2] = Cell(as_printed(value["digits"]) + unit)
    queries = Cell(f"{paper.queries:,}")
    rows = []
    if len(rest) < len(values):
        name = f"published, n = {most}" if most > 1 else "published"
        rows.append(Row([Cell(name), queries, *cells], "published"))
    for value in rest:
        metric = "" if value["metric"] == "time" else f"{value['metric']} "
        text = Cell(f"{metric}{as_printed(value['digits'])} {value['unit']}", css="text", span=5)
        rows.append(Row([Cell(f"published, {value['method']}"), queries, text], "published"))
    return rows


def _machine_rows(measurements: Measurements, group: pd.DataFrame, speedups: pd.DataFrame) -> list[Row]:
    place = "here" if group["source"].iloc[0] == "here" else str(group["machine"].iloc[0])
    rows = []
    for (tool, tier), own in group.groupby(["tool", "tier"], sort=False):
        methods = by_method(own)
        cpu = {method.threads: row for method, row in methods.items() if method.device == "cpu"}
        gpu = {method.gpus: row for method, row in methods.items() if method.device == "gpu"}
        cores, name = max(cpu, default=0), next(iter(methods)).name
        theirs = rows_of(speedups[(speedups["numerator_tool"] == tool) & (speedups["numerator_tier"] == tier)])
        over = {(row["denominator_gpus"], row["numerator_threads"]): row for row in theirs}
        queries = Cell(f"{int(own['queries'].max()):,}")
        ends = [1, cores] if cores > 1 else [1, 0]
        times_on_cpu = [_time_cell(cpu.get(threads)) for threads in ends]
        label = f"{place}: {name}" + (f", n = {cores}" if cores > 1 else "")
        none = _NO_HITS if any(map(found_nothing, methods.values())) else ""
        # A row for each number of GPUs, the CPU's times in the first.
        for rank, gpus in enumerate(sorted(gpu) or [1]):
            shown = label if gpus == 1 else f"{label}, {gpus} GPUs"
            cells = times_on_cpu if rank == 0 else [Cell(""), Cell("")]
            over_cells = [shown_speedup(over.get((gpus, threads))) for threads in ends]
            rows.append(Row([Cell(shown, none), queries, *cells, _time_cell(gpu.get(gpus)), *over_cells]))
        if tool == "warpseed" and tier == "paper":
            printed = max(printed_threads(measurements.paper), default=1)
            as_printed_n = f", n = {printed}" if printed in cpu and printed not in ends else ""
            if as_printed_n:  # the CPU's threads of the paper, neither one nor all of this machine
                more = [_time_cell(cpu[printed]), Cell(""), Cell(""), shown_speedup(over.get((1, printed)))]
                rows.append(Row([Cell(f"{place}: {name}{as_printed_n}", none), queries, Cell(""), *more]))
            ratios = _ratio_cells(measurements, cpu, gpu, over)
            if any(cell.text for cell in ratios):
                rows.append(Row([Cell(f"{place}: ratio to the paper{as_printed_n}"), Cell(""), *ratios], "ratio"))
    return rows


def _time_cell(row: Mapping[str, Any] | None) -> Cell:
    if row is None:
        return Cell("")
    small = format_range(row["min_s"], row["max_s"]) if row["repeats"] > 1 else ""
    return Cell(format_seconds(row["median_s"]), small)


def _ratio_cells(
    measurements: Measurements,
    cpu: Mapping[int, Mapping[str, Any]],
    gpu: Mapping[int, Mapping[str, Any]],
    over: Mapping[tuple[int, int], Mapping[str, Any]],
) -> list[Cell]:
    """Ratios of the paper tier to the paper: times for 1 core, the paper's n and the GPU, then the two speedups."""
    cores = max(printed_threads(measurements.paper), default=1)
    timed = [cpu.get(1), cpu.get(cores) if cores > 1 else None, gpu.get(1)]
    cells = [Cell(format_number(row["published_over_measured"]) if row else "") for row in timed]
    for threads in (1, cores):
        row = None if any(map(found_nothing, gpu.values())) else over.get((1, threads))
        published = _published_speedup(measurements, row, threads) if row and row["status"] == "ok" else None
        cells.append(Cell(format_number(row["speedup"] / published) if row and published else ""))
    return cells


def _published_speedup(measurements: Measurements, row: Mapping[str, Any], threads: int) -> float | None:
    printed = published_of(measurements, row["item"], row["case"], row["parameters"])
    for value in rows_of(printed[printed["metric"] == "speedup"]):
        method = measurements.paper.methods.get(value["method"], {})
        if "over" in method and method["threads"] == threads:
            return float(value["value"])
    return None

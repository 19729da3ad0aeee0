"""Tables that any system's report is made of, from the measurements of one system, and the writing of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpseed.measure.records import split_parameters
from warpseed.report.measurements import (
    KEYS,
    TIME_COLUMNS,
    Measurements,
    agreement,
    by_method,
    cases_of,
    found_nothing,
    frame,
    headline,
    joined,
    published_of,
    rows_of,
    times,
)
from warpseed.report.words import Method, format_bases, format_ends, machine_label, side_of, slug, speedup_cell
from warpseed.sequences.files import atomic_path

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "describe_measured",
    "describe_sizes",
    "hits_table",
    "index_table",
    "limits_table",
    "long_table",
    "parameter_table",
    "peer_table",
    "published_rest",
    "rates_table",
    "scaling_table",
    "stage_table",
    "summary_table",
    "wide_table",
    "write_table",
]

_MACHINE = ["source", "machine"]


# A printed table, published and measured


def _published_times(measurements: Measurements, item: str) -> list[dict[str, Any]]:
    paper, published = measurements.paper, measurements.published
    rows = []
    for row in rows_of(published[(published["item"] == item) & (published["metric"] == "time")]):
        # A method that the paper's file does not know is shown under its printed name, and compared with nothing.
        method = paper.methods.get(row["method"], {})
        rows.append(
            {
                **{key: row[key] for key in ("system", "item", "case", "parameters", "method")},
                "source": "published",
                "machine": paper.machine,
                "tool": f"paper {paper.id}",
                "tier": "paper",
                "device": method.get("device", "-"),
                "gpus": method.get("gpus", 0),
                "threads": method.get("threads", 0),
                "stage": paper.items.get(item, {}).get("stage", "total"),
                "median_s": row["value"],
                "queries": paper.queries,
            }
        )
    return rows


def long_table(measurements: Measurements, item: str) -> pd.DataFrame:
    """A printed table in long form: published, here, reference machines.

    Returns
    -------
    pandas.DataFrame
        A row for each case, source, machine and method, in the order of `cases_of`. `method` is the printed method
        of a published row. `us_per_query` is the median over the number of queries; `published_over_measured` is the
        paper's time per query over ours, in the paper tier, on as many CPU threads or GPUs, where the case has the
        paper's parameters and anything was found.
    """
    columns = [*TIME_COLUMNS, "method"]
    measured = headline(times(measurements, [item])).assign(method="")
    table = joined([frame([], columns), frame(_published_times(measurements, item), columns), measured])
    table["us_per_query"] = table["median_s"].astype("float64") / table["queries"].astype("float64") * 1e6
    table["published_over_measured"] = [_published_ratio(measurements, row, table) for row in rows_of(table)]
    order = {case: rank for rank, case in enumerate(cases_of(measurements, item))}
    # A published row stands with the measured cases that have the paper's parameters.
    names = {case: rank for (case, _), rank in reversed(order.items())}
    keys = zip(table["case"], table["parameters"], strict=True)
    ranks = [order.get(key, names[key[0]]) for key in keys]
    return table.iloc[sorted(range(len(ranks)), key=ranks.__getitem__)].reset_index(drop=True)


def _published_ratio(measurements: Measurements, row: dict[str, Any], table: pd.DataFrame) -> float:
    if row["source"] == "published" or row["tool"] != "warpseed" or row["tier"] != "paper" or found_nothing(row):
        return math.nan
    if published_of(measurements, row["item"], row["case"], row["parameters"]).empty:
        return math.nan
    theirs = table[(table["source"] == "published") & (table["case"] == row["case"])]
    theirs = theirs[(theirs["device"] == row["device"]) & (theirs["gpus"] == row["gpus"])]
    if row["device"] == "cpu":
        theirs = theirs[theirs["threads"] == row["threads"]]
    return float(theirs["us_per_query"].iloc[0]) / row["us_per_query"] if len(theirs) else math.nan


def _column(method: Method) -> str:
    name = method.tier if method.tool == "warpseed" else method.tool
    if method.device == "gpu":
        return f"{name}_gpu_s" if method.gpus < 2 else f"{name}_{method.gpus}_gpus_s"
    return f"{name}_{method.threads}_core{'s' if method.threads > 1 else ''}_s"


def wide_table(measurements: Measurements, item: str, speedups: pd.DataFrame) -> pd.DataFrame:
    """A printed table with one row a case, as printed, and our columns to the right.

    Returns
    -------
    pandas.DataFrame
        Columns `published_*`, then `here_*`, then one group a reference machine, named after it. Speedup
        cells are text: a number, "results differ", "results not checked", or empty where nothing was
        measured.
    """
    table = long_table(measurements, item)
    table = table[table["source"] != "published"]
    speedups = speedups[(speedups["item"] == item) & (speedups["scope"] == "index_open")]
    rows: list[dict[str, Any]] = []
    for case, parameters in cases_of(measurements, item):
        row: dict[str, Any] = {"system": measurements.paper.system, "case": case, "parameters": parameters}
        for value in rows_of(published_of(measurements, item, case, parameters)):
            unit = "" if value["unit"] == "x" else f"_{value['unit']}"
            row[f"published_{slug(value['method'])}{slug(unit)}"] = value["value"]
        own = table[(table["case"] == case) & (table["parameters"] == parameters)]
        over = speedups[(speedups["case"] == case) & (speedups["parameters"] == parameters)]
        for (source, machine), group in own.groupby(_MACHINE, sort=False):
            prefix = "here" if source == "here" else str(machine)
            row.update(_wide_cells(prefix, group))
            for cell in rows_of(over[(over["source"] == source) & (over["machine"] == machine)]):
                row[f"{prefix}_{slug(side_of(cell, 'numerator'))}_over_{slug(side_of(cell, 'denominator'))}"] = (
                    speedup_cell(cell)
                )
        rows.append(row)
    columns = dict.fromkeys(key for row in rows for key in row)
    return frame(rows, [*columns] or ["system", "case", "parameters"])


def _wide_cells(prefix: str, group: pd.DataFrame) -> dict[str, Any]:
    cells: dict[str, Any] = {f"{prefix}_machine": group["machine"].iloc[0]}
    cells[f"{prefix}_queries"] = int(group["queries"].max())
    for method, row in by_method(group).items():
        column = f"{prefix}_{_column(method)}"
        cells[column] = row["median_s"]
        cells[column + "_min"], cells[column + "_max"] = row["min_s"], row["max_s"]
        if not math.isnan(row["published_over_measured"]):
            cells[column[:-2] + "_published_over_measured_per_query"] = row["published_over_measured"]
    return cells


def published_rest(measurements: Measurements) -> pd.DataFrame:
    """Published values of items that we do not measure, such as those in a paper's text."""
    published = measurements.published
    return published[~published["item"].isin(list(measurements.paper.items))].reset_index(drop=True)


# Speedups


def summary_table(speedups: pd.DataFrame) -> pd.DataFrame:
    """For each comparison and scope, lowest, median and highest speedup over the cases.

    Returns
    -------
    pandas.DataFrame
        A row for each system, source, machine, item and pair of methods, in the order of `speedups`; `cases` says
        how many cases are in it, `least_queries` and `most_queries` what they have (0 for no case), and `differ` how
        many were left out because results or repeats differed, or results were not checked.
    """
    sides = [column for column in speedups.columns if column.startswith(("numerator_", "denominator_"))]
    sides = [column for column in sides if not column.endswith(("_s", "_results"))]
    keys = ["system", *_MACHINE, "item", "comparison", "scope", *sides]
    rows = []
    for key, group in speedups.groupby(keys, sort=False):
        known = group[group["status"] == "ok"]
        good, queries = known["speedup"], known["queries"]
        low, middle, high = (good.min(), good.median(), good.max()) if len(good) else (math.nan,) * 3
        row = {"lowest": low, "median": middle, "highest": high, "cases": len(good), "differ": len(group) - len(good)}
        least, most = (int(queries.min()), int(queries.max())) if len(good) else (0, 0)
        rows.append({**dict(zip(keys, key, strict=True)), **row, "least_queries": least, "most_queries": most})
    return frame(rows, [*keys, "lowest", "median", "highest", "cases", "differ", "least_queries", "most_queries"])


def peer_table(speedups: pd.DataFrame) -> pd.DataFrame:
    """The fast tier beside each peer: index open against the peer less its loading, and whole processes."""
    return speedups[speedups["comparison"] == "fast_over_peer"].reset_index(drop=True)


def hits_table(measurements: Measurements) -> pd.DataFrame:
    """Of each peer how many hits it printed, how many of them are ours too, and how many of ours are its.

    Returns
    -------
    pandas.DataFrame
        A row for each case, peer and number of threads: `hits`, `hits_of_theirs` (of these, those that we have),
        `our_hits`, `hits_of_ours` (of these, those that it has); `peak_bytes` of its process and `our_peak_bytes`.
    """
    records = measurements.records
    counts = records[(records["unit"] == "hits") & (records["tool"] != "warpseed")]
    memory = records[(records["stage"] == "process") & (records["metric"] == "memory")]
    keys = [key for key in KEYS if key not in ("tier", "device", "gpus")]
    peaks = memory.groupby(keys)["value"].median().to_dict()
    place = keys.index("tool")
    rows = []
    for key, group in counts.groupby(keys, sort=False):
        ours = (*key[:place], "warpseed", *key[place + 1 :])
        sizes = {"peak_bytes": peaks.get(key, math.nan), "our_peak_bytes": peaks.get(ours, math.nan)}
        found = {row["metric"]: int(row["value"]) for row in rows_of(group)}
        rows.append({**dict(zip(keys, key, strict=True)), **found, **sizes})
    columns = [*keys, "hits", "hits_of_theirs", "our_hits", "hits_of_ours", "peak_bytes", "our_peak_bytes"]
    return frame(rows, columns)


# Stages, curves, the index


def stage_table(measurements: Measurements, item: str, *, with_index: bool = False) -> pd.DataFrame:
    """Seconds and share of each stage of an item's measurements.

    Parameters
    ----------
    with_index : whether bringing the index to a device is one of the stages; usually it happens once, for many runs

    Returns
    -------
    pandas.DataFrame
        The columns of `times` and `share` (0 to 1). What `total` holds beyond its named stages is the stage
        "other". `load` happens once and is left out.
    """
    table = times(measurements, [item])
    outside = ["load", "process", "total", *([] if with_index else ["index_to_device"])]
    rows = []
    for _, group in table.groupby(KEYS, sort=False):
        parts = group[~group["stage"].isin(outside)]
        total = group.loc[group["stage"] == "total", "median_s"].sum()
        rest = total - parts["median_s"].sum()
        entries = rows_of(parts)
        if not entries:
            continue
        if rest > 0.005 * total:
            entries.append({**entries[0], "stage": "other", "median_s": rest, "min_s": math.nan, "max_s": math.nan})
        whole = sum(entry["median_s"] for entry in entries)
        rows += [{**entry, "share": entry["median_s"] / whole if whole else 0.0} for entry in entries]
    return frame(rows, [*TIME_COLUMNS, "share"])


def parameter_table(measurements: Measurements, item: str, names: Iterable[str]) -> pd.DataFrame:
    """Queries a second of an item against its parameters.

    Returns
    -------
    pandas.DataFrame
        The columns of `times`, one int64 column for each of the parameters `names` (0 where a record has it not),
        and `queries_per_s`; ordered by method, then by the parameters.
    """
    names = list(names)
    table = headline(times(measurements, [item])).copy()
    fields = [split_parameters(parameters) for parameters in table["parameters"]]
    for name in names:
        table[name] = [int(own.get(name, 0)) for own in fields]
        table[name] = table[name].astype("int64")
    table["queries_per_s"] = table["queries"].astype("float64") / table["median_s"].astype("float64")
    return table.sort_values([*_MACHINE, *names[1:], "tool", "tier", "device", "gpus", "threads", *names[:1]])


def scaling_table(measurements: Measurements, item: str) -> pd.DataFrame:
    """Speedup of the CPU over one thread, from the records of an item, with the status of each point."""
    table = headline(times(measurements, [item]))
    table = table[table["device"] == "cpu"]
    rows = []
    for _, group in table.groupby([key for key in KEYS if key != "threads"], sort=False):
        base = group[group["threads"] == 1]
        if base.empty:
            continue
        one = rows_of(base)[0]
        for row in rows_of(group.sort_values("threads")):
            status = agreement(one, row)
            speedup = math.nan if status else one["median_s"] / row["median_s"]
            rows.append({**row, "speedup": speedup, "status": status or "ok"})
    return frame(rows, [*TIME_COLUMNS, "speedup", "status"])


_INDEX_COLUMNS = ["system", *_MACHINE, "part", "bytes", "formula_bytes", "bases", "bytes_per_base"]
_INDEX_COLUMNS += ["formula_bytes_per_base"]


def index_table(measurements: Measurements) -> pd.DataFrame:
    """Bytes and bytes per base of each part of the index, beside the paper's formula (NaN where it gives none)."""
    records = measurements.records
    index = records[records["item"] == "index"]
    rows = []
    for (system, source, machine), group in index.groupby(["system", *_MACHINE], sort=False):
        bases = group.loc[(group["metric"] == "count") & (group["unit"] == "bases"), "value"].max()
        parts = group[group["metric"].isin(["size", "formula"])]
        for parameters, part in parts.groupby("parameters", sort=False):
            sizes = part.drop_duplicates("metric").set_index("metric")["value"]
            size, formula = float(sizes.get("size", math.nan)), float(sizes.get("formula", math.nan))
            name = split_parameters(str(parameters))["part"]
            values = [name, size, formula, bases, size / bases, formula / bases]
            rows.append(dict(zip(_INDEX_COLUMNS, [system, source, machine, *values], strict=True)))
    return frame(rows, _INDEX_COLUMNS)


def describe_sizes(measurements: Measurements, table: pd.DataFrame, limited: pd.DataFrame | None = None) -> str:
    """Machines of a table of one system, queries a set and the reference's bases, for a subtitle; apart from them the
    queries of `limited`, which `limits_table` made."""
    index = index_table(measurements)
    found: dict[tuple[str, str], list[str]] = {}
    for words, part in (("", table), ("beside the GPU's limits ", limited)):
        for (source, machine), group in part.groupby(_MACHINE, sort=False) if part is not None else ():
            counts = f"{format_ends(group['queries'])} {measurements.paper.queries_name}"
            found.setdefault((str(source), str(machine)), []).append(words + counts)
    texts = []
    for (source, machine), counted in found.items():
        own = index[(index["source"] == source) & (index["machine"] == machine)]["bases"]
        bases = f" on {format_bases(float(own.iloc[0]))}" if len(own) else ""
        texts.append(f"{machine_label(source, machine)}: {', '.join(counted)}{bases}")
    return "   ·   ".join(texts)


def describe_measured(measurements: Measurements, items: Iterable[str]) -> str:
    """Sizes of all that was measured of some items, and beside a GPU's limits; "" for nothing."""
    return describe_sizes(measurements, times(measurements, items), limits_table(measurements))


# Beside the device's limits


def limits_table(measurements: Measurements) -> pd.DataFrame:
    """One row a case: medians of each tier's time and throughput, its floor and its share of the floor.

    Returns
    -------
    pandas.DataFrame
        system, source, machine, case, parameters, queries, and for each tier `<tier>_time_s`,
        `<tier>_throughput_per_s`, `<tier>_floor_s`, `<tier>_share`; empty cells where a tier was not measured, and for
        a floor that is above the time, which is none.
    """
    records = measurements.records
    limits = records[(records["item"] == "limits") & (records["metric"] != "rate")]
    suffixes = {"time": "time_s", "throughput": "throughput_per_s", "floor": "floor_s", "share": "share"}
    tiers = [tier for tier in ("paper", "fast") if tier in set(limits["tier"])]
    tiers += [tier for tier in dict.fromkeys(limits["tier"]) if tier not in tiers]
    keys = ["system", *_MACHINE, "case", "parameters", "queries"]
    rows = []
    for key, group in limits.groupby(keys, sort=False):
        medians = group.groupby(["tier", "metric"])["value"].median()
        names = [f"{tier}_{suffixes.get(metric, metric)}" for tier, metric in medians.index]
        cells = dict(zip(names, medians, strict=True))
        for tier in tiers:
            if cells.get(f"{tier}_share", 0) > 1:
                del cells[f"{tier}_floor_s"], cells[f"{tier}_share"]
        rows.append({**dict(zip(keys, key, strict=True)), **cells})
    others = [metric for metric in dict.fromkeys(limits["metric"]) if metric not in suffixes]
    return frame(rows, [*keys, *(f"{tier}_{suffix}" for tier in tiers for suffix in (*suffixes.values(), *others))])


def rates_table(measurements: Measurements) -> pd.DataFrame:
    """Rates measured for the floors: array, its bytes, and random 32-byte sectors a second, medians."""
    records = measurements.records
    rates = records[(records["item"] == "limits") & (records["metric"] == "rate")]
    keys = ["system", *_MACHINE, "case", "parameters"]
    rows = []
    for key, group in rates.groupby(keys, sort=False):
        facts = split_parameters(str(key[-1]))
        known = {"array": facts.get("array", ""), "bytes": int(facts.get("bytes", -1))}
        rows.append({**dict(zip(keys, key, strict=True)), **known, "per_s": group["value"].median()})
    return frame(rows, [*keys, "array", "bytes", "per_s"])


def write_table(path: str | Path, table: pd.DataFrame) -> None:
    """Write a table as TSV with a header, numbers with six significant digits."""
    with atomic_path(path) as temporary:
        table.to_csv(temporary, sep="\t", index=False, float_format="%.6g", lineterminator="\n")

"""Paper 000, k-mer seeds: its tables, its figures and its section of the page. Nothing of it is elsewhere.

Every function takes the measurements of this system alone (`Measurements.of`). Importing this module costs
nothing: the rules take the names of files from TABLES and FIGURES.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from warpseed.measure.records import split_parameters
from warpseed.report import blocks, building, charts, parts, style, tables
from warpseed.report.curves import Curves, curves
from warpseed.report.measurements import (
    Measurements,
    cases_of,
    cross_speedups,
    frame,
    joined,
    rows_of,
)
from warpseed.report.measurements import speedups as speedups_within
from warpseed.report.printed import printed_table
from warpseed.report.words import describe_parameters, format_bases, format_number, machine_label

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FIGURES", "TABLES", "section", "speedups"]

_OURS = ("file_to_file", "in_memory")
"""Items that the paper does not print."""
_LIMITED = (
    "Errors: the share of wrong bases in the reads that the k-mers are of. Letters to columns: the whole search, from "
    "the letters of the k-mers on the device to the hits in columns there."
)
"""What names of cases beside the limits say."""

_RATIO_NOTE = (
    "Ratio rows: for a time, the paper's time per query over ours (above 1: ours is faster; genomes and machines "
    "differ); for a speedup, ours over the paper's. Ratios to the paper's CPU cores stand only where ours are as many, "
    "and none where no hit was found: in a large genome each short k-mer may have more than max_hits, and is dropped."
)


def speedups(measurements: Measurements) -> pd.DataFrame:
    """Every speedup within an item, and of Figure 5: the GPU that locates on the CPU, over Table I's CPU."""
    within = speedups_within(measurements, ["whole", "search", *_OURS])
    return joined([within, cross_speedups(measurements, "locate_on_cpu", "whole", "paper")])


_STATEMENT_COLUMNS = ["system", "printed", "statement", "published", "unit", "note"]
_OF_DATA_SETS = {"mean speedup": "mean", "max speedup": "max"}
"""What the text says of all data sets together, and how it is made of theirs."""


def statements_table(measurements: Measurements) -> pd.DataFrame:
    """What the paper's text says of Table I, and in a column a machine ours.

    Returns
    -------
    pandas.DataFrame
        A row a statement. Ours is of the paper tier on one GPU, over as many CPU cores as the paper's, and of the
        paper's data sets that have hits; NaN, or no column, where a machine has no such speedup.
    """
    over = speedups_within(measurements, ["whole"])
    over = over[(over["comparison"] == "gpu_over_cpu") & (over["scope"] == "index_open") & (over["status"] == "ok")]
    over = over[
        (over["denominator_tier"] == "paper") & (over["denominator_gpus"] == 1) & (over["denominator_results"] > 0)
    ]
    over = over[over["case"].isin(list(measurements.paper.cases))]
    places = {
        "here" if source == "here" else str(machine): own
        for (source, machine), own in over.groupby(["source", "machine"], sort=False)
    }
    rows = []
    for row in rows_of(tables.published_rest(measurements)):
        threads = measurements.paper.methods[row["method"]]["threads"]
        shared = {"system": row["system"], "printed": row["case"], "statement": f"{row['method']}, {row['metric']}"}
        shared |= {"published": row["digits"], "unit": row["unit"], "note": row["note"]}
        ours = {place: own.loc[own["numerator_threads"] == threads, "speedup"] for place, own in places.items()}
        how = _OF_DATA_SETS[row["metric"]]
        rows.append({**shared, **{place: found.agg(how) for place, found in ours.items()}})
    return frame(rows, [*_STATEMENT_COLUMNS, *places])


TABLES: Mapping[str, Callable[[Measurements], Any]] = {
    "summary": lambda m: tables.summary_table(speedups(m)),
    "statements": statements_table,
    "table_1": lambda m: tables.wide_table(m, "whole", speedups(m)),
    "table_1_long": lambda m: tables.long_table(m, "whole"),
    "table_2": lambda m: tables.wide_table(m, "search", speedups(m)),
    "table_2_long": lambda m: tables.long_table(m, "search"),
    **{item: partial(tables.long_table, item=item) for item in _OURS},
    "speedups": speedups,
    "peers": lambda m: tables.peer_table(speedups(m)),
    "gpu_limits": tables.limits_table,
    "gpu_rates": tables.rates_table,
}
"""Tables by the stem of their files."""


# Figures


def figure_5(measurements: Measurements) -> style.Drawn:
    """Figure 5: the GPU search with locating on the CPU, over 1, the paper's 4 and n CPU cores (paper tier).

    A panel for this run and for each reference machine that measured it: their genomes differ in size.
    """
    title = "Figure 5: GPU search, locating on the CPU, over the CPU version"
    table = speedups(measurements)
    values = table[table["item"] == "locate_on_cpu"]
    known = _published_speedups(measurements)
    panels = {
        tables.describe_sizes(measurements, group): _figure_5_bars(measurements, group, known)
        for _, group in values.groupby(["source", "machine"], sort=False)
    }
    panels = panels or {"": _figure_5_bars(measurements, values, known)}
    groups_label = "data set; D: mismatches allowed" if len(values) else ""
    subtitle = f"paper tier   ·   {_published_sizes(measurements)}"
    drawn = charts.bars(panels, title, subtitle, "speedup over the CPU, log scale", groups_label)
    printed = frame(known, list(known[0]) if known else [])
    return drawn, joined([values.assign(published=False), printed])


def _figure_5_bars(measurements: Measurements, values: pd.DataFrame, known: list[dict[str, Any]]) -> charts.Bars:
    """One source's panel, beside the points that the paper prints."""
    threads = sorted(set(values["numerator_threads"]))
    measured = set(zip(values["case"], values["parameters"], strict=True))
    cases = [case for case in cases_of(measurements, "locate_on_cpu") if case in measured]
    heights = {
        (cases.index((row["case"], row["parameters"])), threads.index(row["numerator_threads"])): (
            row["speedup"] if row["status"] == "ok" else row["status"]
        )
        for row in rows_of(values)
    }
    shades = ["#0072B2", "#56B4E9", "#8c8c8c"]
    return charts.Bars(
        groups=[_with_mismatches(*case) for case in cases] or [row["case"] for row in known[:1]],
        series={f"over {_cores(count)}": shades[rank % len(shades)] for rank, count in enumerate(threads)},
        values=heights,
        points=[
            (row["speedup"], f"published: {row['speedup']:.1f}\n{row['case']}, over {_cores(row['numerator_threads'])}")
            for row in known
        ],
    )


def _published_speedups(measurements: Measurements) -> list[dict[str, Any]]:
    published, methods = measurements.published, measurements.paper.methods
    table = published[(published["item"] == "locate_on_cpu") & (published["metric"] == "speedup")]
    return [
        {key: row[key] for key in ("system", "item", "case", "parameters", "method")}
        | {"source": "published", "numerator_threads": methods.get(row["method"], {}).get("threads", 0)}
        | {"speedup": row["value"], "status": "ok", "published": True}
        for row in rows_of(table)
    ]


def _cores(count: int) -> str:
    return f"{count} core{'' if count == 1 else 's'}"


def _with_mismatches(case: str, parameters: str) -> str:
    """A case's name over its mismatches, as short as groups of bars need it."""
    return f"{case}\nD = {split_parameters(parameters)['mismatches']}"


def _two_lines(case: str, parameters: str) -> str:
    """A case's name over its mismatches; the name says k."""
    mismatches = f"mismatches={split_parameters(parameters)['mismatches']}"
    return f"{case}\n{describe_parameters(mismatches)}"


def _published_sizes(measurements: Measurements) -> str:
    paper = measurements.paper
    return f"published: {paper.queries:,} {paper.queries_name} on {paper.reference}"


def kmer_times(measurements: Measurements) -> style.Drawn:
    """Table I as bars: microseconds per k-mer for each tier, device and peer, a panel a data set."""
    title = "Table I: time per k-mer, from k-mer file to located hits"
    table = tables.long_table(measurements, "whole")
    published = table["source"] == "published"
    measured = charts.with_reference_gpu(table[~published])
    values = joined([table[published], measured])
    if measured.empty:
        return style.empty_figure(title, style.NOTHING), values
    subtitle = tables.describe_sizes(measurements, measured) + "   ·   " + _published_sizes(measurements)
    drawn = set(values["case"])
    panels = {case: _two_lines(*case) for case in cases_of(measurements, "whole") if case[0] in drawn}
    label = "microseconds per k-mer, log scale (lower is better)"
    return charts.lanes(values, panels, title, subtitle, label), values


def throughput(measurements: Measurements) -> style.Drawn:
    """k-mers a second against k, a panel a number of mismatches, log axis."""
    title = "Throughput against k: k-mers a second, both strands, located"
    values = charts.with_reference_gpu(tables.parameter_table(measurements, "throughput", ["k", "mismatches"]))
    if values.empty:
        return style.empty_figure(title, style.NOTHING), values
    panels = [(count, describe_parameters(f"mismatches={count}")) for count in sorted(set(values["mismatches"]))]
    label = "k-mers per second, log scale"
    chart = Curves(values, "k", "queries_per_s", "mismatches", panels, "k (bases)", label)
    return curves(chart, title, tables.describe_sizes(measurements, values)), values


def scaling(measurements: Measurements) -> style.Drawn:
    """Speedup over one thread against threads, with the ideal line."""
    title = "Scaling with CPU threads, from file to file"
    values = charts.one_source(tables.scaling_table(measurements, "scaling"))
    good = values[values["status"] == "ok"]
    if good.empty:
        text = style.NOTHING if values.empty else "Nothing to draw: results differ between thread counts."
        return style.empty_figure(title, text), values
    good = good.assign(panel=good["case"] + ": " + good["parameters"])
    panels = {row["panel"]: _two_lines(row["case"], row["parameters"]).replace("\n", ", ") for row in rows_of(good)}
    label = "speedup over one thread"
    chart = Curves(good, "threads", "speedup", "panel", list(panels.items()), "CPU threads", label, ideal=True)
    return curves(chart, title, tables.describe_sizes(measurements, good)), values


def stages(measurements: Measurements) -> style.Drawn:
    """Where the time goes from k-mer file to hits in memory: share of each stage, a panel a method."""
    title = "Where the time goes, from k-mer file to hits in memory"
    table = tables.stage_table(measurements, "whole")
    values = charts.with_reference_gpu(table[table["tool"] == "warpseed"])
    if values.empty:
        return style.empty_figure(title, style.NOTHING), values
    order = cases_of(measurements, "whole")
    ranks = [order.index(case) for case in zip(values["case"], values["parameters"], strict=True)]
    drawn = values.iloc[sorted(range(len(ranks)), key=ranks.__getitem__)]
    return charts.shares(drawn, title, tables.describe_sizes(measurements, values)), values


def index_size(measurements: Measurements) -> style.Drawn:
    """Bytes per base of each part of the index, beside the paper's formula."""
    title = "Index: bytes per base of each part"
    values = charts.one_source(tables.index_table(measurements))
    if values.empty:
        return style.empty_figure(title, style.NOTHING), values
    values = values.sort_values("bytes_per_base", ascending=False, kind="stable")
    row = rows_of(values)[0]
    total = float(values["bytes"].sum())
    subtitle = (
        f"{machine_label(row['source'], row['machine'])}: {format_bases(float(row['bases']))}, "
        f"{total / 1e6:,.1f} MB in all, {format_number(total / float(row['bases']))} bytes a base"
    )
    return charts.sizes(values, title, subtitle), values


FIGURES: Mapping[str, Callable[[Measurements], style.Drawn]] = {
    "times": kmer_times,
    "figure_5": figure_5,
    "throughput": throughput,
    "scaling": scaling,
    "stages": stages,
    "index": index_size,
}
"""Figures by the stem of their files, in the order of the page."""


# The page


def section(measurements: Measurements, files: blocks.Files) -> list[blocks.Block]:
    """The blocks of this system's section."""
    paper = measurements.paper
    over = speedups(measurements)
    sizes = tables.describe_measured(measurements, ["whole", "search", *_OURS]) or style.NOTHING.removesuffix(".")
    return [
        blocks.Text(paper.about),
        blocks.Text(f"Sizes: {sizes}; {_published_sizes(measurements)}, {paper.machine}."),
        *parts.real_reads(measurements, files),
        *printed_table(measurements, "whole", over),
        blocks.links(files, ("table_1", "table_1_long", "speedups")),
        *printed_table(measurements, "search", over),
        blocks.links(files, ("table_2", "table_2_long")),
        blocks.Text(_RATIO_NOTE, soft=True),
        *_statements(measurements),
        blocks.links(files, ("statements",)),
        *parts.of_ours(measurements, files, _OURS, over),
        *parts.beside_peers(measurements, over, [parts.Peer("bowtie", "bowtie -v D -a")]),
        *blocks.figures(measurements, files, FIGURES),
        *building.index_build(measurements, of_all=True),
        *parts.limits(measurements, f"{parts.SECTORS} {_LIMITED}"),
        *blocks.differences(measurements),
    ]


def _statements(measurements: Measurements) -> list[blocks.Block]:
    """What the paper's text says of Table I, and ours."""
    note = (
        "Over the five data sets. Ours: the paper tier on one GPU, of machines with one, over as many CPU cores as the "
        "paper's; a data set of which nothing is found, as every k-mer has more than max_hits, is left out."
    )
    return parts.statements(statements_table(measurements), _STATEMENT_COLUMNS, "What the paper says of Table I", note)

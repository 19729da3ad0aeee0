"""Charts that any system's figures are made of: bars, lanes, curves, shares, sizes. Each returns its figure.

What is drawn comes as tables and labels; a chart decides nothing but places. Where nothing was measured the figure
says so; a published point that a paper does not print is not drawn.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from warpseed.report import style
from warpseed.report.measurements import joined, rows_of
from warpseed.report.words import format_number, format_seconds, method_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "Bars",
    "bars",
    "best_source",
    "lanes",
    "one_source",
    "shares",
    "sizes",
    "with_reference_gpu",
]

_PANELS_ABREAST = 3
_PANEL_LETTERS = 78
"""Letters of a small title that are as wide as a panel which stands alone."""


def with_reference_gpu(table: pd.DataFrame) -> pd.DataFrame:
    """Keep this run's rows, with the first reference machine's GPU rows where no GPU was measured here."""
    here = table[table["source"] == "here"]
    if (here["device"] == "gpu").any():
        return here
    gpu = table[(table["source"] == "reference") & (table["device"] == "gpu")]
    return joined([here, gpu[gpu["machine"] == gpu["machine"].iloc[0]]]) if len(gpu) else here


def one_source(table: pd.DataFrame) -> pd.DataFrame:
    """Keep what was measured here, or else the first reference machine's rows."""
    here = table[table["source"] == "here"]
    if len(here) or table.empty:
        return here
    return table[table["machine"] == table["machine"].iloc[0]]


def best_source(table: pd.DataFrame) -> pd.DataFrame:
    """What was measured here, with a reference machine's GPU where none is here; or else on the first one."""
    chosen = with_reference_gpu(table)
    return chosen if len(chosen) else one_source(table)


# Speedups as bars from 1


class Bars(NamedTuple):
    """One panel of `bars`.

    Attributes
    ----------
    groups : list of str
        Labels below the groups of bars.
    series : dict
        Name of each bar of a group to its colour.
    values : dict
        (group, series) ranks to a speedup, or to the text that stands there instead.
    points : list of (float, str)
        Published speedups and their labels, drawn at the right.
    """

    groups: list[str]
    series: dict[str, str]
    values: dict[tuple[int, int], float | str]
    points: list[tuple[float, str]]


def bars(panels: Mapping[str, Bars], title: str, subtitle: str, label: str, groups_label: str = "") -> Figure:
    """Speedups as bars on a log axis, from the line at 1 up or down: no value is struck by the line.

    Panels by their titles stand one below the other, each with its legend, all on one axis; `groups_label` stands below
    the last.
    """
    titles = [textwrap.fill(name, _PANEL_LETTERS) for name in panels]
    more_lines = 0.17 * max(name.count("\n") for name in titles)
    # Inches: a panel; what lies between two of them, which is labels, title and legend.
    panel, between, top, bottom = 2.64, 1.12 + more_lines, 1.17 + more_lines, 0.79
    height = top + bottom + len(panels) * panel + (len(panels) - 1) * between
    figure, grid = style.pyplot().subplots(len(panels), 1, squeeze=False, sharey=True, figsize=(style.WIDTH, height))
    figure.subplots_adjust(left=0.1, right=0.98, top=1 - top / height, bottom=bottom / height, hspace=between / panel)
    _speedup_axis(grid[0][0], panels.values())
    for axes, name, chart in zip(grid.flat, titles, panels.values(), strict=True):
        _draw_bars(axes, chart)
        axes.set_title(name, pad=24, fontsize=style.SMALL)
        axes.set_ylabel(label)
    grid[-1][0].set_xlabel(groups_label)
    style.heading(figure, title, subtitle)
    return figure


def _speedup_axis(axes: Axes, charts: Iterable[Bars]) -> None:
    """A log axis that holds all speedups and 1, with room for what is written beside them."""
    drawn = [1.0]
    for chart in charts:
        drawn += [value for value in chart.values.values() if not isinstance(value, str)]
        drawn += [value for value, _ in chart.points]
    low, high = min(drawn) / 2, max(drawn) * 2.2
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    axes.set_yticks([10.0**n for n in powers], [f"{10.0**n:g}" for n in powers])


def _draw_bars(axes: Axes, chart: Bars) -> None:
    width = 0.36 if len(chart.series) > 1 else 0.5
    colours = list(chart.series.values())
    for (group, rank), value in chart.values.items():
        x = group + (rank - (len(colours) - 1) / 2) * width
        if isinstance(value, str):
            axes.annotate(value, (x, 1), (0, 5), textcoords="offset points", rotation=90, ha="center", va="bottom",
                          fontsize=style.SMALL, color=style.GREY)  # fmt: skip
            continue
        axes.bar(x, value - 1, width * 0.94, bottom=1, color=colours[rank])
        up = value >= 1
        axes.annotate(format_number(value), (x, value), (0, 3 if up else -3), textcoords="offset points", ha="center",
                      va="bottom" if up else "top", fontsize=style.SMALL)  # fmt: skip
    # Published points stand right of the last bars, where they can cover nothing.
    for value, text in chart.points:
        x = len(chart.groups) - 0.42
        axes.plot(x, value, marker="D", ms=7, mfc="white", mec=style.INK, mew=1.4, ls="none", zorder=3)
        axes.annotate(text, (x, value), (9, 0), textcoords="offset points", va="center", fontsize=style.SMALL,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})  # fmt: skip
    axes.tick_params(axis="y", which="minor", length=0)
    axes.set_xticks(range(len(chart.groups)), chart.groups)
    axes.set_xlim(-0.6, len(chart.groups) - 0.45 + 1.35 * bool(chart.points))
    axes.grid(axis="y")
    axes.axhline(1, color=style.INK, lw=0.9)
    if chart.values:
        handles = [style.pyplot().Rectangle((0, 0), 1, 1, color=colour) for colour in colours]
        axes.legend(handles, list(chart.series), frameon=False, loc="lower left", ncols=len(colours),
                    bbox_to_anchor=(0, 1), borderaxespad=0.3)  # fmt: skip
    else:
        axes.text(0.3, 0.7, style.NOTHING, transform=axes.transAxes, ha="center", color=style.GREY,
                  bbox={"facecolor": "white", "edgecolor": "none"})  # fmt: skip


# Times as bars, a panel a case


def _lane(row: dict[str, Any]) -> tuple[tuple[Any, ...], str]:
    """A row's place among the lanes of its chart, and its label: published first, then CPU, GPU and peers."""
    published = row["source"] == "published"
    method = method_of(row)
    if published:
        kind = 0
        label = f"published, {row['method']}"
    else:
        kind = {"paper": 1, "fast": 2}.get(row["tier"], 3)
        label = method.label + (f" ({row['machine']})" if row["source"] == "reference" else "")
    key = (kind, row["device"] == "gpu", row["threads"], row["source"], row["machine"], method, row["method"])
    return key, label


def lanes(values: pd.DataFrame, cases: Mapping[tuple[str, str], str], title: str, subtitle: str, label: str) -> Figure:
    """Microseconds a query on a log axis: a panel a case and its title, a lane a method, three panels abreast."""
    names = dict(sorted(_lane(row) for row in rows_of(values)))
    places = {key: rank for rank, key in enumerate(names)}
    across = min(len(cases), _PANELS_ABREAST)
    down = math.ceil(len(cases) / across)
    # Inches: a panel, and what lies between two of them.
    panel, between = 0.26 * len(names), 0.55
    size = (style.WIDTH, 1.57 + down * panel + (down - 1) * between)
    figure, panels = style.pyplot().subplots(down, across, sharey=True, sharex=True, squeeze=False, figsize=size)
    height = float(figure.get_size_inches()[1])
    left = 0.3 + 0.078 * max(map(len, names.values()))
    figure.subplots_adjust(left=left / style.WIDTH, right=0.99, top=1 - 1.02 / height, bottom=0.55 / height,
                           wspace=0.12, hspace=between / panel)  # fmt: skip
    for axes, ((case, parameters), name) in zip(panels.flat, cases.items(), strict=False):
        own = values[(values["case"] == case) & (values["parameters"] == parameters)]
        _draw_lanes(axes, own, places)
        axes.set_title(name)
    for rank in range(len(cases), down * across):
        panels.flat[rank].set_axis_off()
        panels.flat[rank - across].tick_params(labelbottom=True)
    low, high = math.log10(values["us_per_query"].min()), math.log10(values["us_per_query"].max())
    # Room for the value beside the longest bar.
    bounds = (math.floor(low - 0.2), high + 0.62 * (high - math.floor(low - 0.2)))
    step = max(1, math.ceil((bounds[1] - bounds[0]) / 3.2))
    ticks = range(bounds[0], math.floor(bounds[1] - 0.4), step)
    panels[0][0].set_xlim(10 ** bounds[0], 10 ** bounds[1])
    panels[0][0].set_xticks([10.0**tick for tick in ticks], [f"{10.0**tick:g}" for tick in ticks])
    panels[0][0].set_yticks(range(len(names)), list(names.values()))
    panels[0][0].set_ylim(len(names) - 0.4, -0.6)
    figure.supxlabel(label, fontsize=style.TEXT, y=0.08 / height, va="bottom")
    style.heading(figure, title, subtitle)
    return figure


def _draw_lanes(axes: Axes, values: pd.DataFrame, places: dict[tuple[Any, ...], int]) -> None:
    for row in rows_of(values):
        y = places[_lane(row)[0]]
        published = row["source"] == "published"
        colour = "white" if published else style.method_colour(row["tool"], row["tier"], row["device"])
        scale = row["us_per_query"] / row["median_s"]
        edge = style.INK if published else colour
        axes.barh(y, row["us_per_query"], height=0.72, color=colour, edgecolor=edge, linewidth=1)
        end = row["us_per_query"]
        if row["repeats"] > 1:
            axes.plot([row["min_s"] * scale, row["max_s"] * scale], [y, y], color=style.INK, lw=1.3)
            end = max(end, row["max_s"] * scale)
        text = format_number(row["us_per_query"])
        axes.annotate(text, (end, y), (4, 0), textcoords="offset points", va="center", fontsize=style.SMALL)
    axes.set_xscale("log")
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", which="minor", length=0)


# Shares and sizes


def shares(values: pd.DataFrame, title: str, subtitle: str) -> Figure:
    """Share of each stage, a bar a case, a panel a tier and device."""
    panels = _stage_panels(values)
    rows = math.ceil(len(panels) / 2)
    colours = style.stage_colours(values["stage"])
    most = max(len(_cases(group)) for group in panels.values())
    figure, grid = style.pyplot().subplots(
        rows, 2, squeeze=False, sharex=True, figsize=(style.WIDTH, 1.67 + rows * (0.6 + 0.27 * most))
    )
    height = float(figure.get_size_inches()[1])
    legend = _stage_legend(figure, colours, height)
    # Inches: the names of the cases at the left of each panel, the sums at its right.
    left, right = 0.14 + 0.085 * max(4, *map(len, values["case"])), 0.65
    between = left + right + 0.08
    panel = (style.WIDTH - left - right - between) / 2
    figure.subplots_adjust(left=left / style.WIDTH, right=1 - right / style.WIDTH, top=1 - (1.02 + legend) / height,
                           bottom=0.4 / height, wspace=between / panel, hspace=0.4)  # fmt: skip
    for axes, (name, group) in zip(grid.flat, panels.items(), strict=False):
        _draw_stages(axes, group, colours)
        axes.set_title(name)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_axis_off()
    style.heading(figure, title, subtitle + "; at the right: the sum of the stages")
    return figure


def _stage_legend(figure: Figure, colours: dict[str, str], height: float) -> float:
    """Draw the legend below the subtitle; its inches."""
    handles = [style.pyplot().Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    names = [name.replace("_", " ") for name in colours]
    rows = math.ceil(sum(0.36 + 0.068 * len(name) for name in names) / (style.WIDTH - 0.4))
    across = math.ceil(len(names) / rows)
    figure.legend(
        handles,
        names,
        loc="upper left",
        bbox_to_anchor=(0.12 / style.WIDTH, 1 - 0.66 / height),
        ncols=across,
        frameon=False,
        borderaxespad=0,
        handlelength=0.9,
        handletextpad=0.4,
        columnspacing=0.9,
    )
    return 0.2 * rows


def _cases(group: pd.DataFrame) -> list[tuple[str, str]]:
    return list(dict.fromkeys(zip(group["case"], group["parameters"], strict=True)))


def _stage_panels(values: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One panel for each tier and device; on the CPU with the fewest threads, where stages are plainest."""
    panels = {}
    for (tool, tier, device, gpus), group in values.groupby(["tool", "tier", "device", "gpus"], sort=False):
        threads = group["threads"].min() if device == "cpu" else group["threads"].max()
        own = group[group["threads"] == threads]
        label = method_of(rows_of(own)[0]).label
        if own["source"].iloc[0] == "reference":
            label += f" ({own['machine'].iloc[0]})"
        panels[(device, gpus, tier != "paper", tool, label)] = own
    return {key[-1]: panels[key] for key in sorted(panels)}


def _draw_stages(axes: Axes, group: pd.DataFrame, colours: dict[str, str]) -> None:
    cases = _cases(group)
    for y, (case, parameters) in enumerate(cases):
        own = group[(group["case"] == case) & (group["parameters"] == parameters)].set_index("stage")
        left = 0.0
        for stage, colour in colours.items():
            share = float(own["share"].get(stage, 0.0))
            axes.barh(y, share, left=left, height=0.72, color=colour, edgecolor="white", linewidth=0.5)
            if share >= 0.17:  # otherwise it is wider than its part
                axes.text(left + share / 2, y, f"{100 * share:.0f} %", ha="center", va="center", fontsize=style.SMALL,
                          color=style.ink_on(colour))  # fmt: skip
            left += share
        seconds = format_seconds(float(own["median_s"].sum()))
        axes.text(1.012, y, seconds, va="center", fontsize=style.SMALL, color=style.GREY)
    axes.set_yticks(range(len(cases)), [case for case, _ in cases])
    axes.set_ylim(len(cases) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.tick_params(axis="y", length=0)


def sizes(values: pd.DataFrame, title: str, subtitle: str) -> Figure:
    """Bytes a base of each part of an index, beside a paper's formula."""
    figure, axes = style.pyplot().subplots(figsize=(style.WIDTH, 1.75 + 0.34 * len(values)))
    height = float(figure.get_size_inches()[1])
    longest = max(len(part) for part in values["part"])
    figure.subplots_adjust(left=(0.3 + 0.085 * longest) / style.WIDTH, right=0.97, top=1 - 0.95 / height,
                           bottom=0.6 / height)  # fmt: skip
    has_formula = values["formula_bytes_per_base"].notna()
    for y, row in enumerate(rows_of(values)):
        formula = row["formula_bytes_per_base"]
        axes.barh(y, row["bytes_per_base"], height=0.7, color="#56B4E9")
        text, end = format_number(row["bytes_per_base"]), row["bytes_per_base"]
        if not math.isnan(formula):
            axes.plot(formula, y, marker="D", ms=6.5, mfc="white", mec=style.INK, mew=1.3, ls="none", zorder=3)
            text += f"   (formula {format_number(formula)})"
            end = max(end, formula)
        axes.annotate(text, (end, y), (8, 0), textcoords="offset points", va="center", fontsize=style.SMALL)
    axes.set_yticks(range(len(values)), list(values["part"]))
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.set_xlim(0, float(values[["bytes_per_base", "formula_bytes_per_base"]].max().max()) * 1.28)
    axes.set_xlabel("bytes per base of the reference" + ("   (◇ the paper's formula)" if has_formula.any() else ""))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    style.heading(figure, title, subtitle)
    return figure

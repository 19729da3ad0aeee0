"""Curves, each named at its end: something against a parameter or against threads, a panel a case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from warpseed.report import style
from warpseed.report.measurements import rows_of
from warpseed.report.words import method_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Curves", "curves"]

_METHOD = ["source", "machine", "tool", "tier", "device", "gpus"]


class Curves(NamedTuple):
    """What `curves` draws.

    Attributes
    ----------
    values : pandas.DataFrame
        A row a point, with the columns of `times`.
    x, y, panel : str
        The columns that are drawn, and the one whose values are panels.
    panels : list of (value, title)
    x_label, y_label : str
    ideal : bool
        Whether the line y = x is drawn, both axes counting from 0; otherwise y has a log axis.
    """

    values: pd.DataFrame
    x: str
    y: str
    panel: str
    panels: list[tuple[Any, str]]
    x_label: str
    y_label: str
    ideal: bool = False


def curves(chart: Curves, title: str, subtitle: str) -> Figure:
    """A panel for each of the chart's panels, side by side; curves are named right of the last."""
    values = chart.values
    labels = [_label(row, chart) for row in rows_of(values)]
    beside = 0.35 + 0.078 * max(map(len, labels))
    width = min(max(7.0, 0.9 + beside + 2.7 * len(chart.panels)), max(style.WIDTH, beside + 1.6 * len(chart.panels)))
    size = (width, 4.2)
    figure, grid = style.pyplot().subplots(1, len(chart.panels), sharey=True, squeeze=False, figsize=size)
    panels = list(grid[0])
    figure.subplots_adjust(left=0.8 / width, right=1 - beside / width, top=0.79, bottom=0.13, wspace=0.08)
    for axes, (value, name) in zip(panels, chart.panels, strict=True):
        _draw(axes, values[values[chart.panel] == value], chart)
        axes.set_title(name)
        axes.set_xlabel(chart.x_label)
        axes.set_xticks(sorted(set(values[chart.x])))
        axes.grid(axis="both" if chart.ideal else "y")
    panels[0].set_ylabel(chart.y_label)
    if chart.ideal:
        panels[0].set_ylim(0, max(values[chart.x].max(), values[chart.y].max()) * 1.08)
    else:
        panels[0].set_yscale("log")
        panels[0].set_ylim(values[chart.y].min() / 1.6, values[chart.y].max() * 1.6)
    _name_curves(figure, panels, chart)
    style.heading(figure, title, subtitle)
    return figure


def _keys(chart: Curves) -> list[str]:
    return _METHOD if chart.x == "threads" else [*_METHOD, "threads"]


def _label(row: dict[str, Any], chart: Curves) -> str:
    method = method_of(row)
    label = method.name if chart.x == "threads" else method.label
    return f"{label} ({row['machine']})" if row["source"] == "reference" else label


def _draw(axes: Axes, values: pd.DataFrame, chart: Curves) -> None:
    if chart.ideal:
        most = int(chart.values[chart.x].max())
        axes.plot([1, most], [1, most], color=style.GREY, lw=1, ls=(0, (4, 3)))
        axes.annotate("ideal", (most, most), (-6, 0), textcoords="offset points", ha="right", va="bottom",
                      color=style.GREY)  # fmt: skip
    for _, group in values.groupby(_keys(chart), sort=False):
        ordered = group.sort_values(chart.x)
        last = rows_of(ordered)[-1]
        many = last["device"] == "cpu" and last["threads"] > 1
        axes.plot(
            list(ordered[chart.x]),
            list(ordered[chart.y]),
            color=style.method_colour(last["tool"], last["tier"], last["device"]),
            marker="s" if many else "o",
            ls="-" if many or last["device"] == "gpu" else (0, (5, 2)),
            lw=2,
            ms=5,
        )


def _name_curves(figure: Figure, panels: Sequence[Axes], chart: Curves) -> None:
    """Name each curve beside the last panel; a curve absent there is named inside its own last one."""
    order = [value for value, _ in chart.panels]
    ends: dict[int, list[tuple[dict[str, Any], float, float]]] = defaultdict(list)
    for _, group in chart.values.groupby(_keys(chart), sort=False):
        place = max(order.index(value) for value in group[chart.panel])
        in_panel = group[group[chart.panel] == order[place]].sort_values(chart.x)
        last = rows_of(in_panel)[-1]
        ends[place].append((last, float(last[chart.x]), float(last[chart.y])))
    for place, axes in enumerate(panels):
        _name_in_panel(figure, axes, ends[place], chart, outside=place == len(order) - 1)


def _name_in_panel(
    figure: Figure, axes: Axes, ends: list[tuple[dict[str, Any], float, float]], chart: Curves, outside: bool
) -> None:
    points_high = figure.get_size_inches()[1] * 72 * axes.get_position().height
    fractions = [float(axes.transAxes.inverted().transform(axes.transData.transform((x, y)))[1]) for _, x, y in ends]
    moved = style.spread(fractions, 15 / points_high)
    for (row, x, _), fraction in zip(ends, moved, strict=True):
        axes.annotate(
            _label(row, chart),
            (1.03, fraction) if outside else (x, fraction),
            (0, 0) if outside else (0, 8),
            xycoords="axes fraction" if outside else ("data", "axes fraction"),
            textcoords="offset points",
            ha="left" if outside else "right",
            va="center",
            fontsize=style.SMALL,
            color=style.darker(style.method_colour(row["tool"], row["tier"], row["device"])),
            annotation_clip=False,
        )

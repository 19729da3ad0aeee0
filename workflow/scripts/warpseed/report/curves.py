"""Curves, each named at its end: something against a parameter or against threads, a panel a case."""

from __future__ import annotations

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
    """A panel for each of the chart's panels, one below the other; each curve is named at its right."""
    values = chart.values
    beside = 0.35 + 0.078 * max(len(_label(row, chart)) for row in rows_of(values))
    count = len(chart.panels)
    size = (style.WIDTH, 4.2 if count == 1 else 1.3 + 2.7 * count)
    figure, grid = style.pyplot().subplots(count, 1, sharex=True, sharey=True, squeeze=False, figsize=size)
    panels = list(grid[:, 0])
    figure.subplots_adjust(left=0.8 / size[0], right=1 - beside / size[0], top=1 - 0.88 / size[1],
                           bottom=0.55 / size[1], hspace=0.22)  # fmt: skip
    for axes, (value, name) in zip(panels, chart.panels, strict=True):
        _draw(axes, values[values[chart.panel] == value], chart)
        axes.set_title(name)
        axes.set_ylabel(chart.y_label)
        axes.grid(axis="both" if chart.ideal else "y")
    panels[-1].set_xlabel(chart.x_label)
    panels[-1].set_xticks(sorted(set(values[chart.x])))
    if chart.ideal:
        panels[0].set_ylim(0, max(values[chart.x].max(), values[chart.y].max()) * 1.08)
    else:
        panels[0].set_yscale("log")
        panels[0].set_ylim(values[chart.y].min() / 1.6, values[chart.y].max() * 1.6)
        for axes in panels:
            style.label_log_axis(axes)
    for axes, (value, _) in zip(panels, chart.panels, strict=True):
        _name_curves(figure, axes, values[values[chart.panel] == value], chart)
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


def _name_curves(figure: Figure, axes: Axes, values: pd.DataFrame, chart: Curves) -> None:
    """Name each curve of a panel at the panel's right, beside its last point."""
    groups = values.groupby(_keys(chart), sort=False)
    ends = [rows_of(group.sort_values(chart.x))[-1] for _, group in groups]
    points_high = figure.get_size_inches()[1] * 72 * axes.get_position().height
    places = [axes.transData.transform((row[chart.x], row[chart.y])) for row in ends]
    fractions = [float(axes.transAxes.inverted().transform(place)[1]) for place in places]
    for row, fraction in zip(ends, style.spread(fractions, 15 / points_high), strict=True):
        axes.annotate(
            _label(row, chart),
            (1.03, fraction),
            xycoords="axes fraction",
            va="center",
            fontsize=style.SMALL,
            color=style.darker(style.method_colour(row["tool"], row["tier"], row["device"])),
            annotation_clip=False,
        )

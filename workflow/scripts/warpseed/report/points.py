"""Charts of something against a number, a panel a quantity on a log axis, with the points that a paper prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from warpseed.report import style
from warpseed.report.measurements import rows_of
from warpseed.report.words import METHOD, method_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Panel", "Points", "method_curves", "panels", "ticks"]

_MARGIN = 0.05
"""Inches between a label at the left and the edge of the figure."""
_SHORT = 18
"""Letters of names that stand beside their curves; longer ones, which would leave those no room, stand in a legend."""
_LETTER, _DIGIT = 0.073, 0.088
"""Inches that a letter of a name, and one of a tick's label, takes at most."""


class Points(NamedTuple):
    """What was measured: a curve through its points. What has one name in several panels looks the same in all."""

    label: str
    colour: str
    x: Sequence[float]
    y: Sequence[float]
    dashed: bool = False


class Panel(NamedTuple):
    """One quantity."""

    label: str
    """of its axis"""
    curves: Sequence[Points]
    published: Sequence[tuple[float, float, str]] = ()
    """x, y and what stands beside the point, at its left or, with `above`, above it"""
    bands: Sequence[tuple[float, float, str]] = ()
    """from one y to another, or the same one, and what stands in it: what a paper prints of all x"""
    above: bool = False


def method_curves(table: pd.DataFrame, x: str, y: str) -> list[Points]:
    """A curve for each method, of columns `x` and `y`; dashed on one CPU thread. A reference machine is named where
    there are several machines."""
    curves = []
    several = table["machine"].nunique() > 1
    for _, own in table.groupby(METHOD, sort=False):
        row = rows_of(own)[0]
        method = method_of(row)
        where = f" ({row['machine']})" if several and row["source"] == "reference" else ""
        colour = style.method_colour(method.tool, method.tier, method.device)
        dashed = method.device == "cpu" and method.threads == 1
        own = own.sort_values(x)
        curves.append(Points(f"{method.label}{where}", colour, list(own[x]), list(own[y]), dashed))
    return curves


def ticks(numbers: Iterable[int]) -> list[tuple[float, str]]:
    """A tick for each number."""
    return [(float(number), f"{number:,}") for number in sorted(set(numbers))]


def panels(
    shown: Sequence[Panel],
    ticks: Sequence[tuple[float, str]],
    x_label: str,
    title: str,
    subtitle: str,
    *,
    log_x: bool = True,
) -> Figure:
    """Panels one below the other, with one axis of x; that of y is logarithmic, that of x with `log_x`; `ticks` are
    those of x, labelled where there is room. Names stand beside their curves, long ones in a legend."""
    curves = [curve for panel in shown for curve in panel.curves]
    in_legend = _need_legend(curves)
    beside = 0.2 if in_legend else 0.3 + _LETTER * max(len(curve.label) for curve in curves)
    above = 0.08 + 0.19 * _legend_shape(curves)[0] if in_legend else 0.0
    size = (style.WIDTH, 1.5 + above + 2.2 * len(shown))
    figure, grid = style.pyplot().subplots(len(shown), 1, sharex=True, squeeze=False, figsize=size)
    figure.subplots_adjust(left=0.85 / size[0], right=1 - beside / size[0], top=1 - (0.82 + above) / size[1],
                           bottom=0.72 / size[1], hspace=0.16)  # fmt: skip
    axes = list(grid[:, 0])
    places = [x for panel in shown for curve in panel.curves for x in curve.x] + [x for x, _ in ticks]
    places += [x for panel in shown for x, _, _ in panel.published]
    if log_x:
        axes[0].set_xscale("log", base=2)
        axes[0].set_xlim(min(places) / 1.15, max(places) * 1.15)
    else:
        beyond = 0.08 * (max(places) - min(places)) or 1.0
        axes[0].set_xlim(min(places) - beyond, max(places) + beyond)
    for one, panel in zip(axes, shown, strict=True):
        _draw(one, panel, min(places))
    _make_room_at_left(figure)
    axes[-1].set_xticks([x for x, _ in ticks], _with_room(axes[-1], ticks))
    axes[-1].tick_params(axis="x", which="minor", length=0)
    axes[-1].set_xlabel(x_label)
    if in_legend:
        _legend(figure, curves)
    else:
        for one, panel in zip(axes, shown, strict=True):
            _name(figure, one, panel)
    style.heading(figure, title, subtitle)
    return figure


def _make_room_at_left(figure: Figure) -> None:
    """Move the panels' left side as far as labels of y would stand beyond the figure's, where their ticks' are long."""
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    boxes = [axes.yaxis.get_tightbbox(renderer) for axes in figure.axes]
    inches = min(box.x0 for box in boxes if box) / figure.dpi
    if inches < _MARGIN:
        figure.subplots_adjust(left=figure.subplotpars.left + (_MARGIN - inches) / style.WIDTH)


def _need_legend(curves: Sequence[Points]) -> bool:
    """Whether a name is long; a legend cannot tell curves of one look apart."""
    looks = {(curve.label, curve.colour, curve.dashed) for curve in curves}
    return max(len(label) for label, *_ in looks) > _SHORT and len({look[1:] for look in looks}) == len(looks)


def _legend_shape(curves: Sequence[Points]) -> tuple[int, int]:
    """Rows and columns of a legend of all names, each once, column after column: the most columns that fit."""
    names = list(dict.fromkeys(curve.label for curve in curves))
    for columns in range(len(names), 1, -1):
        few, more = divmod(len(names), columns)
        ends = [(few + 1) * rank if rank <= more else few * rank + more for rank in range(columns + 1)]
        longest = [max(map(len, names[begin:end])) for begin, end in zip(ends, ends[1:], strict=False)]
        if sum(0.7 + _LETTER * letters for letters in longest) <= style.WIDTH - 0.1:
            return few + (more > 0), columns
    return len(names), 1


def _legend(figure: Figure, curves: Sequence[Points]) -> None:
    """Name all curves between the subtitle and the first panel."""
    named = {curve.label: curve for curve in curves}
    line = style.pyplot().Line2D
    handles = [line([], [], color=own.colour, marker="o", ms=5, lw=2, ls=_dashes(own)) for own in named.values()]
    width, height = figure.get_size_inches()
    figure.legend(
        handles,
        list(named),
        loc="upper left",
        bbox_to_anchor=(0.12 / width, 1 - 0.68 / height),
        ncols=_legend_shape(curves)[1],
        frameon=False,
        borderaxespad=0,
        borderpad=0,
        handlelength=3.4,
        handletextpad=0.5,
        columnspacing=1.5,
        fontsize=style.SMALL,
    )


def _with_room(axes: Axes, ticks: Sequence[tuple[float, str]]) -> list[str]:
    """The ticks' labels, "" for those that would touch the next one that is shown."""
    inches = style.WIDTH * axes.get_position().width
    at = [inches * float(axes.transAxes.inverted().transform(axes.transData.transform((x, 1.0)))[0]) for x, _ in ticks]
    shown, left = [""] * len(ticks), math.inf
    for rank in sorted(range(len(ticks)), key=at.__getitem__, reverse=True):
        half = _DIGIT * max(map(len, ticks[rank][1].split("\n"))) / 2
        if at[rank] + half + 0.08 <= left:
            shown[rank], left = ticks[rank][1], at[rank] - half
    return shown


def _dashes(curve: Points) -> Any:
    return (0, (5, 2)) if curve.dashed else "-"


def _draw(axes: Axes, panel: Panel, leftmost: float) -> None:
    for low, high, text in panel.bands:
        axes.axhspan(low, high, color="#e9e9e9", lw=0 if low < high else 1.5, zorder=0)
        axes.annotate(text, (0.01, (low * high) ** 0.5), xycoords=axes.get_yaxis_transform(),
                      va="center" if low < high else "bottom",
                      fontsize=style.SMALL, color=style.GREY)  # fmt: skip
    for curve in panel.curves:
        axes.plot(list(curve.x), list(curve.y), color=curve.colour, marker="o", ms=5, lw=2, ls=_dashes(curve))
    for x, y, text in panel.published:
        axes.plot(x, y, marker="D", ms=7, mfc="white", mec=style.INK, mew=1.4, ls="none", zorder=3)
        if not panel.above:
            axes.annotate(text, (x, y), (-9, 0), textcoords="offset points", ha="right", va="center",
                          fontsize=style.SMALL)  # fmt: skip
            continue
        axes.annotate(text, (x, y), (-6 if x == leftmost else 0, 8), textcoords="offset points", va="bottom",
                      ha="left" if x == leftmost else "center", fontsize=style.SMALL,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8})  # fmt: skip
    drawn = [y for curve in panel.curves for y in curve.y] + [y for _, y, _ in panel.published]
    drawn += [y for low, high, _ in panel.bands for y in (low, high)]
    axes.set_yscale("log")
    axes.set_ylim(min(drawn) / 1.8, max(drawn) * 1.8)
    style.label_log_axis(axes)
    axes.set_ylabel(panel.label)
    axes.grid(axis="y")


def _name(figure: Figure, axes: Axes, panel: Panel) -> None:
    """Name each curve at the right of its panel, beside its last point."""
    high = figure.get_size_inches()[1] * 72 * axes.get_position().height
    ends = [axes.transData.transform((curve.x[-1], curve.y[-1])) for curve in panel.curves]
    fractions = [float(axes.transAxes.inverted().transform(end)[1]) for end in ends]
    for curve, fraction in zip(panel.curves, style.spread(fractions, 15 / high), strict=True):
        axes.annotate(curve.label, (1.02, fraction), xycoords="axes fraction", va="center", fontsize=style.SMALL,
                      color=style.darker(curve.colour), annotation_clip=False)  # fmt: skip

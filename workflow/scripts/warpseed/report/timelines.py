"""Time lines: what a run did when, a panel a run or a part of one, a lane each kind of work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from warpseed.report import style
from warpseed.report.words import format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Lane", "Run", "timelines"]

_HAIRLINE = 1.0
"""Points that an event is wider than it was long, so that it is seen, however short it was."""


class Lane(NamedTuple):
    """One kind of work: where it is done, and when."""

    label: str
    colour: str
    spans: Sequence[tuple[float, float]]
    """seconds, begin and end"""


class Run(NamedTuple):
    """One run, or what is between two moments of it."""

    title: str
    lanes: Sequence[Lane]
    window: tuple[float, float] | None = None
    """seconds; what is outside is not drawn, and the axis begins with 0 there"""


def timelines(shown: Sequence[Run], title: str, subtitle: str) -> Figure:
    """Panels one below the other, each with its own axis of time; at the right of a lane the sum of its events, of part
    of a run of those that are wholly in it."""
    counts = [len(run.lanes) for run in shown]
    between = 0.75
    size = (style.WIDTH, 1.25 + sum(0.25 * count for count in counts) + between * (len(shown) - 1))
    figure, grid = style.pyplot().subplots(
        len(shown), 1, squeeze=False, figsize=size, gridspec_kw={"height_ratios": counts}
    )
    longest = max(len(lane.label) for run in shown for lane in run.lanes)
    figure.subplots_adjust(left=(0.3 + 0.08 * longest) / size[0], right=1 - 0.8 / size[0], top=1 - 0.9 / size[1],
                           bottom=0.35 / size[1], hspace=between * len(shown) / (0.25 * sum(counts)))  # fmt: skip
    for axes, run in zip(grid[:, 0], shown, strict=True):
        _draw(axes, run)
    style.heading(figure, title, f"{subtitle}; sums of lanes at the right")
    return figure


def _draw(axes: Axes, run: Run) -> None:
    first, last = run.window or (0.0, max(end for lane in run.lanes for _, end in lane.spans))
    size, unit = next(((s, u) for s, u in ((1.0, "s"), (1e-3, "ms")) if last - first >= s), (1e-6, "µs"))
    for place, lane in enumerate(run.lanes):
        spans = [(begin, end) for begin, end in lane.spans if end >= first and begin <= last]
        bars = [((begin - first) / size, (end - begin) / size) for begin, end in spans]
        axes.broken_barh(bars, (place - 0.36, 0.72), facecolors=lane.colour, edgecolor=lane.colour, lw=_HAIRLINE)
        whole = [end - begin for begin, end in spans if begin >= first and end <= last]
        if whole:
            axes.annotate(format_seconds(sum(whole)), (1.015, place), xycoords=axes.get_yaxis_transform(), va="center",
                          fontsize=style.SMALL, color=style.GREY, annotation_clip=False)  # fmt: skip
    axes.set_yticks(range(len(run.lanes)), [lane.label for lane in run.lanes])
    axes.set_ylim(len(run.lanes) - 0.4, -0.6)
    axes.set_xlim(0, (last - first) / size * (1 if run.window else 1.01))
    axes.xaxis.set_major_locator(style.pyplot().MaxNLocator(6))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} {unit}" if value else "0")
    axes.tick_params(axis="y", length=0)
    axes.set_title(run.title)
    axes.grid(axis="x")

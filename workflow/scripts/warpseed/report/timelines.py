"""Time lines: what a run did when, a panel a run, a row each kind of work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from warpseed.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Row", "Run", "timelines"]


class Row(NamedTuple):
    """One kind of work: where it is done, and when."""

    label: str
    colour: str
    spans: Sequence[tuple[float, float]]
    """seconds, begin and end"""


class Run(NamedTuple):
    """One run."""

    title: str
    rows: Sequence[Row]


def timelines(shown: Sequence[Run], title: str, subtitle: str) -> Figure:
    """Panels one below the other, each with its own axis of seconds from 0 on."""
    counts = [len(run.rows) for run in shown]
    size = (style.WIDTH, 1.0 + sum(0.95 + 0.27 * count for count in counts))
    figure, grid = style.pyplot().subplots(
        len(shown), 1, squeeze=False, figsize=size, gridspec_kw={"height_ratios": counts}
    )
    longest = max(len(row.label) for run in shown for row in run.rows)
    figure.subplots_adjust(left=(0.3 + 0.085 * longest) / size[0], right=1 - 0.2 / size[0], top=1 - 1.05 / size[1],
                           bottom=0.55 / size[1], hspace=0.95 * len(shown) / (0.27 * sum(counts)))  # fmt: skip
    for axes, run in zip(grid[:, 0], shown, strict=True):
        for place, row in enumerate(run.rows):
            bars = [(begin, end - begin) for begin, end in row.spans]
            axes.broken_barh(bars, (place - 0.36, 0.72), facecolors=row.colour, linewidth=0)
        axes.set_yticks(range(len(run.rows)), [row.label for row in run.rows])
        axes.set_ylim(len(run.rows) - 0.4, -0.6)
        axes.set_xlim(0, max(end for row in run.rows for _, end in row.spans) * 1.02)
        axes.tick_params(axis="y", length=0)
        axes.set_title(run.title)
        axes.grid(axis="x")
    grid[-1, 0].set_xlabel("seconds")
    style.heading(figure, title, subtitle)
    return figure

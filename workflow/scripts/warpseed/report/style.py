"""One look for every figure: colours that colour-blind readers tell apart, three sizes of type, saving.

Every figure is as wide as `WIDTH`, and the page shows it in its own size, or as wide as a narrow screen: so type is as
large in one figure as in the next. matplotlib is imported when something is drawn, so that rules can ask for the names
of figures.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpseed.report.words import format_scaled
from warpseed.sequences.files import atomic_path

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "GREY",
    "INK",
    "NOTHING",
    "NO_GPU",
    "SMALL",
    "STAGE_COLOURS",
    "TEXT",
    "WIDTH",
    "Drawn",
    "apply_style",
    "darker",
    "empty_figure",
    "heading",
    "ink_on",
    "label_log_axis",
    "luminance",
    "method_colour",
    "nothing_measured",
    "pyplot",
    "save_figure",
    "spread",
    "stage_colours",
]

Drawn = tuple["Figure", "pd.DataFrame"]
"""A figure, and the values that it shows."""
NOTHING = "Nothing was measured."
NO_GPU = "Nothing was measured: this needs a GPU."
WIDTH = 6.8
"""Inches of every figure: narrow enough that its type can still be read when a phone shows it in 370 pixels."""
TITLE, TEXT, SMALL = 12.5, 10, 9
"""Points: a figure's title, all its other text, and what stands on or beside a mark."""
INK = "#222222"
GREY = "#6b6b6b"

# Okabe and Ito's palette; light and dark of one hue tell one thread from all threads.
COLOURS = {
    ("paper", "cpu"): "#56B4E9",
    ("paper", "gpu"): "#0072B2",
    ("fast", "cpu"): "#E69F00",
    ("fast", "gpu"): "#D55E00",
    ("peer", "cpu"): "#8c8c8c",
}

STAGE_COLOURS = {
    "read": "#56B4E9",
    "pack": "#A6DBF5",
    "host_to_device": "#F0E442",
    "kernel": "#D55E00",
    "search": "#E69F00",
    "locate": "#009E73",
    "device_to_host": "#CC79A7",
    "lookup": "#7FCBB0",
    "sort": "#8C564B",
    "format": "#56B4E9",
    "write": "#0072B2",
    "other": "#C8C8C8",
}
_MORE_COLOURS = ("#4d4d4d", "#B2DF8A", "#6A3D9A", "#FFD92F", "#1B9E77", "#FB9A99")


def pyplot() -> Any:
    """matplotlib.pyplot, drawing without a display."""
    import matplotlib

    matplotlib.use("Agg")  # a report is drawn where there is no display
    import matplotlib.pyplot as plt

    return plt


def method_colour(tool: str, tier: str, device: str) -> str:
    """The colour of a method: one for each tier and device of ours, grey for every peer."""
    return COLOURS.get((tier, device) if tool == "warpseed" else ("peer", device), "#8c8c8c")


def stage_colours(stages: Iterable[str]) -> dict[str, str]:
    """Stages in the order of their first appearance, "other" last, each with its colour."""
    names = sorted(dict.fromkeys(stages), key=lambda stage: stage == "other")
    more = (name for name in names if name not in STAGE_COLOURS)
    spare = {name: _MORE_COLOURS[rank % len(_MORE_COLOURS)] for rank, name in enumerate(more)}
    return {name: STAGE_COLOURS.get(name) or spare[name] for name in names}


def apply_style() -> None:
    """Set matplotlib's defaults for every figure of the report."""
    pyplot().rcParams.update(
        {
            "font.family": "DejaVu Sans",
            "font.size": TEXT,
            "axes.titlesize": TEXT,
            "axes.titlelocation": "left",
            "axes.labelsize": TEXT,
            "xtick.labelsize": TEXT,
            "ytick.labelsize": TEXT,
            "legend.fontsize": TEXT,
            "axes.labelcolor": INK,
            "axes.edgecolor": "#9a9a9a",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "grid.color": "#e4e4e4",
            "grid.linewidth": 0.8,
            "figure.facecolor": "white",
            "savefig.facecolor": "white",
            "svg.hashsalt": "warpseed",
            "pdf.fonttype": 42,
        }
    )


def heading(figure: Figure, title: str, subtitle: str) -> None:
    """Put a title and a subtitle (sizes and machines, in lines) at the top left, at fixed inches from the edges.

    It comes last: the figure grows by the lines that a long subtitle takes beyond its first.
    """
    letters = int(13.2 * figure.get_size_inches()[0])
    lines = [line for part in subtitle.splitlines() for line in textwrap.wrap(part, letters)]
    if len(lines) > 1:
        _grow(figure, 0.17 * (len(lines) - 1))
    width, height = figure.get_size_inches()
    left = 0.12 / width
    figure.text(left, 1 - 0.12 / height, title, ha="left", va="top", fontsize=TITLE, fontweight="bold")
    figure.text(left, 1 - 0.42 / height, "\n".join(lines), ha="left", va="top", fontsize=SMALL, color=GREY)


def _grow(figure: Figure, inches: float) -> None:
    """Make room at the top: what is drawn keeps its inches from the bottom."""
    width, height = figure.get_size_inches()
    factor = height / (height + inches)
    anchors = [legend.get_bbox_to_anchor().transformed(figure.transFigure.inverted()) for legend in figure.legends]
    figure.set_size_inches(width, height + inches)
    margins = figure.subplotpars
    figure.subplots_adjust(top=margins.top * factor, bottom=margins.bottom * factor)
    for text in figure.texts:
        text.set_y(text.get_position()[1] * factor)
    for legend, anchor in zip(figure.legends, anchors, strict=True):
        legend.set_bbox_to_anchor((anchor.x0, anchor.y0 * factor))


def label_log_axis(axes: Axes) -> None:
    """Label a logarithmic axis of y, whose limits are set, all alike: "200 k" and "1 M", three labels or more where
    there are numbers with two digits for them."""
    low, high = axes.get_ylim()
    inside, least, most = list[float](), 3, 5
    for factors in ((1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        if len(inside) < least:
            steps = [factor * 10.0**power for power in range(-9, 13) for factor in factors]
            inside = [step for step in steps if low <= step <= high]
    kept = inside if len(inside) <= most else [step for step in inside if f"{step:e}"[0] == "1"] or inside[::3]
    axes.set_yticks(kept, [format_scaled(step) if step >= 1000 else f"{step:g}" for step in kept])
    axes.tick_params(axis="y", which="minor", length=0, labelleft=False)


def nothing_measured(axes: Axes, text: str) -> None:
    """Say in the middle of an empty chart that there is nothing to draw, and why."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=TEXT, color=GREY)


def empty_figure(title: str, text: str) -> Figure:
    """A figure of nothing but its title and the reason why there is nothing to draw."""
    figure, axes = pyplot().subplots(figsize=(WIDTH, 2.4))
    heading(figure, title, "")
    nothing_measured(axes, text)
    return figure


def darker(colour: str) -> str:
    """A darker form of a colour: light hues are hard to read as text on white."""
    factor = min(1.0, 0.42 / luminance(colour))
    return "#" + "".join(f"{int(int(colour[i : i + 2], 16) * factor):02x}" for i in (1, 3, 5))


def ink_on(colour: str) -> str:
    """Dark or white text, whichever is easier to read on `colour`."""
    return "white" if luminance(colour) < 0.45 else INK


def luminance(colour: str) -> float:
    """Perceived brightness of a "#rrggbb" colour, 0 to 1."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return (0.299 * red + 0.587 * green + 0.114 * blue) / 255


def spread(positions: Iterable[float], gap: float) -> list[float]:
    """Move label positions apart to at least `gap` between neighbours, in order, within 0 to 1."""
    order = sorted(range(len(places := list(positions))), key=places.__getitem__)
    moved = list(places)
    # Blocks of touching labels are kept centred on what they name; merging repeats until no two blocks touch.
    blocks: list[list[int]] = [[i] for i in order]

    def centre(block: list[int]) -> float:
        return sum(places[i] for i in block) / len(block)

    merged = True
    while merged:
        merged = False
        for left, right in zip(range(len(blocks)), range(1, len(blocks)), strict=False):
            reach = gap * (len(blocks[left]) + len(blocks[right])) / 2
            if centre(blocks[right]) - centre(blocks[left]) < reach - 1e-12:
                blocks[left] += blocks.pop(right)
                merged = True
                break
    for block in blocks:
        start = centre(block) - gap * (len(block) - 1) / 2
        for rank, i in enumerate(block):
            moved[i] = start + rank * gap
    for rank, i in enumerate(order):
        moved[i] = max(moved[i], 0.0 if rank == 0 else moved[order[rank - 1]] + gap)
    for rank, i in reversed(list(enumerate(order))):
        moved[i] = min(moved[i], 1.0 if rank == len(order) - 1 else moved[order[rank + 1]] - gap)
    return moved


def save_figure(figure: Figure, paths: Iterable[str | Path]) -> None:
    """Save a figure under each name, in the format of its ending (.svg, .pdf, .png), and close it."""
    dateless: dict[str, dict[str, Any]] = {
        ".svg": {"Date": None},
        ".pdf": {"CreationDate": None},
        ".png": {"Software": None},
    }
    for path in map(Path, paths):
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format=path.suffix[1:], dpi=150, metadata=dateless[path.suffix])
    pyplot().close(figure)

"""One look for every figure: colours that colour-blind readers tell apart, readable type, saving."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # a report is drawn where there is no display

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from warpseed.sequences.files import atomic_path

__all__ = [
    "COLOURS",
    "GREY",
    "INK",
    "STAGE_COLOURS",
    "apply_style",
    "heading",
    "ink_on",
    "luminance",
    "nothing_measured",
    "save_figure",
    "spread",
]

INK = "#222222"
GREY = "#6b6b6b"

# Okabe and Ito's palette; light and dark of one hue tell one thread from all threads.
COLOURS = {
    ("paper", "cpu"): "#56B4E9",
    ("paper", "gpu"): "#0072B2",
    ("fast", "cpu"): "#E69F00",
    ("fast", "gpu"): "#D55E00",
    ("peer", "cpu"): "#8c8c8c",
    ("published", ""): "#222222",
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
    "write": "#0072B2",
    "other": "#C8C8C8",
}


def apply_style() -> None:
    """Set matplotlib's defaults for every figure of the report."""
    plt.rcParams.update(
        {
            "font.family": "DejaVu Sans",
            "font.size": 10,
            "axes.titlesize": 10.5,
            "axes.titlelocation": "left",
            "axes.labelsize": 10,
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
    """Put a title and a subtitle (sizes and machine) at the top left, at fixed inches from the edges."""
    width, height = figure.get_size_inches()
    left = 0.12 / width
    figure.text(left, 1 - 0.12 / height, title, ha="left", va="top", fontsize=12.5, fontweight="bold")
    figure.text(left, 1 - 0.42 / height, subtitle, ha="left", va="top", fontsize=9, color=GREY)


def nothing_measured(axes: Axes, text: str) -> None:
    """Say in the middle of an empty chart that there is nothing to draw, and why."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=11, color=GREY)


def ink_on(colour: str) -> str:
    """Dark or white text, whichever is easier to read on `colour`."""
    return "white" if luminance(colour) < 0.45 else INK


def luminance(colour: str) -> float:
    """Perceived brightness of a "#rrggbb" colour, 0 to 1."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return (0.299 * red + 0.587 * green + 0.114 * blue) / 255


def spread(positions: Iterable[float], gap: float, low: float = 0.0, high: float = 1.0) -> list[float]:
    """Move label positions apart to at least `gap` between neighbours, in order, within `low` to `high`."""
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
        moved[i] = max(moved[i], low if rank == 0 else moved[order[rank - 1]] + gap)
    for rank, i in reversed(list(enumerate(order))):
        moved[i] = min(moved[i], high if rank == len(order) - 1 else moved[order[rank + 1]] - gap)
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
    plt.close(figure)

"""Figures of distances between sequences: a heat map of all pairs, and their tree.

Rows of a heat map stand as the leaves of the tree do. A figure grows with the number of sequences, so that each has
its name, up to `MOST_NAMED` of them. Names stay text in an .svg file, whatever script they are in.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from warpseed.report.style import GREY, INK, WIDTH, apply_style, heading, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from warpseed.ebwt.collection import Clusters
    from warpseed.ebwt.trees import Tree

__all__ = ["MOST_NAMED", "dendrogram", "figures_of", "heat_map", "svg_of"]

MOST_NAMED = 400
"""Sequences whose names are written."""
_MOST_WRITTEN = 12
"""Sequences whose distances are written into the cells of a heat map."""
_FEW = 50
_MOST_DRAWN = 2_000
"""Rows of a heat map: of more, which a picture has no points for, as many at like steps."""
_MOST_LETTERS = 40
"""Of a name."""
_TOP, _EDGE, _BAR = 0.8, 0.15, 1.1
"""Inches: above what is drawn, at its sides, and of the scale of colours."""


def figures_of(found: Clusters) -> Iterator[tuple[str, bytes]]:
    """The ending of the name of each figure, and its content."""
    unit = "δ over the most that it can be" if found.values.dtype.kind == "f" else "δ"
    what = (
        f"{unit}, by the extended Burrows-Wheeler transform of {len(found.names):,} sequences, {found.letters:,} bases"
    )
    kind = "average linkage (UPGMA)" if found.tree.rooted else "neighbour joining"
    figure = heat_map(found.values, found.names, found.tree.order(), "Distances between sequences", what)
    yield "heatmap.svg", svg_of(figure)
    yield "dendrogram.svg", svg_of(dendrogram(found.tree, found.names, f"Tree by {kind}", what))


def heat_map(values: np.ndarray, names: Sequence[str], order: Sequence[int], title: str, subtitle: str) -> Figure:
    """All distances of a matrix as colours.

    Parameters
    ----------
    values : [m, m]
    names : m, as `values` has them
    order : the rows from top to bottom, and columns from left to right
    title, subtitle : what stands above it
    """
    with _drawing():
        labels = _shown(names, order)
        row, size = _sizes(len(order))
        room = _width_of(labels, size)
        side = max(row * len(order), 3.0) if labels else WIDTH - 2 * _EDGE - _BAR
        width, height = max(WIDTH, room + side + _BAR + 2 * _EDGE), _TOP + side + room + 0.3
        figure = pyplot().figure(figsize=(width, height))
        axes = figure.add_axes(((room + _EDGE) / width, (room + 0.2) / height, side / width, side / height))
        some = order[:: -(-len(order) // _MOST_DRAWN)]
        drawn = values[np.ix_(some, some)]
        picture = axes.imshow(drawn, cmap="cividis", interpolation="none", aspect="auto")
        picture.set_clim(values.min(), values.max())
        axes.tick_params(length=0)
        axes.set_xticks(range(len(labels)), [""] * len(labels))
        axes.set_yticks(range(len(labels)), [""] * len(labels))
        for place, label in enumerate(labels):
            _name(axes, -0.5 - 0.05 * len(order) / side, place, label, size, ha="right", va="center")
            below = len(order) - 0.5 + 0.05 * len(order) / side
            _name(axes, place, below, label, size, ha="center", va="top", rotation=90)
        if len(order) <= _MOST_WRITTEN:
            _write_values(axes, drawn)
        at = (room + _EDGE + side + 0.15) / width
        bar = figure.colorbar(picture, cax=figure.add_axes((at, (room + 0.2) / height, 0.16 / width, side / height)))
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=9)
        bar.ax.yaxis.set_major_formatter(_tick)
        heading(figure, title, subtitle)
        return figure


def dendrogram(tree: Tree, names: Sequence[str], title: str, subtitle: str) -> Figure:
    """A tree from left to right, each branch as long as it is; a negative one, which none can be, as none."""
    with _drawing():
        order = tree.order()
        labels = _shown(names, order)
        row, size = _sizes(len(order))
        room = _width_of(labels, size)
        width = WIDTH + max(0.0, room - 2.5)
        tall = max(row * len(order), 1.0) if labels else WIDTH
        height = _TOP + tall + 0.6
        figure = pyplot().figure(figsize=(width, height))
        axes = figure.add_axes((_EDGE / width, 0.6 / height, (width - room - 3 * _EDGE) / width, tall / height))
        axes.set_ylim(len(order) - 0.5, -0.5)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("distance from the root" if tree.rooted else "distance; the tree has no root")
        depths = tree._replace(lengths=np.maximum(tree.lengths, 0.0)).depths()
        places = _draw_branches(axes, tree, depths, order)
        far = float(depths.max()) or 1.0
        axes.set_xlim(-0.01 * far, 1.01 * far)
        for leaf, label in zip(order, labels, strict=False):
            gap = 0.07 / (width - room - 3 * _EDGE) * 1.02 * far
            _name(axes, depths[leaf] + gap, places[leaf], label, size, ha="left", va="center")
        axes.locator_params(axis="x", nbins=5)
        axes.xaxis.set_major_formatter(_tick)
        heading(figure, title, subtitle)
        return figure


def svg_of(figure: Figure) -> bytes:
    """A figure as the content of an .svg file, the same for the same figure; it is closed."""
    held = io.BytesIO()
    with _drawing():
        figure.savefig(held, format="svg", metadata={"Date": None})
        pyplot().close(figure)
    return held.getvalue()


@contextmanager
def _drawing() -> Iterator[None]:
    """The report's style, with text that stays text; of letters that its type has not, the reader's has them."""
    plt = pyplot()
    with plt.rc_context(), warnings.catch_warnings():
        apply_style()
        plt.rcParams["svg.fonttype"] = "none"
        warnings.filterwarnings("ignore", "(?s).*missing from font")
        yield


def _sizes(count: int) -> tuple[float, float]:
    """Inches of a row, and points of its name."""
    return (0.2, 9.0) if count <= _FEW else (0.12, 6.5)


def _shown(names: Sequence[str], order: Sequence[int]) -> list[str]:
    """Names in an order, long ones cut; none where there are too many."""
    if len(order) > MOST_NAMED:
        return []
    ordered = (names[leaf] for leaf in order)
    return [name if len(name) <= _MOST_LETTERS else name[: _MOST_LETTERS - 1] + "…" for name in ordered]


def _width_of(labels: Sequence[str], size: float) -> float:
    """Inches that the longest name takes at most, or so."""
    wide = max((sum(2 if ord(letter) > 0x2E80 else 1 for letter in label) for label in labels), default=0)
    return 0.1 + wide * 0.63 * size / 72


def _name(axes: Axes, x: float, y: float, label: str, size: float, **place: Any) -> None:
    """A name as it is: no formula, though it may have dollars."""
    axes.text(x, y, label, fontsize=size, color=INK, parse_math=False, **place)


def _write_values(axes: Axes, values: np.ndarray) -> None:
    """The distances in their cells."""
    half = (float(values.min()) + float(values.max())) / 2
    for y, row in enumerate(values.tolist()):
        for x, value in enumerate(row):
            text = f"{value:.3g}" if isinstance(value, float) else _short(value)
            ink = INK if value > half else "white"
            axes.text(x, y, text, ha="center", va="center", fontsize=7, color=ink)


def _tick(value: float, place: int) -> str:
    """A number on an axis: no power of ten apart from it."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.4g}"


def _short(value: int) -> str:
    """A whole number in few letters."""
    for unit, name in ((1_000_000, "M"), (10_000, "k")):
        if value >= unit:
            return f"{value / (1_000 if name == 'k' else unit):.3g}{name}"
    return str(value)


def _draw_branches(axes: Axes, tree: Tree, depths: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """Draw a tree's lines; returns at which height each node is, float64[nodes]."""
    from matplotlib.collections import LineCollection

    places = np.zeros(len(depths))
    places[list(order)] = np.arange(len(order))
    lines: list[list[tuple[float, float]]] = []
    for number, below in enumerate(tree.children):
        node, heights = tree.leaves + number, [float(places[child]) for child in below]
        places[node] = (min(heights) + max(heights)) / 2
        lines.append([(depths[node], min(heights)), (depths[node], max(heights))])
        lines += [
            [(depths[node], height), (depths[child], height)] for child, height in zip(below, heights, strict=True)
        ]
    axes.add_collection(LineCollection(lines, colors=GREY, linewidths=1.2, capstyle="projecting"))
    return places

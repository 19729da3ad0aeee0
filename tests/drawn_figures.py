"""Figures of the report as tests draw them: closed again, and read for their words."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from warpseed.report import style
from warpseed.report.measurements import Measurements

__all__ = ["boxes", "drawing", "overlapping", "words"]


def words(drawn: Any) -> str:
    """All texts of a figure."""
    return " | ".join(text.get_text() for text in drawn.findobj(match=lambda artist: hasattr(artist, "get_text")))


def boxes(drawn: Any) -> list[tuple[str, Any]]:
    """All texts that are seen, names in legends too, and the box in pixels that each takes."""
    legends = [*drawn.legends, *filter(None, (axes.get_legend() for axes in drawn.axes))]
    texts = [*drawn.texts, *(text for legend in legends for text in legend.get_texts())]
    for axes in drawn.axes:
        texts += [*axes.texts, axes.xaxis.label, axes.yaxis.label, axes.title, axes._left_title]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = axis.get_view_interval()
            texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    shown = [text for text in texts if text.get_text().strip() and text.get_visible()]
    renderer = drawn.canvas.get_renderer()
    return [(text.get_text(), text.get_window_extent(renderer)) for text in shown]


def overlapping(drawn: Any) -> list[tuple[str, str]]:
    """Pairs of texts that lie on each other."""
    return [
        (one, other)
        for (one, box), (other, beside) in itertools.combinations(boxes(drawn), 2)
        if min(box.x1, beside.x1) - max(box.x0, beside.x0) > 0 and min(box.y1, beside.y1) - max(box.y0, beside.y0) > 0
    ]


@contextmanager
def drawing(figures: Mapping[str, Callable[[Measurements], Any]]) -> Iterator[Callable[[str, Measurements], Any]]:
    """What draws a system's figure by its name: the figure, and the values plotted. All are closed in the end."""
    opened: list[Any] = []

    def call(name: str, measurements: Measurements) -> Any:
        style.apply_style()
        drawn, values = figures[name](measurements)
        drawn.canvas.draw()
        opened.append(drawn)
        return drawn, values

    yield call
    for drawn in opened:
        style.pyplot().close(drawn)

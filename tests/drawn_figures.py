"""Figures of the report as tests draw them: closed again, and read for their words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from warpseed.report import style
from warpseed.report.measurements import Measurements

__all__ = ["drawing", "words"]


def words(drawn: Any) -> str:
    """All texts of a figure."""
    return " | ".join(text.get_text() for text in drawn.findobj(match=lambda artist: hasattr(artist, "get_text")))


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

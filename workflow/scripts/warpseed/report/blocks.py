"""What a section of the page is made of: texts, tables, figures, lists.

Blocks hold plain text; page.html.j2 turns them into HTML and escapes all of it.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from warpseed.report.measurements import Measurements
from warpseed.report.words import speedup_cell

__all__ = [
    "Block",
    "Cell",
    "Definitions",
    "Figure",
    "Files",
    "Group",
    "Heading",
    "Link",
    "Links",
    "Row",
    "SampleTable",
    "Table",
    "Text",
    "as_printed",
    "differences",
    "figures",
    "link_to",
    "links",
    "picture",
    "shown_speedup",
    "texts",
]


class Link(NamedTuple):
    """An address relative to the page, and its text."""

    address: str
    text: str


class Cell(NamedTuple):
    """A table's cell: its text, small text below it, a CSS class, the columns that it spans, links behind the text."""

    text: str
    small: str = ""
    css: str = ""
    span: int = 1
    links: tuple[Link, ...] = ()


class Row(NamedTuple):
    """A table's row: its cells, and a CSS class."""

    cells: list[Cell]
    css: str = ""


class Group(NamedTuple):
    """Rows of a table below a title; "" for none."""

    title: str
    rows: list[Row]


class Table(NamedTuple):
    """A table: rows of its head, groups of its body, columns."""

    heads: list[list[Cell]]
    groups: list[Group]
    columns: int
    kind: str = "table"


class SampleTable(NamedTuple):
    """What a system that searches no index shows of its samples: heading and note of their table, and columns of their
    summaries, whole numbers, to what they are called."""

    heading: str
    note: str
    columns: Mapping[str, str]


class Text(NamedTuple):
    """A paragraph; a soft one explains a table."""

    text: str
    soft: bool = False
    kind: str = "text"


class Heading(NamedTuple):
    """A heading within a section."""

    text: str
    kind: str = "heading"


class Links(NamedTuple):
    """Files that hold the values of what stands above."""

    links: list[Link]
    kind: str = "links"


class Figure(NamedTuple):
    """A picture as data, its width in CSS pixels, its caption, its files, its id on the page."""

    name: str
    data: str
    width: int
    caption: str
    links: list[Link]
    kind: str = "figure"


class Definitions(NamedTuple):
    """Terms, and what is to be said of each."""

    entries: list[tuple[str, str]]
    kind: str = "definitions"


Block = Table | Text | Heading | Links | Figure | Definitions


class Files(NamedTuple):
    """The files of one system that the page links to: `folder` is the page's own. And what its machines were configured
    to measure, by source and machine, where that is known."""

    folder: Path
    system: str
    tables: list[Path]
    figures: list[Path]
    configurations: Mapping[tuple[str, str], Mapping[str, Any]] = MappingProxyType({})


def link_to(folder: Path, target: Path, text: str) -> Link:
    """A link from the page in `folder` to a file."""
    return Link(Path(os.path.relpath(target.resolve(), folder)).as_posix(), text)


def links(files: Files, stems: Iterable[str]) -> Links:
    """Links to the tables of these names that there are."""
    return Links([link_to(files.folder, path, path.name) for s in stems for path in files.tables if path.stem == s])


def texts(*texts: str) -> list[Cell]:
    """Cells of texts; all but the first, which always is, are set to the left."""
    return [Cell(text, css="text" if rank else "") for rank, text in enumerate(texts)]


def as_printed(digits: str) -> str:
    """A published value with the digits that a paper prints, and commas between its thousands where it is whole."""
    return f"{int(digits):,}" if digits.isdecimal() else digits


def shown_speedup(row: Mapping[str, Any] | None) -> Cell:
    """A cell of a speedup, or of the reason why there is none, and how many results both sides have where that is it;
    empty where nothing was measured."""
    if row is None:
        return Cell("")
    if row["status"] == "ok":
        return Cell(speedup_cell(row))
    both = [int(row[f"{side}_results"]) for side in ("numerator", "denominator")]
    counted = f"{both[0]:,} and {both[1]:,}" if both[0] != both[1] and min(both) >= 0 else ""
    return Cell(speedup_cell(row), counted, "differ")


def figures(measurements: Measurements, files: Files, stems: Iterable[str]) -> list[Block]:
    """The system's own pictures, in the order of `stems`, with the captions of its paper's file."""
    captions = measurements.paper.figures
    own = {stem: [path for path in files.figures if path.stem == stem] for stem in stems}
    pictures = [picture(files.folder, files.system, own[stem], captions.get(stem, stem)) for stem in own]
    drawn = [figure for figure in pictures if figure is not None]
    return [Heading("Figures"), *drawn] if drawn else []


def picture(folder: Path, group: str, paths: Iterable[Path], caption: str) -> Figure | None:
    """One picture in its formats, of which the SVG is put into the page; None without one.

    Parameters
    ----------
    folder : path
        The page's own.
    group : str
        What tells its id from those of other pictures with its name.
    paths : iterable of paths
        Files of one stem.
    caption : str
    """
    own = list(paths)
    svg = next((path for path in own if path.suffix == ".svg"), None)
    if svg is None:
        return None
    # As an image, so that the identifiers inside one SVG cannot meet those of another.
    content = svg.read_bytes()
    # Points to CSS pixels: every figure is shown in its own size, so that type is equally large in all.
    size = re.search(rb'<svg[^>]*? width="([0-9.]+)pt"', content)
    width = round(float(size.group(1)) * 96 / 72) if size else 800
    formats = [link_to(folder, path, path.suffix[1:].upper()) for path in own]
    return Figure(f"{group}_{svg.stem}", base64.b64encode(content).decode("ascii"), width, caption, formats)


def differences(measurements: Measurements) -> list[Block]:
    """What differs from the paper, and why."""
    entries = [(entry["what"], entry["why"]) for entry in measurements.paper.differences]
    return [Heading("What differs from the paper, and why"), Definitions(entries)] if entries else []

"""The samples on the page, whatever system found their seeds: a table, and seeds along the reference as pictures.

Two files a sample are read (docs/formats.md): its summary, and where along the reference its seeds begin. Samples that
are searched in no reference have a summary alone, and a table for each system (its `SampleTable`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from warpseed.errors import InputError, how_many
from warpseed.report import style
from warpseed.report.blocks import Block, Cell, Group, Heading, Row, SampleTable, Table, Text, link_to, picture
from warpseed.report.measurements import frame, rows_of
from warpseed.report.words import describe_parameters, format_bases, format_scaled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COUNTS",
    "DENSITY_COLUMNS",
    "FACTS",
    "Counted",
    "Sample",
    "draw_samples",
    "read_counted",
    "read_sample",
    "section",
]

FACTS = ("sample", "reference", "reads", "system", "parameters")
"""Columns of a summary that are text."""
COUNTS = ("queries", "found", "unique", "multiple", "dropped_queries", "hits")
"""Columns of a summary that are shown: whole numbers."""
DENSITY_COLUMNS = ("contig", "start", "end", "plus", "minus")

_AGAIN = "remove it and run the workflow again"
_COLUMNS = 500
_PLUS, _MINUS = "#0072B2", "#D55E00"
_BORDERS = 100
"""Contigs up to which all borders are drawn; beyond, those of contigs that are named."""
_NAME = 16
"""Letters of a contig's name that are shown in a picture."""
_LETTER = 0.07
"""Inches of a letter of a contig's name."""
_LEFT, _RIGHT = 0.75, 0.25
"""Inches beside a picture's axes."""


class Sample(NamedTuple):
    """What is reported of a sample.

    Attributes
    ----------
    facts : dict
        `FACTS` to text.
    counts : dict
        `COUNTS` to int: queries searched; those with a hit, with one, with more; those that max_hits dropped; hits
        that are left.
    density : pandas.DataFrame
        `DENSITY_COLUMNS`: bins along the contigs in the order of the reference, and the hits of each strand that
        begin in them. Coordinates are 0-based and half-open.
    """

    facts: dict[str, str]
    counts: dict[str, int]
    density: pd.DataFrame

    @property
    def name(self) -> str:
        """The sample's name."""
        return self.facts["sample"]


class Counted(NamedTuple):
    """What is reported of a sample that is searched in no reference: `FACTS` but that one, and its system's numbers to
    int."""

    facts: dict[str, str]
    counts: dict[str, int]


def read_counted(summary: str | Path, tables: Mapping[str, SampleTable]) -> Counted:
    """Read the `<sample>.summary.tsv` of a sample that is searched in no reference.

    Parameters
    ----------
    summary : path
    tables : mapping
        System to the table of its samples, of every system that searches none.

    Raises
    ------
    InputError
        If the file is not as docs/formats.md says.
    """
    facts = [name for name in FACTS if name != "reference"]
    system = _read_summary(summary, facts, ())[0]["system"]
    if system not in tables:
        raise InputError(f"{summary} is of the system {system}, which searches an index; {_AGAIN}")
    return Counted(*_read_summary(summary, facts, list(tables[system].columns)))


def read_sample(summary: str | Path, density: str | Path) -> Sample:
    """Read a sample's `<sample>.summary.tsv` and `<sample>.density.tsv`.

    Raises
    ------
    InputError
        If a file is not as docs/formats.md says, or the two do not belong together.
    """
    facts, counts = _read_summary(summary, FACTS, COUNTS)
    bins = _rows(density, DENSITY_COLUMNS, {"contig": str} | dict.fromkeys(DENSITY_COLUMNS[1:], "int64"))
    if sum(row["plus"] + row["minus"] for row in bins) != counts["hits"]:
        raise InputError(f"{density} holds other hits than {summary}; {_AGAIN}")
    return Sample(facts, counts, frame(bins, list(DENSITY_COLUMNS)))


def _read_summary(
    path: str | Path, facts: Sequence[str], counts: Sequence[str]
) -> tuple[dict[str, str], dict[str, int]]:
    """The texts and the whole numbers of a summary."""
    rows = _rows(path, [*facts, *counts], dict.fromkeys(facts, str) | dict.fromkeys(counts, "int64"))
    if len(rows) != 1:
        raise InputError(f"{path} has {len(rows)} rows, not one; {_AGAIN}")
    (values,) = rows
    return {name: values[name] for name in facts}, {name: values[name] for name in counts}


def _rows(path: str | Path, columns: Sequence[str], types: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a table with these columns; others beside them are left out."""
    import pandas as pd

    try:
        # Names of contigs may be no UTF-8: here they are only shown.
        table = pd.read_csv(
            path, sep="\t", keep_default_na=False, dtype=dict(types), quoting=3, encoding_errors="replace"
        )
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no readable table ({error}); {_AGAIN}") from error
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise InputError(f"{path} has no column '{missing[0]}'; {_AGAIN}")
    return rows_of(table[list(columns)])


# The pictures


def draw_samples(samples: Iterable[Sample], paths: Iterable[str | Path]) -> None:
    """Draw each sample's seeds along its reference into the files whose stem is the sample's name."""
    style.apply_style()
    files = list(map(Path, paths))
    for sample in samples:
        style.save_figure(_seeds_along(sample), [path for path in files if path.stem == sample.name])


def _seeds_along(sample: Sample) -> Figure:
    """Seeds of both strands in columns of equal width along all contigs, one behind the other."""
    title = f"{_shown(sample.name, 24)}: seeds along {_shown(sample.facts['reference'], 24)}"
    if not sample.counts["hits"]:
        return style.empty_figure(title, "No seed was found.")
    lengths = {row["contig"]: int(row["end"]) for row in rows_of(sample.density)}  # a contig's last bin ends with it
    total = sum(lengths.values())
    figure, axes = style.pyplot().subplots()
    cut = _draw_strands(axes, sample.density, min(_COLUMNS, total))
    axes.set_xlim(0, total)
    below, named = _label_one(axes, lengths) if len(lengths) == 1 else _label_contigs(axes, lengths)
    height = 2.35 + below
    figure.set_size_inches(style.WIDTH, height)
    figure.subplots_adjust(left=_LEFT / style.WIDTH, right=1 - _RIGHT / style.WIDTH, top=1 - 0.72 / height,
                           bottom=below / height)  # fmt: skip
    width = format_bases(total / min(_COLUMNS, total))
    hits = f"{how_many(sample.counts['hits'], 'seed')} on {format_bases(total)}{named}"
    style.heading(figure, title, f"{hits}; '+' upwards, '−' downwards, a column for {width}{cut}")
    return figure


def _draw_strands(axes: Axes, density: pd.DataFrame, columns: int) -> str:
    """Draw '+' upwards and '-' downwards; what the subtitle says of columns that are cut.

    Repeats hold many times what the rest does: beyond twice what most columns have, they are cut, and marked.
    """
    import numpy as np

    from warpseed.compute.ranges import borders_of

    # Bins end at contigs' ends, columns do not: what a bin has is shared by the columns that it lies in.
    ends = borders_of((density["end"] - density["start"]).to_numpy())
    edges = np.linspace(0, ends[-1], columns + 1)
    sums = (borders_of(density[strand].to_numpy()) for strand in ("plus", "minus"))
    strands = [np.diff(np.interp(edges, ends, running)) for running in sums]
    most = max(float(seeds.max()) for seeds in strands)
    usual = max(float(np.quantile(seeds, 0.97)) for seeds in strands)
    top = 1.3 * usual if most > 2 * usual > 0 else 1.05 * most
    for sign, seeds, colour in ((1, strands[0], _PLUS), (-1, strands[1], _MINUS)):
        axes.stairs(sign * np.minimum(seeds, top), edges, fill=True, color=colour, lw=0)
        beyond = np.flatnonzero(seeds > top)
        axes.plot((edges[beyond] + edges[beyond + 1]) / 2, np.full(len(beyond), sign * top), ls="none", clip_on=False,
                  marker="^" if sign > 0 else "v", ms=4, color=style.INK)  # fmt: skip
    axes.set_ylim(-top, top)
    axes.yaxis.set_major_locator(style.pyplot().MaxNLocator(5, symmetric=True, integer=True))
    axes.yaxis.set_major_formatter(lambda value, _: format_scaled(abs(value)))
    axes.set_ylabel("seeds")
    axes.axhline(0, color=style.INK, lw=0.6)
    return f"; marked columns have up to {most:,.0f}" if top < most else ""


def _label_one(axes: Axes, lengths: Mapping[str, int]) -> tuple[float, str]:
    """Positions below the only contig; the inches that this takes, and nothing for the subtitle."""
    (name,) = lengths
    axes.set_xlabel(_shown(name))
    axes.xaxis.set_major_formatter(lambda value, _: format_bases(value) if value else "0")
    return 0.5, ""


def _label_contigs(axes: Axes, lengths: Mapping[str, int]) -> tuple[float, str]:
    """Borders of contigs, and names below those with room; the inches that names take, and words for the subtitle."""
    total = sum(lengths.values())
    starts = dict(zip(lengths, itertools.accumulate(lengths.values(), initial=0), strict=False))
    inches = {name: length / total * (style.WIDTH - _LEFT - _RIGHT) for name, length in lengths.items()}
    level = [name for name in lengths if inches[name] >= _LETTER * len(_shown(name)) + 0.1]
    upright = [name for name in lengths if inches[name] >= 0.14]
    # Upright names need less room: they are taken where they name more contigs.
    named, turned = (level, 0) if len(level) == len(upright) else (upright, 90)
    axes.set_xticks([starts[name] + lengths[name] / 2 for name in named], list(map(_shown, named)))
    axes.tick_params(axis="x", length=0, labelsize=style.SMALL, rotation=turned)
    bordered = lengths if len(lengths) <= _BORDERS else named
    for border in {starts[name] for name in bordered} | {starts[name] + lengths[name] for name in bordered}:
        axes.axvline(border, color="#b5b5b5", lw=0.6, zorder=0)
    longest = max(lengths, key=lengths.__getitem__)
    rest = f", the longest {_shown(longest)} with {format_bases(lengths[longest])}"
    below = 0.2 + _LETTER * max((len(_shown(name)) for name in named), default=0) if turned else 0.3
    return below, f" in {len(lengths):,} contigs{'' if len(named) == len(lengths) else rest}"


def _shown(name: str, letters: int = _NAME) -> str:
    return name if len(name) <= letters else name[: letters - 1] + "…"


# The page


def section(
    folder: Path,
    samples: Iterable[Sample],
    files: Iterable[Mapping[str, Path]],
    figures: Iterable[Path],
    counted: Iterable[tuple[Counted, Mapping[str, Path]]] = (),
    tables: Mapping[str, SampleTable] = MappingProxyType({}),
) -> list[Block]:
    """The blocks of the samples' section; `folder` is the page's own.

    Parameters
    ----------
    folder : path
    samples : iterable of Sample
    files : iterable of mapping of str to path
        Of each sample, what a link is called to the file that it leads to.
    figures : iterable of paths
        What `draw_samples` drew.
    counted : iterable of (Counted, mapping), optional
        Samples that are searched in no reference, each with its files.
    tables : mapping, optional
        System to the table of its samples, of every system that searches none.
    """
    return [*_searched(folder, list(samples), files, list(figures)), *_counted(folder, list(counted), tables)]


def _searched(
    folder: Path, samples: list[Sample], files: Iterable[Mapping[str, Path]], figures: list[Path]
) -> list[Block]:
    if not samples:
        return []
    heads = [Cell("Sample", "system: parameters"), Cell("reference", "reads", css="text")]
    heads += [*(Cell(name.split("_")[0]) for name in COUNTS), Cell("files", css="text")]
    rows = [Row(_cells(folder, sample, own)) for sample, own in zip(samples, files, strict=True)]
    note = (
        "Queries: reads, or what was cut from them, that were searched. Found: those with a hit, of which unique have "
        "one and multiple more. Dropped: those with more hits than max_hits allows; their hits are not among the hits."
    )
    drawn = [_picture(folder, sample, figures) for sample in samples]
    table = Table([heads], [Group("", rows)], len(heads))
    return [Text(note, soft=True), table, Heading("Seeds along the reference"), *drawn]


def _counted(
    folder: Path, counted: list[tuple[Counted, Mapping[str, Path]]], tables: Mapping[str, SampleTable]
) -> list[Block]:
    """A table each system; these samples lie nowhere along a reference, so there is no picture."""
    shown: list[Block] = []
    for system, (heading, note, columns) in tables.items():
        heads = [Cell("Sample", "system: parameters"), Cell("reads", css="text")]
        heads += [*map(Cell, columns.values()), Cell("files", css="text")]
        rows = []
        for (facts, counts), files in counted:
            if facts["system"] == system:
                numbers = [Cell(f"{counts[name]:,}") for name in columns]
                rows.append(Row([_named(facts), Cell(facts["reads"], css="text"), *numbers, _linked(folder, files)]))
        if rows:
            shown += [Heading(heading), Text(note, soft=True), Table([heads], [Group("", rows)], len(heads))]
    return shown


def _named(facts: Mapping[str, str]) -> Cell:
    return Cell(facts["sample"], f"{facts['system']}: {describe_parameters(facts['parameters'])}", css="facts")


def _linked(folder: Path, files: Mapping[str, Path]) -> Cell:
    return Cell("", css="text facts", links=tuple(link_to(folder, path, text) for text, path in files.items()))


def _cells(folder: Path, sample: Sample, files: Mapping[str, Path]) -> list[Cell]:
    facts, counts = sample.facts, sample.counts
    texts = [_named(facts), Cell(facts["reference"], facts["reads"], css="text")]
    queries = counts["queries"]
    shares = {"found": counts["found"], "unique": counts["unique"], "multiple": counts["multiple"]}
    smalls = {name: f"{count / queries:.1%}".replace("%", " %") for name, count in shares.items() if queries}
    return [
        *texts,
        *(Cell(f"{counts[n]:,}", smalls.get(n, "")) for n in COUNTS),
        _linked(folder, files),
    ]


def _picture(folder: Path, sample: Sample, figures: list[Path]) -> Block:
    if not sample.counts["hits"]:
        why = f"; max_hits dropped {sample.counts['dropped_queries']:,}" if sample.counts["dropped_queries"] else ""
        queries = sample.counts["queries"]
        none = "its one query has no seed" if queries == 1 else f"none of {queries:,} queries has a seed"
        return Text(f"{sample.name}: {none}{why}.")
    caption = f"{sample.name}: where the seeds begin, of each strand."
    drawn = picture(folder, "samples", [path for path in figures if path.stem == sample.name], caption)
    return drawn or Text(f"{sample.name}: no picture was drawn.")

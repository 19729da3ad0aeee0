"""Paper 002, maximal exact matches: its tables, its figures and its section of the page. Nothing of it is elsewhere.

Every function takes the measurements of this system alone (`Measurements.of`). Importing this module costs
nothing: the rules take the names of files from TABLES and FIGURES.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from warpseed.errors import how_many
from warpseed.measure.records import split_parameters
from warpseed.report import blocks, building, mems_values, parts, points, style, tables
from warpseed.report.measurements import Measurements, joined, published_band, rows_of
from warpseed.report.measurements import speedups as speedups_within
from warpseed.report.mems_values import PARTS, SIZES
from warpseed.report.words import format_bytes, format_number, format_seconds, machine_label, method_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FIGURES", "TABLES", "section", "speedups"]

_OURS = ("in_memory", "file_to_file")
"""Items that the paper does not print."""
_ONE_BY_ONE = "its matches are ours, one by one"
_PEERS = (
    parts.Peer("bwa", "bwa fastmap -l L -w 1000000", _ONE_BY_ONE),
    parts.Peer("mummer", "mummer -maxmatch -b -n -F -l L (the intel-xeon records: with -c, too)", _ONE_BY_ONE),
    parts.Peer("mummer4", "mummer4 -maxmatch -b -n -F -l L -qthreads 1", _ONE_BY_ONE),
)
"""How each is run, for matches of L bases or more."""
_SAME_MATCHES = "where read, contig, strand, both places and the length are"
_X = "least bases of a match"
_TIME = "ns a base"
_COLOURS = dict(zip(PARTS, ("#D55E00", "#009E73", "#0072B2", "#CC79A7", "#8c8c8c"), strict=True))


def speedups(measurements: Measurements) -> pd.DataFrame:
    """Every speedup within an item."""
    return speedups_within(measurements, ["stages", *_OURS, "super", "maximal"])


# Figures


def _against_lengths(
    measurements: Measurements,
    panels: list[points.Panel],
    values: pd.DataFrame,
    title: str,
    beside: Sequence[pd.DataFrame] = (),
) -> style.Drawn:
    """A figure of panels; the subtitle tells of `values`, and what is drawn `beside` them is in the file, too."""
    ticks = points.ticks(values["min_length"])
    subtitle = mems_values.describe(values, building.genomes(measurements))
    return points.panels(panels, ticks, _X, title, subtitle, log_x=False), joined([values, *beside])


def _method_panel(values: pd.DataFrame, label: str, printed: Sequence[tuple[float, float, str]] = ()) -> points.Panel:
    """A curve for each method."""
    curves = points.method_curves(values, "min_length", "ns_per_base")
    return points.Panel(label, curves, printed, above=bool(printed))


def _curve(own: pd.DataFrame, column: str, label: str, colour: str) -> points.Points:
    own = own.sort_values("min_length")
    return points.Points(label, colour, list(own["min_length"]), list(own[column]))


def _published_times(measurements: Measurements, part: str, label: str) -> list[tuple[float, float, str]]:
    """What the paper prints of a part on its GPU: (least length, nanoseconds a base, its label at the middle one)."""
    values = mems_values.published_times(measurements).get(part, {})
    return [
        (float(length), value, label if rank == len(values) // 2 else "")
        for rank, (length, value) in enumerate(values.items())
    ]


def _over(stages: pd.DataFrame, shown: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """How many times the GPU is as fast as all CPU threads in these parts, here or on a reference machine."""
    over = mems_values.on_one_machine(mems_values.gpu_over_cpu(stages))
    return over[over["part"].isin(list(shown))]


def _over_panels(
    measurements: Measurements, over: pd.DataFrame, shown: Mapping[str, tuple[str, str]]
) -> list[points.Panel]:
    """A panel of what `_over` has, in which a reference machine is named; none where no reads were searched by both.

    Parameters
    ----------
    shown : of each part of the search that has a curve its label and colour
    """
    if over.empty:
        return []
    first, known = rows_of(over)[0], set(over["part"])
    where = f" ({first['machine']})" if first["source"] == "reference" else ""
    curves = [
        _curve(over[over["part"] == part], "speedup", f"{label}{where}", colour)
        for part, (label, colour) in shown.items()
        if part in known
    ]
    bands = []
    for part in shown:
        of, name = ("", "") if part == "total" else (f" of {part}", f"{part}, ")
        bands += published_band(measurements, f"speedup{of}", name)
    label = f"GPU over {how_many(first['threads'], 'CPU thread')},\n{how_many(over['queries'].max(), 'read')}"
    return [points.Panel(label, curves, bands=bands)]


def figure_3(measurements: Measurements) -> style.Drawn:
    """Figure 3: the stages on the GPU against the least length."""
    title = "Figure 3: time of each stage on the GPU"
    values = mems_values.on_gpu(mems_values.stages_table(measurements))
    values = values[values["tier"] == "paper"]
    if values.empty:
        return style.empty_figure(title, style.NO_GPU), values
    curves = [_curve(values[values["part"] == part], "ns_per_base", part, _COLOURS[part]) for part in PARTS]
    printed = [*_published_times(measurements, "find intervals", "published: find intervals"),
               *_published_times(measurements, "locate", "published: locate")]  # fmt: skip
    panel = points.Panel(f"paper tier, {_TIME}", [curve for curve in curves if curve.x], printed, above=True)
    return _against_lengths(measurements, [panel], values, title)


def figure_4(measurements: Measurements) -> style.Drawn:
    """Figure 4: two stages on the CPU and the GPU."""
    title = "Figure 4: find intervals and locate, on CPU and GPU"
    stages = mems_values.stages_table(measurements)
    table = mems_values.side_by_side(stages)
    values = mems_values.largest_of_each(table[table["tier"] == "paper"])
    if values.empty:
        return style.empty_figure(title, style.NOTHING), values
    both = ("find intervals", "locate")
    printed = {part: _published_times(measurements, part, "published, GPU") for part in both}
    panels = [_method_panel(values[values["part"] == part], f"{part},\n{_TIME}", printed[part]) for part in both]
    shown = {part: (part, _COLOURS[part]) for part in both}
    over = _over(stages, shown)
    panels += _over_panels(measurements, over, shown)
    return _against_lengths(measurements, panels, values, title, [over])


def figure_5(measurements: Measurements) -> style.Drawn:
    """Figure 5: the whole search."""
    title = "Figure 5: the whole search, on CPU and GPU"
    stages = mems_values.stages_table(measurements)
    table = mems_values.side_by_side(stages)
    values = mems_values.largest_of_each(table[table["part"] == "total"])
    if values.empty:
        return style.empty_figure(title, style.NOTHING), values
    panels = [_method_panel(values, _TIME)]
    shown = {"total": ("paper tier, all of it", _COLOURS["locate"])}
    over = _over(stages, shown)
    panels += _over_panels(measurements, over, shown)
    return _against_lengths(measurements, panels, values, title, [over])


def kinds(measurements: Measurements) -> style.Drawn:
    """How many matches of each kind there are, against the least length."""
    title = "Matches of each kind"
    values = mems_values.one_case(mems_values.kinds_table(measurements))
    if values.empty:
        return style.empty_figure(title, style.NOTHING), values
    colours = {"maximal": "#8c8c8c", "paper": "#0072B2", "super": "#D55E00"}
    curves = [
        _curve(values[values["kind"] == kind], "per_1000_bases", kind, colour) for kind, colour in colours.items()
    ]
    panel = points.Panel("matches in 1,000 bases", curves)
    return _against_lengths(measurements, [panel], values, title)


FIGURES: Mapping[str, Callable[[Measurements], style.Drawn]] = {
    "figure_3": figure_3,
    "figure_4": figure_4,
    "figure_5": figure_5,
    "kinds": kinds,
}
"""Figures by the stem of their files, in the order of the page."""

TABLES: Mapping[str, Callable[[Measurements], Any]] = {
    "summary": lambda m: tables.summary_table(speedups(m)),
    "statements": mems_values.statements_table,
    "stages": mems_values.stages_table,
    "kinds": mems_values.kinds_table,
    "memory": mems_values.memory_table,
    "settings": mems_values.settings_table,
    **{item: partial(tables.long_table, item=item) for item in _OURS},
    "speedups": speedups,
    "peers": lambda m: tables.peer_table(speedups(m)),
    "peer_hits": tables.hits_table,
    "gpu_limits": tables.limits_table,
    "gpu_rates": tables.rates_table,
}
"""Tables by the stem of their files."""


# The page


def section(measurements: Measurements, files: blocks.Files) -> list[blocks.Block]:
    """The blocks of this system's section."""
    paper = measurements.paper
    over = speedups(measurements)
    sizes = tables.describe_measured(measurements, ["stages", *_OURS]) or style.NOTHING.removesuffix(".")
    return [
        blocks.Text(paper.about),
        blocks.Text(f"Sizes: {sizes}; published: {paper.queries:,} reads on {paper.reference}, {paper.machine}."),
        *parts.real_reads(measurements, files),
        *_statements(measurements),
        blocks.links(files, ("statements", "stages", "speedups")),
        *blocks.figures(measurements, files, FIGURES),
        *_memory(measurements),
        blocks.links(files, ("memory",)),
        *_settings(measurements),
        blocks.links(files, ("settings", "kinds")),
        *parts.of_ours(measurements, files, _OURS, over),
        *parts.beside_peers(measurements, over, _PEERS, _SAME_MATCHES),
        blocks.links(files, ("peers", "peer_hits")),
        *building.index_build(measurements),
        *parts.limits(measurements, name=_limited),
        *parts.published_rest(measurements),
        *blocks.differences(measurements),
    ]


def _limited(row: Mapping[str, Any]) -> str:
    """What a GPU searched, and for which matches: one data set is searched for several kinds."""
    facts = split_parameters(row["parameters"])
    return f"{row['case']}: {facts['kind']} matches of {facts['min_length']} bases or more"


def _statements(measurements: Measurements) -> list[blocks.Block]:
    """What the paper's text says of its figures, and ours."""
    over = mems_values.gpu_over_cpu(mems_values.stages_table(measurements))
    measured = [
        f"; on {machine_label(row['source'], row['machine'])} of {how_many(row['queries'], 'read')} "
        f"({row['case']}), over {how_many(row['threads'], 'CPU thread')}"
        for row in rows_of(over.drop_duplicates(["source", "machine", "case"]))
    ]
    note = (
        "Seconds are as long as all of the paper's bases would take (25,249 reads of 7,000), in the paper tier on one "
        "GPU: only machines with a GPU have a column. Of speedups, which differ with the least length of a match, the "
        "least and the most: the paper's over "
        f"{how_many(measurements.paper.hardware['cores'], 'CPU thread')}{''.join(measured)}. The paper's are on hg19; "
        "a short match has fewer places in a smaller genome."
    )
    table = mems_values.statements_table(measurements)
    places = [column for column in table.columns if column not in mems_values.STATEMENT_COLUMNS]
    table = table.drop(columns=[place for place in places if table[place].isna().all()])
    return parts.statements(table, mems_values.STATEMENT_COLUMNS, "What the paper says of its figures", note)


def _memory(measurements: Measurements) -> list[blocks.Block]:
    """The parts of the paper's index, beside what it prints."""
    table = mems_values.memory_table(measurements)
    groups = []
    for (source, machine), own in table.groupby(["source", "machine"], sort=False):
        rows = [
            blocks.Row(
                [
                    blocks.Cell(str(row["part"])),
                    *(_size_cell(row[name]) for name in ("published_bytes", "bytes")),
                    *(blocks.Cell(format_number(row[name])) for name in SIZES),
                ]
            )
            for row in rows_of(own)
        ]
        name = "published alone" if source == "published" else machine_label(str(source), str(machine))
        groups.append(blocks.Group(name, rows))
    heads = ["Part", "published", "ours", "bytes a base,\npublished", "formula", "ours"]
    note = (
        "Section 4.1's index: the BWT in bins of 64, the suffix positions of every 7th row, the intervals of all "
        "strings of PRE_CALC_LEN bases. Published: for hg19, of 3.1 Gbp; the size of the intervals does not depend on "
        "the genome, but on PRE_CALC_LEN: what is published stands beside a part with the paper's parameters alone. "
        "Its 512 MB are 2^29 bytes, 8 for each of 4^13 strings."
    )
    return [
        blocks.Heading("Memory of the paper's index"),
        blocks.Text(note, soft=True),
        blocks.Table([[blocks.Cell(head) for head in heads]], groups, len(heads)),
    ]


def _size_cell(size: float) -> blocks.Cell:
    return blocks.Cell("" if size != size else format_bytes(size))


def _settings(measurements: Measurements) -> list[blocks.Block]:
    """What the parameters of the paper's index do to its size and to two stages."""
    table = mems_values.settings_table(measurements)
    heading = blocks.Heading("What the parameters of the paper's index do")
    if table.empty:
        return [heading, blocks.Text(style.NOTHING)]
    groups = []
    keys = ["source", "machine", "case", "device", "gpus", "threads"]
    for (source, machine, case, *_), own in table.groupby(keys, sort=False):
        first = rows_of(own)[0]
        rows = [blocks.Row(_setting_cells(row), "" if row["changed"] else "published") for row in rows_of(own)]
        place = f"{machine_label(str(source), str(machine))}: {case}, {method_of(first).label}"
        groups.append(blocks.Group(f"{place}, {how_many(first['queries'], 'read')}", rows))
    heads = ["Changed", "least length", "index", "find intervals", "locate", "total"]
    note = (
        "One parameter at a time differs from those of the first row, which names them. The paper's are "
        f"{mems_values.setting_words(mems_values.PAPERS_SETTINGS)}. Medians."
    )
    return [
        heading,
        blocks.Text(note, soft=True),
        blocks.Table([[blocks.Cell(head) for head in heads]], groups, len(heads)),
    ]


def _setting_cells(row: Mapping[str, Any]) -> list[blocks.Cell]:
    return [
        blocks.Cell(row["changed"] or "nothing", "" if row["changed"] else mems_values.setting_words(row)),
        blocks.Cell(str(row["min_length"])),
        blocks.Cell(format_bytes(row["bytes"])),
        *(blocks.Cell(format_seconds(row[f"{part}_s"])) for part in ("intervals", "locate", "total")),
    ]

"""Paper 003, k-mers in a stream: its tables, its figures and its section of the page. Nothing of it is elsewhere.

Every function takes the measurements of this system alone (`Measurements.of`). Importing this module costs
nothing: the rules take the names of files from TABLES and FIGURES.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from warpseed.report import blocks, parts, points, style, tables
from warpseed.report import tree_bitmap_values as values
from warpseed.report.charts import best_source, one_source
from warpseed.report.measurements import Measurements, frame, joined, published_band, rows_of, times
from warpseed.report.measurements import speedups as speedups_within
from warpseed.report.tree_bitmap_runs import WORK, run_lines
from warpseed.report.words import (
    format_letters,
    format_number,
    format_scaled,
    format_seconds,
    machine_label,
    method_of,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FIGURES", "SAMPLES", "TABLES", "section", "speedups"]

SAMPLES = blocks.SampleTable(
    "K-mers counted",
    "K-mers: places where one begins. Distinct: k-mers that come once or more often.",
    {"records": "records", "bases": "bases", "kmers": "k-mers", "new": "distinct"},
)
_SUMMED = ("in_memory", "counts", "fixed")
_EXACT, _EFFICIENT, _QUEUES = ("naive", "shuffle"), ("naive", "efficient"), ("efficient", "queue")
_STRUCTURES = ("tree", "hybrid")
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8c8c8c")
_VARIANT_COLOURS = {"naive": "#8c8c8c", "shuffle": "#0072B2", "efficient": "#0072B2", "queue": "#D55E00"}
_VARIANT_WORDS = {"efficient": "transition-efficient", "queue": "with queues"}
_STREAM = "bases of the stream"
_FIGURE_37, _FIGURE_38 = 500_000, 100_000
"""Bases of the thesis's streams."""
_WHY = (
    "Shuffle over naive: the naive kernel visits all trie-nodes for each base, so the ratio grows with k and with the "
    "seed, whose length the thesis does not print. Occupancy: it falls by whole blocks, ours by one of three, and is "
    "a GPU's alone: without one its cells are empty."
)
"""Why what is said of Figures 36 and 38 differs."""


def speedups(measurements: Measurements) -> pd.DataFrame:
    """Every speedup within an item."""
    return speedups_within(measurements, _SUMMED)


# Figures


def _where(row: Mapping[str, Any]) -> str:
    return f" ({row['machine']})" if row["source"] == "reference" else ""


def _against_k(table: pd.DataFrame, column: str, printed: int = 0) -> list[points.Points]:
    """A curve for each variant on each device; dashed on the CPU. Of several streams that of `printed` bases is drawn,
    or else the longest."""
    curves = []
    for (_, _, _, variant), own in table.groupby(["source", "machine", "device", "variant"], sort=False):
        drawn = values.longest_of_each_k(own, printed).dropna(subset=[column])
        if len(drawn):
            row = rows_of(drawn)[0]
            name = f"{_words(str(variant))}, {row['device'].upper()}{_where(row)}"
            dashed = row["device"] == "cpu"
            curves.append(
                points.Points(name, _VARIANT_COLOURS[str(variant)], list(drawn["k"]), list(drawn[column]), dashed)
            )
    return curves


def _words(variant: str) -> str:
    return _VARIANT_WORDS.get(variant, variant)


class _Beside(NamedTuple):
    """A panel below the times of two kernels, and the table that its curves are of."""

    panel: points.Panel
    counted: pd.DataFrame


def _kernel_figure(
    measurements: Measurements,
    item: str,
    sides: tuple[str, str],
    title: str,
    more: _Beside | None = None,
    printed: int = 0,
) -> style.Drawn:
    """Times of two kernels against k, and below what the thesis shows beside. The subtitle tells the streams that are
    drawn, and not those that the table has, too. `printed`: bases of the thesis's stream."""
    table = values.variants_table(measurements, item)
    table = best_source(table[table["variant"].isin(list(sides)) & (table["stage"] == "kernel")])
    if table.empty:
        return style.empty_figure(title, style.NOTHING), table
    shown = [points.Panel("ns a base", _against_k(table, "ns_per_base", printed))]
    ratios = best_source(values.ratio_table(measurements, item, sides, "kernel").dropna(subset=["speedup"]))
    if len(ratios):
        said = published_band(measurements, f"speedup of {sides[1]} over {sides[0]}")
        over = _against_k(ratios, "speedup", printed)
        shown.append(points.Panel(f"{_words(sides[1])}\nover {_words(sides[0])}", over, bands=said))
    drawn = [values.longest_of_each_k(table, printed)]
    if more is not None:
        shown.append(more.panel)
        drawn.append(values.longest_of_each_k(more.counted, printed))
    figure = points.panels(shown, points.ticks(table["k"]), "k", title, values.describe(joined(drawn)), log_x=False)
    return figure, joined([table, ratios])


def figure_36(measurements: Measurements) -> style.Drawn:
    """Figure 36: the naive and the shuffle kernel against k."""
    title = "Figure 36: exact kernels, naive and shuffle"
    return _kernel_figure(measurements, "exact_kernels", _EXACT, title)


def _less(measurements: Measurements, sides: tuple[str, str], metric: str) -> pd.DataFrame:
    return best_source(values.counted_table(measurements, sides, metric))


def figure_37(measurements: Measurements) -> style.Drawn:
    """Figure 37: the naive and the transition-efficient Levenshtein kernel."""

    def saved() -> _Beside | None:
        own = _less(measurements, _EFFICIENT, "accesses")
        if own.empty:
            return None
        curves = _against_k(own, "less_percent", _FIGURE_37)
        printed = measurements.published[measurements.published["metric"] == "fewer memory accesses"]
        marks = [
            (float(row["parameters"].partition("k=")[2]), row["value"], "published" if rank == 0 else "")
            for rank, row in enumerate(rows_of(printed))
        ]
        return _Beside(points.Panel("fewer memory\naccesses, %", curves, marks, above=True), own)

    title = "Figure 37: Levenshtein kernels, naive and transition-efficient"
    return _kernel_figure(measurements, "edit_kernels", _EFFICIENT, title, saved(), _FIGURE_37)


def figure_38(measurements: Measurements) -> style.Drawn:
    """Figure 38: the transition-efficient Levenshtein kernel without and with queues."""

    def lost() -> _Beside | None:
        own = _less(measurements, _QUEUES, "occupancy")
        if own.empty or (own["less_percent"] <= 0).any():
            return None
        curves = _against_k(own, "less_percent", _FIGURE_38)
        return _Beside(
            points.Panel(
                "occupancy\nlost, %", curves, bands=published_band(measurements, "occupancy lost with queues")
            ),
            own,
        )

    title = "Figure 38: Levenshtein kernels, without and with queues"
    ratios = values.ratio_table(measurements, "edit_kernels", _QUEUES, "kernel")
    if ratios.empty and len(values.variants_table(measurements, "edit_kernels")):
        return style.empty_figure(title, style.NO_GPU), ratios
    return _kernel_figure(measurements, "edit_kernels", _QUEUES, title, lost(), _FIGURE_38)


def _structure_figure(
    measurements: Measurements, stage: str, title: str, said: list[tuple[float, float, str]]
) -> style.Drawn:
    """How many times the HTB is as fast as the pointer tree, against the stream's length: a curve for each k."""
    table = one_source(values.ratio_table(measurements, "structures", _STRUCTURES, stage).dropna(subset=["speedup"]))
    if table.empty:
        return style.empty_figure(title, style.NOTHING), table
    curves = [
        points.Points(f"k = {k}", colour, list(own["length"]), list(own["speedup"]))
        for colour, (k, own) in zip(_COLOURS, table.sort_values("length").groupby("k"), strict=False)
    ]
    panel = points.Panel("HTB over\npointer tree", curves, bands=said)
    ticks = [(float(length), f"{length:,}") for length in sorted(set(table["length"]))]
    return points.panels([panel], ticks, _STREAM, title, values.describe(table), log_x=False), table


def figure_39a(measurements: Measurements) -> style.Drawn:
    """Figure 39a: building the HTB and the pointer tree."""
    title = "Figure 39a: HTB over pointer tree, construction"
    return _structure_figure(measurements, "insert", title, published_band(measurements, "speedup of construction"))


def figure_39b(measurements: Measurements) -> style.Drawn:
    """Figure 39b: making the Tree Bitmap of both."""
    return _structure_figure(measurements, "to_bitmap", "Figure 39b: HTB over pointer tree, conversion", [])


def figure_40(measurements: Measurements) -> style.Drawn:
    """Figure 40: the serial version, and the CPU alone."""
    return run_lines(measurements, ("serial", "one_trie"), "Figure 40: time line of the serial version")


def figure_41(measurements: Measurements) -> style.Drawn:
    """Figure 41: the concurrent version."""
    return run_lines(measurements, ("concurrent",), "Figure 41: time line of the concurrent version")


def streams(measurements: Measurements) -> style.Drawn:
    """The fast tier against the length of a stream."""
    title = "The fast tier against the length of the stream"
    table = values.streams_table(measurements)
    table = best_source(_of_longest(table[table["tier"] == "fast"]))
    if table.empty:
        return style.empty_figure(title, style.NOTHING), table
    # Of most k there may be one length alone; of some there may be one or two more than of others.
    lengths_of = table.groupby("k")["length"].transform("nunique")
    shown = [
        points.Panel(f"k = {k}\nbases a second", _stream_curves(own))
        for k, own in table[2 * lengths_of > lengths_of.max()].groupby("k")
    ]
    lengths = sorted(set(table["length"]))
    ticks = [(float(length), format_scaled(length)) for length in lengths]
    return points.panels(shown, ticks, _STREAM, title, values.describe(table)), table


def _of_longest(table: pd.DataFrame) -> pd.DataFrame:
    """Of each machine the streams of random bases, or of a genome: what the longest one is of. Each length once."""
    place = ["source", "machine"]
    kinds = table.sort_values("length", kind="stable").drop_duplicates(place, keep="last")
    chosen = table.merge(kinds[[*place, "bases"]], on=[*place, "bases"])
    once = [*place, "tier", "device", "gpus", "threads", "k", "length", "scope"]
    return chosen.drop_duplicates(once, keep="last")


def _stream_curves(table: pd.DataFrame) -> list[points.Points]:
    curves = []
    keys = ["source", "machine", "device", "gpus", "threads", "scope"]
    for (_, _, device, _, _, scope), own in table.groupby(keys, sort=False):
        row = rows_of(own)[0]
        words = {
            "end_to_end": method_of(row).place + (", both copies" if device == "gpu" else ""),
            "on_device": "GPU, on the device",
            "floor": "GPU memory's limit",
        }
        colour = {"end_to_end": style.COLOURS["fast", str(device)], "on_device": "#0072B2", "floor": style.GREY}
        ordered = own.sort_values("length")
        dashed = scope == "floor" or (device == "cpu" and row["threads"] == 1)
        x, y = list(ordered["length"]), list(ordered["bases_per_s"])
        curves.append(points.Points(f"{words[str(scope)]}{_where(row)}", colour[str(scope)], x, y, dashed))
    return curves


FIGURES: Mapping[str, Callable[[Measurements], style.Drawn]] = {
    "figure_36": figure_36,
    "figure_37": figure_37,
    "figure_38": figure_38,
    "figure_39a": figure_39a,
    "figure_39b": figure_39b,
    "figure_40": figure_40,
    "figure_41": figure_41,
    "streams": streams,
}
"""Figures by the stem of their files, in the order of the page."""


def _structures(measurements: Measurements) -> pd.DataFrame:
    return joined(
        [values.ratio_table(measurements, "structures", _STRUCTURES, stage) for stage in ("insert", "to_bitmap")]
    )


def _kernels(measurements: Measurements) -> pd.DataFrame:
    ratios = [
        values.ratio_table(measurements, item, sides, "kernel")
        for item, sides in (("exact_kernels", _EXACT), ("edit_kernels", _EFFICIENT), ("edit_kernels", _QUEUES))
    ]
    return joined(ratios)


def _counted(measurements: Measurements) -> pd.DataFrame:
    return joined(
        [
            values.counted_table(measurements, _EFFICIENT, "accesses"),
            values.counted_table(measurements, _QUEUES, "occupancy"),
        ]
    )


TABLES: Mapping[str, Callable[[Measurements], Any]] = {
    "summary": lambda m: tables.summary_table(speedups(m)),
    "statements": values.statements_table,
    "kernels": _kernels,
    "counted": _counted,
    "structures": _structures,
    "versions": lambda m: values.variants_table(m, "versions"),
    "events": values.events_table,
    "streams": values.streams_table,
    "fixed": values.fixed_table,
    "in_memory": partial(tables.long_table, item="in_memory"),
    "counts": partial(tables.long_table, item="counts"),
    "speedups": speedups,
    "gpu_limits": tables.limits_table,
    "gpu_rates": tables.rates_table,
}
"""Tables by the stem of their files."""


# The page


def section(measurements: Measurements, files: blocks.Files) -> list[blocks.Block]:
    """The blocks of this system's section."""
    paper = measurements.paper
    measured, over = times(measurements, ["versions", *_SUMMED]), speedups(measurements)
    shown = frame([{**row, "length": _stream_length(row)} for row in rows_of(measured)], [*measured.columns, "length"])
    sizes = values.describe(shown).replace("\n", "; ") if len(shown) else style.NOTHING.removesuffix(".")
    return [
        blocks.Text(paper.about),
        blocks.Text(f"Sizes: {sizes}; published: {paper.queries:,} {paper.reference}, {paper.machine}."),
        *parts.real_reads(measurements, files),
        *_statements(measurements),
        blocks.links(files, ("statements", "kernels", "counted", "structures", "versions", "events")),
        *blocks.figures(measurements, files, FIGURES),
        *_versions(measurements),
        *parts.of_ours(measurements, files, ("in_memory", "counts"), over),
        blocks.links(files, ("streams", "speedups")),
        *_fixed(measurements),
        blocks.links(files, ("fixed",)),
        *parts.limits(measurements),
        *parts.published_rest(measurements),
        *blocks.differences(measurements),
    ]


def _stream_length(row: Mapping[str, Any]) -> int:
    """Bases of a stream: a dictionary that does not grow is searched for its places and, behind what is no base, for
    those of its reverse complement."""
    places = int(row["queries"])
    return places // 2 if row["item"] == "fixed" else places


def _statements(measurements: Measurements) -> list[blocks.Block]:
    """What the thesis's text says of its figures, and ours."""
    versions = values.of_longest(values.variants_table(measurements, "versions"))
    sizes = [
        f"{format_letters(row['length'])} on {machine_label(row['source'], row['machine'])}"
        for row in rows_of(versions.drop_duplicates(["source", "machine"]))
    ]
    timed = f"Totals and times between kernels are of streams of {', '.join(sizes)}; " if sizes else ""
    counted = values.counted_table(measurements, _EFFICIENT, "accesses")
    counted = values.on_one_device(counted).drop_duplicates(["source", "machine"])
    streams = [
        f"{row['length']:,} bases with a seed of {row['seed_length']:,} "
        f"on {machine_label(row['source'], row['machine'])}"
        for row in rows_of(counted[counted["device"] == "cpu"])
    ]
    twins = f" Accesses to memory are counted by the twins: of {', '.join(streams)}." if streams else ""
    note = (
        "Of a machine with a GPU it is what that did, of another what the kernels' twins on its CPU did."
        f"{twins} "
        f"{timed}{'the' if timed else 'The'} thesis's has 1 Mbases, in chunks of 100,000, k = 15. {_WHY}"
    )
    table = values.statements_table(measurements)
    return parts.statements(table, values.STATEMENT_COLUMNS, "What the thesis says of its figures", note)


def _versions(measurements: Measurements) -> list[blocks.Block]:
    """Seconds of each version of the dynamic system, and what they are made of."""
    table = values.variants_table(measurements, "versions")
    heading = blocks.Heading("Versions of the dynamic system")
    if table.empty:
        return [heading, blocks.Text(style.NOTHING)]
    names = {"one_trie": "CPU alone, one trie", "sorted": "concurrent, in order where kernels run"}
    stages = [stage for stage in WORK if stage in set(table["stage"]) and stage != "match"]
    groups = []
    for (source, machine, k, length), own in table.groupby(["source", "machine", "k", "length"], sort=False):
        rows = []
        for (variant, _), group in own.groupby(["variant", "device"], sort=False):
            first = rows_of(group)[0]
            seconds = group.set_index("stage")["seconds"]
            name = names.get(str(variant), str(variant))
            device = "" if variant == "one_trie" else f", {'GPU' if first['device'] == 'gpu' else 'CPU'}"
            cells = [
                blocks.Cell(format_seconds(float(seconds.get(stage, float("nan"))))) for stage in ("total", *stages)
            ]
            rows.append(blocks.Row([blocks.Cell(f"{name}{device}"), *cells]))
        place = machine_label(str(source), str(machine))
        size = format_letters(float(str(length)))
        groups.append(blocks.Group(f"{place}: k = {k}, {size}", rows))
    heads = [blocks.Cell("Version"), blocks.Cell("total"), *(blocks.Cell(WORK[stage][0]) for stage in stages)]
    note = (
        "Medians; Figures 40 and 41 are of one run each. Parts of the concurrent version overlap on a GPU. All "
        "versions say the same of every place, and have the same dictionary in the end."
    )
    return [heading, blocks.Text(note, soft=True), blocks.Table([heads], groups, len(heads))]


def _fixed(measurements: Measurements) -> list[blocks.Block]:
    """A dictionary that does not grow, beside other libraries."""
    table = values.fixed_table(measurements)
    heading = blocks.Heading("A dictionary that does not grow, beside other libraries")
    if table.empty:
        return [heading, blocks.Text(style.NOTHING)]
    groups = []
    keys = ["source", "machine", "k", "kmers", "length"]
    for (source, machine, k, kmers, length), own in table.groupby(keys, sort=False):
        rows = []
        for row in rows_of(own):
            name = "searchsorted of numpy" if row["tool"] == "numpy" else method_of(row).label
            seconds = [blocks.Cell(format_seconds(row[part])) for part in ("build_s", "search_s", "total_s")]
            over = [blocks.Cell(format_number(row[part])) for part in ("build_speedup", "search_speedup")]
            rows.append(blocks.Row([blocks.Cell(name), blocks.Cell(f"{row['results']:,}"), *seconds, *over]))
        place = f"{machine_label(str(source), str(machine))}: {kmers:,} {k}-mers in {length:,} places"
        groups.append(blocks.Group(place, rows))
    names = ("", "places found", "build", "search", "total", "build over ours", "search over ours")
    note = (
        "Places of a stream and its reverse complement whose k-mer is in the dictionary; medians. Over ours: the time "
        "over that of the fast tier on one CPU thread, where both found the same places. ahocorasick_rs is "
        "BytesAhoCorasick with overlapping matches, numpy's a k-mer's number base by base and a binary search. On a "
        "GPU building and searching are not told apart: only their total is timed."
    )
    return [heading, blocks.Text(note, soft=True), blocks.Table([[blocks.Cell(name) for name in names]], groups, 7)]

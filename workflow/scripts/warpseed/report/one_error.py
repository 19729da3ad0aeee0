"""Paper 001, reads with one error: its tables, its figures and its section of the page. Nothing of it is elsewhere.

Every function takes the measurements of this system alone (`Measurements.of`). Importing this module costs
nothing: the rules take the names of files from TABLES and FIGURES.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from warpseed.errors import how_many
from warpseed.measure.records import split_parameters
from warpseed.report import blocks, building, charts, parts, points, style, tables
from warpseed.report.measurements import Measurements, agreement, frame, joined, rows_of, times
from warpseed.report.measurements import speedups as speedups_within
from warpseed.report.words import format_number, format_seconds, machine_label

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FIGURES", "TABLES", "section", "speedups"]

_OURS = ("in_memory", "file_to_file", "file_to_bam")
"""Items that the paper does not print."""
_QUESTIONS = ("edits", "substitutions")
"""Items that other tools answer too."""
_SAME_READS = "the same reads have a place (how many of their hits are the same stands below)"
_PEERS = (
    parts.Peer("razers3", "razers3 -i 100-E -rr 100 -m 1000000", _SAME_READS),
    parts.Peer("yara", "yara_mapper -e E -s E -y full -sa record", _SAME_READS),
    parts.Peer("bwa", "bwa aln -n E -o E -e 0 -i 0 -l 1000 -k E -R 1000000 -N and bwa samse -n 1000000", _SAME_READS),
    parts.Peer("bowtie", "bowtie -v E -a", "its hits are ours that are as long as their read"),
)
"""How each is run, with E edits of reads of 100 to 199 bases."""
_SAME_PLACEMENTS = (
    "where a read has them on the same strand within 2 bases: tools put insertions and deletions differently"
)
_PRINTED_SLOTS = {"Table 4": 25, "Table 5": 50}
_PLACE = ["source", "machine", "case"]


def speedups(measurements: Measurements) -> pd.DataFrame:
    """Every speedup within an item."""
    return speedups_within(measurements, ["fixed_slots", *_OURS, *_QUESTIONS])


# Tables 4 and 5

_QUANTITIES = {
    "reads": "reads",
    "search": "CPU, 1 thread: algorithm",
    "host_to_device": "GPU: copy to device",
    "kernel": "GPU: kernel execution",
    "device_to_host": "GPU: copy to host",
    "speedup": "speed-up",
    "without_copies": "speed-up without copies",
    "search_a_read": "CPU, 1 thread: a read",
    "kernel_a_read": "GPU kernel: a read",
}
"""Rows of Tables 4 and 5, as printed; behind them what does not depend on how many reads there are."""
_PRINTED = {
    "algorithm": "search",
    "copy to device": "host_to_device",
    "kernel": "kernel",
    "copy to host": "device_to_host",
    "speedup": "speedup",
    "speedup without copies": "without_copies",
}
"""What the table prints, as our quantity."""
_SECONDS = ("search", "host_to_device", "kernel", "device_to_host")


def _printed_values(measurements: Measurements, printed: str, unit: float) -> dict[str, float]:
    """A printed table with its times in a unit, in seconds."""
    published = measurements.published[measurements.published["printed"] == printed]
    values = {_PRINTED[row["metric"]]: row["value"] for row in rows_of(published)}
    values = {name: value * (unit if name in _SECONDS else 1) for name, value in values.items()}
    return _with_a_read({"reads": measurements.paper.queries, **values})


def _with_a_read(values: dict[str, Any]) -> dict[str, Any]:
    for stage in ("search", "kernel"):
        if stage in values:
            values[f"{stage}_a_read"] = values[stage] / values["reads"]
    return values


def _measured_values(group: pd.DataFrame) -> dict[str, Any]:
    """What was measured of one case on one machine: seconds, and a speedup or why there is none."""
    stages = {device: own.set_index("stage")["median_s"] for device, own in group.groupby("device")}
    first = {device: rows_of(own)[0] for device, own in group.groupby("device")}
    values: dict[str, Any] = {"reads": int(group["queries"].max())}
    for device, named in (("cpu", _SECONDS[:1]), ("gpu", _SECONDS[1:])):
        values |= {stage: stages[device][stage] for stage in named if device in stages and stage in stages[device]}
    if {"cpu", "gpu"} <= stages.keys():
        unlike = agreement(first["cpu"], first["gpu"])
        # The total of a run is the copies and the kernel; its median is not the sum of theirs.
        whole = stages["gpu"].get("total", sum(stages["gpu"].get(stage, 0.0) for stage in _SECONDS[1:]))
        values["speedup"] = unlike or values["search"] / whole
        values["without_copies"] = unlike or values["search"] / values["kernel"]
    return _with_a_read(values)


def _slot_columns(measurements: Measurements, printed: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The columns of Table 4 or 5: as printed, read as milliseconds, then each case on each machine."""
    yield "as printed, s", _printed_values(measurements, printed, 1.0)
    yield "read as ms", _printed_values(measurements, printed, 1e-3)
    table = times(measurements, ["fixed_slots"])
    slots = [split_parameters(parameters).get("slots") for parameters in table["parameters"]]
    table = table.loc[[number == str(_PRINTED_SLOTS[printed]) for number in slots]]
    for (source, machine, case), group in table.groupby(_PLACE, sort=False):
        place = "here" if source == "here" else str(machine)
        yield f"{place}: {case}", _measured_values(group[(group["device"] == "gpu") | (group["threads"] == 1)])


def slots_table(measurements: Measurements, printed: str) -> pd.DataFrame:
    """Table 4 or 5 as printed: a row a quantity, times in seconds; "results differ" in place of a speedup."""
    columns = dict(_slot_columns(measurements, printed))
    rows = [
        {"system": measurements.paper.system, "quantity": label}
        | {name: values.get(quantity, "") for name, values in columns.items()}
        for quantity, label in _QUANTITIES.items()
    ]
    return frame(rows, ["system", "quantity", *columns])


def _slots_block(measurements: Measurements, printed: str) -> list[blocks.Block]:
    columns = dict(_slot_columns(measurements, printed))
    rows = [
        blocks.Row([blocks.Cell(label), *(_slot_cell(quantity, values.get(quantity)) for values in columns.values())])
        for quantity, label in _QUANTITIES.items()
    ]
    heads = [blocks.Cell(""), *(blocks.Cell(name) for name in columns)]
    return [
        blocks.Heading(f"{printed}: at most {_PRINTED_SLOTS[printed]} results a read"),
        blocks.Table([heads], [blocks.Group("", rows)], len(heads)),
    ]


def _slot_cell(quantity: str, value: Any) -> blocks.Cell:
    if value is None:
        return blocks.Cell("")
    if isinstance(value, str):
        return blocks.Cell(value, css="differ")
    if quantity == "reads":
        return blocks.Cell(f"{value:,}")
    return blocks.Cell(format_number(value) if "speedup" in quantity or quantity == "without_copies" else _time(value))


def _time(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 1000 else format_seconds(seconds)


# Figures


def results_table(measurements: Measurements) -> pd.DataFrame:
    """Figure 5: of each number of slots the results kept and the bytes for those of a launch, fixed and compact.

    Returns
    -------
    pandas.DataFrame
        A row for each source, machine, case and number of slots, `all` 1 where that is room for every result, and a
        published one for each that is printed. `reads` and `launch` say how many reads there are, and in a launch.
    """
    records = measurements.records
    own = records[records["item"] == "results"]
    columns = ["system", *_PLACE, "device", "slots", "all", "reads", "launch", "results", "fixed_bytes"]
    columns += ["compact_bytes", "published"]
    names = {"count": "results", "memory": "fixed_bytes", "compact_memory": "compact_bytes"}
    rows = []
    for (system, source, machine, case, device, parameters), group in own.groupby(
        ["system", *_PLACE, "device", "parameters"], sort=False
    ):
        facts = split_parameters(str(parameters))
        row: dict[str, Any] = {"system": system, "source": source, "machine": machine, "case": case}
        row["device"] = device
        row |= {"slots": int(facts["slots"]), "all": int(facts["all"]), "launch": int(facts["launch"])}
        row |= {"reads": int(group["queries"].iloc[0]), "published": False}
        rows.append(row | {names[cell["metric"]]: cell["value"] for cell in rows_of(group)})
    return joined([frame(rows, columns), frame(_published_results(measurements), columns)])


def _published_results(measurements: Measurements) -> list[dict[str, Any]]:
    published, paper = measurements.published, measurements.paper
    launch = published.loc[published["metric"] == "count", "value"].max()
    rows: dict[int, dict[str, Any]] = {}
    for value in rows_of(published[published["printed"] == "Figure 5"]):
        # "209 (the most of any read)": the number comes first.
        stated = split_parameters(value["parameters"])["max hits"].split()
        slots = int(stated[0])
        row: dict[str, Any] = {"system": paper.system, "source": "published", "machine": paper.machine}
        row |= {
            "case": paper.reference,
            "device": "gpu",
            "slots": slots,
            "all": int(len(stated) > 1),
            "reads": paper.queries,
            "launch": launch,
        }
        name = "results" if value["metric"] == "results found" else "fixed_bytes"
        size = value["value"] * (1e6 if value["unit"] == "MB" else 1)
        rows[slots] = rows.get(slots, row | {"published": True}) | {name: size}
    return list(rows.values())


def figure_5(measurements: Measurements) -> style.Drawn:
    """Figure 5: results against slots, and their memory, a read of each: sizes differ."""
    title = "Figure 5: results kept, and their memory, against slots a read"
    table = results_table(measurements)
    published = rows_of(table[table["published"].astype(bool)])
    own = charts.one_source(table[~table["published"].astype(bool)])
    if own.empty:
        return style.empty_figure(title, style.NOTHING), table
    kept, memory = [], []
    for case, group in own[own["device"] == own["device"].iloc[-1]].groupby("case", sort=False):
        group = group.sort_values("slots")
        slots = list(group["slots"])
        kept.append(points.Points(f"{case}", "#0072B2", slots, list(group["results"] / group["reads"])))
        for name, colour in (("fixed", "#D55E00"), ("compact", "#009E73")):
            sizes = list(group[f"{name}_bytes"] / group["launch"])
            memory.append(points.Points(f"{case}, {name}", colour, slots, sizes, dashed=name == "fixed"))
    found = [(row["slots"], row["results"] / row["reads"], "published") for row in published if row["results"] > 0]
    sizes = [(row["slots"], row["fixed_bytes"] / row["launch"], "published") for row in published]
    most = int(own["slots"].max())
    ticks = [(float(n), str(n)) for n in (1, 2, 4, 8, 16, 32, 64, 128) if not most / 1.4 <= n <= most * 1.4]
    panels = [points.Panel("results a read", kept, found), points.Panel("bytes a read", memory, sizes)]
    drawn = points.panels(
        panels,
        sorted([*ticks, (float(most), f"all\n({most})")]),
        "slots a read (max hits)",
        title,
        _read_sizes(own, measurements.paper.queries),
    )
    return drawn, joined([own, table[table["published"].astype(bool)]])


def _read_sizes(own: pd.DataFrame, queries: int) -> str:
    first = rows_of(own)[0]
    cases = own.drop_duplicates("case")
    counts = ", ".join(f"{row['case']} has {how_many(row['reads'], 'read')}" for row in rows_of(cases))
    return f"{machine_label(first['source'], first['machine'])}: {counts}; published: {queries:,} reads"


_STEPS = (
    "read_index", "index_to_device", "read", "pack", "host_to_device", "search", "kernel", "device_to_host", "settle",
    "write",
)  # fmt: skip


def figure_6(measurements: Measurements) -> style.Drawn:
    """Figure 6: the share of each step of the paper's program."""
    title = "Figure 6: where the time goes, step by step"
    values = charts.with_reference_gpu(tables.stage_table(measurements, "profile", with_index=True))
    if values.empty:
        return style.empty_figure(title, style.NOTHING), values
    order = {stage: rank for rank, stage in enumerate(_STEPS)}
    values = values.iloc[sorted(range(len(values)), key=lambda i: order[values["stage"].iloc[i]])]
    published = measurements.published[measurements.published["printed"] == "Figure 6"]
    said = [f"{row['metric'].removeprefix('share: ')} about {row['digits']} %" for row in rows_of(published)]
    subtitle = f"{tables.describe_sizes(measurements, values)}   ·   published: {', '.join(said)}"
    return charts.shares(values, title, subtitle), values


def figure_7(measurements: Measurements) -> style.Drawn:
    """Figure 7: kernel time a read against the size of blocks."""
    title = "Figure 7: kernel time against threads a block"
    table = times(measurements, ["block_sizes"])
    values = charts.one_source(table[table["stage"] == "kernel"])
    values = values.assign(block=[int(split_parameters(p)["block"]) for p in values["parameters"]])
    values = values.assign(us_per_read=values["median_s"] / values["queries"] * 1e6)
    published = measurements.published[measurements.published["printed"] == "Figure 7"]
    if values.empty:
        text = "Nothing was measured: this needs a GPU."
        return style.empty_figure(title, text), values
    curves = []
    for case, group in values.groupby("case", sort=False):
        group = group.sort_values("block")
        curves.append(points.Points(str(case), "#0072B2", list(group["block"]), list(group["us_per_read"])))
    best = [
        (float(split_parameters(row["parameters"])["block size"]), row["value"] / measurements.paper.queries * 1e6)
        for row in rows_of(published)
    ]
    sizes = sorted(set(values["block"]))
    panel = points.Panel("kernel, microseconds a read", curves, [(*place, "published") for place in best])
    theirs = "".join(f", about {row['digits']} {row['unit']}" for row in rows_of(published))
    sizes_said = tables.describe_sizes(measurements, values)
    subtitle = f"{sizes_said}   ·   published: {measurements.paper.queries:,} reads{theirs}"
    return points.panels([panel], [(float(n), str(n)) for n in sizes], "threads a block", title, subtitle), values


FIGURES: Mapping[str, Callable[[Measurements], style.Drawn]] = {
    "figure_5": figure_5,
    "figure_6": figure_6,
    "figure_7": figure_7,
}
"""Figures by the stem of their files, in the order of the page."""

TABLES: Mapping[str, Callable[[Measurements], Any]] = {
    "summary": lambda m: tables.summary_table(speedups(m)),
    "table_4": partial(slots_table, printed="Table 4"),
    "table_5": partial(slots_table, printed="Table 5"),
    "results": results_table,
    **{item: partial(tables.long_table, item=item) for item in ("fixed_slots", *_OURS)},
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
    sizes = tables.describe_measured(measurements, ["fixed_slots", *_OURS]) or style.NOTHING.removesuffix(".")
    return [
        blocks.Text(paper.about),
        blocks.Text(f"Sizes: {sizes}; published: {paper.queries:,} reads on {paper.reference}, {paper.machine}."),
        *parts.real_reads(measurements, files),
        *_slots_block(measurements, "Table 4"),
        blocks.links(files, ("table_4", "fixed_slots", "speedups")),
        *_slots_block(measurements, "Table 5"),
        blocks.links(files, ("table_5",)),
        blocks.Text(paper.items["fixed_slots"]["note"], soft=True),
        *parts.of_ours(measurements, files, _OURS, over),
        *parts.beside_peers(measurements, over, _PEERS, _SAME_PLACEMENTS),
        blocks.links(files, ("peers", "peer_hits")),
        *blocks.figures(measurements, files, FIGURES),
        *building.index_build(measurements),
        *parts.limits(measurements),
        *parts.published_rest(measurements),
        *blocks.differences(measurements),
    ]

"""Parts of a section that any system may have: peers, limits, other published values, the summary's rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from warpseed.errors import how_many
from warpseed.measure.records import RATE_CASE
from warpseed.report import tables
from warpseed.report.blocks import (
    Block,
    Cell,
    Files,
    Group,
    Heading,
    Row,
    Table,
    Text,
    as_printed,
    links,
    shown_speedup,
    texts,
)
from warpseed.report.measurements import STEADY, Measurements, rows_of, times
from warpseed.report.printed import printed_table
from warpseed.report.words import (
    case_title,
    format_bytes,
    format_ends,
    format_number,
    format_scaled,
    format_seconds,
    machine_label,
    side_of,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "SECTORS",
    "Peer",
    "beside_peers",
    "limits",
    "of_ours",
    "published_rest",
    "real_reads",
    "speedup_rows",
    "statements",
]


def of_ours(measurements: Measurements, files: Files, items: Sequence[str], speedups: pd.DataFrame) -> list[Block]:
    """Tables of items that the paper does not print, with their files, where they were measured."""
    shown: list[Block] = []
    for item in items:
        if len(times(measurements, [item])):
            shown += [*printed_table(measurements, item, speedups), links(files, (item,))]
    return shown


_SIMULATED = "simulated"
"""The `source` of reads in a configuration that come from no file."""


def real_reads(measurements: Measurements, files: Files) -> list[Block]:
    """A sentence for each machine and file of real reads: which data sets are of them."""
    records, system = measurements.records, measurements.paper.system
    own = records[records["system"] == system]
    sentences = []
    for (source, machine), group in own.groupby(["source", "machine"], sort=False):
        configuration = files.configurations.get((str(source), str(machine)), {})
        cases: dict[str, list[str]] = {}
        for name, file in _files_of_reads(configuration, system).items():
            if name in set(group["case"]):
                cases.setdefault(file, []).append(name)
        place = machine_label(str(source), str(machine))
        sentences += [f"{place}: {' and '.join(names)}, real reads of the file {file}" for file, names in cases.items()]
    return [Text(f"Not simulated: {'; '.join(sentences)}.")] if sentences else []


def _files_of_reads(configuration: Mapping[str, Any], system: str) -> dict[str, str]:
    """Data set of a system to the name of the file that its reads come from; none whose reads are simulated."""
    sets, block = configuration.get("reads") or {}, configuration.get(system) or {}
    found = {}
    for name, data_set in (block.get("datasets") or {}).items():
        reads = sets.get((data_set or {}).get("reads", block.get("reads"))) or {}
        source = reads.get("source", _SIMULATED)
        if source != _SIMULATED:
            found[name] = Path(source).name
    return found


class Peer(NamedTuple):
    """Another tool that ours is shown beside."""

    name: str
    """as the records have it"""
    command: str
    """how it is run"""
    same: str = "its hits are ours"
    """where a speedup stands, in words"""


def beside_peers(
    measurements: Measurements, speedups: pd.DataFrame, peers: Sequence[Peer], within: str = ""
) -> list[Block]:
    """The fast tier beside each tool that was measured, and how many of their hits are the same.

    Parameters
    ----------
    speedups : those of the system
    within : which hits are the same, in words
    """
    tools = set(tables.peer_table(speedups)["numerator_tool"])
    measured = [peer for peer in peers if peer.name in tools]
    if not measured:
        return _none_measured([peer.name for peer in peers])
    shown = [block for peer in measured for block in _peer(measurements, speedups, peer)]
    return [*shown, *_peer_hits(measurements, within)]


def _none_measured(names: Sequence[str]) -> list[Block]:
    if len(names) == 1:
        text = f"{names[0]} was not measured: it was not installed, or not asked for."
        return [Heading(f"Beside {names[0]}"), Text(text)]
    text = f"None of {', '.join(names)} was measured: they were not installed, or not asked for."
    return [Heading("Beside other tools"), Text(text)]


def _peer(measurements: Measurements, speedups: pd.DataFrame, shown: Peer) -> list[Block]:
    """The fast tier beside a tool: with the index open, and as whole processes."""
    peer, command, same = shown
    beside = tables.peer_table(speedups)
    beside = beside[beside["numerator_tool"] == peer]
    sides = [f"{side}_{key}" for side in ("numerator", "denominator") for key in ("tier", "device", "gpus", "threads")]
    groups = []
    for _, group in beside.groupby(["source", "machine", "item", *sides], sort=False):
        first = rows_of(group)[0]
        title = f"{side_of(first, 'denominator')}, over {side_of(first, 'numerator')}"
        rows = []
        for (case, parameters), own in group.groupby(["case", "parameters"], sort=False):
            cells = [Cell(case_title(str(case), str(parameters)))]
            for scope in ("index_open", "process"):
                cells += _peer_cells(own[own["scope"] == scope])
            rows.append(Row(cells))
        place = f"{machine_label(first['source'], first['machine'])}: {measurements.paper.printed(first['item'])}"
        groups.append(Group(f"{place}, {title}", rows))
    heads = [[Cell(""), Cell("index open", span=3), Cell("process", span=3)]]
    heads.append([Cell("Case"), *[Cell(name) for name in (peer, "warpseed", "speedup")] * 2])
    note = (
        f"{command} in the same run on the same {measurements.paper.queries_name}; a speedup stands only where "
        f'{same}; below "results differ" stands how many {peer} has, and how many we. "Repeats differ": the longest '
        f"repeat of either took more than {STEADY} times as long as its shortest, so that a speedup would be chance. "
        f"Index open: our stages with the index open against {peer}'s wall time less its loading. Process: both as "
        "whole processes."
    )
    return [Heading(f"Beside {peer}"), Text(note, soft=True), Table(heads, groups, 7)]


def _peer_cells(rows: pd.DataFrame) -> list[Cell]:
    if rows.empty:
        return [Cell("")] * 3
    row = rows_of(rows)[0]
    return [Cell(format_seconds(row["numerator_s"])), Cell(format_seconds(row["denominator_s"])), shown_speedup(row)]


def _peer_hits(measurements: Measurements, within: str) -> list[Block]:
    """How many hits each peer printed, how many of them are ours, and how many of ours are its; peak memory of both."""
    table = tables.hits_table(measurements)
    if table.empty:
        return []
    rows = [
        Row(
            [
                Cell(f"{row['tool']}, {how_many(row['threads'], 'thread')}"),
                Cell(f"{machine_label(row['source'], row['machine'])}: {row['case']}", css="text"),
                *(Cell(f"{row[name]:,}") for name in ("hits", "hits_of_theirs", "our_hits", "hits_of_ours")),
                *(Cell(_memory(row[name])) for name in ("peak_bytes", "our_peak_bytes")),
            ]
        )
        for row in rows_of(table)
    ]
    heads = [Cell("Tool"), Cell("on", css="text")]
    heads += map(Cell, ("hits", "of these\nours too", "ours", "of these\nits too", "its memory", "ours"))
    note = f"Hits are the same {within}. Memory: peak of the whole process."
    return [Heading("Hits beside other tools"), Text(note, soft=True), Table([heads], [Group("", rows)], len(heads))]


def _memory(size: float) -> str:
    """Bytes for readers, "" for what is not a number."""
    return "" if size != size else format_bytes(size)


SECTORS = (
    "Floor: the memory sectors a search must touch over the rate at which the GPU fetches random ones from a "
    "table of that size, measured in the same run (below). Share: floor over time. What came out above the time is no "
    "floor, and left out. Medians; "
    "the {unit} lie on the device, the hits stay there."
)


def limits(
    measurements: Measurements,
    note: str = SECTORS,
    name: Callable[[Mapping[str, Any]], str] = lambda row: str(row["case"]),
) -> list[Block]:
    """One row a case, the tiers side by side, and the rates that the floors are made of.

    Parameters
    ----------
    note : what the floor is; `{unit}` is what the system's queries are called
    name : of a row of `warpseed.report.tables.limits_table` what stands before it
    """
    table, unit = tables.limits_table(measurements), measurements.paper.queries_name
    if table.empty:
        return []
    tiers = [column.removesuffix("_time_s") for column in table.columns if column.endswith("_time_s")]
    parts = ("time_s", "throughput_per_s", "floor_s", "share")
    shown = {tier: [part for part in parts if table[f"{tier}_{part}"].notna().any()] for tier in tiers}
    names = {"time_s": "time", "throughput_per_s": f"{unit}/s", "floor_s": "floor", "share": "share"}
    heads = [
        [Cell(""), *(Cell(f"{tier} tier", span=len(shown[tier])) for tier in tiers)],
        [Cell("Case"), *(Cell(names[part]) for tier in tiers for part in shown[tier])],
    ]
    groups = []
    for (source, machine), own in table.groupby(["source", "machine"], sort=False):
        rows = [
            Row([Cell(name(row)), *(_limit_cell(part, row[f"{t}_{part}"]) for t in tiers for part in shown[t])])
            for row in rows_of(own)
        ]
        groups.append(Group(machine_label(str(source), str(machine)), rows))
    blocks: list[Block] = [Heading("GPU measurements beside their limits"), Text(note.format(unit=unit), soft=True)]
    return [*blocks, Table(heads, groups, len(heads[1])), *_rates(measurements)]


def _limit_cell(part: str, value: float) -> Cell:
    if value != value:
        return Cell("")
    if part == "throughput_per_s":
        return Cell(format_scaled(value))
    return Cell(_share(value) if part == "share" else format_seconds(value))


def _share(value: float) -> str:
    """Whole per cent; what would be none is less than one."""
    percent = round(100 * value)
    return f"{percent} %" if percent or not value else "< 1 %"


def _rates(measurements: Measurements) -> list[Block]:
    rows = [
        Row(
            texts(row["case"].removeprefix(RATE_CASE), machine_label(row["source"], row["machine"]))
            + [Cell(format_bytes(row["bytes"]) if row["bytes"] >= 0 else ""), Cell(f"{format_scaled(row['per_s'])}/s")]
        )
        for row in rows_of(tables.rates_table(measurements))
    ]
    heads = [*texts("Array", "on"), Cell("size"), Cell("random sectors")]
    return [Table([heads], [Group("", rows)], 4)] if rows else []


def published_rest(measurements: Measurements) -> list[Block]:
    """Printed values of items that we do not measure, as they stand in the paper."""
    rest = tables.published_rest(measurements)
    if rest.empty:
        return []
    rows = [
        Row(
            texts(row["printed"], case_title(row["case"], row["parameters"]), row["method"], row["metric"])
            + [Cell(f"{as_printed(row['digits'])} {row['unit']}", row["note"])]
        )
        for row in rows_of(rest)
    ]
    heads = [*texts("Printed in", "of", "method", "what"), Cell("value")]
    return [Heading("Other published values"), Table([heads], [Group("", rows)], 5)]


def statements(table: pd.DataFrame, stated_columns: Sequence[str], about: str, note: str) -> list[Block]:
    """What a paper's text says of its figures, and ours.

    Parameters
    ----------
    table : a row a statement: `printed`, `statement`, `published`, `unit`, `note`, and in a column a machine our value
    stated_columns : those that are no machine's
    about : the heading
    note : what is to be said of ours
    """
    places = [column for column in table.columns if column not in stated_columns]
    groups = []
    for printed, own in table.groupby("printed", sort=False):
        rows = [
            Row(
                [
                    Cell(row["statement"], row["note"]),
                    Cell(f"{as_printed(row['published'])} {row['unit']}"),
                    *(_stated(row[place], row["unit"]) for place in places),
                ]
            )
            for row in rows_of(own)
        ]
        groups.append(Group(str(printed), rows))
    heads = [Cell("", css="text"), Cell("published"), *(Cell(place) for place in places)]
    return [Heading(about), Text(note, soft=True), Table([heads], groups, len(heads))]


def _stated(value: float, unit: str) -> Cell:
    return Cell("" if value != value else f"{format_number(value)} {unit}")


def speedup_rows(summary: pd.DataFrame, measurements: Measurements) -> list[Group]:
    """Rows of the summary's table, a group a machine, item and scope."""
    words = {"index_open": measurements.paper.inside, "process": "whole processes"}
    groups = []
    machines = list(dict.fromkeys(summary["machine"]))
    ordered = summary.iloc[sorted(range(len(summary)), key=lambda i: machines.index(summary["machine"].iloc[i]))]
    for (source, machine, item, scope), group in ordered.groupby(["source", "machine", "item", "scope"], sort=False):
        printed = measurements.paper.printed(str(item))
        said = words.get(str(scope), str(scope))
        named = printed if printed.lower() == said else f"{printed}, {said}"
        rows = [
            Row(
                [
                    Cell(side_of(row, "denominator", measurements.paper)),
                    Cell(side_of(row, "numerator", measurements.paper), css="text"),
                    *_range_cells(row, measurements.paper.queries_name),
                ]
            )
            for row in rows_of(group)
        ]
        groups.append(Group(f"{machine_label(str(source), str(machine))}: {named}", rows))
    return groups


def _range_cells(row: Mapping[str, Any], unit: str) -> Sequence[Cell]:
    notes = [f"{row['differ']} left out"] if row["differ"] else []
    if row["least_queries"] < row["most_queries"]:
        notes.append(f"{format_ends((row['least_queries'], row['most_queries']))} {unit}")
    count = Cell(str(row["cases"]), "; ".join(notes))
    if not row["cases"]:
        return [Cell("results or repeats differ, or not checked", css="differ", span=3), count]
    return [*(Cell(format_number(row[key])) for key in ("median", "lowest", "highest")), count]

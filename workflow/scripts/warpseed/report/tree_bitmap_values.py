"""What the figures and tables of k-mers in a stream are made of: ratios of variants, events, bases a second.

A *variant* is what one figure compares with another: a kernel, an intermediate structure, or a version of the dynamic
system. It stands in a record's parameters, beside what both sides share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from warpseed.measure.records import split_parameters
from warpseed.report.measurements import Measurements, agreement, frame, headline, rows_of, times
from warpseed.report.words import format_ends, format_letters, machine_label

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "STATEMENT_COLUMNS",
    "VARIANTS",
    "counted_table",
    "describe",
    "events_table",
    "fixed_table",
    "longest_of_each_k",
    "of_longest",
    "on_one_device",
    "ratio_table",
    "statements_table",
    "streams_table",
    "variants_table",
]

VARIANTS = {"exact_kernels": "kernel", "edit_kernels": "kernel", "structures": "structure", "versions": "version"}
"""Which parameter tells the variants of an item from each other."""
_METHOD = ["source", "machine", "case", "tier", "device", "gpus", "threads"]
_FACTS = ["k", "length", "seed_length"]
_NUMBER = {"queries", "results", "digest"}


def _facts(parameters: str) -> dict[str, int]:
    known = split_parameters(parameters)
    return {name: int(known.get(name, 0)) for name in _FACTS}


def variants_table(measurements: Measurements, item: str) -> pd.DataFrame:
    """Seconds of each stage of each variant of an item.

    Returns
    -------
    pandas.DataFrame
        A row for each method, stream, `variant` and `stage`; `ns_per_base` is of the stream.
    """
    rows = []
    for row in rows_of(times(measurements, [item])):
        facts = _facts(row["parameters"])
        shared = {key: row[key] for key in ("system", "item", *_METHOD, "tool", "stage", *sorted(_NUMBER))}
        variant = split_parameters(row["parameters"]).get(VARIANTS[item], "")
        own = {"variant": variant, "seconds": row["median_s"], "ns_per_base": row["median_s"] / row["queries"] * 1e9}
        rows.append({**shared, **facts, **own})
    columns = ["system", "item", *_METHOD, "tool", *_FACTS, "variant", "stage", "seconds", "ns_per_base"]
    return frame(rows, [*columns, *sorted(_NUMBER)])


def ratio_table(measurements: Measurements, item: str, sides: tuple[str, str], stage: str) -> pd.DataFrame:
    """How many times the second of two variants is as fast as the first, where both had the same results.

    Returns
    -------
    pandas.DataFrame
        A row for each method and stream that both were timed with: `seconds` of the second, `other_seconds` of the
        first, `speedup`, which is NaN where results differ, and `status`.
    """
    table = variants_table(measurements, item)
    table = table[table["stage"] == stage]
    keys = [*_METHOD, *_FACTS]
    rows = []
    for key, group in table.groupby(keys, sort=False):
        by_variant = {row["variant"]: row for row in rows_of(group)}
        slow, fast = (by_variant.get(side) for side in sides)
        if slow is None or fast is None:
            continue
        status = agreement(slow, fast)
        speedup = math.nan if status else slow["seconds"] / fast["seconds"]
        facts = {"system": fast["system"], "item": item, **dict(zip(keys, key, strict=True)), "stage": stage}
        compared = {"variant": sides[1], "over": sides[0], "seconds": fast["seconds"], "other_seconds": slow["seconds"]}
        rows.append({**facts, **compared, "queries": fast["queries"], "speedup": speedup, "status": status or "ok"})
    columns = ["system", "item", *keys, "stage", "variant", "over", "seconds", "other_seconds", "queries"]
    return frame(rows, [*columns, "speedup", "status"])


def counted_table(measurements: Measurements, sides: tuple[str, str], metric: str) -> pd.DataFrame:
    """How much less of something the second of two Levenshtein kernels has, in per cent: its `accesses` of memory, or
    its `occupancy`.

    Returns
    -------
    pandas.DataFrame
        A row for each method and stream: `value` of the second, `other_value` of the first, `less_percent`.
    """
    records = measurements.records
    own = records[(records["item"] == "edit_kernels") & (records["metric"] == metric)]
    keys = [*_METHOD, *_FACTS]
    table = frame(
        [
            {**row, **_facts(row["parameters"]), "variant": split_parameters(row["parameters"])["kernel"]}
            for row in rows_of(own)
        ],
        [*own.columns, *_FACTS, "variant"],
    )
    rows = []
    for key, group in table.groupby(keys, sort=False):
        values = group.groupby("variant")["value"].median()
        if sides[0] not in values or sides[1] not in values:
            continue
        facts = {"system": measurements.paper.system, **dict(zip(keys, key, strict=True)), "metric": metric}
        before, after = float(values[sides[0]]), float(values[sides[1]])
        compared = {"variant": sides[1], "over": sides[0], "value": after, "other_value": before}
        rows.append(
            {**facts, **compared, "queries": group["queries"].max(), "less_percent": 100 * (1 - after / before)}
        )
    return frame(
        rows, ["system", *keys, "metric", "variant", "over", "value", "other_value", "queries", "less_percent"]
    )


def events_table(measurements: Measurements) -> pd.DataFrame:
    """When each event of a version's last run began and ended, in seconds since the run began.

    Returns
    -------
    pandas.DataFrame
        A row an event: `version`, `stream` (of the GPU's execution), `event` (its number), `name`, `begin`, `end`.
    """
    records = measurements.records
    own = records[records["item"] == "events"]
    rows: list[dict[str, Any]] = []
    keys = ["system", *_METHOD, "parameters", "stage"]
    for key, group in own.groupby(keys, sort=False):
        values = group.set_index("metric")["value"]
        shared: dict[str, Any] = dict(zip(keys, key, strict=True))
        known = split_parameters(shared.pop("parameters"))
        facts: dict[str, Any] = {
            name: int(known[name]) for name in ("k", "length", "chunk_length", "stream", "event") if name in known
        }
        own_time = {"name": shared.pop("stage"), "begin": values["begin"], "end": values["end"]}
        rows.append({**shared, "version": known["version"], **facts, **own_time})
    columns = ["system", *_METHOD, "version", "k", "length", "chunk_length", "stream", "event", "name", "begin", "end"]
    return frame(rows, columns)


def streams_table(measurements: Measurements) -> pd.DataFrame:
    """Bases a second against the length of the stream: end to end, on the device, and what its memory allows.

    Returns
    -------
    pandas.DataFrame
        A row for each method, k and `length`; `bases` are those of a genome, or random, `scope` is end_to_end,
        on_device or floor.
    """
    columns = ["system", *_METHOD, "tool", "k", "length", "bases", "queries", "scope", "seconds"]
    rows = []
    for row in rows_of(headline(times(measurements, ["in_memory"]))):
        rows.append({**row, **_facts(row["parameters"]), "scope": "end_to_end", "seconds": row["median_s"]})
    records = measurements.records
    limits = records[(records["item"] == "limits") & records["metric"].isin(["time", "floor"])]
    for (_, metric, _), group in limits.groupby(["source", "metric", "parameters"], sort=False):
        row = rows_of(group)[0]
        scope = "on_device" if metric == "time" else "floor"
        rows.append({**row, **_facts(row["parameters"]), "scope": scope, "seconds": group["value"].median()})
    for row in rows:
        row["bases"] = split_parameters(row["parameters"]).get("bases", "random")
    table = frame(rows, columns)
    table["bases_per_s"] = table["length"] / table["seconds"].astype("float64")
    return table


def fixed_table(measurements: Measurements) -> pd.DataFrame:
    """What a dictionary that does not grow takes to build, and the stream to search, in the fast tier and by libraries.

    Returns
    -------
    pandas.DataFrame
        A row for each method and stream: medians of the stages, `build_s`, `search_s` and `total_s`, NaN where a stage
        was not recorded; and how many times the fast tier on one CPU thread is as fast, `build_speedup` and
        `search_speedup`, where both found the same places.
    """
    columns = [
        "system",
        *_METHOD,
        "tool",
        "k",
        "length",
        "kmers",
        "queries",
        "results",
        "build_s",
        "search_s",
        "total_s",
    ]
    rows: list[dict[str, Any]] = []
    table = times(measurements, ["fixed"])
    for (_, _, _, parameters), group in table.groupby(["source", "machine", "case", "parameters"], sort=False):
        known = split_parameters(str(parameters))
        own = []
        for _, sides in group.groupby(["tool", "tier", "device", "gpus", "threads"], sort=False):
            seconds = sides.set_index("stage")["median_s"]
            row = {**rows_of(sides)[0], "kmers": int(known["kmers"]), **_facts(str(parameters))}
            stages = ("build", "search", "total")
            own.append(row | {f"{stage}_s": float(seconds.get(stage, math.nan)) for stage in stages})
        ours = next((row for row in own if (row["tier"], row["device"], row["threads"]) == ("fast", "cpu", 1)), None)
        for row in own:
            same = ours is not None and row is not ours and not agreement(row, ours)
            over = {part: row[f"{part}_s"] / ours[f"{part}_s"] if ours and same else math.nan for part in _PARTS}
            rows.append({**row, **{f"{part}_speedup": value for part, value in over.items()}})
    return frame(rows, [*columns, *(f"{part}_speedup" for part in _PARTS)])


_PARTS = ("build", "search")


def describe(table: pd.DataFrame) -> str:
    """Machines, devices and the lengths of the streams of a table, for a subtitle: a line a machine."""
    texts = []
    for (source, machine), group in table.groupby(["source", "machine"], sort=False):
        devices: dict[str, list[str]] = {}
        for device, own in group.groupby("device", sort=False):
            devices.setdefault(_lengths(own), []).append(str(device).upper())
        streams = ", and of ".join(f"{lengths}, {' and '.join(names)}" for lengths, names in devices.items())
        texts.append(f"{machine_label(str(source), str(machine))}: streams of {streams}")
    return "\n".join(texts)


def _lengths(table: pd.DataFrame) -> str:
    """The lengths of a table's streams, such as "1 kbases to 2 Mbases, seed 100 kbases", where they have one."""
    seeds = [seed for seed in table["seed_length"] if seed] if "seed_length" in table else []
    seed = f", seed {format_ends(seeds, format_letters)}" if seeds else ""
    return format_ends(table["length"], format_letters) + seed


# What is published

STATEMENT_COLUMNS = ["system", "printed", "statement", "published", "unit", "note"]


def statements_table(measurements: Measurements) -> pd.DataFrame:
    """What the thesis's text says of Figures 36 to 41, and in a column a machine ours.

    Returns
    -------
    pandas.DataFrame
        A row a statement. Of a machine with a GPU it is what that did, of another one what the kernels' twins on the
        CPU did; NaN where nothing was measured.
    """
    ours = _stated(measurements)
    places = list(dict.fromkeys((source, machine) for values in ours.values() for source, machine in values))
    rows = []
    for row in rows_of(measurements.published):
        k = split_parameters(row["parameters"]).get("k", "")
        at = f", k = {k}" if row["metric"] in _AT_K else ""
        statement = f"{row['metric']}{at}"
        shared = {"system": row["system"], "printed": row["printed"], "statement": statement}
        shared |= {"published": row["digits"], "unit": row["unit"], "note": row["note"]}
        own = {
            ("here" if source == "here" else machine): ours.get(statement, {}).get((source, machine), math.nan)
            for source, machine in places
        }
        rows.append({**shared, **own})
    names = ["here" if source == "here" else machine for source, machine in places]
    return frame(rows, [*STATEMENT_COLUMNS, *names])


_AT_K = ("fewer memory accesses",)
_Values = dict[tuple[str, str], float]


def _stated(measurements: Measurements) -> dict[str, _Values]:
    """Our value of every statement, by source and machine."""
    found: dict[str, _Values] = {}

    def put(statement: str, table: pd.DataFrame, column: str, how: str) -> None:
        for (source, machine), own in on_one_device(table).groupby(["source", "machine"], sort=False):
            value = float(getattr(own[column], how)())
            if not math.isnan(value):
                found.setdefault(statement, {})[str(source), str(machine)] = value

    put("most speedup of shuffle over naive",
        ratio_table(measurements, "exact_kernels", ("naive", "shuffle"), "kernel"), "speedup", "max")  # fmt: skip
    accesses = counted_table(measurements, ("naive", "efficient"), "accesses")
    for k in dict.fromkeys(accesses["k"]):
        put(f"fewer memory accesses, k = {k}", accesses[accesses["k"] == k], "less_percent", "median")
    occupancy = counted_table(measurements, ("efficient", "queue"), "occupancy")
    built = ratio_table(measurements, "structures", ("tree", "hybrid"), "insert")
    for least, how in (("least", "min"), ("most", "max")):
        put(f"{least} occupancy lost with queues", occupancy, "less_percent", how)
        put(f"{least} speedup of construction", built, "speedup", how)
    versions = of_longest(variants_table(measurements, "versions"))
    totals = versions[versions["stage"] == "total"]
    for name, words in (("serial", "serial"), ("one_trie", "the CPU alone"), ("concurrent", "concurrent")):
        put(f"total of {words}", totals[totals["variant"] == name], "seconds", "median")
    gaps = _gaps(of_longest(events_table(measurements)))
    put("time between kernels, first", gaps, "first_ms", "median")
    put("time between kernels, last", gaps, "last_ms", "median")
    return found


def of_longest(table: pd.DataFrame) -> pd.DataFrame:
    """Of each machine the rows of its longest stream."""
    return table[table["length"] == table.groupby(["source", "machine"])["length"].transform("max")]


def longest_of_each_k(table: pd.DataFrame, printed: int = 0) -> pd.DataFrame:
    """Of each machine, device, variant and k the row of the stream of `printed` bases, or else of the longest one, by
    k: what is drawn against k."""
    known = ["source", "machine", "device", "variant", "k"]
    ranked = table.assign(is_printed=table["length"] == printed)
    ranked = ranked.sort_values(["k", "is_printed", "length"], kind="stable").drop_duplicates(known, keep="last")
    return ranked.drop(columns="is_printed")


def on_one_device(table: pd.DataFrame) -> pd.DataFrame:
    """Of each machine with a GPU what one did, of another what the CPU did."""
    with_gpu = set(table.loc[table["device"] == "gpu", "machine"])
    return table[(table["device"] == "gpu") | ~table["machine"].isin(with_gpu)]


def _gaps(events: pd.DataFrame) -> pd.DataFrame:
    """Milliseconds from one kernel of the serial version to the next, the first and the last of them."""
    kernels = events[(events["version"] == "serial") & (events["name"] == "kernel")]
    rows = []
    for key, own in kernels.groupby(_METHOD, sort=False):
        ordered = own.sort_values("begin")
        between = (ordered["begin"].to_numpy()[1:] - ordered["end"].to_numpy()[:-1]) * 1e3
        if len(between):
            row: Mapping[str, Any] = dict(zip(_METHOD, key, strict=True))
            rows.append({**row, "first_ms": between[0], "last_ms": between[-1]})
    return frame(rows, [*_METHOD, "first_ms", "last_ms"])

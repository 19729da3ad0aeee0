"""What the figures and tables of maximal exact matches are made of: stages a base, matches a base, the paper's index.

The paper's find intervals is our stage `intervals`, its locate `split` and `locate`, its cudamemcpy both copies. Times
are shown a base of the reads, as reads are of any length: the paper's are 25,249 of 7,000 bases, about.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from warpseed.errors import how_many
from warpseed.measure.records import split_parameters
from warpseed.report.measurements import Measurements, frame, joined, rows_of, times
from warpseed.report.words import format_bases, machine_label

if TYPE_CHECKING:
    import pandas as pd

    from warpseed.report.building import Genome

__all__ = [
    "PAPERS_SETTINGS",
    "PARTS",
    "SIZES",
    "STATEMENT_COLUMNS",
    "describe",
    "gpu_over_cpu",
    "kinds_table",
    "largest_of_each",
    "memory_table",
    "on_gpu",
    "on_one_machine",
    "one_case",
    "published_times",
    "setting_words",
    "settings_table",
    "side_by_side",
    "stages_table",
    "statements_table",
]

PARTS = ("find intervals", "locate", "filter", "copies", "other")
"""Parts of the search as the paper's figures have them, and what they leave out."""
_PART_OF = {
    "intervals": "find intervals",
    "filter": "filter",
    "split": "locate",
    "locate": "locate",
    "host_to_device": "copies",
    "device_to_host": "copies",
}
_BASES_A_READ = 7000
_METHOD = ["source", "machine", "case", "tier", "device", "gpus", "threads"]
_STAGE_COLUMNS = ["system", *_METHOD, "tool", "min_length", "part", "seconds", "queries", "bases", "ns_per_base"]
_STAGE_COLUMNS += ["results", "digest"]


def _min_length(parameters: str) -> int:
    return int(split_parameters(parameters)["min_length"])


def _bases(measurements: Measurements) -> dict[tuple[str, str, str], float]:
    """Bases of the reads of each data set: by source, machine and case."""
    records = measurements.records
    own = records[(records["item"] == "reads") & (records["metric"] == "count")]
    return {(row["source"], row["machine"], row["case"]): row["value"] for row in rows_of(own)}


def stages_table(measurements: Measurements) -> pd.DataFrame:
    """Seconds of each part of the search, and nanoseconds a base of the reads.

    Returns
    -------
    pandas.DataFrame
        A row for each case, method, `min_length` and `part`: those of PARTS in the paper tier, `total` in both.
    """
    bases = _bases(measurements)
    rows: list[dict[str, Any]] = []
    for (*_, parameters), group in times(measurements, ["stages"]).groupby([*_METHOD, "parameters"], sort=False):
        seconds = group.set_index("stage")["median_s"]
        first = rows_of(group)[0]
        found: dict[str, float] = {}
        if first["tier"] == "paper":
            for stage, part in _PART_OF.items():
                found[part] = found.get(part, 0.0) + float(seconds.get(stage, 0.0))
            found["other"] = max(0.0, float(seconds["total"]) - sum(found.values()))
        found["total"] = float(seconds["total"])
        size = bases.get((first["source"], first["machine"], first["case"]), math.nan)
        shared = {column: first[column] for column in _STAGE_COLUMNS if column in first}
        shared |= {"min_length": _min_length(str(parameters)), "bases": size}
        rows += [
            {**shared, "part": part, "seconds": value, "ns_per_base": value / size * 1e9}
            for part, value in found.items()
            if value > 0
        ]
    return frame(rows, _STAGE_COLUMNS)


def one_case(table: pd.DataFrame) -> pd.DataFrame:
    """What was measured here, or else on the first reference machine, of the data set with most reads."""
    own = on_one_machine(table)
    return own[own["case"] == _largest(own)]


def _first_machine(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["machine"] == next(iter(table["machine"]), "")]


def _largest(table: pd.DataFrame) -> str:
    ranked = table.sort_values("queries", kind="stable")
    return str(ranked["case"].iloc[-1]) if len(ranked) else ""


def on_gpu(table: pd.DataFrame) -> pd.DataFrame:
    """What one GPU did: here, or else on the first reference machine with one."""
    return one_case(table[(table["device"] == "gpu") & (table["gpus"] == 1)])


def side_by_side(table: pd.DataFrame) -> pd.DataFrame:
    """What was measured here; where no GPU is here, with the first reference machine's GPU beside. Where nothing was,
    the first reference machine with a GPU, or without."""
    here, reference = (table[table["source"] == source] for source in ("here", "reference"))
    with_gpu = reference[reference["machine"].isin(reference.loc[reference["device"] == "gpu", "machine"])]
    reference = _first_machine(with_gpu if len(with_gpu) else reference)
    if here.empty:
        return reference
    if (here["device"] == "gpu").any():
        return here
    return joined([here, reference[reference["device"] == "gpu"]])


def largest_of_each(table: pd.DataFrame) -> pd.DataFrame:
    """Of every method the data set with most reads that it was timed with: a few are timed on one CPU thread, too."""
    methods = table.groupby([column for column in _METHOD if column != "case"], sort=False)
    return joined([table.iloc[:0], *(own[own["case"] == _largest(own)] for _, own in methods)])


def gpu_over_cpu(table: pd.DataFrame) -> pd.DataFrame:
    """How many times the paper tier is as fast on one GPU as on most CPU threads, part by part, where both found the
    same; of each machine for the data set with most reads.

    Returns
    -------
    pandas.DataFrame
        source, machine, case, part, min_length, queries, threads, speedup
    """
    keys = ["source", "machine", "case", "part", "min_length"]
    own = table[table["tier"] == "paper"]
    rows = []
    for key, group in own.groupby(keys, sort=False):
        gpu = rows_of(group[(group["device"] == "gpu") & (group["gpus"] == 1)])
        cpu = sorted(rows_of(group[group["device"] == "cpu"]), key=lambda row: row["threads"])
        if gpu and cpu and gpu[0]["digest"] == cpu[-1]["digest"]:
            facts = {"queries": cpu[-1]["queries"], "threads": cpu[-1]["threads"]}
            speedup = cpu[-1]["seconds"] / gpu[0]["seconds"]
            rows.append({**dict(zip(keys, key, strict=True)), **facts, "speedup": speedup})
    found = frame(rows, [*keys, "queries", "threads", "speedup"])
    machines = found.groupby(["source", "machine"], sort=False)
    return joined([found.iloc[:0], *(own[own["case"] == _largest(own)] for _, own in machines)])


def on_one_machine(table: pd.DataFrame) -> pd.DataFrame:
    """What was measured here, or else on the first reference machine."""
    own = table[table["source"] == "here"]
    return own if len(own) else _first_machine(table)


def describe(table: pd.DataFrame, searched: Mapping[tuple[str, str], Genome]) -> str:
    """Machines, data sets and sizes of a table, on which devices, and of what genome, for a subtitle: a line a data
    set."""
    texts = []
    for (source, machine, case), own in table.groupby(["source", "machine", "case"], sort=False):
        first = rows_of(own)[0]
        bases = "" if math.isnan(first["bases"]) else f" ({format_bases(first['bases'])})"
        devices = " and ".join(dict.fromkeys(own["device"].str.upper())) if "device" in own else ""
        where = f" on {devices}" if devices else ""
        genome = searched.get((str(source), str(machine)))
        texts.append(
            f"{machine_label(str(source), str(machine))}: {case}, {how_many(first['queries'], 'read')}{bases}{where}"
            + (f", genome {format_bases(genome.bases)}" if genome else "")
        )
    return "\n".join(texts)


def kinds_table(measurements: Measurements) -> pd.DataFrame:
    """How many matches of each kind the reads have, with at least so many bases."""
    records, bases = measurements.records, _bases(measurements)
    counts = records[(records["item"] == "kinds") & (records["unit"] == "matches")]
    rows = []
    for row in rows_of(counts):
        facts = split_parameters(row["parameters"])
        size = bases.get((row["source"], row["machine"], row["case"]), math.nan)
        shared = {key: row[key] for key in ("system", "source", "machine", "case", "queries")}
        shared |= {"min_length": int(facts["min_length"]), "kind": facts["kind"], "strands": int(facts["strands"])}
        rows.append({**shared, "matches": row["value"], "bases": size, "per_1000_bases": row["value"] / size * 1000})
    columns = ["system", "source", "machine", "case", "queries", "min_length", "kind", "strands", "matches", "bases"]
    return frame(rows, [*columns, "per_1000_bases"])


# What is published


def published_times(measurements: Measurements) -> dict[str, dict[int, float]]:
    """Nanoseconds a base that the paper prints of its GPU: part to least length to time."""
    bases = measurements.paper.queries * _BASES_A_READ
    found: dict[str, dict[int, float]] = {"find intervals": {}, "locate": {}}
    for row in rows_of(measurements.published[measurements.published["printed"] == "Figure 3"]):
        length = split_parameters(row["parameters"]).get("min length")
        if length is not None and row["metric"] == "find intervals":
            found["find intervals"][int(length)] = row["value"] / bases * 1e9
    for row in rows_of(measurements.published[measurements.published["metric"] == "locate over find intervals"]):
        at = int(split_parameters(row["parameters"])["min length"])
        found["locate"][at] = row["value"] * found["find intervals"][at]
    return {part: dict(sorted(values.items())) for part, values in found.items()}


STATEMENT_COLUMNS = ["system", "printed", "statement", "published", "unit", "note"]


def statements_table(measurements: Measurements) -> pd.DataFrame:
    """What the paper's text says of Figures 3 to 5 and of two stages, and in a column a machine ours.

    Returns
    -------
    pandas.DataFrame
        A row a statement; seconds are those that all bases of the paper's reads would take.
    """
    stages = stages_table(measurements)
    places = {("here" if source == "here" else str(machine)): own
              for (source, machine), own in stages.groupby(["source", "machine"], sort=False)}  # fmt: skip
    rows = []
    shares = _most_shares(measurements)
    bases = measurements.paper.queries * _BASES_A_READ
    published = measurements.published
    for row in rows_of(published[published["item"] == "stages"]):
        length = split_parameters(row["parameters"]).get("min length")
        at = "" if length is None else f", {length} bases or more"
        shared = {"system": row["system"], "printed": row["printed"], "statement": f"{row['metric']}{at}"}
        shared |= {"published": row["digits"], "unit": row["unit"], "note": row["note"]}
        if row["metric"] in _STAGE_OF_SHARE:
            ours = {place: shares.get(place, {}).get(row["metric"], math.nan) for place in places}
        else:
            ours = {place: _stated(own, row["metric"], length, bases) for place, own in places.items()}
        rows.append({**shared, **ours})
    return frame(rows, [*STATEMENT_COLUMNS, *places])


_STAGE_OF_SHARE = {"share of pre-processing": "pack", "share of splitting": "split"}
"""Stages that the paper's figures have no part for, and its text says less than 1 % of."""


def _most_shares(measurements: Measurements) -> dict[str, dict[str, float]]:
    """The most that each of these stages takes of all on one GPU, in per cent, by the column of its machine: over the
    least lengths, of the data set with most reads."""
    table = times(measurements, ["stages"])
    own = table[(table["tier"] == "paper") & (table["device"] == "gpu") & (table["gpus"] == 1)]
    found: dict[str, dict[str, float]] = {}
    for (source, machine), group in own.groupby(["source", "machine"], sort=False):
        group = group[group["case"] == _largest(group)]
        seconds = group.pivot_table(index="parameters", columns="stage", values="median_s")
        shares = {
            share: float((seconds[stage] / seconds["total"]).max() * 100)
            for share, stage in _STAGE_OF_SHARE.items()
            if stage in seconds
        }
        found["here" if source == "here" else str(machine)] = shares
    return found


def _stated(own: pd.DataFrame, metric: str, length: str | None, bases: int) -> float:
    """What a machine has of a statement; NaN where it was not measured."""
    gpu = on_gpu(own)
    gpu = gpu[gpu["tier"] == "paper"]
    if metric == "share of filter":
        shares = gpu[gpu["part"] == "filter"].set_index("min_length")["seconds"]
        totals = gpu[gpu["part"] == "total"].set_index("min_length")["seconds"]
        return float((shares / totals).max() * 100) if len(shares) else math.nan
    if metric == "find intervals" or metric.startswith("locate over"):
        at = gpu[gpu["min_length"] == int(length or 0)].set_index("part")["ns_per_base"]
        if "find intervals" not in at:
            return math.nan
        if metric == "find intervals":
            return float(at["find intervals"]) * bases / 1e9
        return float(at.get("locate", math.nan) / at["find intervals"])
    over = gpu_over_cpu(own)
    part = metric.partition(" of ")[2] or "total"
    values = over.loc[over["part"] == part, "speedup"]
    if values.empty:
        return math.nan
    return float(values.min() if metric.startswith("least") else values.max())


SIZES = ("published_bytes_per_base", "formula_bytes_per_base", "bytes_per_base")
_PUBLISHED_PARTS = {
    "BWT in bins of 64": "BWT array, bin 64",
    "C": "count array",
    "SP, every 7": "suffix positions, ratio 7",
    "intervals of 13 bases": "pre-calculated intervals, length 13",
}
"""What our parts of the paper's index, with its parameters, are called in what is published."""
_HG19 = 3_101_804_739
_UNITS = {"GB": 1e9, "MB": 1e6, "bytes": 1.0}


def memory_table(measurements: Measurements) -> pd.DataFrame:
    """Bytes of each part of the paper's index, beside what it prints, by formula, and what ours has.

    Returns
    -------
    pandas.DataFrame
        A row a machine and part, and where none was measured one a published part, with source "published".
    """
    records, published = measurements.records, measurements.published
    printed = published[published["item"] == "parts"]
    sizes = {row["case"]: row["value"] * _UNITS[row["unit"]] for row in rows_of(printed)}
    columns = ["system", "source", "machine", "part", "published_bytes", "bytes", "formula_bytes", "bases", *SIZES]
    rows = []
    own = records[records["item"] == "parts"]
    for (source, machine), group in own.groupby(["source", "machine"], sort=False):
        bases = group.loc[group["metric"] == "count", "value"].max()
        for parameters, part in group[group["metric"] != "count"].groupby("parameters", sort=False):
            name = split_parameters(str(parameters))["part"]
            values = part.drop_duplicates("metric").set_index("metric")["value"]
            row = {"source": source, "machine": machine, "part": name, "bases": bases}
            row |= {"bytes": values["size"], "formula_bytes": values["formula"]}
            rows.append(row | {"published_bytes": sizes.get(_PUBLISHED_PARTS.get(name, ""), math.nan)})
    if not rows:
        rows = [{"source": "published", "machine": "", "part": part, "published_bytes": size}
                for part, size in sizes.items()]  # fmt: skip
    return frame([_with_a_base({"system": measurements.paper.system, **row}) for row in rows], columns)


def _with_a_base(row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("published_bytes", "bytes", "formula_bytes", "bases")
    size = {name: float(row.get(name, math.nan)) for name in names}
    own = (size["published_bytes"] / _HG19, size["formula_bytes"] / size["bases"], size["bytes"] / size["bases"])
    return {**row, **size, **dict(zip(SIZES, own, strict=True))}


_SETTINGS = {
    "bin_size": "bin of {} rows",
    "sa_ratio": "suffix positions every {}",
    "pre_calc_length": "PRE_CALC_LEN {}",
}
PAPERS_SETTINGS = {"bin_size": 64, "sa_ratio": 7, "pre_calc_length": 13}
"""The paper's parameters of its index."""


def setting_words(settings: Mapping[str, Any]) -> str:
    """All parameters of the paper's index in words."""
    return ", ".join(words.format(settings[name]) for name, words in _SETTINGS.items())


def settings_table(measurements: Measurements) -> pd.DataFrame:
    """What each parameter of the paper's index does: its bytes, and seconds of two stages and of all.

    Returns
    -------
    pandas.DataFrame
        A row a case, device and set of parameters; `changed` says which of them is not the paper's, "" for none.
    """
    records = measurements.records
    sizes = records[(records["item"] == "settings") & (records["metric"] == "size")]
    keys, index_keys = [*_METHOD, "parameters"], ["source", "machine", "case", "parameters"]
    bytes_of = {tuple(row[key] for key in index_keys): row["value"] for row in rows_of(sizes)}
    rows = []
    for (*_, parameters), group in times(measurements, ["settings"]).groupby(keys, sort=False):
        facts = split_parameters(str(parameters))
        seconds = group.set_index("stage")["median_s"]
        first = rows_of(group)[0]
        row = {key: first[key] for key in ("system", *_METHOD, "tool", "queries")}
        row |= {name: int(facts[name]) for name in (*_SETTINGS, "min_length")}
        row["bytes"] = bytes_of.get(tuple(first[key] for key in index_keys), math.nan)
        row["total_s"] = seconds["total"]
        row["intervals_s"] = seconds.get("intervals", math.nan)
        row["locate_s"] = seconds.get("split", 0.0) + seconds.get("locate", math.nan)
        rows.append(row)
    columns = ["system", *_METHOD, "tool", "queries", *_SETTINGS, "min_length", "changed", "bytes", "intervals_s"]
    table = frame(rows, [*columns, "locate_s", "total_s"])
    first_of = table.groupby([*_METHOD, "min_length"])[list(_SETTINGS)].transform("first")
    table["changed"] = [
        ", ".join(words.format(row[name]) for name, words in _SETTINGS.items() if row[name] != base[name])
        for row, base in zip(rows_of(table), rows_of(first_of), strict=True)
    ]
    return table

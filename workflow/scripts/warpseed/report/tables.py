"""Records into tables: times, speedups, and the published values beside them.

Three kinds of numbers meet here and are never mixed up: what the paper printed (`published`), what this run
measured (`here`), and what a reference machine measured earlier (`reference`, labelled with the machine's
name). A speedup is the numerator's time over the denominator's, both on one machine, in one item and case,
for the same number of k-mers; it has a value only where both sides returned the same results (DESIGN,
"Measuring").
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from warpseed.errors import InputError
from warpseed.measure.records import read_records
from warpseed.sequences.files import atomic_path

__all__ = [
    "DATA_SETS",
    "NOT_CHECKED",
    "PUBLISHED_KMERS",
    "RESULTS_DIFFER",
    "DataSet",
    "Measurements",
    "Method",
    "case_fields",
    "describe_sizes",
    "format_bases",
    "format_number",
    "format_seconds",
    "gpu_limits_table",
    "headline",
    "index_table",
    "load_measurements",
    "machine_label",
    "long_table",
    "peer_table",
    "published_value",
    "rows_of",
    "scaling_table",
    "speedup_cell",
    "speedup_table",
    "stage_table",
    "summary_table",
    "throughput_table",
    "times",
    "wide_table",
    "write_table",
    "write_tables",
]

RESULTS_DIFFER = "results differ"
NOT_CHECKED = "results not checked"
PUBLISHED_KMERS = 1_000_000
"""k-mers in each published data set (paper 000, section IV.A)."""
PUBLISHED_CORES = 4

_PUBLISHED_COLUMNS = ("paper", "item", "case", "method", "metric", "value", "unit", "note")
_KEYS = ["source", "machine", "item", "case", "tool", "tier", "device", "threads"]
_TIME_COLUMNS = [*_KEYS, "stage", "median_s", "min_s", "max_s", "repeats", "queries", "results", "digest"]
# The stage a table shows is the widest one that a measurement has.
_HEADLINE_STAGES = ("total", "search", "kernel")


class DataSet(NamedTuple):
    """One of paper 000's data sets: name, k and the mismatches allowed."""

    name: str
    k: int
    mismatches: int

    @property
    def case(self) -> str:
        """The `case` of its records."""
        return f"{self.name}; mismatches={self.mismatches}"


DATA_SETS = (
    DataSet("S11", 11, 0),
    DataSet("S15", 15, 0),
    DataSet("S20", 20, 1),
    DataSet("S24", 24, 1),
    DataSet("S30", 30, 2),
)


class Method(NamedTuple):
    """What was timed: a tool's tier on a device with so many CPU threads (0 for every GPU run)."""

    tool: str
    tier: str
    device: str
    threads: int

    @property
    def label(self) -> str:
        """A name for readers, such as "fast tier, CPU, 2 threads"."""
        what = f"{self.tier} tier" if self.tool == "warpseed" else self.tool
        if self.device == "gpu":
            return f"{what}, GPU"
        return f"{what}, CPU, {self.threads} thread{'s' if self.threads > 1 else ''}"


@dataclass(frozen=True)
class Measurements:
    """Everything a report is made from.

    Attributes
    ----------
    records : pandas.DataFrame
        Local and reference records: `RECORD_COLUMNS` and `source` ("here" or "reference"). The machine of a
        reference record is the name of the folder it lies in.
    published : pandas.DataFrame
        The published values: paper, item, case, method, metric, value (float64), unit, note.
    """

    records: pd.DataFrame
    published: pd.DataFrame

    def machines(self, source: str) -> list[str]:
        """Names of the machines that have records from `source`, in the order of the files."""
        records = self.records
        return list(dict.fromkeys(records.loc[records["source"] == source, "machine"]))


def load_measurements(
    local: Iterable[str | Path], reference: Iterable[str | Path], published: str | Path
) -> Measurements:
    """Read records and published values.

    Parameters
    ----------
    local, reference : iterable of paths
        Record TSVs of this run, and of reference machines (`resources/measurements/<machine>/*.tsv`).
    published : path
        The TSV of published values of one paper.

    Returns
    -------
    Measurements

    Raises
    ------
    InputError
        If a file is no record table or no table of published values.
    """
    frames = [read_records(path).assign(source="here") for path in local]
    for path in reference:
        frames.append(read_records(path).assign(source="reference", machine=Path(path).resolve().parent.name))
    filled = [frame for frame in frames if len(frame)]
    records = pd.concat(filled, ignore_index=True) if filled else read_records([]).assign(source="")
    return Measurements(_printed_names(records), _read_published(Path(published)))


_PRINTED_ITEMS = {"whole": "Table I", "search": "Table II", "locate_on_cpu": "Figure 5", "throughput": "Throughput"}
_PRINTED_ITEMS |= {"scaling": "Scaling", "limits": "GPU limits", "index": "Index"}


def _printed_names(records: pd.DataFrame) -> pd.DataFrame:
    """Items by the names that the paper prints, and the mismatches in the case, by which this module looks up."""
    mismatches = records["parameters"].str.extract(r"(; mismatches=\d+)", expand=False).fillna("")
    searched = records["item"].isin(["whole", "search", "locate_on_cpu", "throughput", "scaling"])
    case = records["case"].where(~searched, records["case"] + mismatches)
    return records.assign(case=case, item=records["item"].replace(_PRINTED_ITEMS))


def _read_published(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_csv(path, sep="\t", keep_default_na=False, dtype={"note": str})
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no readable table of published values ({error})") from error
    if tuple(frame.columns) != _PUBLISHED_COLUMNS:
        raise InputError(
            f"{path} has the columns {', '.join(map(str, frame.columns))}, but published values have "
            f"{', '.join(_PUBLISHED_COLUMNS)}; restore the file from the repository"
        )
    return frame


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A table's rows as dicts by column name."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def case_fields(case: str) -> dict[str, str]:
    """Split a record's case, "S20; mismatches=1", into {"name": "S20", "mismatches": "1"}."""
    fields: dict[str, str] = {}
    for piece in case.split(";"):
        key, equals, value = piece.strip().partition("=")
        if equals:
            fields[key] = value
        else:
            fields["name"] = key
    return fields


def times(measurements: Measurements, items: Iterable[str] | None = None) -> pd.DataFrame:
    """Medians over the repeats of each measurement, with the spread.

    Parameters
    ----------
    measurements : Measurements
    items : iterable of str, optional
        Only these items; all by default.

    Returns
    -------
    pandas.DataFrame
        One row for each source, machine, item, case, tool, tier, device, threads and stage: `median_s`,
        `min_s`, `max_s` (seconds), `repeats`, `queries`, `results`, `digest`. A measurement whose repeats
        gave unlike digests has the digest "unstable": no speedup is ever printed from it.
    """
    records = measurements.records
    chosen = records[records["metric"] == "time"]
    if items is not None:
        chosen = chosen[chosen["item"].isin(list(items))]
    if chosen.empty:
        return pd.DataFrame(columns=_TIME_COLUMNS)
    # A run on other sizes is another measurement; the largest one stands in the table.
    largest = chosen.groupby(_KEYS)["queries"].transform("max")
    chosen = chosen[chosen["queries"] == largest]
    grouped = chosen.groupby([*_KEYS, "stage"], sort=False)
    table = grouped["value"].agg(median_s="median", min_s="min", max_s="max", repeats="size").reset_index()
    # Digest and results belong to a whole run, so they are judged over all its stages.
    runs = chosen.groupby(_KEYS, sort=False)
    facts = runs.agg(queries=("queries", "first"), results=("results", "max"), digest=("digest", _one_digest))
    return table.merge(facts.reset_index(), on=_KEYS)[_TIME_COLUMNS]


def _one_digest(digests: pd.Series) -> str:
    known = sorted(set(digests) - {""})
    if len(known) > 1:
        return "unstable"
    return known[0] if known else ""


def headline(table: pd.DataFrame) -> pd.DataFrame:
    """Keep one stage for each measurement of `times`: its total, or else its search, or else its kernel."""
    ranks = {stage: rank for rank, stage in enumerate(_HEADLINE_STAGES)}
    ranked = table[table["stage"].isin(list(ranks))].copy()
    ranked["rank"] = ranked["stage"].map(ranks)
    best = ranked.sort_values("rank", kind="stable").drop_duplicates(_KEYS)
    return best.drop(columns="rank").sort_index()


def _agreement(numerator: Mapping[str, Any], denominator: Mapping[str, Any]) -> str:
    """Why two measurements may not be divided by each other, or "" where they may."""
    if not numerator["digest"] or not denominator["digest"]:
        return NOT_CHECKED
    same = all(numerator[key] == denominator[key] for key in ("digest", "results", "queries"))
    return "" if same and numerator["digest"] != "unstable" else RESULTS_DIFFER


def _by_method(group: pd.DataFrame) -> dict[Method, dict[str, Any]]:
    found: dict[Method, dict[str, Any]] = {}
    for row in rows_of(group):
        # Host threads do not tell GPU runs apart: the run with most of them stands for the GPU.
        threads = 0 if row["device"] == "gpu" else int(row["threads"])
        method = Method(row["tool"], row["tier"], row["device"], threads)
        if method not in found or row["threads"] > found[method]["threads"]:
            found[method] = row
    return found


def _pairs(methods: Iterable[Method]) -> list[tuple[str, Method, Method]]:
    """(kind, numerator, denominator) of every speedup worth printing among the methods of one case."""
    known = set(methods)
    threads = sorted({method.threads for method in known if method.device == "cpu"})
    ends = sorted({threads[0], threads[-1]}) if threads else []
    pairs = []
    for tier in ("paper", "fast"):
        cpu = {t: Method("warpseed", tier, "cpu", t) for t in threads}
        gpu = Method("warpseed", tier, "gpu", 0)
        pairs += [("GPU over CPU", cpu[t], gpu) for t in ends]
        pairs += [("threads", cpu[ends[0]], cpu[t]) for t in threads[1:] if ends]
    for device, t in [("cpu", t) for t in ends] + [("gpu", 0)]:
        paper, fast = Method("warpseed", "paper", device, t), Method("warpseed", "fast", device, t)
        pairs.append(("fast over paper", paper, fast))
    for peer in sorted({method for method in known if method.tool != "warpseed"}):
        pairs.append((f"fast over {peer.tool}", peer, Method("warpseed", "fast", "cpu", peer.threads)))
        pairs.append((f"fast on the GPU over {peer.tool}", peer, Method("warpseed", "fast", "gpu", 0)))
    return [pair for pair in pairs if pair[1] in known and pair[2] in known]


_SPEEDUP_COLUMNS = [
    "source",
    "machine",
    "item",
    "case",
    "kind",
    "numerator",
    "denominator",
    "numerator_threads",
    "denominator_threads",
    "stage",
    "queries",
    "numerator_s",
    "denominator_s",
    "speedup",
    "status",
]


def _speedup_row(
    kind: str, numerator: Mapping[str, Any], denominator: Mapping[str, Any], names: tuple[str, str]
) -> dict[str, Any]:
    status = _agreement(numerator, denominator)
    both = numerator["stage"], denominator["stage"]
    return {
        **{key: denominator[key] for key in ("source", "machine", "item", "case", "queries")},
        "kind": kind,
        "numerator": names[0],
        "denominator": names[1],
        "numerator_threads": numerator["threads"],
        "denominator_threads": denominator["threads"],
        "stage": both[0] if both[0] == both[1] else " over ".join(both),
        "numerator_s": numerator["median_s"],
        "denominator_s": denominator["median_s"],
        "speedup": math.nan if status else numerator["median_s"] / denominator["median_s"],
        "status": status or "ok",
    }


def speedup_table(measurements: Measurements) -> pd.DataFrame:
    """Every speedup of Tables I and II and Figure 5, with its numerator, denominator, stage and threads.

    Returns
    -------
    pandas.DataFrame
        `speedup` is numerator_s / denominator_s, or NaN with `status` "results differ" or "results not
        checked".
    """
    table = times(measurements, ["Table I", "Table II", "Figure 5"])
    shown, processes = headline(table), table[table["stage"] == "process"]
    rows = []
    for frame, suffix in ((shown, ""), (processes, ", whole process")):
        for _, group in frame.groupby(["source", "machine", "item", "case"], sort=False):
            if group["item"].iloc[0] == "Figure 5":
                continue
            methods = _by_method(group)
            for kind, top, bottom in _pairs(methods):
                if suffix and "over" not in kind:
                    continue
                rows.append(_speedup_row(kind + suffix, methods[top], methods[bottom], (top.label, bottom.label)))
    rows += _figure_5_speedups(shown)
    return pd.DataFrame(rows, columns=_SPEEDUP_COLUMNS)


def _figure_5_speedups(shown: pd.DataFrame) -> list[dict[str, Any]]:
    """The GPU search that locates on the CPU, over the CPU version's whole time (Table I), paper tier."""
    rows = []
    for _, group in shown.groupby(["source", "machine", "case"], sort=False):
        gpu = _by_method(group[group["item"] == "Figure 5"]).get(Method("warpseed", "paper", "gpu", 0))
        cpu = {m: row for m, row in _by_method(group[group["item"] == "Table I"]).items() if m.device == "cpu"}
        threads = sorted(m.threads for m in cpu if m.tool == "warpseed" and m.tier == "paper")
        if gpu is None or not threads:
            continue
        for t in sorted({threads[0], threads[-1]}):
            method = Method("warpseed", "paper", "cpu", t)
            names = (method.label, "paper tier, GPU, locating on the CPU")
            rows.append(_speedup_row("GPU, locating on the CPU, over CPU", cpu[method], gpu, names))
    return rows


def _published_times(measurements: Measurements, item: str) -> list[dict[str, Any]]:
    devices = {"1 CPU core": ("cpu", 1), "4 CPU cores": ("cpu", PUBLISHED_CORES), "1 GPU": ("gpu", 1)}
    published = measurements.published
    chosen = published[(published["item"] == item) & (published["metric"] == "time")]
    rows = []
    for row in rows_of(chosen):
        device, threads = devices[row["method"]]
        rows.append(
            {
                "source": "published",
                "machine": "Opteron 2378, Tesla C2050",
                "item": item,
                "case": row["case"],
                "tool": "paper 000",
                "tier": "paper",
                "device": device,
                "threads": threads,
                "stage": "total" if item == "Table I" else "search",
                "median_s": float(row["value"]),
                "queries": PUBLISHED_KMERS,
            }
        )
    return rows


def published_value(measurements: Measurements, item: str, case: str, method: str) -> float | None:
    """One printed value of the paper, such as a speedup, or None where the paper prints none."""
    published = measurements.published
    chosen = published[(published["item"] == item) & (published["case"] == case) & (published["method"] == method)]
    return float(chosen["value"].iloc[0]) if len(chosen) else None


def long_table(measurements: Measurements, item: str) -> pd.DataFrame:
    """Table I or Table II in long form: published, here, reference machines.

    Returns
    -------
    pandas.DataFrame
        A row for each data set, source, machine and method. `us_per_kmer` is the median over the number of
        k-mers; `published_over_measured` is the paper's time per k-mer over ours, in the paper tier, for one
        core, for the GPU, and for n cores only where n is the paper's 4.
    """
    measured = headline(times(measurements, [item]))
    table = pd.concat(
        [frame for frame in (pd.DataFrame(_published_times(measurements, item)), measured) if len(frame)],
        ignore_index=True,
    )
    order = {data_set.case: rank for rank, data_set in enumerate(DATA_SETS)}
    table = table[table["case"].isin(list(order))].copy()
    table = table.reindex(columns=_TIME_COLUMNS)
    table.insert(0, "dataset", table["case"].str.split(";").str[0])
    table.insert(1, "mismatches", table["case"].str.extract(r"mismatches=(\d+)", expand=False).astype("int64"))
    table["us_per_kmer"] = table["median_s"] / table["queries"] * 1e6
    table["published_over_measured"] = _published_ratios(table)
    ranks = table["case"].map(order)
    return table.iloc[ranks.argsort(kind="stable")].reset_index(drop=True).drop(columns="case")


def _published_ratios(table: pd.DataFrame) -> list[float]:
    published = {
        (row["case"], row["device"], row["threads"]): row["us_per_kmer"]
        for row in rows_of(table[table["source"] == "published"])
    }
    ratios = []
    for row in rows_of(table):
        key = (row["case"], row["device"], 1 if row["device"] == "gpu" else row["threads"])
        comparable = row["source"] != "published" and row["tool"] == "warpseed" and row["tier"] == "paper"
        ratios.append(published[key] / row["us_per_kmer"] if comparable and key in published else math.nan)
    return ratios


def _column(method: Method) -> str:
    name = method.tier if method.tool == "warpseed" else method.tool
    if method.device == "gpu":
        return f"{name}_gpu_s"
    return f"{name}_{method.threads}_core{'s' if method.threads > 1 else ''}_s"


def wide_table(measurements: Measurements, item: str) -> pd.DataFrame:
    """Table I or Table II with one row a data set, as printed, and our columns to the right.

    Returns
    -------
    pandas.DataFrame
        Columns `published_*`, then `here_*`, then one group a reference machine, named after it. Speedup
        cells are text: a number, "results differ", "results not checked", or empty where nothing was
        measured.
    """
    table = long_table(measurements, item)
    speedups = speedup_table(measurements)
    speedups = speedups[(speedups["item"] == item) & ~speedups["kind"].str.contains("whole process")]
    rows = []
    for data_set in DATA_SETS:
        row: dict[str, Any] = {"dataset": data_set.name, "mismatches": data_set.mismatches}
        for column, method in (("1_core", "1 CPU core"), ("4_cores", "4 CPU cores"), ("gpu", "1 GPU")):
            row[f"published_{column}_s"] = published_value(measurements, item, data_set.case, method)
        for cores in ("1_core", "4_cores"):
            method = f"GPU vs {cores.replace('_', ' ')}"
            row[f"published_gpu_vs_{cores}"] = published_value(measurements, item, data_set.case, method)
        of_set = table[(table["dataset"] == data_set.name) & (table["source"] != "published")]
        for (source, machine), group in of_set.groupby(["source", "machine"], sort=False):
            prefix = "here" if source == "here" else str(machine)
            row.update(_wide_cells(prefix, group))
            own = speedups[
                (speedups["source"] == source) & (speedups["machine"] == machine) & (speedups["case"] == data_set.case)
            ]
            for cell in rows_of(own):
                name = f"{prefix}_{cell['numerator']}_over_{cell['denominator']}"
                row[name.replace(", ", "_").replace(" ", "_")] = speedup_cell(cell)
        rows.append(row)
    return pd.DataFrame(rows)


def _wide_cells(prefix: str, group: pd.DataFrame) -> dict[str, Any]:
    cells: dict[str, Any] = {f"{prefix}_machine": group["machine"].iloc[0]}
    cells[f"{prefix}_kmers"] = int(group["queries"].max())
    for method, row in _by_method(group).items():
        column = f"{prefix}_{_column(method)}"
        cells[column] = row["median_s"]
        cells[column + "_min"], cells[column + "_max"] = row["min_s"], row["max_s"]
        if not math.isnan(row["published_over_measured"]):
            cells[column[:-2] + "_published_over_measured_per_kmer"] = row["published_over_measured"]
    return cells


def speedup_cell(row: Mapping[str, Any]) -> str:
    """A speedup as a table shows it: the number, or the reason why there is none."""
    return format_number(row["speedup"]) if row["status"] == "ok" else str(row["status"])


def format_number(value: float | None) -> str:
    """Three significant digits without an exponent where that stays short; "" for None and NaN."""
    if value is None or math.isnan(value):
        return ""
    if abs(value) < 1000:
        value = float(f"{value:.3g}")  # first, or 9.999 would become 10.00
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 1 or value == 0:
        return f"{value:.2f}"
    if size >= 1e-4:
        return f"{value:.{2 - math.floor(math.log10(size))}f}"
    return f"{value:.2e}"


def format_seconds(seconds: float | None) -> str:
    """A time in the unit that suits it: s, ms or µs; "" for None and NaN."""
    if seconds is None or math.isnan(seconds):
        return ""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return f"{format_number(seconds / size)} {unit}"
    return f"{format_number(seconds * 1e6)} µs"


def describe_sizes(measurements: Measurements, table: pd.DataFrame) -> str:
    """Machines of a table, k-mers a set and the reference's bases, for a subtitle."""
    index = index_table(measurements)
    texts = []
    for (source, machine), group in table.groupby(["source", "machine"], sort=False):
        counts = sorted(set(group["queries"].astype(int)))
        kmers = f"{counts[0]:,} k-mers" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,} k-mers"
        own = index[(index["source"] == source) & (index["machine"] == machine)]["bases"]
        bases = f" on {format_bases(float(own.iloc[0]))}" if len(own) else ""
        texts.append(f"{machine_label(str(source), str(machine))}: {kmers}{bases}")
    return "   ·   ".join(texts)


def format_bases(count: float) -> str:
    """A number of bases for readers, such as "4.64 Mbp"."""
    for size, unit in ((1e9, "Gbp"), (1e6, "Mbp"), (1e3, "kbp")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bp"


def machine_label(source: str, machine: str) -> str:
    """A machine's name, and whether the numbers are from this run or from a reference run."""
    return f"{machine} (here)" if source == "here" else f"{machine} (reference machine)"


def summary_table(measurements: Measurements) -> pd.DataFrame:
    """For each kind of speedup, lowest, median and highest over the data sets.

    Returns
    -------
    pandas.DataFrame
        A row for each source, machine, item, numerator and denominator, in the order of `speedup_table`;
        `data_sets` says how many are in it and `differ` how many were left out because results differed or
        were not checked.
    """
    columns = ["source", "machine", "item", "kind", "numerator", "denominator", "stage"]
    table = speedup_table(measurements)
    rows = []
    for key, group in table.groupby(columns, sort=False):
        good = group[group["status"] == "ok"]["speedup"]
        rows.append(
            {
                **dict(zip(columns, key, strict=True)),
                "lowest": good.min() if len(good) else math.nan,
                "median": good.median() if len(good) else math.nan,
                "highest": good.max() if len(good) else math.nan,
                "data_sets": len(good),
                "differ": len(group) - len(good),
            }
        )
    return pd.DataFrame(rows, columns=[*columns, "lowest", "median", "highest", "data_sets", "differ"])


def peer_table(measurements: Measurements) -> pd.DataFrame:
    """The fast tier beside each peer: index open against the peer less its loading, and whole processes."""
    table = speedup_table(measurements)
    return table[table["numerator"].str.contains("tier").eq(False) & (table["item"] == "Table I")].reset_index(
        drop=True
    )


def stage_table(measurements: Measurements) -> pd.DataFrame:
    """Seconds and share of each stage from k-mer file to hits in memory, for each method of Table I.

    Returns
    -------
    pandas.DataFrame
        The columns of `times` and `share` (0 to 1). What `total` holds beyond its named stages is the stage
        "other". `load` and `index_to_device` happen once, with the index, and are left out.
    """
    table = times(measurements, ["Table I"])
    outside = ["load", "index_to_device", "process", "total"]
    rows = []
    for _, group in table.groupby(_KEYS, sort=False):
        parts = group[~group["stage"].isin(outside)]
        total = group.loc[group["stage"] == "total", "median_s"].sum()
        rest = total - parts.loc[parts["stage"] != "write", "median_s"].sum()
        entries = rows_of(parts)
        if not entries:
            continue
        if rest > 0.005 * total:
            entries.append({**entries[0], "stage": "other", "median_s": rest, "min_s": math.nan, "max_s": math.nan})
        whole = sum(entry["median_s"] for entry in entries)
        rows += [{**entry, "share": entry["median_s"] / whole if whole else 0.0} for entry in entries]
    return pd.DataFrame(rows, columns=[*_TIME_COLUMNS, "share"])


def throughput_table(measurements: Measurements) -> pd.DataFrame:
    """k-mers a second against k, from the records of item "Throughput" (case "k=20; mismatches=0")."""
    table = headline(times(measurements, ["Throughput"])).copy()
    fields = [case_fields(case) for case in table["case"]]
    table["k"] = pd.Series([int(f.get("k", 0)) for f in fields], index=table.index, dtype="int64")
    table["mismatches"] = pd.Series([int(f.get("mismatches", 0)) for f in fields], index=table.index, dtype="int64")
    table["kmers_per_s"] = (table["queries"] / table["median_s"]).astype("float64")
    return table.sort_values(["source", "machine", "mismatches", "tool", "tier", "device", "threads", "k"])


def scaling_table(measurements: Measurements) -> pd.DataFrame:
    """Speedup of the CPU over one thread, from the records of item "Scaling", with the status of each point."""
    table = headline(times(measurements, ["Scaling"]))
    table = table[table["device"] == "cpu"]
    rows = []
    for _, group in table.groupby(["source", "machine", "case", "tool", "tier", "device"], sort=False):
        base = group[group["threads"] == 1]
        if base.empty:
            continue
        one = rows_of(base)[0]
        for row in rows_of(group.sort_values("threads")):
            status = _agreement(one, row)
            speedup = math.nan if status else one["median_s"] / row["median_s"]
            rows.append({**row, "speedup": speedup, "status": status or "ok"})
    return pd.DataFrame(rows, columns=[*_TIME_COLUMNS, "speedup", "status"])


def index_table(measurements: Measurements) -> pd.DataFrame:
    """Bytes and bytes per base of each part of the index, beside the paper's formula.

    Returns
    -------
    pandas.DataFrame
        source, machine, part, bytes, formula_bytes (NaN where the paper gives none), bases, bytes_per_base,
        formula_bytes_per_base.
    """
    records = measurements.records
    index = records[records["item"] == "Index"]
    rows = []
    for (source, machine), group in index.groupby(["source", "machine"], sort=False):
        bases = group.loc[(group["case"] == "reference") & (group["metric"] == "count"), "value"].max()
        for case, part in group[group["case"].str.startswith("part=")].groupby("case", sort=False):
            sizes = part.drop_duplicates("metric").set_index("metric")["value"]
            size, formula = float(sizes.get("size", math.nan)), float(sizes.get("formula", math.nan))
            rows.append(
                {
                    "source": source,
                    "machine": machine,
                    "part": str(case).removeprefix("part="),
                    "bytes": size,
                    "formula_bytes": formula,
                    "bases": bases,
                    "bytes_per_base": size / bases,
                    "formula_bytes_per_base": formula / bases,
                }
            )
    columns = ["source", "machine", "part", "bytes", "formula_bytes", "bases"]
    return pd.DataFrame(rows, columns=[*columns, "bytes_per_base", "formula_bytes_per_base"])


def gpu_limits_table(measurements: Measurements) -> pd.DataFrame:
    """The records of item "GPU limits" (random-sector rates, floors, shares), medians over their repeats."""
    records = measurements.records
    chosen = records[records["item"] == "GPU limits"]
    keys = ["source", "machine", "case", "tier", "stage", "metric", "unit"]
    return chosen.groupby(keys, sort=False)["value"].median().reset_index()


_WRITERS = {
    "table_1": lambda m: wide_table(m, "Table I"),
    "table_1_long": lambda m: long_table(m, "Table I"),
    "table_2": lambda m: wide_table(m, "Table II"),
    "table_2_long": lambda m: long_table(m, "Table II"),
    "speedups": speedup_table,
    "summary": summary_table,
    "peers": peer_table,
    "gpu_limits": gpu_limits_table,
}


def write_tables(measurements: Measurements, paths: Iterable[str | Path]) -> None:
    """Write the tables that the files are named after.

    Parameters
    ----------
    measurements : Measurements
    paths : iterable of paths
        Stems: table_1, table_1_long, table_2, table_2_long, speedups, summary, peers, gpu_limits; ending
        .tsv.

    Raises
    ------
    ValueError
        If a stem is none of these.
    """
    for path in map(Path, paths):
        if path.stem not in _WRITERS:
            raise ValueError(f"{path}: no table is called {path.stem!r}; tables are {', '.join(_WRITERS)}")
        write_table(path, _WRITERS[path.stem](measurements))


def write_table(path: str | Path, table: pd.DataFrame) -> None:
    """Write a table as TSV with a header, numbers with six significant digits."""
    with atomic_path(path) as temporary:
        table.to_csv(temporary, sep="\t", index=False, float_format="%.6g", lineterminator="\n")

"""Records, medians and speedups, of any system.

Three kinds of numbers meet here and are never mixed up: what a paper printed (`published`), what this run
measured (`here`), and what a reference machine measured earlier (`reference`, labelled with the machine's
name). A speedup is the numerator's time over the denominator's, both of one system, on one machine, in one case,
for the same number of queries; it has a value only where both sides returned the same results (DESIGN,
"Measuring"). Everything is looked up by columns, `system` first among them, never by a label.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpseed.errors import InputError
from warpseed.measure.machines import name_machines
from warpseed.measure.records import SHARED, read_records, split_parameters
from warpseed.report.papers import Paper, read_paper
from warpseed.report.words import Method, method_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "KEYS",
    "NOT_CHECKED",
    "REPEATS_DIFFER",
    "RESULTS_DIFFER",
    "SPEEDUP_COLUMNS",
    "STEADY",
    "TIME_COLUMNS",
    "Measurements",
    "agreement",
    "by_method",
    "cases_of",
    "cross_speedups",
    "frame",
    "found_nothing",
    "headline",
    "joined",
    "load_measurements",
    "printed_threads",
    "published_band",
    "published_of",
    "rows_of",
    "speedups",
    "times",
]

RESULTS_DIFFER = "results differ"
NOT_CHECKED = "results not checked"
REPEATS_DIFFER = "repeats differ"
STEADY = 3
"""How many times as long as the shortest the longest repeat beside a peer may be. A peer's time is that of its process
less its loading: where both are short, the difference is mostly what the two happened to take, and a speedup over it
would be chance. A single slow repeat on a busy machine stays within the factor."""

KEYS = ["system", "source", "machine", "item", "case", "parameters", "tool", "tier", "device", "gpus", "threads"]
"""What tells one measurement from another."""
TIME_COLUMNS = [*KEYS, "stage", "median_s", "min_s", "max_s", "repeats", "queries", "results", "digest"]
_PUBLISHED_COLUMNS = ("paper", "item", "case", "method", "metric", "value", "unit", "note")
_CASE = ["system", "source", "machine", "item", "case", "parameters"]
# The stage a table shows is the widest one that a measurement has; any other stage is better than none.
_HEADLINE_STAGES = {"total": 0, "search": 1, "kernel": 2}
_BESIDE = ("process", "load", "index_to_device")


@dataclass(frozen=True)
class Measurements:
    """Everything a report is made from.

    Attributes
    ----------
    records : pandas.DataFrame
        Local and reference records: `RECORD_COLUMNS` (system `SHARED` for the index that all search and its genome) and
        `source` ("here" or "reference"). The machine of a reference record is the name of the folder it lies in.
    published : pandas.DataFrame
        The published values: system, item (the record's, where it is one of ours), printed (the item as printed),
        case, parameters (all that the paper states of the case), method, metric, value (float64), digits (the value
        as the file has it), unit, note.
    papers : mapping
        System to `Paper`.
    """

    records: pd.DataFrame
    published: pd.DataFrame
    papers: Mapping[str, Paper]

    def of(self, system: str) -> Measurements:
        """What belongs to one system, and what is every system's."""
        return replace(
            self,
            records=self.records[self.records["system"].isin([system, SHARED])],
            published=self.published[self.published["system"] == system],
            papers={system: self.papers[system]},
        )

    @property
    def paper(self) -> Paper:
        """The paper of measurements of one system."""
        (paper,) = self.papers.values()
        return paper

    def machines(self, source: str) -> list[str]:
        """Names of the machines that have records from `source`, in the order of the files."""
        records = self.records
        return list(dict.fromkeys(records.loc[records["source"] == source, "machine"]))


def frame(rows: Iterable[Mapping[str, Any]], columns: list[str]) -> pd.DataFrame:
    """A table of rows, with its columns also where there is no row."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=columns)


def joined(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Tables one below the other; the empty ones only where all are empty."""
    import pandas as pd

    tables = list(tables)
    filled = [table for table in tables if len(table)]
    return pd.concat(filled, ignore_index=True) if filled else tables[0]


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A table's rows as dicts by column name."""
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def load_measurements(
    local: Iterable[str | Path],
    reference: Iterable[str | Path],
    published: Iterable[str | Path],
    papers: Iterable[str | Path],
) -> Measurements:
    """Read records, published values and papers.

    Parameters
    ----------
    local, reference : iterable of paths
        Record TSVs of this run, and of reference machines (`resources/measurements/<machine>/*.tsv`).
    published : iterable of paths
        The TSVs of published values.
    papers : iterable of paths
        resources/papers/<system>.yaml, one for each system to report.

    Returns
    -------
    Measurements

    Raises
    ------
    InputError
        If a file is no record table, no table of published values or no paper, or if there are records or
        published values of a system without paper: nothing is left out silently.
    """
    known = {paper.system: paper for paper in map(read_paper, papers)}
    frames = [read_records([]).assign(source="")]
    for measured, names in name_machines(local).items():
        frames.append(read_records(measured).replace({"machine": names}).assign(source="here"))
    for path in reference:
        frames.append(read_records(path).assign(source="reference", machine=Path(path).resolve().parent.name))
    records = joined(frames)
    values = joined([_read_published(Path(path), known) for path in published])
    unknown = sorted((set(records["system"]) | set(values["system"])) - {*known, SHARED})
    if unknown:
        raise InputError(
            f"There are measurements or published values of '{unknown[0]}', but no resources/papers/{unknown[0]}.yaml: "
            "add it, so that they are reported"
        )
    return Measurements(records, values, known)


def _read_published(path: Path, papers: Mapping[str, Paper]) -> pd.DataFrame:
    import pandas as pd

    try:
        table = pd.read_csv(path, sep="\t", keep_default_na=False, dtype={"note": str, "value": str})
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no readable table of published values ({error})") from error
    if tuple(table.columns) != _PUBLISHED_COLUMNS:
        raise InputError(
            f"{path} has the columns {', '.join(map(str, table.columns))}, but published values have "
            f"{', '.join(_PUBLISHED_COLUMNS)}; restore the file from the repository"
        )
    rows = []
    for row in rows_of(table):
        system, printed = row.pop("paper"), row["item"]
        pieces = [piece.strip() for piece in row["case"].split(";")]
        parameters = "; ".join(piece for piece in pieces if "=" in piece)
        item = papers[system].item_of(printed) if system in papers else printed
        parameters = (papers[system].case_parameters(pieces[0]) if system in papers else "") or parameters
        row |= {"item": item, "case": pieces[0], "parameters": parameters, "digits": row["value"]}
        row["value"] = float(row["digits"])
        rows.append({"system": system, "printed": printed, **row})
    columns = ["system", "item", "printed", "case", "parameters", *_PUBLISHED_COLUMNS[3:], "digits"]
    return frame(rows, columns)


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
        One row for each measurement (`KEYS`) and stage: `median_s`, `min_s`, `max_s` (seconds), `repeats`,
        `queries`, `results`, `digest`. A measurement whose repeats gave unlike digests has the digest
        "unstable": no speedup is ever printed from it.
    """
    records = measurements.records
    timed = records[records["metric"] == "time"]
    if items is not None:
        timed = timed[timed["item"].isin(list(items))]
    if timed.empty:
        return frame([], TIME_COLUMNS)
    # A run on other sizes is another measurement; the largest one stands in the table.
    largest = timed.groupby(KEYS)["queries"].transform("max")
    timed = timed[timed["queries"] == largest]
    grouped = timed.groupby([*KEYS, "stage"], sort=False)
    table = grouped["value"].agg(median_s="median", min_s="min", max_s="max", repeats="size").reset_index()
    # Digest and results belong to a whole run, so they are judged over all its stages.
    runs = timed.groupby(KEYS, sort=False)
    facts = runs.agg(queries=("queries", "first"), results=("results", "max"), digest=("digest", _one_digest))
    return table.merge(facts.reset_index(), on=KEYS)[TIME_COLUMNS]


def _one_digest(digests: pd.Series) -> str:
    known = sorted(set(digests) - {""})
    if len(known) > 1:
        return "unstable"
    return known[0] if known else ""


def headline(table: pd.DataFrame) -> pd.DataFrame:
    """Keep one stage of each measurement of `times`: its total, or its search, its kernel, or else its first."""
    ranked = table[~table["stage"].isin(_BESIDE)].copy()
    ranked["rank"] = ranked["stage"].map(_HEADLINE_STAGES).fillna(len(_HEADLINE_STAGES))
    best = ranked.sort_values("rank", kind="stable").drop_duplicates(KEYS)
    return best.drop(columns="rank").sort_index()


def published_of(measurements: Measurements, item: str, case: str, parameters: str) -> pd.DataFrame:
    """What the paper of one system prints for a case: none where the case has other parameters than the paper's."""
    table = measurements.published
    table = table[(table["item"] == item) & (table["case"] == case)]
    return table.loc[[_covers(parameters, stated) for stated in table["parameters"]]]


def _covers(parameters: str, stated: str) -> bool:
    """Whether a measured case has every parameter that the paper states."""
    return split_parameters(stated).items() <= split_parameters(parameters).items()


def published_band(measurements: Measurements, what: str, name: str = "") -> list[tuple[float, float, str]]:
    """From where to where the paper's text has something, "least `what`" and "most `what`" in what is published, as a
    figure's band with its label, in which `name` stands before the numbers: none where it has neither."""
    own = measurements.published
    printed = {bound: rows_of(own[own["metric"] == f"{bound} {what}"]) for bound in ("least", "most")}
    if not printed["most"]:
        return []
    [most] = printed["most"]
    if not printed["least"]:
        return [(most["value"], most["value"], f"published: {name}about {most['value']:,.0f} at most")]
    [least] = printed["least"]
    return [(least["value"], most["value"], f"published: {name}{least['digits']} to {most['digits']}")]


def cases_of(measurements: Measurements, item: str) -> list[tuple[str, str]]:
    """(case, parameters) of an item of one system: the paper's first, in its order, then others as they were measured.

    A case that was measured with several sets of parameters stands as often; one that the paper printed, but that
    was not measured as it did, stands with the parameters of the paper.
    """
    records, published = measurements.records, measurements.published
    own = records[(records["item"] == item) & (records["metric"] == "time")]
    theirs = published[published["item"] == item]
    cases = list(dict.fromkeys(zip(own["case"], own["parameters"], strict=True)))
    for case, stated in dict.fromkeys(zip(theirs["case"], theirs["parameters"], strict=True)):
        if not any(case == name and _covers(parameters, stated) for name, parameters in cases):
            cases.append((case, stated))
    order = {case: rank for rank, case in enumerate(dict.fromkeys([*measurements.paper.cases, *theirs["case"]]))}
    return sorted(cases, key=lambda case: order.get(case[0], len(order)))


# Speedups


def agreement(numerator: Mapping[str, Any], denominator: Mapping[str, Any]) -> str:
    """Why two measurements may not be divided by each other, or "" where they may."""
    if not numerator["digest"] or not denominator["digest"]:
        return NOT_CHECKED
    same = all(numerator[key] == denominator[key] for key in ("digest", "results", "queries"))
    return "" if same and numerator["digest"] != "unstable" else RESULTS_DIFFER


def found_nothing(row: Mapping[str, Any]) -> bool:
    """Whether a measurement had queries and no result at all: of k-mers that each have more hits than max_hits allows,
    none is located, so that such a time is beside no paper's. A digest tells it from what has no results to count."""
    return bool(row["queries"] > 0 and row["results"] == 0 and row["digest"])


def _steady(*sides: Mapping[str, Any]) -> bool:
    """Whether the repeats of each measurement lie close enough together to divide it by another tool's (`STEADY`)."""
    return all(side["max_s"] <= STEADY * side["min_s"] for side in sides)


def by_method(group: pd.DataFrame) -> dict[Method, dict[str, Any]]:
    """The rows of one case by their method; the GPU run with most host threads stands for the GPU."""
    found: dict[Method, dict[str, Any]] = {}
    for row in rows_of(group):
        method = method_of(row)
        if method not in found or row["threads"] > found[method]["threads"]:
            found[method] = row
    return found


def _ends(methods: Iterable[Method]) -> list[int]:
    threads = sorted({method.threads for method in methods if method.device == "cpu"})
    return sorted({threads[0], threads[-1]}) if threads else []


def printed_threads(paper: Paper) -> set[int]:
    """The numbers of CPU threads that the paper prints something of."""
    return {method["threads"] for method in paper.methods.values() if "threads" in method}


def _beside_gpus(methods: Iterable[Method], printed: set[int]) -> list[int]:
    """The numbers of CPU threads that GPUs are put beside: fewest, most, and those that the paper prints."""
    known = list(methods)
    return sorted({*_ends(known), *(m.threads for m in known if m.device == "cpu" and m.threads in printed)})


def _pairs(methods: Iterable[Method], printed: set[int]) -> list[tuple[str, Method, Method]]:
    """(comparison, numerator, denominator) of every speedup worth printing among the methods of one case."""
    known = dict.fromkeys(methods)
    threads = sorted({method.threads for method in known if method.device == "cpu"})
    gpus = sorted({method.gpus for method in known if method.device == "gpu"})
    ends, beside = _ends(known), _beside_gpus(known, printed)
    pairs = []
    for tier in ("paper", "fast"):
        cpu = {t: Method("warpseed", tier, "cpu", 0, t) for t in threads}
        pairs += [("gpu_over_cpu", cpu[t], Method("warpseed", tier, "gpu", n, 0)) for n in gpus for t in beside]
        pairs += [("threads", cpu[ends[0]], cpu[t]) for t in threads[1:]]
        pairs += [
            ("gpus", Method("warpseed", tier, "gpu", gpus[0], 0), Method("warpseed", tier, "gpu", n, 0))
            for n in gpus[1:]
        ]
    for device, n, t in [("cpu", 0, t) for t in ends] + [("gpu", n, 0) for n in gpus]:
        paper, fast = (Method("warpseed", tier, device, n, t) for tier in ("paper", "fast"))
        pairs.append(("fast_over_paper", paper, fast))
    for peer in sorted(method for method in known if method.tool != "warpseed"):
        pairs.append(("fast_over_peer", peer, Method("warpseed", "fast", "cpu", 0, peer.threads)))
        pairs += [("fast_over_peer", peer, Method("warpseed", "fast", "gpu", n, 0)) for n in gpus]
    return [pair for pair in pairs if pair[1] in known and pair[2] in known]


_SIDES = [f"{side}_{key}" for side in ("numerator", "denominator") for key in ("item", *Method._fields, "stage")]
SPEEDUP_COLUMNS = [*_CASE, "comparison", "scope", *_SIDES, "queries", "numerator_s", "denominator_s"]
SPEEDUP_COLUMNS += ["numerator_results", "denominator_results", "speedup", "status"]


def _speedup_row(
    comparison: str, scope: str, numerator: Mapping[str, Any], denominator: Mapping[str, Any]
) -> dict[str, Any]:
    status = agreement(numerator, denominator)
    if not status and comparison == "fast_over_peer" and not _steady(numerator, denominator):
        status = REPEATS_DIFFER
    row = {**{key: denominator[key] for key in (*_CASE, "queries")}, "comparison": comparison, "scope": scope}
    for side, entry in (("numerator", numerator), ("denominator", denominator)):
        named = {**method_of(entry)._asdict(), "item": entry["item"], "stage": entry["stage"], "s": entry["median_s"]}
        named["results"] = entry["results"]
        row |= {f"{side}_{key}": value for key, value in named.items()}
    speedup = math.nan if status else numerator["median_s"] / denominator["median_s"]
    return {**row, "speedup": speedup, "status": status or "ok"}


def speedups(measurements: Measurements, items: Iterable[str]) -> pd.DataFrame:
    """Every speedup within the cases of some items, by stage with the index open and by whole process.

    Returns
    -------
    pandas.DataFrame
        `comparison` is gpu_over_cpu, threads, gpus, fast_over_paper or fast_over_peer; `scope` is index_open or
        process; each side has its item, tool, tier, device, gpus, threads, stage, seconds and results. `speedup` is
        numerator_s / denominator_s, or NaN with `status` "results differ", "results not checked" or, beside a peer,
        "repeats differ".
    """
    table, printed = times(measurements, items), printed_threads(measurements.paper)
    rows = []
    for scope, part in (("index_open", headline(table)), ("process", table[table["stage"] == "process"])):
        for _, group in part.groupby(_CASE, sort=False):
            methods = by_method(group)
            for comparison, top, bottom in _pairs(methods, printed):
                if scope == "index_open" or comparison not in ("threads", "gpus"):
                    rows.append(_speedup_row(comparison, scope, methods[top], methods[bottom]))
    return frame(rows, SPEEDUP_COLUMNS)


def cross_speedups(measurements: Measurements, item: str, cpu_item: str, tier: str) -> pd.DataFrame:
    """One item's GPU run over another item's CPU runs in the same case, with fewest threads, most, and the paper's.

    Returns
    -------
    pandas.DataFrame
        The columns of `speedups`, comparison gpu_over_cpu; the item is the GPU run's, `numerator_item` the CPU's.
    """
    shown = headline(times(measurements, [item, cpu_item]))
    rows = []
    for _, group in shown.groupby([key for key in _CASE if key != "item"], sort=False):
        gpu = {m: row for m, row in by_method(group[group["item"] == item]).items() if m.device == "gpu"}
        cpu = {m: row for m, row in by_method(group[group["item"] == cpu_item]).items() if m.device == "cpu"}
        own = [method for method in cpu if (method.tool, method.tier) == ("warpseed", tier)]
        for bottom in sorted(m for m in gpu if (m.tool, m.tier) == ("warpseed", tier)):
            for threads in _beside_gpus(own, printed_threads(measurements.paper)):
                top = cpu[Method("warpseed", tier, "cpu", 0, threads)]
                rows.append(_speedup_row("gpu_over_cpu", "index_open", top, gpu[bottom]))
    return frame(rows, SPEEDUP_COLUMNS)

"""The long-form records that measurements are kept in.

A record is one row of a TSV whose first line is `FORMAT_LINE` and whose columns are `RECORD_COLUMNS`. Raw repeats are
kept, one row each; medians are taken where a table is drawn, never here. The second line describes the machine as the
job that measured saw it, and the GPUs that it worked on; `warpseed.measure.machines` reads it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpseed.compute.machine import card_uuids
from warpseed.compute.stopwatch import Stopwatch, check_stage
from warpseed.errors import InputError
from warpseed.sequences.files import atomic_path

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FORMAT_LINE",
    "MACHINE_MARK",
    "RATE_CASE",
    "RECORD_COLUMNS",
    "SHARED",
    "index_rows",
    "join_parameters",
    "measured_rows",
    "publish_records",
    "read_records",
    "split_parameters",
    "write_records",
]

FORMAT_LINE = "# warpseed records, format 2"
"""First line of every file of records."""
MACHINE_MARK = "# machine "
"""What the second line of a run's records begins with; the machine's description follows, as JSON, with `cards`, the
UUIDs of the GPUs that the job worked on. Published records have none: their provenance.json stands beside them."""
RECORD_COLUMNS = (
    "system",
    "item",
    "tool",
    "tier",
    "device",
    "gpus",
    "threads",
    "case",
    "parameters",
    "stage",
    "repeat",
    "metric",
    "value",
    "unit",
    "queries",
    "results",
    "digest",
    "machine",
)
"""Columns of a record, in file order."""
SHARED = "-"
"""The `system` of records that are every system's: those of the index that all of them search, and of its genome."""
RATE_CASE = "random sectors of the "
"""What the case of a rate begins with; behind it stand the array and, where sectors are written too, that they are."""

_INTEGERS = ("gpus", "threads", "repeat", "queries", "results")
_DEFAULTS: dict[str, Any] = {
    "tier": "-",
    "device": "cpu",
    "threads": 1,
    "parameters": "",
    "repeat": 0,
    "metric": "time",
    "unit": "s",
    "queries": -1,
    "results": -1,
    "digest": "",
}


def join_parameters(values: Mapping[str, Any]) -> str:
    """Write what a case was run with as a record keeps it: "k=20; mismatches=1".

    Raises
    ------
    ValueError
        If a name or a value holds what separates them.
    """
    pairs = [(str(name), str(value)) for name, value in values.items()]
    for text in (text for pair in pairs for text in pair):
        if text != text.strip() or any(separator in text for separator in ("=", ";", "\t", "\n")):
            raise ValueError(f"{text!r} cannot stand in a record's parameters")
    return "; ".join(f"{name}={value}" for name, value in pairs)


def split_parameters(text: str) -> dict[str, str]:
    """The names and values of a record's parameters: {"k": "20", "mismatches": "1"}."""
    return dict(pair.split("=", 1) for pair in text.split("; ")) if text else {}


def measured_rows(watch: Stopwatch, **fields: Any) -> list[dict[str, Any]]:
    """Turn a stopwatch into records, one row a stage.

    Parameters
    ----------
    watch : Stopwatch
        Its seconds become rows with metric `time` and unit `s`.
    **fields
        The other columns of `RECORD_COLUMNS` (system, item, tool, case, ...), the same in each row.

    Returns
    -------
    list of dict
        Rows for `write_records`.
    """
    return [
        {**fields, "stage": stage, "metric": "time", "value": seconds, "unit": "s"}
        for stage, seconds in watch.seconds.items()
    ]


def index_rows(
    report: Iterable[Mapping[str, Any]], *, bases: int, reference: str, **fields: Any
) -> list[dict[str, Any]]:
    """Turn an index's `report()` into records of its size, with system `SHARED` and item `index`.

    Parameters
    ----------
    report : iterable of mapping
        One entry a part: `part` (name), `bytes`, and `formula_bytes` (the paper's formula) or None.
    bases : int
        Bases of the reference.
    reference : str
        Its name.
    **fields
        The other columns of `RECORD_COLUMNS` (tool, threads, ...), the same in each row.

    Returns
    -------
    list of dict
        Rows for `write_records`: the case "reference", with its name as a parameter, counts bases, each case
        "part=NAME" has metric "size" and, where the paper gives a formula, metric "formula", both in bytes.
    """
    shared = {"system": SHARED, "item": "index", "stage": "-", **fields}
    named = {"case": "reference", "parameters": join_parameters({"reference": reference})}
    rows = [{**shared, **named, "metric": "count", "value": bases, "unit": "bases"}]
    for entry in report:
        name = f"part={entry['part']}"
        part = {**shared, "case": name, "parameters": name, "unit": "bytes"}
        rows.append({**part, "metric": "size", "value": entry["bytes"]})
        if entry.get("formula_bytes") is not None:
            rows.append({**part, "metric": "formula", "value": entry["formula_bytes"]})
    return rows


def write_records(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write records as a TSV: format, this machine, a header, the rows; under a temporary name first.

    The line of the machine names as many of the GPUs that this process sees as a row has at most, the first ones.

    Parameters
    ----------
    path : path
        The file to write.
    rows : iterable of mapping
        Keys from `RECORD_COLUMNS`. `system`, `item`, `tool`, `case`, `stage` and `value` must be there. The
        others default to tier "-", device "cpu", gpus 1 on a GPU and 0 elsewhere, threads 1, parameters "",
        repeat 0, metric "time", unit "s", queries and results -1 (does not apply), digest "" and this machine's
        name.

    Raises
    ------
    ValueError
        If a row lacks a column without default, has one that records do not know, a stage that is no name, or
        GPUs that its device does not have.
    """
    from warpseed.measure.provenance import machine_description

    machine = machine_description()
    complete = [_complete(row, machine["machine"]) for row in rows]
    cards = {"cards": card_uuids(max((row["gpus"] for row in complete), default=0))}
    _write(path, [FORMAT_LINE, MACHINE_MARK + json.dumps(machine | cards)], complete)


def _write(path: str | Path, head: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    with atomic_path(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as handle:
        handle.writelines(f"{line}\n" for line in head)
        writer = csv.DictWriter(handle, RECORD_COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _complete(row: Mapping[str, Any], machine: str) -> dict[str, Any]:
    unknown = set(row) - set(RECORD_COLUMNS)
    if unknown:
        raise ValueError(f"a record has no column {sorted(unknown)}; the columns are {', '.join(RECORD_COLUMNS)}")
    full = {**_DEFAULTS, "machine": machine, **row}
    full.setdefault("gpus", int(full["device"] == "gpu"))
    missing = [column for column in RECORD_COLUMNS if column not in full]
    if missing:
        raise ValueError(f"a record needs a value for {', '.join(missing)}: {dict(row)}")
    if full["stage"] != "-":
        check_stage(full["stage"])
    if (full["gpus"] > 0) != (full["device"] == "gpu"):
        raise ValueError(f"a record on the {full['device']} has {full['gpus']} GPUs: {dict(row)}")
    full["value"] = repr(float(full["value"]))
    return full


def publish_records(path: str | Path, paths: Iterable[str | Path], *, machine: str) -> None:
    """Write records of a run into one file, under one machine's name.

    Parameters
    ----------
    path : path
        The file to write.
    paths : iterable of paths
        Files from `write_records`, of one reference.
    machine : str
        The machine that measured them (`warpseed.measure.machines.one_machine`).

    Raises
    ------
    InputError
        If there is no record.
    """
    records = read_records(paths)
    if records.empty:
        raise InputError("There are no records to publish; measure first, then publish.")
    rows = records.assign(machine=machine).to_dict("records")
    _write(path, [FORMAT_LINE], [{str(key): value for key, value in row.items()} for row in rows])


def read_records(paths: str | Path | Iterable[str | Path]) -> pd.DataFrame:
    """Read record TSVs into one table.

    Parameters
    ----------
    paths : path or iterable of paths
        Files from `write_records`. None at all gives an empty table.

    Returns
    -------
    pandas.DataFrame
        Columns `RECORD_COLUMNS`: `gpus`, `threads`, `repeat`, `queries`, `results` int64, `value` float64, the rest
        str.

    Raises
    ------
    InputError
        If a file has another format or other columns, or a number is none, below 0 or infinite, or a whole time is 0.
    """
    import pandas as pd

    if isinstance(paths, str | Path):
        paths = [paths]
    frames = [_read_one(Path(path)) for path in paths]
    frames = [frame for frame in frames if len(frame)]
    if not frames:
        return _typed(pd.DataFrame(columns=list(RECORD_COLUMNS), dtype=str), "")
    return pd.concat(frames, ignore_index=True)


def _read_one(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        with open(path, newline="", encoding="utf-8") as handle:
            first = handle.readline(200).rstrip("\r\n")
            if first != FORMAT_LINE:
                raise InputError(
                    f"{path} begins with {first[:60]!r}, but records of this version begin with {FORMAT_LINE!r}; "
                    "remove the file and measure again"
                )
            columns = handle.tell()
            if not handle.readline().startswith(MACHINE_MARK):
                handle.seek(columns)
            # QUOTE_MINIMAL on both sides: a contig or data set name may hold a quote.
            frame = pd.read_csv(handle, sep="\t", dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no readable record table ({error}); measure again to make it") from error
    if tuple(frame.columns) != RECORD_COLUMNS:
        raise InputError(
            f"{path} has the columns {', '.join(map(str, frame.columns))}, but a record table has "
            f"{', '.join(RECORD_COLUMNS)}; measure again with this version"
        )
    return _typed(frame, str(path))


_WHOLE = ("total", "search", "process")
"""Stages that speedups are mostly made of, timed by the host's clock; one that is a part of these may take nothing."""


def _typed(frame: pd.DataFrame, path: str) -> pd.DataFrame:
    import numpy as np

    try:
        typed = frame.astype({**dict.fromkeys(_INTEGERS, "int64"), "value": "float64"})
    except ValueError as error:
        raise InputError(f"{path} holds a value that is no number ({error}); measure again to make it") from error
    is_whole = (typed["metric"] == "time") & typed["stage"].isin(_WHOLE)
    least = np.where(is_whole, np.nextafter(0, 1), 0.0)
    wrong = np.flatnonzero(~((typed["value"] >= least) & (typed["value"] < np.inf)))
    if len(wrong):
        row = typed.iloc[int(wrong[0])]
        raise InputError(
            f"{path} holds the {row['metric']} {row['value']:g} of {row['item']}, {row['case']}, {row['stage']}, which "
            "nothing measured can have; measure again to make it"
        )
    return typed

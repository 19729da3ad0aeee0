"""What is timed of maximal exact matches: the stages of paper 002's Figures 3 to 5, and measurements of our own.

`stages` has packed reads in memory and the paper's kind of match in memory; in the paper tier its stages are the
paper's. `settings` is the same with other parameters of the paper's index. `in_memory` is the same of any kind, and
`file_to_file` goes from FASTA to TSV; how runs are timed is `warpseed.measure`'s.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from warpseed.batches import Options, Settings
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.fm_index.binned import PAPER_PARAMETERS, BinParameters, binned_index, binned_report
from warpseed.measure.cells import Cell, DataSet, time_cells
from warpseed.measure.digests import digest_of
from warpseed.measure.numbered import number_queries
from warpseed.measure.records import join_parameters
from warpseed.measure.searches import file_to_file
from warpseed.measure.timing import Outcome, Run, time_sides
from warpseed.mems import cpu, find_function, mem_search
from warpseed.mems.floors import measure_limits
from warpseed.mems.matches import KINDS, PAPER, Criteria
from warpseed.mems.output import LINES
from warpseed.mems.reads import pack_long_reads
from warpseed.output.rows import Found
from warpseed.sequences.files import sha256_file
from warpseed.sequences.queries import Queries, read_queries

__all__ = ["ITEMS", "Case", "chosen_reads", "name_of", "parameters_of", "time_dataset"]

_WARM_UP_READS = 10
_NAMES = {kind: name for name, kind in KINDS.items()}


class Case(NamedTuple):
    """A data set, what its records call it, and what it is searched for."""

    name: str
    reads: str
    """path of a FASTA or FASTQ file"""
    most: int | None
    """the first so many reads; None for all"""
    min_lengths: Sequence[int]
    kinds: Sequence[str]
    """as find_mems names them"""
    strands: int
    settings: Sequence[BinParameters] = ()
    """parameters of the paper's index that are tried"""


def name_of(criteria: Criteria) -> str:
    """The kind of match, as users name it."""
    return _NAMES[criteria.kind]


def parameters_of(criteria: Criteria) -> dict[str, Any]:
    """What records say that reads were searched for."""
    return {"min_length": criteria.min_length, "kind": name_of(criteria), "strands": criteria.strands}


def chosen_reads(path: str, count: int | None) -> Queries:
    """The reads of a file that are timed, without their qualities, named 0, 1, 2, …

    Raises
    ------
    InputError : there is none
    """
    reads = read_queries(path)
    if len(reads) == 0:
        raise InputError(f"{path}: there are no reads to be timed; name another read set.")
    return number_queries(reads.slice(0, len(reads) if count is None else count))


def _asked(case: Case, item: str, tier: str) -> Iterator[Criteria]:
    """What is searched for: where the paper's stages are timed its kind of match alone, as in its tier."""
    kinds = [PAPER] if item in ("stages", "settings") else [KINDS[kind] for kind in case.kinds]
    for min_length in case.min_lengths:
        for kind in kinds:
            if tier == "fast" or kind == PAPER:
                yield Criteria(min_length, kind, case.strands)


def _outcome(found: Found) -> Outcome:
    """What was found, as it is packed: the same on every device, and in both tiers."""
    return Outcome(len(found.counts), len(found.hits), digest_of(found.counts.astype(np.int64), found.hits))


def _in_memory(cell: Cell, criteria: Criteria, settings: BinParameters | None = None) -> Run:
    """Reads that are packed already, matches to memory; `settings` are those of the paper's index, if not its own."""
    packed = cell.packed(pack_long_reads)
    more = {} if settings is None else {"parameters": settings}

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        found = cell.find(find_function, packed, criteria, watch, **more)
        return lambda: _outcome(found)

    return run


def _outcome_of_file(path: Path, queries: int) -> Outcome:
    """What stands in a file; the same file, byte by byte, is the same result."""
    with open(path, "rb") as handle:
        lines = sum(piece.count(b"\n") for piece in iter(lambda: handle.read(1 << 20), b""))
    return Outcome(queries, lines - 1, sha256_file(path))


def _file_to_file(cell: Cell, criteria: Criteria) -> Run:
    """FASTA in, TSV out."""
    search = partial(
        mem_search, cell.index, min_length=criteria.min_length, kind=name_of(criteria),
        both_strands=criteria.strands == 2, **cell.options._asdict(),
    )  # fmt: skip
    outcome = partial(_outcome_of_file, queries=len(cell.queries))
    return file_to_file(cell.source, search, cell.output.with_suffix(".tsv"), LINES["tsv"], outcome)


_RUNS: dict[str, Callable[[Cell, Criteria], Run]] = {
    "stages": _in_memory,
    "in_memory": _in_memory,
    "file_to_file": _file_to_file,
}
ITEMS = (*_RUNS, "kinds", "parts", "settings", "on_device")
"""Figures 3 to 5, our own; how many matches of each kind there are, the sizes of the paper's index, what its parameters
do, and what the kernels of a GPU do with reads that lie there."""


def _applies(item: str, options: Options, most: int) -> bool:
    """What is counted is counted once; the paper's index is the paper tier's; a fast tier goes from file to file."""
    if item == "on_device":
        return options.gpus == 1
    if item in ("kinds", "parts"):
        tier = "fast" if item == "kinds" else "paper"
        return options.tier == tier and options.device == "cpu" and options.threads == most
    if item == "settings":
        return options.tier == "paper" and options.threads == most
    return item in ("stages", "in_memory") or options.tier == "fast"


def _timed(cell: Cell, run_of: Callable[[Cell], Run], repeats: int, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return time_sides([cell.side(run_of, _WARM_UP_READS)], repeats, {"parameters": join_parameters(parameters)})


def _count_rows(cell: Cell, case: Case) -> list[dict[str, Any]]:
    """How many matches of each kind there are, whatever kinds are timed."""
    packed, threads = pack_long_reads(cell.queries), cell.options.threads
    shared = {**cell.fields, "stage": "-", "metric": "count", "unit": "matches", "queries": len(cell.queries)}
    rows = []
    for min_length in case.min_lengths:
        for kind in KINDS.values():
            criteria = Criteria(min_length, kind, case.strands)
            found = cpu.find_fast(cell.index, packed, criteria, threads=threads, count_only=True)
            count = int(found.counts.sum())
            named = {"parameters": join_parameters(parameters_of(criteria)), "results": count}
            rows.append({**shared, **named, "value": count})
    return rows


def _read_rows(case: Case, reads: Queries) -> list[dict[str, Any]]:
    """How many bases the reads have, and the longest."""
    shared = {"system": "mems", "item": "reads", "tool": "warpseed", "case": case.name, "stage": "-", "unit": "bases"}
    counts = {"count": int(reads.offsets[-1]), "longest": int(reads.lengths.max())}
    return [{**shared, "metric": metric, "value": value, "queries": len(reads)} for metric, value in counts.items()]


def _part_rows(cell: Cell, case: Case) -> list[dict[str, Any]]:
    """Bytes of the parts of the paper's index, as the longest of the least lengths has it."""
    made = binned_index(cell.index, max(case.min_lengths), threads=cell.options.threads)
    shared = {**cell.fields, "stage": "-", "unit": "bytes"}
    rows = [{**shared, "metric": "count", "value": cell.index.bases, "unit": "bases"}]
    for entry in binned_report(made):
        own = {**shared, "parameters": join_parameters({"part": entry["part"]})}
        rows += [{**own, "metric": metric, "value": entry[key]}
                 for metric, key in (("size", "bytes"), ("formula", "formula_bytes"))]  # fmt: skip
    return rows


def _setting_rows(cell: Cell, case: Case, repeats: int) -> list[dict[str, Any]]:
    """The paper tier with other parameters of its index, and the bytes that this then has."""
    rows: list[dict[str, Any]] = []
    done = set()
    for criteria in _asked(case, "settings", "paper"):
        for settings in (PAPER_PARAMETERS, *case.settings):
            made = binned_index(cell.index, criteria.min_length, settings, threads=cell.options.threads)
            # What a short match or a small genome allows, which several settings may come to.
            true = settings._replace(pre_calc_length=made.pre_calc_length)
            if (criteria, true) in done:
                continue
            done.add((criteria, true))
            named = true._asdict() | parameters_of(criteria)
            rows += _timed(cell, partial(_in_memory, criteria=criteria, settings=true), repeats, named)
            size = sum(entry["bytes"] for entry in binned_report(made))
            shared = {**cell.fields, "parameters": join_parameters(named), "stage": "-"}
            rows.append({**shared, "metric": "size", "value": size, "unit": "bytes"})
    return rows


def time_dataset(
    index: str | os.PathLike[str], case: Case, settings: Settings, *, items: Iterable[str], repeats: int
) -> list[dict[str, Any]]:
    """Time one data set in every tier, on every device and number of threads.

    Parameters
    ----------
    index : folder of an index
    case : Case
    settings : Settings
    items : which of ITEMS to fill; one that needs a GPU has no records without it
    repeats : runs of each after its warm-up

    Returns
    -------
    list of records (see `warpseed.measure.records.RECORD_COLUMNS`), one for each stage and repeat; and of item 'reads'
    the bases of the reads
    """
    reads = chosen_reads(case.reads, case.most)
    data = DataSet("mems", case.name, "", reads)

    def timed(cell: Cell, criteria: Criteria) -> list[dict[str, Any]]:
        named = parameters_of(criteria)
        if cell.item == "on_device":
            fields = {**cell.fields, "parameters": join_parameters(named)}
            return measure_limits(cell.index, reads, criteria, repeats, fields)
        return _timed(cell, lambda each: _RUNS[cell.item](each, criteria), repeats, named)

    def records_of(cell: Cell) -> list[dict[str, Any]]:
        if cell.item == "kinds":
            return _count_rows(cell, case)
        if cell.item == "parts":
            return _part_rows(cell, case)
        if cell.item == "settings":
            return _setting_rows(cell, case, repeats)
        asked = _asked(case, cell.item, cell.options.tier)
        return [row for criteria in asked for row in timed(cell, criteria)]

    most = max(settings.threads)
    rows = time_cells(
        data, index, settings, items=items, records_of=records_of,
        applies=lambda item, options: _applies(item, options, most),
    )  # fmt: skip
    return [*_read_rows(case, reads), *rows]

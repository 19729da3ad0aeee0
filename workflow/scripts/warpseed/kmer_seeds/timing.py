"""What is timed of k-mer seeds: paper 000's Table I, Table II and Figure 5, and measurements of our own, as records.

The `total` of `whole` is from the k-mer file to hits in memory with the index open, that of `file_to_file` to a BED
file; how runs are timed is `warpseed.measure`'s.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from warpseed.batches import Options, Settings
from warpseed.compute.devices import devices_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.kmer_seeds import cpu, find_function, find_kmers, kmer_search, paper
from warpseed.kmer_seeds.kmers import pack_kmers
from warpseed.kmer_seeds.output import LINES, make_hits
from warpseed.measure.cells import Cell, DataSet, time_cells
from warpseed.measure.numbered import number_queries
from warpseed.measure.peers.process import HitLines
from warpseed.measure.searches import file_to_file, in_memory, outcome_of_file, outcome_of_hits
from warpseed.measure.timing import Outcome, Run, time_sides
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries, read_queries

__all__ = ["BED_HITS", "ITEMS", "Case", "time_dataset"]

_WARM_UP_KMERS = 2000

BED_HITS = HitLines({0: "contig", 1: "start", 2: "end", 3: "query", 4: "distance", 5: "strand"})
"""Our BED of k-mers."""


class Case(NamedTuple):
    """A data set, what its records call it, and how it is searched."""

    name: str
    """such as 'S20'"""
    parameters: str
    """such as 'k=20; mismatches=1'"""
    kmers: str
    """path of a FASTA file"""
    max_mismatches: int
    max_hits: int | None


def _read(cell: Cell, watch: Stopwatch) -> tuple[Queries, Packed]:
    with watch.stage("read"):
        queries = read_queries(cell.source) if isinstance(cell.source, str) else cell.source
    with watch.stage("pack"):
        return queries, pack_kmers(queries)


def _whole(cell: Cell, max_mismatches: int) -> Run:
    """Search and locate."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        options = cell.options._asdict()
        hits = find_kmers(cell.index, cell.source, max_mismatches=max_mismatches, watch=watch, **options)
        return lambda: outcome_of_hits(hits)

    return run


def _search_only(cell: Cell, max_mismatches: int) -> Run:
    """The paper tier stops at intervals; the fast tier, which has no such state, counts."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        queries, kmers = _read(cell, watch)
        results = int(np.sum(cell.find(find_function, kmers, max_mismatches, watch, count_only=True).counts))
        return lambda: Outcome(len(queries), results, f"count={results}")

    return run


def _locate_on_cpu(cell: Cell, max_mismatches: int) -> Run:
    """Search on the GPU, Equation 2 one by one on one CPU core."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        from warpseed.kmer_seeds import gpu

        queries, kmers = _read(cell, watch)
        limit, devices = cell.options.max_hits, devices_of(cell.options.device)
        intervals = gpu.search_paper(cell.index, kmers, max_mismatches, max_hits=limit, watch=watch, devices=devices)
        with watch.stage("locate"):
            found = cpu.locate_intervals(cell.index, kmers, intervals, max_mismatches)
        hits = make_hits(cell.index, queries, found)
        return lambda: outcome_of_hits(hits)

    return run


def _in_memory(cell: Cell, max_mismatches: int) -> Run:
    """Search and locate k-mers that are packed already."""
    kmers = cell.packed(pack_kmers)
    return in_memory(
        lambda watch: cell.find(find_function, kmers, max_mismatches, watch),
        lambda found: make_hits(cell.index, cell.queries, found),
    )


def _file_to_file(cell: Cell, max_mismatches: int) -> Run:
    """FASTA in, BED out."""
    outcome = partial(outcome_of_file, lines=BED_HITS, contigs=cell.index.names, lengths=cell.queries.lengths)
    new_search = partial(kmer_search, cell.index, max_mismatches=max_mismatches, **cell.options._asdict())
    return file_to_file(cell.source, new_search, cell.output.with_suffix(".bed"), LINES["bed"], outcome)


_RUNS: dict[str, Callable[[Cell, int], Run]] = {
    "whole": _whole,
    "search": _search_only,
    "locate_on_cpu": _locate_on_cpu,
    "throughput": _whole,
    "scaling": _file_to_file,
    "in_memory": _in_memory,
    "file_to_file": _file_to_file,
}
ITEMS = tuple(_RUNS)
"""Table I, Table II, Figure 5, and our own."""


def _applies(item: str, options: Options, max_mismatches: int) -> bool:
    if options.tier == "paper" and max_mismatches > paper.MAX_MISMATCHES:
        return False
    if item == "locate_on_cpu":
        return options.tier == "paper" and options.gpus == 1
    return item != "scaling" or options.device == "cpu"


def time_dataset(
    index: str | os.PathLike[str], case: Case, settings: Settings, *, items: Iterable[str], repeats: int
) -> list[dict[str, Any]]:
    """Time one data set in every tier, on every device and number of threads.

    Parameters
    ----------
    index : folder of an index
    case : Case
    settings : Settings
    items : which of ITEMS to fill
    repeats : runs of each after its warm-up

    Returns
    -------
    list of records (see `warpseed.measure.records.RECORD_COLUMNS`), one for each stage and repeat
    """
    data = DataSet("kmer_seeds", case.name, case.parameters, number_queries(read_queries(case.kmers)), case.max_hits)

    def records_of(cell: Cell) -> list[dict[str, Any]]:
        run = _RUNS[cell.item]
        # What is read back from a file must be named by number; all else takes the k-mers as they are.
        cell = cell if run is _file_to_file else replace(cell, source=case.kmers)
        rate = "k-mers/s" if cell.item == "in_memory" else ""
        side = cell.side(lambda each: run(each, case.max_mismatches), _WARM_UP_KMERS, rate_unit=rate)
        return time_sides([side], repeats)

    return time_cells(
        data, index, settings, items=items, records_of=records_of,
        applies=lambda item, options: _applies(item, options, case.max_mismatches),
    )  # fmt: skip

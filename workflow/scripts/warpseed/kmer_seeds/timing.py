"""What is timed of k-mer seeds: paper 000's Table I, Table II and Figure 5, and measurements of our own, as records.

The `total` of `whole` is from the k-mer file to hits in memory with the index open, that of `file_to_file` to a BED
file; how runs are timed is `warpseed.measure.timing`'s.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from warpseed.batches import Options, Settings
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.store import open_index
from warpseed.kmer_seeds import cpu, find_function, find_kmers, kmer_search, paper
from warpseed.kmer_seeds.kmers import pack_kmers
from warpseed.kmer_seeds.output import LINES, make_hits
from warpseed.measure.files import file_to_file
from warpseed.measure.peers.process import BED_HITS, number_queries, parse_hits
from warpseed.measure.timing import Outcome, Run, Side, add_total, side_fields, time_sides
from warpseed.output.hits import Hits
from warpseed.output.rows import digest_rows
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries, read_queries, write_fasta

__all__ = ["ITEMS", "Case", "time_dataset"]

_WARM_UP_KMERS = 2000


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


@dataclass(frozen=True)
class _Job:
    """One cell of a table: what is run, and where."""

    index: SeedIndex
    kmers: str | Queries
    max_mismatches: int
    options: Options
    output: Path
    """the BED files of what writes them: a number goes behind the stem of the name"""

    def find(self, kmers: Packed, watch: Stopwatch, *, count_only: bool = False) -> Any:
        """What the tier's search on this device finds of packed k-mers."""
        tier, device, threads, max_hits = self.options
        return find_function(tier, device)(
            self.index, kmers, self.max_mismatches, threads=threads, max_hits=max_hits, count_only=count_only,
            watch=watch,
        )  # fmt: skip

    def arguments(self, watch: Stopwatch) -> dict[str, Any]:
        """The arguments of `find_kmers` beside index and k-mers."""
        return {**self.options._asdict(), "max_mismatches": self.max_mismatches, "watch": watch}


def _read(job: _Job, watch: Stopwatch) -> tuple[Queries, Packed]:
    with watch.stage("read"):
        queries = read_queries(job.kmers)
    with watch.stage("pack"):
        return queries, pack_kmers(queries)


def _of_hits(hits: Hits) -> Outcome:
    return Outcome(len(hits.counts), len(hits), hits.digest())


def _whole(job: _Job) -> Run:
    """Search and locate."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        hits = find_kmers(job.index, job.kmers, **job.arguments(watch))
        return lambda: _of_hits(hits)

    return run


def _search_only(job: _Job) -> Run:
    """The paper tier stops at intervals; the fast tier, which has no such state, counts."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        queries, kmers = _read(job, watch)
        results = int(np.sum(job.find(kmers, watch, count_only=True).counts))
        return lambda: Outcome(len(queries), results, f"count={results}")

    return run


def _locate_on_cpu(job: _Job) -> Run:
    """Search on the GPU, Equation 2 one by one on one CPU core."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        from warpseed.kmer_seeds import gpu

        queries, kmers = _read(job, watch)
        limit = job.options.max_hits
        intervals = gpu.search_paper(job.index, kmers, job.max_mismatches, max_hits=limit, watch=watch)
        with watch.stage("locate"):
            found = cpu.locate_intervals(job.index, kmers, intervals, job.max_mismatches)
        hits = make_hits(job.index, queries, found)
        return lambda: _of_hits(hits)

    return run


def _in_memory(job: _Job) -> Run:
    """Search and locate k-mers that are packed already."""
    queries, kmers = _read(job, Stopwatch())

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        found = job.find(kmers, watch)
        return lambda: _of_hits(make_hits(job.index, queries, found))

    return run


def _file_to_file(job: _Job) -> Run:
    """FASTA in, BED out."""
    lengths = read_queries(job.kmers).lengths

    def outcome(output: Path) -> Outcome:
        rows = parse_hits(output, BED_HITS, job.index.names, lengths)
        return Outcome(len(lengths), len(rows), digest_rows(rows))

    new_search = partial(kmer_search, job.index, max_mismatches=job.max_mismatches, **job.options._asdict())
    return file_to_file(job.kmers, new_search, job.output, LINES["bed"], outcome)


_RUNS: dict[str, Callable[[_Job], Run]] = {
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
        return options.tier == "paper" and options.device == "gpu"
    return item != "scaling" or options.device == "cpu"


def _side(item: str, job: _Job, load: float, fields: dict[str, Any]) -> Side:
    """One cell; a device is warmed up with all k-mers, as memory is taken then, the CPU with a few."""
    few = job
    if job.options.device == "cpu":
        few = replace(job, kmers=read_queries(job.kmers).slice(0, _WARM_UP_KMERS))
    tier, device, threads, _ = job.options
    return Side(
        run=add_total(_RUNS[item](job)),
        warm_up=lambda watch: _RUNS[item](few)(watch),
        fields={"item": item, **side_fields("kmer_seeds", tier=tier, device=device, threads=threads), **fields},
        once={"load": load},
        rate_unit="k-mers/s" if item == "in_memory" else "",
    )


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
    watch = Stopwatch()
    with watch.stage("load"):
        opened = open_index(index)
    fields = {"case": case.name, "parameters": case.parameters}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        numbered = Path(folder) / "kmers.fa"
        write_fasta(number_queries(read_queries(case.kmers)), numbered)
        for item in items:
            # What is read back from a file must be named by number, there and in every tool beside it.
            kmers = str(numbered) if _RUNS[item] is _file_to_file else case.kmers
            for options in settings.options(case.max_hits):
                if _applies(item, options, case.max_mismatches):
                    job = _Job(opened, kmers, case.max_mismatches, options, Path(folder) / "hits.bed")
                    rows += time_sides([_side(item, job, watch.seconds["load"], fields)], repeats)
    return rows

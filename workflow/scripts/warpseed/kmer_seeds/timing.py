"""Timing a data set: paper 000's Table I, Table II and Figure 5, throughput and scaling, as records.

`total` is from the k-mer file to hits in memory with the index open: opening it is stage `load`, bringing it to a
device `index_to_device`; neither is in `total`. Compilation and one warm-up come first.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import WarpseedError
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.store import open_index
from warpseed.kmer_seeds import cpu, find_function, find_kmers
from warpseed.kmer_seeds.kmers import pack_kmers
from warpseed.kmer_seeds.output import make_hits
from warpseed.measure.records import measured_rows
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries, read_queries

__all__ = ["ITEMS", "time_dataset"]

_WARM_UP_KMERS = 2000
ITEMS = ("whole", "search", "locate_on_cpu", "throughput", "scaling")


class _Outcome(NamedTuple):
    queries: int
    results: int
    digest: str


@dataclass(frozen=True)
class _Job:
    """One cell of a table: what is run, and where."""

    index: SeedIndex
    kmers: str | Queries
    max_mismatches: int
    max_hits: int | None
    tier: str
    device: str
    threads: int


def _read(job: _Job, watch: Stopwatch) -> tuple[Queries, Packed]:
    with watch.stage("read"):
        queries = read_queries(job.kmers)
    with watch.stage("pack"):
        return queries, pack_kmers(queries)


def _whole(job: _Job, watch: Stopwatch) -> Callable[[], _Outcome]:
    """Table I: search and locate. What is returned works out the digest, which is not timed."""
    hits = find_kmers(
        job.index, job.kmers, max_mismatches=job.max_mismatches, tier=job.tier, device=job.device,
        threads=job.threads, max_hits=job.max_hits, watch=watch,
    )  # fmt: skip
    return lambda: _Outcome(len(hits.counts), len(hits), hits.digest())


def _search_only(job: _Job, watch: Stopwatch) -> Callable[[], _Outcome]:
    """Table II: the paper tier stops at intervals; the fast tier, which has no such state, counts."""
    queries, kmers = _read(job, watch)
    found = find_function(job.tier, job.device)(
        job.index, kmers, job.max_mismatches, threads=job.threads, max_hits=job.max_hits, count_only=True, watch=watch
    )
    results = int(np.sum(found.counts))
    return lambda: _Outcome(len(queries), results, f"count={results}")


def _locate_on_cpu(job: _Job, watch: Stopwatch) -> Callable[[], _Outcome]:
    """Figure 5: search on the GPU, Equation 2 one by one on one CPU core."""
    from warpseed.kmer_seeds import gpu

    queries, kmers = _read(job, watch)
    intervals = gpu.search_paper(job.index, kmers, job.max_mismatches, max_hits=job.max_hits, watch=watch)
    with watch.stage("locate"):
        found = cpu.locate_intervals(job.index, kmers, intervals, job.max_mismatches)
    hits = make_hits(job.index, queries, found)
    return lambda: _Outcome(len(queries), len(hits), hits.digest())


def _process_seconds(job: _Job, folder: str | os.PathLike[str]) -> float:
    """Wall time of the command line, index opened and BED written, for comparison with another tool's process."""
    limit = [] if job.max_hits is None else ["--max-hits", str(job.max_hits)]
    with tempfile.TemporaryDirectory() as scratch:
        command = [
            sys.executable, "-m", "warpseed", "kmers", os.fspath(folder), str(job.kmers),
            "-o", os.path.join(scratch, "hits.bed"), "--max-mismatches", str(job.max_mismatches),
            "--tier", job.tier, "--device", job.device, "--threads", str(job.threads), *limit,
        ]  # fmt: skip
        library = str(Path(__file__).resolve().parents[2])
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": library})
        seconds = time.perf_counter() - began
    if done.returncode != 0:
        raise WarpseedError(f"The command '{shlex.join(command)}' failed: {done.stderr.strip()}")
    return seconds


_RUNS: dict[str, Callable[[_Job, Stopwatch], Callable[[], _Outcome]]] = {
    "whole": _whole,
    "search": _search_only,
    "locate_on_cpu": _locate_on_cpu,
    "throughput": _whole,
    "scaling": _whole,
}


def _applies(item: str, tier: str, device: str) -> bool:
    if item == "locate_on_cpu":
        return tier == "paper" and device == "gpu"
    return item != "scaling" or device == "cpu"


def _warm_up(job: _Job) -> _Job:
    """What is run before the clock: all of it on a device, whose memory is taken then, and a part on the CPU."""
    if job.device == "gpu":
        return job
    return replace(job, kmers=read_queries(job.kmers).slice(0, _WARM_UP_KMERS))


def _rows(job: _Job, item: str, repeats: int, load: float, fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    run = _RUNS[item]
    first = Stopwatch()
    run(_warm_up(job), first)
    for repeat in range(repeats):
        watch = Stopwatch()
        began = time.perf_counter()
        finish = run(job, watch)
        total = time.perf_counter() - began
        watch.add("load", load)
        if "index_to_device" in first.seconds:
            watch.add("index_to_device", first.seconds["index_to_device"])
        watch.add("total", total)
        outcome = finish()._asdict()
        yield from measured_rows(watch, item=item, repeat=repeat, **fields, **outcome)


def time_dataset(
    index: str | os.PathLike[str],
    kmers: str | os.PathLike[str],
    *,
    case: str,
    parameters: str,
    max_mismatches: int,
    tiers: Iterable[str],
    devices: Iterable[str],
    threads: Iterable[int],
    repeats: int,
    max_hits: int | None,
    items: Iterable[str],
) -> list[dict[str, Any]]:
    """Time one data set in every tier, on every device and number of threads.

    Parameters
    ----------
    index : folder of an index
    kmers : FASTA of the data set
    case : what the records call it, e.g. 'S20'
    parameters : what it is, e.g. 'k=20; mismatches=1'
    threads : CPU threads to measure; a GPU run uses one host thread
    items : which of ITEMS to fill

    Returns
    -------
    list of records (see `warpseed.measure.records.RECORD_COLUMNS`), one for each stage and repeat
    """
    began = time.perf_counter()
    opened = open_index(index)
    load = time.perf_counter() - began
    rows: list[dict[str, Any]] = []
    counts = list(threads)
    for item in items:
        for tier in tiers:
            for device in devices:
                if not _applies(item, tier, device) or (tier == "paper" and max_mismatches > 2):
                    continue
                for count in counts if device == "cpu" else [1]:
                    job = _Job(opened, os.fspath(kmers), max_mismatches, max_hits, tier, device, count)
                    fields = {
                        "system": "kmer_seeds", "tool": "warpseed", "tier": tier, "device": device,
                        "threads": count, "case": case, "parameters": parameters,
                    }  # fmt: skip
                    timed = list(_rows(job, item, repeats, load, fields))
                    if item == "whole" and tier == "fast" and device == "cpu":
                        process = {**timed[-1], "stage": "process", "repeat": 0}
                        timed.append({**process, "value": _process_seconds(job, index)})
                    rows += timed
    return rows

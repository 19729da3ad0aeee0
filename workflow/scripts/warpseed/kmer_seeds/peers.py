"""k-mer seeds beside bowtie: the same k-mers in the same file, processes in turns, hits of both held to each other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from warpseed.batches import Options
from warpseed.kmer_seeds.timing import Case
from warpseed.measure.peers.bowtie import parse_bowtie, run_bowtie
from warpseed.measure.peers.process import BED_HITS, Process, number_queries, parse_hits, run_warpseed
from warpseed.measure.processes import process_run, tool_run
from warpseed.measure.timing import Outcome, Side, side_fields, time_sides
from warpseed.output.rows import digest_rows
from warpseed.sequences.queries import read_queries, write_fasta

__all__ = ["Beside", "time_beside_bowtie"]


class Beside(NamedTuple):
    """What both sides read, and where they write."""

    our_index: str
    """its folder"""
    bowtie_index: str
    """its prefix"""
    contigs: Sequence[str]
    """names of the contigs, in the order of the reference"""
    folder: Path
    """an empty folder, for k-mers and hits"""


def _outcome(rows: np.ndarray, lengths: np.ndarray) -> Outcome:
    return Outcome(len(lengths), len(rows), digest_rows(rows))


def _our_process(beside: Beside, case: Case, options: Options, lengths: np.ndarray) -> Side:
    """Our command line: index opened, FASTA read, BED written, and that BED read back."""
    output = beside.folder / "hits.bed"
    tier, device, threads, max_hits = options
    arguments = [
        "kmers", beside.our_index, case.kmers, "-o", str(output),
        "--max-mismatches", str(case.max_mismatches), "--tier", tier, "--device", device, "--threads", str(threads),
    ]  # fmt: skip
    if max_hits is not None:
        arguments += ["--max-hits", str(max_hits)]

    def start() -> Process:
        output.unlink(missing_ok=True)
        return run_warpseed(arguments)

    run = process_run(start, lambda: _outcome(parse_hits(output, BED_HITS, beside.contigs, lengths), lengths))
    return Side(run, run, side_fields("kmer_seeds", tier=tier, device=device, threads=threads))


def _bowtie(beside: Beside, case: Case, threads: int, lengths: np.ndarray) -> Side:
    """Bowtie's process, its loading, and as `total` the one less the other."""
    output = beside.folder / "bowtie.tsv"

    start = partial(
        run_bowtie, beside.bowtie_index, case.kmers, max_mismatches=case.max_mismatches, threads=threads,
        output=output, max_hits=case.max_hits,
    )  # fmt: skip

    def outcome() -> Outcome:
        return _outcome(parse_bowtie(output, beside.contigs, lengths), lengths)

    run = tool_run(partial(start, first_only=True), start, outcome)
    fields = side_fields("kmer_seeds", tier="-", device="cpu", threads=threads) | {"tool": "bowtie"}
    return Side(run, run, fields)


def time_beside_bowtie(
    beside: Beside, case: Case, *, item: str, threads: Sequence[int], repeats: int
) -> list[dict[str, Any]]:
    """Time bowtie and our fast tier on the CPU as processes, in turns, with each number of threads.

    Parameters
    ----------
    beside : Beside
    case : Case
    item : the item of the records, such as 'whole'
    threads : CPU threads, of both sides
    repeats : runs of each side after one that does not count

    Returns
    -------
    list of records: stage `process` of both sides, each with the digest of what it wrote itself; of bowtie also `load`
    and, as `total`, the difference
    """
    queries = read_queries(case.kmers)
    numbered = beside.folder / "kmers.fa"
    write_fasta(number_queries(queries), numbered)
    case = case._replace(kmers=os.fspath(numbered))
    named = {"item": item, "case": case.name, "parameters": case.parameters}
    rows: list[dict[str, Any]] = []
    for count in threads:
        sides = [
            _bowtie(beside, case, count, queries.lengths),
            _our_process(beside, case, Options("fast", "cpu", count, case.max_hits), queries.lengths),
        ]
        rows += time_sides([Side(side.run, side.warm_up, {**side.fields, **named}) for side in sides], repeats)
    return rows

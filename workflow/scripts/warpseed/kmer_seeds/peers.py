"""k-mer seeds beside bowtie: the same k-mers in the same file, processes in turns, hits of both held to each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from warpseed.batches import Options
from warpseed.kmer_seeds.timing import BED_HITS, Case
from warpseed.measure.numbered import number_queries, write_numbered
from warpseed.measure.peers.bowtie import parse_bowtie, run_bowtie
from warpseed.measure.processes import our_process, tool_run, tool_side
from warpseed.measure.searches import outcome_of_file, outcome_of_rows
from warpseed.measure.timing import Outcome, Side, time_sides
from warpseed.sequences.queries import read_queries

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


def _our_process(beside: Beside, case: Case, options: Options, lengths: np.ndarray) -> Side:
    """Our command line: index opened, FASTA read, BED written, and that BED read back."""
    output = beside.folder / "hits.bed"
    command = ["kmers", beside.our_index, case.kmers, "--max-mismatches", str(case.max_mismatches)]
    outcome = partial(outcome_of_file, output, BED_HITS, beside.contigs, lengths)
    return our_process("kmer_seeds", command, options, output, outcome)


def _bowtie(beside: Beside, case: Case, threads: int, lengths: np.ndarray) -> Side:
    """Bowtie's process, its loading, and as `total` the one less the other."""
    output = beside.folder / "bowtie.tsv"

    start = partial(
        run_bowtie, beside.bowtie_index, case.kmers, max_mismatches=case.max_mismatches, threads=threads,
        output=output, max_hits=case.max_hits,
    )  # fmt: skip

    def outcome() -> Outcome:
        return outcome_of_rows(parse_bowtie(output, beside.contigs, lengths), lengths)

    return tool_side("kmer_seeds", "bowtie", threads, tool_run(partial(start, first_only=True), start, outcome))


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
    queries = number_queries(read_queries(case.kmers))
    case = case._replace(kmers=write_numbered(queries, beside.folder))
    named = {"item": item, "case": case.name, "parameters": case.parameters}
    rows: list[dict[str, Any]] = []
    for count in threads:
        sides = [
            _bowtie(beside, case, count, queries.lengths),
            _our_process(beside, case, Options("fast", "cpu", count, case.max_hits), queries.lengths),
        ]
        rows += time_sides(sides, repeats, named)
    return rows

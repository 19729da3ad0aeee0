"""k-mer seeds beside bowtie: the same k-mers in the same file, processes in turns, hits of both held to each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from warpseed.batches import Options
from warpseed.kmer_seeds.timing import BED_HITS, Case
from warpseed.measure.beside import Beside, build_rows
from warpseed.measure.numbered import number_queries, write_numbered
from warpseed.measure.peers.bowtie import build_bowtie_index, parse_bowtie, run_bowtie
from warpseed.measure.processes import our_process, tool_run, tool_side
from warpseed.measure.searches import outcome_of_file, outcome_of_rows
from warpseed.measure.timing import Outcome, Side, time_sides
from warpseed.sequences.queries import read_queries

__all__ = ["time_beside_bowtie"]


def _our_process(beside: Beside, case: Case, options: Options, lengths: np.ndarray) -> Side:
    """Our command line: index opened, FASTA read, BED written, and that BED read back."""
    output = beside.folder / "hits.bed"
    command = ["kmers", beside.our_index, case.kmers, "--max-mismatches", str(case.max_mismatches)]
    outcome = partial(outcome_of_file, output, BED_HITS, beside.contigs, lengths)
    return our_process("kmer_seeds", command, options, output, outcome)


def _bowtie_index(beside: Beside) -> str:
    """Its prefix."""
    return str(beside.folder / "bowtie")


def _bowtie(beside: Beside, case: Case, threads: int, lengths: np.ndarray) -> Side:
    """Bowtie's process, its loading, and as `total` the one less the other."""
    output = beside.folder / "bowtie.tsv"

    start = partial(
        run_bowtie, _bowtie_index(beside), case.kmers, max_mismatches=case.max_mismatches, threads=threads,
        output=output, max_hits=case.max_hits,
    )  # fmt: skip

    def outcome() -> Outcome:
        return outcome_of_rows(parse_bowtie(output, beside.contigs, lengths), lengths)

    return tool_side("kmer_seeds", "bowtie", threads, tool_run(partial(start, first_only=True), start, outcome))


def time_beside_bowtie(
    beside: Beside, cases: Sequence[Case], *, item: str, threads: Sequence[int], repeats: int
) -> list[dict[str, Any]]:
    """Time bowtie and our fast tier on the CPU as processes, in turns, with each number of threads.

    Parameters
    ----------
    beside : Beside
    cases : the data sets, one after the other
    item : the item of the records, such as 'whole'
    threads : CPU threads, of both sides
    repeats : runs of each side after one that does not count

    Returns
    -------
    list of records: stage `process` of both sides, each with the digest of what it wrote itself; of bowtie also `load`
    and, as `total`, the difference; of item 'index' what bowtie's index took
    """
    most = max(threads)
    rows = build_rows("kmer_seeds", "bowtie", most, build_bowtie_index(beside.reference, _bowtie_index(beside), most))
    for case in cases:
        queries = number_queries(read_queries(case.kmers))
        numbered = case._replace(kmers=write_numbered(queries, beside.folder))
        named = {"item": item, "case": case.name, "parameters": case.parameters}
        for count in threads:
            sides = [
                _bowtie(beside, numbered, count, queries.lengths),
                _our_process(beside, numbered, Options("fast", "cpu", count, case.max_hits), queries.lengths),
            ]
            rows += time_sides(sides, repeats, named)
    return rows

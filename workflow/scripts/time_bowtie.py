"""Time bowtie and our command line on k-mer data sets, as processes in turns, and write the records.

Input: `reference`, `index` (our folder), `kmers` (one FASTA or several). Params: `cases` (for each FASTA a dict of
`case`, `parameters` and `max_mismatches`), `item` (of the records), `threads` (numbers and "all"), `repeats`,
`max_hits` (int or None). Output: the records.
"""

import tempfile
from pathlib import Path
from typing import Any

from warpseed.compute.machine import usable_cores
from warpseed.kmer_seeds.peers import Beside, time_beside_bowtie
from warpseed.kmer_seeds.timing import Case
from warpseed.measure.peers.bowtie import build_bowtie_index
from warpseed.measure.records import write_records
from warpseed.sequences.reference import read_reference
from warpseed.workflow.job import rule_log, thread_counts


def main(snakemake: Any) -> None:
    """Build bowtie's index once, then time every data set on both indexes."""
    given, params = snakemake.input, snakemake.params
    kmers = [given.kmers] if isinstance(given.kmers, str) else list(given.kmers)
    counts = thread_counts(params.threads, usable_cores())
    with tempfile.TemporaryDirectory() as folder:
        prefix = str(Path(folder) / "index")
        build = {"system": "kmer_seeds", "tool": "bowtie", "item": "index", "case": "build", "threads": max(counts)}
        seconds = build_bowtie_index(given.reference, prefix, max(counts))
        print(f"bowtie-build: {seconds:.1f} s")
        records: list[dict[str, Any]] = [build | {"stage": "process", "value": seconds}]
        beside = Beside(given.index, prefix, read_reference(given.reference).names, Path(folder))
        for path, case in zip(kmers, params.cases, strict=True):
            timed = Case(case["case"], case["parameters"], path, case["max_mismatches"], params.max_hits)
            records += time_beside_bowtie(beside, timed, item=params.item, threads=counts, repeats=params.repeats)
    write_records(snakemake.output.records, records)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

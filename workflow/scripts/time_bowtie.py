"""Time bowtie and our command line on k-mer data sets, as processes in turns, and write the records.

Input: `reference`, `index` (our folder), `kmers` (one FASTA or several). Params: `cases` (for each FASTA a dict of
`case`, `parameters` and `max_mismatches`), `item` (of the records), `threads` (numbers and "all"), `repeats`,
`max_hits` (int or None). Output: the records.
"""

from typing import Any

from warpseed.compute.machine import usable_cores
from warpseed.kmer_seeds.peers import time_beside_bowtie
from warpseed.kmer_seeds.timing import Case
from warpseed.measure.beside import new_beside
from warpseed.measure.records import write_records
from warpseed.workflow.job import rule_log, thread_counts


def main(snakemake: Any) -> None:
    """Time every data set on both indexes, and write the records."""
    given, params = snakemake.input, snakemake.params
    kmers = [given.kmers] if isinstance(given.kmers, str) else list(given.kmers)
    cases = [
        Case(case["case"], case["parameters"], path, case["max_mismatches"], params.max_hits)
        for path, case in zip(kmers, params.cases, strict=True)
    ]
    threads = thread_counts(params.threads, usable_cores())
    with new_beside(given.reference, given.index) as beside:
        records = time_beside_bowtie(beside, cases, item=params.item, threads=threads, repeats=params.repeats)
    write_records(snakemake.output.records, records)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

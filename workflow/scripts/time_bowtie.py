"""Time bowtie on k-mer data sets, parse its hits to our rows and write the records.

Input: `reference`, `kmers` (one FASTA or several). Params: `cases` (for each FASTA a dict of `case`, `parameters`
and `max_mismatches`), `threads` (numbers and "all"), `repeats`, `max_hits` (int or None). Output: the records.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warpseed.compute.machine import usable_cores
from warpseed.measure.peers.bowtie import build_bowtie_index, number_queries, parse_bowtie, run_bowtie
from warpseed.measure.records import write_records
from warpseed.output.rows import digest_rows
from warpseed.sequences.queries import read_queries, write_fasta
from warpseed.sequences.reference import read_reference
from warpseed.workflow.job import rule_log, thread_counts

SYSTEM = {"system": "kmer_seeds", "tool": "bowtie", "tier": "-", "device": "cpu"}


def time_case(
    prefix: Path, names: tuple[str, ...], kmers: str, case: dict, params: Any, counts: list[int]
) -> Iterator[dict]:
    """Rows of one data set: stages load, process and total (process less load)."""
    queries = read_queries(kmers)
    numbered, hits = prefix.with_name("kmers.fa"), prefix.with_name("hits.tsv")
    write_fasta(number_queries(queries), numbered)
    options = {"max_mismatches": case["max_mismatches"], "max_hits": params.max_hits, "output": hits}
    for threads in counts:
        run_bowtie(prefix, numbered, threads=threads, **options)  # warm-up
        for repeat in range(params.repeats):
            run = run_bowtie(prefix, numbered, threads=threads, **options)
            rows = parse_bowtie(hits, names, queries.lengths)
            fields = SYSTEM | {"item": "whole", "case": case["case"], "parameters": case["parameters"]}
            fields |= {"threads": threads, "repeat": repeat}
            fields |= {"queries": len(queries), "results": len(rows), "digest": digest_rows(rows)}
            loading, process = run.load_seconds, run.seconds
            # On tiny inputs the run that only loads may take longer: such a difference is noise, and no time.
            total = [("total", process - loading)] if process > loading else []
            for stage, seconds in [("load", loading), ("process", process), *total]:
                yield fields | {"stage": stage, "value": seconds}


def main(snakemake: Any) -> None:
    """Build bowtie's index once, then time every data set on it."""
    kmers, params = snakemake.input.kmers, snakemake.params
    kmers = [kmers] if isinstance(kmers, str) else list(kmers)
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder) / "index"
        counts = thread_counts(params.threads, usable_cores())
        most = max(counts)
        build = SYSTEM | {"item": "index", "case": "build", "threads": most, "stage": "process"}
        records = [build | {"value": build_bowtie_index(snakemake.input.reference, prefix, most)}]
        names = read_reference(snakemake.input.reference).names
        for path, case in zip(kmers, params.cases, strict=True):
            records += time_case(prefix, names, path, case, params, counts)
        write_records(snakemake.output[0], records)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job.log[0]):
        main(job)

"""Time both tiers with one data set on every device and number of threads.

Input: `index` (a folder), `kmers`. Params: `case`, `parameters`, `mismatches`, `table_items`, `threads` (numbers
and "all"), `tiers`, `devices`, `repeats`, `max_hits`. Output: `records`.
"""

from typing import Any

from warpseed.batches import Settings
from warpseed.compute.machine import usable_cores
from warpseed.kmer_seeds.timing import Case, time_dataset
from warpseed.measure.records import write_records
from warpseed.workflow.job import rule_log, thread_counts


def main(snakemake: Any) -> None:
    """Time, and write the records."""
    params = snakemake.params
    case = Case(params.case, params.parameters, snakemake.input.kmers, params.mismatches, params.max_hits)
    settings = Settings(params.tiers, params.devices, thread_counts(params.threads, usable_cores()))
    records = time_dataset(snakemake.input.index, case, settings, items=params.table_items, repeats=params.repeats)
    write_records(snakemake.output.records, records)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

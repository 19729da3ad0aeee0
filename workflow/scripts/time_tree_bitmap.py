"""Time both tiers with one data set of streams on every device and number of threads.

Input: `reference` (a FASTA file, or nothing for random streams). Params: `case` (a data set of `timed_datasets`), its
`name`, `repeats`. Output: `records`.
"""

from typing import Any

from warpseed.batches import Settings
from warpseed.compute.machine import usable_cores
from warpseed.measure.records import write_records
from warpseed.tree_bitmap.timed import Case
from warpseed.tree_bitmap.timing import time_dataset
from warpseed.workflow.job import rule_log, thread_counts


def main(snakemake: Any) -> None:
    """Time, and write the records."""
    params = snakemake.params
    chosen = params.case
    case = Case(
        params.name,
        snakemake.input.get("reference") or None,
        chosen["seed"],
        chosen["lengths"],
        chosen["k"],
        chosen["seed_length"],
        chosen["chunk_length"],
        chosen["max_edits"],
        chosen["kmers"],
        chosen["peers"],
    )
    settings = Settings(chosen["tiers"], chosen["devices"], thread_counts(chosen["threads"], usable_cores()))
    records = time_dataset(case, settings, items=chosen["items"], repeats=params.repeats)
    write_records(snakemake.output.records, records)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

"""Time both tiers with one data set of reads on every device and number of threads.

Input: `index` (a folder), `reads`. Params: `case` (a data set of `timed_datasets`), its `name`, `both_strands`,
`slots`, `block_sizes`, `repeats`. Output: `records`.
"""

from typing import Any

from warpseed.batches import Settings
from warpseed.compute.machine import usable_cores
from warpseed.measure.records import write_records
from warpseed.one_error.reads import Criteria
from warpseed.one_error.timing import Case, time_dataset
from warpseed.workflow.job import rule_log, thread_counts


def main(snakemake: Any) -> None:
    """Time, and write the records."""
    params = snakemake.params
    chosen = params.case
    criteria = Criteria(chosen["edits"], 2 if params.both_strands else 1)
    case = Case(
        params.name, snakemake.input.reads, chosen["count"], chosen["length"], criteria, params.slots,
        params.block_sizes,
    )  # fmt: skip
    settings = Settings(chosen["tiers"], chosen["devices"], thread_counts(chosen["threads"], usable_cores()))
    records = time_dataset(snakemake.input.index, case, settings, items=chosen["items"], repeats=params.repeats)
    write_records(snakemake.output.records, records)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

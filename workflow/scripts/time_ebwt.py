"""Time both tiers with one data set of weighted sequences on every device and number of threads.

Params: `case` (a data set of `timed_datasets`), `repeats`. Output: `records`.
"""

from typing import Any

from warpseed.batches import Settings
from warpseed.compute.machine import usable_cores
from warpseed.ebwt.timed import Case
from warpseed.ebwt.timing import time_dataset
from warpseed.measure.records import write_records
from warpseed.workflow.job import rule_log, thread_counts


def main(snakemake: Any) -> None:
    """Time, and write the records."""
    params = snakemake.params
    chosen = params.case
    case = Case(**{name: chosen[name] for name in Case._fields})
    settings = Settings(chosen["tiers"], chosen["devices"], thread_counts(chosen["threads"], usable_cores()))
    write_records(snakemake.output.records, time_dataset(case, settings, items=chosen["items"], repeats=params.repeats))


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

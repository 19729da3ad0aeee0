"""Time the fast tier with one data set of collections of words on every device and number of threads.

Params: `case` (a data set of `timed_collections`), `repeats`. Output: `records`.
"""

from typing import Any

from warpseed.batches import Settings
from warpseed.compute.machine import usable_cores
from warpseed.ebwt.timing_collections import Collection, time_collections
from warpseed.measure.records import write_records
from warpseed.workflow.job import rule_log, thread_counts


def main(snakemake: Any) -> None:
    """Time, and write the records."""
    params = snakemake.params
    chosen = params.case
    case = Collection(**{name: chosen[name] for name in Collection._fields})
    settings = Settings(chosen["tiers"], chosen["devices"], thread_counts(chosen["threads"], usable_cores()))
    rows = time_collections(case, settings, items=chosen["items"], repeats=params.repeats)
    write_records(snakemake.output.records, rows)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

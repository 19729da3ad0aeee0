"""Time both tiers with one data set of long reads on every device and number of threads.

Input: `index` (a folder), `reads`. Params: `case` (a data set of `timed_datasets`), its `name`, `both_strands`,
`settings` (of `paper_settings`), `repeats`. Output: `records`.
"""

from typing import Any

from warpseed.batches import Settings
from warpseed.compute.machine import usable_cores
from warpseed.fm_index.binned import PAPER_PARAMETERS
from warpseed.measure.records import write_records
from warpseed.mems.timing import Case, time_dataset
from warpseed.workflow.job import rule_log, thread_counts


def main(snakemake: Any) -> None:
    """Time, and write the records."""
    params, reads = snakemake.params, snakemake.input.reads
    chosen, strands = params.case, 2 if params.both_strands else 1
    changed = [PAPER_PARAMETERS._replace(**setting) for setting in params.settings]
    case = Case(params.name, reads, chosen["count"], chosen["min_lengths"], chosen["kinds"], strands, changed)
    settings = Settings(chosen["tiers"], chosen["devices"], thread_counts(chosen["threads"], usable_cores()))
    records = time_dataset(snakemake.input.index, case, settings, items=chosen["items"], repeats=params.repeats)
    write_records(snakemake.output.records, records)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

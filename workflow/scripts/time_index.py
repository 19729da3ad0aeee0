"""Time building the index that the fast tier needs, the CPU's beside those of other tools, and tell the memory of both.

Input: `fasta`. Params: `system`, `threads` (numbers and "all"), `repeats`, `beside`, `devices`,
`first_bases`. Output: `records`.
"""

from typing import Any

from warpseed.compute.machine import usable_cores
from warpseed.measure.builds import time_builds
from warpseed.measure.records import write_records
from warpseed.workflow.job import rule_log, thread_counts


def main(snakemake: Any) -> None:
    """Build again and again, and write the records."""
    params = snakemake.params
    records = time_builds(
        snakemake.input.fasta,
        system=params.system,
        threads=thread_counts(params.threads, usable_cores()),
        repeats=params.repeats,
        beside=params.beside,
        devices=params.devices,
        first_bases=params.first_bases,
    )
    write_records(snakemake.output.records, records)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

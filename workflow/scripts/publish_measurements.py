"""Publish the records of this run as those of a reference machine.

Input: `records` (record TSVs of one reference). Params: `published` (TSVs among them for each file of the output),
`config`. Output: `records` (TSVs), `provenance` (JSON).
"""

from typing import Any

from warpseed.measure.machines import describe_run, one_machine
from warpseed.measure.provenance import write_provenance
from warpseed.measure.records import publish_records
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Check that one machine measured the records, then write the files."""
    given, params, output = snakemake.input, snakemake.params, snakemake.output
    machine = one_machine(given.records)
    for published, records in zip(output.records, params.published.values(), strict=True):
        publish_records(published, records, machine=machine)
    write_provenance(output.provenance, describe_run(given.records), params.config, names_only=True)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

"""Publish the records of this run as those of a reference machine.

Input: `records` (record TSVs of one reference). Params: `systems` (system to its TSVs among them), `reference` (its
name), `config`. Output: `records` (a TSV a system), `provenance` (JSON).
"""

from typing import Any

from warpseed.compute.machine import machine_name
from warpseed.measure.provenance import write_provenance
from warpseed.measure.records import publish_records
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Check that this machine measured the records, then write the files."""
    params, output = snakemake.params, snakemake.output
    for published, records in zip(output.records, params.systems.values(), strict=True):
        publish_records(published, records, reference=params.reference, machine=machine_name())
    write_provenance(output.provenance, params.config, names_only=True)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job.log[0]):
        main(job)

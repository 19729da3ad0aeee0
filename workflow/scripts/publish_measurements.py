"""Publish the records of this run as those of a reference machine.

Input: `records` (record TSVs of one reference). Params: `reference` (its name), `config`. Output: `records` (all of
them in one TSV), `provenance` (JSON).
"""

from typing import Any

from warpseed.compute.machine import machine_name
from warpseed.measure.provenance import write_provenance
from warpseed.measure.records import publish_records
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Check that this machine measured the records, then write both files."""
    params, output = snakemake.params, snakemake.output
    publish_records(output.records, snakemake.input.records, reference=params.reference, machine=machine_name())
    write_provenance(output.provenance, params.config, names_only=True)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job.log[0]):
        main(job)

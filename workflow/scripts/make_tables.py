"""Write the tables of each paper.

Input: `records` and `reference_records` (lists of record TSVs), `published` (TSVs), `papers` (YAML). Output: `tables`
(TSVs, named by their folders, the systems, and their stems).
"""

from typing import Any

from warpseed.report.measurements import load_measurements
from warpseed.report.systems import write_tables
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Read the records and write every table asked for."""
    given = snakemake.input
    measurements = load_measurements(given.records, given.reference_records, given.published, given.papers)
    write_tables(measurements, snakemake.output.tables)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

"""Write the tables of paper 000.

Input: `records` and `reference_records` (lists of record TSVs), `published`. Output: `tables` (TSVs, named by their
stems).
"""

from typing import Any

from warpseed.report.tables import load_measurements, write_tables
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Read the records and write every table asked for."""
    given = snakemake.input
    write_tables(load_measurements(given.records, given.reference_records, given.published), snakemake.output.tables)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job.log[0]):
        main(job)

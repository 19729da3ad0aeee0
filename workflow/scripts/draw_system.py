"""Write the tables and draw the figures of one paper.

Input: `records` and `reference_records` (lists of record TSVs), `published` (TSVs), `papers` (YAML). Output: `tables`
(TSVs) and `figures` (.svg, .pdf, .png, and .tsv for the plotted values), named by their folder, the system, and their
stems.
"""

from typing import Any

from warpseed.report.measurements import load_measurements
from warpseed.report.systems import draw_figures, write_tables
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Read the records, write every table and draw every figure asked for."""
    given, made = snakemake.input, snakemake.output
    measurements = load_measurements(given.records, given.reference_records, given.published, given.papers)
    write_tables(measurements, made.tables)
    draw_figures(measurements, made.figures)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

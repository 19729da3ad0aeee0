"""Draw the figures of paper 000, all in one process.

Input: `records` and `reference_records` (lists of record TSVs), `published`. Output: `figures` (.svg, .pdf, .png, and
.tsv for the plotted values, named by their stems).
"""

from typing import Any

from warpseed.report.figures import draw_figures
from warpseed.report.tables import load_measurements
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Read the records and draw every figure asked for."""
    given = snakemake.input
    draw_figures(load_measurements(given.records, given.reference_records, given.published), snakemake.output.figures)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job.log[0]):
        main(job)

"""Draw the figures of each paper, all in one process.

Input: `records` and `reference_records` (lists of record TSVs), `published` (TSVs), `papers` (YAML). Output: `figures`
(.svg, .pdf, .png, and .tsv for the plotted values, named by their folders, the systems, and their stems).
"""

from typing import Any

from warpseed.report.measurements import load_measurements
from warpseed.report.systems import draw_figures
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Read the records and draw every figure asked for."""
    given = snakemake.input
    measurements = load_measurements(given.records, given.reference_records, given.published, given.papers)
    draw_figures(measurements, snakemake.output.figures)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

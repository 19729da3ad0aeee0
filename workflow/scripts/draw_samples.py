"""Draw the seeds of each sample along its reference, all in one process.

Input: `summaries` and `densities` (TSVs, in one order). Output: `figures` (.svg, .pdf, .png, named by the samples).
"""

from typing import Any

from warpseed.report.samples import draw_samples, read_sample
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Read every sample, and draw it."""
    given = snakemake.input
    samples = map(read_sample, given.summaries, given.densities)
    draw_samples(samples, snakemake.output.figures)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

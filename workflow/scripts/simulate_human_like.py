"""Simulate a human-like genome.

Params: `simulation` (the arguments of warpseed.sequences.human_like.simulate_human_like). Output: `fasta`.
"""

from typing import Any

from warpseed.sequences.human_like import simulate_human_like
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Simulate the genome and write it, on the job's threads."""
    simulate_human_like(snakemake.output.fasta, threads=snakemake.threads, **snakemake.params.simulation)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

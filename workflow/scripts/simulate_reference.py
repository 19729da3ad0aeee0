"""Simulate a genome.

Params: `simulation` (the arguments of warpseed.sequences.simulate.simulate_reference). Output: `fasta`.
"""

from typing import Any

from warpseed.sequences.simulate import simulate_reference
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Simulate the genome and write it."""
    simulate_reference(snakemake.output.fasta, **snakemake.params.simulation)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

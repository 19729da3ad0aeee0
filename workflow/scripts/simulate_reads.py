"""Simulate reads on a reference.

Input: `fasta`. Params: `number`, `length`, `error_rate`, `seed`. Output: `reads` (FASTA).
"""

from typing import Any

from warpseed.sequences.queries import write_fasta
from warpseed.sequences.reference import read_reference
from warpseed.sequences.simulate import simulate_reads
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Draw the reads and write them."""
    params = snakemake.params
    reads = simulate_reads(
        read_reference(snakemake.input.fasta),
        count=params.number,
        length=params.length,
        error_rate=params.error_rate,
        seed=params.seed,
    )
    write_fasta(reads, snakemake.output.reads)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job.log[0]):
        main(job)

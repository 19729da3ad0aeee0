"""Simulate reads on a reference.

Input: `fasta`. Params: `number` of reads, and the other arguments of warpseed.sequences.simulate.simulate_reads by
their names. Output: `reads` (FASTQ when they have qualities, otherwise FASTA).
"""

from typing import Any

from warpseed.sequences.queries import write_fasta, write_fastq
from warpseed.sequences.reference import read_reference
from warpseed.sequences.simulate import simulate_reads
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Draw the reads and write them."""
    arguments = dict(snakemake.params.items())
    reads = simulate_reads(read_reference(snakemake.input.fasta), count=arguments.pop("number"), **arguments)
    write = write_fasta if reads.qualities is None else write_fastq
    write(reads, snakemake.output.reads)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

"""Cut k-mers from reads.

Input: `reads` (FASTA or FASTQ). Params: `k`, `number`, `seed`, `deduplicate`, `traced` (whether they are named
READ:OFFSET). Output: `kmers` (FASTA).
"""

from typing import Any

from warpseed.sequences.cutting import cut_kmers
from warpseed.sequences.queries import read_queries, write_fasta
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Cut the k-mers and write them."""
    params = snakemake.params
    kmers = cut_kmers(
        read_queries(snakemake.input.reads),
        k=params.k,
        count=params.number,
        seed=params.seed,
        deduplicate=params.deduplicate,
        traced=params.traced,
    )
    write_fasta(kmers, snakemake.output.kmers)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

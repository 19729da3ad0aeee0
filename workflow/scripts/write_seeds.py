"""Find the seeds of a user's sample and write them.

Input: `index` (a folder), `kmers`. Params: `mismatches`, `max_hits`, `device`. Output: `bed`.
"""

from typing import Any

from warpseed.fm_index.store import open_index
from warpseed.job import rule_log
from warpseed.kmer_seeds import find_kmers
from warpseed.kmer_seeds.output import write_hits


def main(snakemake: Any) -> None:
    """Search with the fast tier and write BED in the order of the k-mers."""
    params = snakemake.params
    hits = find_kmers(
        open_index(snakemake.input.index),
        snakemake.input.kmers,
        max_mismatches=params.mismatches,
        tier="fast",
        device=params.device,
        threads=snakemake.threads,
        max_hits=params.max_hits,
    )
    write_hits(snakemake.output.bed, hits)
    print(f"{len(hits)} hits; {hits.dropped_hits} hits of {hits.dropped_queries} k-mers dropped by max_hits")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job.log[0]):
        main(job)

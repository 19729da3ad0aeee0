"""Find the seeds of a user's sample and write them.

Input: `index` (a folder), `kmers`. Params: `mismatches`, `max_hits`, `device`. Output: `bed`.
"""

from typing import Any

from warpseed.compute.stopwatch import Stopwatch
from warpseed.kmer_seeds import iter_kmer_hits
from warpseed.kmer_seeds.output import write_hits
from warpseed.output.totals import Totals
from warpseed.workflow.job import rule_log
from warpseed.workflow.progress import Progress


def main(snakemake: Any) -> None:
    """Search with the fast tier, batch by batch, and write BED in the order of the k-mers."""
    params, totals, watch = snakemake.params, Totals(), Stopwatch()
    batches = iter_kmer_hits(
        snakemake.input.index,
        snakemake.input.kmers,
        max_mismatches=params.mismatches,
        tier="fast",
        device=params.device,
        threads=snakemake.threads,
        max_hits=params.max_hits,
        watch=watch,
    )
    batches = Progress(totals, "k-mers", watch).over(batches)
    written = write_hits(snakemake.output.bed, batches, threads=snakemake.threads)
    print(f"{written} hits written; max_hits dropped {totals.dropped_hits} hits of {totals.dropped_queries} k-mers")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

"""Find the seeds of a user's sample and write them.

Input: `index` (a folder), `queries`. Params: `parameters` (of `iter_kmer_hits`), `device`. Output: `bed`.
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
    given, params, totals, watch = snakemake.input, snakemake.params, Totals(), Stopwatch()
    search = dict(params.parameters, device=params.device, threads=snakemake.threads, watch=watch)
    batches = Progress(totals, "k-mers", watch).over(iter_kmer_hits(given.index, given.queries, **search))
    written = write_hits(snakemake.output.bed, batches, threads=snakemake.threads)
    print(f"{written} hits written; max_hits dropped {totals.dropped_hits} hits of {totals.dropped_queries} k-mers")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

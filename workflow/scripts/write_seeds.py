"""Find the seeds of a user's sample and write them.

Input: `index` (a folder), `kmers`. Params: `mismatches`, `max_hits`, `device`. Output: `bed`.
"""

from collections.abc import Iterator
from typing import Any

from warpseed.kmer_seeds import iter_kmer_hits
from warpseed.kmer_seeds.output import write_hits
from warpseed.output.hits import Hits
from warpseed.workflow.job import rule_log


def counted(batches: Iterator[Hits], dropped: dict[str, int]) -> Iterator[Hits]:
    """Pass batches on, and add up what max_hits dropped from them."""
    for hits in batches:
        dropped["kmers"] += hits.dropped_queries
        dropped["hits"] += hits.dropped_hits
        yield hits


def main(snakemake: Any) -> None:
    """Search with the fast tier, batch by batch, and write BED in the order of the k-mers."""
    params, dropped = snakemake.params, {"kmers": 0, "hits": 0}
    batches = iter_kmer_hits(
        snakemake.input.index,
        snakemake.input.kmers,
        max_mismatches=params.mismatches,
        tier="fast",
        device=params.device,
        threads=snakemake.threads,
        max_hits=params.max_hits,
    )
    written = write_hits(snakemake.output.bed, counted(batches, dropped), threads=snakemake.threads)
    print(f"{written} hits written; max_hits dropped {dropped['hits']} hits of {dropped['kmers']} k-mers")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job.log[0]):
        main(job)

"""Find the seeds of a part of a sample with k-mers.

Input: `index` (a folder), `queries`. Params: `parameters` (of `kmer_search`), `device`, `share` (which of how many
parts, from 0). Output: `runs`, a run file of sorted BED lines.
"""

from typing import Any

from warpseed.kmer_seeds import kmer_search
from warpseed.kmer_seeds.output import LINES
from warpseed.workflow.job import rule_log
from warpseed.workflow.shares import write_share


def main(snakemake: Any) -> None:
    """Search with the fast tier, and write what is found."""
    params = snakemake.params
    search = kmer_search(snakemake.input.index, **params.parameters, device=params.device, threads=snakemake.threads)
    write_share(snakemake, search, LINES["bed"], "k-mers")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

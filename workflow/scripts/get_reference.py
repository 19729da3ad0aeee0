"""Download a genome, and verify it.

Params: `genome` (`name`, `url`, `contigs`, `other_contigs`, as in a CatalogueEntry), `sha256` (or None).
Output: `fasta`.
"""

from typing import Any

from warpseed.workflow.download import CatalogueEntry, fetch_reference
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Fetch it."""
    entry = CatalogueEntry(**snakemake.params.genome)
    print(f"Downloading {entry.url}", flush=True)
    fetch_reference(entry, snakemake.output.fasta, sha256=snakemake.params.sha256)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

"""Download a genome of the catalogue or of a URL, and verify it.

Input: `catalogue`. Params: `source` (a name of the catalogue or a URL), `sha256` (or None). Output: `fasta`.
"""

from pathlib import Path
from typing import Any

from warpseed.errors import ConfigError
from warpseed.workflow.download import fetch_reference, load_catalogue, resolve_reference
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Look the source up and fetch it."""
    source = snakemake.params.source
    entry = resolve_reference(source, load_catalogue(snakemake.input.catalogue))
    if isinstance(entry, Path):
        raise ConfigError(f"The reference {source!r} is a file and needs no download; use it where it lies.")
    print(f"Downloading {entry.url}", flush=True)
    fetch_reference(entry, snakemake.output.fasta, sha256=snakemake.params.sha256)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job.log[0]):
        main(job)

"""Find the placements of a part of a sample's reads.

Input: `index` (a folder), `queries`. Params: `parameters` (of `read_search`, and `multiple` of `bam_format`), `device`,
`share` (which of how many parts, from 0). Output: `runs`, a run file of sorted BAM records.
"""

from typing import Any

from warpseed.one_error import read_search
from warpseed.one_error.bam import bam_format
from warpseed.workflow.job import rule_log
from warpseed.workflow.shares import write_share


def main(snakemake: Any) -> None:
    """Search with the fast tier, and write what is found."""
    params, wanted = snakemake.params, dict(snakemake.params.parameters)
    format = bam_format(wanted.pop("multiple"))
    search = read_search(
        snakemake.input.index, keep_reads=True, **wanted, device=params.device, threads=snakemake.threads
    )
    write_share(snakemake, search, format, "reads")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

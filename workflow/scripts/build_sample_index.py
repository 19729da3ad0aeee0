"""Make the index that searches of samples read.

Input: `fasta`. Params: `parts`, `occ_interval`, `sa_interval`, `table_length`, `device`. Output: `index` (a folder).
"""

from typing import Any

from warpseed.compute.machine import return_what_is_freed
from warpseed.errors import how_many
from warpseed.fm_index.make import make_index
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Make the index."""
    params = snakemake.params
    return_what_is_freed()
    index = make_index(
        snakemake.input.fasta,
        snakemake.output.index,
        parts=params.parts,
        occ_interval=params.occ_interval,
        sa_interval=params.sa_interval,
        table_length=params.table_length,
        threads=snakemake.threads,
        device=params.device,
    )
    sizes = f"{how_many(len(index.names), 'contig')}, {how_many(index.bases, 'base')}"
    print(f"{sizes}, parts {', '.join(index.parts)}")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

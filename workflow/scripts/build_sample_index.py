"""Build the index that the fast tier needs, for samples.

Input: `fasta`. Params: `occ_interval`, `sa_interval`, `table_length`, `device`. Output: `index` (a folder).
"""

from typing import Any

from warpseed.errors import how_many
from warpseed.fm_index.build import build_index
from warpseed.fm_index.store import save_index
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Build and save."""
    params = snakemake.params
    index = build_index(
        snakemake.input.fasta,
        parts=["fast"],
        occ_interval=params.occ_interval,
        sa_interval=params.sa_interval,
        table_length=params.table_length,
        threads=snakemake.threads,
        device=params.device,
    )
    save_index(index, snakemake.output.index)
    sizes = f"{how_many(len(index.names), 'contig')}, {how_many(index.bases, 'base')}"
    print(f"{sizes}, parts {', '.join(index.parts)}")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

"""Find the maximal exact matches of a part of a sample's reads.

Input: `index` (a folder), `queries`. Params: `parameters` (of `mem_search`), `device`, `share` (which of how many
parts, from 0). Output: `runs`, a run file of sorted PAF lines.
"""

from typing import Any

from warpseed.mems import mem_search
from warpseed.mems.output import LINES
from warpseed.workflow.job import rule_log
from warpseed.workflow.shares import write_share


def main(snakemake: Any) -> None:
    """Search with the fast tier, and write what is found."""
    params = snakemake.params
    search = mem_search(snakemake.input.index, **params.parameters, device=params.device, threads=snakemake.threads)
    write_share(snakemake, search, LINES["paf"], "reads")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

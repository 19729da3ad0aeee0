"""Merge what was found of all parts of a sample, and count it.

Input: `runs` (run files), `index` (a folder). Params: `facts` (of the sample). Output: `seeds` (BGZF), `seeds_index`,
`summary`, `density`.
"""

from pathlib import Path
from typing import Any

from warpseed.fm_index.store import open_index
from warpseed.output.density import Density
from warpseed.output.sorted_lines import merge_run_files
from warpseed.output.totals import write_summary
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Merge, and write both tables."""
    output = snakemake.output
    index = open_index(snakemake.input.index, check=False)
    density = Density(index.names, index.lengths)
    # Of a contig that is too long for a .tbi or .bai the index is a .csi, and stands under this name as well.
    totals = merge_run_files(
        snakemake.input.runs, output.seeds, index_path=output.seeds_index, threads=snakemake.threads, density=density
    )  # fmt: skip
    density.write(output.density)
    write_summary(output.summary, totals, snakemake.params.facts | {"seeds": Path(output.seeds).name})
    for name, number in totals.numbers().items():
        print(f"{name}: {number:,}")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

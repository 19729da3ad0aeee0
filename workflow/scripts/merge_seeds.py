"""Merge what was found of all parts of a sample, and count it.

Input: `runs` (run files), `index` (a folder). Params: `facts` (of the sample). Output: `bed` (BGZF), `tbi`, `summary`,
`density`.
"""

import shutil
from pathlib import Path
from typing import Any

from warpseed.fm_index.store import open_index
from warpseed.kmer_seeds.output import LINES
from warpseed.output.density import Density
from warpseed.output.sorted_lines import merge_run_files
from warpseed.output.totals import write_summary
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Merge, and write both tables."""
    output = snakemake.output
    csi = Path(f"{output.bed}.csi")
    csi.unlink(missing_ok=True)
    index = open_index(snakemake.input.index, check=False)
    density = Density(index.names, index.lengths)
    totals = merge_run_files(
        snakemake.input.runs, output.bed, LINES["bed"], threads=snakemake.threads, density=density
    )  # fmt: skip
    if csi.exists():
        # A contig is too long for a .tbi; tabix and pysam tell by what is in the file.
        shutil.copyfile(csi, output.tbi)
    density.write(output.density)
    write_summary(output.summary, totals, snakemake.params.facts)
    for name, number in totals.numbers().items():
        print(f"{name}: {number:,}")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

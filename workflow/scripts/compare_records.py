"""Compare the records of a sample with each other: transform, distances, tree and figures.

Input: `reads`. Params: `tree`, `normalise`, `facts` (of the sample). Output: `transform`, `words`, `distances`,
`phylip`, `newick`, `heatmap`, `dendrogram`, `summary`.
"""

from pathlib import Path
from typing import Any

from warpseed.batches import Options
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt.collection import Wanted, write_collection
from warpseed.output.totals import write_summary
from warpseed.report.clusters import figures_of
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Compare with the fast tier, and write all files."""
    params, output = snakemake.params, snakemake.output
    wanted = Wanted(Options(threads=snakemake.threads).checked(), tree=params.tree, normalise=params.normalise)
    prefix = output.distances.removesuffix(".distances.tsv")
    size = write_collection(snakemake.input.reads, prefix, wanted, figures_of, Stopwatch())
    write_summary(output.summary, size, params.facts | {"seeds": Path(output.distances).name})
    for name, number in size.numbers().items():
        print(f"{name}: {number:,}")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

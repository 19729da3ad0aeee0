"""Count the k-mers of a sample's reads.

Input: `reads`. Params: `k`, `facts` (of the sample). Output: `kmers` (a TSV, BGZF), `summary`.
"""

from pathlib import Path
from typing import Any

from warpseed.batches import Options
from warpseed.compute.stopwatch import Stopwatch
from warpseed.output.totals import write_summary
from warpseed.tree_bitmap.search import checked_request, write_stream
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Count with the fast tier, and write both tables."""
    params, output = snakemake.params, snakemake.output
    request = checked_request(params.k, None, 0, True, Options(threads=snakemake.threads))
    totals = write_stream(snakemake.input.reads, output.kmers, request, watch=Stopwatch())
    write_summary(output.summary, totals, params.facts | {"seeds": Path(output.kmers).name})
    for name, number in totals.numbers().items():
        print(f"{name}: {number:,}")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

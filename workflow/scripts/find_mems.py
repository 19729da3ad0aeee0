"""Find the maximal exact matches of a part of a sample's reads.

Input: `index` (a folder), `queries`. Params: `parameters` (of `mem_search`), `device`, `share` (which of how many
parts, from 0). Output: `runs`, a run file of sorted PAF lines.
"""

from typing import Any

from warpseed.batches import write_results
from warpseed.compute.stopwatch import Stopwatch
from warpseed.mems import mem_search
from warpseed.mems.output import LINES
from warpseed.output.sorted_lines import open_run_writer
from warpseed.workflow.job import rule_log
from warpseed.workflow.progress import Progress


def main(snakemake: Any) -> None:
    """Search with the fast tier, and write what is found as it comes."""
    given, params, threads, watch = snakemake.input, snakemake.params, snakemake.threads, Stopwatch()
    search = mem_search(given.index, **params.parameters, device=params.device, threads=threads)
    totals = write_results(
        given.queries,
        search,
        open_run_writer(snakemake.output.runs, LINES["paf"], threads=threads),
        share=(params.share[0], params.share[1]),
        watch=watch,
        tell=lambda totals, found: Progress(totals, "reads", watch).told(found),
    )
    for name, number in totals.numbers().items():
        print(f"{name}: {number:,}")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

"""A part of a sample's queries, searched: what the rules that find seeds do, whatever the system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpseed.batches import write_results
from warpseed.compute.stopwatch import Stopwatch
from warpseed.output.sorted_lines import open_run_writer
from warpseed.workflow.progress import Progress, hits_of

if TYPE_CHECKING:
    from warpseed.output.lines import Format
    from warpseed.tasks import Search

__all__ = ["write_share"]


def write_share(job: Any, search: Search, format: Format, queries: str) -> None:
    """Search a part of a sample's queries, write what is found as it comes, tell how far it is, and count it.

    Parameters
    ----------
    job : of a rule whose input has `queries`, its params `share` (which of how many parts, from 0), its output `runs`
    search : Search
    format : Format of the lines of the run file
    queries : what is searched, in words, such as 'k-mers'
    """
    watch, (part, parts) = Stopwatch(), job.params.share
    totals = write_results(
        job.input.queries,
        search,
        open_run_writer(job.output.runs, format, threads=job.threads),
        share=(part, parts),
        watch=watch,
        tell=lambda totals, found: Progress(hits_of(totals, queries), watch).told(found),
    )
    for name, number in (watch.counts | totals.numbers()).items():
        print(f"{name}: {number:,}")

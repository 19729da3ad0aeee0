"""Time other tools and our command line with one data set of long reads, as processes in turns, and write the records.

Input: `reference`, `index` (our folder), `reads`. Params: `case` (a data set of `timed_datasets`), its `name`,
`repeats`. Output: `records`.
"""

from typing import Any

from warpseed.measure.beside import new_beside
from warpseed.measure.records import write_records
from warpseed.mems.peers import time_beside_peers
from warpseed.mems.timing import Case
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Time every tool of the data set, and write the records."""
    given, params = snakemake.input, snakemake.params
    chosen = params.case
    case = Case(params.name, given.reads, chosen["count"], chosen["min_lengths"], chosen["kinds"], 2)
    with new_beside(given.reference, given.index) as beside:
        records = time_beside_peers(beside, case, tools=chosen["peers"], repeats=params.repeats)
    write_records(snakemake.output.records, records)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

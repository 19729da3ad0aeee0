"""Time other tools and our command line with one data set of reads, as processes in turns, and write the records.

Input: `reference`, `index` (our folder), `reads`. Params: `case` (a data set of `timed_datasets`), its `name`,
`repeats`. Output: `records`.
"""

from typing import Any

from warpseed.compute.machine import usable_cores
from warpseed.measure.beside import new_beside
from warpseed.measure.records import write_records
from warpseed.one_error.peers import time_beside_peers
from warpseed.one_error.reads import Criteria
from warpseed.one_error.timing import Case
from warpseed.workflow.job import rule_log, thread_counts


def main(snakemake: Any) -> None:
    """Time every tool of the data set, and write the records."""
    given, chosen = snakemake.input, snakemake.params.case
    case = Case(
        snakemake.params.name, given.reads, chosen["count"], chosen["length"], Criteria(chosen["edits"], 2), [], []
    )  # fmt: skip
    threads = thread_counts(chosen["threads"], usable_cores())
    with new_beside(given.reference, given.index) as beside:
        records = time_beside_peers(
            beside, case, tools=chosen["peers"], threads=threads, repeats=snakemake.params.repeats
        )
    write_records(snakemake.output.records, records)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

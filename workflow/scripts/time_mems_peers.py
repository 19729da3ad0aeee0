"""Time other tools and our command line with one data set of long reads, as processes in turns, and write the records.

Input: `reference`, `index` (our folder), `reads`. Params: `case` (a data set of `timed_datasets`), its `name`,
`repeats`. Output: `records`.
"""

import tempfile
from pathlib import Path
from typing import Any

from warpseed.measure.peers.process import plain_copy
from warpseed.measure.records import write_records
from warpseed.mems.peers import Beside, time_beside_peers
from warpseed.mems.timing import Case
from warpseed.sequences.reference import read_reference
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Time every tool of the data set, and write the records."""
    given, params = snakemake.input, snakemake.params
    chosen = params.case
    case = Case(params.name, given.reads, chosen["count"], chosen["min_lengths"], chosen["kinds"], 2)
    with tempfile.TemporaryDirectory() as folder:
        reference = plain_copy(given.reference, Path(folder) / "reference.fa")
        beside = Beside(str(reference), given.index, read_reference(given.reference).names, Path(folder))
        records = time_beside_peers(beside, case, tools=chosen["peers"], repeats=params.repeats)
    write_records(snakemake.output.records, records)


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

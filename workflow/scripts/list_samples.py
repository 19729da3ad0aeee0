"""Join the summaries of all samples to one table.

Input: `summaries`. Output: `table`.
"""

from pathlib import Path
from typing import Any

from warpseed.sequences.files import atomic_path
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Write a header and a line a sample."""
    summaries = [Path(path).read_bytes().splitlines(keepends=True) for path in snakemake.input.summaries]
    with atomic_path(snakemake.output.table) as temporary:
        header = [summary[0] for summary in summaries[:1]]
        temporary.write_bytes(b"".join([*header, *(summary[1] for summary in summaries)]))


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

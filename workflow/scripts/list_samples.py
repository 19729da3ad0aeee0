"""Join the summaries of all samples to one table, with all their columns.

Input: `summaries`. Output: `table`.
"""

from pathlib import Path
from typing import Any

from warpseed.sequences.files import atomic_path
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Write a header and a line a sample; a column that a sample's summary does not have is empty in its line."""
    tables = [Path(path).read_text(encoding="utf-8", errors="surrogateescape") for path in snakemake.input.summaries]
    rows = []
    for table in tables:
        columns, values = (line.split("\t") for line in table.splitlines())
        rows.append(dict(zip(columns, values, strict=True)))
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = [columns, *([row.get(column, "") for column in columns] for row in rows)]
    text = "".join("\t".join(line) + "\n" for line in lines)
    with atomic_path(snakemake.output.table) as temporary:
        temporary.write_bytes(text.encode("utf-8", errors="surrogateescape"))


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

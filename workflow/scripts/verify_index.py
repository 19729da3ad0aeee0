"""Compare every file of an index with its recorded SHA-256.

Input: `index` (a folder). Output: `verified`, one line that says how much was checked.
"""

from typing import Any

from warpseed.fm_index.store import verify_index
from warpseed.sequences.files import atomic_path
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Verify, and say so."""
    size = verify_index(snakemake.input.index)
    with atomic_path(snakemake.output.verified) as temporary:
        temporary.write_text(f"{size} bytes agree with their SHA-256\n")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

"""Time the GPU kernels with k-mers that lie on the device, beside the rate at which it fetches random sectors.

Input: `index` (a folder). Params: `cases` (dicts of `k`, `mismatches`, `count`, `error_rate` and `tiers`), `repeats`,
`seed`, `max_hits`. Output: `records`.
"""

from typing import Any

from warpseed.kmer_seeds.floors import measure_limits
from warpseed.measure.records import write_records
from warpseed.workflow.job import rule_log


def main(snakemake: Any) -> None:
    """Measure, and write the records."""
    params = snakemake.params
    records = measure_limits(
        snakemake.input.index, params.cases, repeats=params.repeats, seed=params.seed, max_hits=params.max_hits
    )
    write_records(snakemake.output.records, records)
    for record in records:
        print(record["case"], record["tier"], record["metric"], record["value"], record["unit"])


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

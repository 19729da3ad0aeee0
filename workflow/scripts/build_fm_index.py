"""Build an index, and record the seconds of each stage and the bytes of each part.

Input: `fasta`. Params: `parts`, `occ_interval`, `sa_interval`, `table_length`, `device`.
Output: `index` (a folder), `records`.
"""

import tempfile
from pathlib import Path
from typing import Any

from warpseed.compute.machine import machine_name, return_what_is_freed, usable_cores
from warpseed.fm_index.make import make_index
from warpseed.measure.records import SHARED, index_rows, write_records
from warpseed.measure.timing import side_fields
from warpseed.workflow.job import rule_log


def warm_up(parameters: dict[str, Any]) -> None:
    """Build the index of a tiny genome, so that what is timed afterwards is compiled."""
    with tempfile.TemporaryDirectory() as folder:
        fasta = Path(folder) / "tiny.fa"
        fasta.write_text(">tiny\n" + "ACGTTGCATGCCATGANN" * 20 + "\n")
        make_index(fasta, Path(folder) / "index", threads=2, **parameters)


def main(snakemake: Any) -> None:
    """Make the index, record."""
    params, threads = snakemake.params, usable_cores()
    names = ("parts", "occ_interval", "sa_interval", "table_length", "device")
    parameters = {name: getattr(params, name) for name in names}
    return_what_is_freed()
    warm_up(parameters)
    index = make_index(snakemake.input.fasta, snakemake.output.index, threads=threads, **parameters)

    fields = side_fields(SHARED, tier="-", device=params.device, threads=threads)
    fields |= {"repeat": 0, "machine": machine_name()}
    records = index_rows(index.report(), bases=index.bases, reference=snakemake.wildcards.reference, **fields)
    build = fields | {"system": SHARED, "item": "index", "case": "build", "metric": "time", "unit": "s"}
    records += [build | {"stage": stage, "value": seconds} for stage, seconds in index.seconds.items()]
    write_records(snakemake.output.records, records)
    for record in records:
        print(record["case"], record["stage"], record["metric"], record["value"], record["unit"])


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

"""Simulate a human-like genome, and record the seconds that it took.

Params: `simulation` (the arguments of warpseed.sequences.human_like.simulate_human_like). Output: `fasta`, `records`.
"""

import tempfile
from pathlib import Path
from typing import Any

from warpseed.compute.stopwatch import Stopwatch
from warpseed.measure.records import SHARED, join_parameters, measured_rows, write_records
from warpseed.sequences.human_like import simulate_human_like
from warpseed.workflow.job import rule_log


def warm_up(threads: int) -> None:
    """Simulate a tiny genome, so that what is timed afterwards is compiled."""
    with tempfile.TemporaryDirectory() as folder:
        simulate_human_like(Path(folder) / "tiny.fa", size=100_000, seed=1, threads=threads)


def main(snakemake: Any) -> None:
    """Simulate the genome and write it, on the job's threads, and record."""
    simulation, threads, output = snakemake.params.simulation, snakemake.threads, snakemake.output
    warm_up(threads)
    watch = Stopwatch()
    with watch.stage("total"):
        simulate_human_like(output.fasta, threads=threads, **simulation)
    size = join_parameters({"bases": simulation["size"]})
    fields = {"system": SHARED, "item": "simulation", "tool": "warpseed", "case": "human_like", "parameters": size}
    write_records(output.records, measured_rows(watch, **fields, threads=threads))
    print(f"{simulation['size']:,} bases in {watch.seconds['total']:.3f} s")


if "snakemake" in globals():
    job = globals()["snakemake"]
    with rule_log(job):
        main(job)

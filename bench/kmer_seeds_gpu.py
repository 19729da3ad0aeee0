"""Where the time goes from file to file on the GPU, stage by stage, for a million k-mers of each data set.

Prints a Markdown table: the median seconds of each stage, opening the index and bringing it to the device apart.

    PYTHONPATH=workflow/scripts python bench/kmer_seeds_gpu.py --reference genome.fa.gz
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.build import build_index
from warpseed.kmer_seeds import find_kmers
from warpseed.kmer_seeds.output import write_hits
from warpseed.sequences.cutting import cut_kmers
from warpseed.sequences.queries import write_fasta
from warpseed.sequences.reference import read_reference
from warpseed.sequences.simulate import simulate_reads

DATA_SETS = (("S11", 11, 0), ("S15", 15, 0), ("S20", 20, 1), ("S24", 24, 1), ("S30", 30, 2))
STAGES = ("read", "pack", "host_to_device", "kernel", "locate", "sort", "device_to_host", "lookup", "write", "total")


def measure(index, kmers: Path, mismatches: int, tier: str, output: Path, repeats: int) -> tuple[dict[str, float], int]:
    """Median seconds of each stage over `repeats` runs after one that warms up, and the hits."""
    runs: list[dict[str, float]] = []
    for _ in range(repeats + 1):
        watch = Stopwatch()
        began = time.perf_counter()
        hits = find_kmers(
            index, str(kmers), max_mismatches=mismatches, tier=tier, device="gpu", max_hits=128, watch=watch
        )
        with watch.stage("write"):
            write_hits(output, hits, threads=4)
        watch.add("total", time.perf_counter() - began)
        runs.append(watch.seconds)
    return {stage: median(run.get(stage, 0.0) for run in runs[1:]) for stage in STAGES}, len(hits)


def main() -> None:
    """Cut the data sets, search them in both tiers, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", required=True, help="FASTA, plain or gzip")
    parser.add_argument("--count", type=int, default=1_000_000, help="k-mers of each data set")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    index = build_index(options.reference, parts=("fast", "paper"), threads=2)
    reads = simulate_reads(read_reference(options.reference), count=options.count, length=100, seed=2)
    print("| data set | tier | hits | " + " | ".join(f"{stage}, ms" for stage in STAGES) + " |")
    print("|---|---|--:|" + "--:|" * len(STAGES))
    with tempfile.TemporaryDirectory() as folder:
        kmers, output = Path(folder) / "kmers.fa", Path(folder) / "hits.bed"
        for name, k, mismatches in DATA_SETS:
            write_fasta(cut_kmers(reads, k=k, count=options.count, seed=3), kmers)
            for tier in ("paper", "fast"):
                seconds, hits = measure(index, kmers, mismatches, tier, output, options.repeats)
                cells = " | ".join(f"{1e3 * seconds[stage]:.1f}" for stage in STAGES)
                print(f"| {name}, D={mismatches} | {tier} | {hits:,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()

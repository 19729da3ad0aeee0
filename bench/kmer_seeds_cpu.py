"""k-mer seeds on the CPU beside bowtie and bwa, both sides in one run, as a Markdown table.

    python bench/kmer_seeds_cpu.py --reference genome.fa.gz

Our stages: FASTA in, BED out, index open, compiled (median of 5). Bowtie: ``bowtie-align-s -f -v D -a -p N`` less its
loading (median of 3). Hits are compared before anything is timed. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

LIBRARY = Path(__file__).resolve().parents[1] / "workflow" / "scripts"
sys.path.insert(0, str(LIBRARY))

from warpseed.compute.machine import cpu_model, usable_cores  # noqa: E402
from warpseed.fm_index.build import build_index  # noqa: E402
from warpseed.fm_index.layout import SeedIndex  # noqa: E402
from warpseed.fm_index.store import open_index  # noqa: E402
from warpseed.kmer_seeds import cpu, find_kmers, iter_kmer_hits  # noqa: E402
from warpseed.kmer_seeds.kmers import pack_kmers  # noqa: E402
from warpseed.kmer_seeds.output import write_hits  # noqa: E402
from warpseed.measure.peers.bowtie import build_bowtie_index, parse_bowtie, run_bowtie  # noqa: E402
from warpseed.measure.peers.process import number_queries  # noqa: E402
from warpseed.measure.provenance import commit  # noqa: E402
from warpseed.output.rows import digest_rows  # noqa: E402
from warpseed.sequences.cutting import cut_kmers  # noqa: E402
from warpseed.sequences.queries import read_queries, write_fasta  # noqa: E402
from warpseed.sequences.reference import read_reference  # noqa: E402
from warpseed.sequences.simulate import simulate_reads  # noqa: E402


class Case(NamedTuple):
    """k-mers of one length with so many mismatches, and how many times faster than bowtie we should be."""

    k: int
    mismatches: int
    target: float


CASES = (Case(20, 0, 5), Case(20, 1, 8), Case(20, 2, 8), Case(30, 2, 20))
IN_MEMORY_TARGET = 7e6
INDEX_TARGET = 0.6
OUR_REPEATS, PEER_REPEATS = 5, 3
ERROR_RATE, READ_LENGTH = 0.01, 100


class Row(NamedTuple):
    """One comparison: seconds or a rate on each side."""

    what: str
    ours: str
    peer: str
    ratio: str
    target: str
    reached: bool | None


class Bench(NamedTuple):
    """What every measurement needs."""

    reference: Path
    folder: Path
    index: SeedIndex
    threads: int

    @property
    def bowtie(self) -> Path:
        """Prefix of bowtie's index."""
        return self.folder / "bowtie"

    def kmers(self, k: int) -> Path:
        """The k-mers of one length, named by number."""
        return self.folder / f"k{k}.fa"


def seconds_of(work: Callable[[], Any], repeats: int) -> float:
    """Median wall time after one run that does not count."""
    times = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return median(times[1:])


def run(command: list[str]) -> None:
    """Run a process quietly; CalledProcessError where it fails."""
    environment = os.environ | {"PYTHONPATH": str(LIBRARY)}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def compare(what: str, ours: float, peer: float, target: float | None) -> Row:
    """A row of two times; `target` is the ratio to reach."""
    ratio = peer / ours
    wanted = "" if target is None else f"≥ {target:g}"
    return Row(
        what, f"{ours:.3f} s", f"{peer:.3f} s", f"{ratio:.1f}", wanted, None if target is None else ratio >= target
    )


def check_hits(bench: Bench, case: Case) -> int:
    """Stop unless bowtie finds the same hits; returns their number."""
    hits = find_kmers(bench.index, bench.kmers(case.k), max_mismatches=case.mismatches, threads=bench.threads)
    output = bench.folder / "bowtie.tsv"
    run_bowtie(bench.bowtie, bench.kmers(case.k), max_mismatches=case.mismatches, output=output)
    rows = parse_bowtie(output, bench.index.names, read_queries(bench.kmers(case.k)).lengths)
    if digest_rows(rows) != hits.digest():
        sys.exit(f"k={case.k}, {case.mismatches} mismatches: bowtie has {len(rows)} hits, warpseed {len(hits)} others.")
    return len(hits)


def search_rows(bench: Bench, case: Case) -> Iterator[Row]:
    """Our stages against bowtie less its loading, then process against process."""
    found = check_hits(bench, case)
    fasta, bed = bench.kmers(case.k), bench.folder / "hits.bed"

    def stages() -> None:
        batches = iter_kmer_hits(bench.index, fasta, max_mismatches=case.mismatches, threads=bench.threads)
        write_hits(bed, batches, threads=bench.threads)

    ours = seconds_of(stages, OUR_REPEATS)
    options: dict[str, Any] = {"threads": bench.threads, "output": bench.folder / "bowtie.tsv"}
    runs = [run_bowtie(bench.bowtie, fasta, max_mismatches=case.mismatches, **options) for _ in range(PEER_REPEATS)]
    peer = median(each.seconds - each.load_seconds for each in runs)
    what = f"k={case.k}, {case.mismatches} mismatches ({found:,} hits)"
    yield compare(f"{what}: stages, bowtie less its loading", ours, peer, case.target)

    command = [sys.executable, "-m", "warpseed", "kmers", str(bench.folder / "index"), str(fasta), "-o", str(bed)]
    command += ["--max-mismatches", str(case.mismatches), "--threads", str(bench.threads)]
    whole = seconds_of(lambda: run(command), PEER_REPEATS)
    yield compare(f"{what}: process, bowtie's process", whole, median(each.seconds for each in runs), None)


def in_memory_row(bench: Bench) -> Row:
    """Exact search of packed 20-mers, both strands, located."""
    kmers = pack_kmers(read_queries(bench.kmers(20)))
    rate = len(kmers.lengths) / seconds_of(
        lambda: cpu.find_fast(bench.index, kmers, 0, threads=bench.threads), OUR_REPEATS
    )
    target = IN_MEMORY_TARGET * bench.threads
    return Row("k=20 exact, in memory", f"{rate / 1e6:.2f} M k-mers/s", "", "", f"≥ {target / 1e6:g} M", rate >= target)


def index_rows(bench: Bench) -> Iterator[Row]:
    """Building the index of both tiers on two threads, inside the process; bwa index as a process."""
    times = [build_index(bench.reference, threads=2).seconds["total"] for _ in range(OUR_REPEATS)]
    ours = median(times)
    yield Row("index, 2 threads", f"{ours:.3f} s", "", "", f"≤ {INDEX_TARGET} s", ours <= INDEX_TARGET)
    if shutil.which("bwa"):
        command = ["bwa", "index", "-p", str(bench.folder / "bwa"), str(bench.reference)]
        yield compare("index, 2 threads: bwa index", ours, seconds_of(lambda: run(command), PEER_REPEATS), 1)


def prepare(reference: Path, folder: Path, count: int, threads: int) -> Bench:
    """Both indexes, and the k-mers cut from reads with errors."""
    index = build_index(reference, parts=("fast", "paper"), threads=2)
    index.save(folder / "index")
    bench = Bench(reference, folder, open_index(folder / "index"), threads)
    build_bowtie_index(reference, bench.bowtie, 2)
    reads = simulate_reads(
        read_reference(reference), count=-(-count // 5), length=READ_LENGTH, error_rate=ERROR_RATE, seed=1
    )
    for k in sorted({case.k for case in CASES}):
        write_fasta(number_queries(cut_kmers(reads, k=k, count=count, seed=2)), bench.kmers(k))
    return bench


def main() -> int:
    """Print the table; the status is 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", type=Path, required=True, metavar="PATH", help="FASTA, plain or gzip")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of both sides (default 1)")
    parser.add_argument("--count", type=int, default=1_000_000, metavar="N", help="k-mers (default 1,000,000)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = prepare(options.reference, Path(folder), options.count, options.threads)
        rows = [row for case in CASES for row in search_rows(bench, case)]
        rows += [in_memory_row(bench), *index_rows(bench)]
    print(f"{cpu_model()}, {usable_cores()} cores; load {os.getloadavg()[0]:.1f}; commit {commit()}")
    print(f"{options.reference.name}, {options.count:,} k-mers, threads: {options.threads}\n")
    print("| what | warpseed | peer | ratio | target | reached |\n|---|---|---|---|---|---|")
    for row in rows:
        reached = {None: "", True: "yes", False: "no"}[row.reached]
        print("| " + " | ".join([*row[:-1], reached]) + " |")
    return int(any(row.reached is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())

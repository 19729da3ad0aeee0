"""Peak resident memory of building an index, against the target.

    python bench/index_memory.py --reference genome.fa.gz --threads 2

The target: (peak - 96 MB - 1 byte a base) / bases <= 12. The build is a process of its own, whose compiled code is in
Numba's cache already.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1] / "workflow" / "scripts"
BASELINE, TARGET = 96e6, 12.0
BUILD = """
import sys
sys.path.insert(0, sys.argv[1])
from warpseed.fm_index.build import build_index
from warpseed.compute.machine import peak_memory
index = build_index(sys.argv[2], parts=("fast", "paper"), threads=int(sys.argv[3]))
index.save(sys.argv[4])
print(peak_memory(), index.bases, index.seconds["total"])
"""


def measure(reference: Path, threads: int) -> tuple[int, int, float]:
    """Peak bytes of building and saving in a fresh process, bases indexed, seconds of building."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", BUILD, str(LIBRARY), str(reference), str(threads), str(Path(folder) / "index")]
        peak, bases, seconds = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return int(peak), int(bases), float(seconds)


def main() -> int:
    """Print a Markdown table; the status is 1 where the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", type=Path, required=True, metavar="PATH", help="FASTA, plain or gzip")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="2 or more sort both directions at once")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tiny = Path(folder) / "tiny.fa"
        tiny.write_text(">tiny\n" + "ACGTTGCATGCCATGANN" * 20 + "\n")
        measure(tiny, options.threads)
    peak, bases, seconds = measure(options.reference, options.threads)
    each = (peak - BASELINE - bases) / bases
    print("| reference | bases | threads | seconds | peak | (peak - 96 MB - 1 byte a base) / bases | target |")
    print("|---|---|---|---|---|---|---|")
    name = options.reference.name
    print(
        f"| {name} | {bases:,} | {options.threads} | {seconds:.2f} | {peak / 1e6:,.0f} MB | {each:.2f} | ≤ {TARGET:g} |"
    )
    return int(each > TARGET)


if __name__ == "__main__":
    sys.exit(main())

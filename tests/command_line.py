"""A small genome, k-mers of it and the command line on them, for the tests of what it writes and says."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import warpseed
from oracles.kmers import find_kmers, reverse_complement

DRAW = random.Random(5)
CHROMOSOME = "".join(DRAW.choices("ACGT", k=700))
CONTIGS = {"chr1": CHROMOSOME[:400] + "NNNNN" + CHROMOSOME[400:], "chr2": CHROMOSOME[100:160] + "A" * 60}
QUERIES = {
    "there": CHROMOSOME[10:30],
    "back": reverse_complement(CHROMOSOME[120:141]),
    "nowhere": "ACGT" * 10,
    "N": "AAANAAA",
}


def fasta(records: dict[str, str], width: int = 70) -> str:
    return "".join(
        f">{name}\n" + "".join(f"{bases[i : i + width]}\n" for i in range(0, len(bases), width))
        for name, bases in records.items()
    )


def save(folder: Path, name: str, content: str | bytes) -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def expected_bed(contigs: dict[str, str], queries: dict[str, str], mismatches: int, max_hits: int | None = None) -> str:
    names, labels = list(contigs), list(queries)
    hits = find_kmers(list(contigs.values()), list(queries.values()), mismatches, max_hits)
    return "".join(f"{names[c]}\t{s}\t{e}\t{labels[q]}\t{d}\t{'+-'[strand]}\n" for q, c, s, e, strand, d in hits)


def program(
    *arguments: str, before: Path | None = None, script: str | None = None, **options: object
) -> subprocess.Popen[bytes]:
    """A command as a process of its own; it finds the library where the tests find it, and modules in `before` first.

    With a script it is that, instead of the command.
    """
    library = os.pathsep.join([*([str(before)] if before else []), str(Path(warpseed.__file__).parents[1])])
    return subprocess.Popen(
        [sys.executable, *(["-m", "warpseed"] if script is None else ["-c", script]), *arguments],
        env=os.environ | {"PYTHONPATH": library, "CUDA_VISIBLE_DEVICES": ""},
        stderr=subprocess.PIPE,
        **options,  # type: ignore[call-overload]
    )

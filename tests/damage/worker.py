"""Open and search damaged indexes, one after the other: ``python -m damage.worker INDEX SCRATCH`` with cases on
standard input (one JSON list a line), an answer a line on standard output.

A case that ends or hangs this process is the one whose answer is missing: an alarm ends a process that hangs, compiled
code included.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
from pathlib import Path

import warpseed
from warpseed.errors import WarpseedError
from warpseed.kmer_seeds import find_kmers
from warpseed.kmer_seeds.output import write_hits
from warpseed.mems import find_mems
from warpseed.one_error import find_reads
from warpseed.one_error.output import write_placements

from damage.cases import Case, damage

SECONDS = 60


def outcome(folder: Path, case: Case, kmers: list[str]) -> str:
    """'refused: …' where opening said so in a sentence, 'finished' where every search ended."""
    try:
        index = warpseed.open_index(folder, check=case.check)
    except WarpseedError as error:
        return f"refused: {error}"
    for tier in ("fast", "paper"):
        for max_mismatches, limit in ((0, None), (0, 3), (1, 1000)):
            try:
                hits = find_kmers(index, kmers, tier=tier, max_mismatches=max_mismatches, max_hits=limit)
                write_hits(folder / "hits.bed", [hits])
            except WarpseedError:
                continue
    for tier, max_edits in (("fast", 1), ("fast", 2), ("paper", 1)):
        try:
            found = find_reads(index, kmers, tier=tier, max_edits=max_edits, max_hits=1000, keep_reads=True)
            write_placements(folder / "placements.bam", [found])
        except WarpseedError:
            continue
    for tier, kind in (("fast", "maximal"), ("fast", "super"), ("paper", "paper")):
        try:
            find_mems(index, kmers, min_length=8, kind=kind, tier=tier, max_hits=1000)
        except WarpseedError:
            continue
    return "finished"


def main(source: str, scratch: str) -> None:
    """Answer every case."""
    kmers = (Path(source).parent / "kmers.txt").read_text().split()
    folder = Path(scratch) / "damaged"
    shutil.copytree(source, folder)
    # What is compiled now takes nothing of a case's time.
    outcome(folder, Case("", "", "", 0, True), kmers)
    for line in sys.stdin:
        case = Case(*json.loads(line))
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        damage(folder, case)
        signal.alarm(SECONDS)
        try:
            said = outcome(folder, case, kmers)
        except Exception as error:
            said = f"raised {error!r}"
        signal.alarm(0)
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What memory `warpseed index` takes: of the whole process, beside what the program takes before it has read a base."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from command_line import fasta, save
from warpseed.measure.peers.process import run_warpseed

_BASES = 20_000_000
_BYTES_A_BASE = 9
_DRAW = random.Random(11)


def _drawn(length: int) -> str:
    return "".join(_DRAW.choices("ACGT", k=length))


def _genome(kind: str, bases: int) -> dict[str, str]:
    if kind == "short contigs":
        return {f"contig_{number:07d}": _drawn(1_000) for number in range(bases // 1_000)}
    unit = {"one base": "A", "a tandem repeat": _drawn(1_000), "random": _drawn(bases)}[kind]
    return {"chr1": unit * (bases // len(unit))}


def _index(path: str, threads: int) -> int:
    """Bytes that the process takes at its peak."""
    return run_warpseed(["index", path, "-o", f"{path}.index", "--threads", str(threads)]).peak_bytes


@pytest.mark.parametrize("kind", ["one base", "a tandem repeat", "random", "short contigs"])
def test_a_process_takes_nine_bytes_a_base_beside_the_program(tmp_path: Path, kind: str) -> None:
    """Whatever the text, and whatever the threads. (What a smaller genome needs is compiled first.)"""
    _index(save(tmp_path, "smaller.fa", fasta(_genome(kind, _BASES // 5))), 2)
    smallest = save(tmp_path, "smallest.fa", ">chr1\nACGT\n")
    genome = save(tmp_path, "genome.fa", fasta(_genome(kind, _BASES)))
    for threads in (1, 4):
        assert _index(genome, threads) - _index(smallest, threads) <= _BYTES_A_BASE * _BASES

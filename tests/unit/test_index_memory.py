"""What memory `warpseed index` takes: of the whole process, beside what the program takes before it has read a base."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from command_line import fasta, save
from warpseed.measure.peers.process import run_warpseed

_BASES = 20_000_000
_A_BASE, _A_THREAD = 9, 500_000
"""Bytes that one takes at most."""
_CONTIG = 100

KINDS = ["one base", "a tandem repeat", "Fibonacci's word", "random", "two copies", "short contigs"]

pytestmark = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")


def _genome(kind: str, bases: int) -> dict[str, str]:
    draw = np.random.default_rng(11)
    letters = np.frombuffer(b"ACGT", np.uint8)
    if kind == "short contigs":
        text = letters[draw.integers(0, 4, bases)].tobytes().decode()
        return {f"contig_{at:08d}": text[at : at + _CONTIG] for at in range(0, bases, _CONTIG)}
    if kind == "Fibonacci's word":
        word, longer = "A", "AC"
        while len(word) < bases:
            word, longer = longer, longer + word
        return {"chr1": word[:bases]}
    if kind == "two copies":
        codes = draw.integers(0, 4, bases // 2)
        second = codes.copy()
        changed = draw.choice(len(codes), len(codes) // 500, replace=False)
        second[changed] = (second[changed] + draw.integers(1, 4, len(changed))) % 4
        return {f"chr{i}": letters[copy].tobytes().decode() for i, copy in enumerate((codes, second), 1)}
    length = {"one base": 1, "a tandem repeat": 1_000, "random": bases}[kind]
    return {"chr1": letters[draw.integers(0, 4, length)].tobytes().decode() * (bases // length)}


def _index(path: str, threads: int, parts: str = "default") -> int:
    """Bytes that the process takes at its peak."""
    options = ["--parts", parts, "--threads", str(threads)]
    return run_warpseed(["index", path, "-o", f"{path}.index", *options]).peak_bytes


def _add(path: str, threads: int, parts: str) -> int:
    """The same, of a process that adds parts to the index."""
    return run_warpseed(["index", f"{path}.index", "--add", parts, "--threads", str(threads)]).peak_bytes


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_takes_nine_bytes_a_base_beside_the_program(tmp_path: Path, kind: str) -> None:
    """Whatever the text, and whatever the threads. (What a smaller genome needs is compiled first.)"""
    _index(save(tmp_path, "smaller.fa", fasta(_genome(kind, _BASES // 20))), 2)
    smallest = save(tmp_path, "smallest.fa", ">chr1\nACGT\n")
    genome = save(tmp_path, "genome.fa", fasta(_genome(kind, _BASES)))
    for threads in (1, 16):
        assert _index(genome, threads) - _index(smallest, threads) <= _A_BASE * _BASES + _A_THREAD * threads


@pytest.mark.parametrize("kind", ["a tandem repeat", "random", "two copies"])
@pytest.mark.parametrize(("parts", "more"), [("fast", "tags,paper"), ("paper", "tags"), ("default,paper", "")])
def test_so_it_does_with_all_parts_and_where_some_are_added(tmp_path: Path, kind: str, parts: str, more: str) -> None:
    """Of the process that makes the index, and of the one that adds to it."""
    threads, bases, peaks = 2, _BASES // 2, []
    small, whole = fasta(_genome(kind, bases // 20)), fasta(_genome(kind, bases))
    for name, text in (("smaller.fa", small), ("smallest.fa", ">chr1\nACGT\n"), ("genome.fa", whole)):
        path = save(tmp_path, name, text)
        peaks.append([_index(path, threads, parts), *([_add(path, threads, more)] if more else [])])
    for smallest, peak in zip(*peaks[1:], strict=True):
        assert peak - smallest <= _A_BASE * bases + _A_THREAD * threads

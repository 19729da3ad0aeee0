"""Reads of repeats with many copies, whose seeds have so many rows that matches are found by the longest one from every
base on, beside reads that are searched by seeds."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.mems import find_mems as expected_mems
from warpseed import build_index, find_mems
from warpseed.fm_index.layout import SeedIndex
from warpseed.mems import cpu, cpu_steps
from warpseed.mems.fast import SEED_WORK

LENGTH = 18
COPIES = 3000


def changed(draw: random.Random, piece: str, rate: float) -> str:
    return "".join(draw.choice("ACGT") if draw.random() < rate else base for base in piece)


@pytest.fixture(scope="module")
def drawn() -> tuple[list[str], list[str]]:
    """Contigs, of which the second is copies of one element, and reads: of the first, of the element, of both."""
    draw = random.Random(17)
    unique = "".join(draw.choices("ACGT", k=60_000))
    element = "".join(draw.choices("ACGT", k=200))
    copies = "".join(changed(draw, element, 0.12) for _ in range(COPIES))
    reads = [changed(draw, unique[at : at + 900], 0.08) for at in (100, 20_000, 59_300)]
    reads += [changed(draw, element * 4, 0.08), changed(draw, unique[5000:5400] + element * 5, 0.05)]
    reads.append(reads[3][:333] + "N" + reads[3][100:500])
    return [unique, copies[: len(copies) // 2] + "NN" + copies[len(copies) // 2 :]], reads


def rows_a_base(index: SeedIndex, read: str) -> float:
    """Rows of all seeds of a strand of a read, for each of its bases, if none were taken apart."""
    codes = np.array(["ACGT".find(base) for base in read])
    rows = np.diff(index.fast.table.astype(np.int64))
    size, step = index.table_length, LENGTH - index.table_length + 1
    seeds = [codes[at : at + size] for at in range(0, len(read) - size + 1, step)]
    return sum(int(rows[int("".join(map(str, seed)), 4)]) for seed in seeds if (seed >= 0).all()) / len(read)


@pytest.mark.parametrize("kind", ("super", "paper"))
@pytest.mark.parametrize("long", (False, True), ids=("whole", "in steps"))
def test_crowded_reads_beside_others(
    write_reference: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    drawn: tuple[list[str], list[str]],
    kind: str,
    long: bool,
) -> None:
    contigs, reads = drawn
    index = build_index(write_reference(contigs))
    each = [rows_a_base(index, read) for read in reads]
    assert max(each[:3]) < SEED_WORK / 4 and min(each[3:]) > 4 * SEED_WORK
    if long:
        monkeypatch.setattr(cpu, "LONG_READ", 1)
    ways, steps_of = [], cpu_steps._Steps.__init__

    def noted(steps: Any, *how: Any) -> None:
        steps_of(steps, *how)
        ways.append(steps.how.longest)

    monkeypatch.setattr(cpu_steps._Steps, "__init__", noted)
    found = find_mems(index, reads, min_length=LENGTH, kind=kind).rows()
    names = ("query", "strand", "contig", "start", "read_start", "length")
    rows = list(zip(*(found[name].tolist() for name in names), strict=True))
    for query, read in enumerate(reads):
        own = [tuple(row[1:]) for row in rows if row[0] == query]
        matches = expected_mems(contigs, read, LENGTH, kind)
        assert len(own) == len(matches) and set(own) == matches
    assert ways == ([False] * 3 + [True] * 3 if long else [])

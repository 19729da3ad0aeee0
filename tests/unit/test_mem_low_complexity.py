"""Runs of one base, or of a short unit, in read and genome: all their matches, at the cost of these."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from warpseed import build_index, find_mems
from warpseed.compute.stopwatch import Stopwatch
from warpseed.mems import cpu, cpu_crowded, cpu_steps
from warpseed.mems.matches import KINDS, Criteria
from warpseed.mems.reads import pack_long_reads
from warpseed.output import collect
from warpseed.sequences.queries import Queries
from warpseed.tasks import Room

DRAW = random.Random(41)
LENGTH = 20
RUN = cpu_crowded._MANY + 700
"""Bases of a run whose seeds are remembered, where its unit has one or two."""


def drawn(bases: int) -> str:
    return "".join(DRAW.choices("ACGT", k=bases))


def diagonal_matches(contigs: list[str], read: str) -> list[tuple[int, int, int, int]]:
    """(contig, start, read_start, length) of every match on the forward strand, diagonal by diagonal."""
    found = []
    bases = np.frombuffer(read.encode(), np.uint8)
    for number, contig in enumerate(contigs):
        text = np.frombuffer(contig.encode(), np.uint8)
        for shift in range(-len(read) + LENGTH, len(text) - LENGTH + 1):
            first, start = max(-shift, 0), max(shift, 0)
            some = min(len(bases) - first, len(text) - start)
            mine, theirs = bases[first : first + some], text[start : start + some]
            alike = np.concatenate([[False], (mine == theirs) & (mine != ord("N")), [False]])
            borders = np.flatnonzero(alike[1:] != alike[:-1])
            for begin, end in zip(borders[::2].tolist(), borders[1::2].tolist(), strict=True):
                if end - begin >= LENGTH:
                    found.append((number, start + begin, first + begin, end - begin))
    return sorted(found)


UNITS = ["A", "AC", "ACG", "AAAAC", "ACGTTGCA"]


@pytest.mark.parametrize("threads, long", [(1, 1 << 40), (2, 500)])
@pytest.mark.parametrize("unit", UNITS)
def test_every_diagonal_of_two_runs_has_its_match(
    write_reference: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, unit: str, threads: int, long: int
) -> None:
    """In whole reads and in steps, with what ends a match in a run: a contig, another base, one that is not known."""
    run = (unit * RUN)[: RUN * min(len(unit), 2)]
    contigs = [drawn(90) + run, run[len(unit) :] + drawn(70) + run[:300] + "N" + run[:77]]
    read = drawn(33) + run[:900] + "T" + run[:650] + "N" + run[:200] + drawn(40) + run[:150]
    monkeypatch.setattr(cpu, "LONG_READ", long)
    monkeypatch.setattr(cpu_steps, "_MOST_WORK", 3000)
    index = build_index(write_reference(contigs))
    rows = find_mems(index, [read], kind="maximal", both_strands=False, threads=threads).rows()
    found = list(zip(*(rows[name].tolist() for name in ("contig", "start", "read_start", "length")), strict=True))
    assert sorted(found) == diagonal_matches(contigs, read) and len(found) > 2000 // len(unit)


@pytest.mark.parametrize("unit", ["A", "AC", "AAG"])
def test_two_runs_do_not_take_their_product(
    write_reference: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    """A seed has a row for each place of the genome's run: only what begins a match there is compared each time."""
    bases = 60_000
    index = build_index(write_reference([drawn(500) + "C" + (unit * bases)[:bases]]))
    taken: list[int] = []
    step = cpu_steps.cpu_fast.scan_step

    def watched(*given: Any) -> Any:
        taken.append(1)
        return step(*given)

    monkeypatch.setattr(cpu_steps.cpu_fast, "scan_step", watched)
    monkeypatch.setattr(cpu_steps, "_MOST_WORK", 1 << 18)
    monkeypatch.setattr(cpu, "LONG_READ", 1000)
    found = find_mems(index, [(unit * bases)[:bases]], kind="maximal", both_strands=False)
    places = bases // len(unit)
    assert abs(len(found) - 2 * places) < 50
    # (A seed is every 8 bases.)
    assert 8 < len(taken) < bases // 8 * places // (1 << 18) // 4


@pytest.mark.parametrize("work", [2000, 9000, 40_000])
@pytest.mark.parametrize("kind", ["maximal", "paper", "super"])
def test_what_is_given_up_is_counted_whole(
    write_reference: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, kind: str, work: int
) -> None:
    """A read with more work than one call may do, and more matches than are wanted: all of them are dropped."""
    contigs = [drawn(200) + UNITS[3] * 300 + drawn(50)]
    index = build_index(write_reference(contigs))
    reads = pack_long_reads(Queries.from_sequences([UNITS[3] * 200 + contigs[0][:150]]))
    criteria = Criteria(14, KINDS[kind], 2)
    expected = cpu.find_fast(index, reads, criteria, max_hits=10)
    monkeypatch.setattr(collect, "_MOST_WORK", work)
    found = cpu.find_first_fast(index, reads, criteria, Room(1 << 20), max_hits=10, watch=Stopwatch())
    assert len(found.counts) == 1
    assert (found.dropped_queries, found.dropped_hits) == (expected.dropped_queries, expected.dropped_hits)
    assert expected.dropped_queries == 1 and expected.dropped_hits > 10

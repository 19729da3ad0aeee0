"""Maximal exact matches: the fast tier against the oracle, for every kind."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_genomes import LAYOUTS, cases
from oracles.kmers import reverse_complement
from oracles.mems import KINDS, Match, find_mems
from warpseed import build_index
from warpseed import find_mems as search
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.layout import SeedIndex
from warpseed.mems.cpu import find_fast, find_first_fast
from warpseed.mems.matches import KINDS as NUMBERS
from warpseed.mems.matches import Criteria, place_of, span_of
from warpseed.mems.reads import pack_long_reads
from warpseed.output.rows import Found
from warpseed.sequences.queries import Queries
from warpseed.tasks import Room

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def built(write_reference: Callable[..., Path]) -> Callable[..., SeedIndex]:
    """A function that indexes contigs in one of the layouts."""
    return lambda contigs, layout: build_index(write_reference(contigs), **layout)


def found(rows: np.ndarray, query: int) -> list[Match]:
    """The matches of one read as the oracle has them, in output order."""
    mine = rows[rows["query"] == query]
    columns = (mine[name].tolist() for name in ("strand", "contig", "start", "read_start", "length"))
    return list(zip(*columns, strict=True))


def assert_oracles(index: SeedIndex, contigs: Sequence[str], reads: Sequence[str], length: int, kind: str) -> int:
    """Hold a search of all reads to the oracle; returns how many matches there are."""
    hits = search(index, list(reads), min_length=length, kind=kind)
    rows = hits.rows()
    for query, read in enumerate(reads):
        matches = found(rows, query)
        assert set(matches) == find_mems(contigs, read, length, kind)
        assert len(set(matches)) == len(matches) == hits.counts[query]
        assert matches == sorted(matches, key=lambda of: (of[1], of[2], of[0], of[4], of[3]))
    return len(hits)


def patchwork(draw: random.Random, contigs: Sequence[str]) -> str:
    """A read of pieces of contigs, forward and reversed, with errors and an N here and there."""
    pieces = []
    for _ in range(draw.randint(1, 5)):
        bases = draw.choice(contigs)
        first = draw.randrange(len(bases))
        piece = bases[first : first + draw.randint(1, 150)]
        piece = reverse_complement(piece) if draw.random() < 0.5 else piece
        pieces.append("".join(letter if draw.random() > 0.04 else draw.choice("ACGTN") for letter in piece))
    return "".join(pieces)


@given(case=cases(indels=True), layout=st.sampled_from(LAYOUTS), length=st.integers(1, 40), kind=st.sampled_from(KINDS))
def test_any_input(
    built: Callable[..., Any], case: tuple[list[str], list[str]], layout: Any, length: int, kind: str
) -> None:
    contigs, reads = case
    assert_oracles(built(contigs, layout), contigs, [read for read in reads if read], length, kind)


@EVERY_KIND
@pytest.mark.parametrize("length", [1, 3, 7, 12, 20, 33, 64, 150])
def test_named_references(
    built: Callable[..., Any], small_references: dict[str, list[str]], kind: str, length: int
) -> None:
    """Reads that equal the genome, or are patched together from it, for lengths below and above the table's."""
    draw = random.Random(length)
    for contigs in small_references.values():
        some = contigs[:4]
        reads = [*some, *map(reverse_complement, some), *(patchwork(draw, contigs) for _ in range(4))]
        assert_oracles(built(contigs, LAYOUTS[0]), contigs, reads, length, kind)


@EVERY_KIND
def test_crowded_seeds(built: Callable[..., Any], kind: str) -> None:
    """Seeds with many rows are taken apart: repeats that differ behind them, and some that do not."""
    draw = random.Random(3)
    unit = "".join(draw.choices("ACGT", k=24))
    copies = [unit + "".join(draw.choices("ACGT", k=draw.randint(0, 9))) for _ in range(400)]
    contigs = ["".join(copies), "ACGT" * 300 + "".join(draw.choices("ACGT", k=900))]
    reads = [unit, "".join(draw.sample(copies, 12)), *(patchwork(draw, contigs) for _ in range(12))]
    index = built(contigs, LAYOUTS[0])
    assert assert_oracles(index, contigs, reads, 14, kind) > 400
    assert assert_oracles(index, contigs, reads, 25, kind) > 40


def matches_of(results: Found) -> list[tuple[int, int, int, int]]:
    return [
        (*place_of.py_func(p), *span_of.py_func(s))
        for p, s in zip(results.hits["place"], results.hits["span"], strict=True)
    ]


@EVERY_KIND
def test_parts_of_the_text_and_little_room(built: Callable[..., Any], kind: str) -> None:
    """What begins in the parts of the text is all there is; without room for one read nothing is settled."""
    draw = random.Random(8)
    contigs = ["".join(draw.choices("ACGT", k=900)) * 3, "GATTACA" * 40]
    index = built(contigs, LAYOUTS[0])
    reads = pack_long_reads(Queries.from_sequences([patchwork(draw, contigs) for _ in range(9)]))
    criteria, watch = Criteria(9, NUMBERS[kind], 2), Stopwatch()
    whole = find_fast(index, reads, criteria)
    assert len(whole.hits) > 100
    assert find_fast(index, reads, criteria, threads=3).hits.tolist() == whole.hits.tolist()
    assert find_fast(index, reads, criteria, count_only=True).counts.tolist() == whole.counts.tolist()
    first = find_first_fast(index, reads, criteria, Room(int(whole.counts[:3].sum())), max_hits=None, watch=watch)
    assert 1 <= len(first.counts) <= 4 and first.hits.tolist() == whole.hits[: len(first.hits)].tolist()
    assert len(find_first_fast(index, reads, criteria, Room(1), max_hits=None, watch=watch).counts) == 0
    parts = [
        find_first_fast(index, reads, criteria, Room(1 << 16, part), max_hits=None, watch=watch)
        for part in ((0, 500), (500, 501), (501, 1 << 62))
    ]
    assert sum(part.counts for part in parts).tolist() == whole.counts.tolist()
    assert sorted(match for part in parts for match in matches_of(part)) == sorted(matches_of(whole))
    limited = find_fast(index, reads, criteria, max_hits=20)
    assert limited.counts.tolist() == np.where(whole.counts > 20, 0, whole.counts).tolist()
    assert limited.dropped_queries == (whole.counts > 20).sum()
    assert limited.dropped_hits == whole.counts[whole.counts > 20].sum()


@EVERY_KIND
def test_one_strand(kind: str, tmp_path: Any) -> None:
    """Alone, the read as it is given is searched for."""
    draw = random.Random(1)
    bases = "".join(draw.choices("ACGT", k=500))
    (tmp_path / "g.fa").write_text(f">a\n{bases}\n")
    index = build_index(tmp_path / "g.fa")
    reads = [bases[30:90], reverse_complement(bases[200:260])]
    alone = search(index, reads, min_length=20, kind=kind, both_strands=False)
    assert alone.rows()[["query", "start", "end", "strand"]].tolist() == [(0, 30, 90, 0)]
    assert search(index, reads, min_length=20, kind=kind).counts.tolist() == [1, 1]

"""Maximal exact matches: the fast tier against the oracle, for every kind."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

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
from warpseed.mems import cpu, cpu_steps, fast
from warpseed.mems.cpu import find_fast, find_first_fast
from warpseed.mems.matches import KINDS as NUMBERS
from warpseed.mems.matches import (
    MAXIMAL,
    MOST_OCCURRENCES,
    Criteria,
    occurrences_of,
    pack_place,
    place_of,
    with_occurrences,
)
from warpseed.mems.reads import pack_long_reads
from warpseed.sequences.packed import part_of
from warpseed.sequences.queries import Queries
from warpseed.tasks import Room

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module", params=["by seeds", "by the longest match from every base on"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test finds matches in both ways, whatever their minimum length; all maximal ones are found by seeds."""
    longest = request.param != "by seeds"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast, "finds_longest", lambda criteria, rows: longest and criteria.kind != MAXIMAL)
        yield


@pytest.fixture
def built(write_reference: Callable[..., Path]) -> Callable[..., SeedIndex]:
    """A function that indexes contigs in one of the layouts."""
    return lambda contigs, layout: build_index(write_reference(contigs), **layout)


def found(rows: np.ndarray, query: int) -> list[Match]:
    """The matches of one read as the oracle has them, in output order."""
    mine = rows[rows["query"] == query]
    columns = (mine[name].tolist() for name in ("strand", "contig", "start", "read_start", "length"))
    return list(zip(*columns, strict=True))


def occurrences(rows: np.ndarray) -> list[int]:
    """How many matches have the same part of the same read, of each match of all."""
    parts = list(zip(*(rows[name].tolist() for name in ("query", "read_start", "read_end")), strict=True))
    counted = Counter(parts)
    return [counted[part] for part in parts]


@contextmanager
def small_steps() -> Iterator[None]:
    """Every read is searched in steps, of which many a seed needs several, and whose matches are not held."""
    limits = {"_MOST_WORK": 40, "_STEP_ROOM": 600, "_HELD": 3, "_LEAST_PART": 5, "_LARGEST_PART": 40}
    with patch.multiple(cpu_steps, **limits), patch.object(cpu, "LONG_READ", 1):
        yield


def assert_oracles(index: SeedIndex, contigs: Sequence[str], reads: Sequence[str], length: int, kind: str) -> int:
    """Hold a search of all reads to the oracle; returns how many matches there are."""
    hits = search(index, list(reads), min_length=length, kind=kind)
    rows = hits.rows()
    with small_steps():
        assert search(index, list(reads), min_length=length, kind=kind) == hits
    assert rows["occurrences"].tolist() == occurrences(rows)
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
        find_first_fast(index, part_of(reads, i, i + 1), criteria, Room(1 << 16, part), max_hits=None, watch=watch)
        for i in range(len(reads.lengths))
        for part in ((0, 500), (500, 501), (501, 1 << 62))
    ]
    assert np.concatenate([part.hits for part in parts]).tolist() == whole.hits.tolist()
    with small_steps():
        assert find_fast(index, reads, criteria, threads=3).hits.tolist() == whole.hits.tolist()
        assert find_fast(index, reads, criteria, count_only=True).counts.tolist() == whole.counts.tolist()
        limited = find_fast(index, reads, criteria, max_hits=20)
        assert limited.dropped_hits == whole.counts[whole.counts > 20].sum()
    rare = Criteria(9, NUMBERS[kind], 2, 2)
    counted = find_fast(index, reads, rare, count_only=True)
    kept = [occurrences_of.py_func(place) <= 2 for place in whole.hits["place"]]
    assert find_fast(index, reads, rare).hits.tolist() == whole.hits[kept].tolist() and not len(counted.hits)
    assert counted.counts.sum() == sum(kept) == len(kept) - counted.dropped_hits
    limited = find_fast(index, reads, criteria, max_hits=20)
    assert limited.counts.tolist() == np.where(whole.counts > 20, 0, whole.counts).tolist()
    assert limited.dropped_queries == (whole.counts > 20).sum()
    assert limited.dropped_hits == whole.counts[whole.counts > 20].sum()


TIERS = [*(("fast", kind) for kind in KINDS), ("paper", "paper")]


@pytest.mark.parametrize(("tier", "kind"), TIERS)
@pytest.mark.parametrize("room", [1 << 22, 40, 1])
@pytest.mark.thorough
def test_occurrences_and_their_limit(
    built: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tier: str, kind: str, room: int
) -> None:
    """Counted over both strands and the whole text, also where the matches of a read come part by part of it."""
    draw = random.Random(21)
    unit = "".join(draw.choices("ACGT", k=40))
    contigs = [unit * 9 + reverse_complement(unit) * 3 + "A" * 60 + "GAATTC" * 8, patchwork(draw, [unit * 4])]
    reads = [unit, reverse_complement(unit)[5:] + "A" * 20, "A" * 70, "GAATTC" * 3, *(patchwork(draw, contigs),) * 2]
    index, options = built(contigs, LAYOUTS[0]), {"min_length": 9, "kind": kind, "tier": tier}
    whole = search(index, reads, **options).rows()
    assert whole["occurrences"].tolist() == occurrences(whole) and len(set(occurrences(whole))) > 3
    monkeypatch.setattr("warpseed.tasks._ROOM", room)
    monkeypatch.setattr("warpseed.tasks._LARGE_ROOM", room)
    for threads in (1, 2):
        assert search(index, reads, **options, threads=threads).rows().tolist() == whole.tolist()
        for most in (1, 4, 12):
            kept = whole[whole["occurrences"] <= most]
            hits = search(index, reads, **options, threads=threads, max_occurrences=most)
            assert hits.rows().tolist() == kept.tolist()
            assert (hits.dropped_queries, hits.dropped_hits) == (0, len(whole) - len(kept))
            assert hits.counts.sum() == len(hits) == len(kept)


@pytest.mark.parametrize(("tier", "kind"), TIERS)
def test_a_limit_on_hits_counts_what_has_many_occurrences_too(built: Callable[..., Any], tier: str, kind: str) -> None:
    unit = "ACGTTGCATGACCATGA"
    index = built([unit * 30 + "GGTCATTACCAGGAT"], LAYOUTS[0])
    reads, options = [unit, "GGTCATTACCAGGAT", unit + "GGTCATTACCAGGAT"], {"kind": kind, "tier": tier, "min_length": 12}
    found = search(index, reads, **options, max_occurrences=1, max_hits=25)
    everything = search(index, reads, **options)
    over = everything.counts > 25
    assert found.dropped_queries == over.sum() >= 1 and not found.counts[over].any()
    kept = [tuple(row) for row in everything.rows() if row["occurrences"] == 1 and not over[row["query"]]]
    assert [tuple(row) for row in found.rows()] == kept != []
    assert found.dropped_hits == len(everything) - len(kept)


def test_more_occurrences_than_are_counted() -> None:
    """The largest number stands for more; what else the word holds stays."""
    word = pack_place.py_func(np.uint64(7), 1)
    for count in (MOST_OCCURRENCES, MOST_OCCURRENCES + 1, 1 << 40):
        full = with_occurrences.py_func(word, count)
        assert occurrences_of.py_func(full) == MOST_OCCURRENCES and place_of.py_func(full) == (7, 1)


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

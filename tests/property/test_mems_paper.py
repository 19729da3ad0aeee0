"""The paper tier of maximal exact matches: against the oracle, stage by stage, and against the fast tier."""

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
from oracles.mems import find_mems, sa_intervals, split_intervals, without_redundant
from oracles.suffix_array import NaiveIndex, joined, segments_of
from warpseed import build_index
from warpseed import find_mems as search
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.fm_index.binned import BinParameters
from warpseed.fm_index.layout import SeedIndex
from warpseed.mems import cpu
from warpseed.mems.matches import PAPER, Criteria
from warpseed.mems.reads import pack_long_reads
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries
from warpseed.tasks import Room

DEVICES = pytest.mark.parametrize("device", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
PARAMETERS = [BinParameters(16, 1, 1), BinParameters(32, 2, 3), BinParameters(64, 7, 13), BinParameters(256, 12, 5)]


@pytest.fixture
def built(write_reference: Callable[..., Path]) -> Callable[..., SeedIndex]:
    """A function that indexes contigs in one of the layouts."""
    return lambda contigs, layout: build_index(write_reference(contigs), **layout)


def packed(reads: Sequence[str]) -> Packed:
    return pack_long_reads(Queries.from_sequences(list(reads)))


def pieces_of(draw: random.Random, contigs: Sequence[str], count: int) -> list[str]:
    """Reads of pieces of contigs, forward and reversed, with errors and an N here and there."""
    reads = []
    for _ in range(count):
        read = ""
        for _ in range(draw.randint(1, 4)):
            bases = draw.choice(contigs)
            first = draw.randrange(len(bases))
            piece = bases[first : first + draw.randint(1, 120)]
            read += draw.choice([piece, reverse_complement(piece)])
        reads.append("".join(letter if draw.random() > 0.04 else draw.choice("ACGTN") for letter in read))
    return reads


@DEVICES
@given(
    case=cases(indels=True),
    layout=st.sampled_from(LAYOUTS),
    length=st.integers(1, 40),
    threads=st.sampled_from([1, 3]),
)
def test_any_input(built: Callable[..., Any], device: str, case: Any, layout: Any, length: int, threads: int) -> None:
    contigs, reads = case[0], [read for read in case[1] if read]
    how = {"kind": "paper", "tier": "paper", "device": device, "threads": threads}
    hits = search(built(contigs, layout), reads, min_length=length, **how)
    rows = hits.rows()
    names = ("strand", "contig", "start", "read_start", "length")
    for query, read in enumerate(reads):
        mine = rows[rows["query"] == query]
        assert set(zip(*(mine[name].tolist() for name in names), strict=True)) == find_mems(
            contigs, read, length, "paper"
        )
        assert len(mine) == hits.counts[query]


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("length", [1, 5, 12, 20, 33])
def test_whatever_the_index_is_made_with_it_finds_what_the_fast_tier_does(
    built: Callable[..., Any], small_references: dict[str, list[str]], parameters: BinParameters, length: int
) -> None:
    """Homopolymers, palindromes, tandem repeats, many segments; reads that equal the genome, shorter than a match."""
    draw = random.Random(length)
    for contigs in small_references.values():
        some = contigs[:4]
        reads = packed([*some, *map(reverse_complement, some), "A", "NN", *pieces_of(draw, contigs, 4)])
        index, criteria = built(contigs, LAYOUTS[-1]), Criteria(length, PAPER, draw.choice([1, 2]))
        expected, watch = cpu.find_fast(index, reads, criteria), Stopwatch()
        for threads in (1, 3):
            found = cpu.find_paper(index, reads, criteria, parameters=parameters, threads=threads, watch=watch)
            assert found.hits.tolist() == expected.hits.tolist()
            assert found.counts.tolist() == expected.counts.tolist()
        counted = cpu.find_paper(index, reads, criteria, parameters=parameters, count_only=True)
        assert counted.counts.tolist() == expected.counts.tolist() and not len(counted.hits)
        assert {"pack", "intervals", "filter", "split"} <= set(watch.seconds)


@given(case=cases(), length=st.integers(1, 12), parameters=st.sampled_from(PARAMETERS))
def test_each_stage_gives_what_the_printed_one_does(
    built: Callable[..., Any], case: Any, length: int, parameters: BinParameters
) -> None:
    """Intervals and rows are those of the oracle's stages 1 to 3, in their order."""
    contigs, reads = case[0], [read.upper() for read in case[1]]
    index = built(contigs, {})
    found = cpu.search_paper(index, packed(reads), Criteria(length, PAPER, 1), parameters=parameters)
    naive = NaiveIndex.of(joined([bases for _, _, bases in segments_of(contigs)]))
    low, high = (found.entries.intervals >> np.uint64(32)), found.entries.intervals & np.uint64(0xFFFF_FFFF)
    start, end = (found.entries.spans >> np.uint64(32)), found.entries.spans & np.uint64(0xFFFF_FFFF)
    for number, read in enumerate(reads):
        mine = found.entries.patterns == number
        columns = (low[mine], high[mine] - 1, start[mine], end[mine] - 1)
        filtered = without_redundant(sa_intervals(naive, read, length))
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == filtered
        assert found.counts[number] == len(split_intervals(filtered))


def test_stages_that_can_be_followed_by_hand(built: Callable[..., Any]) -> None:
    """The suffixes of AACAAC$ begin $, AAC$, AACA, AC$, ACA, C$, CA."""
    found = cpu.search_paper(built(["AACAAC"], {}), packed(["GAACA"]), Criteria(1, PAPER, 1))
    intervals = [(2, 3), (1, 3), (1, 5)]
    assert found.entries.intervals.tolist() == [low << 32 | high for low, high in intervals]
    assert found.entries.spans.tolist() == [1 << 32 | 5, 1 << 32 | 4, 1 << 32 | 2]
    # Row 2 belongs to the longest of the three, rows 1 and 2 to the two longer ones.
    assert found.borders.tolist() == [0, 1, 2, 4]


def test_patterns_have_nothing_to_do_with_each_other(built: Callable[..., Any]) -> None:
    """A match with the start and as many rows as the one of the pattern before is not redundant."""
    index = built(["GATTACAGGTC"], {})
    reads = ["GATTACA", "GATTAC", "GATTA", "GATT", "GAT"]
    hits = search(index, reads, min_length=3, kind="paper", tier="paper", both_strands=False)
    assert [(row["start"], row["end"]) for row in hits.rows()] == [(0, 7), (0, 6), (0, 5), (0, 4), (0, 3)]


def test_parts_of_the_text_and_little_room(built: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What begins in the parts of the text is all there is; without room for one read nothing is settled."""
    monkeypatch.setattr(cpu, "_CHUNK", 50)
    draw = random.Random(8)
    contigs = ["".join(draw.choices("ACGT", k=900)) * 3, "GATTACA" * 40]
    index, reads = built(contigs, LAYOUTS[0]), packed(pieces_of(draw, contigs, 9))
    criteria, watch = Criteria(9, PAPER, 2), Stopwatch()
    whole = cpu.find_paper(index, reads, criteria)
    assert len(whole.hits) > 200

    def first(room: int, text: tuple[int, int] = (0, 1 << 62), max_hits: int | None = None) -> Any:
        return cpu.find_first_paper(index, reads, criteria, Room(room, text), max_hits=max_hits, watch=watch)

    some = first(int(whole.counts[:3].sum()))
    assert len(some.counts) == 3 and some.hits.tolist() == whole.hits[: len(some.hits)].tolist()
    assert len(first(1).counts) == 0 == len(first(1, (0, 1 << 20)).counts)
    parts = [first(1 << 16, part) for part in ((0, 500), (500, 501), (501, 1 << 40))]
    mine = whole.hits[: whole.counts[0]].tolist()
    assert [hit for part in parts for hit in part.hits.tolist()] == mine
    assert [len(part.counts) for part in parts] == [1, 1, 1] and sum(int(part.counts[0]) for part in parts) == len(mine)
    limit = int(np.median(whole.counts))
    expected = np.where(whole.counts > limit, 0, whole.counts)
    for limited in (first(1 << 20, max_hits=limit), cpu.find_paper(index, reads, criteria, max_hits=limit)):
        assert limited.counts.tolist() == expected.tolist() and len(limited.hits) == expected.sum()
        assert limited.dropped_queries == (whole.counts > limit).sum()
        assert limited.dropped_hits == whole.counts[whole.counts > limit].sum()
    monkeypatch.setattr(cpu, "_MOST_BASES", 10)
    assert len(first(1 << 20).counts) == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"kind": "super"}, "kind is 'super'"), ({"kind": "maximal"}, "choose that kind, or the fast tier")],
)
def test_other_kinds_are_refused(built: Callable[..., Any], options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        search(built(["ACGTACGT"], {}), ["ACGT"], tier="paper", **options)

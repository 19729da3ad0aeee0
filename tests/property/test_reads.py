"""Reads with at most one edit, or two: the oracles against each other, and both tiers against them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made_up_genomes import LAYOUTS, cases, near_queries
from oracles.kmers import differences, find_kmers, reverse_complement
from oracles.reads import (
    KINDS,
    Placement,
    edited,
    edits_between,
    exact_search,
    find_reads,
    find_reads_plainly,
    leftmost_edit,
    leftmost_edits,
    paper_results,
)
from oracles.suffix_array import NaiveIndex, joined, segments_of
from warpseed import build_index
from warpseed.errors import InputError
from warpseed.one_error import find_reads as search
from warpseed.one_error import iter_read_hits
from warpseed.one_error.cpu import find_fast
from warpseed.one_error.edits import edits_of
from warpseed.one_error.output import make_hits
from warpseed.one_error.paper import Results
from warpseed.one_error.reads import Criteria, pack_reads
from warpseed.sequences.queries import Queries

TIERS = pytest.mark.parametrize(("tier", "max_edits"), [("paper", 1), ("fast", 1), ("fast", 2)])
DEVICES = pytest.mark.parametrize("device", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
FAST = [
    {"device": "cpu", "tier": "fast", "max_edits": 1},
    {"device": "cpu", "tier": "fast", "max_edits": 2},
    pytest.param({"device": "gpu", "tier": "fast", "max_edits": 1}, marks=pytest.mark.gpu),
    pytest.param({"device": "gpu", "tier": "fast", "max_edits": 2}, marks=pytest.mark.gpu),
]
PAPER = [
    {"device": "cpu", "tier": "paper", "max_edits": 1},
    pytest.param({"device": "gpu", "tier": "paper", "max_edits": 1}, marks=pytest.mark.gpu),
]
SEARCHES = pytest.mark.parametrize("how", [*FAST, *PAPER])

# ---- the oracles


@given(case=cases(indels=True), max_edits=st.integers(1, 2), max_hits=st.one_of(st.none(), st.integers(0, 30)))
def test_oracle_is_what_its_plain_twin_says(
    case: tuple[list[str], list[str]], max_edits: int, max_hits: int | None
) -> None:
    contigs, queries = [contig[:24] for contig in case[0][:2]], [query[:12] for query in case[1][:3]]
    assert find_reads(contigs, queries, max_edits, max_hits) == find_reads_plainly(
        contigs, queries, max_edits, max_hits
    )


@given(case=cases(indels=True))
def test_placements_of_one_length_are_those_of_mismatches(case: tuple[list[str], list[str]]) -> None:
    """With one edit, a placement as long as its read has one mismatch: the oracle of k-mers finds the same."""
    contigs, queries = case
    placements = find_reads(contigs, queries)
    same_length = [of for of in placements if of[3] - of[2] == len(queries[of[0]])]
    assert same_length == find_kmers(contigs, queries, 1)


@given(case=cases(indels=True))
def test_algorithm_3_finds_each_placement_by_all_its_edits(case: tuple[list[str], list[str]]) -> None:
    """The results of the paper's search, with the positions of their rows, are all edits of all placements."""
    contigs, queries = case[0], case[1][:6]
    segments = segments_of(contigs)
    index = NaiveIndex.of(joined([bases for _, _, bases in segments]))
    places = []
    for contig, start, bases in segments:
        places += [(contig, start + i) for i in range(len(bases) + 1)]
    for number, query in enumerate(queries):
        for strand, read in enumerate((reverse_complement(reverse_complement(query)), reverse_complement(query))):
            found = set()
            for kind, offset, base, first, last in paper_results(index, read):
                bases = edited(read, (kind, offset, base))
                assert exact_search(index, bases, len(bases) - 1, (0, len(index.text) - 1)) == (first, last)
                for row in range(first, last + 1):
                    contig, start = places[index.suffix_array[row]]
                    found.add((contig, start, start + len(bases), (kind, offset, base)))
            true = set()
            for _, contig, start, end, _, _ in find_reads(contigs, [query], strands=[strand]):
                edits = edits_between(read, contigs[contig][start:end].upper())
                bases = contigs[contig][start:end].upper()
                assert leftmost_edit(read, bases) == edits[0] == min(edits, key=lambda of: of[1])
                true |= {(contig, start, end, edit) for edit in edits}
            assert found == true, (number, strand)


# ---- both tiers


def true_rows(contigs: Sequence[str], queries: Sequence[str], placements: Sequence[Placement]) -> list[tuple[int, ...]]:
    """Placements with their leftmost edits, as the rows of `find_reads`."""
    rows = []
    for query, contig, start, end, strand, distance in placements:
        kind, offset, base = ("several", 0, "")
        if distance < 2:
            kind, offset, base = leftmost_edit(oriented(queries[query], strand), contigs[contig][start:end].upper())
        rows.append(
            (query, contig, start, end, strand, distance, KINDS.index(kind), offset, "ACGT".find(base) if base else 0)
        )
    return rows


def oriented(query: str, strand: int) -> str:
    """A read as it is compared with the forward strand: over A, C, G, T and N."""
    return reverse_complement(query) if strand else reverse_complement(reverse_complement(query))


@lru_cache(maxsize=64)
def truth(contigs: tuple[str, ...], queries: tuple[str, ...], *options: Any) -> list[Placement]:
    """What the oracle finds; both tiers are asked the same."""
    return find_reads(contigs, queries, *options)


def assert_true(index: Any, contigs: Sequence[str], queries: Sequence[str], **options: Any) -> None:
    """Whether find_reads(index, queries, **options) is the oracle's list, in its order, with true counts."""
    most, limit = options.get("max_edits", 1), options.get("max_hits")
    strands = (0, 1) if options.get("both_strands", True) else (0,)
    asked = tuple(contigs), tuple(queries), most
    true = truth(*asked, limit, strands)
    hits = search(index, queries, **options)
    found = [tuple(row) for row in hits.rows().tolist()]
    rows = true_rows(contigs, queries, true)
    assert found == rows, (differences(found, rows), contigs, queries, options)
    assert hits.counts.tolist() == np.bincount([hit[0] for hit in true], minlength=len(queries)).tolist()
    everything = truth(*asked, None, strands)
    assert hits.dropped_queries == len({hit[0] for hit in everything} - {hit[0] for hit in true})
    assert hits.dropped_hits == len(everything) - len(true)


@pytest.fixture
def built(write_reference: Callable[..., Path]) -> Callable[..., Any]:
    """A function that indexes contigs: built(contigs, occ_interval=…, sa_interval=…, table_length=…)."""

    def build(contigs: Sequence[str], **layout: Any) -> Any:
        return build_index(write_reference(contigs), parts=("fast", "forward"), **layout)

    return build


@SEARCHES
@given(
    case=cases(indels=True),
    layout=st.sampled_from(LAYOUTS),
    both_strands=st.booleans(),
    threads=st.integers(1, 3),
    max_hits=st.one_of(st.none(), st.integers(1, 40)),
)
@example(case=(["A"], ["A", "T", "C", "N", "AA", "AN"]), layout=LAYOUTS[0], both_strands=True, threads=1, max_hits=None)
@example(
    case=(["NNA", "NTN"], ["A", "NA", "ANT", "NN"]), layout=LAYOUTS[1], both_strands=True, threads=2, max_hits=None
)
def test_any_input(
    built: Callable[..., Any],
    how: dict[str, Any],
    case: tuple[list[str], list[str]],
    layout: dict[str, Any],
    both_strands: bool,
    threads: int,
    max_hits: int | None,
) -> None:
    contigs, queries = case
    options = {"both_strands": both_strands, "threads": threads, "max_hits": max_hits}
    assert_true(built(contigs, **layout), contigs, queries, **how, **options)


@DEVICES
@given(case=cases(indels=True), layout=st.sampled_from(LAYOUTS))
def test_no_edit(
    built: Callable[..., Any], device: str, case: tuple[list[str], list[str]], layout: dict[str, Any]
) -> None:
    contigs, queries = case
    assert_true(built(contigs, **layout), contigs, queries, max_edits=0, device=device)


@TIERS
@given(
    case=cases(indels=True),
    threads=st.integers(1, 3),
    rooms=st.sampled_from([(2, 6), (2, 9), (7, 30)]),
    work=st.sampled_from([0, 30, 1 << 23]),
)
@example(case=(["A" * 60], ["A", "T", "AA", "N"]), threads=2, rooms=(2, 6), work=0)
def test_placements_for_which_there_is_little_room(
    built: Callable[..., Any],
    tier: str,
    max_edits: int,
    case: tuple[list[str], list[str]],
    threads: int,
    rooms: tuple[int, int],
    work: int,
) -> None:
    """Batches of a few placements; the fast tier parts those of a single read, at places in the text.

    (There must be room for those that begin at one place: three on each strand, or five.)
    """
    contigs, queries = case
    large = rooms[1] + 4 * (max_edits - 1)
    index = built(contigs, **LAYOUTS[2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warpseed.tasks._ROOM", rooms[0])
        patch.setattr("warpseed.tasks._LARGE_ROOM", large)
        patch.setattr("warpseed.output.collect._MOST_WORK", work)
        patch.setattr("warpseed.one_error.cpu._MOST_BASES", work)
        options: dict[str, Any] = {"max_edits": max_edits, "threads": threads}
        assert_true(index, contigs, queries, tier=tier, **options)
        if tier == "fast":
            assert max(len(hits) for hits in iter_read_hits(index, queries, **options)) <= large


@SEARCHES
def test_named_references(
    built: Callable[..., Any], small_references: dict[str, list[str]], how: dict[str, Any]
) -> None:
    """Homopolymers, palindromes, tandem repeats, one base, thousands of contigs; reads longer than a contig."""
    for name, contigs in small_references.items():
        draw = random.Random(name)
        queries = near_queries(contigs[:40], draw, 12, indels=True)
        queries += [contigs[0][:1], contigs[-1][-1:], contigs[0], max(contigs[:40], key=len) + "A"]
        shown = contigs[:300]
        for layout in (LAYOUTS[0], LAYOUTS[-1]):
            assert_true(built(shown, **layout), shown, queries, **how, threads=2)


@SEARCHES
@pytest.mark.parametrize("length", [1, 2, 3, 31, 32, 33, 63, 64, 65, 66, 127, 128, 129, 260])
def test_edits_at_borders_of_words_pieces_and_segments(
    built: Callable[..., Any], how: dict[str, Any], length: int
) -> None:
    """Each edit at the first and last bases, around the middle and around words, in reads that fill their segment."""
    draw = random.Random(length)
    contigs = ["".join(draw.choices("ACGT", k=length + more)) for more in (0, 1, 40)]
    contigs[2] = contigs[2][:20] + "N" + contigs[2][20:]
    queries = []
    for contig in contigs:
        exact = contig[-length:]
        places = {0, 1, 31, 32, 33, length // 2 - 1, length // 2, length // 2 + 1, length - 1, length}
        for place in sorted(place for place in places if 0 <= place <= length):
            for base, taken in draw.sample([("", 1), ("N", 0), ("N", 1), *((x, y) for x in "ACGT" for y in (0, 1))], 3):
                read = exact[:place] + base + exact[place + taken :] or base or "A"
                if how["max_edits"] == 2:
                    second = draw.choice([place, place + 1, 0, len(read), draw.randint(0, len(read))])
                    read = read[:second] + draw.choice(["", "A", "C", "N"]) + read[second + draw.randint(0, 1) :] or "C"
                queries.append(draw.choice([read, reverse_complement(read)]))
    assert_true(built(contigs, **LAYOUTS[2]), contigs, queries, **how)


@SEARCHES
def test_longer_genomes(built: Callable[..., Any], how: dict[str, Any]) -> None:
    """Some thousand bases with repeats in both orientations, crowded buckets among them; 80 reads of 1 to 255 bases."""
    draw = random.Random(4)
    family = "".join(draw.choices("ACGT", k=150))
    contigs = []
    for _ in range(3):
        parts = []
        for _ in range(12):
            copy = "".join(draw.choice("ACGT") if draw.random() < 0.02 else base for base in family)
            parts += [draw.choice([copy, reverse_complement(copy)]), "".join(draw.choices("ACGT", k=60))]
        contigs.append("".join(parts) + "N")
    queries = near_queries(contigs, draw, 80, indels=True)
    for layout in LAYOUTS[2:5]:
        assert_true(built(contigs, **layout), contigs, queries, **how)


@SEARCHES
def test_reads_of_ten_thousand_bases_beside_short_ones(built: Callable[..., Any], how: dict[str, Any]) -> None:
    draw = random.Random(8)
    contigs = ["".join(draw.choices("ACGT", k=10_200))]
    long = contigs[0][100:10_100]
    queries = [
        "ACGTTGCAT",
        long[:4_000] + long[4_001:],
        reverse_complement(long[:7_000] + "A" + long[7_000:]),
        long[1:5_000] + "NN" + long[5_002:],
        long[:9_998] + "TT" + long[9_998:],
        long[:33],
    ]
    assert_true(built(contigs, **LAYOUTS[-1]), contigs, queries, **how)


@SEARCHES
def test_reads_with_very_many_placements(built: Callable[..., Any], how: dict[str, Any]) -> None:
    """Crowded halves, and more placements of a read than are sorted at once; beside reads that have few."""
    draw = random.Random(12)
    contigs = ["A" * 3_000 + "".join(draw.choices("ACGT", k=300)), "AC" * 700]
    queries = ["A" * 30, contigs[0][3_000:3_060], "AC" * 20, "A" * 15 + "G" + "A" * 15, "ACGTTGCAACGT", "CA" * 10]
    index = built(contigs, **LAYOUTS[-1])
    for max_hits in (None, 2_000):
        assert_true(index, contigs, queries, **how, max_hits=max_hits)


@given(case=cases(indels=True), layout=st.sampled_from(LAYOUTS))
def test_edits_of_placements(
    built: Callable[..., Any], case: tuple[list[str], list[str]], layout: dict[str, Any]
) -> None:
    """The edits that are worked out of placements are the oracle's: of those with two, too."""
    contigs, queries = case
    index, records = built(contigs, **layout), Queries.from_sequences(queries)
    reads = pack_reads(records)
    found = find_fast(index, reads, Criteria(2, 2))
    rows, edits = make_hits(index, records, found).rows(), edits_of(index.text, reads, found)
    for i in range(0, len(rows), max(1, len(rows) // 100)):
        query, contig, start, end, strand, distance, *told = rows[i].tolist()
        read, bases = oriented(queries[query], strand), contigs[contig][start:end].upper()
        true = [
            (KINDS.index(kind), offset, "ACGT".index(base or "A"))
            for kind, offset, base in leftmost_edits(read, bases, distance)
        ]
        worked_out = [tuple(int(column[i, e]) for column in edits) for e in range(2)]
        assert worked_out == [*true, (0, 0, 0), (0, 0, 0)][:2], (read, bases)
        assert tuple(told) == ((KINDS.index("several"), 0, 0) if distance == 2 else worked_out[0])


# ---- the paper tier's results


@DEVICES
@given(case=cases(indels=True), strands=st.integers(1, 2), slots=st.one_of(st.none(), st.integers(0, 9)))
def test_results_of_algorithm_3(
    built: Callable[..., Any], device: str, case: tuple[list[str], list[str]], strands: int, slots: int | None
) -> None:
    """Every result of the recursive search, once: type, offset, base and interval; with slots, the first of them."""
    contigs, queries = case[0], case[1][:8]
    index = built(contigs, **LAYOUTS[2])
    naive = NaiveIndex.of(joined([bases for _, _, bases in segments_of(contigs)]))
    reads = pack_reads(Queries.from_sequences(queries))
    search_paper = import_module(f"warpseed.one_error.{device}").search_paper
    whole = search_paper(index, reads, Criteria(1, strands))
    searched = search_paper(index, reads, Criteria(1, strands), slots=slots)
    assert searched.counts.tolist() == whole.counts.tolist() == whole.stored.tolist()
    assert searched.stored.tolist() == [count if slots is None else min(count, slots) for count in searched.counts]
    first = kept = 0
    for number, query in enumerate(queries):
        read = reverse_complement(query)
        oriented = (reverse_complement(read), read)[:strands]
        true = [(strand, *of) for strand, spelled in enumerate(oriented) for of in paper_results(naive, spelled)]
        last = first + int(whole.counts[number])
        found = as_results(whole.results, first, last)
        assert sorted(found) == sorted(true)
        last_kept = kept + int(searched.stored[number])
        assert as_results(searched.results, kept, last_kept) == found[: last_kept - kept]
        first, kept = last, last_kept


def as_results(results: Results, first: int, last: int) -> list[tuple[int, str, int, str, int, int]]:
    """Results as the oracle has them, their strand before: both ends of an interval included."""
    rows = []
    for low, high, word in zip(*(column[first:last].tolist() for column in results), strict=True):
        kind = ("match", "mismatch", "insertion", "deletion")[word & 3]
        base = "ACGT"[word >> 2 & 3] if kind in ("mismatch", "insertion") else ""
        rows.append((word >> 4 & 1, kind, word >> 5, base, low, high - 1))
    return rows


def test_what_is_refused(built: Callable[..., Any]) -> None:
    index = built(["ACGT" * 20])
    for reads, options, told in (
        (["ACG"], {"max_edits": 3}, "3"),
        (["ACG"], {"max_edits": 0, "tier": "paper"}, "paper"),
        (["ACG"], {"max_edits": 2, "tier": "paper"}, "paper"),
        (["ACG"], {"device": "gpus"}, "gpus"),
        (["ACG", ""], {}, "empty"),
        (["ACG"], {"max_hits": -1}, "-1"),
    ):
        with pytest.raises(InputError) as caught:
            search(index, reads, **options)
        assert told in str(caught.value) and "\n" not in str(caught.value)

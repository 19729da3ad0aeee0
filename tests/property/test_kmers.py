"""`find_kmers`, both tiers and every device, held to the brute-force oracle on random and hostile inputs."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made_up_genomes import LAYOUTS, LONGEST, cases, near_queries
from oracles.kmers import Hit, differences, find_kmers, find_kmers_plainly, reverse_complement
from warpseed.kmer_seeds import iter_kmer_hits

MOST_MISMATCHES = {"paper": 2, "fast": 3}
DEVICES = pytest.mark.parametrize("device", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
TIERS = pytest.mark.parametrize("tier", ["paper", "fast"])

# ---- comparing


def as_tuples(hits: Any) -> list[Hit]:
    """Rows of a Hits object, once it is sure that its columns say the same."""
    rows = hits.rows()
    for column in rows.dtype.names:
        assert np.array_equal(rows[column], getattr(hits, column)), column
    assert len(hits) == len(rows)
    return [tuple(row) for row in rows.tolist()]


@lru_cache(maxsize=8)
def truth(contigs: tuple[str, ...], queries: tuple[str, ...], max_mismatches: int, max_hits: int | None) -> list[Hit]:
    """What the oracle finds; indexes of several layouts are asked the same."""
    return find_kmers(contigs, queries, max_mismatches, max_hits)


def assert_true(index: Any, contigs: Sequence[str], queries: Sequence[str], **options: Any) -> None:
    """Whether find_kmers(index, queries, **options) is the oracle's list, in its order, with true counts."""
    from warpseed import find_kmers as search

    most, limit = options["max_mismatches"], options.get("max_hits")
    asked = tuple(contigs), tuple(queries), most
    true = truth(*asked, limit)
    hits = search(index, queries, **options)
    found = as_tuples(hits)
    assert found == true, (differences(found, true), contigs, queries, options)
    assert hits.counts.tolist() == np.bincount([hit[0] for hit in true], minlength=len(queries)).tolist()
    everything = truth(*asked, None)
    lost = {hit[0] for hit in everything} - {hit[0] for hit in true}
    assert hits.dropped_queries == len(lost)
    gone = len(everything) - len(true)
    known = ((limit or 0) + 1) * len(lost)
    if options["tier"] == "paper":
        # The paper's search stops at an interval with a hit too many; others, at that hit.
        assert known <= hits.dropped_hits <= gone
    else:
        assert hits.dropped_hits == known


@pytest.fixture
def built(write_reference: Callable[..., Path]) -> Callable[..., Any]:
    """A function that indexes contigs: built(contigs, occ_interval=…, sa_interval=…, table_length=…).

    Every other one has tags of its rows: which one, its bases say.
    """
    from warpseed import build_index

    def build(contigs: Sequence[str], **layout: Any) -> Any:
        fast = "tags" if sum(map(len, contigs)) % 2 else "fast"
        return build_index(write_reference(contigs), parts=(fast, "paper"), **layout)

    return build


# ---- the oracle itself


@given(case=cases(), max_mismatches=st.integers(1, 3), max_hits=st.one_of(st.none(), st.integers(0, 9)))
def test_oracle_is_what_its_plain_twin_says(
    case: tuple[list[str], list[str]], max_mismatches: int, max_hits: int | None
) -> None:
    contigs, queries = case[0][:2], case[1][:4]
    assert find_kmers(contigs, queries, max_mismatches, max_hits) == find_kmers_plainly(
        contigs, queries, max_mismatches, max_hits
    )


# ---- properties


@DEVICES
@TIERS
@given(
    case=cases(),
    layout=st.sampled_from(LAYOUTS),
    mismatches=st.integers(0, 3),
    threads=st.integers(1, 3),
    max_hits=st.one_of(st.none(), st.integers(1, 12)),
)
@example(case=(["A"], ["A", "T", "C", "N", "AA"]), layout=LAYOUTS[0], mismatches=1, threads=1, max_hits=None)
@example(case=(["ACGT"], ["ACGT", "CGTA"]), layout=LAYOUTS[-1], mismatches=0, threads=3, max_hits=1)
@example(case=(["NNA", "NTN"], ["A", "NNNA", "NN"]), layout=LAYOUTS[1], mismatches=3, threads=2, max_hits=None)
def test_any_input(
    built: Callable[..., Any],
    tier: str,
    device: str,
    case: tuple[list[str], list[str]],
    layout: dict[str, Any],
    mismatches: int,
    threads: int,
    max_hits: int | None,
) -> None:
    contigs, queries = case
    assert_true(
        built(contigs, **layout),
        contigs,
        queries,
        max_mismatches=min(mismatches, MOST_MISMATCHES[tier]),
        tier=tier,
        device=device,
        threads=threads,
        max_hits=max_hits,
    )


@TIERS
@given(
    case=cases(),
    mismatches=st.integers(0, 3),
    threads=st.integers(1, 3),
    max_hits=st.one_of(st.none(), st.integers(1, 12)),
    rooms=st.sampled_from([(2, 2), (2, 5), (7, 30)]),
    work=st.sampled_from([0, 40, 1 << 23]),
)
@example(case=(["A" * 60], ["A", "T", "AA", "N"]), mismatches=1, threads=2, max_hits=None, rooms=(2, 2), work=1 << 23)
@example(case=(["A" * 60], ["AA"] * 5 + ["T"] * 4), mismatches=0, threads=1, max_hits=1, rooms=(7, 30), work=40)
def test_hits_for_which_there_is_little_room(
    built: Callable[..., Any],
    tier: str,
    case: tuple[list[str], list[str]],
    mismatches: int,
    threads: int,
    max_hits: int | None,
    rooms: tuple[int, int],
    work: int,
) -> None:
    """Batches of a few hits, or of little work; the fast tier parts those of a single query, at places in the text."""
    contigs, queries = case
    options = {"max_mismatches": min(mismatches, MOST_MISMATCHES[tier]), "tier": tier, "threads": threads}
    index = built(contigs, **LAYOUTS[2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warpseed.tasks._ROOM", rooms[0])
        patch.setattr("warpseed.tasks._LARGE_ROOM", rooms[1])
        patch.setattr("warpseed.output.collect._MOST_WORK", work)
        patch.setattr("warpseed.kmer_seeds.cpu._MOST_QUERIES", (1 + work, 1 + work, 1 + work))
        assert_true(index, contigs, queries, max_hits=max_hits, **options)
        if tier == "fast":
            assert max(len(hits) for hits in iter_kmer_hits(index, queries, **options)) <= rooms[1]


@DEVICES
@TIERS
@pytest.mark.parametrize("seed", range(3))
def test_larger_genomes(built: Callable[..., Any], tier: str, device: str, seed: int) -> None:
    """A few thousand bases with repeats in both orientations and Ns; 120 queries of 1 to 255 bases."""
    draw = random.Random(seed)
    family = "".join(draw.choices("ACGT", k=150))
    contigs = []
    for _ in range(4):
        parts = []
        for _ in range(4):
            copy = "".join(draw.choice("ACGT") if draw.random() < 0.03 else base for base in family)
            parts += [draw.choice([copy, reverse_complement(copy)]), "".join(draw.choices("ACGT", k=90)), "N"]
        contigs.append("".join(parts[: -1 - seed]))
    queries = near_queries(contigs, draw, 120)
    index = built(contigs, **LAYOUTS[3 + seed])
    for mismatches in range(MOST_MISMATCHES[tier] + 1):
        options = {"max_mismatches": mismatches, "tier": tier, "device": device}
        assert_true(index, contigs, queries, threads=1 + seed, **options)
        assert_true(index, contigs, queries, max_hits=6, **options)


@DEVICES
@TIERS
def test_named_references(
    built: Callable[..., Any], small_references: dict[str, list[str]], tier: str, device: str
) -> None:
    """Homopolymers, palindromes, tandem repeats, one base, thousands of contigs; any D."""
    for name, contigs in small_references.items():
        draw = random.Random(name)
        queries = near_queries(contigs, draw, 25)
        # The first and the last base, the whole contig, and one base more than the longest contig has.
        queries += [contigs[0][:1], contigs[-1][-1:], contigs[0][:LONGEST], contigs[-1][-LONGEST:]]
        queries.append((max(contigs, key=len) + "A")[:LONGEST])
        for layout in (LAYOUTS[0], LAYOUTS[-1]):
            index = built(contigs, **layout)
            for mismatches in range(MOST_MISMATCHES[tier] + 1):
                options = {"max_mismatches": mismatches, "tier": tier, "device": device}
                assert_true(index, contigs, queries, threads=2, **options)


@DEVICES
@TIERS
@pytest.mark.parametrize("k", [31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 192, 223, 224, 225, 254, 255])
def test_lengths_at_word_borders(built: Callable[..., Any], tier: str, device: str, k: int) -> None:
    """Mismatches at the first and last base of k-mers whose lengths are next to multiples of a word."""
    draw = random.Random(k)
    contigs = ["".join(draw.choices("ACGT", k=k + extra)) for extra in (0, 1, 40)]
    other = {"A": "C", "C": "G", "G": "T", "T": "A"}
    queries = []
    for contig in contigs:
        for exact in (contig[:k], contig[-k:]):
            first, last = other[exact[0]] + exact[1:], exact[:-1] + other[exact[-1]]
            both = other[exact[0]] + exact[1:-1] + other[exact[-1]]
            queries += [exact, first, last, both, reverse_complement(both), "N" + exact[1:], exact[:-1] + "N"]
    index = built(contigs, **LAYOUTS[2])
    for mismatches in range(MOST_MISMATCHES[tier] + 1):
        assert_true(index, contigs, queries, max_mismatches=mismatches, tier=tier, device=device)


@DEVICES
@TIERS
def test_threshold_is_exact(built: Callable[..., Any], tier: str, device: str) -> None:
    """Both strands count together: a query with exactly max_hits keeps them, with one more it has none."""
    from warpseed import find_kmers as search

    contigs = ["GAATTC" * 4 + "T" + "GATTACA" * 5]
    queries = ["GAATTC", "GATTACA", "TGTAATC", "GGGGGGGG"]
    index = built(contigs, **LAYOUTS[1])
    for mismatches in (0, 1):
        counts = np.bincount([hit[0] for hit in find_kmers(contigs, queries, mismatches)], minlength=4)
        for limit in sorted({*counts.tolist(), *(counts + 1).tolist(), *(counts[:3] - 1).tolist()} - {0}):
            options = {"max_mismatches": mismatches, "tier": tier, "device": device, "max_hits": limit}
            assert_true(index, contigs, queries, **options)
            assert search(index, queries, **options).counts.max() <= limit


@TIERS
def test_counting_is_what_locating_finds(built: Callable[..., Any], tier: str) -> None:
    """The counting modes (Table II) give the oracle's counts, on any number of threads."""
    from warpseed.kmer_seeds import find_function
    from warpseed.kmer_seeds.cpu import search_paper
    from warpseed.kmer_seeds.kmers import pack_kmers
    from warpseed.sequences.queries import Queries

    draw = random.Random(5)
    contigs = ["".join(draw.choices("ACGT", k=300)), "ACGT" * 20 + "N" + "A" * 40]
    queries = near_queries(contigs, draw, 60)
    index, kmers = built(contigs, **LAYOUTS[3]), pack_kmers(Queries.from_sequences(queries))
    for mismatches in range(MOST_MISMATCHES[tier] + 1):
        true = [hit[0] for hit in find_kmers(contigs, queries, mismatches)]
        counts = np.bincount(true, minlength=len(queries)).tolist()
        for threads in (1, 3):
            counted = find_function(tier, "cpu")(index, kmers, mismatches, threads=threads, count_only=True)
            assert counted.counts.tolist() == counts and not len(counted.hits)
            if tier == "paper":
                intervals = search_paper(index, kmers, mismatches, threads=threads)
                assert intervals.hits.tolist() == counts
                assert int(intervals.size.sum()) == len(true)


@TIERS
def test_any_kind_of_input_and_number_of_threads(built: Callable[..., Any], tmp_path: Path, tier: str) -> None:
    """str, bytes, a FASTA file, Queries, an index folder, 1 to 3 threads: the same digest."""
    from warpseed import find_kmers as search
    from warpseed.sequences.queries import Queries

    draw = random.Random(9)
    contigs = ["".join(draw.choices("ACGTN", weights=[9, 9, 9, 9, 1], k=400)) for _ in range(3)]
    queries = near_queries(contigs, draw, 200)
    index = built(contigs, **LAYOUTS[2])
    fasta = tmp_path / "queries.fa"
    fasta.write_text("".join(f">same\n{query}\n" for query in queries))
    folder = tmp_path / "index"
    index.save(folder)
    options = {"max_mismatches": 1, "tier": tier}
    hits = search(index, queries, **options)
    assert as_tuples(hits) == find_kmers(contigs, queries, 1)
    for kmers in ([query.encode() for query in queries], fasta, str(fasta), Queries.from_sequences(queries)):
        assert search(index, kmers, **options).digest() == hits.digest()
    for threads in (2, 3):
        assert search(folder, queries, threads=threads, **options).digest() == hits.digest()


@TIERS
def test_frame_has_names(built: Callable[..., Any], tier: str) -> None:
    from warpseed import find_kmers as search
    from warpseed.sequences.queries import Queries

    kmers = Queries.from_sequences(["ACG", "CGT", "ACG"], names=["x", "", "x"])
    frame = search(built(["ACGTT"], **LAYOUTS[0]), kmers, tier=tier).to_frame()
    assert frame.columns.tolist() == ["query", "contig", "start", "end", "strand", "distance"]
    assert frame.values.tolist() == [
        ["x", "c0", 0, 3, "+", 0],
        ["x", "c0", 1, 4, "-", 0],
        ["", "c0", 0, 3, "-", 0],
        ["", "c0", 1, 4, "+", 0],
        ["x", "c0", 0, 3, "+", 0],
        ["x", "c0", 1, 4, "-", 0],
    ]


@TIERS
def test_refusals(built: Callable[..., Any], tier: str) -> None:
    """Too many mismatches, a k-mer of 256 bases, an empty one: one sentence each, no result."""
    from warpseed import find_kmers as search
    from warpseed.errors import WarpseedError

    index = built(["ACGT" * 80], **LAYOUTS[0])
    assert len(search(index, ["ACGT" * 63 + "ACG"], tier=tier)) > 0
    for kmers, options, told in (
        (["ACG"], {"max_mismatches": MOST_MISMATCHES[tier] + 1}, str(MOST_MISMATCHES[tier])),
        (["ACG"], {"max_mismatches": -1}, "-1"),
        (["ACG", "ACGT" * 64], {}, "256"),
        (["ACG", ""], {}, ""),
        (["ACG"], {"max_hits": -1}, "-1"),
        (["ACG"], {"threads": 0}, "0"),
    ):
        with pytest.raises(WarpseedError) as caught:
            search(index, kmers, tier=tier, **options)
        assert told in str(caught.value) and "\n" not in str(caught.value)

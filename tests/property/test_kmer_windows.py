"""Which windows the CPU takes is a matter of speed: with any list of them that it may choose, hits are the oracle's."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_genomes import LAYOUTS, near_queries
from oracles.kmers import find_kmers as true_hits
from oracles.kmers import reverse_complement
from warpseed.kmer_seeds import plans


@st.composite
def crowded_cases(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Repeats, some of them changed, so that buckets have more rows than are left as they are."""
    seed = random.Random(draw(st.integers(0, 2**16)))
    unit = "".join(seed.choices("ACGT", k=draw(st.integers(1, 40))))
    copies = ["".join(seed.choice("ACGT") if seed.random() < 0.03 else base for base in unit) for _ in range(30)]
    spacer = draw(st.sampled_from(["", "N", "A", "CT"]))
    contigs = [spacer.join(copies), "".join(seed.choices("ACGT", k=60))]
    return contigs, [query for query in near_queries(contigs, seed, 12) if len(query) <= 40]


@given(case=crowded_cases(), layout=st.sampled_from(LAYOUTS), mismatches=st.integers(1, 3), order=st.integers(0, 2**16))
def test_any_windows_find_what_is_there(
    write_reference: Callable[..., Path],
    case: tuple[list[str], list[str]],
    layout: dict[str, Any],
    mismatches: int,
    order: int,
) -> None:
    from warpseed import build_index, find_kmers

    contigs, queries = case
    index = build_index(write_reference(contigs), **layout)
    chance = random.Random(order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "_planned", plans._planned.__wrapped__)
        patch.setattr(plans, "_cost", lambda *_: chance.random())
        hits = find_kmers(index, queries, max_mismatches=mismatches)
    assert [tuple(row) for row in hits.rows().tolist()] == true_hits(contigs, queries, mismatches, None)


@given(case=crowded_cases(), layout=st.sampled_from(LAYOUTS), max_hits=st.integers(1, 60), threads=st.integers(1, 2))
def test_exact_kmers_with_too_many_hits_are_dropped(
    write_reference: Callable[..., Path],
    case: tuple[list[str], list[str]],
    layout: dict[str, Any],
    max_hits: int,
    threads: int,
) -> None:
    """Most of them without a look at each hit, of which the first too many is known; those around them are found."""
    from warpseed import build_index, find_kmers

    contigs, queries = case
    unit = contigs[0][:32]
    queries = [each for query in queries for each in (query, unit[: len(query) % 33 or 1], reverse_complement(unit))]
    hits = find_kmers(build_index(write_reference(contigs), **layout), queries, max_hits=max_hits, threads=threads)
    assert [tuple(row) for row in hits.rows().tolist()] == true_hits(contigs, queries, 0, max_hits)
    gone = len(true_hits(contigs, queries, 0, None)) - len(hits)
    assert hits.dropped_hits == hits.dropped_queries * (max_hits + 1) <= gone
    assert (hits.dropped_queries > 0) == (gone > 0)

"""The DIFFS rule of Figure 4 (paper 000): right as printed, and one line further down it loses hits."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.figure4 import Figure4, lower_bounds
from oracles.kmers import find_kmers, reverse_complement
from oracles.suffix_array import NaiveIndex, joined

SEGMENTED = st.lists(st.text("ACGT", min_size=1, max_size=25), min_size=1, max_size=4).map("N".join)


def random_case(seed: int) -> tuple[list[str], list[str]]:
    """Some contigs with Ns, and queries cut from them with up to three changed letters."""
    draw = random.Random(seed)
    contigs = [
        "".join(draw.choice("ACGT" if draw.random() < 0.97 else "N") for _ in range(draw.randint(20, 120)))
        for _ in range(draw.randint(1, 3))
    ]
    contigs.append("ACGT" * draw.randint(1, 8))
    queries = []
    for _ in range(12):
        contig = draw.choice(contigs)
        k = draw.randint(4, 14)
        start = draw.randrange(max(1, len(contig) - k))
        letters = list(contig[start : start + k])
        for _ in range(draw.randint(0, 3)):
            letters[draw.randrange(len(letters))] = draw.choice("ACGTN")
        queries.append("".join(letters))
    return contigs, queries


@given(contig=SEGMENTED, query=st.text("ACGTN", min_size=1, max_size=12))
def test_bounds_are_lower_bounds(contig: str, query: str) -> None:
    """DIFFS[i] never exceeds the true number of mismatches that query[i+1..] needs."""
    runs = [run for run in contig.split("N") if run]
    bounds = lower_bounds(NaiveIndex.of(joined(runs)), query)
    for i, bound in enumerate(bounds):
        rest = query[i + 1 :]
        windows = [run[j : j + len(rest)] for run in runs for j in range(len(run) - len(rest) + 1)]
        least = min((sum(a != b for a, b in zip(w, rest, strict=True)) for w in windows), default=None)
        # No window at all: no hit can be lost, whatever the bound.
        assert least is None or bound <= least


def test_paper_tier_has_the_rule_as_printed(write_reference: Callable[..., Path]) -> None:
    """Its lower bounds are the readable ones, on both strands, N included; the mutated ones are others."""
    from warpseed import build_index
    from warpseed.kmer_seeds.kmers import pack_kmers
    from warpseed.kmer_seeds.paper import lower_bounds as jitted_bounds
    from warpseed.sequences.queries import Queries

    different = 0
    for seed in range(10):
        contigs, queries = random_case(seed)
        index = build_index(write_reference(contigs), parts="paper", occ_interval=32, sa_interval=4)
        twin = Figure4(contigs).bwt
        kmers = pack_kmers(Queries.from_sequences(queries))
        for number, query in enumerate(queries):
            for strand, spelled in enumerate((query, reverse_complement(query))):
                bounds = np.zeros(255, np.uint8)
                jitted_bounds(index.forward, kmers, number, strand, bounds)
                assert bounds[: len(query)].tolist() == lower_bounds(twin, spelled)
                different += lower_bounds(twin, spelled) != lower_bounds(twin, spelled, assign_after_increment=True)
    assert different > 20


@pytest.mark.parametrize("max_mismatches", [0, 1, 2])
def test_rule_as_printed_finds_everything(max_mismatches: int) -> None:
    for seed in range(25):
        contigs, queries = random_case(seed)
        assert Figure4(contigs).find_kmers(queries, max_mismatches) == find_kmers(contigs, queries, max_mismatches), (
            contigs,
            queries,
        )


@pytest.mark.parametrize("max_mismatches", [1, 2])
def test_assignment_after_the_increment_loses_hits(max_mismatches: int) -> None:
    """The mutation never invents a hit and loses some in at least a quarter of these inputs."""
    caught = 0
    for seed in range(25):
        contigs, queries = random_case(seed)
        true = find_kmers(contigs, queries, max_mismatches)
        mutated = Figure4(contigs).find_kmers(queries, max_mismatches, mutated=True)
        assert set(mutated) <= set(true)
        caught += mutated != true
    assert caught >= 7


def test_smallest_input_that_catches_the_mutation() -> None:
    """C does not occur in A: one mismatch is needed, the mutated bound counts it twice."""
    assert Figure4(["A"]).find_kmers(["C"], 1) == [(0, 0, 0, 1, 0, 1), (0, 0, 0, 1, 1, 1)]
    assert Figure4(["A"]).find_kmers(["C"], 1, mutated=True) == []


def test_bounds_save_work() -> None:
    """With DIFFS fewer nodes are visited, and the hits are the same."""
    with_bounds = without = 0
    for seed in range(10):
        contigs, queries = random_case(seed)
        bounded, free = Figure4(contigs), Figure4(contigs)
        assert bounded.find_kmers(queries, 2) == free.find_kmers(queries, 2, bounded=False)
        with_bounds += bounded.visited
        without += free.visited
    assert with_bounds < without

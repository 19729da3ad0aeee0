"""The worked examples of papers 000 (cattattagga, tta) and 001 (AGGAGC, AGC), digit by digit.

The oracle and the built index must both give what the papers print.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from oracles.suffix_array import NaiveIndex, reversed_text

# Paper 000: Figure 1 (suffix array), Figure 2 (BWT), Figure 3 (intervals of a, ta, tta).
CATTATTAGGA = "CATTATTAGGA"
CATTATTAGGA_SUFFIX_ARRAY = [11, 10, 7, 4, 1, 0, 9, 8, 6, 3, 5, 2]
CATTATTAGGA_BWT = "AGTTC$GATTAA"
TTA_INTERVALS = [(1, 4), (8, 9), (10, 11)]

# Paper 001, sections 5.1 and 6.1, its slips set right against its own S, B and Equations 6.3 and 6.4: section
# 6.1 prints S once as (6 0 3 …) and gives AG the rows 2 and 3 (they are 1 and 2), prints the second O with
# O(G, 1) = 0 (it is 1), the lower limit of GC as 4 (row 4 is GAGC$; 3 + O(G, 2) + 1 is 5), and the upper
# limit of the empty string as 5 (|X| - 1 is 6, since |X| counts the $).
AGGAGC = "AGGAGC"
AGGAGC_S = [6, 3, 0, 5, 2, 4, 1]
AGGAGC_B = "CG$GGAA"
AGGAGC_C = {"A": 0, "C": 2, "G": 3, "T": 6}
AGGAGC_O = {
    "A": [0, 0, 0, 0, 0, 1, 2],
    "C": [1, 1, 1, 1, 1, 1, 1],
    "G": [0, 1, 1, 2, 3, 3, 3],
    "T": [0, 0, 0, 0, 0, 0, 0],
}
AGC_INTERVALS = [(3, 3), (5, 5), (1, 1)]

EXAMPLES = [
    (CATTATTAGGA, CATTATTAGGA_SUFFIX_ARRAY, CATTATTAGGA_BWT, "TTA", TTA_INTERVALS, [2, 5]),
    (AGGAGC, AGGAGC_S, AGGAGC_B, "AGC", AGC_INTERVALS, [3]),
]
EACH_EXAMPLE = pytest.mark.parametrize(
    ("genome", "suffix_array", "bwt", "pattern", "intervals", "positions"), EXAMPLES, ids=["000", "001"]
)


@EACH_EXAMPLE
def test_oracle(
    genome: str,
    suffix_array: list[int],
    bwt: str,
    pattern: str,
    intervals: list[tuple[int, int]],
    positions: list[int],
) -> None:
    index = NaiveIndex.of(genome + "$")
    assert index.suffix_array == suffix_array
    assert index.bwt == bwt
    assert index.backward_search(pattern) == intervals
    for sampling in (1, 2, 3, 32):
        assert index.positions(pattern, sampling) == positions


def test_oracle_counts_of_paper_001() -> None:
    index = NaiveIndex.of(AGGAGC + "$")
    assert index.smaller == AGGAGC_C
    assert {base: [index.occ(base, row) for row in range(7)] for base in "ACGT"} == AGGAGC_O
    assert [index.occ(base, -1) for base in "ACGT"] == [0, 0, 0, 0]


@EACH_EXAMPLE
@pytest.mark.parametrize("sampling", [1, 2, 8])
def test_built_index(
    write_reference: Callable[..., Path],
    sampling: int,
    genome: str,
    suffix_array: list[int],
    bwt: str,
    pattern: str,
    intervals: list[tuple[int, int]],
    positions: list[int],
) -> None:
    """Suffix array, both BWTs, C, Occ, the intervals of Equation 1 and the pairs of Equation 2."""
    from warpseed import build_index
    from warpseed.fm_index.locate import look_up, walk_to_sample
    from warpseed.fm_index.search import bwt_symbol, is_separator_row, rank, step

    index = build_index(
        write_reference([genome.lower()]),
        parts=("fast", "paper"),
        occ_interval=32,
        sa_interval=sampling,
        table_length=2,
    )
    assert index.fast.suffix_array.tolist() == suffix_array
    twin = NaiveIndex.of(genome + "$")
    for built, naive in ((index.forward, twin), (index.reverse, NaiveIndex.of(reversed_text(twin.text)))):
        rows = range(len(naive.text))
        spelled = ["$" if is_separator_row(built, row) else "ACGT"[bwt_symbol(built, row)] for row in rows]
        assert "".join(spelled) == naive.bwt
        assert built.first_row[:4].tolist() == [naive.smaller[base] + 1 for base in "ACGT"]
        for code, base in enumerate("ACGT"):
            assert [rank(built, code, row + 1) for row in rows] == [naive.occ(base, row) for row in rows]
    assert twin.bwt == bwt

    low, high = 0, len(genome) + 1
    found = []
    for base in reversed(pattern):
        code = "ACGT".index(base)
        low, high = step(index.forward, code, low), step(index.forward, code, high)
        found.append((low, high - 1))
    assert found == intervals
    pairs = [walk_to_sample(index.forward, row) for row in range(low, high)]
    assert sorted(look_up(index.forward, *pair) for pair in pairs) == positions
    for row, position in enumerate(suffix_array):
        assert look_up(index.forward, *walk_to_sample(index.forward, row)) == position


@EACH_EXAMPLE
@pytest.mark.parametrize("tier", ["paper", "fast"])
def test_found_k_mers(
    write_reference: Callable[..., Path],
    tier: str,
    genome: str,
    suffix_array: list[int],
    bwt: str,
    pattern: str,
    intervals: list[tuple[int, int]],
    positions: list[int],
) -> None:
    from warpseed import build_index, find_kmers

    hits = find_kmers(build_index(write_reference([genome]), parts=("fast", "paper")), [pattern.lower()], tier=tier)
    forward = hits.strand == 0
    assert hits.start[forward].tolist() == positions
    assert (hits.end - hits.start == 3).all() and not hits.distance.any()

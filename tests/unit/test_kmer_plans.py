"""What the CPU's windows are chosen by: rows of sampled buckets, and how far a look-up says what a match must be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from warpseed.fm_index.crowding import crowding_of
from warpseed.kmer_seeds.fast import Window, exact_bases
from warpseed.kmer_seeds.plans import _right_to_left


def test_sampled_buckets_have_the_rows_that_begin_so(write_reference: Callable[..., Path]) -> None:
    from warpseed import build_index

    contig = "ACGTTGCA" * 9 + "GATTACA" * 5 + "C"
    index = build_index(write_reference([contig]), table_length=3)
    crowding = crowding_of(index)
    assert crowding_of(index) is crowding
    samples = crowding.own.shape[1]
    # The separator is stored as A, and strings that end in it count as if A followed.
    text = contig + "AAAA"
    for seen in range(1, 4):
        for number in range(0, samples, 17):
            start = number * index.rows // samples
            string = text[start : start + seen]
            code = "ACGT".index(string[-1 - number % seen]) ^ (1 + number % 3)
            place = seen - 1 - number % seen
            changed = string[:place] + "ACGT"[code] + string[place + 1 :]
            for found, wanted in ((crowding.own, string), (crowding.near, changed)):
                rows = sum(text[i : i + seen] == wanted for i in range(len(contig) + 1))
                assert found[seen, number] == rows, (seen, number, wanted)


def test_windows_from_right_to_left_are_looked_up_with_what_is_behind_them() -> None:
    assert _right_to_left((13, 7), (0, 0), 13) == [Window(7, 13, 0), Window(0, 7, 0, 6)]
    assert _right_to_left((2, 3, 15), (0, 0, 0), 13) == [Window(18, 2, 0), Window(15, 3, 0, 2), Window(0, 15, 0)]


@pytest.mark.parametrize(
    ("windows", "i", "spent", "most", "exact"),
    [
        # All mismatches are spent: the rest of the k-mer is as it is.
        ([Window(0, 13, 1)], 0, (1, 0), 1, 20),
        ([Window(7, 13, 0), Window(0, 7, 0, 6)], 1, (0, 1), 1, 20),
        # One is left, and may be anywhere behind.
        ([Window(0, 13, 1)], 0, (0, 0), 1, 13),
        ([Window(7, 13, 0), Window(0, 7, 0, 6)], 1, (0, 0), 1, 13),
        # What is left is owed to the window on the right, and to the one on the left.
        ([Window(15, 5, 0), Window(0, 15, 0)], 1, (0, 0), 1, 15),
        ([Window(0, 10, 0), Window(10, 10, 0)], 1, (0, 0), 1, 10),
        # The window's own are spent, others are not.
        ([Window(15, 5, 1), Window(0, 15, 0)], 0, (1, 0), 2, 5),
    ],
)
def test_bases_that_must_be_as_in_the_kmer(
    windows: list[Window], i: int, spent: tuple[int, int], most: int, exact: int
) -> None:
    assert exact_bases(windows, i, spent, 20, most, 13) == exact

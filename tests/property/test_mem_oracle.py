"""The oracle of maximal exact matches: by windows, and straight from each definition."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made_up_genomes import patchworks
from oracles.kmers import differences, reverse_complement
from oracles.mems import KINDS, find_mems, find_mems_plainly, sa_intervals, split_intervals, without_redundant
from oracles.suffix_array import NaiveIndex

EACH_KIND = pytest.mark.parametrize("kind", KINDS)


def assert_twins_agree(contigs: list[str], read: str, min_length: int, kind: str) -> None:
    found, true = find_mems(contigs, read, min_length, kind), find_mems_plainly(contigs, read, min_length, kind)
    assert found == true, (differences(list(found), list(true)), contigs, read)


@EACH_KIND
@given(case=patchworks(), min_length=st.one_of(st.integers(1, 6), st.integers(1, 30)))
@example(case=(["N"], ["A", "", "N"]), min_length=1)
@example(case=(["", "ACG"], ["ACGACG", "acg", "ANCNG"]), min_length=1)
def test_oracle_is_what_its_plain_twin_says(kind: str, case: tuple[list[str], list[str]], min_length: int) -> None:
    contigs, reads = case
    # The plain search for SMEMs compares all intervals of a read with each other.
    longest = 24 if kind == "super" and min_length < 7 else 64
    for read in reads:
        assert_twins_agree(contigs[:3], read[:longest], min_length, kind)


@EACH_KIND
@pytest.mark.parametrize("min_length", [1, 2, 7, 12, 29, 30])
def test_named_references(small_references: dict[str, list[str]], kind: str, min_length: int) -> None:
    """Homopolymers, palindromes, tandem repeats, holes, hits across contigs; reads that are a contig, and longer."""
    for contigs in small_references.values():
        some = [contig[:100] for contig in contigs[:5]]
        joined = "".join(some)[:39]
        for read in {some[0][:40], some[-1][-40:], reverse_complement(some[0][:39]) + "A", "T" + joined, joined + "N"}:
            assert_twins_agree(some, read, min_length, kind)


@EACH_KIND
@given(case=patchworks(), min_length=st.integers(1, 8))
def test_both_strands_alike(kind: str, case: tuple[list[str], list[str]], min_length: int) -> None:
    """The reverse complement of a read has the same matches, on the other strand and from its other end."""
    contigs, reads = case
    for read in reads:
        turned = {
            (1 - strand, contig, start, len(read) - read_start - length, length)
            for strand, contig, start, read_start, length in find_mems(contigs, read, min_length, kind)
        }
        assert find_mems(contigs, reverse_complement(read), min_length, kind) == turned


@given(case=patchworks(), min_length=st.integers(1, 30))
def test_each_kind_has_what_the_stricter_ones_have(case: tuple[list[str], list[str]], min_length: int) -> None:
    contigs, reads = case
    for read in reads:
        strictest, paper, all_maximal = (find_mems(contigs, read, min_length, kind) for kind in ("super", *KINDS[::2]))
        assert strictest <= paper <= all_maximal


@EACH_KIND
@pytest.mark.parametrize("min_length", [30, 31, 32, 33, 70])
def test_lengths_about_the_longest_window(kind: str, min_length: int) -> None:
    contigs = ["ACGTTGCATGCCATGAGGATCCATTACAGATTACCA" * 2]
    for length in range(min_length - 1, min_length + 2):
        assert_twins_agree(contigs, contigs[0][1 : 1 + length] + "N", min_length, kind)


def test_what_the_kinds_leave_out() -> None:
    contigs, read = ["ATGCAAGTCCTCAAGTAA"], "GCAAGTGG"
    # GCAAGT, and a copy of it that lacks its first base: only a match that can be extended to the left elsewhere.
    assert find_mems(contigs, read, 4, "maximal") == {(0, 0, 2, 0, 6), (0, 0, 11, 1, 5)}
    assert find_mems(contigs, read, 4, "paper") == find_mems(contigs, read, 4, "super") == {(0, 0, 2, 0, 6)}
    # A copy that lacks the last base is a match of the paper's, and no SMEM; and none of the paper's on strand 1.
    contigs, read = ["ATGCAAGTCCTGCAAGAA"], "GCAAGTGG"
    both = {(0, 0, 2, 0, 6), (0, 0, 11, 0, 5)}
    assert find_mems(contigs, read, 4, "maximal") == find_mems(contigs, read, 4, "paper") == both
    assert find_mems(contigs, read, 4, "super") == {(0, 0, 2, 0, 6)}
    contigs = [reverse_complement(contigs[0])]
    assert find_mems(contigs, read, 4, "maximal") == {(1, 0, 10, 0, 6), (1, 0, 2, 0, 5)}
    assert find_mems(contigs, read, 4, "paper") == {(1, 0, 10, 0, 6)}


def test_strands_together() -> None:
    """A match on one strand lies in a longer one on the other: not an SMEM, though it is one of its own strand."""
    contigs, read = ["GATTACCCCC", reverse_complement("TGATTACA")], "TGATTACA"
    assert find_mems(contigs, read, 5, "paper") == {(0, 0, 0, 1, 6), (1, 1, 0, 0, 8)}
    assert find_mems(contigs, read, 5, "super") == {(1, 1, 0, 0, 8)}


def test_stages_of_paper_002() -> None:
    """Intervals that can be followed by hand: the suffixes of AACAAC$ begin $, AAC$, AACA, AC$, ACA, C$, CA."""
    index = NaiveIndex.of("AACAAC$")
    assert index.suffix_array == [6, 3, 0, 4, 1, 5, 2]
    mems = sa_intervals(index, "GAACA", 1)
    assert mems == [(2, 2, 1, 4), (1, 2, 1, 3), (1, 2, 1, 2), (1, 4, 1, 1)]
    assert without_redundant(mems) == [mems[0], mems[1], mems[3]]
    assert split_intervals([mems[0], mems[1], mems[3]]) == [(2, 1, 4), (1, 1, 3), (3, 1, 1), (4, 1, 1)]
    assert sa_intervals(index, "GAACA", 4) == [(2, 2, 1, 4)]

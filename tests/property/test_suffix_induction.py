"""Suffixes that are induced from those that begin one base later, against libdivsufsort, and their strings counted."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hostile_texts import HOSTILE, UNIT, bases, text_of
from hypothesis import given
from hypothesis import strategies as st
from suffix_order import by_libdivsufsort
from warpseed.compute.groups import TIED, UNTIED, state_of
from warpseed.fm_index import suffix_array, suffix_induction
from warpseed.fm_index.suffix_array import sort_with_marks
from warpseed.fm_index.suffix_induction import Bucketed, Turns, induce
from warpseed.fm_index.table import Marks, table_of

LENGTH = 7
"""Of the strings of tables."""
MIXED = [
    bases(9_000, "AACGTT"), "A" * 90 + bases(1_500, "AC") + "T" * 70, UNIT * 60 + "C" * 40, "G" * 33, "T", "A",
    bases(2_000) + "GGGGGGGGGGGG", "CCCCCCCCCCCCCC" + bases(700, "CG"), *["ACGT" * 9] * 3, *["TTTTTTTTT"] * 4,
]  # fmt: skip

SEGMENTS = st.lists(st.text("ACGT", min_size=1, max_size=300) | st.text("AT", min_size=1, max_size=99), min_size=1)


def table_by_counting(segments: list[str]) -> list[int]:
    """Borders of the rows of all strings of LENGTH bases, A standing for what a suffix lacks."""
    counts = np.zeros(4**LENGTH + 1, np.int64)
    for segment in segments:
        codes = np.array(["ACGT".index(base) for base in segment + "A" * LENGTH])
        strings = sum(codes[i : i + len(segment)] << 2 * (LENGTH - 1 - i) for i in range(LENGTH))
        counts[1:] += np.bincount(strings, minlength=4**LENGTH)
    counts[1] += len(segments)
    return counts.cumsum().tolist()


def check(segments: list[str], threads: int) -> None:
    rows, marks, borders = sort_with_marks(text_of(segments), LENGTH, threads)
    assert np.array_equal(rows, by_libdivsufsort(segments))
    assert table_of(marks, borders, threads).tolist() == table_by_counting(segments)


@pytest.fixture
def induced(monkeypatch: pytest.MonkeyPatch) -> list[Turns]:
    """Texts are sorted in buckets of up to seven bases, and not by phrases; the turns of what was induced."""
    seen: list[Turns] = []

    def noting(text: object, of: Bucketed, turns: Turns, threads: int) -> None:
        seen.append(turns)
        induce(text, of, turns, threads)

    monkeypatch.setattr(suffix_array, "_BUCKET", 1)
    monkeypatch.setattr(suffix_induction, "_LEAST", 1)
    monkeypatch.setattr(suffix_array, "parse_text", lambda text, threads: None)
    monkeypatch.setattr(suffix_array, "induce", noting)
    return seen


def in_turns(monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...]) -> None:
    monkeypatch.setattr(Turns, "of", classmethod(lambda cls, borders: cls(order)))


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_in_any_order_of_bases(order: tuple[int, ...], induced: list[Turns], monkeypatch: pytest.MonkeyPatch) -> None:
    in_turns(monkeypatch, order)
    for threads in (1, 3):
        check(MIXED, threads)
    assert [turns.order for turns in induced] == [order] * 2


@pytest.mark.usefixtures("induced")
@given(SEGMENTS, st.permutations(range(4)), st.integers(1, 5))
def test_any_text(segments: list[str], order: list[int], step: int) -> None:
    """With runs that are followed a few rows at a time."""
    with pytest.MonkeyPatch.context() as patch:
        in_turns(patch, tuple(order))
        patch.setattr(suffix_induction, "STEP", step)
        check(segments, 2)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts(name: str, induced: list[Turns]) -> None:
    for threads in (1, 3):
        check(HOSTILE[name], threads)
    assert len(induced) == (2 if sum(map(len, HOSTILE[name])) > 4 else 0)


@pytest.mark.parametrize("base", "ACGT")
def test_long_runs(base: str, induced: list[Turns]) -> None:
    """Of a few hundred thousand, alone, and before and behind others."""
    run = base * 200_000
    for segments in ([run], [run + "C", run[:150_000], "A" + run], [bases(5_000) + run + bases(5_000) + run[:70_000]]):
        check(segments, 2)
    assert len(induced) == 3


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_what_is_tied_is_induced_as_such(
    order: tuple[int, ...], induced: list[Turns], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And sorted by ranks then: what begins one base before is tied by one base more, and nothing else is."""
    in_turns(monkeypatch, order)
    monkeypatch.setattr(suffix_array, "work_for", lambda size: 0)
    for threads in (1, 3):
        check([*MIXED, *MIXED[::-1]], threads)
    assert len(induced) == 2


@pytest.mark.usefixtures("induced")
@given(SEGMENTS, st.permutations(range(4)), st.integers(1, 5))
def test_any_ties(segments: list[str], order: list[int], most: int) -> None:
    """Of copies of any text, by letters or buckets that are left as they are, if they are larger than some size."""
    with pytest.MonkeyPatch.context() as patch:
        in_turns(patch, tuple(order))
        patch.setattr(suffix_array, "work_for", lambda size: 0)
        patch.setattr(suffix_array, "_LARGE", most)
        patch.setattr(suffix_array, "ROOM_BYTES", 1 << 40)
        check(segments * 3, 2)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_states_of_ties(order: tuple[int, ...], induced: list[Turns], monkeypatch: pytest.MonkeyPatch) -> None:
    """All suffixes with as many equal first bases as letters sort by are tied, those one base before by one more, and
    no others."""
    # (No suffix ends that is tied with others: A counts for what it lacks, and a bucket with such is sorted further.)
    segment = (bases(699) + "C" + "A" * 60 + bases(300) + "TTTTTTT" + bases(90, "AC") + "G" * 31) * 3 + bases(49) + "G"
    in_turns(monkeypatch, order)
    monkeypatch.setattr(suffix_array, "work_for", lambda size: 0)
    inducing = suffix_array.induce
    states = []

    def noting(text: object, of: Bucketed, *others: object) -> None:
        inducing(text, of, *others)
        states.append([of.prefix, [int(state_of(of.tied, row)) for row in range(len(of.rows))]])

    monkeypatch.setattr(suffix_array, "induce", noting)
    check([segment], 2)
    [[prefix, found]] = states
    turn = {"ACGT"[base]: number for number, base in enumerate(order)}
    equal = [0] * (len(segment) - 1) + [1, 0]
    for at in range(len(segment) - 2, -1, -1):
        by_letters = turn[segment[at]] < turn[segment[at + 1]]
        equal[at] = prefix + 16 if by_letters else equal[at + 1] + 1
    rows = by_libdivsufsort([segment]).tolist()
    expected = [
        equal[one] == equal[two] and segment[one : one + equal[one]] == segment[two : two + equal[one]]
        for one, two in pairwise(rows)
    ]
    assert np.flatnonzero(found).tolist() == [row for row, tied in enumerate(expected, 1) if tied]
    assert set(found) == {UNTIED, TIED} and len(induced) == 1


@pytest.mark.usefixtures("induced")
def test_letters_sort_few_of_sixteen_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of six, and the six with the fewest suffixes."""
    sizes: list[int] = []
    sort_bucket = suffix_array.sort_bucket

    def noting(text: object, prefix: int, bucket: tuple[int, ...], *others: object) -> int:
        sizes.append(bucket[1] - bucket[0])
        return sort_bucket(text, prefix, bucket, *others)

    monkeypatch.setattr(suffix_array, "sort_bucket", noting)
    segment = bases(20_000, "AAACGTTT")
    check([segment], 2)
    pairs = {one + two: segment.count(one + two) for one in "ACGT" for two in "ACGT" if one != two}
    fewest = min(
        sum(pairs[one + two] for at, one in enumerate(order) for two in order[at + 1 :])
        for order in permutations("ACGT")
    )
    # (The last base of a segment may count as if A stood behind it.)
    assert fewest <= sum(sizes) <= fewest + 1 and sum(sizes) < 0.37 * len(segment)


def test_other_suffixes_than_buckets_have_are_found_out() -> None:
    """What is not in its order by letters when others are induced from it."""
    text = text_of(["ACGGT" * 5])
    rows = np.zeros(26, np.uint32)
    counts = np.bincount(
        [4 * "ACGT".index(one) + "ACGT".index(two) for one, two in zip("ACGGT" * 5, "CGGTA" * 5, strict=True)]
    )
    borders = 1 + np.append(0, np.append(counts, np.zeros(16 - len(counts), np.int64)).cumsum())
    with pytest.raises(AssertionError, match="other suffixes"):
        induce(text, Bucketed(2, borders, rows, Marks.none(16), np.empty(0, np.uint64)), Turns((0, 1, 2, 3)), 1)

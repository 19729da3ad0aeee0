"""Suffix arrays against their definition, and those of one segment against libdivsufsort."""

from __future__ import annotations

import numpy as np
import pytest
from hostile_texts import HOSTILE, UNIT, bases, text_of
from hypothesis import given
from hypothesis import strategies as st
from oracles.suffix_array import NaiveIndex, joined
from pydivsufsort import divsufsort
from warpseed.fm_index import suffix_array, suffix_ranks
from warpseed.fm_index.suffix_array import sort_suffixes, sort_with_table


@pytest.fixture(params=["", "small buckets", "small rooms", "ranks alone"])
def room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ways that a suffix may take to its place, with small texts."""
    if request.param == "small buckets":
        monkeypatch.setattr(suffix_array, "_BUCKET", 10)
    elif request.param == "small rooms":
        monkeypatch.setattr(suffix_array, "_BUCKET", 10)
        monkeypatch.setattr(suffix_array, "_LARGE", 5)
        monkeypatch.setattr(suffix_ranks, "_ROOM", 5)
    elif request.param == "ranks alone":
        monkeypatch.setattr(suffix_array, "_LARGE", 2)
        monkeypatch.setattr(suffix_ranks, "_ROOM", 2)


def check_order(segments: list[str], threads: int) -> None:
    """Rows, and the borders of the rows of all strings of some lengths, are as defined."""
    text, expected = text_of(segments), NaiveIndex.of(joined(segments)).suffix_array
    rows = sort_suffixes(text, threads)
    assert rows.dtype == np.uint32 and rows.tolist() == expected
    for length in (1, 3, 5):
        padded = [joined(segments)[start:].split("$")[0].ljust(length, "A")[:length] for start in expected]
        codes = ["".join(str("ACGT".index(base)) for base in string) for string in padded]
        again, table = sort_with_table(text, length, threads)
        assert np.array_equal(again, rows) and table.dtype == np.uint32
        borders = np.searchsorted([int(code, 4) for code in codes], np.arange(4**length + 1))
        assert table.tolist() == borders.tolist()


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts(name: str) -> None:
    for threads in (1, 3):
        check_order(HOSTILE[name], threads)


@pytest.mark.usefixtures("room")
@given(st.lists(st.text("ACGT", min_size=1, max_size=70) | st.text("AC", min_size=1, max_size=70), min_size=1))
def test_any_text(segments: list[str]) -> None:
    check_order(segments, 2)


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_sort_by_ranks_in_words_that_they_share(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is left to ranks, in groups of a few and of thousands, some of which have no room."""
    monkeypatch.setattr(suffix_array, "_LARGE", 1)
    monkeypatch.setattr(suffix_ranks, "_ROOM", 100)
    copy = bases(3_000)
    segment = copy * 4 + "A" * 5_000 + copy[1_000:] * 3 + UNIT * 1_000 + bases(4_000, "AC")
    for text in (segment, segment[1_234:]):
        symbols = np.array(["$ACGT".index(base) for base in text + "$"], np.uint8)
        assert np.array_equal(sort_suffixes(text_of([text]), threads), divsufsort(symbols).astype(np.uint32))


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_one_segment_as_libdivsufsort_has_it(threads: int) -> None:
    """A repeat longer than the letters that ties are sorted by, a tandem repeat, and a run, in random bases."""
    copy = bases(30_000)
    segment = copy + bases(50_000) + copy + UNIT * 3_000 + "A" * 70_000 + bases(100_000) + copy[:20_000]
    symbols = np.array(["$ACGT".index(base) for base in segment + "$"], np.uint8)
    rows = sort_suffixes(text_of([segment]), threads)
    assert np.array_equal(rows, divsufsort(symbols).astype(np.uint32))

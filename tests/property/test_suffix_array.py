"""Suffix arrays against their definition, and those of one segment against libdivsufsort."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hostile_texts import HOSTILE, UNIT, bases, text_of
from hypothesis import given
from hypothesis import strategies as st
from oracles.suffix_array import NaiveIndex, joined
from pydivsufsort import divsufsort
from warpseed.fm_index import suffix_array, suffix_ranks
from warpseed.fm_index.suffix_array import SORTING_BYTES, sort_suffixes, sort_with_marks
from warpseed.fm_index.suffix_letters import ROOM_BYTES, Room
from warpseed.fm_index.table import table_of


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
        monkeypatch.setattr(suffix_array, "ROOM_BYTES", 1 << 40)
        monkeypatch.setattr(suffix_ranks, "_ROOM", 2)


def check_order(segments: list[str], threads: int) -> None:
    """Rows, and the borders of the rows of all strings of some lengths, are as defined."""
    text, expected = text_of(segments), NaiveIndex.of(joined(segments)).suffix_array
    rows = sort_suffixes(text, threads)
    assert rows.dtype == np.uint32 and rows.tolist() == expected
    for length in (1, 3, 5):
        padded = [joined(segments)[start:].split("$")[0].ljust(length, "A")[:length] for start in expected]
        codes = ["".join(str("ACGT".index(base)) for base in string) for string in padded]
        again, marks, borders = sort_with_marks(text, length, threads)
        table = table_of(marks, borders, threads)
        assert np.array_equal(again, rows) and table.dtype == np.uint32
        expected_table = np.searchsorted([int(code, 4) for code in codes], np.arange(4**length + 1))
        assert table.tolist() == expected_table.tolist()


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
    monkeypatch.setattr(suffix_array, "ROOM_BYTES", 1 << 40)
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


def test_a_suffix_takes_so_much_room() -> None:
    small, large = (sum(array.nbytes for array in Room.of(size)) for size in (1_000, 3_000))
    assert large - small == 2_000 * ROOM_BYTES


@given(st.lists(st.integers(0, 300), min_size=1, max_size=30), st.integers(0, 10_000), st.integers(1, 9))
def test_threads_share_what_room_there_is(sizes: list[int], spare: int, threads: int) -> None:
    """As many as there is room for, each for one of the largest buckets, beside what each has at any rate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suffix_array, "_LARGE", 20)
        most, sorting = suffix_array._share_room(np.array(sizes), spare, threads)
    rooms = [size * ROOM_BYTES for size in sorted(sizes, reverse=True) if 20 < size <= most][:threads]
    assert most == max(20, spare // ROOM_BYTES)
    assert min(1, len(rooms)) <= sorting <= len(rooms) and sum(rooms[:sorting]) <= spare
    assert sorting == len(rooms) or sum(rooms[: sorting + 1]) > spare


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("unit", ["A", bases(40), bases(40, "AC"), bases(200_000), bases(200_000, "AC")])
def test_what_memory_a_base_takes(unit: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the text, and whatever the threads: large buckets, keys of all suffixes at once, ranks."""
    monkeypatch.setattr(suffix_array, "_BUCKET", 1 << 10)
    monkeypatch.setattr(suffix_array, "_LARGE", 1 << 10)
    monkeypatch.setattr(suffix_ranks, "_ROOM", 1 << 10)
    text = text_of([unit * (400_000 // len(unit))])
    sort_with_marks(text, 9, threads)
    tracemalloc.start()
    sort_with_marks(text, 9, threads)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    of_a_thread = sum(array.nbytes for array in Room.of(1 << 10)) + 3 * 8 * 4**5  # its place in each bucket, thrice
    assert peak <= SORTING_BYTES * 400_000 + threads * of_a_thread + 50_000

"""Suffix arrays against their definition, and those of one segment against libdivsufsort."""

from __future__ import annotations

import random
import tracemalloc

import hostile_texts
import numpy as np
import pytest
from hostile_texts import HOSTILE, UNIT, bases, text_of
from hypothesis import given
from hypothesis import strategies as st
from oracles.suffix_array import NaiveIndex, joined
from pydivsufsort import divsufsort
from suffix_order import by_libdivsufsort
from warpseed.compute.groups import count_ties
from warpseed.fm_index import parse, phrases, suffix_array, suffix_chains, suffix_ranks
from warpseed.fm_index.suffix_array import SORTING_BYTES, sort_suffixes, sort_with_marks
from warpseed.fm_index.suffix_chains import TiedOrder
from warpseed.fm_index.suffix_letters import ROOM_BYTES, Room
from warpseed.fm_index.table import table_of
from warpseed.fm_index.text import PackedText

WAYS = ["", "small buckets", "small rooms", "ranks alone", "chains", "short chains", "phrases", "phrases by ranks"]


@pytest.fixture(params=WAYS)
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
    elif "phrases" in request.param:
        monkeypatch.setattr(suffix_array, "_BUCKET", 10)
        cut_everything(monkeypatch, 3)
        if "ranks" in request.param:
            monkeypatch.setattr(suffix_array, "work_for", lambda size: 0)
    elif "chains" in request.param:
        leave_ties(monkeypatch)
        monkeypatch.setattr(suffix_chains, "_OTHERS", 3 if "short" in request.param else 1 << 12)
        monkeypatch.setattr(suffix_chains, "_WORDS", 1 if "short" in request.param else 100)


def leave_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    """No text is cut into phrases, and what is tied by keys is left to chains and ranks."""
    monkeypatch.setattr(suffix_array, "work_for", lambda size: 0)
    cut_nothing(monkeypatch)


def cut_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No text is sorted by phrases."""
    monkeypatch.setattr(suffix_array, "parse_text", lambda text, threads: None)


def cut_everything(monkeypatch: pytest.MonkeyPatch, conditions: int) -> None:
    """All texts are sorted by phrases."""
    monkeypatch.setattr(parse, "_CONDITIONS", (conditions,))
    monkeypatch.setattr(phrases, "_MOST", 1 << 20)
    monkeypatch.setattr(phrases, "_ROOM", 1)
    monkeypatch.setattr(parse, "_LEAST_TEXT", 0)
    monkeypatch.setattr(parse, "_MOST_OF_TEXT", 100)
    monkeypatch.setattr(parse, "_MOST_DIFFERENT", 1)
    monkeypatch.setattr(suffix_array, "_MOST_RANKED", 100)


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


def copies_of(genome: str, count: int, rate: float, seed: int) -> list[str]:
    """Copies in which each base may be another one."""
    draw = np.random.default_rng(seed)
    codes = np.searchsorted(np.frombuffer(b"ACGT", np.uint8), np.frombuffer(genome.encode(), np.uint8))
    copies = []
    for _ in range(count):
        changed = np.flatnonzero(draw.random(len(codes)) < rate)
        copy = codes.copy()
        copy[changed] = (copy[changed] + draw.integers(1, 4, len(changed))) % 4
        copies.append(np.frombuffer(b"ACGT", np.uint8)[copy].tobytes().decode())
    return copies


def genome_with_repeats(length: int) -> str:
    """Random bases, a seventh of them an element in several places, some tandem repeats, and a run."""
    element, part = bases(length // 50), bases(length // 14)
    tandem = bases(23) * (length // 500) + "C" * (length // 40) + bases(171) * 9
    return element.join([part, bases(length // 3), part[: len(part) // 2], bases(length // 4), element, tandem, "AC"])


COPIES = {
    "exact copies": lambda genome: [genome] * 7,
    "copies in one contig": lambda genome: [genome * 6],
    "copies of strains": lambda genome: copies_of(genome, 9, 0.001, 1),
    "far copies": lambda genome: copies_of(genome, 6, 0.02, 2),
    "two close copies": lambda genome: copies_of(genome, 2, 1e-4, 3),
    "parts of copies": lambda genome: [copy[at * 700 :] for at, copy in enumerate(copies_of(genome, 8, 0.002, 4))],
    "many small contigs": lambda genome: [genome[at : at + 900] for at in range(0, len(genome), 450)] * 2,
    "backwards": lambda genome: [genome[::-1], genome, genome[::-1] + genome],
}


def ties_of_passes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How many there will have been before and behind each pass along the text."""
    sort_by_chains, ties = suffix_chains.sort_by_chains, []

    def note_ties(text: PackedText, order: TiedOrder, *others: int) -> None:
        before = count_ties(order.tied)
        sort_by_chains(text, order, *others)
        ties.append((before, count_ties(order.tied)))

    monkeypatch.setattr(suffix_ranks, "sort_by_chains", note_ties)
    return ties


@pytest.mark.parametrize("limits", ["few others", "short comparisons", "few words", "all ties"])
@pytest.mark.parametrize("name", COPIES)
def test_copies_are_sorted_as_those_that_begin_before(name: str, limits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever chains end: what they do not sort is left to ranks."""
    if limits == "few others":
        monkeypatch.setattr(suffix_chains, "_OTHERS", 2)
    elif limits == "short comparisons":
        monkeypatch.setattr(suffix_chains, "_MOST", 2)
        monkeypatch.setattr(suffix_chains, "_SKIPS", 0)
    elif limits == "few words":
        monkeypatch.setattr(suffix_chains, "_WORDS", 0)
    leave_ties(monkeypatch)
    segments = COPIES[name](genome_with_repeats(20_000))
    expected, ties = by_libdivsufsort(segments), ties_of_passes(monkeypatch)
    for threads in (1, 3):
        assert np.array_equal(sort_suffixes(text_of(segments), threads), expected)
    assert ties
    if limits in ("few others", "few words"):
        assert ties[-1][1] > 0


@pytest.mark.parametrize("conditions", [1, 3, 6])
@pytest.mark.parametrize("way", ["", "by ranks", "small buckets"])
@pytest.mark.parametrize("name", COPIES)
def test_copies_are_sorted_by_phrases(name: str, way: str, conditions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many phrases: the dictionary by letters or by ranks, in few buckets or many."""
    cut_everything(monkeypatch, conditions)
    if way == "by ranks":
        monkeypatch.setattr(suffix_array, "work_for", lambda size: 0)
    elif way == "small buckets":
        monkeypatch.setattr(suffix_array, "_BUCKET", 10)
    segments = COPIES[name](genome_with_repeats(20_000))
    text, expected = text_of(segments), by_libdivsufsort(segments)
    assert parse.parse_text(text, 1) is not None
    tables = []
    for threads in (1, 3):
        rows, marks, borders = sort_with_marks(text, 9, threads)
        assert np.array_equal(rows, expected)
        tables.append(table_of(marks, borders, threads))
    monkeypatch.undo()
    cut_nothing(monkeypatch)
    _, marks, borders = sort_with_marks(text, 9, 2)
    assert all(np.array_equal(table, table_of(marks, borders, 2)) for table in tables)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_long_dictionary_is_not_left_to_ranks(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is sorted as if it did not repeat."""
    cut_everything(monkeypatch, 3)
    monkeypatch.setattr(suffix_array, "work_for", lambda size: 0)
    monkeypatch.setattr(suffix_array, "_MOST_RANKED", 0.1)
    refused = []
    sort_by_phrases = suffix_array._sort_by_phrases
    monkeypatch.setattr(
        suffix_array, "_sort_by_phrases", lambda *wanted: refused.append(sort_by_phrases(*wanted)) or refused[-1]
    )
    segments = COPIES["copies of strains"](genome_with_repeats(5_000))
    assert np.array_equal(sort_suffixes(text_of(segments), threads), by_libdivsufsort(segments))
    assert refused == [None]


@pytest.mark.parametrize("name", ["exact copies", "copies in one contig", "copies of strains"])
def test_copies_are_cut_as_they_come(name: str) -> None:
    """With nothing changed."""
    segments = COPIES[name](genome_with_repeats(20_000))
    assert parse.parse_text(text_of(segments), 1) is not None
    for threads in (1, 2):
        assert np.array_equal(sort_suffixes(text_of(segments), threads), by_libdivsufsort(segments))


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("name", ["exact copies", "copies in one contig", "copies of strains", "two close copies"])
def test_chains_leave_little_of_copies_to_ranks(name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of copies of a genome nor of the elements that each of them has in several places."""
    leave_ties(monkeypatch)
    # (Whatever tests ran before: how far chains lead depends on the bases.)
    monkeypatch.setattr(hostile_texts, "DRAW", random.Random(11))
    element = bases(1_200)
    segments = COPIES[name](element.join(bases(count) for count in (9_000, 20_000, 15_000, 3_000)))
    ties = ties_of_passes(monkeypatch)
    sort_suffixes(text_of(segments), threads)
    assert ties[0][0] > 50_000 and ties[-1][1] < ties[0][0] // 100


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


@pytest.fixture
def _small_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a thread takes is little beside a text of some hundred thousand bases."""
    monkeypatch.setattr(suffix_array, "_BUCKET", 1 << 10)
    monkeypatch.setattr(suffix_array, "_LARGE", 1 << 10)
    monkeypatch.setattr(suffix_ranks, "_ROOM", 1 << 10)


def check_memory(text: PackedText, threads: int) -> None:
    """Sorting takes no more for a base, beside what each thread takes."""
    sort_with_marks(text, 9, threads)
    tracemalloc.start()
    sort_with_marks(text, 9, threads)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    rooms = sum(array.nbytes for array in (*Room.of(1 << 10), *suffix_chains.Chain.new()))
    of_a_thread = rooms + 3 * 8 * 4**5  # its place in each bucket, thrice
    assert peak <= SORTING_BYTES * int(text.segments.text_start[-1]) + threads * of_a_thread + 50_000


@pytest.mark.usefixtures("_small_rooms")
@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("unit", ["A", bases(40), bases(40, "AC"), bases(200_000), bases(200_000, "AC")])
def test_what_memory_a_base_takes(unit: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the text, and whatever the threads: large buckets, keys of all suffixes at once, ranks."""
    cut_nothing(monkeypatch)
    check_memory(text_of([unit * (400_000 // len(unit))]), threads)


@pytest.mark.usefixtures("_small_rooms")
@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("way", ["by letters", "by ranks"])
@pytest.mark.parametrize("rate", [0, 0.001, 0.002])
def test_what_memory_a_base_of_copies_takes(
    rate: float, way: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By phrases, of two copies that have almost the longest dictionary that is left to ranks, or any."""
    if way == "by ranks":
        monkeypatch.setattr(suffix_array, "work_for", lambda size: 0)
    text = text_of(copies_of(bases(400_000), 2, rate, 6))
    assert parse.parse_text(text, threads) is not None
    check_memory(text, threads)

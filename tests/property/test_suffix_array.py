"""Suffix arrays against their definition, and those of one segment against libdivsufsort."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.suffix_array import NaiveIndex, joined
from pydivsufsort import divsufsort
from warpseed.fm_index import suffix_array
from warpseed.fm_index.suffix_array import sort_suffixes, sort_with_table
from warpseed.fm_index.text import PackedText, find_segments, pack_text

DRAW = random.Random(11)


def text_of(segments: list[str]) -> PackedText:
    """The packed text of segments, each of them a contig."""
    codes = np.array(["ACGT".index(base) for segment in segments for base in segment], np.uint8)
    offsets = np.cumsum([0, *map(len, segments)])
    found = find_segments(codes, offsets)
    return pack_text(codes, offsets, found)


def bases(count: int, letters: str = "ACGT") -> str:
    return "".join(DRAW.choices(letters, k=count))


LONG, UNIT = bases(300), bases(13)
HOSTILE = {
    "one base": ["A"],
    "all A": ["A" * 700],
    "all T, and shorter": ["T" * 300, "T" * 299, "T"],
    "runs of A to the ends": ["CAAAA" * 9 + "A" * 30, "A" * 40, "GAAA"],
    "tandem repeats": ["ACGT" * 90, "CGTA" * 50, UNIT * 40],
    "equal contigs": [LONG] * 4,
    "ends of each other": [LONG, LONG[100:], LONG[290:], LONG[299:]],
    "beginnings of each other": [LONG[:7], LONG[:64], LONG[:65], LONG],
    "segments of one base": list(bases(150, "AT")),
    "two letters": [bases(900, "AC")],
    "copies with changes": [LONG, LONG[:150] + "G" + LONG[151:], LONG[:299] + "A"],
    "around 32 bases": [LONG[:n] for n in (21, 22, 23, 31, 32, 33, 49, 50, 51, 63, 64, 65)],
}


@pytest.fixture(params=["", "small buckets", "small rooms", "ranks alone"])
def room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ways that a suffix may take to its place, with small texts."""
    if request.param == "small buckets":
        monkeypatch.setattr(suffix_array, "_BUCKET", 10)
    elif request.param == "small rooms":
        monkeypatch.setattr(suffix_array, "_BUCKET", 10)
        monkeypatch.setattr(suffix_array, "_ROOM", 5)
    elif request.param == "ranks alone":
        monkeypatch.setattr(suffix_array, "_ROOM", 2)


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


@pytest.mark.parametrize("threads", [1, 2])
def test_one_segment_as_libdivsufsort_has_it(threads: int) -> None:
    """A repeat longer than the letters that ties are sorted by, a tandem repeat, and a run, in random bases."""
    copy = bases(30_000)
    segment = copy + bases(50_000) + copy + UNIT * 3_000 + "A" * 70_000 + bases(100_000) + copy[:20_000]
    symbols = np.array(["$ACGT".index(base) for base in segment + "$"], np.uint8)
    rows = sort_suffixes(text_of([segment]), threads)
    assert np.array_equal(rows, divsufsort(symbols).astype(np.uint32))

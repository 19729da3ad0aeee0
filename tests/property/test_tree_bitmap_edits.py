"""True Levenshtein distances in a stream, against Sellers' table."""

from __future__ import annotations

import random

import numpy as np
import pytest
from oracles import tree_bitmap as truth
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import MemoryLimitError
from warpseed.tree_bitmap import cpu_edits, cpu_pieces, edits


def a_stream(draw: random.Random, length: int, letters: str) -> np.ndarray:
    return np.array([int(draw.choice(letters)) for _ in range(length)], np.uint8)


def kmers_of(codes: np.ndarray, k: int) -> list[truth.Word]:
    return sorted({word for _, word in truth.words_at(codes.tolist(), k)})


@pytest.fixture(params=["neighbourhood", "pieces"])
def structure(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    handy = request.param == "neighbourhood"
    monkeypatch.setattr(cpu_edits, "_has_handy_neighbourhood", lambda kmers, k, max_edits: handy)


@pytest.mark.usefixtures("structure")
@pytest.mark.parametrize("max_edits", [0, 1, 2, 3])
@pytest.mark.parametrize("k", [4, 5, 7])
@pytest.mark.parametrize("letters", ["0123", "01234", "0000001", "02"])
def test_distances_are_those_of_the_table(k: int, max_edits: int, letters: str) -> None:
    draw = random.Random(f"{k} {max_edits} {letters}")
    for length in (0, 1, k - 1, k, 120):
        codes = a_stream(draw, length, letters)
        words = kmers_of(a_stream(draw, 2 * k, letters), k)[: draw.choice([0, 1, 9])]
        kmers = np.array(truth.codes_of_words(words), np.uint64)
        expected = truth.least_edits(codes.tolist(), words, max_edits)
        for threads in (1, 3):
            found = cpu_edits.HostDistances(kmers, k, max_edits, threads=threads, watch=Stopwatch()).find(codes)
            assert found.tolist() == expected


@pytest.mark.usefixtures("structure")
@pytest.mark.parametrize(("k", "max_edits"), [(12, 2), (20, 1), (29, 1), (27, 2), (27, 3)])
def test_long_kmers_with_errors(k: int, max_edits: int) -> None:
    draw = random.Random(k)
    dictionary = a_stream(draw, 5 * k, "0123")
    words = kmers_of(dictionary, k)[:: 1 if max_edits < 3 else 40]
    stream: list[int] = []
    for start in range(0, 4 * k, k):
        piece = dictionary[start : start + 2 * k].tolist()
        for _ in range(draw.randrange(4)):
            place = draw.randrange(len(piece))
            piece[place : place + 1] = draw.choice([[], [draw.randrange(4)], [piece[place], draw.randrange(4)]])
        stream += piece
    kmers = np.array(truth.codes_of_words(words), np.uint64)
    found = cpu_edits.HostDistances(kmers, k, max_edits, watch=Stopwatch()).find(np.array(stream, np.uint8))
    assert found.tolist() == truth.least_edits(stream, words, max_edits)
    assert len(set(found.tolist())) > 2


@pytest.mark.parametrize(("k", "max_edits"), [(9, 1), (13, 3), (20, 2), (28, 2)])
@pytest.mark.parametrize("letters", ["0123", "01230123012301234", "00000001"])
def test_pieces_where_blocks_of_places_end(k: int, max_edits: int, letters: str) -> None:
    """In streams of several blocks, of which any range can be asked for."""
    draw = random.Random(f"{k} {max_edits} {letters}")
    length = 2 * cpu_pieces.PLACES + 100
    codes = a_stream(draw, length, letters)
    dictionary = codes.copy()
    dictionary[:: k // 2] = draw.choice([0, 1, 2, 3])
    words = kmers_of(dictionary, k)[:: draw.choice([1, 7])]
    kmers = np.array(truth.codes_of_words(words), np.uint64)
    expected = truth.least_edits(codes.tolist(), words, max_edits)
    pieces = cpu_pieces.pieces_of(kmers, k, max_edits)
    for first, last in ((0, length), (0, 1), (length - 1, length), (k, k), (200, 300), (cpu_pieces.PLACES, length - 3)):
        found = np.full(length, edits.TOO_FAR, np.uint8)
        cpu_pieces.find_by_pieces(codes, pieces, (first, last), cpu_pieces.new_room(), found)
        assert found[first:last].tolist() == expected[first:last]
        assert (np.delete(found, slice(first, last)) == edits.TOO_FAR).all()


@pytest.mark.parametrize(
    ("kmers", "k", "max_edits", "handy"),
    [
        (100_000, 20, 2, False), (1000, 20, 2, False), (1000, 20, 1, False), (1, 4, 3, False), (0, 5, 2, False),
        (600, 5, 2, True), (40_000, 12, 2, True), (10_000_000, 20, 2, False), (50_000, 12, 3, False),
    ],
)  # fmt: skip
def test_what_distances_are_looked_up_in(kmers: int, k: int, max_edits: int, handy: bool) -> None:
    """Pieces where they leave few candidates, or where a neighbourhood is too large."""
    assert cpu_edits._has_handy_neighbourhood(kmers, k, max_edits) == handy


def test_pieces_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_pieces, "available_memory", lambda: 100_000)
    with pytest.raises(MemoryLimitError, match=r"5,000 20-mers by 3 pieces take 0\.0 GB, but 0\.0 GB are free; take"):
        cpu_edits.HostDistances(np.arange(5000, dtype=np.uint64), 20, 2, watch=Stopwatch())


def test_a_neighbourhood_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_edits, "available_memory", lambda: 1_000_000)
    with pytest.raises(MemoryLimitError, match=r"All strings within 1 edits of 5,000 20-mers may take .* allow fewer"):
        cpu_edits.neighbourhood_of(np.arange(5000, dtype=np.uint64), 20, 1)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_neighbours_are_all_strings_one_edit_away(length: int) -> None:
    code = 0b1110010011 & (4**length - 1)
    there = {edits.neighbour(np.uint64(code), length, edit) for edit in range(edits.neighbours(length))}
    word = truth.words_of_codes([code], length)[0]
    for bases in (length - 1, length, length + 1):
        for other in range(4**bases):
            near = truth.edit_distance(word, truth.words_of_codes([other], bases)[0]) == 1
            assert ((other, bases) in there) >= near, (other, bases)

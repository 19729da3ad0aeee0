"""Streams: records one behind the other, k-mers as numbers, and the k-mers of many places at once."""

from __future__ import annotations

import numpy as np
import pytest
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.vectors import equal_words
from warpseed.sequences.queries import Queries
from warpseed.tree_bitmap import windows
from warpseed.tree_bitmap.stream import kmer_at, spelled, stream_of
from warpseed.tree_bitmap.windows import BLOCK, kmers_of, new_windows, rank_of_kmer, ranks_of, read_block

from tests.oracles.tree_bitmap import codes_of_words, words_at


def test_records_stand_one_behind_the_other_with_no_base_between() -> None:
    stream = stream_of(Queries.from_sequences(["ACgt", "N", "TTRA"], ["one", "two", "three"]))
    assert stream.codes.tolist() == [0, 1, 2, 3, 4, 4, 4, 3, 3, 4, 0]
    assert stream.starts.tolist() == [0, 5, 7]
    assert stream.names.decoded().tolist() == ["one", "two", "three"]


def test_letters_that_were_kept_are_no_bases() -> None:
    assert stream_of(Queries.from_sequences(["ARC"], letters=True)).codes.tolist() == [0, 4, 1]


def test_a_place_is_one_of_a_record() -> None:
    stream = stream_of(Queries.from_sequences(["ACGT", "A", "TTT"]))
    records, inside = stream.records_of(np.array([0, 3, 5, 7, 9]))
    assert records.tolist() == [0, 0, 1, 2, 2]
    assert inside.tolist() == [0, 3, 0, 0, 2]


def test_no_records_are_an_empty_stream() -> None:
    stream = stream_of(Queries.from_sequences([]))
    assert len(stream.codes) == len(stream.starts) == 0


def test_numbers_are_spelled_as_letters() -> None:
    letters = spelled(np.array([0b000110_11, 0b11_000000], np.uint64), 4)
    assert [row.tobytes() for row in letters] == [b"ACGT", b"TAAA"]


@pytest.mark.parametrize("k", [1, 2, 3, 4, 15, 16, 31])
def test_a_kmer_at_a_place(k: int) -> None:
    codes = np.random.default_rng(k).choice(5, 400, p=[0.24, 0.25, 0.25, 0.25, 0.01]).astype(np.uint8)
    known = dict(zip(*_truth(codes, k), strict=True))
    for place in range(len(codes) - k + 1):
        kmer, is_known = kmer_at(codes, place, k)
        assert is_known == (place in known)
        assert not is_known or kmer == known[place]


def _truth(codes: np.ndarray, k: int) -> tuple[list[int], list[int]]:
    found = list(words_at(codes.tolist(), k))
    return [place for place, _ in found], codes_of_words(word for _, word in found)


@pytest.mark.parametrize("k", range(1, 32))
@pytest.mark.parametrize("unknown", [0, 0.02])
def test_kmers_of_a_block_are_those_of_its_places(k: int, unknown: float) -> None:
    generator = np.random.default_rng(k)
    codes = generator.integers(0, 4, BLOCK + 500).astype(np.uint8)
    codes[generator.random(len(codes)) < unknown] = 4
    found = new_windows()
    read_block(codes, 3, BLOCK, found)  # what it leaves must not be seen
    for place, count in ((0, BLOCK), (7, BLOCK), (480, BLOCK), (500, BLOCK), (len(codes) - 1, 1)):
        kmers_of(found, k, count, read_block(codes, place, count, found))
        places, kmers = _truth(codes[place : place + count + k - 1], k)
        assert np.flatnonzero(found.known[:count]).tolist() == places
        assert found.kmers[places].tolist() == kmers


@pytest.mark.parametrize(("k", "m"), [(1, 1), (4, 2), (5, 5), (15, 8), (20, 10), (31, 12)])
def test_the_rank_of_a_place_is_that_of_its_kmer_wherever_it_stands(k: int, m: int) -> None:
    codes = np.random.default_rng(k).integers(0, 4, 900).astype(np.uint8)
    found = new_windows()
    kmers_of(found, k, 800, read_block(codes, 5, 800, found))
    ranks = found.ranks[ranks_of(found, k, m, 800)]
    assert ranks[:800].tolist() == [rank_of_kmer(kmer, k, m) for kmer in found.kmers[:800]]


def test_words_of_a_block_reach_behind_its_last_place() -> None:
    codes = np.random.default_rng(0).integers(0, 4, 200).astype(np.uint8)
    found = new_windows()
    read_block(codes, 0, 100, found)
    for place in (0, 31, 99, 132):
        expected = codes_of_words([tuple(codes[place : place + 32])])[0]
        assert windows.word_of(found, place) == expected


@scalar
def _mask(words, place, word):
    return equal_words(words, int64(place), uint64(word))


def test_equal_words_are_found_eight_at_once() -> None:
    words = np.array([1, 5, 2**63, 5, 5, 0, 7, 9, 5, 5], np.uint64)
    assert _mask(words, 0, np.uint64(5)) == 0b00011010
    assert _mask(words, 2, np.uint64(5)) == 0b11000110
    assert _mask(words, 0, np.uint64(2**63)) == 0b100
    assert _mask(words, 0, np.uint64(6)) == 0

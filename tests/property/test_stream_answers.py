"""The fast tier on the CPU says of every place what the definition says, with any structure, threads and blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warpseed.compute.stopwatch import Stopwatch
from warpseed.tree_bitmap import cpu, cpu_parts
from warpseed.tree_bitmap.cpu_counts import CountTable
from warpseed.tree_bitmap.stream import NO_BASE
from warpseed.tree_bitmap.windows import BLOCK

from tests.oracles.tree_bitmap import answers_to, codes_of_words, words_at, words_of_codes

LENGTHS = (0, 1, 2, 30, 31, 32, 100, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 40, 9000)
STRUCTURES = {
    "as it chooses": {},
    "sets in parts": {"_MOST_BITS_K": 0},
    "bits": {"_MOST_BITS_K": 13, "_CHEAP_BITS": 4**13},
}
SIZES = {
    (cpu_parts, "_PART_KMERS"): (50, 700, 1 << 15),
    (cpu_parts, "_ROOM_SLOTS"): (64, 256, 1 << 18),
    (cpu, "MOST_PLACES"): (BLOCK, 1 << 31),
    (cpu, "_ROUND"): (BLOCK, 1 << 22),
    (cpu, "_PLACES_A_THREAD"): (1, 1 << 19),
}


def made_stream(generator: np.random.Generator, kind: str, length: int) -> np.ndarray:
    """A stream of a kind that some structure could trip over."""
    codes = generator.integers(0, 4, length).astype(np.uint8)
    if kind == "homopolymer":
        codes[:] = generator.integers(0, 4)
    elif kind == "repeat":
        codes = np.tile(codes[: length // 7 + 1], 8)[:length]
    elif kind == "with unknown bases":
        codes[generator.random(length) < 0.03] = 4
    elif kind == "short records":
        codes[::40] = 4
    elif kind == "unknown":
        codes[:] = 4
    return codes


KINDS = ("random", "homopolymer", "repeat", "with unknown bases", "short records", "unknown")


def truth(codes: np.ndarray, k: int, seed_length: int, known: np.ndarray, grows: bool) -> tuple[list[int], list[int]]:
    stream, seed = codes.tolist(), known.tolist()
    if grows:
        return answers_to(stream, k, seed_length, seed)
    words = {word for _, word in words_at(stream[:seed_length], k)} | set(words_of_codes(seed, k))
    answers = [0] * len(stream)
    for place, word in words_at(stream, k):
        answers[place] = 2 if word in words else 1
    return answers, sorted(codes_of_words(words))


@pytest.fixture(autouse=True, scope="module", params=STRUCTURES)
def structure(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "_PLACES_A_THREAD", 1)
        for name, value in STRUCTURES[request.param].items():
            patch.setattr(cpu, name, value)
        yield


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_answers_and_dictionary_are_those_of_the_definition(data: st.DataObject) -> None:
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    k = data.draw(st.sampled_from((1, 2, 3, 4, 7, 11, 12, 13, 14, 15, 16, 20, 31)))
    kind, length = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from(LENGTHS))
    codes = made_stream(generator, kind, length)
    seed_length = min(length, data.draw(st.sampled_from((0, 0, k - 1, k, 60, length))))
    known = np.unique(generator.integers(0, 4**k, data.draw(st.sampled_from((0, 5, 1000))), dtype=np.uint64))
    grows, threads = data.draw(st.booleans()), data.draw(st.integers(1, 3))
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), values in SIZES.items():
            patch.setattr(module, name, data.draw(st.sampled_from(values), name))
        answers, dictionary = cpu.find_answers(
            codes, k, seed_length=seed_length, dictionary=known, grows=grows, threads=threads, watch=Stopwatch()
        )
        expected, kmers = truth(codes, k, seed_length, known, grows)
        assert answers.tolist() == expected
        assert dictionary().tolist() == kmers


BLOCKS = ([9000], [1, 2, 30, 3000, 1, 5966], [300] * 30, [4500, 0, 4500])
"""Of blocks."""


@pytest.mark.parametrize("k", [3, 15, 31])
@pytest.mark.parametrize("kind", ["random", "repeat", "short records"])
def test_blocks_of_any_lengths_give_the_same_answers(kind: str, k: int) -> None:
    codes = made_stream(np.random.default_rng(k), kind, 9000)
    expected, _ = truth(codes, k, 0, np.empty(0, np.uint64), True)
    for lengths in BLOCKS:
        kmers = cpu.HostKmers(k, np.empty(0, np.uint64), threads=2, places=max(lengths))
        answers = np.zeros(9000, np.uint8)
        for last, length in zip(np.cumsum(lengths), lengths, strict=True):
            kmers.answer(codes[last - length : last + k - 1], answers[last - length : last], last < 9000)
        assert answers.tolist() == expected


COUNTED_BY = {"sets": {"_MOST_COUNTED_K": 0}, "a table": {"_CHEAP_COUNTS": 3 * 4**8}}


@pytest.mark.parametrize(
    ("k", "way"), [(1, "a table"), (3, "sets"), (3, "a table"), (8, "a table"), (15, ""), (31, "")]
)
@pytest.mark.parametrize("kind", KINDS)
def test_kmers_of_blocks_of_any_lengths_are_counted(
    monkeypatch: pytest.MonkeyPatch, kind: str, k: int, way: str
) -> None:
    for name, value in COUNTED_BY.get(way, {}).items():
        monkeypatch.setattr(cpu, name, value)
    codes = made_stream(np.random.default_rng(k), kind, 9000)
    for lengths in BLOCKS:
        blocks = np.split(codes, np.cumsum(lengths)[:-1])
        stream = np.concatenate([part for block in blocks for part in (block, np.full(1, NO_BASE, np.uint8))][:-1])
        words = [(place, codes_of_words([word])[0]) for place, word in words_at(stream.tolist(), k)]
        times = Counter(kmer for _, kmer in words)
        firsts = {kmer: place for place, kmer in reversed(words)}
        counts = cpu.HostCounts(k, threads=3, places=max(lengths))
        assert way == "" or isinstance(counts._structure, CountTable) == (way == "a table")
        for number, block in enumerate(blocks, 1):
            counts.take(block, number < len(blocks))
        found = counts.counted()
        rows = sorted((place, kmer, times[kmer]) for kmer, place in firsts.items())
        assert list(zip(found.places.tolist(), found.codes.tolist(), found.counts.tolist(), strict=True)) == rows


def test_kmers_of_a_dictionary_are_known() -> None:
    known = np.array([3, 7, 9], np.uint64)
    assert cpu.is_known(np.array([0, 3, 8, 9, 10], np.uint64), known).tolist() == [False, True, False, True, False]
    assert cpu.is_known(np.array([0], np.uint64), known[:0]).tolist() == [False]

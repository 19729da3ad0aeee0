"""The dynamic system on the CPU: the oracle's answers and dictionary, whatever the way to them."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
from oracles.tree_bitmap import NEW, SEEN, answers_to, codes_of_words, words_at
from warpseed.errors import InputError, MemoryLimitError
from warpseed.tree_bitmap import dynamic, growing
from warpseed.tree_bitmap.cpu_paper import EXACT_TWINS, match_chunk
from warpseed.tree_bitmap.dynamic import How, Matched, Seed, chunks_of, match_dynamically, match_on_one_trie
from warpseed.tree_bitmap.growing import STRUCTURES, Growing
from warpseed.tree_bitmap.paper import MISMATCH, start_of

STREAMS = ("random", "repeats", "homopolymer", "holes", "short", "one", "nothing", "no base")
LENGTHS = (1, 3, 4, 31)


@cache
def stream_of(name: str) -> np.ndarray:
    """Streams that go wrong easily."""
    draw = random.Random(name)
    unit = draw.choices(range(4), k=70)
    codes = {
        "random": draw.choices(range(4), k=400),
        "repeats": unit + [4] + unit[:50] + unit + unit[9:] + [3, 2] * 40,
        "homopolymer": [0] * 90 + [2] * 60,
        "holes": draw.choices(range(5), [9, 9, 9, 9, 2], k=300) + [4] * 5 + unit,
        "short": unit[:2],
        "one": unit[:31],
        "nothing": [],
        "no base": [4] * 40,
    }[name]
    return np.array(codes, np.uint8)


def seeds_of(codes: np.ndarray, k: int) -> list[Seed]:
    """None, a part of the stream, all of it; words that are not in it, and both."""
    others = [word for _, word in words_at(random.Random(7).choices(range(4), k=40), k)]
    known = np.array(sorted(set(codes_of_words(others))), np.uint64)
    return [Seed(), Seed(len(codes) // 3), Seed(len(codes)), Seed(0, known), Seed(len(codes) // 4, known)]


def assert_right(matched: Matched, codes: np.ndarray, k: int, seed: Seed) -> None:
    answers, dictionary = answers_to(codes.tolist(), k, seed.length, seed.kmers.tolist())
    assert matched.answers.tolist() == answers and matched.answers.dtype == np.uint8
    assert matched.dictionary.tolist() == dictionary and matched.dictionary.dtype == np.uint64


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("k", LENGTHS)
@pytest.mark.parametrize("kernel", EXACT_TWINS)
def test_answers_and_dictionary_are_the_oracles(name: str, k: int, kernel: str) -> None:
    codes = stream_of(name)
    for seed in seeds_of(codes, k):
        for structure in STRUCTURES:
            assert_right(match_on_one_trie(codes, k, seed, structure), codes, k, seed)
            for length, concurrent, pieces in ((len(codes) + 5, False, 1), (37, True, 3), (64, False, 2)):
                how = How(length, structure, kernel, concurrent, pieces)
                assert_right(match_dynamically(codes, k, seed, how), codes, k, seed)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("k", LENGTHS)
@pytest.mark.parametrize("concurrent", [False, True])
def test_chunks_may_be_of_one_kmer(name: str, k: int, concurrent: bool) -> None:
    codes = stream_of(name)
    for length in (1, 2, k, k + 1):
        how = How(length, "tree", "shuffle", concurrent, 2)
        assert_right(match_dynamically(codes, k, Seed(5), how), codes, k, Seed(5))


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("concurrent", [False, True])
def test_the_first_allocation_overflows(structure: str, concurrent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = stream_of("random")
    room_of = []
    grow = Growing._grow
    monkeypatch.setattr(Growing, "_grow", lambda self: (room_of.append(self.room), grow(self)))
    monkeypatch.setattr(Growing.__init__, "__defaults__", ("tree", 2))
    assert_right(match_dynamically(codes, 9, Seed(3), How(50, structure, "naive", concurrent)), codes, 9, Seed(3))
    assert len(room_of) > 5
    assert growing.FIRST_ROOM > 2


@pytest.mark.parametrize("seed", range(8))
def test_both_twins_report_the_same_once_a_place(seed: int) -> None:
    """Whatever the dictionary and the pieces: a record for every place with a k-mer, and its type is right."""
    draw = random.Random(seed)
    k, count = draw.choice([1, 2, 3, 4, 5, 7, 12, 31]), 250
    codes = np.array(draw.choices(range(5), [12, 12, 12, 12, 1], k=count), np.uint8)
    known = {word for place, word in words_at(codes.tolist(), k) if draw.random() < 0.5}
    dictionary = Growing(k, draw.choice(sorted(STRUCTURES)))
    dictionary.insert(np.array(codes_of_words(known), np.uint64))
    bitmap, places = dictionary.to_bitmap(), (draw.randrange(20), count - k + 1 - draw.randrange(20))
    by_kernel = {
        (kernel, pieces): sorted(match_chunk(codes, k, bitmap, places, kernel, pieces).tolist())
        for kernel in EXACT_TWINS
        for pieces in (1, 3, 40)
    }
    records = by_kernel["naive", 1]
    assert all(other == records for other in by_kernel.values())
    starts = [start_of(np.uint64(record)) for record in records]
    assert len(set(starts)) == len(starts) and all(places[0] <= start < places[1] for start in starts)
    kinds = {start: SEEN if record < int(MISMATCH) else NEW for start, record in zip(starts, records, strict=True)}
    for place, word in words_at(codes.tolist(), k):
        if places[0] <= place < places[1]:
            assert kinds[place] == (SEEN if word in known else NEW)


def test_the_parts_of_a_record_are_those_of_figure_11() -> None:
    """ACG in the trie, and read: ACG, then ACC."""
    dictionary = Growing(3)
    dictionary.insert(np.array([0b000110], np.uint64))
    codes = np.array([0, 1, 2, 0, 1, 1], np.uint8)
    records = sorted(match_chunk(codes, 3, dictionary.to_bitmap(), (0, 4)).tolist())
    parts = [(r >> 63, r >> 32 & 0x7FFFFFFF, r >> 5 & 0x7FFFFFF, r & 31) for r in records]
    # The match ends at place 2 in trie-node 1. C, G and, at place 5, C after AC are no way on from trie-node 0.
    assert parts == [(0, 2, 1, 3), (1, 1, 0, 1), (1, 2, 0, 1), (1, 5, 0, 3)]


def test_chunks_cover_every_kmer_once() -> None:
    for length, chunk_length, k in ((24, 6, 4), (100, 7, 31), (5, 1, 3), (3, 10, 4), (0, 5, 2), (64, 64, 1)):
        chunks = chunks_of(length, chunk_length, k)
        begun = [place for first, last in chunks for place in range(first, last - k + 1)]
        assert begun == list(range(max(length - k + 1, 0)))


@pytest.mark.parametrize("concurrent", [False, True])
def test_events_tell_what_was_done(concurrent: bool) -> None:
    """Concurrently the kernel of a chunk comes before the deltas of the chunk before."""
    codes = stream_of("random")
    events = match_dynamically(codes, 4, Seed(50), How(100, concurrent=concurrent)).events
    assert all(0 <= event.begin <= event.end for event in events)
    assert [event.end for event in events] == sorted(event.end for event in events)
    names = [(event.name, event.stream) for event in events if event.name != "to_bitmap"]
    in_turn = [("kernel", 0), ("deltas", 0), ("kernel", 1), ("deltas", 1)] * 2
    beside = [("kernel", 0), ("kernel", 1), ("deltas", 0), ("kernel", 0), ("deltas", 1), ("kernel", 1)]
    assert names == ([*beside, ("deltas", 0), ("deltas", 1)] if concurrent else in_turn)


def test_what_is_out_of_range_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = stream_of("random")
    for k in (0, 32):
        with pytest.raises(InputError, match="k is"):
            match_dynamically(codes, k)
        with pytest.raises(InputError, match="k is"):
            match_on_one_trie(codes, k)
    with pytest.raises(InputError, match="chunk_length is 0"):
        match_dynamically(codes, 3, how=How(0))
    for how, told in (
        (How(structure="graph"), "structure is 'graph', but 'tree' or 'hybrid'"),
        (How(kernel="fast"), "kernel is 'fast', but 'naive' or 'shuffle'"),
        (How(pieces=0), "pieces is 0"),
        (How(records=-1), "records is -1"),
        (How(lanes=12), "lanes is 12, but one of 4, 8, 16, 32"),
        (How(lanes=8), "above k = 8, was expected"),
    ):
        with pytest.raises(InputError, match=told):
            match_dynamically(codes, 8, how=how)
    with pytest.raises(InputError, match="structure is ''"):
        match_on_one_trie(codes, 3, structure="")
    with pytest.raises(InputError, match="the word 64, which is no number of 3 bases"):
        match_dynamically(codes, 3, Seed(0, np.array([5, 64], np.uint64)))
    monkeypatch.setattr(dynamic, "MOST_TRIE_NODES", 10)
    with pytest.raises(MemoryLimitError, match="trie-nodes, but a record of the paper tier counts 10"):
        match_dynamically(codes, 9, how=How(50))
    monkeypatch.setattr(dynamic, "MOST_PLACES", 100)
    with pytest.raises(InputError, match="The stream has 400 places"):
        match_dynamically(codes, 9)

"""The k-mers that come first in a block, as threads of the CPU list them: those of NumPy and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import tree_bitmap as truth
from warpseed.tree_bitmap import cpu, stream
from warpseed.tree_bitmap.cpu_listing import NewPlaces, new_kmers

K = 5


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("length", [0, 1, K - 1, K, 2047, 2048, 2049, 9000])
@pytest.mark.parametrize("first", [0, 70_000])
def test_new_places(monkeypatch: pytest.MonkeyPatch, threads: int, length: int, first: int) -> None:
    """Whatever stands before the block; places have 32 bits as long as these hold all up to its end."""
    monkeypatch.setattr(stream, "_MOST_IN_32_BITS", 1 << 16)
    draw = np.random.default_rng(length)
    codes = draw.integers(0, 4, length, np.uint8)
    words = dict(truth.words_at(codes.tolist(), K))
    answers = np.where(np.isin(np.arange(length), list(words)), draw.integers(1, 3, length), truth.NO_KMER)
    first_counts = draw.integers(1, 1000, length, np.uint32)
    is_new = answers == truth.NEW
    new = NewPlaces(answers.astype(np.uint8), threads)
    assert new.count == np.count_nonzero(is_new)
    kmers = truth.codes_of_words(words[place] for place in np.flatnonzero(is_new).tolist())
    assert new.kmers(codes, K).tolist() == new_kmers(codes, K, answers.astype(np.uint8)).tolist() == kmers
    places, counts = new.counts(first_counts, first)
    assert places.tolist() == (first + np.flatnonzero(is_new)).tolist()
    assert counts.tolist() == first_counts[is_new].tolist()
    assert places.dtype == counts.dtype == (np.int64 if first else np.int32)


@pytest.mark.parametrize("k", [3, 31])
@pytest.mark.parametrize("longest", [0, 900, 1 << 20])
@pytest.mark.parametrize("threads", [1, 3])
def test_counts_of_blocks_get_more_bits_when_they_need_them(
    monkeypatch: pytest.MonkeyPatch, k: int, longest: int, threads: int
) -> None:
    """Also those of the blocks before, as their k-mers come again."""
    monkeypatch.setattr(stream, "_MOST_IN_32_BITS", longest)
    draw = np.random.default_rng(k)
    blocks = [draw.integers(0, 5, size, np.uint8) for size in (400, 0, 500, 300)]
    blocks[2][:350] = blocks[0][:350]
    whole = np.concatenate([part for block in blocks for part in (block, np.full(1, stream.NO_BASE))])
    counts = cpu.HostCounts(k, threads=threads, places=500)
    for number, block in enumerate(blocks, 1):
        counts.take(block, number < len(blocks))
    places: dict[object, list[int]] = {}
    for place, word in truth.words_at(whole.tolist(), k):
        places.setdefault(word, []).append(place)
    counted = counts.counted()
    assert counted.codes.tolist() == truth.codes_of_words(places)
    assert counted.places.tolist() == [own[0] for own in places.values()]
    assert counted.counts.tolist() == [len(own) for own in places.values()]
    made_type = np.int32 if len(whole) <= longest else np.int64
    assert counted.places.dtype == counted.counts.dtype == made_type

"""How the distances of all pairs are dealt out to GPUs: every pair in every stretch of ranks once, in equal shares; and
what comes to each."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warpseed

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from ebwt_on_gpus import drawn_words
from hostile_words import HOSTILE
from oracles.pretend_ebwt_fast import Played, play_fast_kernels
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import cpu, gpu, gpu_between, gpu_distances, gpu_fast, gpu_few, gpu_few_words, gpu_order
from warpseed.ebwt.words import words_of

SIZES = [
    (40_000_000, 2_000), (20_000_000, 2_000), (10_000_000, 1_000), (23_000_000, 5), (1_000_000, 2), (70_000, 1),
    (1_025, 1_025), (100_000_000, 1_000_000), (2, 2), (5, 3),
]  # fmt: skip
"""Conjugates, and words."""
LONG = {
    "a long word and short ones": ["abbab" * 12, "ba", "a", "bab", "abb", "b"],
    "short words and a long one": ["ba", "a", "bab", "abb", "b", "abbab" * 12],
    "two words": ["abbab" * 6, "babba" * 5],
    "one word": ["abaab"],
}


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Played:
    """Five GPUs that the CPU plays, and no words that are few."""
    played = play_fast_kernels(monkeypatch, devices=5)
    monkeypatch.setattr(gpu_few, "MOST_FEW", 0)
    return played


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 8])
@pytest.mark.parametrize(("count", "words"), SIZES)
def test_every_rank_is_one_device_s_and_shares_are_equal(count: int, words: int, devices: int) -> None:
    shares = gpu_distances.shares_of(count, devices)
    assert [shares[0].start, *(share.stop for share in shares)] == [*(share.start for share in shares), count]
    sizes = [share.stop - share.start for share in shares]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("count", "words"), SIZES)
def test_sets_take_little_memory_whatever_the_words_are(count: int, words: int) -> None:
    """Those of a slab, which has as many stretches as fit, and of each stretch every word has enough ranks."""
    stretch = gpu_distances._stretch_for(words)
    assert stretch % gpu_between.RANKS == 0 and stretch >= 128 * words
    of_slab = min(count, max(stretch, 1 << 23))
    levels = gpu_distances._levels_for(words, of_slab)
    smallest, largest = gpu_between.RANKS, gpu_between.RANKS * gpu_between.JOINED ** (levels - 1)
    # A gap of words of one length is a few of the largest sets, one of a word that hardly comes some thousands.
    assert words <= 3 * largest and of_slab <= largest << 13
    assert largest == smallest or 3 * largest < 4 * words or largest << 11 < of_slab
    assert gpu_distances.bytes_of_sets(count, words) <= levels * (of_slab // smallest) * 8 * gpu_between.LANES
    assert gpu_distances.bytes_of_sets(count, words) <= 16 * levels * count


@pytest.mark.parametrize("devices", [1, 2, 3, 4])
@pytest.mark.parametrize("name", [*HOSTILE, *LONG])
def test_every_gap_is_looked_at_once(monkeypatch: pytest.MonkeyPatch, name: str, devices: int) -> None:
    """The kernels as they are written: by devices of which each has a share of the ranks, in how many gaps of a word
    every later one is."""
    strings = [word[:70] for word in (HOSTILE | LONG)[name]]
    words, m = words_of(strings), len(strings)
    play_fast_kernels(monkeypatch)
    there = gpu_order.DeviceWords.of(words)
    order = gpu_order.order_of(there, at_once=False)
    colours = there.words_of[order]
    shares = gpu_distances.shares_of(len(order), devices)
    ranked = [gpu_distances._rank(colours[share], m, share.start) for share in shares]
    total = np.zeros((m, m), np.int64)
    for number, (share, own) in enumerate(zip(shares, ranked, strict=True)):
        assert sorted(own.positions.tolist()) == list(range(share.stop - share.start))
        for word in range(m):
            ranks = np.flatnonzero(colours[share] == word)
            assert own.positions[own.cuts[word, 0] : own.cuts[word, -1]].tolist() == ranks.tolist()
            ends = (share.start + ranks[0], share.start + ranks[-1]) if len(ranks) else (gpu_fast.NEVER, -1)
            assert (own.firsts[word], own.lasts[word]) == ends
        counts = gpu_distances._count(own, share.start, gpu_distances._before(ranked, number))
        assert counts.tolist() == counts.T.tolist()
        total += counts
    assert total.tolist() == gaps_with(np.asarray(colours), m).tolist()


@pytest.mark.parametrize("at_once", [2, 5])
@pytest.mark.parametrize("seed", range(6))
def test_gaps_of_colours_that_are_drawn(monkeypatch: pytest.MonkeyPatch, seed: int, at_once: int) -> None:
    """More words than a warp sees, gaps of more sets than the largest has, and words that hardly ever come."""
    played, draw = play_fast_kernels(monkeypatch), np.random.default_rng(seed)
    for module in (gpu_between, gpu_distances):
        monkeypatch.setattr(module, "WORDS", 32)
        monkeypatch.setattr(module, "GAPS", 2 + at_once)
        monkeypatch.setattr(module, "RANKS", 4)
    monkeypatch.setattr(gpu_between, "_RANKS_BITS", 2)
    monkeypatch.setattr(gpu_distances, "_SETS_OF_GAP", at_once)
    monkeypatch.setattr(gpu_distances, "_MOST_SETS", 1 << at_once)
    monkeypatch.setattr(gpu_distances, "_SLAB", 40 * at_once)
    monkeypatch.setattr(gpu_distances, "_FEW_WORDS", seed % 2 << 16)
    m = 40 + 10 * seed
    weights = draw.random(m) ** 6 + 1e-3
    colours = draw.choice(m, 260, p=weights / weights.sum()).astype(np.uint32)
    ranked = gpu_distances._rank(played.package.asarray(colours), m, 0)
    counts = gpu_distances._count(ranked, 0, gpu_distances._before([ranked], 0))
    assert counts.tolist() == gaps_with(colours, m).tolist()
    made = [arguments[2].nbytes for _, kernel, arguments in played.launched if kernel == "make_sets"]
    assert max(made) == gpu_distances.bytes_of_sets(len(colours), m)


@pytest.mark.parametrize("ranks", [5, 16, 63, 64, 260, 1_100])
def test_sets_of_every_level_up_to_the_last_rank(monkeypatch: pytest.MonkeyPatch, ranks: int) -> None:
    played, draw = play_fast_kernels(monkeypatch), np.random.default_rng(ranks)
    colours, levels, count = draw.integers(0, 3_000, ranks).astype(np.uint16), 4, ranks // gpu_between.RANKS
    there = played.package.asarray(colours)
    for first_word in (0, gpu_between.WORDS):
        sets = played.package.empty((levels, count * gpu_between.LANES), np.uint64)
        gpu_distances.launch(gpu_between.make_sets, sets.shape[1], 64, there, first_word, sets.reshape(-1))
        for level in range(levels):
            if level:
                gpu_distances.launch(gpu_between.join_sets, sets.shape[1], 64, level, sets)
            of_level = np.asarray(sets[level]).reshape(count, gpu_between.LANES)
            size = gpu_between.JOINED**level
            for begin in range(count - size + 1):
                expected = np.zeros((64, gpu_between.LANES), np.uint64)
                inside = colours[begin * gpu_between.RANKS : (begin + size) * gpu_between.RANKS].astype(np.int64)
                inside = inside[(inside >= first_word) & (inside < first_word + gpu_between.WORDS)] - first_word
                expected[inside // gpu_between.LANES, inside % gpu_between.LANES] = 1
                bits = (of_level[begin] >> np.arange(64, dtype=np.uint64)[:, None]) & np.uint64(1)
                assert np.array_equal(bits, expected)


def gaps_with(colours: np.ndarray, m: int) -> np.ndarray:
    """int64[m, m], symmetric: in how many gaps of the earlier of two words the later one is, by looking at all."""
    found = np.zeros((m, m), np.int64)
    for word in range(m):
        ranks = np.flatnonzero(colours == word)
        for first, last in pairwise(ranks):
            inside = np.unique(colours[first + 1 : last])
            found[word, inside[inside > word]] += 1
    return found + found.T


@pytest.mark.parametrize("devices", [(0, 1), (1, 0, 2), (0, 1, 2, 3, 4)])
@pytest.mark.parametrize("seed", range(10))
def test_drawn_words_are_measured_as_on_the_cpu(gpus: Played, seed: int, devices: tuple[int, ...]) -> None:
    """With copies, rotations, powers and prefixes of each other, so that shares begin and end among any of them."""
    strings = drawn_words(seed, "acgt"[: 1 + seed % 3], (1, 3, 30, 75), 1 + seed % 4)
    words = words_of([string[:90] for string in strings] + ["a" * (seed % 3 * 40) + "c"])
    found = gpu.find(words, distances=True, devices=devices, watch=Stopwatch())
    assert found.distances is not None
    assert found.distances.tolist() == cpu.distances(words, cpu.order_conjugates(words)).tolist()
    assert set(gpus.where("count_between")) == set(devices)


@pytest.mark.parametrize("strings", [["a" * 60], ["a" * 30, "a" * 31], ["ab" * 20, "ba" * 21], ["a", "a", "a"], ["b"]])
def test_what_is_equal_is_shared_and_some_may_have_nothing(gpus: Played, strings: list[str]) -> None:
    words = words_of(strings)
    expected = cpu.distances(words, cpu.order_conjugates(words)).tolist()
    for devices in ((0, 1), (0, 1, 2, 3, 4)):
        gpus.launched.clear()
        found = gpu.find(words, distances=True, devices=devices, watch=Stopwatch())
        assert found.distances is not None and found.distances.tolist() == expected
        ranks = [len(arguments[1]) for _, kernel, arguments in gpus.launched if kernel == "find_words"]
        assert len(ranks) == len(devices) and sum(ranks) == len(words.codes) and max(ranks) - min(ranks) <= 1


@pytest.mark.parametrize("devices", [(0,), (0, 1), (3, 1, 4, 0, 2)])
def test_the_others_are_brought_the_words_of_their_ranks(gpus: Played, devices: tuple[int, ...]) -> None:
    """And where each word was last before these, and rows of matrices; nothing else."""
    words = words_of(["abcab", "cab" * 9, "c", "bca" * 5])
    order, m = cpu.order_conjugates(words), len(words.lengths)
    colours = np.repeat(range(m), words.lengths)[order]
    assert gpu.find(words, distances=True, devices=devices, watch=Stopwatch()).distances is not None
    shares = gpu_distances.shares_of(len(order), len(devices))
    for number, (device, share) in enumerate(zip(devices, shares, strict=True)):
        brought = [value for to, value in gpus.brought if to == device]
        assert [value.tolist() for value in brought if value.dtype == np.uint32 and value.ndim == 1] == [
            colours[share].tolist()
        ][:number]
        told = [value.shape for value in brought if value.dtype == np.int64]
        # The last ranks of those before, the first and last of all, and, of the first device, where words begin.
        assert sorted(told) == [(m,)] * (number + 2 * (len(devices) - 1)) + [(m + 1,)] * min(number, 1)
        rows = [value for value in brought if value.ndim == 2]
        assert {value.dtype for value in rows} <= {np.dtype(np.uint32)}
        assert len(rows) == len(devices) - 1 and len(brought) == len(rows) + len(told) + min(number, 1)
    assert set(gpus.where("take_apart")) == {devices[0]}


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("device", ["gpu", "gpu:0,1"])
def test_threads_of_a_call_copy(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    asked: set[int] = set()
    for module, name in ((gpu_order, "copied_from_host"), (gpu_distances, "copied_to_host"), (gpu, "copied_to_host")):
        done = getattr(module, name)

        def noted(value: Any, threads: int, done: Any = done, **how: Any) -> Any:
            asked.add(threads)
            return done(value, threads, **how)

        monkeypatch.setattr(module, name, noted)
    for call in (warpseed.ebwt_distances, warpseed.ebwt_transform):
        asked.clear()
        call(["abcab", "cabba" * 9], device=device, threads=7)
        assert asked == {7}


def test_what_the_page_says_is_shared() -> None:
    page = " ".join((Path(__file__).resolve().parents[2] / "docs" / "ebwt.md").read_text(encoding="utf-8").split())
    letters, words = f"{gpu_few.MOST_FEW:,}", f"{gpu_few_words.MOST_WORDS:,}"
    assert f"words are few: up to {letters} letters, and up to {words} words." in page
    assert f"takes up to {gpu._BYTES} bytes a letter, every other {gpu._BYTES_BESIDE} a letter of its share" in page
    assert f"and each {gpu._PAIR_BYTES} for each entry of the matrix" in page
    assert f"more than {letters} letters, or are more than {words}:" in " ".join(
        str(warpseed.ebwt_distances.__doc__).split()
    )

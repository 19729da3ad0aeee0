"""How the distances of all pairs are dealt out to GPUs: every pair in every stretch of ranks once, in equal shares; and
what comes to each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warpseed

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from ebwt_on_gpus import drawn_words
from hostile_words import HOSTILE
from oracles import ebwt as truth
from oracles.lockstep import run_kernel
from oracles.pretend_ebwt_fast import DEVICE_FUNCTIONS, MODULES, Played, play_fast_kernels
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import cpu, gpu, gpu_distances, gpu_fast, gpu_few, gpu_few_words, gpu_order
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
    # A device has as many threads as one alone, where there are so many ranks; and stretches are worth a thread.
    pairs = words * (words - 1) // 2
    for size in sizes:
        stretches = gpu_few_words.stretches_for(size, words)
        assert pairs * stretches >= min(1 << 19, pairs * (size // 1024))
        assert stretches == 1 or size >= 1024 * stretches


def test_one_device_has_the_stretches_that_pairs_and_ranks_allow() -> None:
    sizes = (10_000_000, 1_000), (23_000_000, 5), (20_000_000, 2_000), (100, 3)
    assert [gpu_few_words.stretches_for(*size) for size in sizes] == [2, 22_460, 1, 1]


@pytest.mark.parametrize("devices", [1, 2, 3, 4])
@pytest.mark.parametrize("name", [*HOSTILE, *LONG])
def test_every_pair_is_measured_once_in_every_stretch(monkeypatch: pytest.MonkeyPatch, name: str, devices: int) -> None:
    """The kernel as it is written: which pairs and stretches it looks at, and how many ranks that are for a device."""
    strings = [word[:70] for word in (HOSTILE | LONG)[name]]
    words, m = words_of(strings), len(strings)
    play_fast_kernels(monkeypatch)
    there = gpu_order.DeviceWords.of(words)
    order = gpu_order.order_of(there, at_once=False)
    shares = gpu_distances.shares_of(len(order), devices)
    ranked = [gpu_distances._rank(there.words_of[order[share]], m, share.start) for share in shares]
    total, repeats = np.zeros((m, m), np.uint64), gpu_fast.repeats.py_func
    for number, (share, own) in enumerate(zip(shares, ranked, strict=True)):
        assert sorted(own.positions.tolist()) == list(range(share.stop - share.start))
        assert own.offsets.tolist() == np.searchsorted(np.sort(there.words_of[order[share]]), range(m + 1)).tolist()
        work: list[int] = []

        def noted(positions: Any, part_u: Any, part_v: Any) -> Any:
            work.append(sum(int(last - first) for _, first, last in (part_u, part_v)))  # noqa: B023
            return repeats(positions, part_u, part_v)

        before = gpu_distances._before(ranked, number, share.start)
        distances, block, stretches = np.zeros((m, m), np.uint64), 4, own.cuts.shape[1] - 1
        monkeypatch.setattr(gpu_fast, "repeats", noted)
        kernel = gpu_fast.count_repeats, -(-m // block) * stretches * m * block, block
        run_kernel(MODULES, DEVICE_FUNCTIONS, kernel, own.positions, own.offsets, own.cuts, before, distances)
        assert len(work) == m * (m - 1) // 2 * stretches
        assert sum(work) == (m - 1) * (share.stop - share.start)
        total += distances
    assert total.view(np.int64).tolist() == [
        [truth.distance(u, v) if i != j else 0 for j, v in enumerate(strings)] for i, u in enumerate(strings)
    ]


@pytest.mark.parametrize("devices", [(0, 1), (1, 0, 2), (0, 1, 2, 3, 4)])
@pytest.mark.parametrize("seed", range(10))
def test_drawn_words_are_measured_as_on_the_cpu(gpus: Played, seed: int, devices: tuple[int, ...]) -> None:
    """With copies, rotations, powers and prefixes of each other, so that shares begin and end among any of them."""
    strings = drawn_words(seed, "acgt"[: 1 + seed % 3], (1, 3, 30, 75), 1 + seed % 4)
    words = words_of([string[:90] for string in strings] + ["a" * (seed % 3 * 40) + "c"])
    found = gpu.find(words, distances=True, devices=devices, watch=Stopwatch())
    assert found.distances is not None
    assert found.distances.tolist() == cpu.distances(words, cpu.order_conjugates(words)).tolist()
    assert set(gpus.where("count_repeats")) == set(devices)


@pytest.mark.parametrize("strings", [["a" * 60], ["a" * 30, "a" * 31], ["ab" * 20, "ba" * 21], ["a", "a", "a"], ["b"]])
def test_what_is_equal_is_shared_and_some_may_have_nothing(gpus: Played, strings: list[str]) -> None:
    words = words_of(strings)
    expected = cpu.distances(words, cpu.order_conjugates(words)).tolist()
    for devices in ((0, 1), (0, 1, 2, 3, 4)):
        gpus.launched.clear()
        found = gpu.find(words, distances=True, devices=devices, watch=Stopwatch())
        assert found.distances is not None and found.distances.tolist() == expected
        ranks = [len(arguments[0]) for _, kernel, arguments in gpus.launched if kernel == "count_repeats"]
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
        assert [value.tolist() for value in brought if value.dtype == np.uint32] == [colours[share].tolist()][:number]
        assert [value.shape for value in brought if value.dtype == np.int64] == [(m,)] * number
        rows = [value for value in brought if value.dtype == np.uint64]
        assert len(rows) == len(devices) - 1 and len(brought) == len(rows) + number + min(number, 1)
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

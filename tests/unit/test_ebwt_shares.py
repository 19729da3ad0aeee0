"""How the distances of all pairs are dealt out to GPUs: every pair in every stretch of ranks once, in equal shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from hostile_words import HOSTILE
from oracles import ebwt as truth
from oracles.lockstep import run_kernel
from oracles.pretend_ebwt_fast import DEVICE_FUNCTIONS, MODULES, play_fast_kernels
from warpseed import ebwt_distances
from warpseed.ebwt import gpu, gpu_distances, gpu_fast, gpu_few, gpu_few_words, gpu_order, gpu_shares
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


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 8])
@pytest.mark.parametrize(("count", "words"), SIZES)
def test_every_rank_is_one_device_s_and_shares_are_equal(count: int, words: int, devices: int) -> None:
    shares = gpu_shares.shares_of(count, devices)
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
    shares = gpu_shares.shares_of(len(order), devices)
    ranked = [gpu_distances._rank(there, order[share], share.start) for share in shares]
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


def test_what_the_page_says_is_shared() -> None:
    page = " ".join((Path(__file__).resolve().parents[2] / "docs" / "ebwt.md").read_text(encoding="utf-8").split())
    letters, words = f"{gpu_few.MOST_FEW:,}", f"{gpu_few_words.MOST_WORDS:,}"
    assert f"words are few: up to {letters} letters, and up to {words} words." in page
    assert f"takes up to {gpu._BYTES} bytes a letter and {gpu._PAIR_BYTES} for each entry of the matrix" in page
    assert f"more than {letters} letters, or are more than {words}:" in " ".join(str(ebwt_distances.__doc__).split())

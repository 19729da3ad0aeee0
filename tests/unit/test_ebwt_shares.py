"""How the distances of all pairs are dealt out to GPUs: every pair in every stretch of ranks once, in equal shares."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
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
from warpseed.ebwt import gpu, gpu_distances, gpu_fast, gpu_few, gpu_few_words, gpu_order
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
    stretches = gpu_few_words.stretches_for(count, words, devices)
    shares = [gpu_distances.share_of(stretches, devices, number) for number in range(devices)]
    assert [number for first, size in shares for number in range(first, first + size)] == list(range(stretches))
    ranks = -(-count // stretches)  # of a stretch
    each = [min((first + size) * ranks, count) - min(first * ranks, count) for first, size in shares]
    assert sum(each) == count
    assert max(each) <= count / devices + stretches / devices
    if count > 1_000_000:
        assert max(each) <= 1.001 * count / devices
    # A device has as many threads as one alone, where there are so many ranks; and stretches are worth a thread.
    pairs = words * (words - 1) // 2
    assert pairs * stretches / devices >= min(1 << 19, pairs * (count // devices // 1024))
    assert stretches == devices or ranks >= 1024


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
    ranked = gpu_distances._rank(there, gpu_order.order_of(there, at_once=False), devices)
    stretches = ranked.cuts.shape[1] - 1
    begins = words.offsets[:-1].tolist()
    assert sorted(ranked.positions.tolist()) == list(range(len(words.codes)))
    alternations = gpu_fast.alternations.py_func
    looked: list[tuple[int, int, int]] = []
    total = np.zeros((m, m), np.uint64)
    for device in range(devices):
        first, size = gpu_distances.share_of(stretches, devices, device)
        work: list[int] = []

        def noted(positions: Any, part_u: Any, part_v: Any) -> Any:
            (u, *span_u), (v, *span_v) = ((begins.index(begin), int(i), int(j)) for begin, i, j in (part_u, part_v))
            looked.append((u, v, next(number for number in numbers(u, span_u, v, span_v))))
            work.append(span_u[1] - span_u[0] + span_v[1] - span_v[0])  # noqa: B023
            return alternations(positions, part_u, part_v)

        def numbers(u: int, span_u: list[int], v: int, span_v: list[int]) -> Iterator[int]:
            """Of the stretches in which both words have these ranks: those that were not looked at."""
            for number in range(first, first + size):  # noqa: B023
                cuts = (ranked.cuts[word, number : number + 2].tolist() for word in (u, v))
                if [*cuts] == [span_u, span_v] and (u, v, number) not in looked:
                    yield number

        distances, block = np.zeros((m, m), np.uint64), 4
        monkeypatch.setattr(gpu_fast, "alternations", noted)
        kernel = gpu_fast.count_alternations, -(-m // block) * size * m * block, block
        run_kernel(MODULES, DEVICE_FUNCTIONS, kernel, *ranked, (first, size), distances)
        ranks = -(-len(words.codes) // stretches)
        own = min((first + size) * ranks, len(words.codes)) - min(first * ranks, len(words.codes))
        assert sum(work) == (m - 1) * own
        total += distances
    assert sorted(looked) == [(u, v, number) for u, v in combinations(range(m), 2) for number in range(stretches)]
    assert total.view(np.int64).tolist() == [
        [truth.distance(u, v) if i != j else 0 for j, v in enumerate(strings)] for i, u in enumerate(strings)
    ]


def test_what_the_page_says_is_shared() -> None:
    page = " ".join((Path(__file__).resolve().parents[2] / "docs" / "ebwt.md").read_text(encoding="utf-8").split())
    letters, words = f"{gpu_few.MOST_FEW:,}", f"{gpu_few_words.MOST_WORDS:,}"
    assert f"words are few: up to {letters} letters, and up to {words} words." in page
    assert f"takes {gpu._BYTES_BESIDE} bytes a letter and {gpu._PAIR_BYTES} for each entry of the matrix" in page
    assert f"more than {letters} letters, or are more than {words}:" in " ".join(str(ebwt_distances.__doc__).split())

"""The paper tier of paper 004 on a GPU, or on one that the CPU plays: what the CPU says, and that is the oracle's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from ebwt_on_gpus import drawn_words
from oracles.pretend_ebwt import play_kernels
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import cpu_paper, gpu_paper
from warpseed.ebwt.paper import all_pairs
from warpseed.ebwt.solid import solid_sequences
from warpseed.ebwt.weighted import generate_weighted
from warpseed.ebwt.words import words_of

SORTS = pytest.mark.parametrize("sort", gpu_paper.SORTS)


@pytest.fixture(params=["played", pytest.param("real", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The kernels that the CPU plays; None on a GPU."""
    return play_kernels(monkeypatch) if request.param == "played" else None


@SORTS
@pytest.mark.parametrize("seed", range(8))
def test_a_gpu_says_what_the_cpu_says(device: Any, seed: int, sort: str) -> None:
    words = words_of(drawn_words(seed, "acgt"[: 1 + seed % 4], range(1, 21), 5))
    expected = cpu_paper.order_conjugates(words)
    order = gpu_paper.order_conjugates(words, sort=sort)
    assert order.dtype == np.uint32 and order.tolist() == expected.tolist()
    matrix = cpu_paper.distances(words, expected)
    assert np.array_equal(gpu_paper.distances(words, order), matrix)
    pairs = all_pairs(len(words.offsets) - 1)[::-1].copy()
    watch = Stopwatch()
    compared = gpu_paper.compare(words, pairs, sort, watch=watch)
    assert compared.distances.tolist() == [matrix[tuple(pair)] for pair in pairs]
    assert list(watch.seconds) == ["host_to_device", "conjugates", "sort", "distance", "device_to_host"]


@SORTS
def test_one_word_has_no_pairs(device: Any, sort: str) -> None:
    for word in ("a", "banana", "abab"):
        words = words_of([word])
        assert gpu_paper.order_conjugates(words, sort=sort).tolist() == cpu_paper.order_conjugates(words).tolist()
        assert gpu_paper.distances(words, np.arange(len(word))).tolist() == [[0]]


@SORTS
def test_solid_sequences_are_ordered_alike(device: Any, sort: str) -> None:
    """Many conjugates that differ in a few letters; blocks of more threads than a word has letters."""
    positions = 40 if device else 260
    words = solid_sequences(generate_weighted(positions, 0.1, 7, most=4 if device else 7))
    expected = cpu_paper.compare(words, all_pairs(4))
    compared = gpu_paper.compare(words, all_pairs(4), sort)
    assert np.array_equal(compared.order, expected.order)
    assert compared.distances.tolist() == expected.distances.tolist()

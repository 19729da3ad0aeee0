"""The host's side of the eBWT on a GPU, and its kernels as they are written, against the definitions."""

from __future__ import annotations

import random
from typing import Any

import pytest
import warpseed

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles import ebwt as truth
from oracles.lockstep import run_kernel
from oracles.pretend_gpu import install
from warpseed.compute import gpu as device
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import gpu, gpu_fast, gpu_few, gpu_order
from warpseed.ebwt.words import words_of
from warpseed.errors import MemoryLimitError


@pytest.fixture(params=["few", "many"])
def played(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to order conjugates, in small blocks."""
    install(monkeypatch, None)

    def launch(function: Any, threads: int, block: int, *arguments: Any) -> None:
        modules = gpu_fast, gpu_few
        run_kernel(modules, (gpu_fast.further, gpu_fast._lower_bound), (function, threads, block), *arguments)

    monkeypatch.setattr(gpu_order, "launch", launch)
    monkeypatch.setattr(device, "_probe", lambda size: None)
    monkeypatch.setattr(gpu_order, "BLOCK", 16)
    monkeypatch.setattr(gpu_order, "_PAIR_BLOCK", 4)
    monkeypatch.setattr(gpu_order, "_LEAST_STRETCH", 10)
    if request.param == "many":
        monkeypatch.setattr(gpu_few, "MOST_FEW", 0)
    return str(request.param)


def sets() -> dict[str, list[str]]:
    draw = random.Random(8)

    def word(letters: str, length: int) -> str:
        return "".join(draw.choices(letters, k=length))

    long = word("ab", 70)
    return {
        "banana": ["banana"],
        "Figure 2": ["abac", "cbab", "bca", "cba"],
        "Figure 5": ["aaabbbb", "abaabbb", "abababb"],
        "one letter": ["a", "aaa", "aa", "a"],
        "powers": ["ab", "abab", "ba", "baba", "ababab", "b"],
        "conjugates": [long, long[30:] + long[:30], long],
        "prefixes": [long[:40], long[:41], long[:7], long],
        "homopolymer and nearly so": ["a" * 60, "a" * 59 + "b", "a"],
        "mixed": [word("ACGT", draw.choice([1, 2, 9, 33, 60])) for _ in range(7)],
    }


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("name", sets())
def test_all_that_comes_of_an_order_is_as_defined(played: str, name: str) -> None:
    strings = sets()[name]
    words = words_of(strings)
    found = gpu.find(words, order=True, transform=True, distances=True, watch=Stopwatch())
    assert found.order is not None and found.transform is not None and found.distances is not None
    expected = truth.ordered_conjugates(strings)
    assert found.order.tolist() == [int(words.offsets[word]) + offset for word, offset in expected]
    last, indices = truth.transform(strings)
    assert bytes(words.letters[code] for code in found.transform.last).decode() == last
    assert (found.transform.indices + 1).tolist() == indices
    assert found.distances.tolist() == [
        [truth.distance(u, v) if i != j else 0 for j, v in enumerate(strings)] for i, u in enumerate(strings)
    ]


def test_what_does_not_fit_is_said_before_anything_goes_there(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None)
    monkeypatch.setattr(gpu, "free_memory", lambda: 600)
    with pytest.raises(MemoryLimitError, match="12 letters .*of which 0.0 GB are free"):
        gpu.find(words_of(["banana", "ananas"]), order=True, watch=Stopwatch())


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_callers_get_from_a_gpu_what_they_get_from_the_cpu(played: str) -> None:
    words = sets()["mixed"]
    there, here = (warpseed.ebwt_transform(words, device=device) for device in ("gpu", "cpu"))
    assert (there.last.tolist(), there.indices.tolist()) == (here.last.tolist(), here.indices.tolist())
    found = warpseed.ebwt_distances(words, device="gpu:0").values.tolist()
    assert found == [[0 if i == j else truth.distance(u, v) for j, v in enumerate(words)] for i, u in enumerate(words)]

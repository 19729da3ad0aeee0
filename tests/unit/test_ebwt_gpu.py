"""The host's side of the eBWT on a GPU, and its kernels as they are written, against the definitions."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import warpseed

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from ebwt_on_gpus import check_all_of_an_order, drawn_words
from oracles import ebwt as truth
from oracles.lockstep import run_kernel
from oracles.pretend_cupy import Array
from oracles.pretend_ebwt_fast import DEVICE_FUNCTIONS, LAUNCHERS, MODULES, TOGETHER, play_fast_kernels
from oracles.pretend_gpu import install
from warpseed.compute import warp
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import cpu, gpu, gpu_fast, gpu_few, gpu_few_words, gpu_groups, gpu_order
from warpseed.ebwt.words import words_of
from warpseed.errors import MemoryLimitError

_get, _set = Array.get, Array.set


@pytest.fixture(params=["few", "of many words", "many"])
def played(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All ways to order conjugates, in small blocks."""
    play_fast_kernels(monkeypatch)
    if request.param == "many":
        monkeypatch.setattr(gpu_few, "MOST_FEW", 0)
    elif request.param == "of many words":
        monkeypatch.setattr(gpu_few_words, "MOST_WORDS", 0)
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


@pytest.mark.parametrize("name", sets())
def test_all_that_comes_of_an_order_is_as_defined(played: str, name: str) -> None:
    check_all_of_an_order(sets()[name])


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize("played", ["few"], indirect=True)
@pytest.mark.parametrize("seed", range(12))
def test_tiles_runs_and_blocks_may_have_any_size(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(gpu_few, "TILE", draw.choice([2, 4, 8, 16]))
    monkeypatch.setattr(gpu_few, "WAYS", draw.choice([2, 4, 16]))
    monkeypatch.setattr(gpu_few_words, "_LEAST_STRETCH", draw.choice([1, 7, 30, 1000]))
    monkeypatch.setattr(gpu_few_words, "multiprocessors", lambda: 1 + seed % 5)
    check_all_of_an_order(drawn_words(seed, "acgtwxyz"[: (1, 2, 2, 4, 5, 8)[seed % 6]], (1, 2, 3, 17, 33), seed % 5))


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize("played", ["few"], indirect=True)
def test_threads_take_turns_with_what_is_kept() -> None:
    wanted = [words_of(sets()[name]) for name in ("banana", "Figure 2", "Figure 5", "powers")]
    expected = [gpu.find(words, order=True, distances=True, watch=Stopwatch()) for words in wanted]
    with ThreadPoolExecutor(len(wanted)) as threads:
        found = list(threads.map(lambda words: gpu.find(words, order=True, distances=True, watch=Stopwatch()), wanted))
    for there, alone, words in zip(found, expected, wanted, strict=True):
        assert there.order is not None and alone.order is not None
        assert there.order.tolist() == alone.order.tolist() == cpu.order_conjugates(words).tolist()
        assert there.distances is not None and alone.distances is not None
        assert there.distances.tolist() == alone.distances.tolist()


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize("played", ["many"], indirect=True)
@pytest.mark.parametrize(("rounds", "counts"), [(0, {"letters": 0, "ranks": 7 * 210}), (2, {"letters": 210})])
def test_what_ties_read_is_counted(monkeypatch: pytest.MonkeyPatch, rounds: int, counts: dict[str, int]) -> None:
    """56 letters of one bit are known at first, then 64 more in each round, or seven ranks, which are all letters."""
    monkeypatch.setattr(gpu_groups, "ROUNDS", rounds)
    watch = Stopwatch()
    gpu_order.order_of(gpu_order.DeviceWords.of(words_of(sets()["conjugates"])), watch)
    assert watch.counts == counts
    assert gpu_order.order_of(gpu_order.DeviceWords.of(words_of(["a"]))).tolist() == [0]


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize("played", ["few"], indirect=True)
def test_few_words_take_few_launches_and_two_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not asked for is neither made nor copied; what was kept of words before does no harm."""
    in_steps, done = gpu_order.launch, []

    def launch(function: Any, threads: int, block: int, *arguments: Any) -> None:
        done.append(function.py_func.__name__)
        in_steps(function, threads, block, *arguments)

    monkeypatch.setattr(gpu_few_words, "launch", launch)
    monkeypatch.setattr(
        Array, "set", lambda self, values, stream: done.append(len(values)) or _set(self, values, stream)
    )
    monkeypatch.setattr(Array, "get", lambda self, **how: done.append(len(self)) or _get(self, **how))
    for name in ("mixed", "banana", "powers"):
        words = words_of(sets()[name])
        count, m = len(words.codes), len(words.lengths)
        there, back = 4 * (gpu_few.HEADER + m + 1 + -(-count // 4) + gpu_few.STATE), 4 * (gpu_few.STATE + count)
        letters = 4 * -(-count // 4)
        for asked, launched, more in (
            ({"order": True}, [], 0),
            ({"transform": True}, ["put_few_letters"], 4 * m + letters),
            ({"distances": True}, ["group_few", "measure_few"], 4 * m * m),
        ):
            done.clear()
            watch = Stopwatch()
            found = gpu.find(words, **asked, watch=watch)
            assert done == [there, "order_few", *launched, back + more]
            assert [getattr(found, name) is not None for name in found._fields] == [
                name in asked for name in found._fields
            ]
            stages = ["transform"] if "transform" in asked else ["distances"] if "distances" in asked else []
            assert list(watch.seconds) == ["host_to_device", "order", *stages, "device_to_host"]
    assert found.distances is not None
    expected = [
        [0 if i == j else truth.distance(u, v) for j, v in enumerate(sets()[name])] for i, u in enumerate(sets()[name])
    ]
    assert found.distances.tolist() == expected


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize("played", ["few"], indirect=True)
@pytest.mark.parametrize("come", [1, 2])
@pytest.mark.parametrize("lost", TOGETHER)
def test_blocks_that_do_not_come_are_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lost: Any, come: int
) -> None:
    """Where the blocks of a kernel run one by one, or some of them alone, words are ordered in several steps."""
    in_steps, launched = gpu_order.launch, []

    def launch(function: Any, threads: int, block: int, *arguments: Any) -> None:
        launched.append(function)
        if function is not lost:
            return in_steps(function, threads, block, *arguments)
        monkeypatch.setattr(warp, "POLLS", 50)
        run_kernel(MODULES, DEVICE_FUNCTIONS, (function, threads, block), *arguments, together=come)

    for module in LAUNCHERS:
        monkeypatch.setattr(module, "launch", launch)
    check_all_of_an_order(sets()["Figure 2"] + sets()["conjugates"])
    assert launched[0] is gpu_few.order_few and gpu_fast.first_keys in launched
    assert launched.count(gpu_few.order_few) == 1
    assert capsys.readouterr().err.startswith("Note: the GPU did not run all of a small kernel at once; ")


def test_what_does_not_fit_is_said_before_anything_goes_there(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None)
    monkeypatch.setattr(gpu_few, "MOST_FEW", 0)
    monkeypatch.setattr(gpu, "free_memory", lambda: 600)
    monkeypatch.setattr(gpu, "_LITTLE", 600)
    with pytest.raises(MemoryLimitError, match="12 letters .*of which 0.0 GB are free"):
        gpu.find(words_of(["banana", "ananas"]), order=True, watch=Stopwatch())


def test_callers_get_from_a_gpu_what_they_get_from_the_cpu(played: str) -> None:
    words = sets()["mixed"]
    there, here = (warpseed.ebwt_transform(words, device=device) for device in ("gpu", "cpu"))
    assert (there.last.tolist(), there.indices.tolist()) == (here.last.tolist(), here.indices.tolist())
    found = warpseed.ebwt_distances(words, device="gpu:0").values.tolist()
    assert found == [[0 if i == j else truth.distance(u, v) for j, v in enumerate(words)] for i, u in enumerate(words)]


def test_few_words_have_the_stretches_that_pairs_and_ranks_allow() -> None:
    """A million threads at most, or as many as there are pairs; and each has a thousand ranks to look at."""
    sizes = (65_536, 5), (65_536, 2), (65_536, 1_024), (100, 3), (40_000, 300)
    assert [gpu_few_words.stretches_for(*size) for size in sizes] == [64, 64, 2, 1, 23]

"""The kernels and the dynamic system of paper 003 on a GPU, or on one that the CPU plays: the oracle's answers."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import warpseed

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.pretend_tree_bitmap import play_kernels
from oracles.tree_bitmap import answers_to, codes_of_words, words_at
from warpseed.compute import gpu
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.tree_bitmap import cpu_levenshtein, gpu_levenshtein
from warpseed.tree_bitmap.cpu_levenshtein import EDIT_KERNELS
from warpseed.tree_bitmap.dynamic import How, Seed, match_dynamically
from warpseed.tree_bitmap.gpu_dynamic import DeviceKmersInOrder, lanes_for
from warpseed.tree_bitmap.growing import Growing

LENGTHS = (1, 3, 4, 31)


@pytest.fixture(params=["played", pytest.param("real", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The kernels that the CPU plays, which remember how they were launched; None on a GPU."""
    return play_kernels(monkeypatch) if request.param == "played" else None


def streams(k: int) -> dict[str, np.ndarray]:
    """Streams that go wrong easily."""
    draw = random.Random(k)
    unit = draw.choices(range(4), k=90)
    codes = {
        "random": draw.choices(range(4), k=700),
        "repeats": unit + [4] + unit[:50] + unit + unit[9:] + [3, 2] * 40,
        "homopolymer": [0] * 90 + [2] * 60,
        "holes": draw.choices(range(5), [9, 9, 9, 9, 1], k=600) + [4] * 5 + unit,
        "short": unit[: k - 1],
        "one": unit[:k],
        "nothing": [],
        "no base": [4] * 40,
    }
    return {name: np.array(stream, np.uint8) for name, stream in codes.items()}


def ways(k: int) -> list[How]:
    """Kernels, versions, structures; chunks of any size, and match buffers with too little room at first."""
    return [
        How(kernel="naive"),
        How(64, "tree", "naive", True, pieces=3, records=1),
        How(),
        How(100, concurrent=True),
        How(33, "tree", concurrent=True, pieces=7, lanes=32, records=2),
        How(k + 200, "hybrid", records=0, pieces=1),
        How(50, "sorted", concurrent=True),
        How(90, "sorted", "naive"),
    ]


@pytest.mark.parametrize("k", LENGTHS)
@pytest.mark.parametrize("number", range(8))
def test_answers_and_dictionary_are_the_oracles(device: Any, k: int, number: int) -> None:
    others = [word for _, word in words_at(random.Random(7).choices(range(4), k=50), k)]
    known = np.array(sorted(set(codes_of_words(others))), np.uint64)
    for name, codes in streams(k).items():
        for seed in (Seed(), Seed(len(codes) // 3, known), Seed(len(codes))):
            expected = answers_to(codes.tolist(), k, seed.length, seed.kmers.tolist())
            matched = match_dynamically(codes, k, seed, ways(k)[number], "gpu")
            assert (matched.answers.tolist(), matched.dictionary.tolist()) == expected, (name, seed.length)


@pytest.fixture(params=["played", pytest.param("real", marks=pytest.mark.gpu)])
def several(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of GPUs: of three that the CPU plays, or of two that answer."""
    if request.param == "played":
        play_kernels(monkeypatch, devices=3)
        return ["gpu:1", "gpu:0,1", "gpu:2,0,1", "gpu:all"]
    if gpu.device_count() < 2:
        pytest.skip("one GPU is visible, and this needs two")
    return ["gpu:1", "gpu:0,1", "gpu:1,0", "gpu:all"]


@pytest.mark.parametrize("k", LENGTHS)
@pytest.mark.parametrize("number", range(6))
def test_several_gpus_share_the_places_of_chunks(several: list[str], k: int, number: int) -> None:
    for name, codes in streams(k).items():
        seed = Seed(len(codes) // 3)
        expected = answers_to(codes.tolist(), k, seed.length)
        for names in several:
            matched = match_dynamically(codes, k, seed, ways(k)[number], names)
            assert (matched.answers.tolist(), matched.dictionary.tolist()) == expected, (name, names)


@pytest.mark.usefixtures("several")
def test_match_stream_shares_chunks_among_gpus() -> None:
    """The kernels of each run on streams of its own, one after the other, while the run lasts."""
    codes = streams(9)["holes"]
    letters = "".join("ACGTN"[code] for code in codes)
    expected = answers_to(codes.tolist(), 9)
    found = warpseed.match_stream([letters], 9, tier="paper", device="gpu", devices=[1, 0])
    assert (found.answers.tolist(), found.dictionary.kmers.tolist()) == expected
    events = match_dynamically(codes, 9, how=How(100, concurrent=True), device="gpu:0,1").events
    for stream in range(4):
        mine = sorted((event.begin, event.end) for event in events if (event.name, event.stream) == ("kernel", stream))
        assert mine and mine[0][0] >= 0
        assert all(one[1] <= two[0] for one, two in pairwise(mine))


def test_words_in_order_lie_on_the_first_gpu(several: list[str]) -> None:
    codes, how = streams(4)["random"], How(structure="sorted")
    assert np.array_equal(
        match_dynamically(codes, 4, how=how, device="gpu:0").answers, match_dynamically(codes, 4).answers
    )
    with pytest.raises(InputError, match="device is 'gpu:x', but"):
        match_dynamically(codes, 4, how=how, device="gpu:x")
    for names in several[:2]:
        with pytest.raises(InputError, match="lies on the first GPU: 'cpu' or 'gpu' was expected"):
            match_dynamically(codes, 4, how=how, device=names)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 12, 15, 31])
def test_the_bitmap_that_is_made_there_is_that_of_the_pointer_trie(device: Any, k: int) -> None:
    """Array by array, of any number of words, in whatever parts they come."""
    draw = np.random.default_rng(k)
    for count in (0, 1, 2, 70, 5000):
        kmers = draw.integers(0, 4**k, count, np.uint64)
        kmers[count // 2 :] &= np.uint64(0xFFFF)
        tree, there = Growing(k), DeviceKmersInOrder(k)
        parts = [there.insert(part).tolist() for part in np.array_split(kmers, 3)]
        assert sum(parts, []) == tree.insert(kmers).tolist()
        assert there.kmers().tolist() == tree.kmers().tolist()
        for mine, trues in zip(there.to_bitmap(), tree.to_bitmap(), strict=True):
            mine = np.asarray(mine.get() if device is None else mine)
            assert mine.dtype == trues.dtype and mine.tolist() == trues.tolist()


@pytest.mark.parametrize("kernel", ["naive", "shuffle"])
@pytest.mark.parametrize("concurrent", [False, True])
def test_chunks_may_be_of_one_kmer(device: Any, kernel: str, concurrent: bool) -> None:
    codes = streams(4)["holes"][:60]
    expected = answers_to(codes.tolist(), 4, 5)
    for length in (1, 4, 5):
        matched = match_dynamically(codes, 4, Seed(5), How(length, "tree", kernel, concurrent), "gpu")
        assert (matched.answers.tolist(), matched.dictionary.tolist()) == expected


@pytest.mark.parametrize("kernel", ["naive", "shuffle"])
def test_a_large_dictionary_is_that_of_the_cpu(device: Any, kernel: str) -> None:
    codes = np.random.default_rng(5).integers(0, 4, 8000, np.uint8)
    codes[6000:7000] = codes[:1000]
    how = How(3000, "hybrid", kernel, True)
    expected = match_dynamically(codes, 8, Seed(2000), how._replace(kernel="shuffle"))
    matched = match_dynamically(codes, 8, Seed(2000), how, "gpu")
    assert np.array_equal(matched.answers, expected.answers)
    assert np.array_equal(matched.dictionary, expected.dictionary) and len(expected.dictionary) > 6000


def test_a_match_buffer_that_is_too_small_is_filled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once: the next chunk finds the room that the first one took, in each of the two buffers."""
    kernels = play_kernels(monkeypatch)
    codes = streams(4)["random"]
    for concurrent, launches in ((False, 2), (True, 2)):
        kernels.launched.clear()
        match_dynamically(codes, 4, Seed(), How(100, records=10, concurrent=concurrent), "gpu")
        assert len(kernels.launched) == 7 + launches


def test_a_logical_warp_has_a_lane_for_each_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [lanes_for(k) for k in (1, 3, 4, 7, 8, 15, 16, 31)] == [4, 4, 8, 8, 16, 16, 32, 32]
    kernels = play_kernels(monkeypatch)
    codes = streams(4)["random"]
    match_dynamically(codes, 4, how=How(pieces=10), device="gpu")
    match_dynamically(codes, 4, how=How(pieces=10, lanes=32), device="gpu")
    assert [threads for _, threads, _ in kernels.launched] == [80, 320]


@pytest.mark.parametrize("concurrent", [False, True])
def test_events_are_of_all_that_is_done(device: Any, concurrent: bool) -> None:
    codes = np.random.default_rng(6).integers(0, 4, 4000, np.uint8)
    events = match_dynamically(codes, 9, Seed(100), How(1000, concurrent=concurrent), "gpu").events
    names = ("to_bitmap", "host_to_device", "kernel", "device_to_host", "deltas")
    of_chunks = sorted((name, number % 2) for name in names for number in range(4))
    assert sorted((event.name, event.stream) for event in events) == of_chunks
    assert all(0 <= event.begin <= event.end for event in events)
    assert [event.end for event in events] == sorted(event.end for event in events)
    if device is None:
        for which in range(2):
            mine = [event for event in events if event.stream == which and event.name != "deltas"]
            assert [event.name for event in sorted(mine, key=lambda event: event.begin)] == [*names[:4], *names[:4]]


@pytest.mark.parametrize(("k", "edits"), [(1, 0), (3, 2), (4, 1), (6, 3), (9, 2), (31, 2)])
@pytest.mark.parametrize("kernel", EDIT_KERNELS)
def test_edits_are_those_of_the_twins(device: Any, k: int, edits: int, kernel: str) -> None:
    """In any number of pieces, and where the match buffer is too small at first."""
    for name, codes in streams(k).items():
        dictionary = Growing(k, "hybrid")
        known = codes_of_words(word for _, word in words_at(codes.tolist()[3 : 60 + k], k))
        dictionary.insert(np.array(known, np.uint64))
        bitmap = dictionary.to_bitmap()
        expected = cpu_levenshtein.match_edits(codes, k, edits, bitmap)
        for pieces, records in ((None, None), (1, 1), (7, 100)):
            watch = Stopwatch()
            found = gpu_levenshtein.match_edits(codes, k, edits, bitmap, kernel, pieces, records, watch)
            assert list(watch.seconds) == ["kernel"]
            assert found.accepted.tolist() == expected.accepted.tolist(), name
            assert found.missed.tolist() == expected.missed.tolist(), name


@pytest.mark.parametrize("kernel", EDIT_KERNELS)
def test_edits_are_found_in_a_bitmap_that_was_made_there(device: Any, kernel: str) -> None:
    """It does not come to the host in between."""
    codes = streams(9)["repeats"]
    known = np.array(codes_of_words(word for _, word in words_at(codes.tolist()[:80], 9)), np.uint64)
    tree, there = Growing(9), DeviceKmersInOrder(9)
    tree.insert(known)
    there.insert(known)
    expected = cpu_levenshtein.match_edits(codes, 9, 2, tree.to_bitmap())
    found = gpu_levenshtein.match_edits(codes, 9, 2, there.to_bitmap(), kernel)
    assert found.accepted.tolist() == expected.accepted.tolist()
    assert found.missed.tolist() == expected.missed.tolist()


def test_edits_near_a_large_dictionary(device: Any) -> None:
    """Levels of more trie-nodes than a block has threads, and queues that are full."""
    codes = np.random.default_rng(5).integers(0, 4, 6000, np.uint8)
    dictionary = Growing(8)
    dictionary.insert(np.array(codes_of_words(word for _, word in words_at(codes.tolist(), 8)), np.uint64))
    bitmap = dictionary.to_bitmap()
    stream = np.concatenate([codes[:40], [4], codes[70:60:-1]]).astype(np.uint8)
    expected = cpu_levenshtein.match_edits(stream, 8, 2, bitmap)
    for kernel in EDIT_KERNELS:
        found = gpu_levenshtein.match_edits(stream, 8, 2, bitmap, kernel)
        assert found.accepted.tolist() == expected.accepted.tolist()
        assert found.missed.tolist() == expected.missed.tolist()


@pytest.mark.gpu
def test_occupancy_is_of_the_compiled_kernel() -> None:
    """A queue in shared memory leaves no more threads resident than none."""
    from warpseed.compute.gpu import on_device
    from warpseed.measure.occupancy import occupancy_of
    from warpseed.tree_bitmap import gpu_levenshtein
    from warpseed.tree_bitmap.gpu_paper import BLOCK
    from warpseed.tree_bitmap.growing import Growing

    dictionary = Growing(3)
    dictionary.insert(np.arange(5, dtype=np.uint64))
    shares = {}
    for name, kernel in gpu_levenshtein.KERNELS.items():
        gpu_levenshtein.match_edits(np.zeros(20, np.uint8), 3, 1, dictionary.to_bitmap(), name)
        with on_device(0):
            shares[name] = occupancy_of(kernel, BLOCK)
    assert all(0 < share <= 1 for share in shares.values()) and shares["queue"] <= shares["efficient"]

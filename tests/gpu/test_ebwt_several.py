"""Order, transform and distances by several GPUs, or by some that the CPU plays: one GPU's, and the definition's."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warpseed

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from ebwt_on_gpus import drawn_words
from hostile_words import HOSTILE
from oracles.pretend_ebwt_fast import Played, play_fast_kernels
from warpseed import cli
from warpseed.compute import gpu as device
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import cpu, gpu, gpu_distances, gpu_few, gpu_few_words, gpu_runs
from warpseed.ebwt.transform import transform_of
from warpseed.ebwt.words import Words, words_of
from warpseed.errors import DeviceError, MemoryLimitError

NOTE = "Note: GPU {} does all of it; several GPUs share more than 65,536 letters, or the distances of more than 1,024 "


@pytest.fixture(params=["played", pytest.param("real", marks=pytest.mark.gpu)])
def gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Played | None]:
    """Five GPUs that the CPU plays, or None for two that answer, and no words that are few; stretches are short."""
    played = play_fast_kernels(monkeypatch, devices=5) if request.param == "played" else None
    if played is None and device.device_count() < 2:
        pytest.skip("one GPU is visible, and this needs two")
    monkeypatch.setattr(gpu, "_told", set())
    monkeypatch.setattr(gpu_few, "MOST_FEW", 0)
    monkeypatch.setattr(gpu_few_words, "_LEAST_STRETCH", 10)
    yield played


def sets() -> dict[str, list[str]]:
    draw = random.Random(5)

    def word(letters: str, length: int) -> str:
        return "".join(draw.choices(letters, k=length))

    return {
        **HOSTILE,
        **{f"drawn {seed}": drawn_words(seed, "acgt"[: 1 + seed % 4], (1, 2, 17, 40), 3) for seed in range(4)},
        "two words": [word("acgt", 90), word("acgt", 70)],
        "two of one letter each": ["a", "b"],
        "a long word first": [word("ab", 150), "a", "b", "abb", word("ab", 9)],
        "a long word last": [word("ab", 9), "b", "abb", "b", word("ab", 150)],
        "one word": [word("ab", 60)],
    }


def distances_by(words: Words, *devices: int, watch: Stopwatch | None = None) -> list[list[int]]:
    found = gpu.find(words, distances=True, devices=devices, watch=watch or Stopwatch())
    assert found.distances is not None and found.distances.dtype == np.int32
    return found.distances.tolist()


@pytest.mark.parametrize("name", sets())
def test_several_devices_find_the_same(gpus: Played | None, name: str) -> None:
    words = words_of([word[: 70 if gpus else None] for word in sets()[name]])
    expected = cpu.distances(words, cpu.order_conjugates(words)).tolist()
    for devices in ((0,), (1,), (0, 1), (1, 0), *([(2, 0, 1), (0, 1, 2, 3, 4)] if gpus else [])):
        if gpus:
            gpus.launched.clear()
            gpus.brought.clear()
        assert distances_by(words, *devices) == expected
        if gpus:
            assert set(gpus.where("keys_between" if len(devices) > 1 else "first_keys")) == set(devices)
            # (Second keys lie above positions of 32 bits.)
            first_keys = [given[0] for _, kernel, given in gpus.launched if kernel == "take_apart" and given[2][0] < 32]
            assert sum(map(len, first_keys)) == len(words.codes)
            # (A device may have nothing, where there are less gaps than devices.)
            assert set(gpus.where("count_between")) == set(gpus.where("cut_ranks")) <= set(devices)
            assert len(set(gpus.where("count_between"))) >= min(len(devices), len(words.codes) - 1)
            assert {number for number, _ in gpus.brought} <= set(devices) and (len(devices) > 1 or not gpus.brought)


@pytest.mark.parametrize("name", sets())
def test_order_and_transform_of_several_devices_are_those_of_the_cpu(gpus: Played | None, name: str) -> None:
    words = words_of([word[: 70 if gpus else None] for word in sets()[name]])
    expected = cpu.order_conjugates(words)
    last, indices, _ = transform_of(words, expected)
    for devices in ((0, 1), (1, 0), *([(3, 4, 0, 2, 1)] if gpus else [])):
        found = gpu.find(words, order=True, transform=True, distances=True, devices=devices, watch=Stopwatch())
        assert found.order is not None and found.transform is not None and found.distances is not None
        assert found.order.tolist() == expected.tolist()
        assert found.transform.last.tolist() == last.tolist()
        assert found.transform.indices.tolist() == indices.tolist()
        assert found.distances.tolist() == cpu.distances(words, expected).tolist()


@pytest.mark.usefixtures("gpus")
def test_distances_are_the_same_in_more_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    words = words_of(sets()["two words"])
    expected = distances_by(words, 0)
    monkeypatch.setattr(gpu_distances, "distance_type", lambda longest: np.int64)
    found = gpu.find(words, distances=True, watch=Stopwatch())
    assert found.distances is not None and found.distances.dtype == np.int64 and found.distances.tolist() == expected


@pytest.mark.gpu
@pytest.mark.parametrize(("count", "longest"), [(2_000, 60), (600, 1_500), (3, 200_000), (2, 100_000)])
def test_many_words_are_as_far_apart_as_on_one_gpu(monkeypatch: pytest.MonkeyPatch, count: int, longest: int) -> None:
    """With stretches as they are, one word that is longer than the others, and every one of a tenth twice."""
    if device.device_count() < 2:
        pytest.skip("one GPU is visible, and this needs two")
    draw = np.random.default_rng(count)
    drawn = ["".join(draw.choice([*"ACGT"], draw.integers(1, longest))) for _ in range(count)]
    words = words_of([*drawn, *drawn[: count // 10], "ACGTA" * longest])
    one = distances_by(words, 0)
    assert one == cpu.distances(words, cpu.order_conjugates(words)).tolist()
    for devices in ((0, 1), (1, 0)):
        assert distances_by(words, *devices) == one
        found = gpu.find(words, order=True, transform=True, distances=True, devices=devices, watch=Stopwatch())
        assert found.distances is not None and found.distances.tolist() == one
        alone = gpu.find(words, order=True, transform=True, devices=devices[:1], watch=Stopwatch())
        assert np.array_equal(found.order, alone.order)
        assert found.transform is not None and alone.transform is not None
        assert np.array_equal(found.transform.last, alone.transform.last)
        assert np.array_equal(found.transform.indices, alone.transform.indices)


def test_stages_of_several_devices(gpus: Played | None) -> None:
    words = words_of(sets()["two words"])
    for devices, more in (((0,), []), ((0, 1), ["device_to_device"])):
        watch = Stopwatch()
        distances_by(words, *devices, watch=watch)
        assert list(watch.seconds) == ["host_to_device", "order", *more, "distances", "device_to_host"]
        if gpus:  # a millisecond each: own ranks, counts and distances, those of a cut word; and what is brought
            assert watch.seconds["distances"] == pytest.approx(1e-3 + 2e-3 * len(more))
            assert watch.seconds.get("device_to_device", 0) == pytest.approx(3e-3 * len(more))


@pytest.mark.parametrize("name", ["gpu:0,1", "gpu:1,0", "gpu:all"])
def test_the_public_calls_name_devices(gpus: Played | None, name: str) -> None:
    words = sets()["drawn 3"]
    here = warpseed.ebwt_distances(words)
    found = warpseed.ebwt_distances(words, device=name)
    assert found.names == here.names and found.values.tolist() == here.values.tolist()
    assert warpseed.ebwt_distances(words, device="gpu", devices=[1, 0]).values.tolist() == here.values.tolist()
    transforms = [warpseed.ebwt_transform(words, device=target) for target in ("cpu", name)]
    assert transforms[0].last.tolist() == transforms[1].last.tolist()
    assert transforms[0].indices.tolist() == transforms[1].indices.tolist()


@pytest.mark.parametrize("few", [False, True])
def test_a_line_says_once_that_one_of_several_does_all(
    gpus: Played | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], few: bool
) -> None:
    words = ["abac", "cbab", "bca"]
    if few:
        monkeypatch.setattr(gpu_few, "MOST_FEW", 1 << 16)
    for devices in ([0], [1], [1, 0], [0, 1]):
        for call in (warpseed.ebwt_distances, warpseed.ebwt_transform):
            call(words, device="gpu", devices=devices)
            told, is_first = capsys.readouterr().err, call is warpseed.ebwt_distances
            if few and devices == [1, 0] and is_first:
                assert told.startswith(NOTE.format(1)) and told.count("\n") == 1
            else:
                assert not told
    if gpus:
        assert (gpus.where("count_between") == []) is (gpus.where("put_last_letters") == []) is few


def test_files_have_the_bytes_that_they_have_from_the_cpu(gpus: Played | None, tmp_path: Path) -> None:
    sequences = tmp_path / "words.fa"
    sequences.write_text(
        "".join(f">{i}\n{word}\n" for i, word in enumerate(["ACGTTGCA" * 5, "ACN", "TTTGA" * 4, "ACN"]))
    )
    folders = {}
    for name in ("cpu", "gpu:0,1"):
        folders[name] = tmp_path / name
        folders[name].mkdir()
        assert cli.main(["ebwt", str(sequences), "-q", "-o", f"{folders[name]}/out", "--device", name]) == 0
    files = {name: {path.name: path.read_bytes() for path in folder.iterdir()} for name, folder in folders.items()}
    assert files["cpu"] == files["gpu:0,1"] and len(files["cpu"]) == 7


def test_a_device_that_is_not_there_is_refused_whatever_it_would_do(
    gpus: Played | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for most in (0, 1 << 16):
        monkeypatch.setattr(gpu_few, "MOST_FEW", most)
        for wanted in ("transform", "distances"):
            with pytest.raises(DeviceError, match="GPU 77 was asked for, but . are visible"):
                gpu.find(words_of(["abac", "bca"]), devices=(0, 77), watch=Stopwatch(), **{wanted: True})


@pytest.mark.parametrize("failing", [0, 1])
@pytest.mark.parametrize("error", [DeviceError("broken"), ZeroDivisionError("broken")])
def test_what_fails_on_one_device_reaches_the_caller(
    gpus: Played | None, monkeypatch: pytest.MonkeyPatch, failing: int, error: Exception
) -> None:
    words = words_of(["abacab", "bcacb"])
    expected = distances_by(words, 0)
    for name in ("rank_shared", "count_gaps", "sent_to_host", "wait_for_sent"):
        done = getattr(gpu_distances, name)

        def fail(*arguments: Any, done: Any = done, **how: Any) -> Any:
            if device.current_device() == failing:
                raise error
            return done(*arguments, **how)

        with monkeypatch.context() as patch:
            patch.setattr(gpu_distances, name, fail)
            with pytest.raises(type(error), match="broken"):
                distances_by(words, 0, 1)
    assert distances_by(words, 0, 1) == expected


def test_memory_that_runs_short_on_another_device_is_one_sentence(
    gpus: Played | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(value: Any, out: Any) -> Any:
        raise device.cupy().cuda.memory.OutOfMemoryError(*(() if gpus else (1 << 40, 1 << 30)))

    monkeypatch.setattr(gpu_runs, "from_device", full)
    with pytest.raises(MemoryLimitError, match="The GPU's memory does not suffice"):
        distances_by(words_of(["abacab" * 9, "bcacb" * 9]), 0, 1)


@pytest.mark.parametrize(("short", "room"), [(0, 1_600), (1, 1_600)])
def test_room_is_asked_for_on_every_device_before_anything_goes_there(
    gpus: Played | None, monkeypatch: pytest.MonkeyPatch, short: int, room: int
) -> None:
    words, asked = words_of(["abacab", "bcacb", "ca"]), []

    def free() -> int:
        asked.append(device.current_device())
        return room if asked[-1] == short else 1 << 40

    monkeypatch.setattr(gpu, "free_memory", free)
    monkeypatch.setattr(gpu, "_LITTLE", 0)
    # A letter takes 96 bytes of each, and a pair 12: 1,356.
    monkeypatch.setattr(gpu, "_OF_FREE", 0.8)
    told = f"13 letters and 9 pairs of words take 0.0 GB of the memory of GPU {short}, of which 0.0 GB are free"
    with pytest.raises(MemoryLimitError, match=told):
        distances_by(words, 0, 1)
    assert asked == [0, 1][: short + 1]
    if gpus:
        assert not gpus.launched
    monkeypatch.setattr(gpu, "_OF_FREE", 0.9)
    assert distances_by(words, 0, 1) == distances_by(words, 0)


@pytest.mark.gpu
@pytest.mark.parametrize("different", [1_500, 1, 30])
def test_the_memory_that_is_asked_for_on_another_gpu_suffices(different: int) -> None:
    """Of words that are drawn, and where all are tied that are copies."""
    if device.device_count() < 2:
        pytest.skip("one GPU is visible, and this needs two")
    draw = np.random.default_rng(3)
    drawn = ["".join(draw.choice([*"ACGT"], 2_000)) for _ in range(different)]
    words = words_of([drawn[number % different] for number in range(1_500)])
    letters = len(words.codes)
    pool = device.cupy().get_default_memory_pool()
    expected = distances_by(words, 0)
    with device.on_device(1):
        device.give_back_memory()
        needed = gpu.bytes_needed(letters, 1_500, letters)
        pool.set_limit(size=pool.total_bytes() + int(needed / gpu._OF_FREE) + (1 << 20))
    try:
        assert distances_by(words, 0, 1) == expected
        with device.on_device(1):
            device.give_back_memory()
            pool.set_limit(size=needed // 2)
        with pytest.raises(MemoryLimitError, match="of the memory of GPU 1, of which"):
            distances_by(words, 0, 1)
    finally:
        with device.on_device(1):
            pool.set_limit(size=0)
    assert distances_by(words, 0, 1) == expected

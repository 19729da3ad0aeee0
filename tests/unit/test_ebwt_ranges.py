"""How GPUs share the order of conjugates: ranges of first letters that hold about as many, and ranks told of what is
equal in these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import warpseed

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from ebwt_on_gpus import drawn_words
from hostile_words import HOSTILE
from oracles.pretend_ebwt_fast import Played, play_fast_kernels
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import cpu, gpu, gpu_distances, gpu_few, gpu_order, gpu_shares
from warpseed.ebwt.words import words_of


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Played:
    """Five GPUs that the CPU plays, and no words that are few."""
    played = play_fast_kernels(monkeypatch, devices=5)
    monkeypatch.setattr(gpu_few, "MOST_FEW", 0)
    return played


def ranges_of(letters: np.ndarray, devices: int, sampled: int = 1 << 16) -> list[list[int]]:
    """Of each device the conjugates that lie in its range, by the letters of their keys."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_order, "_SAMPLED", sampled)
        sample = np.sort(letters[gpu_order._sampled(len(letters))])
    borders = sample[sampled // devices :: sampled // devices][: devices - 1].tolist()
    limits = [gpu_order._limits_of(borders, number) for number in range(devices)]
    signed = letters.astype(np.int64)
    return [np.flatnonzero((signed >= least) & (signed <= most)).tolist() for least, most in limits]


def keys_drawn(kind: str) -> np.ndarray:
    draw = np.random.default_rng(4)
    keys: np.ndarray = {
        "drawn": draw.integers(0, 1 << 63, 200_000, np.uint64),
        "few keys": draw.integers(0, 7, 1_000, np.uint64),
        "all the same": np.full(500, 3, np.uint64),
        "all the least": np.zeros(500, np.uint64),
        "all the greatest": np.full(500, (1 << 63) - 1, np.uint64),
        "nearly all the same": np.array([5] * 400 + [0, 9, 9], np.uint64),
        "one": np.array([8], np.uint64),
        "two": np.array([9, 8], np.uint64),
        # A period of 1,024 behind which all comes again, as in words of one length that are nearly equal.
        "with a period": np.tile(draw.integers(0, 1 << 63, 1 << 10, np.uint64), 1 << 8),
    }[kind]
    return keys


KINDS = ["drawn", "few keys", "all the same", "all the least", "all the greatest", "nearly all the same", "one", "two"]


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("devices", [2, 3, 5, 8])
@pytest.mark.parametrize("kind", [*KINDS, "with a period"])
def test_every_conjugate_lies_in_one_range_and_ranges_ascend(kind: str, devices: int) -> None:
    keys, greatest = keys_drawn(kind), -1
    ranges = ranges_of(keys, devices)
    for places in ranges:
        mine = [int(key) for key in keys[places]]
        assert not mine or min(mine) > greatest
        greatest = max([greatest, *mine])
    assert sorted(place for places in ranges for place in places) == list(range(len(keys)))


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("devices", [2, 3, 5, 8])
@pytest.mark.parametrize("kind", ["drawn", "with a period"])
def test_ranges_hold_as_many_where_keys_differ(kind: str, devices: int) -> None:
    keys = keys_drawn(kind)
    sizes = [len(places) for places in ranges_of(keys, devices)]
    assert max(sizes) <= 1.02 * len(keys) / devices


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("devices", [1, 2, 3, 5])
@pytest.mark.parametrize("name", [*HOSTILE, "drawn"])
def test_keys_of_a_range_are_letters_and_positions(name: str, devices: int) -> None:
    """All in order, each once, on one device each; what is equal lies on one, and ranges begin where others end."""
    draw = np.random.default_rng(7)
    strings = ["".join(draw.choice([*"acgt"], size)) for size in (200, 1, 90, 33)] if name == "drawn" else HOSTILE[name]
    words = words_of(strings)
    there = gpu_order.DeviceWords.of(words)
    letters = gpu_order._Letters.of(there)
    known, all_keys = letters.room // letters.bits, []
    for string, first in zip(strings, words.offsets[:-1].tolist(), strict=True):
        alphabet = sorted(set("".join(strings)))
        for rotation in range(len(string)):
            written = (string[rotation:] + string[:rotation]) * known
            number = sum(alphabet.index(each) << letters.bits * i for i, each in enumerate(written[:known][::-1]))
            all_keys.append(number << letters.place_bits | first + rotation)
    found, groups = [], []
    for number in range(devices):
        keys, before = gpu_order._first_keys(there, letters, number, devices)
        assert keys.dtype == np.uint64 and before == len(found)
        found += keys.tolist()
        groups.append({key >> letters.place_bits for key in keys.tolist()})
    assert found == sorted(all_keys)
    assert sum(map(len, groups)) == len(set().union(*groups))


@pytest.mark.parametrize("devices", [(0, 1), (1, 0, 2), (0, 1, 2, 3, 4)])
@pytest.mark.parametrize("seed", range(10))
def test_drawn_words_are_ordered_and_measured_as_on_the_cpu(gpus: Played, seed: int, devices: tuple[int, ...]) -> None:
    """With copies, rotations, powers and prefixes of each other: letters alone do not tell all of them apart."""
    strings = drawn_words(seed, "acgt"[: 1 + seed % 3], (1, 3, 30, 75), 1 + seed % 4)
    words = words_of([string[:90] for string in strings] + ["a" * (seed % 3 * 40) + "c"])
    expected = cpu.order_conjugates(words)
    found = gpu.find(words, order=True, distances=True, devices=devices, watch=Stopwatch())
    assert found.order is not None and found.distances is not None
    assert found.order.tolist() == expected.tolist()
    assert found.distances.tolist() == cpu.distances(words, expected).tolist()
    assert set(gpus.where("count_repeats")) == set(devices)


def test_what_is_tied_on_one_device_is_told_apart_by_ranks_of_others(gpus: Played) -> None:
    """Two that are equal in all letters of two keys, but not in what is behind them."""
    shared = "ab" * 70
    words = words_of([shared + "bbabbb", shared + "aabaaab", "bba"])
    keys_of_devices = {}
    for devices in ((0,), (0, 1), (4, 3, 2, 1, 0)):
        gpus.launched.clear()
        gpus.brought.clear()
        found = gpu.find(words, distances=True, devices=devices, watch=Stopwatch())
        assert found.distances is not None
        assert found.distances.tolist() == cpu.distances(words, cpu.order_conjugates(words)).tolist()
        begun, known = _lengths(gpus, "first_keys", 0), set(gpus.where("rank_keys"))
        assert begun == [len(words.codes)] * len(devices) and known == set(devices)
        # Each sorts what lies in its range: in all as many as there are. So is what is tied put in order.
        assert sum(_lengths(gpus, "take_apart", 0)) == len(words.codes)
        keys_of_devices[devices] = _lengths(gpus, "mark_heads", 0)
        assert set(gpus.where("mark_heads")) <= set(devices)
    one, two, five = keys_of_devices.values()
    assert sum(one) == sum(two) == sum(five) and len(two) > len(one) and max(five) <= max(two) < max(one)


@pytest.mark.parametrize("devices", [(0,), (0, 1), (2, 1, 0)])
def test_what_letters_tell_apart_needs_no_ranks(gpus: Played, devices: tuple[int, ...]) -> None:
    """Words that are equal in the letters of one key, but not in those of two."""
    shared = "abbabaabbaabab" * 5
    words = words_of(["b" + shared + "aab", "a" + shared + "bba"])
    expected = cpu.order_conjugates(words)
    found = gpu.find(words, order=True, distances=True, devices=devices, watch=Stopwatch())
    assert found.order is not None and found.order.tolist() == expected.tolist()
    assert sum(_lengths(gpus, "mark_heads", 0)) > 20 and not gpus.where("rank_keys")
    # Nothing but the ranks' way to the devices that count them, and the matrices' way from these.
    assert not any(isinstance(value, tuple) for _, value in gpus.brought)


@pytest.mark.usefixtures("gpus")
def test_a_range_that_is_never_told_apart_does_not_end_the_others_rounds() -> None:
    """A word of one letter on the first device, and on the second words that take two rounds."""
    words = words_of(["a" * 400, "b" * 200 + "c", "b" * 203 + "c"])
    expected = cpu.order_conjugates(words)
    for devices in ((0, 1), (0, 1, 2)):
        found = gpu.find(words, order=True, distances=True, devices=devices, watch=Stopwatch())
        assert found.order is not None and found.distances is not None
        assert found.order.tolist() == expected.tolist()
        assert found.distances.tolist() == cpu.distances(words, expected).tolist()


def _lengths(gpus: Played, name: str, argument: int) -> list[int]:
    """How many a kernel was given, in each of its launches."""
    return [len(arguments[argument]) for _, kernel, arguments in gpus.launched if kernel == name]


@pytest.mark.parametrize("strings", [["a" * 60], ["a" * 30, "a" * 31], ["ab" * 20, "ba" * 21], ["a", "a", "a"], ["b"]])
def test_ranks_are_shared_where_ranges_cannot_be(gpus: Played, strings: list[str]) -> None:
    """All first keys are equal, or two are, and some devices order nothing; each still counts in as many ranks."""
    words = words_of(strings)
    expected = cpu.distances(words, cpu.order_conjugates(words)).tolist()
    for devices in ((0, 1), (0, 1, 2, 3, 4)):
        gpus.launched.clear()
        found = gpu.find(words, distances=True, devices=devices, watch=Stopwatch())
        assert found.distances is not None and found.distances.tolist() == expected
        ranks = _lengths(gpus, "count_repeats", 0)
        assert len(ranks) == len(devices) and sum(ranks) == len(words.codes) and max(ranks) - min(ranks) <= 1


@pytest.mark.parametrize("devices", [1, 2, 3, 5])
def test_letters_come_to_every_device_and_once_from_the_host(
    gpus: Played, monkeypatch: pytest.MonkeyPatch, devices: int
) -> None:
    words, sent = words_of(["abcab", "cab" * 9, "c"]), []
    from_host = gpu_shares.copied_from_host

    def noted(value: Any, threads: int) -> Any:
        sent.append((len(value), threads))
        return from_host(value, threads)

    monkeypatch.setattr(gpu_shares, "copied_from_host", noted)
    watch = Stopwatch()
    there = gpu_shares.shared_words(gpu_shares.Gpus(range(devices), watch), words, threads=3)
    assert sent == [(len(words.codes), 3)] and len(gpus.brought) == devices - 1
    for each in there:
        assert each.codes.tolist() == words.codes.tolist() and each.offsets.tolist() == words.offsets.tolist()
        assert each.words_of.tolist() == np.repeat(range(3), words.lengths).tolist()
    assert list(watch.seconds) == ["host_to_device", "device_to_device"][:devices]


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("device", ["gpu", "gpu:0,1"])
def test_threads_of_a_call_copy(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    asked: set[int] = set()
    for module, name in ((gpu_shares, "copied_from_host"), (gpu_distances, "copied_to_host"), (gpu, "copied_to_host")):
        done = getattr(module, name)

        def noted(value: Any, threads: int, done: Any = done, **how: Any) -> Any:
            asked.add(threads)
            return done(value, threads, **how)

        monkeypatch.setattr(module, name, noted)
    for call in (warpseed.ebwt_distances, warpseed.ebwt_transform):
        asked.clear()
        call(["abcab", "cabba" * 9], device=device, threads=7)
        assert asked == {7}

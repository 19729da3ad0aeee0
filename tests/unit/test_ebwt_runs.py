"""Ranks that several GPUs lay out by words: as one does it, whatever words are in their ranges; and what fails there.

The kernels run as they are written, on GPUs that the CPU plays.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.pretend_ebwt_fast import Played, play_fast_kernels
from warpseed.compute.device_batches import Meeting, take_step
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import gpu_counts, gpu_distances, gpu_runs
from warpseed.errors import DeviceError


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    return play_fast_kernels(monkeypatch, devices=5)


def ranges_of(kind: str, devices: int) -> list[np.ndarray]:
    """The words of ranks in each device's range; each word is in one of them, at least."""
    draw = np.random.default_rng(devices)
    if kind == "drawn":
        return np.array_split(np.concatenate([draw.integers(0, 7, 90), draw.permutation(7)]), devices)
    if kind == "more words than ranks of a range":
        return np.array_split(np.concatenate([draw.integers(0, 60, 20), draw.permutation(60)]), devices)
    if kind == "one is longer than all others":
        return np.array_split(
            np.concatenate([np.where(draw.random(120) < 0.95, 2, draw.integers(0, 6, 120)), range(6)]), devices
        )
    if kind == "two words":
        return np.array_split(draw.permutation(np.repeat([0, 1], [63, 1])), devices)
    if kind == "one word":
        return np.array_split(np.zeros(70, int), devices)
    if kind == "each word in one range":
        return np.array_split(np.repeat(np.arange(25), 4), devices)
    if kind == "all in the last range":
        return [*[np.zeros(0, int)] * (devices - 1), draw.permutation(np.repeat(np.arange(9), 7))]
    if kind == "all but one in the first":
        return [draw.permutation(np.repeat(np.arange(9), 7)), *[np.zeros(0, int)] * (devices - 2), np.array([8])]
    return [np.zeros(1, int), *[np.zeros(0, int)] * (devices - 1)]


KINDS = (
    "drawn", "more words than ranks of a range", "one is longer than all others", "two words", "one word",
    "each word in one range", "all in the last range", "all but one in the first", "one rank",
)  # fmt: skip


def laid_out_by(played: Played, ranges: list[np.ndarray], counting: set[int]) -> list[gpu_counts.Ranked | None]:
    """What each device has of ranks that all of them lay out; some have something to count."""
    colours = np.concatenate(ranges)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(colours))]).astype(np.int64)
    given = [played.package.asarray(own.astype(gpu_counts.colours_type(len(offsets) - 1))) for own in ranges]
    meeting = Meeting(len(ranges))

    def rank(number: int, watch: Stopwatch) -> gpu_counts.Ranked | None:
        here = played.package.asarray(offsets)
        return gpu_runs.rank_shared(given, number, here, meeting, lambda stage: None, counts=number in counting)

    return take_step(range(len(ranges)), rank, Stopwatch(), meeting.end)


@pytest.mark.parametrize("few_words", [0, 1 << 16])
@pytest.mark.parametrize("devices", [2, 3, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_ranks_are_laid_out_as_by_one(
    played: Played, monkeypatch: pytest.MonkeyPatch, kind: str, devices: int, few_words: int
) -> None:
    """One device has nothing to count, and lays out its own range for the others."""
    monkeypatch.setattr(gpu_counts, "_FEW_WORDS", few_words)
    ranges, idle = ranges_of(kind, devices), devices // 2
    colours = np.concatenate(ranges)
    colours = colours.astype(gpu_counts.colours_type(int(colours.max()) + 1))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(colours))]).astype(np.int64)
    one = gpu_counts.rank_words(*map(played.package.asarray, (colours, offsets)))
    found = laid_out_by(played, ranges, {*range(devices)} - {idle})
    for number, ranked in enumerate(found):
        assert (ranked is None) == (number == idle)
        for mine, expected in zip(ranked or (), one, strict=False):
            assert mine.dtype == expected.dtype and mine.tolist() == expected.tolist()
    # Each sorts its own alone, in pieces that are not small.
    sizes = [len(given[0]) for _, kernel, given in played.launched if kernel == "join_runs"]
    assert sizes == (devices - 1) * [len(colours)]


def test_pieces_are_not_small_and_not_many() -> None:
    most, least = gpu_runs._MOST_PIECES, gpu_runs._LEAST_PIECE
    for counts in ([100_000_000, 100_000_000], [least, least - 1, 2 * least], [0, 5], [0, 0, 1], [1 << 31, 7]):
        borders = gpu_runs._borders_of(counts)
        ends = [own[-1] for own in borders]
        assert ends == np.cumsum(counts).tolist() and [own[0] for own in borders] == [0, *ends[:-1]]
        for own, count in zip(borders, counts, strict=True):
            sizes = np.diff(own)
            assert len(sizes) == max(1, min(most, count // least)) and sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("devices", [2, 8])
@pytest.mark.parametrize("m", [64, 1_025, 1_000_000])
def test_runs_take_less_than_counts_of_words(m: int, devices: int) -> None:
    """Where each begins, and how far it is shifted."""
    runs = m * sum(len(own) - 1 for own in gpu_runs._borders_of([1 << 28] * devices))
    squares = 4 * m * m
    assert 8 * (2 * runs + 1) <= gpu_distances.bytes_of_distances(0, m, 1) - squares + 8


def test_a_run_is_found_from_one_before() -> None:
    """Whatever number of them is between, and if these are empty."""
    draw = np.random.default_rng(4)
    for lengths in (
        [1],
        [3, 0, 0, 2],
        draw.integers(0, 3, 90),
        np.where(draw.random(300) < 0.03, 5, 0),
        [0] * 70 + [1],
    ):
        starts = np.concatenate([[0], np.cumsum(lengths)])
        owners = np.repeat(np.arange(len(lengths)), lengths)
        for place, owner in enumerate(owners.tolist()):
            for run in range(owner + 1):
                if starts[run] <= place:
                    assert gpu_runs.run_of(starts, run, place) == owner


@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("name", ["argsort", "from_device", "launch", "ranks_of_chunks"])
def test_others_do_not_wait_for_one_that_fails(
    played: Played, monkeypatch: pytest.MonkeyPatch, name: str, failing: int
) -> None:
    """Before they meet and behind that, also where something else than an error ends it."""
    done, current = getattr(gpu_runs, name), played.package.cuda.runtime.getDevice
    for error in (DeviceError("broken"), KeyboardInterrupt("broken")):

        def fail(*given: Any, error: BaseException = error) -> Any:
            if current() == failing:
                raise error
            return done(*given)

        monkeypatch.setattr(gpu_runs, name, fail)
        with pytest.raises(type(error), match="broken"):
            laid_out_by(played, ranges_of("drawn", 3), {0, 1, 2})
    monkeypatch.setattr(gpu_runs, name, done)
    assert all(laid_out_by(played, ranges_of("drawn", 3), {0, 1, 2}))


@pytest.mark.parametrize(("count", "comes"), [(1, 1), (2, 2), (3, 3), (2, 1), (3, 2)])
def test_who_meets_is_told_what_all_have_told_or_that_one_does_not_come(count: int, comes: int) -> None:
    meeting, told = Meeting(count), dict[int, Any]()

    def come(number: int) -> None:
        told[number] = meeting.tell(number, number * 5)

    threads = [threading.Thread(target=come, args=[number]) for number in range(comes)]
    for thread in threads:
        thread.start()
    if comes < count:
        meeting.end()
    for thread in threads:
        thread.join(20)
    expected = [other * 5 for other in range(count)] if comes == count else None
    assert told == dict.fromkeys(range(comes), expected)

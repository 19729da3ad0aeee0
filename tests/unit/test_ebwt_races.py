"""Ranks that GPUs lay out by words for each other, where work runs late, in any order that the waits allow: nothing is
read before it is there, or overwritten before it has been read."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles import late_cupy
from oracles.late_streams import ORDERS, LateStream
from warpseed.compute.device_batches import Meeting, take_step
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import gpu_runs
from warpseed.errors import DeviceError

MOST_DEVICES = 5
CASES = 16
MOST_TRIED = 30
"""Cases, of which one at least shows what is wrong."""


class RunKernels:
    """The kernels of `gpu_runs.py`, by name, as functions on arrays of the host; places that are none do no harm."""

    def find_runs(self, by_pieces, colours, borders, starts) -> None:
        words, ends = (len(starts) - 1) // (len(borders) - 1), borders.tolist()
        for piece, (begin, end) in enumerate(zip(ends, ends[1:], strict=False)):
            own = colours.take(begin + by_pieces[begin:end].astype(np.int64), mode="clip")
            starts[piece * words : (piece + 1) * words] = begin + np.searchsorted(own, np.arange(words))
        starts[-1] = ends[-1]

    def place_runs(self, starts, offsets, shifts) -> None:
        starts, words = np.clip(starts, 0, 1 << 20), len(offsets) - 1
        counts = np.diff(starts).reshape(-1, words)
        shifts[:] = (offsets[:-1] + np.cumsum(counts, axis=0) - counts).reshape(-1) - starts[:-1]

    def join_runs(self, by_pieces, starts, shifts, words, ranks_by_word) -> None:
        places = np.arange(len(by_pieces))
        runs = np.clip(np.searchsorted(starts, places, side="right") - 1, 0, len(shifts) - 1)
        to = np.clip(places + shifts[runs], 0, len(places) - 1)
        ranks_by_word[to] = (by_pieces + starts[runs - runs % words]).astype(np.uint32)


class Case:
    """Ranks of some words that are drawn, and how many devices share them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, order: str, seed: int) -> None:
        draw, drawn = random.Random(seed), np.random.default_rng(seed)
        self.late = late_cupy.install(monkeypatch, order, seed, MOST_DEVICES)
        monkeypatch.setattr(gpu_runs, "launch", late_cupy.Launches(self.late, RunKernels()).launch)
        monkeypatch.setattr(gpu_runs, "_LEAST_PIECE", draw.choice([1, 5, 100]))
        monkeypatch.setattr(gpu_runs, "_MOST_PIECES", draw.choice([1, 2, 4]))
        monkeypatch.setattr(gpu_runs, "ranks_of_chunks", lambda colours, m: np.bincount(colours.get(), minlength=m))
        monkeypatch.setattr(gpu_runs, "cut_words", lambda *given: [array.get() for array in given[:3]] + [given[3]])
        monkeypatch.setattr("warpseed.compute.gpu._probe", lambda size: None)
        self.devices = draw.sample(range(MOST_DEVICES), draw.choice([2, 2, 3, 5]))
        words = draw.choice([1, 2, 9])
        self.colours = drawn.permutation(np.concatenate([drawn.integers(0, words, draw.choice([0, 40])), range(words)]))
        self.offsets = np.concatenate([[0], np.cumsum(np.bincount(self.colours))]).astype(np.int64)
        cuts = sorted(draw.randint(0, len(self.colours)) for _ in self.devices[1:])
        self.ranges = np.split(self.colours.astype(np.uint16), cuts)
        self.idle = draw.choice([None, *range(len(self.devices))])
        self.failing = draw.choice([None, None, *range(len(self.devices))])

    def run(self) -> list[Any]:
        """What comes of it on each device, or nothing, where one of them fails."""
        xp, meeting = sys.modules["cupy"], Meeting(len(self.devices))

        def begin(number: int, watch: Stopwatch) -> tuple[Any, Any]:
            return xp.asarray(self.ranges[number]), xp.asarray(self.offsets)

        def rank(number: int, watch: Stopwatch) -> Any:
            def mark(stage: str) -> None:
                if number == self.failing and stage == failing_at:
                    raise DeviceError("broken")

            counts = number != self.idle
            return gpu_runs.rank_shared(colours, number, offsets[number], meeting, mark, counts=counts)

        failing_at = "distances" if self.failing == self.idle else "device_to_device"
        colours, offsets = zip(*take_step(self.devices, begin, Stopwatch()), strict=True)
        try:
            return take_step(self.devices, rank, Stopwatch(), meeting.end)
        except DeviceError:
            return []

    def is_right(self) -> bool:
        by_words = np.argsort(self.colours, kind="stable")
        expected = [part.tolist() for part in (self.colours, by_words, self.offsets, np.bincount(self.colours))]
        found = self.run()
        if self.failing is not None:
            return not found
        return [own and [part.tolist() for part in own] for own in found] == [
            None if number == self.idle else expected for number in range(len(self.devices))
        ]


def problems_of(
    order: str, seed: int, fault: Callable[[pytest.MonkeyPatch], None] = lambda monkeypatch: None
) -> set[str]:
    """What goes wrong in a case. Nothing is left to be done when a step has ended, whether well or not."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        case = Case(monkeypatch, order, seed)
        fault(monkeypatch)
        is_right, late = case.is_right(), case.late
        left = {"something is left" for stream in late.streams for work in stream.work if work.run is not None}
        del case
        gc.collect()
        late.finish()
        return {*late.problems, *left, *([] if is_right else ["wrong ranks"])}


@pytest.mark.parametrize("order", ORDERS)
def test_whatever_comes_first_all_is_there(order: str) -> None:
    first = CASES * ORDERS.index(order)
    for seed in range(first, first + CASES):
        assert not problems_of(order, seed), seed


def without(name: str, by: str | None = None) -> Callable[[pytest.MonkeyPatch], None]:
    """Streams that do not wait where a function of some name says so, which, if asked for, another one has called."""

    def take_away(monkeypatch: pytest.MonkeyPatch) -> None:
        method = LateStream.wait_event

        def wait_event(stream: LateStream, event: Any) -> None:
            caller, before = sys._getframe(1).f_code.co_name, sys._getframe(2).f_code.co_name
            if caller != name or by not in (before, None):
                method(stream, event)

        monkeypatch.setattr(LateStream, "wait_event", wait_event)

    return take_away


RACES = {
    "the first copies, for what was there before": without("_lay_out"),
    "who only lays out ranks, for the words of others": without("wait_for_sent", "rank_shared"),
    "copies, for what another device lays out": without("_take"),
    "who joins runs, for those of others": without("wait_for_sent", "_take"),
}
"""Waits by who waits, and for what."""


@pytest.mark.parametrize("wait", RACES)
def test_a_wait_that_is_taken_away_is_a_race(wait: str) -> None:
    """It is found whatever comes first: here all runs at once, so that nothing else goes wrong."""
    found = (problems_of("at once", seed, RACES[wait]) for seed in range(MOST_TRIED))
    assert any(problem.startswith("race:") for problems in found for problem in problems)

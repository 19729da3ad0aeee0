"""Streams through GPUs whose work runs late, in any order that the waits allow: nothing is read before it is there, or
overwritten before it has been read."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles import late_cupy, pretend_stream
from oracles.late_streams import ORDERS, LateStream
from streams_on_gpus import are_counts_right
from warpseed.compute import host_copies
from warpseed.compute.stopwatch import Stopwatch
from warpseed.tree_bitmap import (
    cpu,
    gpu,
    gpu_answers,
    gpu_counts,
    gpu_flight,
    gpu_lanes,
    gpu_listing,
    gpu_memory,
    gpu_structures,
    gpu_table,
    stream,
)
from warpseed.tree_bitmap.gpu_memory import Need
from warpseed.tree_bitmap.gpu_structures import Kept
from warpseed.tree_bitmap.stream import NO_BASE, NO_KMER

MOST_DEVICES = 7
CASES = 16
"""Of each test, which go through all searches."""
MOST_TRIED = 60
"""Cases, of which one at least shows what is wrong."""


class Case:
    """A stream that is drawn, and what it is searched with, in tiny blocks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, order: str, seed: int) -> None:
        draw = self.draw = random.Random(seed)
        self.late = late_cupy.install(monkeypatch, order, seed, MOST_DEVICES)
        if draw.random() < 0.3:
            monkeypatch.setattr(gpu_counts, "locked", lambda count, dtype, *_, **__: np.empty(count, dtype))
        block = draw.choice([32, 64, 96, 256])
        monkeypatch.setattr(gpu_memory, "BLOCK_BASES", block)
        monkeypatch.setattr(gpu_flight, "_LEAST_FIRST", draw.choice([32, 64, 128]))
        monkeypatch.setattr(gpu_table, "_AT_ONCE", draw.choice([7, 50]))
        monkeypatch.setattr(gpu_structures, "_MOST_BITS_K", draw.choice([0, 2, 13]))
        monkeypatch.setattr(stream, "_MOST_IN_32_BITS", draw.choice([0, 200, 1 << 20]))
        monkeypatch.setattr(host_copies, "_LEAST_SHARED", 16)
        tile, passes = draw.choice([32, 64]), draw.choice([1, 1, 2])
        for module in (gpu_answers, gpu_listing, pretend_stream):
            monkeypatch.setattr(module, "TILE", tile)
        monkeypatch.setattr(gpu_memory, "passes_for", lambda *_: passes)
        self.devices = draw.sample(range(MOST_DEVICES), draw.choice([1, 2, 2, 3, 4, 7]))
        self.threads = draw.choice([1, 3])
        self.k = draw.choice([1, 2, 3, 5, 7, 16, 31])
        length = draw.choice([0, self.k, block, 3 * block + 1, *(draw.randrange(1500) for _ in range(4))])
        drawn = np.random.default_rng(seed)
        codes = drawn.choice(5, length, p=draw.choice([[0.24] * 4 + [0.04], [0.9, 0.1, 0, 0, 0]])).astype(np.uint8)
        self.codes = self.late.locked(length, np.uint8) if draw.random() < 0.5 else np.empty(length, np.uint8)
        self.codes[...] = codes
        self.grows = draw.random() < 0.6
        self.known = np.unique(drawn.integers(0, 4**self.k, draw.choice([0, 3, 200]), np.uint64))

    def blocks(self) -> list[np.ndarray]:
        return np.split(self.codes, sorted(self.draw.choices(range(len(self.codes) + 1), k=self.draw.randrange(5))))

    def need(self, counting: bool) -> Need:
        """Of a stream of which too little is told, so that tables grow."""
        kmers = max(1, len(self.codes) // self.draw.choice([1, 10, 1000]))
        return Need(Kept(self.k, self.grows or counting, counting), kmers, self.draw.choice([1, 2]))


def whole(blocks: Sequence[np.ndarray], border: np.uint8 = NO_BASE) -> np.ndarray:
    """Blocks as one stream."""
    return np.concatenate([part for block in blocks for part in (block, np.full(1, border, np.uint8))])


def finds_answers(case: Case) -> bool:
    asked: dict[str, Any] = {"dictionary": case.known, "grows": case.grows, "watch": Stopwatch()}
    found, _ = gpu.find_answers(case.codes, case.k, devices=case.devices, threads=case.threads, **asked)
    return found.tolist() == cpu.find_answers(case.codes, case.k, **asked)[0].tolist()


def counts_kmers(case: Case) -> bool:
    watch = Stopwatch()
    counted = gpu.count_kmers(case.codes, case.k, devices=case.devices, threads=case.threads, watch=watch)
    return are_counts_right(counted, case.codes, case.k)


def answers_for_blocks(case: Case) -> bool:
    blocks, found = case.blocks(), list[np.ndarray]()
    search = gpu.DeviceAnswers(case.need(False), case.devices, case.threads, case.known)
    for number, block in enumerate(blocks, 1):
        found += search.take(block, number < len(blocks))
    asked: dict[str, Any] = {"dictionary": case.known, "grows": case.grows, "watch": Stopwatch()}
    expected, _ = cpu.find_answers(whole(blocks), case.k, **asked)
    return whole(found, NO_KMER).tolist() == expected.tolist()


def counts_blocks(case: Case) -> bool:
    blocks = case.blocks()
    search = gpu.DeviceCounts(case.need(True), case.devices, case.threads)
    for number, block in enumerate(blocks, 1):
        search.take(block, number < len(blocks))
    return are_counts_right(search.counted(), whole(blocks), case.k)


SEARCHES = (finds_answers, counts_kmers, answers_for_blocks, counts_blocks)


def problems_of(order: str, seed: int, fault: Callable[[pytest.MonkeyPatch], None] | None = None) -> set[str]:
    """What goes wrong in a case."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        case = Case(monkeypatch, order, seed)
        if fault is not None:
            fault(monkeypatch)
        is_right, late = SEARCHES[seed % len(SEARCHES)](case), case.late
        del case
        gc.collect()
        late.finish()  # (what the host did not wait for)
        return {*late.problems, *([] if is_right else ["wrong answers"])}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("half", [0, 1])
def test_whatever_comes_first_all_is_there(order: str, half: int) -> None:
    first = CASES * (2 * ORDERS.index(order) + half)
    for seed in range(first, first + CASES):
        assert not problems_of(order, seed), seed


def without(waits: str, name: str, is_searching: bool | None = None) -> Callable[[pytest.MonkeyPatch], None]:
    """Streams whose `waits` does nothing where a function of some name calls it: those that search, others, or all."""

    def take_away(monkeypatch: pytest.MonkeyPatch) -> None:
        method = getattr(LateStream, waits)

        def wait(stream: LateStream, *given: Any) -> None:
            is_other = is_searching is not None and is_searching != (stream.priority == 0)
            if sys._getframe(1).f_code.co_name != name or is_other:
                method(stream, *given)

        monkeypatch.setattr(LateStream, waits, wait)

    return take_away


def without_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_counts, "wait_for_sent", lambda: None)


def without_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_lanes.Lane, "taken", lambda lane: lane.came.clear())


RACES = {
    "a room's first copies, for what was there before": without("wait_event", "__init__"),
    "a search, for its bases": without("wait_event", "_search", True),
    "copies, for the search on their device": without("wait_event", "_search", False),
    "copies, for what another device has brought": without("wait_event", "_exchange"),
    "copies, for another device's search": without("wait_event", "_give"),
    "what is sent to the host, for what is before it": without("wait_event", "sent_to_host"),
    "the host, for k-mers that are listed": without("synchronize", "end"),
    "copies, for k-mers that are listed": without("wait_event", "_list"),
    "what is counted, for what was sent": without_sent,
}
"""Waits by who waits, and for what."""
HOSTS = {
    "answers that came": without("synchronize", "_land"),
    "bases that were taken": without_taken,
    "counts that were sent": without_sent,
}
"""What the host waits for before it goes on with its own memory."""


@pytest.mark.parametrize("wait", RACES)
def test_a_wait_that_is_taken_away_is_a_race(wait: str) -> None:
    """It is found whatever comes first: here all runs at once, so that nothing else goes wrong."""
    found = (problems_of("at once", seed, RACES[wait]) for seed in range(MOST_TRIED))
    assert any(problem.startswith("race:") for problems in found for problem in problems)


@pytest.mark.parametrize("wait", HOSTS)
def test_a_host_that_does_not_wait_is_found(wait: str) -> None:
    assert any(problems_of("when waited for", seed, HOSTS[wait]) for seed in range(MOST_TRIED))

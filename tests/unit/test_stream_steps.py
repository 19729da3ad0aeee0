"""What is compiled works on a stream in steps, between which it is asked whether the work is wanted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from warpseed.compute import ranges
from warpseed.compute.stopwatch import Stopwatch
from warpseed.tree_bitmap import cpu, cpu_edits, cpu_fast, cpu_parts, fast
from warpseed.tree_bitmap.slots import EMPTY
from warpseed.tree_bitmap.windows import BLOCK

PLACES = 40 * BLOCK
CODES = np.random.default_rng(4).integers(0, 4, PLACES).astype(np.uint8)
CODES[:: PLACES // 7] = 4
REPEATED = np.concatenate([np.zeros(PLACES // 2, np.uint8), CODES[: PLACES // 2]])


def _counted(k: int, threads: int, codes: np.ndarray) -> list[list[int]]:
    counts = cpu.HostCounts(k, threads=threads, places=PLACES)
    half = PLACES // 2
    counts.take(codes[:half], True)
    counts.take(codes[half + 1 :], False)
    return [column.tolist() for column in counts.counted()]


def _answered(k: int, threads: int, codes: np.ndarray, grows: bool = True) -> list[list[int]]:
    known = np.unique(cpu.find_answers(CODES[: PLACES // 3], k, watch=Stopwatch())[1]())
    answers, grown = cpu.find_answers(codes, k, dictionary=known, grows=grows, threads=threads, watch=Stopwatch())
    return [answers.tolist(), grown().tolist()]


def _looked_up(k: int, threads: int, codes: np.ndarray) -> list[list[int]]:
    return _answered(k, threads, codes, grows=False)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("codes", [CODES, REPEATED], ids=["random", "half of one base"])
@pytest.mark.parametrize(
    ("find", "k"), [(_counted, 1), (_counted, 31), (_answered, 8), (_answered, 31), (_looked_up, 31)]
)
def test_a_stream_is_worked_on_in_steps(
    monkeypatch: pytest.MonkeyPatch,
    find: Callable[[int, int, np.ndarray], list[list[int]]],
    k: int,
    codes: np.ndarray,
    threads: int,
) -> None:
    expected = find(k, threads, codes)
    asked = []
    for module in (ranges, cpu_parts, cpu):
        monkeypatch.setattr(module, "STEP", 2 * BLOCK)
    monkeypatch.setattr(cpu_parts, "_STEP_RUNS", 2)
    for module in (ranges, cpu_parts):
        monkeypatch.setattr(module, "check_wanted", lambda: asked.append(None))
    assert find(k, threads, codes) == expected
    assert len(asked) >= PLACES // (2 * BLOCK)


def test_a_neighbourhood_is_made_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    kmers = np.unique(np.random.default_rng(5).integers(0, 4**8, 40).astype(np.uint64))
    expected = cpu_edits.neighbourhood_of(kmers, 8, 2).slots
    asked = []
    monkeypatch.setattr(cpu_edits, "_STEP_SLOTS", 64)
    monkeypatch.setattr(cpu_edits, "check_wanted", lambda: asked.append(None))
    assert np.array_equal(cpu_edits.neighbourhood_of(kmers, 8, 2).slots, expected)
    assert len(asked) >= len(expected) // 64


def test_owners_of_known_kmers_are_numbered_in_each_part() -> None:
    """So they fit 32 bits, however many k-mers are known."""
    places, k = 1 << 17, 21
    codes = np.random.default_rng(6).integers(0, 4, places).astype(np.uint8)
    parts = cpu_parts.Parts(k, np.empty(0, np.uint64), 1, places)
    said = cpu_fast.Said(np.zeros(places, np.uint8), np.zeros(places, np.uint32), np.zeros(0, np.int64))
    parts.learn(parts.answer(codes, said), said.answers)
    known = np.zeros(len(parts.known), np.int64)
    again = cpu_fast.Said(np.zeros(places, np.uint8), np.zeros(places, np.uint32), known)
    grouped = parts.answer(codes, again)
    assert known.tolist() == [1] * len(known) and len(grouped.kmers) > 2
    for part, size in enumerate(np.diff(grouped.known_borders)):
        kmers = fast.new_set(cpu_fast.slots_for(2 * places), counting=True)
        fast.clear_set(kmers, len(kmers.slots))
        assert cpu_fast.answer_parts(grouped, (part, part + 1), k, kmers, again) == part + 1
        owners = kmers.notes[kmers.slots != EMPTY] >> np.uint64(32)
        assert np.array_equal(np.sort(owners), np.arange(places, places + size))

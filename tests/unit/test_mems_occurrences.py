"""Occurrences on a GPU: the kernels that count them, run as they are written, and what the host gives them."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.lockstep import run_kernel
from warpseed.compute import bits
from warpseed.mems import gpu_order
from warpseed.mems.matches import MOST_OCCURRENCES, PLACE_BITS, pack_span

_ALL = (1 << 64) - 1


def span_hashed_to(hashed: int) -> int:
    """The word that `mixed` makes this of."""
    back = pow(int(bits._ODD), -1, 1 << 64)
    for _ in range(2):
        hashed = ((hashed ^ hashed >> 32) * back) & _ALL
    return hashed ^ hashed >> 32


def assert_counted(queries: list[int], spans: list[int], reads: int) -> None:
    """The kernels count pairs as Python does, each read in a table of its own."""
    count = len(queries)
    hits = np.zeros(2 * count, np.uint64)
    hits[::2], hits[1::2] = np.arange(count), spans
    borders = np.concatenate([[0], np.cumsum(np.bincount(queries, minlength=reads))]).astype(np.int64)
    table = np.zeros(gpu_order.SLOTS_A_MATCH * count, np.uint64), np.zeros(gpu_order.SLOTS_A_MATCH * count, np.uint32)
    arguments = hits, np.array(queries, np.uint32), borders, *table
    for kernel in (gpu_order.count_spans, gpu_order.put_counted):
        run_kernel([gpu_order], (gpu_order._claimed_slot,), (kernel, count, 32), *arguments, together=4)
    taken = np.flatnonzero(table[0])
    owners = np.searchsorted(gpu_order.SLOTS_A_MATCH * borders, taken, side="right") - 1
    pairs = list(zip(queries, spans, strict=True))
    assert sorted(zip(owners.tolist(), table[0][taken].tolist(), strict=True)) == sorted(set(pairs))
    assert (hits[::2] >> np.uint64(PLACE_BITS)).tolist() == [pairs.count(pair) for pair in pairs]
    assert (hits[::2] & np.uint64((1 << PLACE_BITS) - 1)).tolist() == list(range(count))
    assert hits[1::2].tolist() == spans


def test_the_hash_is_undone() -> None:
    with np.errstate(over="ignore"):
        assert all(int(bits.mixed.py_func(np.uint64(span_hashed_to(each)))) == each for each in (1, 7 << 40, _ALL))


@pytest.mark.parametrize("seed", [1, 2])
def test_matches_of_some_reads(seed: int) -> None:
    """Reads without matches are between them, the first and the last among these."""
    draw = random.Random(seed)
    queries = sorted(draw.choice([1, 2, 4, 7, 8]) for _ in range(90))
    spans = [int(pack_span(draw.randint(1, 3), draw.randint(0, 2))) for _ in queries]
    assert_counted(queries, spans, 10)


def test_one_match() -> None:
    assert_counted([0], [1 << 32], 1)


def test_spans_that_all_begin_at_the_last_slot() -> None:
    """The table is searched from its end on; the same in another read's."""
    alike = [span_hashed_to(0xFFFFFFFF << 32 | number) for number in range(40)]
    assert_counted([0] * 40 + [3] * 40, alike + alike, 4)
    assert_counted([2] * 70, alike[:1] * 70, 3)


@pytest.mark.parametrize(("other", "expected"), [(7 << 32, 1), (5 << 32, 0)])
def test_a_slot_that_another_thread_takes_meanwhile(monkeypatch: pytest.MonkeyPatch, other: int, expected: int) -> None:
    """With another span the next slot is taken, with the same it is shared."""
    slots, borders = np.zeros(8, np.uint64), np.array([0, 4], np.int64)
    begin, waiting = int(bits.first_slot.py_func(np.uint64(5 << 32), 8)), [np.uint64(other)]

    def cas(array: np.ndarray, at: int, before: Any, span: Any) -> Any:
        if waiting:
            array[at] = waiting.pop()
        held = array[at]
        array[at] = span if held == before else held
        return held

    monkeypatch.setattr(gpu_order, "cuda", SimpleNamespace(atomic=SimpleNamespace(cas=cas)))
    at = gpu_order._claimed_slot.py_func(slots, 0, borders, np.uint64(5 << 32))
    assert at == (begin + expected) % 8 and not waiting
    assert slots[begin] == other and slots[at] == 5 << 32


def test_no_more_occurrences_than_there_is_room_for() -> None:
    """What 31 bits do not hold stays the most that they do."""
    hits, slots, borders = np.array([5, 7 << 32], np.uint64), np.zeros(2, np.uint64), np.array([0, 1], np.int64)
    slots[int(bits.first_slot.py_func(np.uint64(7 << 32), 2))] = 7 << 32
    arguments = hits, np.zeros(1, np.uint32), borders, slots, np.full(2, MOST_OCCURRENCES + 9, np.uint32)
    run_kernel([gpu_order], (gpu_order._claimed_slot,), (gpu_order.put_counted, 1, 32), *arguments)
    assert hits.tolist() == [MOST_OCCURRENCES << PLACE_BITS | 5, 7 << 32]

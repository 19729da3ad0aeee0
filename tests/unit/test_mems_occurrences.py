"""Occurrences on a GPU: the kernels that count them, run as they are written, and what the host gives them."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.lockstep import run_kernel
from oracles.pretend_gpu import install
from warpseed.compute import bits, warp
from warpseed.mems import gpu, gpu_fast, gpu_order
from warpseed.mems.fast import how_for
from warpseed.mems.matches import KINDS, MAXIMAL, PLACE_BITS, Criteria, pack_span
from warpseed.sequences.packed import Packed

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
    assert (hits[::2] & np.uint64((1 << PLACE_BITS) - 1)).tolist() == list(range(count)) and hits[
        1::2
    ].tolist() == spans


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


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_kept_matches_are_counted_by_read(monkeypatch: pytest.MonkeyPatch, kind: int) -> None:
    draw, room = np.random.default_rng(kind), 40
    monkeypatch.setattr(gpu_fast, "SEGMENTS", 2)
    monkeypatch.setattr(gpu_fast, "KEEPING_BLOCKS", 4)
    lengths = np.array([60, 3, 40, 70, 32], np.uint32)
    first = np.concatenate([[0], np.cumsum((lengths + 31) // 32)]).astype(np.uint32)
    reads = Packed(np.zeros(first[-1], np.uint64), np.empty(0, np.uint64), first, lengths)
    query, strand = draw.choice([0, 2, 3], 2 * room).astype(np.uint64), draw.integers(0, 2, 2 * room, np.uint64)
    keys = (query << np.uint64(PLACE_BITS)) | np.uint64(8) | strand
    spans = (draw.integers(1, 20, 2 * room, np.uint64) << np.uint64(32)) | draw.integers(0, 20, 2 * room, np.uint64)
    ends = draw.integers(0, 40, 64 * int(first[-1])).astype(np.uint32)
    lists = gpu_fast.AppendedMatches(np.array([room, 7, 0, 0], np.uint64), keys, spans)
    places = [*range(room), *range(room, room + 7)]
    wanted = gpu_fast._is_wanted.py_func
    with np.errstate(over="ignore"):
        expected = [at for at in places if wanted(reads, kind, ends, keys[at], spans[at])]
    cursor, counts = np.zeros(1, np.uint64), np.zeros(len(lengths), np.uint64)
    kept: tuple[Any, Any] = (np.zeros(len(places), np.uint64), np.zeros(len(places), np.uint64))
    launch = gpu_fast.keep_matches, 4 * warp.BLOCK, warp.BLOCK
    functions = warp.warp_places, warp.reserve
    arguments = lists, reads, kind, ends, cursor, *kept, counts
    run_kernel((gpu_fast, warp), functions, launch, *arguments, together=2)
    there = sorted(zip(*(array[: int(cursor[0])].tolist() for array in kept), strict=True))
    assert there == sorted((int(keys[at]), int(spans[at])) for at in expected)
    assert counts.tolist() == np.bincount(query[expected].astype(np.int64), minlength=len(lengths)).tolist()
    assert len(expected) == len(places) or kind != MAXIMAL


@pytest.mark.parametrize("strands", [1, 2])
@pytest.mark.parametrize("table_length", [1, 8, 13, 16])
def test_no_fewer_warps_than_tiles(monkeypatch: pytest.MonkeyPatch, strands: int, table_length: int) -> None:
    """Reads of each length alone, and of all together."""
    install(monkeypatch, None)
    lengths = np.array([*range(1, 300), 1000, 4095, 4096, 4097], np.uint32)
    for min_length in (1, 2, 7, 13, 14, 20, 33, 70, 255):
        how = how_for(Criteria(min_length, MAXIMAL, strands), table_length, 1 << 20)
        for some in (*lengths.reshape(-1, 1), lengths, lengths[:0]):
            words = np.zeros(int(((some.astype(np.int64) + 31) // 32).sum()), np.uint64)
            reads = Packed(words, words[:0], some[:0], some)
            assert int(gpu._first_tiles(reads, how)[-1]) <= gpu._most_tiles(reads, how)

"""K-mers of a stream that GPUs count, which the CPU plays: all of them, by their first places, from however many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.pretend_cupy import PretendCupy
from streams_on_gpus import DEVICES, NONE, are_counts_right, play, stream
from warpseed.compute.stopwatch import Stopwatch
from warpseed.tree_bitmap import gpu, gpu_counts, gpu_memory
from warpseed.tree_bitmap import stream as tree_bitmap_stream
from warpseed.tree_bitmap.gpu_flight import Flight
from warpseed.tree_bitmap.gpu_memory import Need
from warpseed.tree_bitmap.stream import place_type


@pytest.fixture(autouse=True)
def played(monkeypatch: pytest.MonkeyPatch) -> PretendCupy:
    return play(monkeypatch)


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("k", [1, 5, 31])
@pytest.mark.parametrize("length", [0, 3, 40, 2500])
@pytest.mark.parametrize("longest", [0, 700, 2**31 - 1])
def test_counts_are_joined_in_order(
    monkeypatch: pytest.MonkeyPatch, devices: tuple[int, ...], k: int, length: int, longest: int
) -> None:
    """Also where a device has no k-mer, and places and counts of a longer stream than those that have 32 bits, of which
    the first blocks still may."""
    typed: type = np.int32 if -(-length // 32) * 32 <= longest else np.int64  # (what fills the last word is counted)
    monkeypatch.setattr(tree_bitmap_stream, "_MOST_IN_32_BITS", longest)
    codes = stream()[:length]
    counted = gpu.count_kmers(codes, k, devices=devices, threads=2, watch=Stopwatch())
    assert are_counts_right(counted, codes, k)
    assert [column.dtype for column in counted] == [np.uint64, typed, typed]


@pytest.mark.parametrize("devices", DEVICES[1:])
def test_devices_give_back_equal_shares_of_what_was_counted(devices: tuple[int, ...]) -> None:
    codes = np.random.default_rng(1).integers(0, 4, 6000, np.uint8)
    with Flight(devices, Need.of(31, 6000, counting=True), NONE, threads=2) as flight:
        flight.take(codes)
        flight.end()
    lengths = [sum(len(each.kmers) for each in own) for own in flight.first_kmers]
    assert len(lengths) == len(devices) and sum(lengths) == 5970
    assert max(lengths) - min(lengths) < 200


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("passes", [2, 3])
@pytest.mark.parametrize("k", [3, 31])
def test_counts_in_passes(monkeypatch: pytest.MonkeyPatch, devices: tuple[int, ...], passes: int, k: int) -> None:
    """Each lists the k-mers of its own parts alone."""
    monkeypatch.setattr(gpu_memory, "passes_for", lambda *_: passes)
    counted = gpu.count_kmers(stream(), k, devices=devices, threads=2, watch=Stopwatch())
    assert are_counts_right(counted, stream(), k)


def test_an_interrupt_while_counts_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each device is waited for before it is told, and once before that, when it sends."""
    waited: list[int] = []
    steps: list[int] = []
    take_step = gpu_counts.take_step

    def interrupt(devices: Any, *given: Any) -> Any:
        steps.append(len(devices))
        if len(steps) == 2:
            assert waited == [1] * 3
            raise KeyboardInterrupt
        return take_step(devices, *given)

    monkeypatch.setattr(gpu_counts, "take_step", interrupt)
    monkeypatch.setattr(gpu_counts, "wait_for_sent", lambda: waited.append(1))
    with pytest.raises(KeyboardInterrupt):
        gpu.count_kmers(stream(), 5, devices=(0, 1, 2), watch=Stopwatch())
    assert waited == [1] * 6


@pytest.mark.parametrize("devices", [(0,), (1, 0), (0, 1, 2)])
@pytest.mark.parametrize("k", [4, 5, 31])
def test_what_is_listed_takes_what_is_said(devices: tuple[int, ...], k: int) -> None:
    """And how often all have come, as far as each device knows."""
    codes = np.random.default_rng(k).integers(0, 4, 8000, np.uint8)
    need = Need.of(k, len(codes), counting=True)
    with Flight(devices, need, NONE, threads=2) as flight:
        flight.take(codes)
        flight.end()
    found = sum(len(each.kmers) for own in flight.first_kmers for each in own)
    for own in flight.first_kmers:
        listed = sum(column.nbytes for each in own for column in each)
        assert listed + 8 * found <= need.counted_bytes(len(devices), 1)
    assert need.counted_bytes(1, 1) < 24 * found * 1.05


def test_places_have_as_many_bits_as_they_need() -> None:
    assert [place_type(places) for places in (0, 2**31 - 1, 2**31, 2**40)] == [np.int32, np.int32, np.int64, np.int64]

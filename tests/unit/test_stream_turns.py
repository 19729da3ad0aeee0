"""Streams through GPUs, which the CPU plays, where k-mers have turns by numbers: as the CPU's own searches."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.pretend_cupy import PretendCupy
from streams_on_gpus import DEVICES, NONE, K, known_kmers, noted, play, stream
from warpseed.compute.stopwatch import Stopwatch
from warpseed.tree_bitmap import cpu, gpu, gpu_memory, gpu_structures
from warpseed.tree_bitmap.gpu_flight import Flight
from warpseed.tree_bitmap.gpu_memory import Need
from warpseed.tree_bitmap.gpu_structures import HashTable, TurnTable


@pytest.fixture(autouse=True)
def played(monkeypatch: pytest.MonkeyPatch) -> PretendCupy:
    monkeypatch.setattr(gpu_structures, "_MOST_BITS_K", 0)
    return play(monkeypatch)


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[slice]:
    """The numbers that tables of turns are made for."""
    made: list[slice] = []
    numbers_of_part = gpu_structures.numbers_of_part

    def noting(k: int, part: int, parts: int) -> slice:
        made.append(numbers_of_part(k, part, parts))
        return made[-1]

    monkeypatch.setattr(gpu_structures, "numbers_of_part", noting)
    return made


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("passes", [1, 2, 3])
def test_answers(monkeypatch: pytest.MonkeyPatch, tables: list[slice], devices: tuple[int, ...], passes: int) -> None:
    """Devices, and passes, have all numbers between them."""
    codes, known = stream(), known_kmers()
    expected, _ = cpu.find_answers(codes, K, dictionary=known, watch=Stopwatch())
    monkeypatch.setattr(gpu_memory, "passes_for", lambda *_: passes)
    found, _ = gpu.find_answers(codes, K, dictionary=known, devices=devices, watch=Stopwatch())
    assert found.tolist() == expected.tolist()
    assert [number for numbers in tables for number in range(4**K)[numbers]] == list(range(4**K))


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("passes", [1, 2])
def test_counts(monkeypatch: pytest.MonkeyPatch, tables: list[slice], devices: tuple[int, ...], passes: int) -> None:
    codes = stream()
    expected = cpu.HostCounts(K, places=len(codes))
    expected.take(codes, False)
    monkeypatch.setattr(gpu_memory, "passes_for", lambda *_: passes)
    counted = gpu.count_kmers(codes, K, devices=devices, threads=2, watch=Stopwatch())
    for mine, true in zip(counted, expected.counted(), strict=True):
        assert mine.tolist() == true.tolist()
    assert len(tables) == passes * len(devices)


@pytest.mark.parametrize("devices", DEVICES)
def test_a_hash_table_becomes_one(monkeypatch: pytest.MonkeyPatch, devices: tuple[int, ...]) -> None:
    """Where more comes than was told of, at a time of its own on each device; k-mers stay with the device that they
    are dealt out to."""
    k, codes, kinds = 7, stream(20_000), list[type]()
    noted(monkeypatch, HashTable, "insert", lambda *_: kinds.append(HashTable))
    noted(monkeypatch, TurnTable, "insert", lambda *_: kinds.append(TurnTable))
    expected, _ = cpu.find_answers(codes, k, watch=Stopwatch())
    found = np.empty(len(codes), np.uint8)
    with Flight(devices, Need.of(k, 0), NONE, threads=2) as flight:
        flight.take(codes, found)
        flight.end()
    assert found.tolist() == expected.tolist()
    assert kinds[0] is HashTable and kinds[-1] is TurnTable

"""Streams through GPUs, which the CPU plays, where k-mers have turns by hash: as the CPU's own searches."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.pretend_cupy import PretendCupy
from streams_on_gpus import DEVICES, K, are_counts_right, known_kmers, noted, play, stream
from warpseed.compute.stopwatch import Stopwatch
from warpseed.tree_bitmap import cpu, gpu, gpu_memory, gpu_structures
from warpseed.tree_bitmap.gpu_counts import counted_on
from warpseed.tree_bitmap.gpu_flight import Flight
from warpseed.tree_bitmap.gpu_memory import Need
from warpseed.tree_bitmap.gpu_structures import HashTable, TurnTable


@pytest.fixture(autouse=True)
def played(monkeypatch: pytest.MonkeyPatch) -> PretendCupy:
    monkeypatch.setattr(gpu_structures, "_MOST_BITS_K", 0)
    return play(monkeypatch)


@pytest.fixture
def ranges(monkeypatch: pytest.MonkeyPatch) -> list[slice]:
    """The hashes that tables of turns are made for."""
    made: list[slice] = []
    hashes_of_part = gpu_structures.hashes_of_part

    def noting(k: int, part: int, parts: int) -> slice:
        made.append(hashes_of_part(k, part, parts))
        return made[-1]

    monkeypatch.setattr(gpu_structures, "hashes_of_part", noting)
    return made


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("passes", [1, 2, 3])
def test_answers(monkeypatch: pytest.MonkeyPatch, ranges: list[slice], devices: tuple[int, ...], passes: int) -> None:
    """Devices, and passes, have all hashes between them."""
    codes, known = stream(), known_kmers()
    expected, _ = cpu.find_answers(codes, K, dictionary=known, watch=Stopwatch())
    monkeypatch.setattr(gpu_memory, "passes_for", lambda *_: passes)
    found, _ = gpu.find_answers(codes, K, dictionary=known, devices=devices, watch=Stopwatch())
    assert found.tolist() == expected.tolist()
    assert [each for hashes in ranges for each in range(4**K)[hashes]] == list(range(4**K))


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("passes", [1, 2])
def test_counts(monkeypatch: pytest.MonkeyPatch, ranges: list[slice], devices: tuple[int, ...], passes: int) -> None:
    monkeypatch.setattr(gpu_memory, "passes_for", lambda *_: passes)
    counted = gpu.count_kmers(stream(), K, devices=devices, threads=2, watch=Stopwatch())
    assert are_counts_right(counted, stream(), K)
    assert len(ranges) == passes * len(devices)


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("counting", [False, True])
def test_a_hash_table_becomes_one(monkeypatch: pytest.MonkeyPatch, devices: tuple[int, ...], counting: bool) -> None:
    """On each device, where more comes than was told of; k-mers stay with the device that they are dealt out to, those
    that were known before, too."""
    k, codes, kinds = 7, stream(20_000), list[type]()
    known = np.unique(np.random.default_rng(3).integers(0, 4**k, 0 if counting else 200, np.uint64))
    noted(monkeypatch, HashTable, "insert", lambda *_: kinds.append(HashTable))
    expected, _ = cpu.find_answers(codes, k, dictionary=known, watch=Stopwatch())
    found = np.empty(len(codes), np.uint8)
    with Flight(devices, Need.of(k, 0, counting=counting), known, threads=2) as flight:
        flight.take(codes, found)
        flight.end()
    assert found.tolist() == expected.tolist()
    assert kinds and all(isinstance(kmers.structure, TurnTable) for kmers in flight.kmers)
    if counting:
        counted = counted_on(devices, flight.kmers, flight.first_kmers, 2, Stopwatch())
        assert are_counts_right(counted, codes, k)

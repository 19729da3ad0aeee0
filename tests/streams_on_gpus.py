"""Streams that go through GPUs, which the CPU plays: eight of them, and blocks of a few bases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracles.pretend_cupy import PretendCupy
from oracles.pretend_stream import play_table
from warpseed.compute import host_copies
from warpseed.tree_bitmap import cpu, gpu_flight, gpu_memory

__all__ = ["DEVICES", "NONE", "K", "are_counts_right", "known_kmers", "noted", "play", "stream"]

K = 5
NONE = np.empty(0, np.uint64)
DEVICES = [(0,), (1, 0), (0, 1, 2), (7, 2, 0, 1, 3, 4, 6, 5)]


def play(monkeypatch: pytest.MonkeyPatch) -> PretendCupy:
    """Eight GPUs, and blocks of 512 bases; threads copy a few bytes each."""
    monkeypatch.setattr(gpu_memory, "BLOCK_BASES", 512)
    monkeypatch.setattr(gpu_flight, "_LEAST_FIRST", 32)
    monkeypatch.setattr(host_copies, "_LEAST_SHARED", 16)
    return play_table(monkeypatch, devices=8)


def stream(length: int = 4000) -> np.ndarray:
    """Bases, some that are none, and a part that comes again."""
    codes = np.random.default_rng(length).choice(5, length, p=[0.24] * 4 + [0.04]).astype(np.uint8)
    codes[length // 2 : length // 2 + length // 8] = codes[: length // 8]
    return codes


def known_kmers() -> np.ndarray:
    return np.unique(np.random.default_rng(3).integers(0, 4**K, 200, np.uint64))


def are_counts_right(counted: Any, codes: np.ndarray, k: int) -> bool:
    """Whether counted k-mers are those that the CPU counts."""
    expected = cpu.HostCounts(k, places=len(codes))
    expected.take(codes, False)
    return all(mine.tolist() == true.tolist() for mine, true in zip(counted, expected.counted(), strict=True))


def noted(monkeypatch: pytest.MonkeyPatch, kind: Any, name: str, note: Callable[..., object]) -> None:
    """Let a method tell what it is given, but for what has a name."""
    method = getattr(kind, name)

    def told(self: Any, *given: Any, **named: Any) -> Any:
        note(self, *given)
        return method(self, *given, **named)

    monkeypatch.setattr(kind, name, told)

"""Distances of all pairs on GPUs, of orders that are drawn: of all sizes, whatever share of the ranks a word has."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from warpseed.compute import gpu as device
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import cpu, gpu_counts, gpu_distances, gpu_ranges
from warpseed.ebwt.gpu_order import DeviceWords
from warpseed.ebwt.gpu_parts import parts_of
from warpseed.ebwt.words import Words
from warpseed.sequences.names import Names

pytestmark = pytest.mark.gpu


def drawn(seed: int) -> tuple[Words, np.ndarray]:
    """Words, of which the lengths alone matter, and an order: each word comes as often as it has letters."""
    draw = np.random.default_rng(seed)
    m, size = int(2 ** draw.uniform(0, 12.5)), int(2 ** draw.uniform(4, 20))
    weights = draw.random(m) ** draw.choice([0.01, 1, 6]) + 1e-4
    colours = draw.choice(m, size, p=weights / weights.sum())
    colours[: draw.integers(0, size)].sort()  # runs of a word, and gaps that are nearly all
    colours = np.concatenate([np.roll(colours, draw.integers(0, size)), draw.permutation(m)])
    lengths = np.bincount(colours, minlength=m)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    order = np.empty(len(colours), np.uint32)
    order[np.argsort(colours, kind="stable")] = np.arange(len(colours), dtype=np.uint32)
    return Words(b"A", np.zeros(len(colours), np.uint8), offsets, Names.numbered(b"", m)), order


@pytest.mark.parametrize("slab", [1 << 17, None])
@pytest.mark.parametrize("seed", range(60))
def test_orders_that_are_drawn(monkeypatch: pytest.MonkeyPatch, seed: int, slab: int | None) -> None:
    """On one GPU and shared by all; with slabs that are short, and numbers of words of 16 and of 32 bits."""
    monkeypatch.setattr(gpu_counts, "_FEW_WORDS", seed % 2 << 16)
    if slab:
        monkeypatch.setattr(gpu_counts, "_SLAB", slab)
    words, order = drawn(seed)
    expected = cpu.distances(words, order, threads=2)
    for devices in {(0,), tuple(range(device.device_count()))}:
        parts = parts_of(words.lengths, len(devices))
        ordered = []
        for number in devices:
            ranks = slice(*(len(order) * part // len(devices) for part in (number, number + 1)))
            with device.on_device(number), device.on_own_stream(0):
                own = device.cupy().asarray(order[ranks])
                ordered.append(gpu_ranges.Ordered(DeviceWords.of(words), own, ranks.start))
        with device.on_device(0), device.on_own_stream(0):
            found = gpu_distances.shared_distances(ordered, parts, devices, 1, Stopwatch())
            assert np.array_equal(found, expected)
            there, own, *_ = ordered[0]
            assert len(devices) > 1 or np.array_equal(gpu_distances.distances_of(there, own).get(), expected)

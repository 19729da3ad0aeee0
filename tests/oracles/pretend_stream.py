"""The kernels of the table of a stream's k-mers, played by the CPU; memory is what the pretended CuPy says."""

from __future__ import annotations

from typing import Any

import numpy as np
from warpseed.compute.bits import mixed
from warpseed.tree_bitmap.gpu_fast import PLACE_BITS
from warpseed.tree_bitmap.slots import EMPTY

from oracles.pretend_gpu import PretendCupy, install

__all__ = ["play_table"]

NO_KMER, NEW, SEEN = range(3)
_PLACES = (1 << PLACE_BITS) - 1


def _bits_at(words: np.ndarray, place: int, k: int) -> int:
    """The 2k bits that begin at a place."""
    two = int(words[place // 32]) << 64 | int(words[place // 32 + 1])
    return two >> (128 - 2 * (place % 32) - 2 * k) & (4**k - 1)


class _Kernels:
    """The kernels by name. A slot of a table is any that is free: a dictionary knows which k-mer has which."""

    def launch(self, function: Any, threads: int, block: int, *arguments: Any) -> None:
        if threads > 0:
            getattr(self, function.py_func.__name__)(*arguments)

    def pack_codes(self, codes, first_word, words, marks) -> None:
        fours = np.asarray(codes).reshape(-1, 32).astype(np.uint64)
        shifts = np.arange(62, -2, -2, dtype=np.uint64)
        there = slice(first_word, first_word + len(fours))
        words[there] = (np.where(fours < 4, fours, np.uint64(0)) << shifts).sum(axis=1, dtype=np.uint64)
        marks[there] = ((fours > 3).astype(np.uint64) << shifts).sum(axis=1, dtype=np.uint64)

    def insert_kmers(self, table, stretch, answers) -> None:
        slots = {}
        for slot in np.flatnonzero(table.slots != EMPTY).tolist():
            slots[_bits_at(table.words, int(table.slots[slot]) & _PLACES, table.k)] = slot
        free = iter(np.flatnonzero(table.slots == EMPTY).tolist())
        for place in range(stretch.first, stretch.last):
            if _bits_at(table.marks, place, table.k):
                answers[place - stretch.first] = NO_KMER
                continue
            kmer = _bits_at(table.words, place, table.k)
            hashed = int(mixed(np.uint64(kmer << 64 - 2 * table.k)))
            if (hashed >> 16 & 0xFFFF) % stretch.parts != stretch.part:
                continue
            if kmer in slots:
                answers[place - stretch.first] = SEEN
            elif stretch.grows:
                slots[kmer] = next(free)
                table.slots[slots[kmer]] = (hashed << PLACE_BITS | place) & (2**64 - 1)
                table.used[0] += np.uint64(1)
            if len(table.counts) and stretch.grows:
                table.counts[slots[kmer]] += np.uint64(1)

    def move_slots(self, old, table) -> None:
        held = np.flatnonzero(old.slots != EMPTY)
        table.slots[: len(held)] = old.slots[held]
        table.counts[: len(held) if len(table.counts) else 0] = old.counts[held] if len(old.counts) else []

    def read_codes(self, table, places, codes) -> None:
        codes[...] = [_bits_at(table.words, place, table.k) for place in places.tolist()]


def play_table(monkeypatch: Any, devices: int = 1) -> PretendCupy:
    """Put a pretended CuPy and these kernels where the library looks for them."""
    from warpseed.compute import gpu as device
    from warpseed.tree_bitmap import gpu_table

    package, _ = install(monkeypatch, None, devices)
    monkeypatch.setattr(gpu_table, "launch", _Kernels().launch)
    monkeypatch.setattr(device, "_probe", lambda size: None)
    return package

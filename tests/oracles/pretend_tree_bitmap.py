"""The kernels of paper 003, played by the CPU: what they compute is their twins', and the buffers are the device's."""

from __future__ import annotations

from typing import Any

import numpy as np
from warpseed.compute.bits import fetch_word
from warpseed.tree_bitmap import cpu_edits, cpu_levenshtein
from warpseed.tree_bitmap.cpu_paper import match_chunk
from warpseed.tree_bitmap.edits import place_distance
from warpseed.tree_bitmap.levenshtein import edit_record
from warpseed.tree_bitmap.paper import MISMATCH
from warpseed.tree_bitmap.slots import EMPTY

from oracles.played_kernels import PlayedKernels
from oracles.pretend_gpu import PretendCupy, install

__all__ = ["play_distances", "play_kernels"]


def _put(records: np.ndarray, buffer: Any) -> None:
    """Append records as if the last thread came first."""
    assert not buffer.cursor.any()
    kept = min(len(records), len(buffer.records))
    buffer.records[:kept] = records[::-1][:kept]
    buffer.cursor[0] = len(records)


class _Kernels(PlayedKernels):
    """Those of matching."""

    def match_naively(self, codes, k, bitmap, places, actives, buffer) -> None:
        blocks, rest = divmod(len(actives), len(bitmap.inmaps))
        assert blocks > 0 and rest == 0
        _put(match_chunk(codes, k, bitmap, places, "naive", blocks), buffer)

    def match_by_shuffle(self, codes, k, bitmap, places, shape, buffer) -> None:
        pieces, lanes = shape
        assert lanes in (4, 8, 16, 32) and lanes > k and pieces > 0
        _put(match_chunk(codes, k, bitmap, places, "shuffle", pieces), buffer)

    def _match_edits(self, codes, search, bitmap, places, actives, buffer) -> None:
        k, edits = search
        blocks, rest = divmod(len(actives), (edits + 1) * len(bitmap.inmaps))
        assert places == (0, len(codes)) and blocks > 0 and rest == 0
        found = cpu_levenshtein.match_edits(codes, k, edits, bitmap, pieces=blocks)
        records = [
            edit_record(kind, place, bits)
            for kind, words in ((0, found.accepted), (MISMATCH, found.missed))
            for place, bits in enumerate(words.tolist())
            if bits
        ]
        _put(np.array(records, np.uint64), buffer)

    match_edits_naively = match_edits_efficiently = match_edits_in_queues = _match_edits


def play_kernels(monkeypatch: Any, devices: int = 1) -> _Kernels:
    """Put a pretended CuPy of some devices and these kernels where the library looks for them."""
    from warpseed.tree_bitmap import gpu_dynamic, gpu_levenshtein

    install(monkeypatch, None, devices=devices)
    kernels = _Kernels()
    for module in (gpu_dynamic, gpu_levenshtein):
        monkeypatch.setattr(module, "launch", kernels.launch)
        monkeypatch.setattr(module, "_BLOCKS", 3)  # the CPU takes one after the other
    return kernels


class _Distances(PlayedKernels):
    """The kernels of true distances."""

    def __init__(self, package: PretendCupy) -> None:
        super().__init__()
        self._package = package
        self.places: list[tuple[int, int]] = []
        """device and places of each look-up"""

    def put_kmers(self, kmers, k, slots) -> None:
        assert (slots == EMPTY).all()
        cpu_edits._put_kmers(kmers[::-1].copy(), k, slots)

    def put_neighbours(self, slots, level) -> None:
        cpu_edits._put_neighbours(slots, level, (0, len(slots)))

    def pack_codes(self, codes, first_word, words, marks) -> None:
        codes = np.asarray(codes).view(np.uint8)
        assert first_word == 0 and len(codes) // 32 == len(words) - 1 == len(marks) - 1
        shifts = np.arange(62, -1, -2, dtype=np.uint64)
        rows = codes.reshape(-1, 32).astype(np.uint64)
        words[:-1] = np.bitwise_or.reduce(np.where(rows < 4, rows, np.uint64(0)) << shifts, axis=1)
        marks[:-1] = np.bitwise_or.reduce((rows >> np.uint64(2)) << shifts, axis=1)

    def look_up_places(self, near, words, marks, places, distances) -> None:
        self.places.append((self._package.current.number, places))
        for place in range(places):
            window = np.uint64(fetch_word(words, place + 1))
            unknown = fetch_word(marks, place + 1)
            run = next((bases for bases in range(32) if unknown >> 2 * bases & 1), 32)
            distances[place] = place_distance(near, window, run)


def play_distances(monkeypatch: Any, devices: int) -> tuple[PretendCupy, _Distances]:
    """Put a pretended CuPy and these kernels where the library looks for them."""
    from warpseed.tree_bitmap import gpu_edits

    package, _ = install(monkeypatch, None, devices)
    kernels = _Distances(package)
    monkeypatch.setattr(gpu_edits, "launch", kernels.launch)
    return package, kernels

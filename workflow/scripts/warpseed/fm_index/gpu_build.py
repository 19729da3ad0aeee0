"""The parts of an index made on the current GPU; they are those that the CPU makes."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpseed.compute.device_copies import copied_to_host
from warpseed.compute.gpu import cupy, launch, sort, synchronize, to_device, view
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.gpu_bwt import fill_bwt, fill_rocc, reverse_words
from warpseed.fm_index.gpu_suffix_array import sort_suffixes_on_device
from warpseed.fm_index.parts import Arrays, Sizes
from warpseed.fm_index.text import PackedText, reverse_segments

__all__ = ["DeviceParts"]

_BLOCK = 256


class DeviceParts:
    """Makes parts of an index on the current device, and holds what a search needs there afterwards.

    Attributes
    ----------
    text : PackedText, on the device
    suffix_array : uint32[n] of the text, on the device; None where no part was made of it
    """

    def __init__(self, text: PackedText, sizes: Sizes, *, threads: int, watch: Stopwatch) -> None:
        """Bring a text there.

        Parameters
        ----------
        text : PackedText, on the host
        threads : int, that copy to the host
        watch : takes the seconds of ``text_to_device``, ``suffix_array``, with the table, ``bwt`` and ``index_to_host``
        """
        self._host, self._sizes, self._threads, self._watch = text, sizes, threads, watch
        self.suffix_array: Any = None
        with watch.stage("text_to_device", synchronise=synchronize):
            self.text = to_device(text)

    def make(self, parts: tuple[str, ...], suffix_array: np.ndarray | None = None) -> dict[str, Arrays]:
        """Make parts, and copy them to the host; parameters and result as `warpseed.fm_index.build.make_parts`.

        Raises
        ------
        MemoryLimitError : the device's memory does not suffice
        """
        made: dict[str, Arrays] = {part: {} for part in parts}
        # The reverse direction first: its suffix array is gone before the forward one is made.
        if "reverse" in parts:
            made["reverse"] = self._make_reverse()
        if {"fast", "forward"} & set(parts):
            tables = self._sort("fast" in parts, suffix_array)
            if "forward" in parts:
                made["forward"] = self._make_bwt(self.text, self.suffix_array)
            if "fast" in parts:
                made["fast"] = self._to_host({"suffix_array": self.suffix_array, "table": tables[0]})
        return made

    def _sort(self, with_table: bool, known: np.ndarray | None) -> list[Any]:
        with self._watch.stage("suffix_array", synchronise=synchronize):
            if known is not None and not with_table:
                self.suffix_array = cupy().asarray(known)
                return []
            lengths = [self._sizes.parameters.table_length] if with_table else []
            self.suffix_array, tables = sort_suffixes_on_device(self.text, lengths)
            return tables

    def _make_reverse(self) -> Arrays:
        with self._watch.stage("suffix_array", synchronise=synchronize):
            words = view(cupy().zeros(len(self._host.words), np.uint64))
            count = self._sizes.rows - 1
            launch(reverse_words, -(-count // 32), _BLOCK, self.text.words, count, words)
            backwards = PackedText(words, to_device(reverse_segments(self._host.segments)))
            suffix_array, _ = sort_suffixes_on_device(backwards)
        return self._make_bwt(backwards, suffix_array)

    def _make_bwt(self, text: PackedText, suffix_array: Any) -> Arrays:
        with self._watch.stage("bwt", synchronise=synchronize):
            made = _bwt_of(text, suffix_array, self._sizes)
        return self._to_host(made)

    def _to_host(self, arrays: dict[str, Any]) -> Arrays:
        with self._watch.stage("index_to_host"):
            return {name: copied_to_host(array, self._threads) for name, array in arrays.items()}


def _bwt_of(text: PackedText, suffix_array: Any, sizes: Sizes) -> dict[str, Any]:
    """The arrays of a BWT, on the device but for the smallest."""
    xp = cupy()
    occ_interval, sa_interval, _ = sizes.parameters
    blocks = sizes.blocks
    bwt, counts = xp.empty(blocks * occ_interval // 32, np.uint64), xp.empty((5, blocks), np.uint32)
    cursor, separator_row = xp.zeros(1, np.uint64), xp.empty(sizes.segments, np.uint32)
    made = map(view, (bwt, counts, cursor, separator_row))
    launch(fill_bwt, 32 * blocks, _BLOCK, text, view(suffix_array), occ_interval, *made)
    sort(separator_row)
    until = xp.cumsum(counts, axis=1, dtype=np.uint32)
    before, rocc = until - counts, xp.empty(4 * blocks, np.uint32)
    launch(fill_rocc, blocks, _BLOCK, view(before), view(rocc))
    positions, rsa = suffix_array[separator_row], xp.ascontiguousarray(suffix_array[::sa_interval])
    return {
        "rocc": rocc,
        "bwt": bwt,
        "separators": xp.ascontiguousarray(before[0]),
        "separator_row": separator_row,
        "separator_position": positions,
        "first_row": np.cumsum(until[:, -1].get().astype(np.int64)).astype(np.uint32),
        "rsa": rsa,
        "longest_walk": np.array([_longest_walk(rsa, positions, sizes.rows)], np.uint32),
    }


def _longest_walk(rsa: Any, separator_position: Any, rows: int) -> int:
    """As `warpseed.fm_index.bwt.longest_walk`."""
    xp = cupy()
    known = xp.concatenate([rsa, separator_position])
    sort(known)
    gaps = int(xp.diff(known).max()) - 1 if len(known) > 1 else 0
    return max(gaps, rows - 1 - int(known[-1]), 0)

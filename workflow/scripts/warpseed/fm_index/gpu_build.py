"""The parts of an index made on the current GPU; they are those that the CPU makes."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpseed.compute.device_copies import copied_from_host, copied_to_host
from warpseed.compute.gpu import synchronize
from warpseed.fm_index.device import leave_on_device
from warpseed.fm_index.gpu_bwt import make_bwt_on_device
from warpseed.fm_index.gpu_suffix_array import sort_suffixes_on_device
from warpseed.fm_index.gpu_text import reverse_text_on_device
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.parts import Arrays, Work
from warpseed.fm_index.text import PackedText

__all__ = ["DeviceParts"]


class DeviceParts:
    """Makes parts of an index on the current device; stages ``text_to_device``, ``suffix_array``, with the table,
    ``bwt`` and ``index_to_host``, where the CPU's threads copy."""

    def __init__(self, work: Work) -> None:
        """Bring the text there."""
        self._work, self._suffix_array = work, None
        with work.watch.stage("text_to_device", synchronise=synchronize):
            self._text: PackedText = copied_from_host(work.text, work.threads)

    def make(self, parts: tuple[str, ...], suffix_array: np.ndarray | None = None) -> dict[str, Arrays]:
        """As `warpseed.fm_index.build.PartMaker.make`."""
        made: dict[str, Arrays] = {part: {} for part in parts}
        # The reverse direction first: its suffix array is gone before the forward one is made.
        if "reverse" in parts:
            made["reverse"] = self._make_reverse()
        if {"fast", "forward"} & set(parts):
            tables = self._sort("fast" in parts, suffix_array)
            if "forward" in parts:
                made["forward"] = self._make_bwt("forward", self._text, self._suffix_array)
            if "fast" in parts:
                made["fast"] = self._to_host("fast", {"suffix_array": self._suffix_array, "table": tables[0]})
        return made

    def _sort(self, with_table: bool, known: np.ndarray | None) -> list[Any]:
        with self._work.watch.stage("suffix_array", synchronise=synchronize):
            if known is not None and not with_table:
                self._suffix_array = copied_from_host(known, self._work.threads)
                return []
            lengths = [self._work.sizes.parameters.table_length] if with_table else []
            self._suffix_array, tables = sort_suffixes_on_device(self._text, lengths)
            return tables

    def _make_reverse(self) -> Arrays:
        with self._work.watch.stage("suffix_array", synchronise=synchronize):
            backwards = reverse_text_on_device(self._text, self._work.text.segments)
            suffix_array, _ = sort_suffixes_on_device(backwards)
        return self._make_bwt("reverse", backwards, suffix_array)

    def _make_bwt(self, part: str, text: PackedText, suffix_array: Any) -> Arrays:
        with self._work.watch.stage("bwt", synchronise=synchronize):
            made = make_bwt_on_device(text, suffix_array, self._work.sizes)
        return self._to_host(part, made)

    def _to_host(self, part: str, arrays: dict[str, Any]) -> Arrays:
        made = {}
        for name, array in arrays.items():
            with self._work.watch.stage("index_to_host"):
                host = copied_to_host(array, self._work.threads)
            made[name] = self._work.keep(part, name, host)
        return made

    def leave(self, index: SeedIndex) -> None:
        """As `warpseed.fm_index.build.PartMaker.leave`: the text and, for the fast tier, the suffix array."""
        leave_on_device(index, self._text, self._suffix_array if "fast" in index.parts else None)

"""The parts of an index made on the CPU."""

from __future__ import annotations

import numpy as np

from warpseed.fm_index.bwt import make_bwt
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.parts import Arrays, Work
from warpseed.fm_index.suffix_array import sort_suffixes, sort_with_marks
from warpseed.fm_index.table import table_of
from warpseed.fm_index.text import reverse_text

__all__ = ["HostParts"]


class HostParts:
    """Makes parts of an index; stages ``suffix_array``, with the table, and ``bwt``."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def make(self, parts: tuple[str, ...], suffix_array: np.ndarray | None = None) -> dict[str, Arrays]:
        """As `warpseed.fm_index.build.PartMaker.make`."""
        text, sizes, threads, watch, _ = self._work
        made: dict[str, Arrays] = {part: {} for part in parts}
        # The reverse direction first: its suffix array is gone before the forward one is made.
        if "reverse" in parts:
            made["reverse"] = self._make_reverse()
        if "fast" in parts:
            made["fast"] = self._make_fast()
            suffix_array = made["fast"]["suffix_array"]
        if "forward" in parts:
            if suffix_array is None:
                with watch.stage("suffix_array"):
                    suffix_array = sort_suffixes(text, threads)
            with watch.stage("bwt"):
                forward = make_bwt("forward", text, suffix_array, sizes, threads)
            made["forward"] = self._work.kept("forward", forward)
        return made

    def _make_fast(self) -> Arrays:
        text, sizes, threads, watch, keep = self._work
        with watch.stage("suffix_array"):
            suffix_array, counted = sort_with_marks(text, sizes.parameters.table_length, threads)
        suffix_array = keep("fast", "suffix_array", suffix_array)
        with watch.stage("suffix_array"):
            table = table_of(*counted, threads)
        return {"suffix_array": suffix_array, "table": keep("fast", "table", table)}

    def _make_reverse(self) -> Arrays:
        text, sizes, threads, watch, _ = self._work
        with watch.stage("suffix_array"):
            backwards = reverse_text(text, threads)
            rows = sort_suffixes(backwards, threads)
        with watch.stage("bwt"):
            reverse = make_bwt("reverse", backwards, rows, sizes, threads)
        del rows, backwards
        return self._work.kept("reverse", reverse)

    def leave(self, index: SeedIndex) -> None:
        """As `warpseed.fm_index.build.PartMaker.leave`: on the CPU searches read the index itself."""

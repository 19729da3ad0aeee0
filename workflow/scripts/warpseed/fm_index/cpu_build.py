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
        work = self._work
        text, sizes, threads, watch = work.text, work.sizes, work.threads, work.watch
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
            made["forward"] = work.kept("forward", forward)
        return made

    def _make_fast(self) -> Arrays:
        work = self._work
        with work.watch.stage("suffix_array"):
            suffix_array, marks, borders = sort_with_marks(work.text, work.sizes.parameters.table_length, work.threads)
        suffix_array = work.keep("fast", "suffix_array", suffix_array)
        with work.watch.stage("suffix_array"):
            table = table_of(marks, borders, work.threads)
        return {"suffix_array": suffix_array, "table": work.keep("fast", "table", table)}

    def _make_reverse(self) -> Arrays:
        work = self._work
        text, sizes, threads, watch = work.text, work.sizes, work.threads, work.watch
        with watch.stage("suffix_array"):
            backwards = reverse_text(text, threads)
            rows = sort_suffixes(backwards, threads)
        with watch.stage("bwt"):
            reverse = make_bwt("reverse", backwards, rows, sizes, threads)
        del rows, backwards
        return work.kept("reverse", reverse)

    def leave(self, index: SeedIndex) -> None:
        """As `warpseed.fm_index.build.PartMaker.leave`: on the CPU searches read the index itself."""

"""Suffix arrays on the current GPU, as `suffix_array.py` makes them on the CPU.

`gpu_suffix_letters.py` has the kernels that sort a bucket, `gpu_suffix_ranks.py` sorts what is tied then, and
`gpu_table.py` makes lookup tables of the sorted buckets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpseed.compute.device_places import flagged_places
from warpseed.compute.device_ties import settle_groups
from warpseed.compute.gpu import argsort, cupy, free_memory, launch, sort
from warpseed.errors import MemoryLimitError
from warpseed.fm_index.gpu_suffix_letters import (
    ELEMENT_BASES,
    MOST_PREFIX,
    deal_out_suffixes,
    ended_keys,
    make_elements,
    settle_few,
    take_rows,
)
from warpseed.fm_index.gpu_suffix_ranks import sort_by_ranks
from warpseed.fm_index.gpu_table import fill_table
from warpseed.fm_index.text import PackedText

__all__ = ["sort_suffixes_on_device"]

_BLOCK = 256
_BUCKET = 1 << 25
"""Suffixes of a bucket, at most, where they are dealt out evenly."""
_BUCKET_BYTES = 48
"""Of memory that a suffix takes beside its row and its rank while its bucket is sorted."""


def sort_suffixes_on_device(text: PackedText, table_lengths: Sequence[int] = ()) -> tuple[Any, list[Any]]:
    """Sort the suffixes of a text.

    Parameters
    ----------
    text : PackedText, on the current device
    table_lengths : bases of the strings of lookup tables that are made by the way, each 1 to 16

    Returns
    -------
    suffix_array : uint32[n], on the device
    tables : uint32[4**length + 1] of each length, on the device

    Raises
    ------
    MemoryLimitError : the device's memory does not suffice, said before anything is sorted
    """
    return _Sorter(text, table_lengths).sorted()


class _Sorter:
    """What is known of the order of a text's suffixes."""

    def __init__(self, text: PackedText, table_lengths: Sequence[int]) -> None:
        xp = cupy()
        starts = xp.asarray(text.segments.text_start)
        self._text, self._size, self._separators = text, int(starts[-1]), len(starts) - 1
        self._prefix, self._borders = self._choose_prefix(table_lengths)
        self._depth = self._prefix + ELEMENT_BASES
        self._rows, self._ranks = xp.empty(self._size, np.uint32), xp.empty(self._size, np.uint32)
        self._tables = {length: xp.empty(4**length + 1, np.uint32) for length in table_lengths}
        ends = starts[1:] - np.uint32(1)
        self._rows[: self._separators] = ends
        self._ranks[ends] = xp.arange(self._separators, dtype=np.uint32)

    def _choose_prefix(self, table_lengths: Sequence[int]) -> tuple[int, np.ndarray]:
        """The bases that buckets share, more of them where memory is little, and where buckets begin."""
        prefix, most = 1, min([MOST_PREFIX, *table_lengths])
        while prefix < most and 4**prefix * _BUCKET < self._size:
            prefix += 1
        tables, free = sum(4 << 2 * length for length in table_lengths), free_memory()
        while True:
            borders = self._count(prefix)
            needed = 8 * self._size + _BUCKET_BYTES * int(np.diff(borders).max()) + tables
            if needed <= free:
                return prefix, borders
            if prefix == most:
                raise MemoryLimitError(
                    f"Sorting {self._size:,} suffixes takes {needed / 1e9:.1f} GB of the GPU's memory, but "
                    f"{free / 1e9:.1f} GB are free; use a larger GPU, or device cpu."
                )
            prefix += 1

    def _count(self, prefix: int) -> np.ndarray:
        """Where buckets begin, int64[4**prefix + 1]; the suffixes that are empty are before them."""
        xp = cupy()
        counts = xp.zeros(4**prefix, np.uint64)
        self._deal_out(prefix, counts, xp.empty(0, np.uint32))
        return np.cumsum([self._separators, *counts.get().astype(np.int64)])

    def _deal_out(self, prefix: int, cursors: Any, rows: Any) -> None:
        launch(deal_out_suffixes, -(-self._size // 32), _BLOCK, self._text, prefix, cursors, rows)

    def sorted(self) -> tuple[Any, list[Any]]:
        """The suffix array, and the tables."""
        xp = cupy()
        self._deal_out(self._prefix, xp.asarray(self._borders[:-1].astype(np.uint64)), self._rows)
        tied = xp.concatenate([self._sort_bucket(bucket) for bucket in range(4**self._prefix)])
        sort_by_ranks(tied, self._rows, self._ranks, self._depth)
        for table in self._tables.values():
            table[0] = 0  # separators are before all bases
        return self._rows, list(self._tables.values())

    def _sort_bucket(self, bucket: int) -> Any:
        """Sort a bucket by letters; returns the rows that are tied, uint32[t]."""
        xp = cupy()
        begin, end = map(int, self._borders[bucket : bucket + 2])
        count, rows = end - begin, self._rows[begin:end]
        elements = xp.empty(count, np.uint64)
        launch(make_elements, count, _BLOCK, self._text, self._prefix, rows, elements)
        if count:
            sort(elements)
        for length, table in self._tables.items():
            place = bucket, self._prefix, begin, length
            launch(fill_table, count + 1, _BLOCK, elements, *place, table)
        heads, ended = xp.empty(count, np.uint32), xp.empty(count, np.bool_)
        launch(take_rows, count, _BLOCK, elements, rows, heads, ended)
        self._sort_ended(elements, rows, heads, flagged_places(ended))
        del elements, ended
        settled = heads.copy()
        launch(settle_few, count, _BLOCK, self._text, self._depth, heads, rows, settled)
        return settle_groups(settled, xp.arange(begin, end, dtype=np.uint32), self._rows, self._ranks).tied

    def _sort_ended(self, elements: Any, rows: Any, heads: Any, ended: Any) -> None:
        """Sort those of a bucket that end before they have all bases of an element; none is tied with another then."""
        if not len(ended):
            return
        keys = cupy().empty(len(ended), np.uint64)
        launch(ended_keys, len(ended), _BLOCK, self._text, elements, ended, keys)
        rows[ended] = rows[ended][argsort(keys)]
        heads[ended] = 1

"""The lookup table of the fast tier: which rows begin with each string of K bases."""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32
from warpseed.fm_index.parts import Sizes, new_arrays

__all__ = ["choose_table_length", "make_table"]


def choose_table_length(rows: int) -> int:
    """K of the lookup table: the longest strings of which a genome of `rows` has at least one each, 4 to 14.

    Four bytes an entry, so at most 4 bytes a base from 256 bases on; longer tables cost more than the shorter
    buckets save (docs/decisions.md has the figures).
    """
    return max(4, min(14, (max(rows, 2).bit_length() - 1) // 2))


@scalar
def _fill_table(text, table_length, table):
    """Count every suffix under its first K bases, then sum up.

    A suffix that ends (in a separator) before it has K bases counts as if A followed. There it stands at the head
    of its bucket, so that the bucket of any string, shorter ones included, holds all suffixes that begin with it.
    """
    mask = (int64(1) << (int64(2) * table_length)) - int64(1)
    top = int64(2) * (table_length - int64(1))
    code = int64(0)
    for i in range(text.shape[0] - 1, -1, -1):
        symbol = int64(text[i])
        code = int64(0) if symbol == 0 else ((code >> int64(2)) | ((symbol - int64(1)) << top)) & mask
        table[code + 1] += uint32(1)
    total = uint32(0)
    for m in range(table.shape[0]):
        total = uint32(total + table[m])
        table[m] = total


def make_table(text: np.ndarray, sizes: Sizes) -> np.ndarray:
    """Borders of the rows of every string of K bases, uint32[4**K + 1]; text uint8[n], 0 for a separator."""
    table = new_arrays("fast", sizes, without="suffix_array")["table"]
    _fill_table(text, sizes.parameters.table_length, table)
    return table

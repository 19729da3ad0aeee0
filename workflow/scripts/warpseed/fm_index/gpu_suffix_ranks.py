"""Sorting the suffixes of a packed text on the current GPU: by ranks, what letters left tied, ever deeper ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpseed.compute.compiled import uint64
from warpseed.compute.device_ties import split_groups
from warpseed.compute.gpu import cuda, cupy, free_memory, kernel, launch

__all__ = ["deeper_keys", "sort_by_ranks"]

_BLOCK = 256
_TIE_BYTES = 80
"""Of memory that a tied suffix takes while it is sorted by ranks."""
_LEAST_TIES = 1 << 16


@kernel
def deeper_keys(depth, tied, order, ranks, keys):
    """A thread a tied suffix: its rank, and behind that of the suffix `depth` bases further on.

    tied : uint32[t], rows
    order, ranks : uint32[n]
    keys : uint64[t]
    """
    i = cuda.grid(1)
    if i >= tied.shape[0]:
        return
    position = uint64(order[tied[i]])
    keys[i] = (uint64(ranks[position]) << uint64(32)) | uint64(ranks[position + uint64(depth)])


def sort_by_ranks(tied: Any, rows: Any, ranks: Any, depth: int) -> None:
    """Sort what is tied by its first `depth` bases, until nothing is.

    Parameters
    ----------
    tied : uint32[t], the rows that are tied, ascending
    rows : uint32[n], the position of the suffix of each row
    ranks : uint32[n], of positions
    """
    while len(tied):
        tied = _sort_round(tied, rows, ranks, depth)
        depth *= 2


def _sort_round(tied: Any, rows: Any, ranks: Any, depth: int) -> Any:
    """Sort all groups once, as many at a time as there is memory for; returns the rows that are tied still."""
    xp = cupy()
    most = max(_LEAST_TIES, free_memory() // _TIE_BYTES)
    left, first = [], 0
    while first < len(tied):
        last = _end_of_group(tied, rows, ranks, first, most)
        some = tied[first:last]
        keys = xp.empty(len(some), np.uint64)
        launch(deeper_keys, len(some), _BLOCK, depth, some, rows, ranks, keys)
        left.append(split_groups(keys, some, rows, ranks).tied)
        first = last
    return xp.concatenate(left)


def _end_of_group(tied: Any, rows: Any, ranks: Any, first: int, most: int) -> int:
    """Where a group ends, at most so much behind the `first` of the tied rows; further on if it is larger."""
    while first + most < len(tied):
        # A group's rows lie side by side, and the first of them is its rank.
        rank = ranks[rows[tied[first + most]]]
        begin = int(cupy().searchsorted(tied, rank))
        if begin > first:
            return begin
        most *= 2
    return len(tied)

"""Orders made on the current device by prefix doubling: what is tied is put in the order of keys, group by group.

A *rank* is the first row of the group that holds a thing: those of the order that are equal to it as far as is known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.compiled import uint32
from warpseed.compute.device_places import flagged_places
from warpseed.compute.gpu import argsort, cuda, cupy, kernel, launch

__all__ = ["Split", "settle_groups", "split_groups"]

_BLOCK = 256


@kernel
def mark_heads(keys, sorting, tied, things, order, heads):
    """A thread a place among the tied: which thing comes there, and whether a group begins with it.

    Parameters
    ----------
    keys : uint64[t]
    sorting : int64[t], the order of the keys
    tied : uint32[t], rows
    things : uint32[t], those whose keys they are
    order : uint32[n]
    heads : uint32[t]
    """
    i = cuda.grid(1)
    if i >= tied.shape[0]:
        return
    order[tied[i]] = things[sorting[i]]
    heads[i] = uint32(1) if i == 0 or keys[sorting[i]] != keys[sorting[i - 1]] else uint32(0)


@kernel
def number_starts(heads, numbers, tied, starts):
    """A thread a place among the tied: where in the order the group begins that begins with it."""
    i = cuda.grid(1)
    if i < heads.shape[0] and heads[i]:
        starts[numbers[i] - uint32(1)] = tied[i]


@kernel
def rank_groups(groups, order, ranks, is_tied):
    """A thread a place among the tied: the rank of what is there, and whether others have it, too.

    groups : the arrays heads, numbers, tied and starts of `number_starts`
    """
    heads, numbers, tied, starts = groups
    i = cuda.grid(1)
    count = heads.shape[0]
    if i >= count:
        return
    ranks[order[tied[i]]] = starts[numbers[i] - uint32(1)]
    is_tied[i] = not (heads[i] and (i + 1 == count or heads[i + 1]))


class Split(NamedTuple):
    """What is left when what is tied was put in the order of keys."""

    tied: Any
    """uint32[...], the rows that are still not decided, ascending"""
    groups: int
    """into how many the keys put theirs"""
    groups_tied: int
    """those of more than one"""


def split_groups(keys: Any, tied: Any, order: Any, ranks: Any) -> Split:
    """Put what is tied in the order of its keys.

    Parameters
    ----------
    keys : uint64[t], which keep the order of groups
    tied : uint32[t], the rows that are not decided, ascending
    order, ranks : uint32[n]; of each row the thing there, and of each thing its rank; both are changed in place

    Returns
    -------
    Split: uint32[...] on the current device, the rows that are tied still, and two int of the host
    """
    sorting, things, heads = argsort(keys), order[tied], cupy().empty(len(tied), np.uint32)
    launch(mark_heads, len(tied), _BLOCK, keys, sorting, tied, things, order, heads)
    return settle_groups(heads, tied, order, ranks)


def settle_groups(heads: Any, tied: Any, order: Any, ranks: Any) -> Split:
    """Renew the ranks of what is tied.

    Parameters
    ----------
    heads : uint32[t], 1 where a group begins, and else 0
    tied, order, ranks : as in `split_groups`, but that the order is made already

    Returns
    -------
    Split, as of `split_groups`
    """
    xp = cupy()
    count = len(tied)
    if not count:
        return Split(tied, 0, 0)
    numbers, is_tied = xp.cumsum(heads, dtype=np.uint32), xp.empty(count, np.bool_)
    groups = heads, numbers, tied, xp.empty(count, np.uint32)
    launch(number_starts, count, _BLOCK, *groups)
    launch(rank_groups, count, _BLOCK, groups, order, ranks, is_tied)
    still, found = tied[flagged_places(is_tied)], int(numbers[-1])
    return Split(still, found, found - (count - len(still)))

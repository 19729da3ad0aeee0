"""Kernels that count matches by read, and put those of both tiers in output order, behind a sort of their keys."""

from __future__ import annotations

from warpseed.compute.compiled import int64, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.sorting import sort_range
from warpseed.mems.matches import PLACE_BITS

__all__ = ["count_by_read", "order_matches", "put_matches"]


@kernel
def count_by_read(keys, counts):
    """Count the matches of each read, ``counts``, uint64[n]; a thread a match. (CuPy's way of counting takes memory for
    each read in each of a thousand blocks.)"""
    i = int64(cuda.grid(1))
    if i < int64(keys.shape[0]):
        cuda.atomic.add(counts, int64(keys[i] >> uint64(PLACE_BITS)), uint64(1))


@kernel
def put_matches(keys, spans, order, hits):
    """Matches in the order of their keys: hits, uint64[2·h], place and span of each; a thread a match."""
    i = int64(cuda.grid(1))
    if i < int64(order.shape[0]):
        at = int64(order[i])
        hits[int64(2) * i] = keys[at] & ((uint64(1) << uint64(PLACE_BITS)) - uint64(1))
        hits[int64(2) * i + int64(1)] = spans[at]


@kernel
def order_matches(keys, order, spans, hits):
    """Put matches of a read that begin at the same place, on the same strand, in the order of their spans.

    The thread of the first of some does it, in ``spans``, uint64[h], which nothing else is in.
    """
    i = int64(cuda.grid(1))
    count = int64(order.shape[0])
    if i >= count:
        return
    key = keys[order[i]]
    if i > int64(0) and keys[order[i - int64(1)]] == key:
        return
    end = i + int64(1)
    while end < count and keys[order[end]] == key:
        end += int64(1)
    if end == i + int64(1):
        return
    for j in range(i, end):
        spans[j] = hits[int64(2) * int64(j) + int64(1)]
    sort_range(spans, i, end)
    for j in range(i, end):
        hits[int64(2) * int64(j) + int64(1)] = spans[j]

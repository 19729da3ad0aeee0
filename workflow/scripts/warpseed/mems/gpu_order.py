"""Kernels that put the matches of both tiers in output order, behind a sort of their keys, and count occurrences."""

from __future__ import annotations

from warpseed.compute.bits import first_slot
from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.sorting import sort_range
from warpseed.mems.matches import PLACE_BITS, with_occurrences

__all__ = ["SLOTS_A_MATCH", "count_spans", "order_matches", "put_counted", "put_matches"]

SLOTS_A_MATCH = 2
"""Slots of a read's hash table for each of its matches: some are always free, so every search of it ends soon."""
_FREE = 0
"""No span: every match has bases."""


@kernel
def put_matches(keys, spans, order, hits, queries):
    """Matches in the order of their keys: hits, uint64[2·h], place and span of each, and the read of each,
    ``queries``, uint32[h]; a thread a match."""
    i = int64(cuda.grid(1))
    if i < int64(order.shape[0]):
        at = int64(order[i])
        queries[i] = uint32(keys[at] >> uint64(PLACE_BITS))
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


@scalar
def _claimed_slot(slots, query, borders, span):
    """The slot of a span in its read's table, int64, found by linear probing: taken here if it is not there yet."""
    begin = int64(SLOTS_A_MATCH) * int64(borders[query])
    end = int64(SLOTS_A_MATCH) * int64(borders[query + int64(1)])
    at = begin + first_slot(span, end - begin)
    while True:
        # What is read may be old, but a slot keeps its span.
        held = slots[at]
        if held == uint64(_FREE):
            held = cuda.atomic.cas(slots, at, uint64(_FREE), span)
            held = span if held == uint64(_FREE) else held
        if held == span:
            return at
        at += int64(1)
        if at == end:
            at = begin


@kernel
def count_spans(hits, queries, borders, slots, counts):
    """Count the matches of each read that have the same span; a thread a match.

    Parameters
    ----------
    hits : uint64[2·h], in output order
    queries : uint32[h], the read of each
    borders : int64[n + 1], where the matches of each read begin
    slots : uint64[SLOTS_A_MATCH·h], a hash table for each read q, which begins at SLOTS_A_MATCH·borders[q]; zeros when
        the kernel begins, then a span where one is
    counts : uint32[SLOTS_A_MATCH·h], beside them; zeros when the kernel begins
    """
    i = int64(cuda.grid(1))
    if i < int64(queries.shape[0]):
        at = _claimed_slot(slots, int64(queries[i]), borders, hits[int64(2) * i + int64(1)])
        cuda.atomic.add(counts, at, uint32(1))


@kernel
def put_counted(hits, queries, borders, slots, counts):
    """Put what `count_spans` counted above the place of each match; a thread a match, and all as that takes them."""
    i = int64(cuda.grid(1))
    if i < int64(queries.shape[0]):
        at = _claimed_slot(slots, int64(queries[i]), borders, hits[int64(2) * i + int64(1)])
        hits[int64(2) * i] = with_occurrences(hits[int64(2) * i], int64(counts[at]))

"""The paper tier's loops on the CPU: k-mer by k-mer, as the paper's CPU version does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint8, uint32, uint64
from warpseed.compute.sorting import sort_range
from warpseed.fm_index.locate import look_up, walk_to_sample
from warpseed.kmer_seeds.kmers import pack_hit
from warpseed.kmer_seeds.paper import next_interval, start_interval

__all__ = ["IntervalSink", "locate_range", "look_up_pairs", "search_range"]


class IntervalSink(NamedTuple):
    """Where the intervals of a range of k-mers go."""

    low: np.ndarray
    """uint32[room], first row"""
    size: np.ndarray
    """uint32[room], rows"""
    kind: np.ndarray
    """uint8[room], strand << 2 | distance"""
    counts: np.ndarray
    """int64[k-mers of the range], intervals of each"""
    rows: np.ndarray
    """int64[k-mers of the range], rows of each, 0 for one that was dropped"""
    dropped: np.ndarray
    """int64[2], dropped k-mers and their rows"""
    max_hits: int


@scalar
def _search_one(bwts, kmers, max_mismatches, query, work, sink, used):
    """Intervals of a k-mer and of its reverse complement; returns their number and their rows."""
    begin = used
    total = int64(0)
    for strand in range(2):
        depth = start_interval(bwts[0], bwts[1], kmers, query, int64(strand), max_mismatches, work)
        while depth >= int64(0) and total <= sink.max_hits:
            low, high, distance, depth = next_interval(
                bwts[0], bwts[1], kmers, query, int64(strand), max_mismatches, work, depth
            )
            if depth >= int64(0):
                total += high - low
                if used < sink.low.shape[0]:
                    sink.low[used] = uint32(low)
                    sink.size[used] = uint32(high - low)
                    sink.kind[used] = uint8((int64(strand) << int64(2)) | distance)
                used += int64(1)
    return used - begin, total


@scalar
def search_range(bwts, kmers, max_mismatches, first, last, work, sink):
    """Search only: the intervals of the k-mers [first, last); `bwts` is (forward, reverse).

    Returns
    -------
    (stop, used, needed) : int64; where it stopped, the intervals stored, and the room that k-mer `stop` needs
    """
    used = int64(0)
    for query in range(first, last):
        count, total = _search_one(bwts, kmers, int64(max_mismatches), int64(query), work, sink, used)
        if total > sink.max_hits:
            sink.counts[query - first] = 0
            sink.rows[query - first] = 0
            sink.dropped[0] += 1
            sink.dropped[1] += total
            continue
        if used + count > sink.low.shape[0]:
            return int64(query), used, count
        sink.counts[query - first] = count
        sink.rows[query - first] = total
        used += count
    return int64(last), used, int64(0)


@scalar
def locate_range(index, kmers, on_reverse, first, last, intervals, borders, hits):
    """Every row of the intervals of k-mers [first, last) to a packed hit, sorted by k-mer.

    Parameters
    ----------
    intervals : (low uint32[i], size uint32[i], kind uint8[i])
    borders : (int64[n + 1] first interval, int64[n + 1] first hit) of each k-mer
    """
    low, size, kind = intervals
    interval_first, hit_first = borders
    rows = int64(index.first_row[4])
    for query in range(first, last):
        to = hit_first[query]
        for i in range(interval_first[query], interval_first[query + 1]):
            for row in range(int64(low[i]), int64(low[i]) + int64(size[i])):
                entry, steps = walk_to_sample(index, row)
                place = look_up(index, entry, steps)
                if on_reverse:
                    place = max(rows - int64(1) - place - int64(kmers.lengths[query]), int64(0))
                hits[to] = pack_hit(place, int64(kind[i]) >> int64(2), int64(kind[i]) & int64(3))
                to += 1
        sort_range(hits, hit_first[query], to)


@scalar
def look_up_pairs(index, lengths, on_reverse, pairs, hits):
    """The pairs (j, t) of a device to packed hits: one RSA look-up and one addition each (paper 000, III.C).

    Parameters
    ----------
    pairs : (uint32[i] rows of each interval, uint64[i] k-mer << 3 | strand << 2 | distance, uint32[h] j, uint32[h] t)
    on_reverse : bool, whether the rows are of the reverse BWT
    hits : uint64[h], written
    """
    size, kind, entry, steps = pairs
    rows = int64(index.first_row[4])
    to = int64(0)
    for i in range(size.shape[0]):
        tag = int64(kind[i] & uint64(7))
        length = int64(lengths[int64(kind[i] >> uint64(3))])
        for _ in range(int64(size[i])):
            place = look_up(index, int64(entry[to]), int64(steps[to]))
            if on_reverse:
                place = max(rows - int64(1) - place - length, int64(0))
            hits[to] = pack_hit(place, tag >> int64(2), tag & int64(3))
            to += int64(1)

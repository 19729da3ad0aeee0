"""The paper tier's loops on the CPU: read by read, as the paper's CPU version does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar
from warpseed.compute.sorting import sort_range
from warpseed.fm_index.locate import look_up, walk_to_sample
from warpseed.one_error.paper import Results, search_read
from warpseed.one_error.reads import is_leftmost, pack_placement

__all__ = ["ResultSink", "count_range", "locate_range", "search_range"]


class ResultSink(NamedTuple):
    """Where the results of a range of reads go."""

    results: Results
    counts: np.ndarray
    """int64[reads of the range], results of each"""
    stored: np.ndarray
    """int64[reads of the range], results of each that had a slot; 0 for a read that was dropped"""
    placements: np.ndarray
    """int64[reads of the range], placements of those; 0 for a read that was dropped"""
    dropped: np.ndarray
    """int64[2], dropped reads and their placements"""
    slots: int
    """the most results of a read that are stored"""
    max_hits: int


@scalar
def _count_placements(reads, query, results, first, last):
    """Places of the results [first, last) of a read, each place once."""
    total = int64(0)
    for i in range(first, last):
        if is_leftmost(reads, query, results.edit[i]):
            total += int64(results.high[i]) - int64(results.low[i])
    return total


@scalar
def count_range(reads, first, last, results, borders, placements):
    """Placements of the results of reads [first, last), int64 of each; `borders` is int64[n + 1], the first result."""
    for query in range(first, last):
        begin, end = borders[query], borders[query + 1]
        placements[query] = _count_placements(reads, int64(query), results, begin, end)


@scalar
def search_range(index, reads, strands, first, last, sink):
    """Search only: the results of the reads [first, last), those of one behind those of the other.

    Parameters
    ----------
    strands : int64, 1 for the reads as they are given, 2 for their reverse complements too

    Returns
    -------
    (stop, used, needed) : int64; where it stopped, the results stored, and the room that read `stop` needs
    """
    used = int64(0)
    room = int64(sink.results.low.shape[0])
    for number in range(first, last):
        query = int64(number)
        count = int64(0)
        for strand in range(strands):
            count = search_read(index, reads, (query, int64(strand)), (sink.results, used, room - used), count)
        stored = min(count, int64(sink.slots))
        if used + stored > room:
            return query, used, stored
        placements = _count_placements(reads, query, sink.results, used, used + stored)
        sink.counts[query - first] = count
        if placements > sink.max_hits:
            sink.dropped[0] += 1
            sink.dropped[1] += placements
            stored = placements = int64(0)
        sink.stored[query - first] = stored
        sink.placements[query - first] = placements
        used += stored
    return int64(last), used, int64(0)


@scalar
def locate_range(index, reads, first, last, results, borders, hits):
    """Every row of the results of reads [first, last) to a packed placement, each place once, sorted by read.

    Parameters
    ----------
    results : Results
    borders : (int64[n + 1] first result, int64[n + 1] first placement) of each read
    """
    result_first, hit_first = borders
    for number in range(first, last):
        query = int64(number)
        to = hit_first[query]
        for i in range(result_first[query], result_first[query + 1]):
            edit = results.edit[i]
            if not is_leftmost(reads, query, edit):
                continue
            for row in range(int64(results.low[i]), int64(results.high[i])):
                entry, steps = walk_to_sample(index, row)
                hits[to] = pack_placement(look_up(index, entry, steps), edit)
                to += 1
        sort_range(hits, hit_first[query], to)

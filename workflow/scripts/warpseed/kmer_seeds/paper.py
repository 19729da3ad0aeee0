"""The paper tier: paper 000's exact search (Equation 1) and inexact search (Figure 4), for one k-mer.

The same scalar functions run in the loops of cpu_paper.py and, one k-mer a thread, in the kernels of gpu_paper.py, as
the paper compares "the same core code". Working arrays are given by the caller: local memory on the GPU.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint8, uint32
from warpseed.fm_index.search import extend_left, step
from warpseed.sequences.packed import base_at

__all__ = ["MAX_MISMATCHES", "Work", "lower_bounds", "next_interval", "next_leaf", "search_exact", "start_interval"]

MAX_MISMATCHES = 2


class Work(NamedTuple):
    """Working arrays of one search, an entry a base of the longest k-mer; not read by exact searches."""

    bounds: np.ndarray
    """uint8[k], DIFFS of Figure 4"""
    low: np.ndarray
    """uint32[k], entry d of the stack: first row of the interval of the d bases before base d"""
    high: np.ndarray
    """uint32[k], the row behind its last"""
    state: np.ndarray
    """uint8[k], the bases tried at d in the low three bits, the mismatches before d above them"""


@scalar
def search_exact(index, kmers, query, strand):
    """Equation 1 from the last base to the first, on the forward BWT.

    Returns
    -------
    (low, high) : int64, the half-open interval of rows that begin with the k-mer; high <= low where there is none.
    """
    last = int64(kmers.lengths[query]) - int64(1)
    return extend_left(index, kmers, (query, strand), last, int64(0), int64(index.first_row[4]))


@scalar
def lower_bounds(index, kmers, query, strand, bounds):
    """Part 1 of Figure 4: DIFFS, from right to left on the forward BWT.

    ``bounds[i]`` (uint8) becomes the least number of mismatches that the bases behind i, S[i + 1 ..], must have:
    the number of non-overlapping substrings in them that the genome does not hold. It is assigned before the
    substring that ends the search is counted, which is what makes it a bound on the bases behind i alone.
    """
    rows = int64(index.first_row[4])
    low = int64(0)
    high = rows
    missing = int64(0)
    i = int64(kmers.lengths[query]) - int64(1)
    while i >= int64(0):
        base = base_at(kmers, query, strand, i)
        bounds[i] = uint8(missing)
        if base < int64(4):
            low = step(index, base, low)
            high = step(index, base, high)
        if base > int64(3) or low >= high:
            low = int64(0)
            high = rows
            missing += int64(1)
        i -= int64(1)


@scalar
def next_leaf(index, kmers, query, strand, max_mismatches, work, depth):
    """Part 2 of Figure 4: depth-first from the first base to the last, on the reverse BWT, up to the next match.

    At each node the k-mer's own base comes first, so where the mismatches pass the limit every other base would pass
    it too, and the node is popped, as printed.

    Parameters
    ----------
    depth : int64, the stack's top entry, from `start_interval` or the last call

    Returns
    -------
    (low, high, distance, depth) : int64; an interval of the reverse BWT and its number of mismatches, and where to
        go on. depth is -1, and the rest meaningless, when all matches have been given.
    """
    last = int64(kmers.lengths[query]) - int64(1)
    while depth >= int64(0):
        attempt = int64(work.state[depth]) & int64(7)
        mismatches = int64(work.state[depth]) >> int64(3)
        if attempt > int64(3):
            depth -= int64(1)
            continue
        own = base_at(kmers, query, strand, depth)
        base = attempt if own > int64(3) else own ^ attempt
        if own > int64(3) or attempt > int64(0):
            mismatches += int64(1)
        if mismatches + int64(work.bounds[depth]) > max_mismatches:
            depth -= int64(1)
            continue
        work.state[depth] = uint8(int64(work.state[depth]) + int64(1))
        low = step(index, base, int64(work.low[depth]))
        high = step(index, base, int64(work.high[depth]))
        if low >= high:
            continue
        if depth == last:
            return low, high, mismatches, depth
        depth += int64(1)
        work.low[depth] = uint32(low)
        work.high[depth] = uint32(high)
        work.state[depth] = uint8(mismatches << int64(3))
    return int64(0), int64(0), int64(0), int64(-1)


@scalar
def start_interval(forward, reverse, kmers, query, strand, max_mismatches, work):
    """Prepare the search of a k-mer in one orientation: DIFFS, and the empty string on the stack; its depth, 0."""
    if max_mismatches > int64(0):
        lower_bounds(forward, kmers, query, strand, work.bounds)
        work.low[0] = uint32(0)
        work.high[0] = reverse.first_row[4]
        work.state[0] = uint8(0)
    return int64(0)


@scalar
def next_interval(forward, reverse, kmers, query, strand, max_mismatches, work, depth):
    """The next interval of matches: the only one, of the forward BWT, where no mismatch is allowed; else Figure 4's.

    Returns
    -------
    (low, high, distance, depth) : as `next_leaf`
    """
    if max_mismatches > int64(0):
        return next_leaf(reverse, kmers, query, strand, max_mismatches, work, depth)
    if depth > int64(0):
        return int64(0), int64(0), int64(0), int64(-1)
    low, high = search_exact(forward, kmers, query, strand)
    return low, high, int64(0), int64(1) if low < high else int64(-1)

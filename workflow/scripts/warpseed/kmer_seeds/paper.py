"""The paper tier: paper 000's exact search (Equation 1) and inexact search (Figure 4), for one k-mer.

The same scalar functions run in the loop of cpu.py and, one k-mer a thread, in the kernels of gpu.py, as the paper
compares "the same core code". Working arrays are given by the caller: local memory on the GPU.
"""

from __future__ import annotations

from numba import int64, uint8, uint32

from warpseed.compute.compiled import scalar
from warpseed.fm_index.search import step
from warpseed.kmer_seeds.kmers import base_at

__all__ = ["MAX_MISMATCHES", "lower_bounds", "next_leaf", "search_exact", "start_search"]

MAX_MISMATCHES = 2


@scalar
def search_exact(index, kmers, query, strand):
    """Equation 1 from the last base to the first, on the forward BWT.

    Returns
    -------
    (low, high) : int64, the half-open interval of rows that begin with the k-mer; high <= low where there is none.
    """
    low = int64(0)
    high = int64(index.first_row[4])
    i = int64(kmers.lengths[query]) - int64(1)
    while i >= int64(0) and low < high:
        base = base_at(kmers, query, strand, i)
        if base > int64(3):
            return int64(0), int64(0)
        low = step(index, base, low)
        high = step(index, base, high)
        i -= int64(1)
    return low, high


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
def start_search(index, stack):
    """Put the empty string on the stack; `stack` is (low uint32[], high uint32[], state uint8[]), k entries each."""
    low, high, state = stack
    low[0] = uint32(0)
    high[0] = index.first_row[4]
    state[0] = uint8(0)
    return int64(0)


@scalar
def next_leaf(index, kmers, query, strand, max_mismatches, bounds, stack, depth):
    """Part 2 of Figure 4: depth-first from the first base to the last, on the reverse BWT, up to the next match.

    Entry d of the stack is the interval of the d bases before base d, and a state: the bases tried at d in the
    low three bits, the mismatches before d above them. At each node the k-mer's own base comes first, so where
    the mismatches pass the limit every other base would pass it too, and the node is popped, as printed.

    Parameters
    ----------
    depth : int64, the stack's top entry, from `start_search` or the last call

    Returns
    -------
    (low, high, distance, depth) : int64; an interval of the reverse BWT and its number of mismatches, and where to
        go on. depth is -1, and the rest meaningless, when all matches have been given.
    """
    lows, highs, state = stack
    last = int64(kmers.lengths[query]) - int64(1)
    while depth >= int64(0):
        attempt = int64(state[depth]) & int64(7)
        mismatches = int64(state[depth]) >> int64(3)
        if attempt > int64(3):
            depth -= int64(1)
            continue
        own = base_at(kmers, query, strand, depth)
        base = attempt if own > int64(3) else own ^ attempt
        if own > int64(3) or attempt > int64(0):
            mismatches += int64(1)
        if mismatches + int64(bounds[depth]) > max_mismatches:
            depth -= int64(1)
            continue
        state[depth] = uint8(int64(state[depth]) + int64(1))
        low = step(index, base, int64(lows[depth]))
        high = step(index, base, int64(highs[depth]))
        if low >= high:
            continue
        if depth == last:
            return low, high, mismatches, depth
        depth += int64(1)
        lows[depth] = uint32(low)
        highs[depth] = uint32(high)
        state[depth] = uint8(mismatches << int64(3))
    return int64(0), int64(0), int64(0), int64(-1)

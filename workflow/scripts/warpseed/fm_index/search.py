"""Backward search on a BWT in the paper's layout (paper 000, section II.C and III.A).

Intervals of rows are half-open: [low, high) here is [Ia, Ib] of Equation 1 with high = Ib + 1, so the number of
occurrences, which the paper prints as Ia(0) - Ib(0) + 1 and means as Ib(0) - Ia(0) + 1, is high - low.
"""

from __future__ import annotations

import numpy as np

from warpseed.compute.bits import mismatch_bits, prefix_mask
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.intrinsics import popcount
from warpseed.compute.searching import lower_bound
from warpseed.sequences.packed import base_at

__all__ = ["EVERY_BASE", "bwt_symbol", "extend_left", "is_separator_row", "rank", "separator_index", "step"]

EVERY_BASE = np.uint64(0x5555555555555555)


@scalar
def separator_index(index, row):
    """Position of the first entry of `separator_row` that is at least `row`, int64."""
    block = row >> index.occ_shift
    first, last = int64(index.separators[block]), int64(index.separators[block + int64(1)])
    return lower_bound(index.separator_row, first, last, row)


@scalar
def rank(index, base, row):
    """Occurrences of `base` in the BWT's rows [0, row): Occ(base, row - 1), int64.

    ROcc gives the count up to the block, popcounts over B the rest; separators, stored as A, are taken off.
    """
    block = row >> index.occ_shift
    first = block << index.occ_shift
    count = int64(index.rocc[int64(4) * block + base])
    pattern = uint64(base) * EVERY_BASE
    word = first >> int64(5)
    left = row - first
    while left > int64(0):
        equal = EVERY_BASE & ~mismatch_bits(index.bwt[word], pattern)
        count += popcount(equal & prefix_mask(left))
        word += int64(1)
        left -= int64(32)
    if base == int64(0) and index.separators[block] != index.separators[block + int64(1)]:
        count -= separator_index(index, row) - int64(index.separators[block])
    return count


@scalar
def step(index, base, row):
    """One border of Equation 1: C(base) + Occ(base, row - 1), int64.

    Kept within [0, n]: a damaged count then gives a wrong row, but never one that does not exist.
    """
    border = int64(index.first_row[base]) + rank(index, base, row)
    return min(max(border, int64(0)), int64(index.first_row[4]))


@scalar
def extend_left(index, queries, oriented, i, low, high):
    """Backward search, going on from an interval: the rows of query[.. i] + W from those of W.

    Parameters
    ----------
    oriented : (query, strand), int64
    i : int64, the last base to be searched; -1 for none
    low, high : int64, the rows that begin with W; all rows where W is empty

    Returns
    -------
    (low, high) : int64; high <= low where there are none
    """
    query, strand = oriented
    while i >= int64(0) and low < high:
        base = base_at(queries, query, strand, i)
        if base > int64(3):
            return int64(0), int64(0)
        low = step(index, base, low)
        high = step(index, base, high)
        i -= int64(1)
    return low, high


@scalar
def bwt_symbol(index, row):
    """The 2-bit code stored for a row of the BWT (A for a separator), int64."""
    return int64((index.bwt[row >> int64(5)] >> uint64(int64(62) - int64(2) * (row & int64(31)))) & uint64(3))


@scalar
def is_separator_row(index, row):
    """Whether the BWT character of a row is a separator."""
    block = row >> index.occ_shift
    if index.separators[block] == index.separators[block + int64(1)]:
        return False
    found = separator_index(index, row)
    return found < int64(index.separators[block + int64(1)]) and int64(index.separator_row[found]) == row

"""From a row to a text position: the pairs (j, t) of paper 000, Equations 2 and 3, and their look-up in RSA."""

from __future__ import annotations

from numba import int64

from warpseed.compute.compiled import scalar
from warpseed.fm_index.search import bwt_symbol, is_separator_row, separator_index, step

__all__ = ["look_up", "walk_to_sample"]


@scalar
def walk_to_sample(index, row):
    """Walk LF from `row` until a row that RSA holds (Equation 2).

    Equation 3 has no value where the BWT character is a separator; the walk stops there, and the row's position
    is taken from the table of separator rows.

    Returns
    -------
    (j, t) : int64, int64. Entry j of RSA, or entry j - len(RSA) of `separator_position`, plus t is the position.
    """
    sampled = (int64(1) << index.p_shift) - int64(1)
    steps = int64(0)
    while row & sampled != int64(0):
        if is_separator_row(index, row):
            return int64(index.rsa.shape[0]) + separator_index(index, row), steps
        row = step(index, bwt_symbol(index, row), row)
        steps += int64(1)
    return row >> index.p_shift, steps


@scalar
def look_up(index, entry, steps):
    """Text position of a pair (j, t): one table look-up and one addition, int64."""
    samples = int64(index.rsa.shape[0])
    if entry < samples:
        return int64(index.rsa[entry]) + steps
    return int64(index.separator_position[entry - samples]) + steps

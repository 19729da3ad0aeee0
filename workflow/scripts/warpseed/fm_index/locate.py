"""From a row to a text position: the pairs (j, t) of paper 000, Equations 2 and 3, and their look-up in RSA."""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.fm_index.search import bwt_symbol, is_separator_row, separator_index, step

__all__ = ["look_up", "sample_of", "walk_to_sample"]

_LOW_HALF = np.uint64(0xFFFFFFFF)


@scalar
def sample_of(index, row):
    """Entry of RSA that holds `row`, int64; at least len(RSA) where none does.

    A row is a multiple of p = odd · 2**s just when its product with the inverse of `odd` modulo 2**32, rotated right
    by s, is at most (2**32 - 1) / p; it is then the quotient (H. S. Warren, Hacker's Delight, section 10-17). So one
    multiplication serves every p, without a division.
    """
    product = (uint64(row) * uint64(index.sa_inverse)) & _LOW_HALF
    return int64(((product | (product << uint64(32))) >> uint64(index.sa_shift)) & _LOW_HALF)


@scalar
def walk_to_sample(index, row):
    """Walk LF from `row` until a row that RSA holds (Equation 2).

    Equation 3 has no value where the BWT character is a separator; the walk stops there, and the row's position
    is taken from the table of separator rows. In a damaged index a walk may find neither: it ends after
    `longest_walk` steps, with the first entry.

    Returns
    -------
    (j, t) : int64, int64. Entry j of RSA, or entry j - len(RSA) of `separator_position`, plus t is the position.
    """
    samples = int64(index.rsa.shape[0])
    steps = int64(0)
    while steps <= int64(index.longest_walk):
        entry = sample_of(index, row)
        if entry < samples:
            return entry, steps
        if is_separator_row(index, row):
            return samples + separator_index(index, row), steps
        row = step(index, bwt_symbol(index, row), row)
        steps += int64(1)
    return int64(0), int64(0)


@scalar
def look_up(index, entry, steps):
    """Text position of a pair (j, t): one table look-up and one addition, int64; always a position of the text."""
    samples = int64(index.rsa.shape[0])
    place = int64(index.rsa[entry]) if entry < samples else int64(index.separator_position[entry - samples])
    return min(place + steps, int64(index.first_row[4]) - int64(1))

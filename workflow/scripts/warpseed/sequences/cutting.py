"""k-mers cut from reads.

This module imports numba: import it where it is used.
"""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import looping
from warpseed.errors import InputError
from warpseed.sequences.queries import Queries, numbered_names, offsets_of

__all__ = ["cut_kmers"]


def cut_kmers(
    reads: Queries,
    *,
    k: int,
    count: int,
    seed: int,
    deduplicate: bool = False,
    error_if_few: bool = True,
) -> Queries:
    """Cut k-mers at places drawn uniformly, without replacement, from all windows of all reads.

    Parameters
    ----------
    reads : Queries
        Reads shorter than `k` give none. Windows with code 4 are allowed.
    k : int
        Bases of a k-mer.
    count : int
        How many k-mers to cut; with `deduplicate`, how many different ones.
    seed : int
        The same seed and reads give the same k-mers.
    deduplicate : bool
        Keep only the first of equal k-mers (a k-mer and its reverse complement are not equal).
    error_if_few : bool
        Whether too few windows are an error; otherwise all there are, in random order, are returned.

    Returns
    -------
    Queries
        Named ``k0``, ``k1``, …, in random order.

    Raises
    ------
    InputError
        When the reads have fewer than `count` (different) windows: says how many.
    """
    if k < 1 or count < 1:
        raise InputError(f"k = {k} and count = {count} were asked for; both must be at least 1.")
    windows = offsets_of(np.maximum(reads.lengths - k + 1, 0))
    total = int(windows[-1])
    generator = np.random.default_rng(seed)
    drawn = min(count, total)
    while True:
        chosen = _draw(generator, total, drawn)
        read = np.searchsorted(windows, chosen, side="right") - 1
        rows = _gather_windows(reads.codes, reads.offsets[read] + chosen - windows[read], k)
        if deduplicate:
            rows = rows[_first_of_equal(rows)][:count]
        if len(rows) == count or drawn == total:
            break
        drawn = min(total, 2 * drawn)
    if len(rows) < count and error_if_few:
        kind = "different windows" if deduplicate else "windows"
        raise InputError(
            f"{reads.source}: {count} k-mers of {k} bases were asked for, but the reads have only "
            f"{len(rows)} {kind} of that length; ask for fewer, or give more or longer reads."
        )
    names = numbered_names(b"k", len(rows))
    return Queries(rows.ravel(), np.arange(len(rows) + 1, dtype=np.int64) * k, *names, reads.source)


def _draw(generator: np.random.Generator, total: int, count: int) -> np.ndarray:
    """Return `count` different int64 below `total`, in random order."""
    if 2 * count >= total:
        return generator.permutation(total)[:count]
    # generator.choice makes an array of `total` for some sizes; drawing again what came twice never does.
    chosen = np.empty(0, np.int64)
    while len(chosen) < count:
        more = generator.integers(total, size=count - len(chosen) + count // 8 + 1, dtype=np.int64)
        chosen = np.sort(np.concatenate((chosen, more)))  # np.unique hashes, which is ten times slower here
        chosen = chosen[np.append(True, chosen[1:] != chosen[:-1])]
    return generator.permutation(chosen)[:count]


def _first_of_equal(rows: np.ndarray) -> np.ndarray:
    """Return the row numbers (int64, increasing) of the first of each set of equal rows of uint8[n, k]."""
    words = _pack_rows(rows)
    order = np.lexsort(words)  # stable: the first of equal rows comes first
    ordered = words[:, order]
    first = np.ones(len(rows), bool)
    first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    return np.sort(order[first])


@looping
def _gather_windows(codes, starts, k):
    """Copy the `k` codes from each of `starts` (int64) into one row each; return uint8[len(starts), k]."""
    out = np.empty((starts.size, k), np.uint8)
    for r in range(starts.size):
        for i in range(k):
            out[r, i] = codes[starts[r] + i]
    return out


@looping
def _pack_rows(rows):
    """Pack rows of codes (uint8[n, k]) three bits a base, 21 bases a word; return uint64[words, n]."""
    n, k = rows.shape
    words = np.zeros(((k + 20) // 21, n), np.uint64)
    for r in range(n):
        for i in range(k):
            words[i // 21, r] = words[i // 21, r] << np.uint64(3) | np.uint64(rows[r, i])
    return words

"""The paper tier on the CPU: twins of the kernels, the deltas, and the thesis's version for the CPU alone."""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.tree_bitmap.bitmap import TreeBitmap
from warpseed.tree_bitmap.paper import (
    DEPTH_BITS,
    MISMATCH,
    advance,
    piece_of,
    record_at,
    start_of,
    transition_node,
)
from warpseed.tree_bitmap.stream import NEW, NO_BASE, NO_KMER, SEEN, kmer_at, kmer_mask, next_kmer

__all__ = ["EXACT_TWINS", "kmers_between", "match_chunk", "missed_kmers", "settle_places"]


# ---- twins of the exact kernels


@scalar
def _append(records, used, record):
    if record != uint64(0):
        records[used] = record
        used += int64(1)
    return used


@scalar
def _match_naively(codes, bitmap, search, first, work, records, used):
    """The exhaustive traversal (Figure 15) for the k-mers that begin at [first, search[1]).

    Parameters
    ----------
    search : (k, last)
    work : (uint32[t],), active inmaps
    records : uint64[…], with room for one a place; `used` of them are there before

    Returns
    -------
    int64 : records that are there now
    """
    active, levels = work[0], int64(bitmap.level_offsets.shape[0]) - int64(1)
    active[:] = uint32(0)
    active[0] = uint32(1)
    for place in range(first, int64(search[1]) + int64(search[0]) - int64(1)):
        base = int64(codes[place])
        if base >= int64(NO_BASE):
            active[:] = uint32(0)
            active[0] = uint32(1)
            continue
        for depth in range(levels):
            level = levels - int64(1) - int64(depth)
            for node in range(int64(bitmap.level_offsets[level]), int64(bitmap.level_offsets[level + int64(1)])):
                found = transition_node(bitmap, active, (level, int64(node)), (int64(place), base), search)
                for record in found:
                    used = _append(records, used, record)
    return used


@scalar
def _match_by_depths(codes, bitmap, search, first, work, records, used):
    """The k + 1 states of the shuffle kernel (Figure 16), one a depth, for the k-mers that begin at [first, search[1]).

    Parameters
    ----------
    work : (uint64[k + 1], uint64[k + 1]), the state at each depth and its trie-node's inmap

    The others, and what is returned, are those of `_match_naively`.
    """
    states, inmaps = work
    k = int64(search[0])
    inmaps[:] = uint64(0)
    states[0], inmaps[0] = uint64(0), uint64(bitmap.inmaps[0])
    for place in range(first, int64(search[1]) + k - int64(1)):
        base = int64(codes[place])
        if base >= int64(NO_BASE):
            inmaps[1:] = uint64(0)
            continue
        for below in range(k):
            depth = k - int64(below)
            inmaps[depth] = uint64(0)
            if inmaps[depth - int64(1)] != uint64(0):
                state, inmap = advance(bitmap, states[depth - int64(1)], inmaps[depth - int64(1)], base)
                states[depth], inmaps[depth] = state, inmap
                node = int64(state >> uint64(DEPTH_BITS))
                record = record_at(inmap != uint64(0), depth, node, (int64(place), base), search)
                used = _append(records, used, record)
    return used


def _naive_work(bitmap: TreeBitmap, k: int) -> tuple[np.ndarray, ...]:
    return (np.empty(len(bitmap.inmaps), np.uint32),)


def _work_by_depths(bitmap: TreeBitmap, k: int) -> tuple[np.ndarray, ...]:
    return np.empty(k + 1, np.uint64), np.empty(k + 1, np.uint64)


EXACT_TWINS = {"naive": (_match_naively, _naive_work), "shuffle": (_match_by_depths, _work_by_depths)}
"""The CPU's twin of each exact kernel, and what it works in."""


def match_chunk(
    codes: np.ndarray, k: int, bitmap: TreeBitmap, places: tuple[int, int], kernel: str = "shuffle", pieces: int = 1
) -> np.ndarray:
    """Match the k-mers that begin at some places of a stream.

    Parameters
    ----------
    codes : uint8[n]
    places : the first place, and the one behind the last; at the last one there is room for k codes
    kernel : one of EXACT_TWINS
    pieces : parts that are worked on by themselves, as by the blocks of a GPU

    Returns
    -------
    uint64[r] : the records of Figure 11, in no order; one for each place whose k-mer holds bases alone, and for some
        others whose mismatch comes before what is no base
    """
    match, work_for = EXACT_TWINS[kernel]
    work = work_for(bitmap, k)
    records, used = np.empty(max(places[1] - places[0], 0), np.uint64), 0
    for piece in range(pieces):
        first, last = piece_of(places, piece, pieces)
        if first < last:
            used = match(codes, bitmap, (k, last), first, work, records, used)
    return records[:used]


# ---- deltas


@scalar
def settle_places(records, first, kinds):
    """Say of each place from `first` on (uint8) what its record says: SEEN for a match, NEW for a mismatch."""
    for i in range(records.shape[0]):
        kinds[start_of(records[i]) - int64(first)] = NEW if records[i] & MISMATCH != uint64(0) else SEEN


@scalar
def missed_kmers(codes, k, first, kinds, kmers, places):
    """The k-mers of mismatches, in the order of their places, uint64 and int64; returns how many there are.

    By Equation 3 a mismatch leads to all k bases; where one of them is no base, it is forgotten (NO_KMER).
    """
    count = int64(0)
    for i in range(kinds.shape[0]):
        if kinds[i] == NEW:
            kmer, is_one = kmer_at(codes, int64(first) + int64(i), int64(k))
            if is_one:
                kmers[count], places[count] = kmer, int64(first) + int64(i)
                count += int64(1)
            else:
                kinds[i] = NO_KMER
    return count


# ---- all k-mers


@scalar
def kmers_between(codes, k, first, last, kmers, places):
    """The k-mers that begin at places [first, last) and lie in the stream, uint64 and int64; returns how many."""
    count, held, kmer = int64(0), int64(0), uint64(0)
    mask = kmer_mask(k)
    for place in range(first, min(last + k - 1, codes.shape[0])):
        if codes[place] > 3:
            held = int64(0)
            continue
        kmer = next_kmer(kmer, codes[place], mask)
        held += int64(1)
        if held >= int64(k):
            kmers[count], places[count] = kmer, int64(place) - int64(k) + int64(1)
            count += int64(1)
    return count

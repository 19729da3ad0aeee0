"""The paper tier's Levenshtein kernels on the CPU: twins that count what they read and write in global memory.

Counted are words of active inmaps and of the Tree Bitmap, each once a visit, as a kernel that keeps them in registers
would read them; symbols of the stream and records are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.intrinsics import popcount
from warpseed.errors import InputError, check_number
from warpseed.tree_bitmap.bitmap import TreeBitmap
from warpseed.tree_bitmap.levenshtein import (
    activate_children,
    combined_moves,
    edit_record,
    s_exmap_mask,
    spread_records,
    transition_is,
    transition_k,
    warm_up,
)
from warpseed.tree_bitmap.paper import MISMATCH, MOST_PLACES, exmap_mask, piece_of
from warpseed.tree_bitmap.stream import MAX_K, NO_BASE

__all__ = ["EDIT_KERNELS", "Accesses", "Edits", "check_edits", "edits_of", "match_edits"]

EDIT_KERNELS = ("naive", "efficient", "queue")
"""The kernels by name. The CPU has no lanes whose accesses a queue could bring together: it is as `efficient` there."""


class Accesses(NamedTuple):
    """Words of global memory."""

    reads: int
    writes: int


class Edits(NamedTuple):
    """What the automaton finds in a stream."""

    accepted: np.ndarray
    """uint32[n], by the place of the last base read: bit d is set where a state of dist-level d accepts"""
    missed: np.ndarray
    """uint32[n], by the place of a base: bit e is set where no transition led to depth e on dist-level 0"""
    accesses: Accesses | None
    """None where they are not counted"""


# ---- counting


@scalar
def _count_visit(bitmap, node, stays, moves, base, counts):
    """Count what the transitions of a trie-node to one dist-level take beside its own active inmaps.

    Parameters
    ----------
    stays, moves : uint64, its states on that level, which are K-transitioned, and on the one before (I and S)
    counts : int64[2], reads and writes
    """
    if stays | moves == uint64(0):
        return
    counts[0] += 1  # the inmap
    counts[1] += 1  # the active inmap
    external = exmap_mask(stays, base) | s_exmap_mask(moves, base)
    if external != uint64(0):
        children = popcount(external & bitmap.exmaps[node])
        counts[0] += int64(1) + children + (int64(1) if children else int64(0))  # exmap, roots, prefix sum
        counts[1] += children


# ---- twins


@scalar
def _sweep(bitmap, active, dist, step, base, search, found):
    """Visit all trie-nodes for one dist-level, the deepest first.

    Parameters
    ----------
    step : 0 for K-transitions, 1 for I- and S-transitions to the next dist-level, 2 for all that lead to that
    found : (uint64[2] accepted and missed, int64[2] reads and writes)
    """
    bits, counts = found
    nodes = int64(bitmap.inmaps.shape[0])
    for behind in range(nodes):
        node = nodes - int64(1) - int64(behind)
        level = int64(0)
        while int64(bitmap.level_offsets[level + int64(1)]) <= node:
            level += int64(1)
        where, none = (level, node), uint64(0)
        states = uint64(active[dist * nodes + node])
        above = uint64(active[(dist + int64(1)) * nodes + node]) if step > 0 else none
        counts[0] += 2 if step == 2 else 1
        if step == 0:
            _count_visit(bitmap, node, states, none, base, counts)
            accepted, missed = transition_k(bitmap, active, dist, where, base, search)
            bits[1] |= missed
        elif step == 1:
            _count_visit(bitmap, node, none, states, base, counts)
            counts[0] += 1 if states != none else 0
            accepted = transition_is(bitmap, active, dist, where, base, search)
        else:
            _count_visit(bitmap, node, above, states, base, counts)
            if dist == int64(0):
                _count_visit(bitmap, node, states, none, base, counts)
                counts[0] -= 1 if states != none else 0  # inmap and exmap are there from before
                counts[0] -= 1 if exmap_mask(states, base) != none else 0
            accepted, missed, children, own = combined_moves(bitmap, active, dist, where, base, search)
            activate_children(bitmap, active, dist + int64(1), node, children)
            activate_children(bitmap, active, dist, node, own)
            bits[1] |= missed
        bits[0] |= accepted


@scalar
def _match_piece(codes, bitmap, search, places, naive, work, records, used):
    """Read a piece of the stream, and report what ends at places [first, last).

    Parameters
    ----------
    work : (uint32[(D + 1) · t] active inmaps, uint64[2] bits, int64[2] counts)
    records : uint64[…], with room for two a place

    Returns
    -------
    int64 : records that are there now
    """
    active, bits, counts = work
    edits, found = int64(search[1]), (bits, counts)
    active[:] = uint32(0)
    active[0] = uint32(1)
    for place in range(warm_up(places[0], search), places[1]):
        base = int64(codes[place])
        if base >= int64(NO_BASE):
            active[:] = uint32(0)
            active[0] = uint32(1)
            continue
        bits[:] = uint64(0)
        if naive or edits == int64(0):
            for back in range(edits + int64(1)):
                dist = edits - int64(back)
                if dist < edits:
                    _sweep(bitmap, active, dist, 1, base, search, found)
                _sweep(bitmap, active, dist, 0, base, search, found)
        else:
            for back in range(edits):
                _sweep(bitmap, active, edits - int64(1) - int64(back), 2, base, search, found)
        if place >= places[0]:
            for record in (edit_record(0, place, bits[0]), edit_record(MISMATCH, place, bits[1])):
                if record != uint64(0):
                    records[used] = record
                    used += int64(1)
    return used


def check_edits(codes: np.ndarray, k: int, max_edits: int, kernel: str) -> None:
    """Raise InputError unless such a kernel can be asked for so many edits of words of k bases."""
    if kernel not in EDIT_KERNELS:
        raise InputError(f"kernel is {kernel!r}, but one of {', '.join(EDIT_KERNELS)} was expected.")
    check_number("k", k, 1, MAX_K)
    check_number("max_edits", max_edits, 0, k - 1, f"0 to k - 1 = {k - 1} was expected: with k edits all is a match")
    if len(codes) > MOST_PLACES:
        raise InputError(f"The stream has {len(codes):,} places, but a record counts {MOST_PLACES:,}; shorten it.")


def edits_of(records: np.ndarray, length: int, accesses: Sequence[int] | None = None) -> Edits:
    """The records of Figure 31 (uint64[r]) by their places in a stream."""
    accepted, missed = np.zeros(length, np.uint32), np.zeros(length, np.uint32)
    spread_records(records, accepted, missed)
    return Edits(accepted, missed, None if accesses is None else Accesses(*accesses))


def match_edits(
    codes: np.ndarray, k: int, max_edits: int, bitmap: TreeBitmap, kernel: str = "efficient", pieces: int = 1
) -> Edits:
    """Let the automaton read a stream.

    Parameters
    ----------
    codes : uint8[n], A, C, G, T as 0 to 3, 4 for what is no base
    max_edits : D, at most k - 1
    kernel : one of EDIT_KERNELS
    pieces : parts that are worked on by themselves, as by the blocks of a GPU

    Raises
    ------
    InputError : k, max_edits or the stream's length are out of range, or there is no such kernel
    """
    check_edits(codes, k, max_edits, kernel)
    work = np.empty((max_edits + 1) * len(bitmap.inmaps), np.uint32), np.zeros(2, np.uint64), np.zeros(2, np.int64)
    records, used = np.empty(2 * len(codes), np.uint64), 0
    for piece in range(pieces):
        places = piece_of((0, len(codes)), piece, pieces)
        if places[0] < places[1]:
            used = _match_piece(codes, bitmap, (k, max_edits), places, kernel == "naive", work, records, used)
    return edits_of(records[:used], len(codes), work[2].tolist())

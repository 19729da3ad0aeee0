"""The Levenshtein Tree Bitmap of paper 003 (sections 3.3.14 to 3.3.17): its transitions, for both targets.

The Tree Bitmap lies on D + 1 *dist-levels*, each of which has active inmaps of its own; a state has as many edits as
its dist-level says. A base leads from a state to its child by that base on the same dist-level (K), to its other
children one on (S), and to itself one on (I); the root of dist-level 0 stays active. Deletions are those that Equation
4 lets off: a state accepts where the bases that it lacks, and its dist-level, are D together at most.

Active inmaps of all dist-levels are one array, ``active``: that of trie-node i on d is number d · t + i. `search` is
(k, D), `where` (level of the Tree Bitmap, trie-node), all int64. What is found is told in two words: bit d of
*accepted* for a state of dist-level d that accepts, bit e of *missed* for a state of dist-level 0 at depth e - 1 whose
transition is not there (Figure 31).
"""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.intrinsics import trailing_zeros
from warpseed.tree_bitmap.bitmap import child_of
from warpseed.tree_bitmap.paper import DEPTH_1, MISMATCH, exmap_mask, spread, transition_inmap

__all__ = [
    "activate_children",
    "combined_moves",
    "edit_record",
    "s_exmap_mask",
    "spread_records",
    "transition_is",
    "transition_k",
    "warm_up",
]

_DEPTH_2 = np.uint64(0xFFFF << 5)


@scalar
def _next_s_depth(word, base):
    """generate_next_s_depth() of Figure 28: the children of each bit of a depth word but those by `base`, uint64."""
    groups = spread(word)
    return (groups * uint64(0xF)) ^ (groups << uint64(base))


@scalar
def _s_transition_inmap(active, base):
    """Internal S-transitions (Figure 28) of an active inmap, uint64."""
    from_root = _next_s_depth(active & uint64(1), base) << uint64(1)
    return (_next_s_depth((active >> uint64(1)) & uint64(0xF), base) << uint64(5)) | from_root


@scalar
def s_exmap_mask(active, base):
    """External S-transitions (Figure 29) of an active inmap, whether there or not, uint64."""
    return _next_s_depth(uint64(active) >> uint64(5), base)


@scalar
def _accepted(internal, outside, where, dist, search):
    """Equation 4: bit `dist` where one of the states that have become active on that dist-level accepts, uint64.

    Parameters
    ----------
    internal : uint64, states of the trie-node's inmap
    outside : whether roots of its children are among them
    """
    depth, least = int64(3) * int64(where[0]), dist + int64(search[0]) - int64(search[1])
    accepting = outside and depth + int64(3) >= least
    accepting = accepting or (internal & _DEPTH_2 != uint64(0) and depth + int64(2) >= least)
    accepting = accepting or (internal & DEPTH_1 != uint64(0) and depth + int64(1) >= least)
    accepting = accepting or (internal & uint64(1) != uint64(0) and depth >= least)
    return uint64(1) << uint64(dist) if accepting else uint64(0)


@scalar
def _missed(internal, external, level, k):
    """The depths of transitions that are not there, uint64: of an inmap and of an exmap."""
    depth, missed = int64(3) * int64(level), uint64(0)
    if internal & DEPTH_1:
        missed |= uint64(1) << uint64(depth + int64(1))
    if internal & _DEPTH_2:
        missed |= uint64(1) << uint64(depth + int64(2))
    if external:
        missed |= uint64(1) << uint64(depth + int64(3))
    return missed & ((uint64(2) << uint64(k)) - uint64(1))


@scalar
def activate_children(bitmap, active, dist, node, children):
    """Set the roots of some children of a trie-node (bits of its exmap) on a dist-level."""
    offset = dist * int64(bitmap.inmaps.shape[0])
    while children != uint64(0):
        active[offset + child_of(bitmap, node, trailing_zeros(children))] |= uint32(1)
        children &= children - uint64(1)


@scalar
def _own_moves(bitmap, active, dist, where, base, search):
    """K-transitions of a trie-node on a dist-level, of which the external ones are left to the caller.

    Returns
    -------
    (accepted, missed, children), uint64; the children are those whose roots become active
    """
    node = int64(where[1])
    at = dist * int64(bitmap.inmaps.shape[0]) + node
    states = uint64(active[at])
    if states == uint64(0):
        return uint64(0), uint64(0), uint64(0)
    external, internal, inmap = exmap_mask(states, base), transition_inmap(states, base), uint64(bitmap.inmaps[node])
    children, missed = uint64(0), uint64(0)
    if external != uint64(0):
        children = external & bitmap.exmaps[node]
    if dist == int64(0):
        missed = _missed(internal & ~inmap, external & ~children, where[0], search[0])
    internal &= inmap
    accepted = _accepted(internal, children != uint64(0), where, dist, search)
    active[at] = uint32(internal | uint64(1)) if at == int64(0) else uint32(internal)
    return accepted, missed, children


@scalar
def transition_k(bitmap, active, dist, where, base, search):
    """K-transitions of a trie-node on a dist-level; returns (accepted, missed)."""
    accepted, missed, children = _own_moves(bitmap, active, dist, where, base, search)
    activate_children(bitmap, active, dist, int64(where[1]), children)
    return accepted, missed


@scalar
def transition_is(bitmap, active, dist, where, base, search):
    """I- and S-transitions of a trie-node from a dist-level to the next (Figures 27 to 29); returns accepted."""
    node, nodes = int64(where[1]), int64(bitmap.inmaps.shape[0])
    states = uint64(active[dist * nodes + node])
    if states == uint64(0):
        return uint64(0)
    external, children = s_exmap_mask(states, base), uint64(0)
    if external != uint64(0):
        children = external & bitmap.exmaps[node]
        activate_children(bitmap, active, dist + int64(1), node, children)
    internal = (_s_transition_inmap(states, base) | states) & uint64(bitmap.inmaps[node])
    active[(dist + int64(1)) * nodes + node] |= uint32(internal)
    return _accepted(internal, children != uint64(0), where, dist + int64(1), search)


@scalar
def combined_moves(bitmap, active, dist, where, base, search):
    """All transitions of a trie-node that lead to dist-level `dist` + 1, and, from level 0, those to level 0
    (Figure 32); the external ones are left to the caller.

    Returns
    -------
    (accepted, missed, above, own), uint64; the latter two are the children whose roots become active one level on, and
    on level 0
    """
    node, nodes = int64(where[1]), int64(bitmap.inmaps.shape[0])
    at = (dist + int64(1)) * nodes + node
    states, above = uint64(active[dist * nodes + node]), uint64(active[at])
    if states | above == uint64(0):
        return uint64(0), uint64(0), uint64(0), uint64(0)
    external, children = exmap_mask(above, base) | s_exmap_mask(states, base), uint64(0)
    if external != uint64(0):
        children = external & bitmap.exmaps[node]
    internal = transition_inmap(above, base) | _s_transition_inmap(states, base) | states
    internal &= uint64(bitmap.inmaps[node])
    active[at] = uint32(internal)
    accepted = _accepted(internal, children != uint64(0), where, dist + int64(1), search)
    missed, own = uint64(0), uint64(0)
    if dist == int64(0):
        also, missed, own = _own_moves(bitmap, active, dist, where, base, search)
        accepted |= also
    return accepted, missed, children, own


# ---- records and places


@scalar
def edit_record(kind, place, bits):
    """Figure 31: type (MISMATCH or 0), stream index, and a bit for each level or depth, uint64; 0 for no bits."""
    if uint64(bits) == uint64(0):
        return uint64(0)
    return uint64(kind) | (uint64(place) << uint64(32)) | uint64(bits)


@scalar
def spread_records(records, accepted, missed):
    """Put the bits of records (uint64[r]) where their places are, uint32[n] each."""
    for i in range(records.shape[0]):
        place = int64((records[i] & ~MISMATCH) >> uint64(32))
        if records[i] & MISMATCH:
            missed[place] = uint32(records[i] & uint64(0xFFFF_FFFF))
        else:
            accepted[place] = uint32(records[i] & uint64(0xFFFF_FFFF))


@scalar
def warm_up(first, search):
    """The place to begin at so that the states after base `first` are known: each is of k + D bases at most, int64."""
    return max(int64(first) - int64(search[0]) - int64(search[1]) + int64(1), int64(0))

"""The paper tier: the steps of paper 003 over a Tree Bitmap, for both targets.

A *state* is a node of the trie that is active: the last bases of the stream spell it. In the exact automaton one state
a depth is active at most; it is then written as one number, its trie-node above the bit that it has in the inmap. A
*depth word* has a bit for each node at one depth of a trie-node. Where the printed algorithms cannot be right,
docs/tree_bitmap.md says what holds.
"""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.intrinsics import trailing_zeros
from warpseed.tree_bitmap.bitmap import child_of

__all__ = [
    "DEPTH_1",
    "DEPTH_BITS",
    "MISMATCH",
    "MOST_PLACES",
    "MOST_TRIE_NODES",
    "advance",
    "exmap_mask",
    "piece_of",
    "record_at",
    "spread",
    "start_of",
    "transition_inmap",
    "transition_node",
]

MISMATCH = np.uint64(1 << 63)
"""The type bit of a record; a match has 0."""
DEPTH_BITS = 5
_NODE_BITS = 27
MOST_TRIE_NODES, MOST_PLACES = 1 << _NODE_BITS, 1 << 31
"""What the other parts of Figure 11's record can count: trie-nodes, and places of a stream."""
DEPTH_1 = np.uint64(0b11110)
"""The bits of an inmap at depth 1 of its trie-node."""
_BYTES, _NIBBLES, _PAIRS, _FOURTHS = (
    np.uint64(0x000000FF000000FF), np.uint64(0x000F000F000F000F), np.uint64(0x0303030303030303),
    np.uint64(0x1111111111111111),
)  # fmt: skip


# ---- transitions


@scalar
def spread(word):
    """The 16 bits of a depth word, each moved to the first of its four children, uint64."""
    word = (word | (word << uint64(24))) & _BYTES
    word = (word | (word << uint64(12))) & _NIBBLES
    word = (word | (word << uint64(6))) & _PAIRS
    return (word | (word << uint64(3))) & _FOURTHS


@scalar
def next_depth(word, base):
    """generate_next_depth() of Figure 13: the child by `base` of each bit of a depth word, uint64."""
    return spread(word) << uint64(base)


@scalar
def transition_inmap(active, base):
    """Internal transitions (Figure 13): the states that those of an active inmap lead to, uint64. They need not exist,
    and the root is not among them."""
    active = uint64(active)
    from_root = next_depth(active & uint64(1), base) << uint64(1)
    return (next_depth((active >> uint64(1)) & uint64(0xF), base) << uint64(5)) | from_root


@scalar
def exmap_mask(active, base):
    """External transitions (Figure 14): the children of a trie-node that its states lead to, whether there or not."""
    return next_depth(uint64(active) >> uint64(5), base)


@scalar
def advance(bitmap, state, inmap, base):
    """The transition of one state (Figure 16).

    Parameters
    ----------
    state : uint64, trie-node above the bit of its inmap
    inmap : uint64, the inmap of that trie-node, which travels with the state; 0 where there is no state

    Returns
    -------
    (state, inmap) : uint64; an inmap of 0 where no transition was taken
    """
    node, bit = int64(state >> uint64(DEPTH_BITS)), int64(state & uint64(31))
    if bit < int64(5):
        bit = int64(4) * bit + int64(1) + base
        taken = inmap if (inmap >> uint64(bit)) & uint64(1) else uint64(0)
        return (uint64(node) << uint64(DEPTH_BITS)) | uint64(bit), taken
    child = int64(4) * (bit - int64(5)) + base
    if inmap == uint64(0) or (bitmap.exmaps[node] >> uint64(child)) & uint64(1) == uint64(0):
        return state, uint64(0)
    node = child_of(bitmap, node, child)
    return uint64(node) << uint64(DEPTH_BITS), uint64(bitmap.inmaps[node])


# ---- records


@scalar
def _record_of(kind, place, node, depth):
    """Figure 11: type (MISMATCH or 0), stream index, trie-node and depth in 64 bits."""
    return (
        uint64(kind) | (uint64(place) << uint64(_NODE_BITS + DEPTH_BITS)) | (uint64(node) << uint64(DEPTH_BITS))
        | uint64(depth)
    )  # fmt: skip


@scalar
def record_at(there, depth, node, symbol, search):
    """What is reported of a state that a transition leads to, uint64; 0 where that is nothing.

    Parameters
    ----------
    there : whether the trie has it: then it is a match at depth k, else a mismatch at any depth up to k
    symbol : (place, base) that was read, int64
    search : (k, last), int64: k-mers that begin before `last` are asked for
    """
    place, k = int64(symbol[0]), int64(search[0])
    if there:
        return _record_of(uint64(0), place, node, depth) if depth == k else uint64(0)
    if depth > k or place - depth + int64(1) >= int64(search[1]):
        return uint64(0)
    return _record_of(MISMATCH, place, node, depth)


@scalar
def start_of(record):
    """Equation 3, first: the place where the k-mer of a record begins, int64."""
    place = int64((record & ~MISMATCH) >> uint64(_NODE_BITS + DEPTH_BITS))
    return place - int64(record & uint64((1 << DEPTH_BITS) - 1)) + int64(1)


# ---- a trie-node


@scalar
def transition_node(bitmap, active, where, symbol, search):
    """All transitions of one trie-node (Figures 13 to 15), external ones first, and what is reported of them.

    Parameters
    ----------
    active : uint32[t], active inmaps. This node's is replaced; of its children on the level below, which have been
        transitioned before, roots are set
    where : (level, node), int64
    symbol, search : see `record_at`

    Returns
    -------
    Three records, uint64, of the states one, two and three depths below the trie-node's root; 0 for none
    """
    level, node = int64(where[0]), int64(where[1])
    states, base = uint64(active[node]), int64(symbol[1])
    root = uint64(1) if node == int64(0) else uint64(0)
    if states == uint64(0):
        return uint64(0), uint64(0), uint64(0)
    depth, shallow, deep, outside = int64(3) * level, uint64(0), uint64(0), uint64(0)
    if states >> uint64(5):
        wanted, to = exmap_mask(states, base), node
        left = wanted & bitmap.exmaps[node]
        if left == uint64(0):
            outside = record_at(False, depth + int64(3), node, symbol, search)
        while left != uint64(0):
            to = child_of(bitmap, node, trailing_zeros(left))
            active[to] |= uint32(1)
            left &= left - uint64(1)
            outside = record_at(True, depth + int64(3), to, symbol, search)
    inmap, wanted = uint64(bitmap.inmaps[node]), transition_inmap(states, base)
    if wanted & DEPTH_1:
        shallow = record_at(wanted & inmap & DEPTH_1 != uint64(0), depth + int64(1), node, symbol, search)
    if wanted >> uint64(5):
        deep = record_at((wanted & inmap) >> uint64(5) != uint64(0), depth + int64(2), node, symbol, search)
    active[node] = uint32((wanted & inmap) | root)
    return shallow, deep, outside


# ---- pieces of a chunk


@scalar
def piece_of(places, piece, pieces):
    """Where the k-mers of a block's or a warp's piece begin: [first, last) of the places [0] to [1], int64."""
    first, count = int64(places[0]), int64(places[1]) - int64(places[0])
    return first + count * piece // pieces, first + count * (piece + int64(1)) // pieces

"""The Tree Bitmap: a trie of words over four bases in arrays without pointers (sections 2.4, 3.3.2 and 3.3.3).

A *trie-node* holds three depths of the trie: its root, 4 children and 16 grandchildren are bits of its *inmap*, the 64
children of the grandchildren, each the root of a trie-node one level below, are bits of its *exmap*. Bit 0 of an inmap
is the root, bit 1 + a its child by base a, bit 5 + 4 a + b that child's by base b; bit 16 a + 4 b + c of an exmap is
that one's by base c. Trie-nodes lie breadth first, so those of a level lie in the order of their words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.intrinsics import popcount, trailing_zeros

__all__ = ["DEPTHS", "TreeBitmap", "child_of", "kmers_of", "levels_of", "new_bitmap"]

DEPTHS = 3
"""Depths of the trie that a trie-node holds."""


class TreeBitmap(NamedTuple):
    """A structure of arrays, of t trie-nodes. Active inmaps belong to what walks over it."""

    inmaps: np.ndarray
    """uint32[t], which of its 21 nodes there are"""
    exmaps: np.ndarray
    """uint64[t], which of its 64 children"""
    prefix_sums: np.ndarray
    """uint32[t], the first of its children: where the next level begins, and the children of its siblings before it"""
    level_offsets: np.ndarray
    """uint32[levels + 1], the first trie-node of each level, and t"""


def levels_of(k: int) -> int:
    """Levels of a Tree Bitmap of words of k bases."""
    return k // DEPTHS + 1


def new_bitmap(trie_nodes: int, k: int) -> TreeBitmap:
    """Room for a Tree Bitmap, to be filled."""
    return TreeBitmap(
        np.empty(trie_nodes, np.uint32),
        np.empty(trie_nodes, np.uint64),
        np.empty(trie_nodes, np.uint32),
        np.zeros(levels_of(k) + 1, np.uint32),
    )


@scalar
def child_of(bitmap, node, child):
    """Equation 2: the trie-node that is child number `child` (0 to 63) of trie-node `node`, int64."""
    before = (uint64(1) << uint64(child)) - uint64(1)
    return int64(bitmap.prefix_sums[node]) + popcount(before & bitmap.exmaps[node])


@scalar
def _depth_of_words(inmap, inside):
    """The nodes of an inmap at depth `inside` (0 to 2), a bit each from bit 0 on, uint64."""
    if inside == int64(0):
        return uint64(inmap) & uint64(1)
    if inside == int64(1):
        return (uint64(inmap) >> uint64(1)) & uint64(0xF)
    return uint64(inmap) >> uint64(5)


@scalar
def _count_words(bitmap, level, inside):
    """Nodes of a level at depth `inside` of their trie-nodes, int64."""
    count = int64(0)
    for node in range(int64(bitmap.level_offsets[level]), int64(bitmap.level_offsets[level + 1])):
        count += popcount(_depth_of_words(bitmap.inmaps[node], int64(inside)))
    return count


@scalar
def _spell_words(bitmap, level, inside, prefixes, words):
    """Spell the words of a level from the root down; `prefixes` (uint64[t]) takes those of all trie-nodes."""
    prefixes[0] = uint64(0)
    count = int64(0)
    for node in range(int64(bitmap.level_offsets[level])):
        left, child = bitmap.exmaps[node], int64(bitmap.prefix_sums[node])
        while left != uint64(0):
            prefixes[child] = (prefixes[node] << uint64(2 * DEPTHS)) | uint64(trailing_zeros(left))
            left &= left - uint64(1)
            child += int64(1)
    for node in range(int64(bitmap.level_offsets[level]), int64(bitmap.level_offsets[level + 1])):
        left = _depth_of_words(bitmap.inmaps[node], int64(inside))
        while left != uint64(0):
            words[count] = (prefixes[node] << uint64(2 * inside)) | uint64(trailing_zeros(left))
            left &= left - uint64(1)
            count += int64(1)


def kmers_of(bitmap: TreeBitmap, k: int) -> np.ndarray:
    """The words of k bases of a Tree Bitmap, ascending, uint64[d]."""
    level, inside = divmod(k, DEPTHS)
    kmers = np.empty(_count_words(bitmap, level, inside), np.uint64)
    _spell_words(bitmap, level, inside, np.empty(len(bitmap.inmaps), np.uint64), kmers)
    return kmers

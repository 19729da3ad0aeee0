"""The Hybrid Tree Bitmap (HTB): a pointer tree whose nodes hold the inmap and exmap of a trie-node (section 3.3.13).

A node's children are one array of 64, which its parent points to: the first child that is added brings room for all its
siblings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.intrinsics import trailing_zeros
from warpseed.tree_bitmap.bitmap import DEPTHS

__all__ = ["ENTRIES_A_NODE", "Nodes", "convert_nodes", "insert_kmers", "new_nodes", "nodes_a_kmer"]

ENTRIES_A_NODE = 64
"""Entries of the pool's arrays that one allocation takes: a node and its siblings."""


class Nodes(NamedTuple):
    """A pool of arrays of 64 siblings, zero where nothing is yet. Number 0 is the root; its siblings are nothing."""

    inmaps: np.ndarray
    """uint32[room]"""
    exmaps: np.ndarray
    """uint64[room]"""
    children: np.ndarray
    """uint32[room], the array of a node's children by its number; 0 where there is none"""


def new_nodes(room: int) -> Nodes:
    """A pool that has the root."""
    nodes = Nodes(np.zeros(room, np.uint32), np.zeros(room, np.uint64), np.zeros(room, np.uint32))
    nodes.inmaps[0] = 1
    return nodes


def nodes_a_kmer(k: int) -> int:
    """Allocations that a word of k bases takes at most."""
    return k // DEPTHS


@scalar
def _set_child(nodes, used, node, child):
    """Set a bit of a node's exmap, and that child's root; returns the child, and whether it is new."""
    bit = uint64(1) << uint64(child)
    if int64(nodes.children[node]) == int64(0):
        nodes.children[node] = uint32(used[0])
        used[0] += 1
    below = int64(64) * int64(nodes.children[node]) + child
    is_new = nodes.exmaps[node] & bit == uint64(0)
    if is_new:
        nodes.exmaps[node] |= bit
        nodes.inmaps[below] = uint32(1)
        used[1] += 1
    return below, is_new


@scalar
def insert_kmers(nodes, used, kmers, k, first, is_new):
    """Insert words of k bases, from number `first` on, as far as there is room.

    Parameters
    ----------
    nodes : Nodes
    used : int64[2], arrays of siblings, and trie-nodes
    kmers : uint64[m], two bits a base
    is_new : uint8[m], takes 1 for a word that was not there

    Returns
    -------
    int64 : the first word that is not inserted; m where all are
    """
    for i in range(first, kmers.shape[0]):
        if int64(64) * (int64(used[0]) + int64(k // DEPTHS)) > int64(nodes.inmaps.shape[0]):
            return int64(i)
        node, left, added = int64(0), int64(2 * k), False
        while left >= int64(2 * DEPTHS):
            left -= int64(2 * DEPTHS)
            path = int64((kmers[i] >> uint64(left)) & uint64(63))
            inmap = nodes.inmaps[node]
            nodes.inmaps[node] = inmap | (uint32(2) << uint32(path >> 4)) | (uint32(32) << uint32(path >> 2))
            node, added = _set_child(nodes, used, node, path)
        # What is left of the word ends inside of this node.
        inmap, path = nodes.inmaps[node], int64(kmers[i]) & ((int64(1) << left) - int64(1))
        if left == int64(4):
            nodes.inmaps[node] |= (uint32(2) << uint32(path >> 2)) | (uint32(32) << uint32(path))
        elif left == int64(2):
            nodes.inmaps[node] |= uint32(2) << uint32(path)
        is_new[i] = 1 if added or nodes.inmaps[node] != inmap else 0
    return int64(kmers.shape[0])


@scalar
def convert_nodes(nodes, queue, bitmap):
    """Put the nodes down breadth first; `queue` (uint32[t]) takes them in that order."""
    queue[0] = uint32(0)
    first, end = int64(0), int64(1)
    for level in range(bitmap.level_offsets.shape[0] - 1):
        bitmap.level_offsets[level] = uint32(first)
        last = end
        for number in range(first, last):
            node = int64(queue[number])
            bitmap.inmaps[number], bitmap.exmaps[number] = nodes.inmaps[node], nodes.exmaps[node]
            bitmap.prefix_sums[number] = uint32(end)
            left, array = nodes.exmaps[node], int64(64) * int64(nodes.children[node])
            while left != uint64(0):
                queue[end] = uint32(array + trailing_zeros(left))
                left &= left - uint64(1)
                end += int64(1)
        first = last
    bitmap.level_offsets[bitmap.level_offsets.shape[0] - 1] = uint32(end)

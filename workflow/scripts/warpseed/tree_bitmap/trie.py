"""The pointer trie: a node for each prefix of a word, with up to four children (section 3.3.4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32, uint64

__all__ = ["ENTRIES_A_NODE", "Nodes", "convert_nodes", "insert_kmers", "new_nodes", "nodes_a_kmer"]

ENTRIES_A_NODE = 1
"""Entries of the pool's arrays that one allocation takes."""


class Nodes(NamedTuple):
    """A pool of nodes, zero where there are none yet; number 0 is the root."""

    children: np.ndarray
    """uint32[room, 4], a node's child by each base; 0 where there is none"""


def new_nodes(room: int) -> Nodes:
    """A pool that has the root."""
    return Nodes(np.zeros((room, 4), np.uint32))


def nodes_a_kmer(k: int) -> int:
    """Allocations that a word of k bases takes at most."""
    return k


@scalar
def insert_kmers(nodes, used, kmers, k, first, is_new):
    """Insert words of k bases, from number `first` on, as far as there is room.

    Parameters
    ----------
    nodes : Nodes
    used : int64[2], nodes of the pool, and how many of them are roots of trie-nodes
    kmers : uint64[m], two bits a base
    is_new : uint8[m], takes 1 for a word that was not there

    Returns
    -------
    int64 : the first word that is not inserted; m where all are
    """
    for i in range(first, kmers.shape[0]):
        if int64(used[0]) + int64(k) > int64(nodes.children.shape[0]):
            return int64(i)
        kmer, node, added = kmers[i], int64(0), 0
        for depth in range(1, k + 1):
            base = int64((kmer >> uint64(2 * (k - depth))) & uint64(3))
            child = int64(nodes.children[node, base])
            if child == int64(0):
                child = int64(used[0])
                nodes.children[node, base] = uint32(child)
                used[0] += 1
                if depth % 3 == 0:
                    used[1] += 1
                added = 1
            node = child
        is_new[i] = added
    return int64(kmers.shape[0])


@scalar
def convert_nodes(nodes, queue, bitmap):
    """Group the nodes into trie-nodes, breadth first; `queue` (uint32[t]) takes the root of each."""
    queue[0] = uint32(0)
    first, end = int64(0), int64(1)
    for level in range(bitmap.level_offsets.shape[0] - 1):
        bitmap.level_offsets[level] = uint32(first)
        last = end
        for number in range(first, last):
            root, inmap, exmap = int64(queue[number]), uint32(1), uint64(0)
            bitmap.prefix_sums[number] = uint32(end)
            for first_base in range(4):
                child = int64(nodes.children[root, first_base])
                if child == int64(0):
                    continue
                inmap |= uint32(2) << uint32(first_base)
                for path in range(4 * first_base, 4 * first_base + 4):
                    grandchild = int64(nodes.children[child, path & 3])
                    if grandchild == int64(0):
                        continue
                    inmap |= uint32(32) << uint32(path)
                    for base in range(4):
                        below = nodes.children[grandchild, base]
                        if below != uint32(0):
                            exmap |= uint64(1) << uint64(4 * path + base)
                            queue[end] = below
                            end += int64(1)
            bitmap.inmaps[number], bitmap.exmaps[number] = inmap, exmap
        first = last
    bitmap.level_offsets[bitmap.level_offsets.shape[0] - 1] = uint32(end)

"""Dictionaries of k-mers that grow: one of the two intermediate structures, whose pool grows with it."""

from __future__ import annotations

from types import ModuleType
from typing import Protocol

import numpy as np

from warpseed.errors import MemoryLimitError
from warpseed.tree_bitmap import hybrid, trie
from warpseed.tree_bitmap.bitmap import TreeBitmap, kmers_of, new_bitmap
from warpseed.tree_bitmap.room import require_room

__all__ = ["FIRST_ROOM", "STRUCTURES", "Growing", "Words"]

STRUCTURES: dict[str, ModuleType] = {"tree": trie, "hybrid": hybrid}
"""The intermediate structures by name."""
FIRST_ROOM = 1 << 10
"""Nodes, or arrays of siblings, that a pool has room for at first."""
_MOST_ENTRIES = 1 << 32
"""Entries of a pool that 32 bits can point to."""


class Words(Protocol):
    """Words of k bases that grow, in whatever structure."""

    k: int

    def insert(self, kmers: np.ndarray) -> np.ndarray:
        """As `Growing.insert`."""

    def to_bitmap(self) -> TreeBitmap:
        """As `Growing.to_bitmap`; its arrays may be on a device."""

    def kmers(self) -> np.ndarray:
        """As `Growing.kmers`."""


class Growing:
    """The words of k bases that have been inserted.

    Parameters
    ----------
    k : bases of a word, 1 to 31
    structure : one of STRUCTURES
    room : allocations that there is room for at first
    """

    def __init__(self, k: int, structure: str = "tree", room: int = FIRST_ROOM) -> None:
        self.k, self._form = k, STRUCTURES[structure]
        self._nodes = self._form.new_nodes(max(room, 1) * self._form.ENTRIES_A_NODE)
        self._used = np.ones(2, np.int64)

    @property
    def room(self) -> int:
        """Allocations that there is room for now."""
        return len(self._nodes[0]) // int(self._form.ENTRIES_A_NODE)

    @property
    def trie_nodes(self) -> int:
        """Trie-nodes that the Tree Bitmap of these words has."""
        return int(self._used[1])

    def _grow(self) -> None:
        """Make the pool twice as large, or large enough for another word."""
        entries = int(self._form.ENTRIES_A_NODE)
        needed = entries * (int(self._used[0]) + self._form.nodes_a_kmer(self.k))
        size = max(2 * len(self._nodes[0]), needed)
        if size > _MOST_ENTRIES:
            raise MemoryLimitError(
                f"The trie has {int(self._used[0]):,} nodes, and more than 32 bits can count would be needed; "
                "use the fast tier, or a shorter stream."
            )
        bytes_each = sum(array.nbytes for array in self._nodes) // len(self._nodes[0])
        require_room(size * bytes_each, f"A trie of {size:,} entries", "use the fast tier, or give a shorter stream")
        grown = type(self._nodes)(*(np.zeros((size, *array.shape[1:]), array.dtype) for array in self._nodes))
        for larger, array in zip(grown, self._nodes, strict=True):
            larger[: len(array)] = array
        self._nodes = grown

    def insert(self, kmers: np.ndarray) -> np.ndarray:
        """Insert words one after the other.

        Parameters
        ----------
        kmers : uint64[m], two bits a base, the first base on top

        Returns
        -------
        uint8[m] : 1 for a word that was not there before, 0 for others

        Raises
        ------
        MemoryLimitError : the structure has no numbers left for its nodes
        """
        is_new = np.empty(len(kmers), np.uint8)
        done = 0
        while (done := self._form.insert_kmers(self._nodes, self._used, kmers, self.k, done, is_new)) < len(kmers):
            self._grow()
        return is_new

    def to_bitmap(self) -> TreeBitmap:
        """The Tree Bitmap of the words, made anew (toBitmap() of section 3.3.9)."""
        bitmap = new_bitmap(self.trie_nodes, self.k)
        self._form.convert_nodes(self._nodes, np.empty(self.trie_nodes, np.uint32), bitmap)
        return bitmap

    def kmers(self) -> np.ndarray:
        """The words, ascending, uint64[d]."""
        return kmers_of(self.to_bitmap(), self.k)

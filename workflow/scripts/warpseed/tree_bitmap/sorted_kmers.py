"""A dictionary of k-mers in order, and the Tree Bitmap that is made of it by scans alone, on the host or on a GPU.

Words that are sorted have sorted prefixes. So the trie-nodes of a level are where the prefix of the words changes, and
each level is made of the one below it, whose own words are three bases longer. All of it is said in what NumPy and CuPy
both have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from warpseed.errors import MemoryLimitError
from warpseed.tree_bitmap.bitmap import DEPTHS, TreeBitmap, levels_of

__all__ = ["SortedKmers", "bitmap_of_sorted"]

_MOST_TRIE_NODES = 1 << 32
"""Trie-nodes that 32 bits can point to."""
_GATHERING = (
    (3, 0x0303_0303_0303_0303), (6, 0x000F_000F_000F_000F), (12, 0x0000_00FF_0000_00FF), (24, 0xFFFF),
)  # fmt: skip
"""Shifts and masks that bring every fourth bit of a word beside the one before."""


class _Level(NamedTuple):
    """The trie-nodes of a level, in order."""

    roots: Any
    """uint64[n], the words that lead to them"""
    firsts: Any
    """int64[n], the first of the words below that go on from each"""
    paths: Any
    """uint64[n], a bit for each way in which these do"""
    bases: int
    """of such a way: three, or on the last level those that words still have"""


def _level_above(words: Any, bases: int, is_top: bool, xp: Any) -> _Level:
    """The level whose trie-nodes lead to words, uint64[d], by their last bases."""
    roots = words >> np.uint64(2 * bases)
    root = xp.zeros(1 if is_top or len(words) else 0, np.int64)
    firsts = xp.concatenate([root, xp.flatnonzero(roots[1:] != roots[:-1]) + 1])
    # The ways of a trie-node are different bits, so that their sum has all of them, whatever overflowed before it.
    ways = xp.ones(len(words), np.uint64) << (words & np.uint64(4**bases - 1))
    sums = xp.concatenate([xp.zeros(1, np.uint64), xp.cumsum(ways, dtype=np.uint64)])
    ends = xp.concatenate([firsts, xp.zeros(1, np.int64) + len(words)])
    own = roots[firsts] if len(words) else xp.zeros(len(firsts), np.uint64)
    return _Level(own, firsts, xp.diff(sums[ends]), bases)


def _fours(bits: Any) -> Any:
    """Of each four bits of words whether one is set, beside each other."""
    bits = bits | bits >> np.uint64(1)
    bits = (bits | bits >> np.uint64(2)) & np.uint64(0x1111_1111_1111_1111)
    for shift, mask in _GATHERING:
        bits = (bits | bits >> np.uint64(shift)) & np.uint64(mask)
    return bits


def _inmaps_of(level: _Level) -> Any:
    """What a way has on the way: a bit for the root, four for its children, sixteen for theirs."""
    twos = _fours(level.paths) if level.bases == DEPTHS else level.paths
    ones = twos if level.bases < 2 else _fours(twos)
    inmaps = (ones << np.uint64(1) if level.bases else ones) | np.uint64(1)
    return (inmaps | twos << np.uint64(5) if level.bases >= 2 else inmaps).astype(np.uint32)


def bitmap_of_sorted(kmers: Any, k: int, xp: Any = np) -> TreeBitmap:
    """The Tree Bitmap of words of k bases, array by array that of `Growing.to_bitmap`.

    Parameters
    ----------
    kmers : uint64[d], ascending, none of them twice, in the memory of `xp`
    k : bases of a word, 1 to 31
    xp : NumPy, or CuPy

    Returns
    -------
    TreeBitmap, in the memory of `xp`

    Raises
    ------
    MemoryLimitError : there are more trie-nodes than 32 bits can count
    """
    levels: list[_Level] = []
    words, bases = kmers, k % DEPTHS
    for number in range(levels_of(k) - 1, -1, -1):
        levels.insert(0, _level_above(words, bases, number == 0, xp))
        words, bases = levels[0].roots, DEPTHS
    offsets = np.cumsum([0, *(len(level.roots) for level in levels)])
    if (trie_nodes := int(offsets[-1])) >= _MOST_TRIE_NODES:
        raise MemoryLimitError(
            f"The dictionary has {trie_nodes:,} trie-nodes, and more than 32 bits can count would be needed; "
            "give fewer k-mers."
        )
    last = levels[-1]
    exmaps = [level.paths for level in levels[:-1]] + [xp.zeros(len(last.roots), np.uint64)]
    # A last level has no children: the first of them would be behind all trie-nodes.
    sums = [level.firsts + int(below) for level, below in zip(levels[:-1], offsets[1:], strict=False)]
    sums.append(xp.zeros(len(last.roots), np.int64) + trie_nodes)
    return TreeBitmap(
        xp.concatenate(list(map(_inmaps_of, levels))),
        xp.concatenate(exmaps),
        xp.concatenate([part.astype(np.uint32) for part in sums]),
        xp.asarray(offsets.astype(np.uint32)),
    )


def _stable_order(array: np.ndarray) -> np.ndarray:
    return np.argsort(array, kind="stable")


class SortedKmers:
    """What `Growing` is, of words in order: those that come are sorted, too, and merged with those that are there.

    Parameters
    ----------
    k : bases of a word, 1 to 31
    xp : NumPy, or CuPy, in whose memory they lie
    order : the stable order of an array, int64[n]
    """

    def __init__(self, k: int, xp: Any = np, order: Callable[[Any], Any] = _stable_order) -> None:
        self.k = k
        self._xp = xp
        self._order = order
        self._kmers = xp.zeros(0, np.uint64)

    def insert(self, kmers: np.ndarray) -> np.ndarray:
        """As `Growing.insert`."""
        xp, coming = self._xp, self._xp.asarray(kmers)
        order = self._order(coming)
        coming = coming[order]
        places = xp.searchsorted(self._kmers, coming)
        is_new = xp.zeros(len(coming), np.bool_)
        is_new[:1] = True
        is_new[1:] = coming[1:] != coming[:-1]
        if len(self._kmers):
            is_new &= self._kmers[xp.minimum(places, len(self._kmers) - 1)] != coming
        self._merge(coming[is_new], places[is_new])
        answers = xp.zeros(len(coming), np.uint8)
        answers[order] = is_new
        return self._on_host(answers)

    def _merge(self, kmers: Any, places: Any) -> None:
        """Put words, which are new, before those that are at their places now."""
        xp, old = self._xp, self._kmers
        places = places + xp.arange(len(kmers), dtype=np.int64)
        is_old = xp.ones(len(old) + len(kmers), np.bool_)
        is_old[places] = False
        self._kmers = xp.zeros(len(is_old), np.uint64)
        self._kmers[places] = kmers
        self._kmers[xp.flatnonzero(is_old)] = old

    def to_bitmap(self) -> TreeBitmap:
        """The Tree Bitmap of the words, made anew."""
        return bitmap_of_sorted(self._kmers, self.k, self._xp)

    def kmers(self) -> np.ndarray:
        """The words, ascending, uint64[d]."""
        return self._on_host(self._kmers)

    def _on_host(self, array: Any) -> np.ndarray:
        return array if self._xp is np else array.get()

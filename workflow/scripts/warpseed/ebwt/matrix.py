"""Distances of all pairs of words, with names: what may be asked of them, and the files that hold them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.machine import require_memory

__all__ = ["DistanceMatrix", "check_room", "distance_type", "labels_of", "phylip_names", "phylip_of", "tsv_of"]

_BLANK = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ufffe\uffff]+")
_NOT_IN_PHYLIP = re.compile(r"[\s\x00-\x20\x7f-\xa0()\[\]{}:;,'\"]+")
_OF_A_PAIR = 24
"""Bytes at most: its distance, that over the most that it can be, and one more while either is made or a tree is."""


class DistanceMatrix(NamedTuple):
    """Distances of all pairs of m words."""

    names: tuple[str, ...]
    """of the words, no two the same and none empty"""
    values: np.ndarray
    """int32[m, m], or int64[m, m], as of `distance_type`: δ of Definition 24: symmetric, 0 of a word and itself.
    (Of int32 squares, and sums of two, may be too large for it: convert before.)"""
    lengths: np.ndarray
    """int64[m], letters of each word"""

    def normalised(self) -> np.ndarray:
        """Distances over the most that they can be, float64[m, m], 0 to 1.

        With runs of one colour, δ of words u and v is |u| + |v| - runs. There are two runs at least, one of each word,
        so δ is |u| + |v| - 2 at most: all conjugates of one word stand before all of the other. Two words of one letter
        each, which can have no other distance than 0, keep it.

        How small it can be depends on how far the lengths differ: where they are the same the colours may change at
        every rank, and δ be 0; else there are at most 2 min(|u|, |v|) + 1 runs, and δ is ||u| - |v|| - 1 at least.
        """
        most = np.add.outer(self.lengths, self.lengths - 2)
        return self.values / np.maximum(most, 1, out=most)


def distance_type(longest: int) -> type[np.signedinteger[Any]]:
    """The type of δ of words of up to so many letters each: it is at most two less than both words have."""
    return np.int32 if 2 * longest <= 1 << 31 else np.int64


def check_room(count: int) -> None:
    """Refuse distances of so many words, before any of their conjugates is sorted.

    Raises
    ------
    MemoryLimitError : there is no memory for all pairs
    """
    what = f"The distances of all pairs of {count:,} words, and what is made of them, take"
    require_memory(_OF_A_PAIR * count**2, what, "take fewer words, or a machine with more memory")


def labels_of(names: Iterable[str]) -> tuple[str, ...]:
    """Names that files can hold, no two the same: white space and control characters become one space, and where a name
    was there before, or is empty, it gets a number that makes it a new one."""
    return _made_unique(_BLANK.sub(" ", name.encode("utf-8", "replace").decode()).strip() for name in names)


def phylip_names(names: Iterable[str]) -> tuple[str, ...]:
    """Names for PHYLIP: what would end one, or be read as part of a tree, becomes ``_``; no two are the same."""
    return _made_unique(_NOT_IN_PHYLIP.sub("_", name) for name in names)


def _made_unique(names: Iterable[str]) -> tuple[str, ...]:
    wanted = [name or "record" for name in names]
    taken, given, tried = set(wanted), set[str](), dict[str, int]()
    result = []
    for name in wanted:
        label = name
        while label in given or (label != name and label in taken):
            tried[name] = tried.get(name, 1) + 1
            label = f"{name}_{tried[name]}"
        given.add(label)
        result.append(label)
    return tuple(result)


def tsv_of(names: Iterable[str], values: np.ndarray) -> Iterable[str]:
    """The lines of a table: a header line of ``record`` and the names, then a line of each word."""
    names = list(names)
    yield "\t".join(["record", *names]) + "\n"
    for name, row in zip(names, values, strict=True):
        yield "\t".join([name, *_shown(row)]) + "\n"


def phylip_of(names: Iterable[str], values: np.ndarray) -> Iterable[str]:
    """The lines of a relaxed PHYLIP matrix: how many words, then of each its name, which may have any length, and all
    distances."""
    yield f"{len(values)}\n"
    for name, row in zip(phylip_names(names), values, strict=True):
        yield "  ".join([name, " ".join(_shown(row))]) + "\n"


def _shown(row: np.ndarray) -> list[str]:
    """Whole numbers as they are, others with eight digits behind the point."""
    return list(map(str, row.tolist())) if row.dtype.kind == "i" else [f"{value:.8f}" for value in row.tolist()]

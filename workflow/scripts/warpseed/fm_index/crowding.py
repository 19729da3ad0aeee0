"""How crowded the buckets of a table are that strings of the text itself fall into."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from warpseed.fm_index.layout import FastIndex, SeedIndex

__all__ = ["Crowding", "crowding_of"]

_SAMPLES = 256
_known: WeakKeyDictionary[SeedIndex, Crowding] = WeakKeyDictionary()


class Crowding(NamedTuple):
    """Rows of sampled buckets, for strings of 0 to K bases; a genome's repeats fill some of them, and queries that come
    from it fall into those more often than n / 4**s says."""

    own: np.ndarray
    """int64[K + 1, samples], rows that begin with the first s bases at a place of the text"""
    near: np.ndarray
    """int64[K + 1, samples], rows that begin with these bases, one of them changed"""


def _leading_bases(text: np.ndarray, places: np.ndarray, count: int) -> np.ndarray:
    """The `count` bases, at most 31, from each place of a packed text on, as a number: int64[places]."""
    word, shift = places >> 5, ((places & 31) << 1).astype(np.uint64)
    # Shifted in two steps: a word shifted by its own width is not zero.
    behind = (text[word + 1] >> np.uint64(1)) >> (np.uint64(63) - shift)
    return (((text[word] << shift) | behind) >> np.uint64(64 - 2 * count)).astype(np.int64)


def _sample(index: FastIndex, rows: int, table_length: int) -> Crowding:
    number = np.arange(_SAMPLES)
    bases = _leading_bases(index.text, number * rows // _SAMPLES, table_length)
    own, near = np.full((2, table_length + 1, _SAMPLES), rows)
    for seen in range(1, table_length + 1):
        string = bases >> 2 * (table_length - seen)
        changed = string ^ (1 + number % 3) << 2 * (number % seen)
        for into, code in ((own, string), (near, changed)):
            first, last = (index.table[bucket << 2 * (table_length - seen)] for bucket in (code, code + 1))
            # A damaged table may say anything.
            into[seen] = np.clip(last.astype(np.int64) - first.astype(np.int64), 0, rows)
    return Crowding(own, near)


def crowding_of(index: SeedIndex) -> Crowding:
    """What a few hundred places of the text, evenly spread, say of an index; sampled once."""
    if index not in _known:
        _known[index] = _sample(index.fast, index.rows, index.table_length)
    return _known[index]

"""k-mers and their hits as words: what both tiers and both devices take and give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpseed.compute.compiled import scalar, uint64
from warpseed.sequences.packed import Bounds, Packed, pack_bounded

if TYPE_CHECKING:
    from warpseed.sequences.queries import Queries

__all__ = ["BOUNDS", "MAX_LENGTH", "QUERY_SHIFT", "keyed_hit", "pack_hit", "pack_kmers"]

MAX_LENGTH = 255
BOUNDS = Bounds("k-mer", MAX_LENGTH, "; cut longer reads by naming k (--k 20)")
"""What a k-mer may be."""
QUERY_SHIFT = 35
"""Hits appended on a device carry their k-mer above the 35 bits of a packed hit, so one sort orders everything."""


def pack_kmers(queries: Queries, first: int = 0) -> Packed:
    """Pack queries for searching; `first` is the number of the first one in its source, for the sentence.

    Raises
    ------
    InputError : a query is empty or longer than MAX_LENGTH
    """
    return pack_bounded(queries, BOUNDS, first)


@scalar
def pack_hit(position, strand, distance):
    """A hit as one word, uint64: text position, strand, distance; ascending words are in output order."""
    return (uint64(position) << uint64(3)) | (uint64(strand) << uint64(2)) | uint64(distance)


@scalar
def keyed_hit(query, position, strand, distance):
    """A packed hit with its k-mer above it."""
    return (uint64(query) << uint64(QUERY_SHIFT)) | pack_hit(position, strand, distance)

"""k-mers and their hits as words: what both tiers and both devices take and give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warpseed.compute.compiled import scalar, uint64
from warpseed.errors import InputError
from warpseed.sequences.packed import Packed, measure, pack

if TYPE_CHECKING:
    from warpseed.sequences.queries import Queries

__all__ = ["MAX_LENGTH", "QUERY_SHIFT", "keyed_hit", "pack_hit", "pack_kmers"]

MAX_LENGTH = 255
QUERY_SHIFT = 35
"""Hits appended on a device carry their k-mer above the 35 bits of a packed hit, so one sort orders everything."""


def pack_kmers(queries: Queries, first: int = 0) -> Packed:
    """Pack queries for searching; `first` is the number of the first one in its source, for the sentence.

    Raises
    ------
    InputError : a query is empty or longer than MAX_LENGTH
    """
    measured = measure(queries)
    if measured.longest > MAX_LENGTH or (measured.shortest < 1 and len(queries)):
        lengths = queries.lengths
        worst = int(np.argmax((lengths > MAX_LENGTH) | (lengths < 1)))
        raise InputError(
            f"{queries.source}: k-mer number {first + worst + 1} ('{queries.name(worst)[:60]}') has "
            f"{int(lengths[worst])} bases, but 1 to {MAX_LENGTH} were expected; cut longer reads by naming k (--k 20)."
        )
    return pack(queries, measured)


@scalar
def pack_hit(position, strand, distance):
    """A hit as one word, uint64: text position, strand, distance; ascending words are in output order."""
    return (uint64(position) << uint64(3)) | (uint64(strand) << uint64(2)) | uint64(distance)


@scalar
def keyed_hit(query, position, strand, distance):
    """A packed hit with its k-mer above it."""
    return (uint64(query) << uint64(QUERY_SHIFT)) | pack_hit(position, strand, distance)

"""Long reads as both tiers and both devices take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpseed.sequences.packed import Bounds, Packed, pack_bounded

if TYPE_CHECKING:
    from warpseed.sequences.queries import Queries

__all__ = ["BOUNDS", "MAX_LENGTH", "pack_long_reads"]

MAX_LENGTH = (1 << 31) - 64
"""Bases of the longest read: places in it are kept in 31 bits."""
BOUNDS = Bounds("read", MAX_LENGTH)
"""What a read may be."""


def pack_long_reads(reads: Queries, first: int = 0) -> Packed:
    """Reads of 1 to MAX_LENGTH bases, packed.

    Parameters
    ----------
    first : number of the first read in its source

    Raises
    ------
    InputError : a read is empty or longer
    """
    return pack_bounded(reads, BOUNDS, first)

"""Slots of one word, in which a key is looked for one after the other: what the tables of both targets share."""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import int64, scalar

__all__ = ["EMPTY", "next_slot"]

EMPTY = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
"""What a slot holds that nobody has taken."""


@scalar
def next_slot(slot, slots):
    """The slot behind one of so many, around the end."""
    return slot + int64(1) if slot + int64(1) < int64(slots) else int64(0)

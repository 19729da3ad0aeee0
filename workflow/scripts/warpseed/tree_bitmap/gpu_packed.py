"""Bases of a stream on a GPU, packed: blocks, each behind the word before it, where k-mers begin that end in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from warpseed.compute.gpu import cupy, launch
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap.gpu_fast import BLOCK, PackedBlock, pack_codes
from warpseed.tree_bitmap.stream import NO_BASE

__all__ = ["pack", "packed_blocks", "room_for_packed"]


def room_for_packed(bases: int) -> PackedBlock:
    """Room on the current device, not initialised, for a block of so many bases, 32·n, a word before them and one
    behind."""
    words = bases // BASES_A_WORD + 2
    return PackedBlock(cupy().empty(words, np.uint64), cupy().empty(words, np.uint64), -BASES_A_WORD)


def pack(codes: Any, block: PackedBlock, first: int) -> None:
    """Write bases, uint8[32·n] on the current device, to the words of a block from one on: 0 is the word before it."""
    launch(pack_codes, len(codes) // BASES_A_WORD, BLOCK, codes.view(np.uint64), first, block.words, block.marks)


def packed_blocks(codes: Any, bases: int) -> Iterator[tuple[PackedBlock, int]]:
    """A stream that lies on the current device, in blocks.

    Parameters
    ----------
    codes : uint8[n]
    bases : of a block, 32·m

    Yields
    ------
    (block, words) : each in the memory of the one before, and how many words it has
    """
    room = room_for_packed(bases)
    for first in range(0, len(codes), bases):
        before = min(first, BASES_A_WORD)
        some = codes[first - before : first + bases]
        if missing := -len(some) % BASES_A_WORD:
            some = cupy().concatenate([some, cupy().full(missing, NO_BASE, np.uint8)])
        pack(some, room, 1 - before // BASES_A_WORD)
        yield room._replace(first=first - BASES_A_WORD), (len(some) - before) // BASES_A_WORD

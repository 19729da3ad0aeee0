"""Bases of a stream on a GPU, packed: blocks, each behind the word before it, where k-mers begin that end in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from warpseed.compute.compiled import scalar, uint64
from warpseed.compute.gpu import cuda, cupy, kernel, launch
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap.gpu_fast import BLOCK, PackedBlock
from warpseed.tree_bitmap.stream import NO_BASE

__all__ = ["pack", "pack_codes", "packed_blocks", "room_for_packed"]

_CODE_WORDS = BASES_A_WORD // 8
"""Words of eight codes each that become one of 32 bases."""
_HIGH_BITS = np.uint64(0xFCFC_FCFC_FCFC_FCFC)
"""Of eight codes, none of which a base has."""


@scalar
def _brought_together(eight):
    """The two low bits of eight bytes, whose others are 0, beside each other, those of the lowest byte on top."""
    eight = ((eight << uint64(2)) | (eight >> uint64(8))) & uint64(0x000F_000F_000F_000F)
    eight = ((eight << uint64(4)) | (eight >> uint64(16))) & uint64(0x0000_00FF_0000_00FF)
    return ((eight << uint64(8)) | (eight >> uint64(32))) & uint64(0xFFFF)


@kernel
def pack_codes(codes, first_word, words, marks):
    """A thread packs 32 bases behind `first_word` words.

    codes : uint64[4·n], eight bytes each, the first one lowest, of which those above 3 are no base
    """
    word = cuda.grid(1)
    if word * _CODE_WORDS >= codes.shape[0]:
        return
    bases = uint64(0)
    unknown = uint64(0)
    for j in range(_CODE_WORDS):
        eight = codes[word * _CODE_WORDS + j]
        high = eight & _HIGH_BITS
        # Its top bit says of each byte whether any bit of it is set.
        high |= (high & uint64(0x7F7F_7F7F_7F7F_7F7F)) + uint64(0x7F7F_7F7F_7F7F_7F7F)
        no_base = (high >> uint64(7)) & uint64(0x0101_0101_0101_0101)
        eight &= ~(_HIGH_BITS | no_base | (no_base << uint64(1)))
        bases = (bases << uint64(16)) | _brought_together(eight)
        unknown = (unknown << uint64(16)) | _brought_together(no_base)
    words[first_word + word] = bases
    marks[first_word + word] = unknown


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

"""The k-mers of a stream in a GPU's memory: a structure, which grows as bases come, and the last of these, packed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from warpseed.compute.gpu import cupy, launch
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap.gpu_fast import BLOCK, PackedBlock, Stretch, pack_codes
from warpseed.tree_bitmap.gpu_shares import share_of_places
from warpseed.tree_bitmap.gpu_structures import Kept, structure_for
from warpseed.tree_bitmap.stream import NO_BASE, place_type

__all__ = ["DeviceKmers", "pack", "packed_blocks", "room_for_packed"]

_AT_ONCE = 1 << 20
"""K-mers that are known before which go to the table together: fewer than a block's, for which each part has room."""
_NONE = np.empty(0, np.uint64)


def room_for_packed(bases: int) -> PackedBlock:
    """Room on the current device for a block of so many bases, a word before them and one behind."""
    words = bases // BASES_A_WORD + 2
    return PackedBlock(cupy().zeros(words, np.uint64), cupy().zeros(words, np.uint64), -BASES_A_WORD)


def pack(codes: Any, block: PackedBlock, first: int = 0) -> PackedBlock:
    """Write bases, uint8[32·n] on the current device, to the words of a block from one on; its first word has the
    bases before, and the number -1. Returns the block."""
    launch(pack_codes, len(codes) // BASES_A_WORD, BLOCK, codes.view(np.uint64), 1 + first, block.words, block.marks)
    return block


def packed_blocks(codes: Any, bases: int) -> Iterator[tuple[PackedBlock, int]]:
    """A stream that lies on the current device, uint8[n], in blocks of so many bases: each packed, in the memory of the
    one before, and its words."""
    room = room_for_packed(bases)
    for first in range(0, len(codes), bases):
        before = min(first, BASES_A_WORD)
        some = codes[first - before : first + bases]
        if missing := -len(some) % BASES_A_WORD:
            some = cupy().concatenate([some, cupy().full(missing, NO_BASE, np.uint8)])
        words_before = before // BASES_A_WORD
        yield pack(some, room, -words_before), len(some) // BASES_A_WORD - words_before


class DeviceKmers:
    """The distinct k-mers of a stream on the current device, which grow as blocks of bases come.

    Parameters
    ----------
    kept : what is kept of k-mers
    kmers : how many there will be, about
    known : uint64[d], codes of distinct k-mers that are seen before the stream begins
    part, parts : k-mers are dealt out to so many parts by their hash, and only those of one are taken

    Attributes
    ----------
    k : bases of a k-mer
    bases : of the stream, that have come
    searched : places whose k-mers are in the structure, or in another part
    block : PackedBlock, the bases that came last, behind a word with the last ones before
    """

    def __init__(self, kept: Kept, kmers: int, known: np.ndarray = _NONE, part: int = 0, parts: int = 1) -> None:
        self.k = kept.k
        self._grows = kept.grows
        self._part, self._parts = part, parts
        self.bases = 0
        self.searched = 0
        self.structure = structure_for(kept, min(kmers, 4**kept.k), part, parts)
        self.block = room_for_packed(0)
        for begin in range(0, len(known), _AT_ONCE):
            some = cupy().asarray(known[begin : begin + _AT_ONCE])
            self.structure = self.structure.with_room(len(some))
            self.structure.add_known(some)

    def places_behind(self, words: int, last: int | None) -> int:
        """Places that are searched next when so many words have come, before the place `last`."""
        whole = self.bases + words * BASES_A_WORD - self.k + 1
        return max(0, (whole if last is None else min(whole, last)) - self.searched)

    def words_of(self, share: slice) -> slice:
        """The words of the next block that the k-mers of a share of the next places need."""
        before = self.searched - self.bases
        return slice((before + share.start) // BASES_A_WORD, -(-(before + share.stop + self.k - 1) // BASES_A_WORD))

    def append(self, block: PackedBlock, words: int) -> PackedBlock:
        """Append a block of so many words to the stream; those before them have been searched.

        block : their bases, packed, behind the word before; where a share of its places is searched, those of
            `words_of` suffice

        Returns
        -------
        the `block`, which knows its place in the stream
        """
        assert self.searched > self.bases - self.k
        self.block = block._replace(first=self.bases - BASES_A_WORD)
        self.bases += words * BASES_A_WORD
        return self.block

    def search(self, answers: Any, last: int | None = None, number: int = 0, of: int = 1) -> int:
        """Take the k-mers that begin behind those that were taken before, and before the place `last`: without it,
        all that the stream has whole.

        answers : uint8[…] on the device, which the structure has prepared, takes what each place is
        number, of : which of so many equal shares of these places it takes, of a dictionary that stays as it is;
            answers of others stay as they are

        Returns
        -------
        places, of all shares
        """
        assert of == 1 or not self._grows
        first, count = self.searched, self.places_behind(0, last)
        if self._grows:
            self.structure = self.structure.with_room(count)
        places = share_of_places(count, number, of)
        stretch = Stretch(first + places.start, first + places.stop, self._part, self._parts)
        self.structure.insert(self.block, stretch, answers[places])
        self.searched += count
        return count

    def counts_of(self, kmers: Any) -> Any:
        """How often each of some k-mers of the stream, uint64[n] on the device, has come: int32[n] or int64[n] there,
        by `place_type` of all its places; of those of other parts 0."""
        counts = cupy().empty(len(kmers), place_type(self.bases))
        self.structure.look_up_counts(kmers, counts)
        return counts

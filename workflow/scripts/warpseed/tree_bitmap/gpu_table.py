"""The k-mers of a stream in a GPU's memory: a structure, which grows as bases come."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpseed.compute.gpu import cupy
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap.gpu_fast import PackedBlock, Stretch
from warpseed.tree_bitmap.gpu_packed import packed_blocks
from warpseed.tree_bitmap.gpu_structures import Kept, structure_for
from warpseed.tree_bitmap.stream import place_type

__all__ = ["DeviceKmers", "search_there"]

_AT_ONCE = 1 << 20
"""K-mers that are known before which go to the table together: fewer than a block's, for which each part has room."""
_NONE = np.empty(0, np.uint64)


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
    """

    def __init__(self, kept: Kept, kmers: int, known: np.ndarray = _NONE, part: int = 0, parts: int = 1) -> None:
        self.k = kept.k
        self._grows = kept.grows
        self._part, self._parts = part, parts
        self.bases = 0
        self.searched = 0
        self.structure = structure_for(kept, min(kmers, 4**kept.k), part, parts)
        for begin in range(0, len(known), _AT_ONCE):
            some = cupy().asarray(known[begin : begin + _AT_ONCE])
            self.structure = self.structure.with_room(len(some))
            self.structure.add_known(some)

    def places_behind(self, words: int, last: int) -> int:
        """Places that are searched next when so many words have come, before the place `last`."""
        return max(0, min(self.bases + words * BASES_A_WORD - self.k + 1, last) - self.searched)

    def words_of(self, share: slice) -> slice:
        """The words of the next block that the k-mers of a share of the next places need, if there are any: 0 is the
        word before it."""
        before = self.searched - self.bases + BASES_A_WORD
        return slice((before + share.start) // BASES_A_WORD, -(-(before + share.stop + self.k - 1) // BASES_A_WORD))

    def prepare(self, into: Any) -> None:
        """Make what a `search` writes to, on the device, ready for it, on the current stream. (A structure may become
        one that makes it ready itself until then, but never the other way.)"""
        self.structure.prepare(into)

    def search(self, block: PackedBlock, words: int, places: int, share: slice, into: Any) -> None:
        """Take the next block of the stream, and the k-mers of a share of the next places.

        words : that the block has behind the first, of which those of `words_of` suffice
        places : that are searched next, of all shares
        share : of them; of a dictionary that grows all
        into : as of `Structure.insert`, on the device, prepared: of the share
        """
        assert block.first == self.bases - BASES_A_WORD and self.searched > self.bases - self.k
        if self._grows:
            assert share == slice(0, places)
            self.structure = self.structure.with_room(places)
        stretch = Stretch(self.searched + share.start, self.searched + share.stop, self._part, self._parts)
        self.structure.insert(block, stretch, into)
        self.bases += words * BASES_A_WORD
        self.searched += places

    def counts_of(self, kmers: Any) -> Any:
        """How often each of some k-mers of the stream, uint64[n] on the device, has come: int32[n] or int64[n] there,
        by `place_type` of all its places; of those of other parts 0."""
        counts = cupy().empty(len(kmers), place_type(self.bases))
        self.structure.look_up_counts(kmers, counts)
        return counts


def search_there(kmers: DeviceKmers, codes: Any, answers: Any, bases: int) -> int:
    """Take a stream that lies on the current device whole.

    Parameters
    ----------
    kmers : that have come before
    codes : uint8[n]
    answers : uint8[n] there, takes what each place is that a k-mer may begin at
    bases : of a block, 32·m

    Returns
    -------
    how many places these are
    """
    kmers.prepare(answers)
    given, last = 0, max(0, len(codes) - kmers.k + 1)
    for block, words in packed_blocks(codes, bases):
        places = kmers.places_behind(words, last)
        kmers.search(block, words, places, slice(0, places), answers[given : given + places])
        given += places
    return given

"""The k-mers of a stream in a GPU's memory: a structure, which grows as bases come, and the last of these, packed."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpseed.compute.gpu import argsort, cupy, fill_bytes, launch
from warpseed.compute.ranges import equal_share
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap.gpu_fast import PackedBlock, Stretch, pack_codes
from warpseed.tree_bitmap.gpu_structures import Kept, structure_for
from warpseed.tree_bitmap.stream import NEW

__all__ = ["DeviceKmers", "order_of"]

_BLOCK = 256
_AT_ONCE = 1 << 20
"""K-mers that are known before which go to the table together: fewer than a block's, for which each part has room."""
_NONE = np.empty(0, np.uint64)


def order_of(turns: Any, most: int) -> Any:
    """The order of turns, uint64[n] on the device, none above `most`, as a stream of so many bases has them: half of
    their bits are sorted where that does."""
    return argsort(turns.astype(np.uint32) if most < 1 << 32 else turns)


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
    """

    def __init__(self, kept: Kept, kmers: int, known: np.ndarray = _NONE, part: int = 0, parts: int = 1) -> None:
        self.k = kept.k
        self._grows = kept.grows
        self._part, self._parts = part, parts
        self.bases = 0
        self._searched = 0
        """places whose k-mers are in the structure, or in another part"""
        xp = cupy()
        self.structure = structure_for(kept, min(kmers, 4**kept.k))
        # A word before the block has the last bases of the one before.
        self._block = PackedBlock(xp.zeros(2, np.uint64), xp.zeros(2, np.uint64), -BASES_A_WORD)
        self._words = 0
        """words of the block"""
        for begin in range(0, len(known), _AT_ONCE):
            some = xp.asarray(known[begin : begin + _AT_ONCE])
            self.structure = self.structure.with_room(len(some))
            self.structure.add_known(some, part, parts)

    def append(self, codes: Any) -> None:
        """Append bases, uint8[32·n] on the device, to the stream; those before them have been searched."""
        xp, words = cupy(), len(codes) // BASES_A_WORD
        assert self._searched > self.bases - self.k
        old, first = self._block, self.bases - BASES_A_WORD
        if words + 2 > len(old.words):
            self._block = PackedBlock(xp.zeros(words + 2, np.uint64), xp.zeros(words + 2, np.uint64), first)
        else:
            self._block = old._replace(first=first)
        for array, before in zip(self._block[:2], old[:2], strict=True):
            array[:1] = before[self._words : self._words + 1]
        self._words = words
        launch(pack_codes, words, _BLOCK, codes.view(np.uint64), 1, self._block.words, self._block.marks)
        self.bases += words * BASES_A_WORD

    def search(self, answers: Any, last: int | None = None, number: int = 0, of: int = 1) -> int:
        """Take the k-mers that begin behind those that were taken before, and before the place `last`: without it,
        all that the stream has whole.

        answers : uint8[…] on the device, takes what each place is
        number, of : which of so many equal shares of these places it takes, of a dictionary that stays as it is;
            answers of others stay as they are

        Returns
        -------
        places, of all shares
        """
        assert of == 1 or not self._grows
        whole = self.bases - self.k + 1
        first, last = self._searched, max(self._searched, whole if last is None else min(whole, last))
        if self._grows:
            self.structure = self.structure.with_room(last - first)
        places = equal_share(last - first, number, of)
        mine = answers[places]
        fill_bytes(mine, int(NEW))
        stretch = Stretch(first + places.start, first + places.stop, self._part, self._parts)
        self.structure.insert(self._block, stretch, mine)
        self._searched = last
        return last - first

    def counted(self) -> tuple[Any, Any, Any]:
        """Of all k-mers of the structure their codes, turns and counts, uint64[d] each on the device, by their turns;
        the structure is given up."""
        codes, turns, counts = self.structure.held()
        del self.structure  # sorting wants its memory
        order = order_of(turns, self.bases)
        return codes[order], turns[order], counts[order]

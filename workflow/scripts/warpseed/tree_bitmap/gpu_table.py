"""The k-mers of a stream in a GPU's memory: a structure, which grows as bases come, and the last of these, packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpseed.compute.gpu import cupy, fill_bytes, launch
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap.gpu_fast import BLOCK, PackedBlock, Stretch, pack_codes
from warpseed.tree_bitmap.gpu_shares import share_of_places
from warpseed.tree_bitmap.gpu_structures import Kept, structure_for
from warpseed.tree_bitmap.stream import NEW, place_type

__all__ = ["DeviceKmers", "room_for_packed"]

_AT_ONCE = 1 << 20
"""K-mers that are known before which go to the table together: fewer than a block's, for which each part has room."""
_NONE = np.empty(0, np.uint64)


def room_for_packed(bases: int) -> PackedBlock:
    """Room on the current device for a block of so many bases, a word before them and one behind."""
    words = bases // BASES_A_WORD + 2
    return PackedBlock(cupy().zeros(words, np.uint64), cupy().zeros(words, np.uint64), -BASES_A_WORD)


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
        self._words = 0
        """words of the block"""
        for begin in range(0, len(known), _AT_ONCE):
            some = cupy().asarray(known[begin : begin + _AT_ONCE])
            self.structure = self.structure.with_room(len(some))
            self.structure.add_known(some)

    def words_of(self, words: int, last: int, number: int, of: int) -> list[slice]:
        """Spans of the next words that the search of a share of their places, and the block behind them, need: those of
        the share's k-mers, if there are any, and the last word, whose bases the next block's first k-mers begin with.

        words : of the block that is appended next
        last, number, of : as those of `search`
        """
        share = share_of_places(self._places(self.bases + words * BASES_A_WORD, last), number, of)
        before = self.searched - self.bases
        begin, end = before + share.start, before + share.stop + self.k - 1
        own = slice(max(0, begin // BASES_A_WORD), min(words, -(-end // BASES_A_WORD)))
        return [own, slice(words - 1, words)]

    def append(
        self, codes: Any, packed: PackedBlock | None = None, spans: Sequence[slice] | None = None
    ) -> PackedBlock:
        """Append bases, uint8[32·n] on the device, to the stream; those before them have been searched.

        packed : takes them, packed; without it they take the place of those before
        spans : of their words, which alone have come; None for all. What others hold is of an earlier block: no k-mer
            of the share that needs the spans has a base there

        Returns
        -------
        the `block` that they are
        """
        words, before = len(codes) // BASES_A_WORD, self.block
        assert self.searched > self.bases - self.k
        if packed is None:
            packed = before if words + 2 <= len(before.words) else room_for_packed(len(codes))
        for array, old in zip(packed[:2], before[:2], strict=True):
            array[:1] = old[self._words : self._words + 1]
        eights = codes.view(np.uint64).reshape(words, -1)
        for span in [slice(0, words)] if spans is None else spans:
            some = eights[span]
            launch(pack_codes, len(some), BLOCK, some.reshape(-1), 1 + span.start, packed.words, packed.marks)
        self.block, self._words = packed._replace(first=self.bases - BASES_A_WORD), words
        self.bases += words * BASES_A_WORD
        return self.block

    def _places(self, bases: int, last: int | None) -> int:
        """Places that are searched next, of a stream of so many bases so far, before the place `last`."""
        whole = bases - self.k + 1
        return max(0, (whole if last is None else min(whole, last)) - self.searched)

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
        first, count = self.searched, self._places(self.bases, last)
        if self._grows:
            self.structure = self.structure.with_room(count)
        places = share_of_places(count, number, of)
        mine = answers[places]
        fill_bytes(mine, int(NEW))
        stretch = Stretch(first + places.start, first + places.stop, self._part, self._parts)
        self.structure.insert(self.block, stretch, mine)
        self.searched += count
        return count

    def counts_of(self, kmers: Any) -> Any:
        """How often each of some k-mers of the stream, uint64[n] on the device, has come: int32[n] or int64[n] there,
        by `place_type` of all its places; of those of other parts 0."""
        counts = cupy().empty(len(kmers), place_type(self.bases))
        self.structure.look_up_counts(kmers, counts)
        return counts

"""The k-mers of a stream in a GPU's memory: a table, which grows as bases come, and the last of these, packed."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpseed.compute.gpu import argsort, cupy, launch, sort, view
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap.gpu_fast import (
    SLOTS_A_BUCKET,
    KmerTable,
    PackedBlock,
    Stretch,
    insert_kmers,
    insert_known,
    move_slots,
    pack_codes,
)
from warpseed.tree_bitmap.slots import EMPTY
from warpseed.tree_bitmap.stream import NEW, KmerCounts

__all__ = ["SLOT_BYTES", "DeviceKmers", "slots_for"]

SLOT_BYTES = 16
_BLOCK = 256
_LOAD = 0.75
"""How full a table may be."""
_AT_ONCE = 1 << 20
"""K-mers that are known before which go to the table together: fewer than a block's, for which each part has room."""
_NONE = np.empty(0, np.uint64)


class DeviceKmers:
    """The distinct k-mers of a stream on the current device, which grow as blocks of bases come.

    Parameters
    ----------
    k : bases of a k-mer, 1 to 31
    kmers : how many there will be, about
    known : uint64[d], codes of distinct k-mers that are seen before the stream begins
    grows : whether the k-mers of the stream are seen, too, from their first place on
    counting : whether k-mers are counted
    part, parts : k-mers are dealt out to so many parts by their hash, and only those of one are taken
    """

    def __init__(
        self, k: int, kmers: int, known: np.ndarray = _NONE, *,
        grows: bool = True, counting: bool = False, part: int = 0, parts: int = 1,
    ) -> None:  # fmt: skip
        self.k = k
        self._grows = grows
        self._part, self._parts = part, parts
        self._bases = 0
        """bases that have come"""
        self._searched = 0
        """places whose k-mers are in the table, or in another part"""
        self._most_used = 0
        """slots that may be used, at most"""
        xp = cupy()
        slots = slots_for(min(kmers, 4**k))
        counts = view(xp.zeros(slots if counting else 0, np.uint64))
        self.table = KmerTable(_empty_slots(slots), counts, view(xp.zeros(1, np.uint64)), k)
        # A word before the block has the last bases of the one before.
        self._block = PackedBlock(xp.zeros(2, np.uint64), xp.zeros(2, np.uint64), -BASES_A_WORD)
        self._words = 0
        """words of the block"""
        for begin in range(0, len(known), _AT_ONCE):
            self._add_known(xp.asarray(known[begin : begin + _AT_ONCE]))

    def _add_known(self, kmers: Any) -> None:
        self._make_slots(len(kmers))
        launch(insert_known, len(kmers), _BLOCK, self.table, view(kmers), self._part, self._parts)

    def append(self, codes: Any) -> None:
        """Append bases, uint8[32·n] on the device, to the stream; those before them have been searched."""
        xp, words = cupy(), len(codes) // BASES_A_WORD
        assert self._searched > self._bases - self.k
        old, first = self._block, self._bases - BASES_A_WORD
        if words + 2 > len(old.words):
            self._block = PackedBlock(xp.zeros(words + 2, np.uint64), xp.zeros(words + 2, np.uint64), first)
        else:
            self._block = old._replace(first=first)
        for array, before in zip(self._block[:2], old[:2], strict=True):
            array[:1] = before[self._words : self._words + 1]
        self._words = words
        launch(pack_codes, words, _BLOCK, codes, 1, view(self._block.words), view(self._block.marks))
        self._bases += words * BASES_A_WORD

    def search(self, answers: Any, last: int | None = None) -> int:
        """Take the k-mers that begin behind those that were taken before, and before the place `last`: without it,
        all that the stream has whole.

        answers : uint8[…] on the device, takes what each place is

        Returns
        -------
        places
        """
        whole = self._bases - self.k + 1
        first, last = self._searched, max(self._searched, whole if last is None else min(whole, last))
        if self._grows:
            self._make_slots(last - first)
        answers[: last - first] = NEW
        stretch = Stretch(first, last, self._part, self._parts, self._grows)
        block = self._block._replace(words=view(self._block.words), marks=view(self._block.marks))
        launch(insert_kmers, last - first, _BLOCK, self.table, block, stretch, view(answers))
        self._searched = last
        return last - first

    def distinct(self) -> np.ndarray:
        """The codes of all k-mers of the table, sorted: uint64[d]."""
        codes = cupy().asarray(self.table.slots)[:, 0]
        codes = codes[codes != EMPTY]
        sort(codes)
        return codes.get()

    def counted(self) -> KmerCounts:
        """All k-mers of the table by their first places, with their counts; the table is given up."""
        xp = cupy()
        slots, counts = (xp.asarray(array) for array in (self.table.slots, self.table.counts))
        held = xp.flatnonzero(slots[:, 0] != EMPTY)
        codes, turns, counts = slots[held, 0], slots[held, 1], counts[held]
        self.table = self.table._replace(slots=_empty_slots(0), counts=view(xp.zeros(0, np.uint64)))
        del held, slots  # and the table: sorting wants their memory
        order = argsort(turns)
        places = turns[order] - np.uint64(1)
        return KmerCounts(codes[order].get(), places.get().view(np.int64), counts[order].get().view(np.int64))

    def _make_slots(self, kmers: int) -> None:
        """Let the table grow, if so many more k-mers could make it too full."""
        most = 4**self.k
        if min(self._most_used + kmers, most) > _LOAD * len(self.table.slots):
            self._most_used = int(cupy().asarray(self.table.used).get()[0])
        if (wanted := min(self._most_used + kmers, most)) > _LOAD * len(self.table.slots):
            slots = min(max(slots_for(wanted), 2 * len(self.table.slots)), slots_for(most))
            counts = view(cupy().zeros(slots if len(self.table.counts) else 0, np.uint64))
            larger = self.table._replace(slots=_empty_slots(slots), counts=counts)
            launch(move_slots, len(self.table.slots), _BLOCK, self.table, larger)
            self.table = larger
        self._most_used += kmers


def slots_for(kmers: int) -> int:
    """Slots of a table of so many k-mers: whole buckets."""
    return SLOTS_A_BUCKET * int(kmers / _LOAD / SLOTS_A_BUCKET + 2)


def _empty_slots(slots: int) -> Any:
    empty = cupy().empty((slots, 2), np.uint64)
    empty[...] = EMPTY
    return view(empty)

"""The k-mers of a stream in a GPU's memory: the stream, packed, and a table of its k-mers, which grow as bases come."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpseed.compute.gpu import argsort, cupy, launch, sort, view
from warpseed.tree_bitmap.gpu_fast import (
    PLACE_BITS,
    SLOTS_A_BUCKET,
    KmerTable,
    Stretch,
    insert_kmers,
    move_slots,
    pack_codes,
    read_codes,
)
from warpseed.tree_bitmap.slots import EMPTY
from warpseed.tree_bitmap.stream import NEW, KmerCounts

__all__ = ["BASES_A_WORD", "DeviceKmers", "slots_for"]

BASES_A_WORD = 32
_BLOCK = 256
_SLACK = 2
"""Words behind the stream's that are read, and mean nothing."""
_LOAD = 0.75
"""How full a table may be."""
_AT_ONCE = 1 << 23
"""Places of k-mers that are known before which are searched together."""


class DeviceKmers:
    """The distinct k-mers of a stream on the current device, and the stream; both grow as blocks come.

    Parameters
    ----------
    k : bases of a k-mer, 1 to 31
    bases : how long the stream will be, about
    kmers : how many the table will have, about; None for one at each place
    counting : whether k-mers are counted
    part, parts : k-mers are dealt out to so many parts by their hash, and only those of one are taken
    """

    def __init__(
        self, k: int, bases: int, kmers: int | None = None, *, counting: bool = False, part: int = 0, parts: int = 1
    ) -> None:
        self.k = k
        self.part, self.parts = part, parts
        self._words = 0
        """words that the stream takes so far"""
        self._searched = 0
        """places whose k-mers are in the table, or in another part"""
        self._grows = True
        self._most_used = 0
        """slots that may be used, at most"""
        xp = cupy()
        room = bases // BASES_A_WORD + 2 + _SLACK
        slots = slots_for(min(bases if kmers is None else kmers, 4**k))
        self.table = KmerTable(
            view(xp.zeros(room, xp.uint64)),
            view(xp.zeros(room, xp.uint64)),
            _empty_slots(slots),
            view(xp.zeros(slots if counting else 0, xp.uint64)),
            view(xp.zeros(1, xp.uint64)),
            k,
        )

    def append(self, codes: Any) -> None:
        """Append bases, uint8[32·n] on the device, to the stream."""
        more = len(codes) // BASES_A_WORD
        self._make_room(more)
        launch(pack_codes, more, _BLOCK, codes, self._words, self.table.words, self.table.marks)
        self._words += more

    def append_kmers(self, kmers: np.ndarray) -> None:
        """Append k-mers by their codes, uint64[n], each for itself, to the stream."""
        self._make_room(len(kmers))
        xp = cupy()
        to = slice(self._words, self._words + len(kmers))
        xp.asarray(self.table.words)[to] = xp.asarray(kmers << np.uint64(64 - 2 * self.k))
        xp.asarray(self.table.marks)[to] = np.uint64(0x5555_5555_5555_5555 >> (2 * self.k))
        self._words += len(kmers)

    def begin(self, grows: bool) -> int:
        """Take all k-mers so far, behind which is no base, as seen. What comes next is, too, if the table `grows`.

        Returns
        -------
        where what is appended next begins
        """
        answers = cupy().empty(min(_AT_ONCE, self._words * BASES_A_WORD), np.uint8)
        while self.search(answers, self._searched + _AT_ONCE, _AT_ONCE // BASES_A_WORD):
            pass
        self._searched = self._words * BASES_A_WORD
        self._grows = grows
        return self._searched

    def search(self, answers: Any, last: int | None = None, kmers: int | None = None) -> int:
        """Take the k-mers that begin behind those that were taken before, and before the place `last`: without it,
        all that the stream has whole.

        answers : uint8[…] on the device, takes what each place is
        kmers : how many there are at most, if not at each place

        Returns
        -------
        places
        """
        whole = self._words * BASES_A_WORD - self.k + 1
        first, last = self._searched, max(self._searched, whole if last is None else min(whole, last))
        self._make_slots(last - first if kmers is None else min(kmers, last - first))
        answers[: last - first] = NEW
        stretch = Stretch(first, last, self.part, self.parts, self._grows)
        launch(insert_kmers, last - first, _BLOCK, self.table, stretch, view(answers))
        self._searched = last
        return last - first

    def distinct(self) -> np.ndarray:
        """The codes of all k-mers of the table, sorted: uint64[d]."""
        codes = self._codes_at(self._places()[0])
        sort(codes)
        return codes.get()

    def counted(self) -> KmerCounts:
        """All k-mers of the table by their first places, with their counts; the table is given up."""
        xp = cupy()
        places, held = self._places()
        counts = xp.asarray(self.table.counts)[held]
        self.table = self.table._replace(slots=_empty_slots(0), counts=view(xp.zeros(0, xp.uint64)))
        del held  # and the table: sorting wants their memory
        order = argsort(places)
        places = places[order]
        return KmerCounts(self._codes_at(places).get(), places.get().view(np.int64), counts[order].get().view(np.int64))

    def _places(self) -> tuple[Any, Any]:
        """The first places of all k-mers, in any order, and the slots that hold them."""
        xp = cupy()
        slots = xp.asarray(self.table.slots)
        held = xp.flatnonzero(slots != EMPTY)
        return slots[held] & np.uint64((1 << PLACE_BITS) - 1), held

    def _codes_at(self, places: Any) -> Any:
        codes = cupy().empty(len(places), np.uint64)
        launch(read_codes, len(places), _BLOCK, self.table, view(places), view(codes))
        return codes

    def _make_room(self, words: int) -> None:
        """Let the stream grow by so many words."""
        needed = self._words + words + _SLACK
        if needed > len(self.table.words):
            room = max(needed, 2 * len(self.table.words))
            self.table = self.table._replace(words=_grown(self.table.words, room), marks=_grown(self.table.marks, room))

    def _make_slots(self, places: int) -> None:
        """Let the table grow, if so many more k-mers could make it too full."""
        if not self._grows:
            return
        most = 4**self.k
        if min(self._most_used + places, most) > _LOAD * len(self.table.slots):
            self._most_used = int(cupy().asarray(self.table.used).get()[0])
        if (kmers := min(self._most_used + places, most)) > _LOAD * len(self.table.slots):
            slots = min(max(slots_for(kmers), 2 * len(self.table.slots)), slots_for(most))
            counts = view(cupy().zeros(slots if len(self.table.counts) else 0, np.uint64))
            larger = self.table._replace(slots=_empty_slots(slots), counts=counts)
            launch(move_slots, len(self.table.slots), _BLOCK, self.table, larger)
            self.table = larger
        self._most_used += places


def slots_for(kmers: int) -> int:
    """Slots of a table of so many k-mers: whole buckets."""
    return SLOTS_A_BUCKET * int(kmers / _LOAD / SLOTS_A_BUCKET + 2)


def _empty_slots(slots: int) -> Any:
    empty = cupy().empty(slots, np.uint64)
    empty[...] = EMPTY
    return view(empty)


def _grown(array: Any, room: int) -> Any:
    """An array with more room, and zeros there."""
    xp = cupy()
    larger = xp.zeros(room, np.uint64)
    larger[: len(array)] = xp.asarray(array)
    return view(larger)

"""The structures that keep the k-mers of a stream in a GPU's memory, and which of them does.

A `HashTable` has slots for the k-mers that there are; a `DirectTable` (kernels in `gpu_direct`) a bit, and where k-mers
come to be seen a turn, for each that there can be; a `TurnTable` (`gpu_fast`, as the first) turns alone, for those of
its part. The smaller one of a hash table and a direct-addressed one, which the other two are, serves: docs/decisions.md
has the figures.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.gpu import cupy, fill_bytes, launch
from warpseed.tree_bitmap.gpu_direct import (
    WORD_BITS,
    ShortKmers,
    count_short_kmers,
    insert_short_kmers,
    insert_short_kmers_of_part,
    insert_short_known,
    look_up_short_counts,
    spread_slots,
)
from warpseed.tree_bitmap.gpu_fast import (
    BLOCK,
    PLACES_A_PART,
    SLOTS_A_BUCKET,
    KmerTable,
    PackedBlock,
    Stretch,
    insert_kmers,
    insert_kmers_of_part,
    insert_known,
    look_up_counts,
    look_up_kmers,
    move_slots,
)
from warpseed.tree_bitmap.gpu_parts import hashes_of_part, most_of_part
from warpseed.tree_bitmap.slots import EMPTY
from warpseed.tree_bitmap.stream import NEW

__all__ = [
    "DirectTable",
    "HashTable",
    "Kept",
    "Structure",
    "TurnTable",
    "slots_for",
    "structure_for",
    "table_bytes",
    "tells_bits",
]

_SLOT_BYTES, _TURN_BYTES, _COUNT_BYTES = 16, 8, 8
_FILTER_BITS = 16
"""Of a filter, for each k-mer that its table has room for."""
_LOAD, _MOST_LOAD = 0.6, 0.8
"""How full a hash table is made for, if it is known what comes, and how full it gets before it grows. That it might be
so full, by what was inserted, is seldom the case before it is, as it tells on the way how full it is: then the host
asks, and waits."""
_MOST_BITS_K = 13
"""The longest k-mers that have bits beside turns: 8 MiB of bits are in the second-level cache with all else."""
_COUNTING_THREADS = 1 << 18
"""As many as are resident at once: the fewer, the less often blocks add what they have counted."""


class Kept(NamedTuple):
    """What is kept of k-mers."""

    k: int
    grows: bool = True
    """whether the k-mers of the stream are seen, too, from their first place on"""
    counting: bool = False
    """whether they are counted"""


def tells_bits(kept: Kept, parts: int) -> bool:
    """Whether a structure of one of so many parts tells of each place a bit: what it is says no part alone."""
    return kept.grows and parts > 1


def slots_for(kmers: int) -> int:
    """Slots of a hash table of so many k-mers: whole buckets."""
    return SLOTS_A_BUCKET * int(kmers / _LOAD / SLOTS_A_BUCKET + 2)


def _hashed_bytes(kept: Kept, slots: int) -> int:
    filter_bytes = 0 if kept.grows else _filter_words(slots) * WORD_BITS // 8
    return slots * (_SLOT_BYTES + (_COUNT_BYTES if kept.counting else 0)) + filter_bytes


def _filter_words(slots: int) -> int:
    """Words of the filter before a hash table of so many slots."""
    return int(_LOAD * slots) * _FILTER_BITS // WORD_BITS + 1


def _has_bits(kept: Kept) -> bool:
    """Whether a direct-addressed table has a bit for each k-mer, and is not one of turns alone."""
    return kept.k <= _MOST_BITS_K or not kept.grows


def _direct_bytes(kept: Kept, parts: int) -> int:
    each = (_TURN_BYTES if kept.grows else 0) + (_COUNT_BYTES if kept.counting else 0)
    if _has_bits(kept):
        return 4**kept.k * each + 4 * _words_of(kept.k)
    return most_of_part(kept.k, parts) * each


def _words_of(k: int) -> int:
    """Words that have a bit for each k-mer; at least a sector of memory."""
    return max(8, 4**k // WORD_BITS)


def table_bytes(kept: Kept, kmers: int, parts: int) -> int:
    """Bytes of the structure for so many k-mers of one of so many parts."""
    return min(_direct_bytes(kept, parts), _hashed_bytes(kept, slots_for(kmers)))


def structure_for(kept: Kept, kmers: int, part: int, parts: int) -> Structure:
    """An empty structure on the current device, with room for so many k-mers of one of so many parts."""
    return _structure(kept, slots_for(kmers), part, parts)


def _structure(kept: Kept, slots: int, part: int, parts: int) -> HashTable | TurnTable | DirectTable:
    """A hash table of so many slots, or the direct-addressed one that serves instead."""
    if _direct_bytes(kept, parts) > _hashed_bytes(kept, slots):
        return HashTable(kept, slots, part, parts)
    return DirectTable(kept, part, parts) if _has_bits(kept) else TurnTable(kept, part, parts)


def _empty_words(shape: tuple[int, ...]) -> Any:
    """uint64[shape], EMPTY."""
    words = cupy().empty(shape, np.uint64)
    fill_bytes(words, int(EMPTY) & 0xFF)
    return words


class Structure(ABC):
    """The k-mers so far of one of so many parts, on the current device. Without more it has room for all."""

    def __init__(self, kept: Kept, part: int, parts: int) -> None:
        self._kept = kept
        self._part = part, parts
        """(part, parts)"""

    def with_room(self, kmers: int) -> Structure:
        """The structure, or a larger one in its stead, with room for so many k-mers more."""
        return self

    @abstractmethod
    def add_known(self, kmers: Any) -> None:
        """Take those of its part of k-mers, uint64[n] on the device, that are seen before the stream begins."""

    @property
    def _tells_bits(self) -> bool:
        return tells_bits(self._kept, self._part[1])

    def prepare(self, into: Any) -> None:
        """Make what `insert` writes to, on the device, ready for it."""
        fill_bytes(into, 0 if self._tells_bits else int(NEW))

    @abstractmethod
    def insert(self, block: PackedBlock, stretch: Stretch, into: Any) -> None:
        """Take the k-mers of a stretch, which is of its part.

        into : uint8[…], as of `insert_kmers`, or uint32[…], as of `insert_kmers_of_part`, where it `tells_bits`
        """

    def send_count(self, out: np.ndarray) -> None:  # noqa: B027
        """Send the host how many k-mers there are, to pinned memory, uint64[1], if that may decide on more room."""

    def holds_at_most(self, kmers: int) -> None:  # noqa: B027
        """Know that there are no more k-mers than these."""

    @abstractmethod
    def look_up_counts(self, kmers: Any, counts: Any) -> None:
        """Write to `counts`, int32[n] or int64[n], how often each of some k-mers, uint64[n] on the device, has come: 0
        for those of other parts. Each has come: for one that has not, the search may not end."""

    @abstractmethod
    def arrays(self) -> dict[str, Any]:
        """What it consists of, on the device, by name."""


class _OfKmerTable(Structure):
    """What has a `KmerTable`, empty at first, of either slots or turns."""

    def __init__(
        self,
        kept: Kept,
        part: int,
        parts: int,
        *,
        slots: int = 0,
        filter_words: int = 0,
        hashes: slice = slice(0, 0),
    ) -> None:
        super().__init__(kept, part, parts)
        xp, turns = cupy(), hashes.stop - hashes.start
        self.table = KmerTable(
            slots=_empty_words((slots, 2)),
            turns=_empty_words((turns,)),
            repeats=xp.zeros(slots + turns if kept.counting else 0, np.uint64),
            filter=xp.zeros(filter_words, np.uint32),
            used=xp.zeros(1 if slots else 0, np.uint64),
            first_hash=hashes.start,
            k=kept.k,
        )

    def add_known(self, kmers: Any) -> None:
        """As `Structure.add_known`."""
        launch(insert_known, len(kmers), BLOCK, self.table, kmers, *self._part)

    def insert(self, block: PackedBlock, stretch: Stretch, into: Any) -> None:
        """As `Structure.insert`: a thread a place, or, where k-mers have parts, warps with queues."""
        assert (stretch.part, stretch.parts) == self._part
        places = stretch.last - stretch.first
        if self._tells_bits:
            search, threads = insert_kmers_of_part, -(-places // (PLACES_A_PART * stretch.parts))
        else:
            search, threads = insert_kmers, places
        launch(search, threads, BLOCK, self.table, block, stretch, into)

    def look_up_counts(self, kmers: Any, counts: Any) -> None:
        """As `Structure.look_up_counts`."""
        launch(look_up_counts, len(kmers), BLOCK, self.table, kmers, *self._part, counts)


class HashTable(_OfKmerTable):
    """A slot for each k-mer that there is, and some more."""

    def __init__(self, kept: Kept, slots: int, part: int, parts: int) -> None:
        super().__init__(kept, part, parts, slots=slots, filter_words=0 if kept.grows else _filter_words(slots))
        self._most = most_of_part(kept.k, parts)
        """k-mers that may ever come"""
        self._most_used = 0
        """slots that may be used, at most"""

    def with_room(self, kmers: int) -> Structure:
        """As `Structure.with_room`."""
        there = len(self.table.slots)
        self._most_used += kmers
        if min(self._most_used, self._most) <= int(_MOST_LOAD * there):
            return self
        self._most_used = int(self.table.used[0]) + kmers
        wanted = min(self._most_used, self._most)
        if wanted <= int(_LOAD * there):
            return self
        larger = _structure(self._kept, max(slots_for(wanted), 2 * there), *self._part)
        if isinstance(larger, DirectTable):
            launch(spread_slots, there, BLOCK, self.table, larger.table)
            return larger
        if isinstance(larger, HashTable):
            larger.table = larger.table._replace(used=self.table.used)
            larger._most_used = self._most_used
        launch(move_slots, there, BLOCK, self.table, larger.table)
        return larger

    def insert(self, block: PackedBlock, stretch: Stretch, into: Any) -> None:
        """As `Structure.insert`; where k-mers do not come to be seen, they are looked up."""
        if self._kept.grows:
            super().insert(block, stretch, into)
        else:
            launch(look_up_kmers, stretch.last - stretch.first, BLOCK, self.table, block, stretch, into)

    def send_count(self, out: np.ndarray) -> None:
        """As `Structure.send_count`."""
        used: Any = self.table.used
        if self._kept.grows:
            used.get(stream=cupy().cuda.get_current_stream(), out=out, blocking=False)

    def holds_at_most(self, kmers: int) -> None:
        """As `Structure.holds_at_most`."""
        if self._kept.grows:
            self._most_used = min(self._most_used, kmers)

    def arrays(self) -> dict[str, Any]:
        """As `Structure.arrays`."""
        return {"table": self.table.slots.reshape(-1)}


class TurnTable(_OfKmerTable):
    """A turn for each k-mer of a part that there can be, where they come to be seen."""

    def __init__(self, kept: Kept, part: int, parts: int) -> None:
        hashes = hashes_of_part(kept.k, part, parts)
        # (one turn at least, by which kernels know what it is)
        super().__init__(kept, part, parts, hashes=slice(hashes.start, max(hashes.stop, hashes.start + 1)))

    def prepare(self, into: Any) -> None:
        """As `Structure.prepare`: its kernel makes answers NEW itself."""
        if self._tells_bits:
            super().prepare(into)

    def arrays(self) -> dict[str, Any]:
        """As `Structure.arrays`."""
        return {"table": self.table.turns}


class DirectTable(Structure):
    """A place for each k-mer that there can be, with a bit for whether it has been seen."""

    def __init__(self, kept: Kept, part: int, parts: int) -> None:
        super().__init__(kept, part, parts)
        xp, cells = cupy(), 4**kept.k
        turns = _empty_words((cells if kept.grows else 0,))
        seen = xp.zeros(_words_of(kept.k), np.uint32)
        counts = xp.zeros(cells if kept.counting else 0, np.uint64)
        self.table = ShortKmers(seen, turns, counts, kept.k)

    def add_known(self, kmers: Any) -> None:
        """As `Structure.add_known`."""
        launch(insert_short_known, len(kmers), BLOCK, self.table, kmers, *self._part)

    def insert(self, block: PackedBlock, stretch: Stretch, into: Any) -> None:
        """As `Structure.insert`."""
        places = stretch.last - stretch.first
        search = insert_short_kmers_of_part if self._tells_bits else insert_short_kmers
        launch(search, places, BLOCK, self.table, block, stretch, into)
        if len(self.table.counts):
            launch(count_short_kmers, min(places, _COUNTING_THREADS), BLOCK, self.table, block, stretch)

    def look_up_counts(self, kmers: Any, counts: Any) -> None:
        """As `Structure.look_up_counts`; of other parts none were counted."""
        launch(look_up_short_counts, len(kmers), BLOCK, self.table, kmers, counts)

    def arrays(self) -> dict[str, Any]:
        """As `Structure.arrays`."""
        return {name: getattr(self.table, name) for name in ("seen", "turns")}

"""The structures that keep the k-mers of a stream in a GPU's memory, and which of them does.

A direct-addressed table has a place for every k-mer that there can be, a hash table slots for those that there are. The
smaller one is taken. Where k-mers come to be seen, a direct-addressed one has a turn for each, and also a bit, where a
cache holds these: docs/decisions.md has the figures.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from warpseed.compute.gpu import cupy, fill_bytes, launch
from warpseed.tree_bitmap.gpu_direct import (
    WORD_BITS,
    ShortKmers,
    count_short_kmers,
    insert_short_kmers,
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
from warpseed.tree_bitmap.gpu_parts import most_of_part, numbers_of_part
from warpseed.tree_bitmap.slots import EMPTY

__all__ = [
    "DirectTable",
    "HashTable",
    "Kept",
    "Structure",
    "TurnTable",
    "slots_for",
    "structure_for",
    "table_bytes",
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


class Structure(Protocol):
    """The k-mers so far, on the current device."""

    def with_room(self, kmers: int) -> Structure:
        """The structure, or a larger one in its stead, with room for so many k-mers more."""

    def add_known(self, kmers: Any, part: int, parts: int) -> None:
        """Take those of a part of k-mers, uint64[n] on the device, that are seen before the stream begins."""

    def insert(self, block: PackedBlock, stretch: Stretch, answers: Any) -> None:
        """Take the k-mers of a stretch, as `insert_kmers` does."""

    def tell(self, out: np.ndarray) -> None:
        """Send the host how many k-mers there are, to pinned memory, uint64[1], if that may decide on more room."""

    def told(self, kmers: int) -> None:
        """Know that there are so many, at most."""

    def look_up_counts(self, kmers: Any, part: int, parts: int, counts: Any) -> None:
        """Write to `counts`, int32[n] or int64[n], how often each of some k-mers, uint64[n] on the device, has come: 0
        for those of other parts. Each has come: for one that has not, the search may not end."""

    def arrays(self) -> dict[str, Any]:
        """What it consists of, on the device, by name."""


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


def table_bytes(kept: Kept, kmers: int, parts: int = 1) -> int:
    """Bytes of the structure for so many k-mers of one of so many parts."""
    return min(_direct_bytes(kept, parts), _hashed_bytes(kept, slots_for(kmers)))


def structure_for(kept: Kept, kmers: int, part: int = 0, parts: int = 1) -> Structure:
    """An empty structure on the current device, with room for so many k-mers, which are of one of so many parts."""
    return _structure(kept, slots_for(kmers), part, parts)


def _structure(kept: Kept, slots: int, part: int, parts: int) -> HashTable | TurnTable | DirectTable:
    """A hash table of so many slots, or the direct-addressed one that serves instead."""
    if _direct_bytes(kept, parts) > _hashed_bytes(kept, slots):
        return HashTable(kept, slots, part, parts)
    return DirectTable(kept) if _has_bits(kept) else TurnTable(kept, part, parts)


def _empty_words(shape: tuple[int, ...]) -> Any:
    """uint64[shape], EMPTY."""
    words = cupy().empty(shape, np.uint64)
    fill_bytes(words, int(EMPTY) & 0xFF)
    return words


def _empty_table(kept: Kept, *, slots: int = 0, turns: int = 0, filter_words: int = 0) -> KmerTable:
    """A table of no k-mers, with either slots or turns."""
    xp = cupy()
    repeats = xp.zeros(slots + turns if kept.counting else 0, np.uint64)
    filters, used = xp.zeros(filter_words, np.uint32), xp.zeros(1 if slots else 0, np.uint64)
    return KmerTable(_empty_words((slots, 2)), _empty_words((turns,)), repeats, filters, used, 0, kept.k)


def _insert(table: KmerTable, block: PackedBlock, stretch: Stretch, answers: Any) -> None:
    """Have threads insert the k-mers of a stretch: a thread a place, or, where they have parts, warps with queues."""
    places = stretch.last - stretch.first
    if stretch.parts == 1:
        launch(insert_kmers, places, BLOCK, table, block, stretch, answers)
    else:
        threads = -(-places // (PLACES_A_PART * stretch.parts))
        launch(insert_kmers_of_part, threads, BLOCK, table, block, stretch, answers)


class HashTable:
    """A slot for each k-mer that there is, and some more."""

    def __init__(self, kept: Kept, slots: int, part: int, parts: int) -> None:
        filter_words = 0 if kept.grows else _filter_words(slots)
        self.table = _empty_table(kept, slots=slots, filter_words=filter_words)
        self._kept, self._part, self._parts = kept, part, parts
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
        larger = _structure(self._kept, max(slots_for(wanted), 2 * there), self._part, self._parts)
        if isinstance(larger, DirectTable):
            launch(spread_slots, there, BLOCK, self.table, larger.table)
            return larger
        if isinstance(larger, HashTable):
            larger.table = larger.table._replace(used=self.table.used)
            larger._most_used = self._most_used
        launch(move_slots, there, BLOCK, self.table, larger.table)
        return larger

    def add_known(self, kmers: Any, part: int, parts: int) -> None:
        """As `Structure.add_known`."""
        launch(insert_known, len(kmers), BLOCK, self.table, kmers, part, parts)

    def insert(self, block: PackedBlock, stretch: Stretch, answers: Any) -> None:
        """As `Structure.insert`."""
        if self._kept.grows:
            _insert(self.table, block, stretch, answers)
        else:
            launch(look_up_kmers, stretch.last - stretch.first, BLOCK, self.table, block, stretch, answers)

    def tell(self, out: np.ndarray) -> None:
        """As `Structure.tell`."""
        used: Any = self.table.used
        if self._kept.grows:
            used.get(stream=cupy().cuda.get_current_stream(), out=out, blocking=False)

    def told(self, kmers: int) -> None:
        """As `Structure.told`."""
        if self._kept.grows:
            self._most_used = min(self._most_used, kmers)

    def look_up_counts(self, kmers: Any, part: int, parts: int, counts: Any) -> None:
        """As `Structure.look_up_counts`."""
        launch(look_up_counts, len(kmers), BLOCK, self.table, kmers, part, parts, counts)

    def arrays(self) -> dict[str, Any]:
        """As `Structure.arrays`."""
        return {"table": self.table.slots.reshape(-1)}


class TurnTable:
    """A turn for each k-mer of a part that there can be, where they come to be seen."""

    def __init__(self, kept: Kept, part: int, parts: int) -> None:
        numbers = numbers_of_part(kept.k, part, parts)
        self.table = _empty_table(kept, turns=numbers.stop - numbers.start)._replace(first=numbers.start)

    def with_room(self, kmers: int) -> Structure:
        """As `Structure.with_room`: it has it."""
        return self

    def add_known(self, kmers: Any, part: int, parts: int) -> None:
        """As `Structure.add_known`."""
        launch(insert_known, len(kmers), BLOCK, self.table, kmers, part, parts)

    def insert(self, block: PackedBlock, stretch: Stretch, answers: Any) -> None:
        """As `Structure.insert`."""
        _insert(self.table, block, stretch, answers)

    def tell(self, out: np.ndarray) -> None:
        """As `Structure.tell`: it has room for all."""

    def told(self, kmers: int) -> None:
        """As `Structure.told`."""

    def look_up_counts(self, kmers: Any, part: int, parts: int, counts: Any) -> None:
        """As `Structure.look_up_counts`."""
        launch(look_up_counts, len(kmers), BLOCK, self.table, kmers, part, parts, counts)

    def arrays(self) -> dict[str, Any]:
        """As `Structure.arrays`."""
        return {"table": self.table.turns}


class DirectTable:
    """A place for each k-mer that there can be, with a bit for whether it has been seen."""

    def __init__(self, kept: Kept) -> None:
        xp, cells = cupy(), 4**kept.k
        turns = _empty_words((cells if kept.grows else 0,))
        seen = xp.zeros(_words_of(kept.k), np.uint32)
        counts = xp.zeros(cells if kept.counting else 0, np.uint64)
        self.table = ShortKmers(seen, turns, counts, kept.k)

    def with_room(self, kmers: int) -> Structure:
        """As `Structure.with_room`: it has it."""
        return self

    def add_known(self, kmers: Any, part: int, parts: int) -> None:
        """As `Structure.add_known`."""
        launch(insert_short_known, len(kmers), BLOCK, self.table, kmers, part, parts)

    def insert(self, block: PackedBlock, stretch: Stretch, answers: Any) -> None:
        """As `Structure.insert`."""
        places = stretch.last - stretch.first
        launch(insert_short_kmers, places, BLOCK, self.table, block, stretch, answers)
        if len(self.table.counts):
            launch(count_short_kmers, min(places, _COUNTING_THREADS), BLOCK, self.table, block, stretch)

    def tell(self, out: np.ndarray) -> None:
        """As `Structure.tell`: it has room for all."""

    def told(self, kmers: int) -> None:
        """As `Structure.told`."""

    def look_up_counts(self, kmers: Any, part: int, parts: int, counts: Any) -> None:
        """As `Structure.look_up_counts`; of other parts none were counted."""
        launch(look_up_short_counts, len(kmers), BLOCK, self.table, kmers, counts)

    def arrays(self) -> dict[str, Any]:
        """As `Structure.arrays`."""
        return {name: getattr(self.table, name) for name in ("seen", "turns")}

"""The kernels of the table of a stream's k-mers, played by the CPU; memory is what the pretended CuPy says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from warpseed.tree_bitmap.gpu_answers import TILE
from warpseed.tree_bitmap.gpu_direct import WORD_BITS
from warpseed.tree_bitmap.gpu_fast import KNOWN
from warpseed.tree_bitmap.gpu_parts import hash_of, hashes_of_part
from warpseed.tree_bitmap.slots import EMPTY

from oracles.pretend_gpu import PretendCupy, install

__all__ = ["StreamKernels", "play_table"]

NO_KMER, NEW, SEEN = range(3)


def _bits_at(words: np.ndarray, places: np.ndarray, k: int) -> np.ndarray:
    """The 2k bits that begin at each place, uint64[…]."""
    shifts = (2 * (places % 32)).astype(np.uint64)
    here, behind = words[places // 32], words[places // 32 + 1]
    return (here << shifts | behind >> np.uint64(1) >> np.uint64(63) - shifts) >> np.uint64(64 - 2 * k)


class StreamKernels:
    """The kernels by name. A slot of a table is any that is free: a dictionary knows which k-mer has which."""

    def launch(self, function: Any, threads: int, block: int, *arguments: Any) -> None:
        if threads > 0:
            getattr(self, function.py_func.__name__)(*arguments)

    def pack_codes(self, codes, first_word, words, marks) -> None:
        fours = np.asarray(codes).view(np.uint8).reshape(-1, 32).astype(np.uint64)
        shifts = np.arange(62, -2, -2, dtype=np.uint64)
        there = slice(first_word, first_word + len(fours))
        words[there] = (np.where(fours < 4, fours, np.uint64(0)) << shifts).sum(axis=1, dtype=np.uint64)
        marks[there] = ((fours > 3).astype(np.uint64) << shifts).sum(axis=1, dtype=np.uint64)

    def insert_kmers(self, table, block, stretch, answers) -> None:
        assert stretch.parts == 1
        if len(table.turns):
            answers[: stretch.last - stretch.first] = NEW
        self._insert(table, block, stretch, answers)

    def insert_kmers_of_part(self, table, block, stretch, seen) -> None:
        answers = np.full(stretch.last - stretch.first, NEW, np.uint8)
        self._insert(table, block, stretch, answers)
        _set_bits(seen, answers == SEEN)

    def _insert(self, table, block, stretch, answers) -> None:
        held = _Held(table)
        kmers, mine = _kmers_of(table, block, stretch, answers)
        for i in np.flatnonzero(mine).tolist():
            slot = held.slot_of(kmers[i])
            if slot is None:
                held.take(kmers[i], stretch.first + i + 1)
            else:
                answers[i] = SEEN
                table.repeats[slot if len(table.repeats) else slice(0)] += np.uint64(1)

    def look_up_kmers(self, table, block, stretch, answers) -> None:
        held = np.asarray(table.slots).view(np.ndarray)[:, 0]
        kmers, mine = _kmers_of(table, block, stretch, answers)
        answers[: len(mine)][mine & np.isin(kmers, held[held != EMPTY])] = SEEN

    def insert_known(self, table, kmers, part, parts) -> None:
        held, kmers = _Held(table), np.asarray(kmers).view(np.ndarray)
        for kmer in kmers[_is_of(kmers, table.k, part, parts)]:
            if held.slot_of(kmer) is None:
                held.take(kmer, int(KNOWN))

    def insert_short_kmers(self, table, block, stretch, answers) -> None:
        kmers, mine = _kmers_of(table, block, stretch, answers)
        for i in np.flatnonzero(mine).tolist():
            kmer = int(kmers[i])
            if _has_bit(table, kmer):
                answers[i] = SEEN
            elif not len(table.turns):
                continue
            elif table.turns[kmer] != EMPTY:
                answers[i] = SEEN
                if table.turns[kmer] <= stretch.first:
                    _set_bit(table, kmer)
            else:
                table.turns[kmer] = stretch.first + i + 1

    def insert_short_kmers_of_part(self, table, block, stretch, seen) -> None:
        answers = np.full(stretch.last - stretch.first, NEW, np.uint8)
        self.insert_short_kmers(table, block, stretch, answers)
        _set_bits(seen, answers == SEEN)

    def count_short_kmers(self, table, block, stretch) -> None:
        kmers, mine = _kmers_of(table, block, stretch, np.empty(stretch.last - stretch.first, np.uint8))
        np.add.at(table.counts.view(np.ndarray), kmers[mine].astype(np.int64), np.uint64(1))

    def insert_short_known(self, table, kmers, part, parts) -> None:
        kmers = np.asarray(kmers).view(np.ndarray)
        for kmer in kmers[_is_of(kmers, table.k, part, parts)].tolist():
            _set_bit(table, kmer)
            if len(table.turns):
                table.turns[kmer] = KNOWN

    def spread_slots(self, old, table) -> None:
        for kmer, turn, count in zip(*old.slots.T.tolist(), old.repeats.tolist() or [0] * len(old.slots), strict=True):
            if kmer == EMPTY:
                continue
            if turn == KNOWN:
                _set_bit(table, kmer)
            table.turns[kmer if len(table.turns) else slice(0)] = turn
            table.counts[kmer if len(table.counts) else slice(0)] = count + (turn != KNOWN)

    def look_up_counts(self, table, kmers, part, parts, counts) -> None:
        held, kmers = _Held(table), np.asarray(kmers).view(np.ndarray)
        mine = _is_of(kmers, table.k, part, parts)
        counts[...] = 0
        slots = list(map(held.slot_of, kmers[mine]))
        assert None not in slots
        counts[mine] = table.repeats[slots] + (held.turns[slots] != KNOWN)

    def look_up_short_counts(self, table, kmers, counts) -> None:
        counts[...] = table.counts[kmers.astype(np.int64)]

    def put_answers(self, block, k, stretch, seen, theirs, answers) -> None:
        count, here = stretch.last - stretch.first, np.arange(stretch.first, stretch.last) - block.first
        bits = np.bitwise_or.reduce([np.asarray(each).view(np.ndarray) for each in (seen, *theirs)])
        is_seen = np.unpackbits(bits, count=count, bitorder="little") == 1
        known = _bits_at(np.asarray(block.marks).view(np.ndarray), here, k) == 0
        answers.view(np.uint8)[:count] = np.where(known, np.where(is_seen, SEEN, NEW), NO_KMER)

    def count_new(self, block, k, stretch, answers, counts) -> None:
        _, new = _new_of(block, k, stretch, answers)
        counts[...] = [np.count_nonzero(new[first : first + TILE]) for first in range(0, len(new), TILE)]

    def list_new(self, block, k, stretch, answers, ends, kmers, places) -> None:
        listed, new = _new_of(block, k, stretch, answers)
        assert ends[-1] == np.count_nonzero(new)
        kmers[...] = listed[new]
        places[...] = stretch.first + np.flatnonzero(new)

    def move_slots(self, old, table) -> None:
        held = np.flatnonzero(old.slots[:, 0] != EMPTY)
        kmers, turns = np.asarray(old.slots).view(np.ndarray)[held].T
        there = slice(len(held))
        if len(table.turns):
            there = _index_in(table, kmers)
            table.turns[there] = turns
        else:
            table.slots[there] = old.slots[held]
        if len(table.repeats):
            table.repeats[there] = old.repeats[held]


def _kmers_of(table: Any, block: Any, stretch: Any, answers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The k-mers of a stretch's places, and which are of its part; the answers say where there is none."""
    here = np.arange(stretch.first, stretch.last) - block.first
    words, marks = (np.asarray(array).view(np.ndarray) for array in block[:2])
    kmers, known = _bits_at(words, here, table.k), _bits_at(marks, here, table.k) == 0
    answers[: len(here)][~known] = NO_KMER
    return kmers, known & _is_of(kmers, table.k, stretch.part, stretch.parts)


def _new_of(block: Any, k: int, stretch: Any, answers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The k-mers of a stretch's places, and which come first there and are of its part."""
    here = np.arange(stretch.first, stretch.last) - block.first
    kmers = _bits_at(np.asarray(block.words).view(np.ndarray), here, k)
    is_new = np.asarray(answers).view(np.ndarray)[: len(here)] == NEW
    return kmers, is_new & _is_of(kmers, k, stretch.part, stretch.parts)


def _set_bits(words: np.ndarray, of: np.ndarray) -> None:
    """Set the bits of some places."""
    bits = np.packbits(of, bitorder="little")
    words.view(np.uint8)[: len(bits)] |= bits


def _has_bit(table: Any, kmer: int) -> bool:
    return bool(int(table.seen[kmer // WORD_BITS]) >> kmer % WORD_BITS & 1)


def _set_bit(table: Any, kmer: int) -> None:
    table.seen[kmer // WORD_BITS] |= np.uint32(1 << kmer % WORD_BITS)


def _index_in(table: Any, kmers: Any) -> Any:
    """Where the turns of k-mers are, of a table that has turns by hash."""
    return (hash_of.py_func(kmers, table.k) - np.uint64(table.first_hash)).astype(np.int64)


class _Held:
    """The k-mers of a table, and where they are: in slots, or turns by hash.

    Attributes
    ----------
    turns : uint64[…], those of all slots, or of all hashes
    """

    def __init__(self, table: Any) -> None:
        self._table, self._by_hash = table, len(table.turns) > 0
        self.turns = table.turns if self._by_hash else table.slots[:, 1]
        kmers = np.asarray(table.slots)[:, 0]
        held = np.flatnonzero(kmers != EMPTY)
        self._slots: dict[int, int] = dict(zip(kmers[held].tolist(), held.tolist(), strict=True))
        self._free: Iterator[int] = iter(np.flatnonzero(kmers == EMPTY).tolist())

    def slot_of(self, kmer: np.uint64) -> int | None:
        """Where a k-mer is, if the table has it."""
        if not self._by_hash:
            return self._slots.get(int(kmer))
        index = int(_index_in(self._table, np.array([kmer]))[0])
        return None if self.turns[index] == EMPTY else index

    def take(self, kmer: np.uint64, turn: int) -> None:
        """Take a k-mer that is not there."""
        if self._by_hash:
            self.turns[_index_in(self._table, np.array([kmer]))] = turn
        else:
            slot = self._slots[int(kmer)] = next(self._free)
            self._table.slots[slot] = kmer, turn
            self._table.used[0] += np.uint64(1)


def _is_of(kmers: np.ndarray, k: int, part: int, parts: int) -> np.ndarray:
    """Which k-mers are a part's, bool[…]."""
    hashes, mine = hash_of.py_func(kmers, k), hashes_of_part(k, part, parts)
    return (hashes >= np.uint64(mine.start)) & (hashes < np.uint64(mine.stop))


def play_table(monkeypatch: Any, devices: int = 1) -> PretendCupy:
    """Put a pretended CuPy and these kernels where the library looks for them."""
    from warpseed.compute import device_copies
    from warpseed.compute import gpu as device
    from warpseed.tree_bitmap import gpu_counts, gpu_listing, gpu_packed, gpu_rooms, gpu_structures

    def from_device(value: Any, out: Any = None) -> Any:
        if out is None:
            return value
        out[...] = value
        return out

    package, _ = install(monkeypatch, None, devices)
    for module in (gpu_listing, gpu_packed, gpu_rooms, gpu_structures):
        monkeypatch.setattr(module, "launch", StreamKernels().launch)
    for module in (device_copies, gpu_counts, gpu_rooms):
        monkeypatch.setattr(module, "from_device", from_device)
    monkeypatch.setattr(device, "_probe", lambda size: None)
    return package

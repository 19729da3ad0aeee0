"""The fast tier on the GPU: blocks of a stream go to a table on the device, and what each place is comes back in order.

A block is copied to the device while the one before it is searched and the answers of the one before that come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from warpseed.compute.gpu import (
    argsort,
    cupy,
    free_memory,
    launch,
    on_device,
    on_own_stream,
    pinned,
    sort,
    view,
)
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import MemoryLimitError
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
from warpseed.tree_bitmap.seeds import find_seeded
from warpseed.tree_bitmap.slots import EMPTY
from warpseed.tree_bitmap.stream import NEW, NO_BASE, KmerCounts

__all__ = ["BLOCK_BASES", "DeviceKmers", "find_answers", "iter_answers"]

BLOCK_BASES = 1 << 23
"""Bases that go to the device together, some milliseconds of its work."""
_BLOCK = 256
_BASES_A_WORD = 32
_SLACK = 2
"""Words behind the stream's that are read, and mean nothing."""
_LOAD = 0.75
"""How full a table may be."""
_IN_FLIGHT = 3
"""Blocks on their way: one comes to the device, one is searched, one goes back."""
_OF_FREE = 0.9
"""Of the memory that is free what is counted on."""


class DeviceKmers:
    """The distinct k-mers of a stream on the current device, and the stream; both grow as blocks come.

    Parameters
    ----------
    k : bases of a k-mer, 1 to 31
    bases : how long the stream will be, about
    kmers : how many of them there will be, about; None for one at each place
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
        room = bases // _BASES_A_WORD + 2 + _SLACK
        slots = _slots_for(min((bases if kmers is None else kmers) // parts + 1, 4**k))
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
        more = len(codes) // _BASES_A_WORD
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
        answers = cupy().empty(BLOCK_BASES, np.uint8)
        while self.search(answers, self._searched + BLOCK_BASES, BLOCK_BASES // _BASES_A_WORD):
            pass
        self._searched = self._words * _BASES_A_WORD
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
        whole = self._words * _BASES_A_WORD - self.k + 1
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
        """All k-mers of the table by their first places, with their counts."""
        xp = cupy()
        places, held = self._places()
        order = argsort(places)
        counts = xp.asarray(self.table.counts)[held][order]
        return KmerCounts(
            self._codes_at(places[order]).get(), places[order].get().astype(np.int64), counts.get().astype(np.int64)
        )

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
        if self._most_used + places > _LOAD * len(self.table.slots):
            self._most_used = int(cupy().asarray(self.table.used).get()[0])
        if self._most_used + places > _LOAD * len(self.table.slots):
            slots = max(_slots_for(self._most_used + places), 2 * len(self.table.slots))
            counts = view(cupy().zeros(slots if len(self.table.counts) else 0, np.uint64))
            larger = self.table._replace(slots=_empty_slots(slots), counts=counts)
            launch(move_slots, len(self.table.slots), _BLOCK, self.table, larger)
            self.table = larger
        self._most_used += places


def _slots_for(kmers: int) -> int:
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


class _Lane:
    """What a block takes on its way: room on both sides, and the stream of execution that its copies go on."""

    def __init__(self, size: int, k: int) -> None:
        xp = cupy()
        self.codes, self.answers = pinned(size, np.uint8), pinned(size + k, np.uint8)
        self.device_codes, self.device_answers = xp.empty(size, xp.uint8), xp.empty(size + k, xp.uint8)
        self.copies = xp.cuda.Stream(non_blocking=True)
        self.places = 0

    def fill(self, parts: Iterator[np.ndarray]) -> int:
        """Take bases until there is no room or there are no more; returns how many."""
        used = 0
        for part in parts:
            self.codes[used : used + len(part)] = part
            used += len(part)
        self.codes[used:] = NO_BASE
        return used


def _cut(blocks: Iterable[np.ndarray], size: int) -> Iterator[Iterator[np.ndarray]]:
    """Arrays of any lengths as parts of them, `size` bases together; each group is taken before the next."""
    left = iter(blocks)
    rest = next(left, None)

    def group() -> Iterator[np.ndarray]:
        nonlocal rest
        wanted = size
        while rest is not None and wanted:
            part, rest = rest[:wanted], rest[wanted:]
            wanted -= len(part)
            if not len(rest):
                rest = next(left, None)
            yield part

    while rest is not None:
        yield group()


def iter_answers(
    kmers: DeviceKmers, blocks: Iterable[np.ndarray], *, grows: bool = True, watch: Stopwatch
) -> Iterator[np.ndarray]:
    """What each place of a stream is, block by block.

    Parameters
    ----------
    kmers : what is seen before, on the current device; takes the stream's k-mers
    blocks : the stream's codes, uint8[…], in arrays of any lengths
    grows : whether the stream's k-mers are seen, too, from their first place on
    watch : takes the seconds in which the host copies bases to where the device takes them from, as
        ``host_to_device``, and waits for answers, as ``kernel``

    Yields
    ------
    uint8[…], NO_KMER, NEW or SEEN; it is written over when two more have been asked for. All together have as many
    places as the stream
    """
    xp = cupy()
    searching = xp.cuda.get_current_stream()
    lanes = [_Lane(BLOCK_BASES, kmers.k) for _ in range(_IN_FLIGHT)]
    flying: list[_Lane] = []
    total = given = 0
    origin = kmers.begin(grows)
    ready = searching.record()
    for lane in lanes:
        # What was there before may still be read on the other stream.
        lane.copies.wait_event(ready)

    def landed() -> np.ndarray:
        lane = flying.pop(0)
        with watch.stage("kernel"):
            lane.copies.synchronize()
        return lane.answers[: lane.places]

    for number, parts in enumerate(_cut(blocks, BLOCK_BASES)):
        lane = lanes[number % _IN_FLIGHT]
        with watch.stage("host_to_device"):
            bases = lane.fill(parts)
        size = -(-bases // _BASES_A_WORD) * _BASES_A_WORD
        lane.device_codes[:size].set(lane.codes[:size], stream=lane.copies)
        searching.wait_event(lane.copies.record())
        kmers.append(view(lane.device_codes[:size]))
        total += bases
        lane.places = kmers.search(lane.device_answers, origin + total)
        lane.copies.wait_event(searching.record())
        lane.device_answers[: lane.places].get(stream=lane.copies, out=lane.answers[: lane.places], blocking=False)
        flying.append(lane)
        given += lane.places
        if len(flying) == _IN_FLIGHT - 1:
            yield landed()
    while flying:
        yield landed()
    yield np.zeros(total - given, np.uint8)


def find_answers(
    codes: np.ndarray,
    k: int,
    *,
    seed_length: int = 0,
    dictionary: np.ndarray | None = None,
    grows: bool = True,
    devices: Sequence[int] = (0,),
    threads: int = 1,
    watch: Stopwatch,
) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
    """As `warpseed.tree_bitmap.cpu.find_answers`, on GPUs.

    devices : numbers of GPUs, each of which takes the k-mers of its share of all hashes, and one with too little memory
        for that a part of it after the other
    threads : as for the other searches; this one copies with one thread a device
    watch : takes the seconds of each stage, of several devices those of the slowest

    Raises
    ------
    MemoryLimitError : the stream itself does not fit the memory of a device
    DeviceError : a device does not answer
    """
    return find_seeded(partial(_answer, devices=devices, watch=watch), codes, k, seed_length, dictionary, grows)


def _answer(
    codes: np.ndarray,
    k: int,
    known: np.ndarray,
    grows: bool,
    *,
    devices: Sequence[int],
    watch: Stopwatch,
) -> np.ndarray:
    """What each place of a stream is, as `find_seeded` asks."""
    before = _BASES_A_WORD * len(known)
    expected = len(known) + (len(codes) if grows else 0)
    table = 8 * _slots_for(min(expected, 4**k)) // len(devices)
    parts = len(devices) * max(_parts(device, len(codes) + before, table) for device in devices)

    def serve(number: int) -> tuple[Stopwatch, np.ndarray]:
        mine, answers = Stopwatch(), np.zeros(len(codes), np.uint8)
        with on_device(devices[number]), on_own_stream(0):
            for part in range(number, parts, len(devices)):
                kmers = DeviceKmers(k, len(codes) + before, expected, part=part, parts=parts)
                kmers.append_kmers(known)
                found = iter_answers(kmers, [codes], grows=grows, watch=mine)
                _take_greatest(answers, found, part == number)
                del kmers  # before the next part takes its room
        return mine, answers

    with ThreadPoolExecutor(len(devices)) as pool:
        served = list(pool.map(serve, range(len(devices))))
    for stage in {stage for mine, _ in served for stage in mine.seconds}:
        watch.add(stage, max(mine.seconds.get(stage, 0.0) for mine, _ in served))
    answers = served[0][1]
    for _, others in served[1:]:
        np.maximum(answers, others, out=answers)
    return answers


def _take_greatest(answers: np.ndarray, blocks: Iterable[np.ndarray], first: bool) -> None:
    """Of what each place is for several parts of the k-mers take the greatest: it is NEW in parts that are not its."""
    place = 0
    for block in blocks:
        there = answers[place : place + len(block)]
        if first:
            there[...] = block
        else:
            np.maximum(there, block, out=there)
        place += len(block)


def _parts(device: int, bases: int, table: int) -> int:
    """Parts of its k-mers that a device takes one after the other, if a table of all takes so many bytes.

    Raises
    ------
    MemoryLimitError : there is no room for a stream of so many bases
    """
    with on_device(device):
        free = int(_OF_FREE * free_memory())
        stream = bases * 2 * 8 // _BASES_A_WORD + _IN_FLIGHT * 3 * BLOCK_BASES
        if stream >= free:
            raise MemoryLimitError(
                f"GPU {device} has {free / 1e9:.1f} GB for a stream of {bases:,} bases, which takes "
                f"{stream / 1e9:.1f} GB; use a larger GPU, or device='cpu'."
            )
        return -(-table // (free - stream))

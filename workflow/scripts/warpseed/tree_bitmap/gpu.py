"""The fast tier on the GPU: blocks of a stream go to a table on the device, and what each place is comes back in order.

A block is copied to the device while the one before it is searched and the answers of the one before that come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from warpseed.compute.device_batches import serve_devices
from warpseed.compute.gpu import cupy, on_device, on_own_stream, pinned
from warpseed.compute.stopwatch import Stopwatch
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap import gpu_memory
from warpseed.tree_bitmap.gpu_memory import IN_FLIGHT, Need
from warpseed.tree_bitmap.gpu_table import DeviceKmers
from warpseed.tree_bitmap.room import require_room
from warpseed.tree_bitmap.seeds import find_seeded
from warpseed.tree_bitmap.stream import NO_BASE, KmerCounts

__all__ = ["DeviceAnswers", "DeviceCounts", "count_kmers", "find_answers"]

_JOINED_BYTES = 7 * 8
"""Of each k-mer of several parts that go together: its code, place and count, and again in order; and the order."""
_BORDER = np.full(1, NO_BASE)


class _Lane:
    """What a block takes on its way: room on both sides, and the stream of execution that its copies go on."""

    def __init__(self, size: int, k: int) -> None:
        xp = cupy()
        self.codes, self.answers = pinned(size, np.uint8), pinned(size + k, np.uint8)
        self.device_codes, self.device_answers = xp.empty(size, xp.uint8), xp.empty(size + k, xp.uint8)
        self.copies = xp.cuda.Stream(non_blocking=True)
        self.bases = self.places = 0

    def fill(self, codes: np.ndarray) -> np.ndarray:
        """Take bases while there is room; returns the others."""
        taken = codes[: len(self.codes) - self.bases]
        self.codes[self.bases : self.bases + len(taken)] = taken
        self.bases += len(taken)
        return codes[len(taken) :]


class _Flight:
    """Bases on their way through the current device, where what each place is comes back from, in order.

    What `take` and `end` give are uint8[…], NO_KMER, NEW or SEEN; each is written over when two more have been asked
    for. All together have as many places as the stream.

    Parameters
    ----------
    kmers : what is seen before, on the current device; takes the stream's k-mers
    watch : takes the seconds in which the host copies bases to where the device takes them from, as
        ``host_to_device``, and waits for answers, as ``kernel``
    """

    def __init__(self, kmers: DeviceKmers, watch: Stopwatch) -> None:
        self._kmers, self._watch = kmers, watch
        self._lanes = [_Lane(gpu_memory.BLOCK_BASES, kmers.k) for _ in range(IN_FLIGHT)]
        self._flying: list[_Lane] = []
        self._total = self._given = 0
        ready = cupy().cuda.get_current_stream().record()
        for lane in self._lanes:
            # What was there before may still be read on the other stream.
            lane.copies.wait_event(ready)

    def take(self, codes: np.ndarray) -> Iterator[np.ndarray]:
        """Take the next bases, uint8[…]; gives what places before them are, as far as that is known."""
        while len(codes):
            with self._watch.stage("host_to_device"):
                codes = self._lanes[0].fill(codes)
            if self._lanes[0].bases == len(self._lanes[0].codes):
                yield from self._launch()

    def end(self) -> Iterator[np.ndarray]:
        """Gives what the other places are."""
        if self._lanes[0].bases:
            yield from self._launch()
        while self._flying:
            yield self._landed()
        yield np.zeros(self._total - self._given, np.uint8)

    def _launch(self) -> Iterator[np.ndarray]:
        """Send the bases of the first lane on their way."""
        kmers, searching, lane = self._kmers, cupy().cuda.get_current_stream(), self._lanes.pop(0)
        self._lanes.append(lane)
        size = -(-lane.bases // BASES_A_WORD) * BASES_A_WORD
        lane.codes[lane.bases : size] = NO_BASE
        lane.device_codes[:size].set(lane.codes[:size], stream=lane.copies)
        searching.wait_event(lane.copies.record())
        kmers.append(lane.device_codes[:size])
        self._total += lane.bases
        lane.bases, lane.places = 0, kmers.search(lane.device_answers, self._total)
        lane.copies.wait_event(searching.record())
        lane.device_answers[: lane.places].get(stream=lane.copies, out=lane.answers[: lane.places], blocking=False)
        self._flying.append(lane)
        self._given += lane.places
        if len(self._flying) == IN_FLIGHT - 1:
            yield self._landed()

    def _landed(self) -> np.ndarray:
        lane = self._flying.pop(0)
        with self._watch.stage("kernel"):
            lane.copies.synchronize()
        return lane.answers[: lane.places]


def _iter_answers(kmers: DeviceKmers, blocks: Iterable[np.ndarray], watch: Stopwatch) -> Iterator[np.ndarray]:
    """What each place of a stream is, block by block.

    blocks : the stream's codes, uint8[…], in arrays of any lengths
    kmers, watch : those of `_Flight`, as is what it gives
    """
    flight = _Flight(kmers, watch)
    for codes in blocks:
        yield from flight.take(codes)
    yield from flight.end()


class _Blocks:
    """Blocks of a stream, which go to one GPU as they come; between two of them is one place that is no base.

    Parameters
    ----------
    k : bases of a k-mer
    known : uint64[d], distinct k-mers that are seen before
    need : what they take, as far as that is known before
    device : number of the GPU
    """

    held = 0
    """k-mers that are put into sets anew for every block"""

    def __init__(
        self, k: int, known: np.ndarray, need: Need, device: int, *, grows: bool = True, counting: bool = False
    ) -> None:
        self._device = device
        with self._here():
            self._kmers = DeviceKmers(k, need.kmers, known, grows=grows, counting=counting)
            self._flight = _Flight(self._kmers, Stopwatch())

    @contextmanager
    def _here(self) -> Iterator[None]:
        """From whatever thread that is."""
        with on_device(self._device), on_own_stream(0):
            yield

    def _answers(self, codes: np.ndarray, more: bool) -> Iterator[np.ndarray]:
        """What places are, those of this block and the one behind it, or before it; of the last block all others."""
        with self._here():
            yield from self._flight.take(codes)
            yield from self._flight.take(_BORDER)
            if not more:
                yield from self._flight.end()


class DeviceAnswers(_Blocks):
    """What `HostKmers` is, on a GPU; not all places of a block are known when it has been taken."""

    def __init__(self, k: int, known: np.ndarray, need: Need, device: int, *, grows: bool) -> None:
        super().__init__(k, known, need, device, grows=grows)
        self._waiting: list[np.ndarray] = []
        self._filled = 0
        """places of the first that waits which are known"""

    def take(self, codes: np.ndarray, more: bool) -> list[np.ndarray]:
        """What the places of blocks are, uint8[…] of each, in order: those that are known to their end by now."""
        require_room(len(codes) + 1, f"To search {len(codes):,} places")
        self._waiting.append(np.empty(len(codes) + 1, np.uint8))
        done = []
        for answers in self._answers(codes, more):
            while len(answers):
                block = self._waiting[0]
                there = answers[: len(block) - self._filled]
                block[self._filled : self._filled + len(there)] = there
                self._filled += len(there)
                answers = answers[len(there) :]
                if self._filled == len(block):
                    done.append(self._waiting.pop(0)[:-1])
                    self._filled = 0
        return done


class DeviceCounts(_Blocks):
    """What `HostCounts` is, on a GPU."""

    def __init__(self, k: int, need: Need, device: int) -> None:
        super().__init__(k, np.empty(0, np.uint64), need, device, counting=True)

    def take(self, codes: np.ndarray, more: bool) -> None:
        """Count the k-mers of the next block."""
        for _ in self._answers(codes, more):
            pass

    def counted(self) -> KmerCounts:
        """What has been counted; nothing is taken after it."""
        with self._here():
            return self._kmers.counted()


def find_answers(
    codes: np.ndarray,
    k: int,
    *,
    seed_length: int = 0,
    dictionary: np.ndarray | None = None,
    grows: bool = True,
    devices: Sequence[int] = (0,),
    watch: Stopwatch,
) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
    """As `warpseed.tree_bitmap.cpu.find_answers`, on GPUs.

    devices : numbers of GPUs, each of which takes the k-mers of its share of all hashes, and one with too little memory
        for that a part of it after the other
    watch : takes the seconds of each stage, of several devices those of the slowest

    Raises
    ------
    MemoryLimitError : a device has no room for a part of the k-mers
    DeviceError : a device does not answer
    """
    return find_seeded(partial(_answer, devices=devices, watch=watch), codes, k, seed_length, dictionary, grows)


def _answer(
    codes: np.ndarray, k: int, known: np.ndarray, grows: bool, *, devices: Sequence[int], watch: Stopwatch
) -> np.ndarray:
    """What each place of a stream is, as `find_seeded` asks."""
    need = Need.of(k, len(codes), len(known), grows=grows)
    parts = gpu_memory.parts_for(devices, need)
    require_room(len(devices) * len(codes), f"To search {len(codes):,} places")
    answers = [np.zeros(len(codes), np.uint8) for _ in devices]

    def search(part: int, watch_here: Stopwatch) -> None:
        kmers = DeviceKmers(k, need.kmers_of(parts), known, grows=grows, part=part, parts=parts)
        found = _iter_answers(kmers, [codes], watch_here)
        _take_greatest(answers[part % len(devices)], found, part < len(devices))

    _deal_parts(devices, parts, search, watch)
    for others in answers[1:]:
        np.maximum(answers[0], others, out=answers[0])
    return answers[0]


def count_kmers(codes: np.ndarray, k: int, *, devices: Sequence[int] = (0,), watch: Stopwatch) -> KmerCounts:
    """The distinct k-mers of a stream by their first places, and how often each comes; parameters and errors are those
    of `find_answers`."""
    need = Need.of(k, len(codes), counting=True)
    parts = gpu_memory.parts_for(devices, need)
    counted: dict[int, KmerCounts] = {}

    def count(part: int, watch_here: Stopwatch) -> None:
        kmers = DeviceKmers(k, need.kmers_of(parts), counting=True, part=part, parts=parts)
        for _ in _iter_answers(kmers, [codes], watch_here):
            pass
        counted[part] = kmers.counted()

    _deal_parts(devices, parts, count, watch)
    if parts == 1:
        return counted[0]
    kmers = sum(len(part.codes) for part in counted.values())
    require_room(_JOINED_BYTES * kmers, f"To put {kmers:,} counted {k}-mers in order")
    joined = KmerCounts(*map(np.concatenate, zip(*counted.values(), strict=True)))
    order = np.argsort(joined.places)
    return KmerCounts(*(column[order] for column in joined))


def _deal_parts(devices: Sequence[int], parts: int, work: Callable[[int, Stopwatch], None], watch: Stopwatch) -> None:
    """Do the work of each part on its device; what a part takes there is free before the next begins."""

    def serve(number: int, watch_here: Stopwatch) -> None:
        with on_own_stream(0):
            for part in range(number, parts, len(devices)):
                work(part, watch_here)

    serve_devices(devices, serve, watch)


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

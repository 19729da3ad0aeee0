"""The fast tier on GPUs: a stream goes to tables on the devices, and what each place is comes back in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from warpseed.compute.gpu import on_device
from warpseed.compute.locked_memory import locked
from warpseed.compute.stopwatch import Stopwatch
from warpseed.tree_bitmap import gpu_memory
from warpseed.tree_bitmap.gpu_counts import counted_on
from warpseed.tree_bitmap.gpu_flight import Flight
from warpseed.tree_bitmap.gpu_memory import Need
from warpseed.tree_bitmap.room import require_room
from warpseed.tree_bitmap.seeds import find_seeded
from warpseed.tree_bitmap.stream import NO_BASE, KmerCounts

__all__ = ["DeviceAnswers", "DeviceCounts", "count_kmers", "find_answers"]

_JOINED_BYTES = 7 * 8
"""Of each k-mer of several parts that go together: its code, place and count, and again in order, at most; and the
order."""
_BORDER = np.full(1, NO_BASE)
_NONE = np.empty(0, np.uint64)


class _Blocks:
    """Blocks of a stream, which go to GPUs as they come; between two of them is one place that is no base.

    Parameters
    ----------
    need : what they take, as far as that is known before
    devices : numbers of the GPUs
    threads : CPU threads that copy
    known : uint64[d], distinct k-mers that are seen before
    """

    held = 0
    """k-mers that are put into sets anew for every block"""

    def __init__(self, need: Need, devices: Sequence[int], threads: int, known: np.ndarray = _NONE) -> None:
        self._devices, self._threads = devices, threads
        self._flight = Flight(devices, need, known, threads=threads)

    def _fly(self, codes: np.ndarray, answers: np.ndarray | None, more: bool) -> None:
        """Take a block; `answers`, uint8[n + 1], take what its places are, and the one behind it."""
        with self._flight as flight:
            flight.take(codes, answers)
            flight.take(_BORDER)
            if not more:
                flight.end()


class DeviceAnswers(_Blocks):
    """What `HostKmers` is, on GPUs; not all places of a block are known when it has been taken."""

    def __init__(self, need: Need, devices: Sequence[int], threads: int, known: np.ndarray) -> None:
        super().__init__(need, devices, threads, known)
        self._waiting: deque[np.ndarray] = deque()
        self._told = 0
        """places of the stream before the first that waits"""

    def take(self, codes: np.ndarray, more: bool) -> list[np.ndarray]:
        """What the places of blocks are, uint8[…] of each, in order: those that are known to their end by now."""
        require_room(len(codes) + 1, f"To search {len(codes):,} places")
        self._waiting.append(np.empty(len(codes) + 1, np.uint8))
        self._fly(codes, self._waiting[-1], more)
        done = []
        while self._waiting and self._told + len(self._waiting[0]) <= self._flight.answered:
            block = self._waiting.popleft()
            self._told += len(block)
            done.append(block[:-1])
        return done


class DeviceCounts(_Blocks):
    """What `HostCounts` is, on GPUs."""

    def take(self, codes: np.ndarray, more: bool) -> None:
        """Count the k-mers of the next block."""
        self._fly(codes, None, more)

    def counted(self) -> KmerCounts:
        """What has been counted; nothing is taken after it."""
        return counted_on(self._devices, self._flight.kmers, self._flight.first_kmers, self._threads, Stopwatch())


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

    devices : numbers of GPUs. Where the dictionary stays as it is, they share the places of the stream; else each takes
        the k-mers of its share of all hashes, and where memory is too little for that a part of it after the other
    threads : CPU threads that copy
    watch : takes the seconds of ``host_to_device``, ``kernel`` and ``device_to_host`` (see `Flight`), and where k-mers
        are counted of ``look_up`` (see `counted_on`)

    Raises
    ------
    MemoryLimitError : a device has no room for a part of the k-mers
    DeviceError : a device does not answer
    """
    search = partial(_answer, devices=devices, threads=threads, watch=watch)
    return find_seeded(search, codes, k, seed_length, dictionary, grows)


def _answer(
    codes: np.ndarray,
    k: int,
    known: np.ndarray,
    grows: bool,
    *,
    devices: Sequence[int],
    threads: int,
    watch: Stopwatch,
) -> np.ndarray:
    """What each place of a stream is, as `find_seeded` asks."""
    need, passes = gpu_memory.plan_of(devices, Need.of(k, len(codes), len(known), grows=grows), len(codes))
    begun = partial(Flight, devices, need, known, watch=watch, threads=threads, passes=passes, length=len(codes))
    room = partial(require_room, len(codes), f"To search {len(codes):,} places")

    def answers_of(number: int) -> np.ndarray:
        with on_device(devices[0]):
            answers = locked(len(codes), np.uint8, threads, require=room)
        with begun(number=number) as flight:
            flight.take(codes, answers)
            flight.end()
        return answers

    answers = answers_of(0)
    for number in range(1, passes):
        # Of what each place is for several parts of the k-mers the greatest: it is NEW in parts that are not its.
        np.maximum(answers, answers_of(number), out=answers)
    return answers


def count_kmers(
    codes: np.ndarray, k: int, *, devices: Sequence[int] = (0,), threads: int = 1, watch: Stopwatch
) -> KmerCounts:
    """The distinct k-mers of a stream by their first places, and how often each comes; parameters and errors are those
    of `find_answers`."""
    need, passes = gpu_memory.plan_of(devices, Need.of(k, len(codes), counting=True), len(codes))
    begun = partial(Flight, devices, need, _NONE, watch=watch, threads=threads, passes=passes, length=len(codes))

    def counted_in(number: int) -> KmerCounts:
        with begun(number=number) as flight:
            flight.take(codes)
            flight.end()
            return counted_on(devices, flight.kmers, flight.first_kmers, threads, watch)

    counted = [counted_in(number) for number in range(passes)]
    return counted[0] if passes == 1 else _joined(k, counted)


def _joined(k: int, counted: Sequence[KmerCounts]) -> KmerCounts:
    """The k-mers of several parts, in order."""
    kmers = sum(len(part.codes) for part in counted)
    require_room(_JOINED_BYTES * kmers, f"To put {kmers:,} counted {k}-mers in order")
    joined = KmerCounts(*map(np.concatenate, zip(*counted, strict=True)))
    order = np.argsort(joined.places)
    return KmerCounts(*(column[order] for column in joined))

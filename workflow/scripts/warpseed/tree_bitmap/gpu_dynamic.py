"""The device's side of the dynamic system: two streams with a match buffer each, and a Tree Bitmap (Figures 17 to 20).

The stream of bases lies on the device as a whole (section 3.3.5). Kernels and the copies of match buffers, which end in
pinned memory, let the host go on; a Tree Bitmap is copied when all kernels have ended, and the host waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpseed.compute.gpu import argsort, cupy, launch, on_device, synchronize, to_device
from warpseed.compute.locked_memory import pinned
from warpseed.tree_bitmap.bitmap import TreeBitmap
from warpseed.tree_bitmap.dynamic import LANES, Event, Events, How, Matcher
from warpseed.tree_bitmap.gpu_paper import BLOCK, MatchBuffer, match_by_shuffle, match_naively
from warpseed.tree_bitmap.sorted_kmers import SortedKmers

__all__ = ["DeviceKmersInOrder", "device_matchers"]

_BLOCKS = 264
"""Blocks of the naive kernel at most, each with an active bitmap of its own."""
_PLACES_A_PIECE = 4
"""Places of a piece, in lengths of a k-mer: it reads k - 1 more."""


def device_matchers(codes: np.ndarray, k: int, how: How, devices: Sequence[int]) -> tuple[list[Matcher], Events]:
    """A Matcher on each of some GPUs, and the events of a run, which begins when the stream lies there."""
    matchers = [_DeviceMatcher(codes, k, how, device) for device in devices]
    events = Events()
    for number, matcher in enumerate(matchers):
        matcher.begin(events, 2 * number)
    return list(matchers), events


class DeviceKmersInOrder(SortedKmers):
    """Words in order on the first GPU, and the Tree Bitmap that is made there."""

    def __init__(self, k: int) -> None:
        with on_device(0):
            super().__init__(k, cupy(), argsort)

    def insert(self, kmers: np.ndarray) -> np.ndarray:
        """As `Growing.insert`: from the host, and back there."""
        with on_device(0):
            return super().insert(kmers)

    def to_bitmap(self) -> TreeBitmap:
        """As `Growing.to_bitmap`, on the device, when it is there."""
        with on_device(0):
            bitmap = TreeBitmap(*super().to_bitmap())
            synchronize()
        return bitmap

    def kmers(self) -> np.ndarray:
        """As `Growing.kmers`."""
        with on_device(0):
            return super().kmers()


def lanes_for(k: int) -> int:
    """The fewest lanes of a logical warp that k + 1 depths fit."""
    return next(lanes for lanes in LANES if lanes > k)


class _Slot:
    """A CUDA stream, and the match buffer that its kernels write."""

    def __init__(self, room: int) -> None:
        self.stream = cupy().cuda.Stream(non_blocking=True)
        self.places = (0, 0)
        self.running = False
        event = cupy().cuda.Event
        self.marks = event(), event(), event()  # before the kernel, behind it, behind the copy
        self.resize(room)

    def resize(self, room: int) -> None:
        """Make room for so many records, on the device and in pinned memory; their number lies before them."""
        self.words = cupy().empty(room + 1, np.uint64)
        self.host = pinned(room + 1, np.uint64)
        self.buffer = MatchBuffer(self.words[1:], self.words[:1])

    @property
    def room(self) -> int:
        return len(self.words) - 1

    @property
    def count(self) -> int:
        """Records that the last kernel had."""
        return int(self.host[0])


class _DeviceMatcher:
    """A Matcher on a GPU."""

    def __init__(self, codes: np.ndarray, k: int, how: How, device: int) -> None:
        self._k, self._how, self._device = k, how, device
        room = min(how.chunk_length + k, len(codes)) if how.records is None else how.records
        with on_device(device):
            self._codes = to_device(codes)
            self._slots = [_Slot(max(room, 1)) for _ in range(2)]
            synchronize()
        self._next = 0  # the stream whose turn it is

    def begin(self, events: Events, first_stream: int) -> None:
        """Note what happens from now on, on streams of these numbers."""
        with on_device(self._device):
            self._origin = cupy().cuda.Event()
            self._origin.record()
            self._origin.synchronize()
        self._events, self._begun, self._first_stream = events, events.now(), first_stream

    def upload(self, bitmap: TreeBitmap) -> None:
        with on_device(self._device):
            for which in range(2):
                self._finish(which)
            with self._events.timed("host_to_device", self._first_stream + self._next):
                self._bitmap = to_device(bitmap)
                synchronize()

    def launch(self, places: tuple[int, int], which: int) -> None:
        with on_device(self._device):
            self._launch(places, which)

    def _launch(self, places: tuple[int, int], which: int) -> None:
        slot = self._slots[which]
        slot.places, slot.running, self._next = places, True, 1 - which
        with slot.stream:
            slot.words[:1] = 0
            slot.marks[0].record()
            self._match(places, slot.buffer)
            slot.marks[1].record()
            slot.words.get(out=slot.host, blocking=False)
            slot.marks[2].record()

    def _match(self, places: tuple[int, int], buffer: MatchBuffer) -> None:
        """Launch a kernel for the k-mers that begin at some places."""
        count, k, how = places[1] - places[0], self._k, self._how
        stream = (self._codes, k, self._bitmap, places)
        if how.kernel == "naive":
            blocks = min(how.pieces or _BLOCKS, max(count, 1))
            actives = cupy().empty(blocks * len(self._bitmap.inmaps), np.uint32)
            launch(match_naively, BLOCK * blocks if count else 0, BLOCK, *stream, actives, buffer)
        else:
            lanes = how.lanes or lanes_for(k)
            pieces = how.pieces or max(1, count // (_PLACES_A_PIECE * k))
            launch(match_by_shuffle, pieces * lanes if count else 0, BLOCK, *stream, (pieces, lanes), buffer)

    def _finish(self, which: int) -> None:
        """Wait for what a stream does; again, with the room that it took, where its match buffer was too small."""
        slot = self._slots[which]
        while slot.running:
            slot.stream.synchronize()
            slot.running = False
            self._note(which)
            if slot.count > slot.room:
                slot.resize(1 << slot.count.bit_length())
                self._launch(slot.places, which)

    def _note(self, which: int) -> None:
        """Take the kernel and the copy that have ended into the events."""
        begin, between, end = (
            self._begun + cupy().cuda.get_elapsed_time(self._origin, mark) / 1e3 for mark in self._slots[which].marks
        )
        stream = self._first_stream + which
        self._events.all += [Event("kernel", stream, begin, between), Event("device_to_host", stream, between, end)]

    def collect(self, which: int) -> np.ndarray:
        with on_device(self._device):
            self._finish(which)
        slot = self._slots[which]
        return slot.host[1 : 1 + slot.count]

"""The way of a stream through GPUs: blocks of bases go to what knows k-mers there, what their places are comes back.

A block is copied to the devices, and packed there, while the one before it is searched and the answers of the one
before that come back. Of several devices each gives back what the places of its share are. It brings the bases of
these; or, where each looks at all places, a piece of the block, which the others take from it, packed. Where k-mers are
counted, those that come first there are listed. One thread launches all of it; devices wait for each other by events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import numpy as np

from warpseed.compute.device_copies import copies_stream
from warpseed.compute.gpu import kept_stream, on_device
from warpseed.compute.host_copies import HostCopies
from warpseed.compute.locked_memory import is_locked
from warpseed.compute.ranges import equal_share
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.waits import wait_for_all
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap.gpu_fast import Stretch
from warpseed.tree_bitmap.gpu_lanes import Lane, whole_words
from warpseed.tree_bitmap.gpu_listing import FirstKmers
from warpseed.tree_bitmap.gpu_memory import IN_FLIGHT, Need
from warpseed.tree_bitmap.gpu_rooms import Asked, BlockInFlight, Room
from warpseed.tree_bitmap.gpu_shares import share_of_places
from warpseed.tree_bitmap.gpu_table import DeviceKmers
from warpseed.tree_bitmap.stream import NO_BASE, NO_KMER

__all__ = ["Flight"]

_LANES = 3
"""Blocks of bases on the host: one is filled, one is full, one may be on its way to the devices still."""
_FIRST = 4
"""The first block has this part of the bases of others, so that devices begin soon, and the next ones twice as many."""
_LAST = 2
"""Where several devices take larger blocks each of the last ones has half of what is left of the stream, and this part
of the bases of others at least, so that the last answers are soon back. More would take the host longer to launch than
they take the devices."""
_LEAST_FIRST = 1 << 22
"""Bases of the first block, at least: shorter streams go as one."""


class Flight:
    """Bases on their way through one or more devices, from which comes what each place is, in order. It is a context,
    at whose end, also of a block that fails, devices are idle: then nothing goes to memory that is given up.

    Attributes
    ----------
    kmers : what each device has of the k-mers
    first_kmers : where k-mers are counted, of each device FirstKmers of its share of each block, in order
    answered : places of the stream, from its begin on, whose answers have come

    Parameters
    ----------
    devices : numbers of GPUs. Each has a part of the k-mers of a dictionary that grows; of one that stays as it is all
        have the same, and share the places
    need : what the search takes
    known : uint64[d], codes of distinct k-mers that are seen before the stream begins
    watch : takes the seconds in which bases come to the devices, as ``host_to_device``, in which the host waits for
        answers, as ``kernel``, and copies those that do not come to locked memory, as ``device_to_host``
    threads : CPU threads that copy
    number, passes : which of so many passes of the stream it is, each for other parts of the k-mers
    length : bases of the stream, if that is known

    Raises
    ------
    MemoryLimitError : a device's memory is short, here or on the way
    DeviceError : a device does not answer
    """

    def __init__(
        self,
        devices: Sequence[int],
        need: Need,
        known: np.ndarray,
        *,
        watch: Stopwatch | None = None,
        threads: int = 1,
        number: int = 0,
        passes: int = 1,
        length: int | None = None,
    ) -> None:
        self._devices, self._watch, self._threads = devices, watch or Stopwatch(), threads
        self._kept = need.kept
        self._parts = need.parts(len(devices), passes)
        """of the k-mers"""
        self._shares_kmers = need.kept.grows and len(devices) > 1
        """whether each device has some of the k-mers, and takes from the others what they say"""
        self._unanswered: BlockInFlight | None = None
        """the block whose answers they have still to make then"""
        most = need.block_bases
        self._most = most if length is None else min(most, whole_words(max(1, length)))
        """bases of a block"""
        first_size = min(self._most, max(whole_words(-(-most // _FIRST)), _LEAST_FIRST))
        fits_first = length is not None and length <= first_size
        # (before the tables, so that the first bases come while these are cleared, and these soon)
        self._blocks = [self._block(0)]
        self._pass = number, passes
        """which k-mers are listed: those of a part of all"""
        self.first_kmers: list[list[FirstKmers]] = [[] for _ in devices]
        self.kmers: list[DeviceKmers] = []
        for here, device in enumerate(devices):
            with _there(device):
                part = need.part(len(devices), number, here)
                self.kmers.append(DeviceKmers(need.kept, need.kmers_of(self._parts), known, part, self._parts))
        self._blocks += [self._block(number) for number in range(1, 1 if fits_first else IN_FLIGHT)]
        self._free, self._flying = deque(self._blocks), deque[BlockInFlight]()
        with on_device(devices[0]):
            self._lanes = deque(Lane(self._most) for _ in range(_LANES))
        """of which the first takes the next bases"""
        self._lanes[0].size = first_size
        self._length = length if need.block_factor > 1 else None
        """bases of the stream, where its last blocks are short"""
        self._passed_on = 0
        """bases of blocks that are full"""
        self._full: Lane | None = None
        """what goes next"""
        self._copying = HostCopies()
        """answers that come from pinned memory to where they belong"""
        self._asked: deque[Asked] = deque()
        self._total = 0
        """bases that were sent"""
        self._last = np.full(BASES_A_WORD, NO_BASE)
        """the last ones that were"""
        self.answered = 0

    def _block(self, number: int) -> BlockInFlight:
        rooms = []
        for device in self._devices:
            with _there(device):
                rooms.append(Room(number, self._most, len(self._devices), self._kept, self._parts))
        with on_device(self._devices[0]):
            return BlockInFlight(rooms)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        rooms = zip(*(block.rooms for block in self._blocks), strict=True)
        on_devices = [partial(self._wait_on, *of_device) for of_device in zip(self._devices, rooms, strict=True)]
        wait_for_all([*on_devices, *(lane.filled for lane in self._lanes), self._copying.wait])

    def _wait_on(self, device: int, rooms: Sequence[Room]) -> None:
        """Wait for what a device does."""
        with _there(device) as searching:
            listing = [copies_stream()] if self._kept.counting else []
            streams = (searching, *listing, *(room.copies for room in rooms))
            wait_for_all(stream.synchronize for stream in streams)

    def take(self, codes: np.ndarray, answers: np.ndarray | None = None) -> None:
        """Take the next bases.

        codes : uint8[n], which are read when this returns
        answers : uint8[…], takes what the next places are that nobody has asked for, NO_KMER, NEW or SEEN, when
            `answered` says so. Places are asked for with their bases or before; what others are is lost
        """
        with on_device(self._devices[0]):
            if answers is not None and len(answers):
                self._asked.append(Asked(answers, is_locked(answers)))
            lies_locked = len(codes) >= self._lanes[0].size and codes.flags.c_contiguous and is_locked(codes)
            while len(codes):
                lane = self._lanes[0]
                with self._watch.stage("host_to_device"):
                    may_borrow = lies_locked and lane.may_borrow(codes)
                    codes = lane.borrow(codes) if may_borrow else lane.fill(codes, self._threads)
                if lane.is_full:
                    self._pass_on()
            self._wait_for_borrowed()
            with self._watch.stage("host_to_device"):
                for lane in self._lanes:
                    lane.filled()

    def end(self) -> None:
        """All answers are there then: those of the last places, where no k-mer fits, too; and all `first_kmers`."""
        with on_device(self._devices[0]):
            for _ in range(2):
                self._pass_on()
            while self._flying:
                self._land()
        for device in self._devices if self._kept.counting else ():
            with _there(device):  # (what is listed is read on other streams, also of other devices)
                copies_stream().synchronize()
        for answers, _ in self._asked:
            answers[...] = NO_KMER
        self._asked.clear()
        self.answered = self._total

    def _pass_on(self) -> None:
        """Send the block that is full on its way, while the bases of the next one still come."""
        full, self._full = self._full, self._lanes[0]
        self._lanes.rotate(-1)
        self._passed_on += self._full.bases
        self._lanes[0].size = self._size_behind(self._full.size)
        if full is not None and full.bases:
            self._launch(full)

    def _size_behind(self, size: int) -> int:
        """Bases of the block behind one that has so many."""
        size = min(2 * size, self._most)
        if self._length is None:
            return size
        left = self._length - self._passed_on
        return min(size, whole_words(max(self._most // _LAST, -(-left // 2))))

    def _wait_for_borrowed(self) -> None:
        """Wait until devices have taken what lies in the caller's memory."""
        if self._full is not None and self._full.borrows:
            full, self._full = self._full, None
            self._launch(full)
        with self._watch.stage("host_to_device"):
            for lane in self._lanes:
                if lane.borrows:
                    lane.taken()

    def _launch(self, lane: Lane) -> None:
        """Send a block on its way."""
        block = self._free.popleft()
        with self._watch.stage("host_to_device"):
            lane.filled()
            self._total += lane.bases
            codes = lane.words()
            self._bring(codes, block)
            lane.came = list(block.packed)  # (of which it lets go)
        self._flying.append(block)
        for number, device in enumerate(self._devices):
            with _there(device) as searching:
                if self._shares_kmers:
                    self._exchange(block, number)
                    # What one device brings another comes in the order of the asking: this block waits for no search,
                    # the answers of the one before do.
                    if self._unanswered is not None:
                        self._give(self._unanswered, number)
                self._search(block, number, searching)
                if not self._shares_kmers:
                    self._give(block, number)
        self._unanswered = block if self._shares_kmers else None
        if not self._free:
            self._land()

    def _bring(self, codes: np.ndarray, block: BlockInFlight) -> None:
        """Bring a block from the host, to each device what it takes from there: what its share of the places needs, or
        an equal share; and make its answers ready."""
        block.before[:], self._last = self._last, codes[-BASES_A_WORD:].copy()
        block.size, devices = len(codes) // BASES_A_WORD, len(self._devices)
        block.first, block.places = self.kmers[0].searched, self.kmers[0].places_behind(block.size, self._total)
        block.shares = [share_of_places(block.places, number, devices) for number in range(devices)]
        block.words, block.packed, block.searched = [], [], []
        for number, (device, room, kmers) in enumerate(zip(self._devices, block.rooms, self.kmers, strict=True)):
            searched = self._searched(block, number)
            words = equal_share(block.size + 1, number, devices) if self._kept.grows else kmers.words_of(searched)
            block.words.append(words)
            with _there(device), room.copies:
                room.bring(block.before, codes, words)
                block.packed.append(room.copies.record())
                kmers.prepare(room.searched_into(searched))

    def _searched(self, block: BlockInFlight, number: int) -> slice:
        """Places of a block that a device looks at: all for its part of the k-mers, or its share for all k-mers."""
        return slice(0, block.places) if self._kept.grows else block.shares[number]

    def _exchange(self, block: BlockInFlight, number: int) -> None:
        """Take from the other devices what they have brought."""
        room = block.rooms[number]
        with room.copies:
            for other in self._others(number):
                room.copies.wait_event(block.packed[other])
                room.take(block.rooms[other], block.words[other])

    def _search(self, block: BlockInFlight, number: int, searching: Any) -> None:
        """Search a block on a device, when its bases have come."""
        room, kmers = block.rooms[number], self.kmers[number]
        searching.wait_event(room.copies.record())
        room.block = room.block._replace(first=kmers.bases - BASES_A_WORD)
        searched = self._searched(block, number)
        kmers.search(room.block, block.size, block.places, searched, room.searched_into(searched))
        kmers.structure.send_count(room.held)
        block.searched.append(searching.record())
        room.copies.wait_event(block.searched[number])

    def _give(self, block: BlockInFlight, number: int) -> None:
        """Send the answers of a device's share of a block's places to those who asked for them, and find how many
        k-mers come first there."""
        if not (self._asked or self._kept.counting):
            return
        room, share = block.rooms[number], block.shares[number]
        stretch = Stretch(block.first + share.start, block.first + share.stop, *self._pass)
        with room.copies:
            if room.tells_bits:
                others = self._others(number)
                for other in others:
                    room.copies.wait_event(block.searched[other])
                room.answer(share, self._kept.k, stretch, [block.rooms[other] for other in others])
            if room.listing is not None:
                answers = room.answers[: share.stop - share.start]
                room.listing.begin(room.block, self._kept.k, stretch, answers)
            self._hand_out(room, share)

    def _hand_out(self, room: Room, share: slice) -> None:
        """Send a share of a block's answers to whoever asks for these places; none are left for who asks later."""
        first, last = share.start, share.stop
        while first < last and self._asked:
            asked = self._asked.popleft()
            now, later = asked.answers[: last - first], asked.answers[last - first :]
            room.give(first - share.start, asked._replace(answers=now))
            first += len(now)
            if len(later):
                self._asked.appendleft(asked._replace(answers=later))

    def _land(self) -> None:
        """Wait for what was sent first."""
        block = self._flying[0]
        if block is self._unanswered:
            for number, device in enumerate(self._devices):
                with _there(device):
                    self._give(block, number)
            self._unanswered = None
        with self._watch.stage("kernel"):
            for room in block.rooms:
                room.copies.synchronize()
            self._list(block)
        with self._watch.stage("device_to_host"):
            for room in block.rooms:
                room.land(self._copying, self._threads)
            self._copying.wait()
        self._free.append(self._flying.popleft())
        since = sum(flying.places for flying in self._flying)
        for kmers, room in zip(self.kmers, block.rooms, strict=True):
            kmers.structure.holds_at_most(int(room.held[0]) + since)
        self.answered += block.places

    def _list(self, block: BlockInFlight) -> None:
        """List the k-mers that come first in a block, where they are counted."""
        for device, room, listed in zip(self._devices, block.rooms, self.first_kmers, strict=True):
            if room.listing is not None:
                with _there(device):
                    listed.append(room.listing.end())
                    room.copies.wait_event(copies_stream().record())  # (before what comes next in its memory)

    def _others(self, number: int) -> list[int]:
        """The numbers of the other devices."""
        return [other for other in range(len(self._devices)) if other != number]


@contextmanager
def _there(device: int) -> Iterator[Any]:
    """On a device, and the stream of execution there that searches, which is given."""
    with on_device(device), kept_stream(0) as searching:
        yield searching

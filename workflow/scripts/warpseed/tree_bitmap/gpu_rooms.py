"""What a block of a stream takes on its way through GPUs, and who asks for its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.device_copies import from_device
from warpseed.compute.gpu import cupy, kept_stream, launch
from warpseed.compute.host_copies import HostCopies
from warpseed.compute.locked_memory import parts_by_line, pinned
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap import gpu_memory
from warpseed.tree_bitmap.gpu_answers import ANSWERS_A_WORD, put_answers
from warpseed.tree_bitmap.gpu_fast import BLOCK, Stretch
from warpseed.tree_bitmap.gpu_listing import Listing
from warpseed.tree_bitmap.gpu_packed import pack, room_for_packed
from warpseed.tree_bitmap.gpu_shares import largest_share
from warpseed.tree_bitmap.gpu_structures import Kept, tells_bits

__all__ = ["Asked", "BlockInFlight", "Room"]

_BEFORE_SEARCHES = -1
"""The priority of a stream whose kernels go before blocks of a search that have not begun."""


class Asked(NamedTuple):
    """Places of the stream whose answers are asked for."""

    answers: np.ndarray
    """uint8[n], takes them"""
    is_locked: bool
    """whether devices copy there at full speed"""


class Room:
    """What a block takes on the current device, and the stream of execution on which it comes, and its answers are
    made and go.

    Attributes
    ----------
    codes : uint8[`codes_of`], bases as they come from the host
    block : PackedBlock, all of its bases
    answers : uint8[`largest_share`], what the places of the device's share are
    tells_bits : whether they are made of bits, which the parts of the k-mers tell
    seen : uint32[ceil(bases / 32)], bits, what the device's part of the k-mers says of its places; uint32[0] where
        answers are not made of such
    listing : Listing of k-mers that come first, where these are counted
    held : uint64[1], pinned; k-mers that the device has when the block has been searched, if its structure tells
    copies : the stream of execution, which is the current one where methods are called

    Parameters
    ----------
    number : of the block, among those in flight
    bases : of a block, which has no more places
    devices : that share it
    kept : what is kept of k-mers
    parts : of k-mers, of which the device has one
    """

    def __init__(self, number: int, bases: int, devices: int, kept: Kept, parts: int) -> None:
        xp, self._given = cupy(), largest_share(bases, devices)
        self.codes = xp.empty(gpu_memory.codes_of(bases, devices), xp.uint8)
        self.block, self.answers = room_for_packed(bases), xp.empty(self._given, xp.uint8)
        self.tells_bits = tells_bits(kept, parts)
        self.seen = xp.empty(gpu_memory.seen_of(bases) if self.tells_bits else 0, xp.uint32)
        theirs = gpu_memory.theirs_of(bases, devices) if self.tells_bits else 0
        self._theirs = xp.empty((devices - 1) * theirs, xp.uint8)
        self.listing = Listing(self._given) if kept.counting else None
        self.held = pinned(1, np.uint64)
        self.copies = kept_stream(f"block {number}", _BEFORE_SEARCHES)
        # What was there before may still be read on the other stream.
        self.copies.wait_event(xp.cuda.get_current_stream().record())
        self._landing: list[tuple[np.ndarray, np.ndarray]] = []
        """of answers that come to pinned memory first, where they belong, and where they come"""

    @cached_property
    def _through(self) -> np.ndarray:
        """Pinned memory, which answers go through that belong elsewhere."""
        return pinned(self._given, np.uint8)

    def bring(self, before: np.ndarray, codes: np.ndarray, words: slice) -> None:
        """Bring some of a block's words, of which 0 is the one before it, from the host, and pack them.

        before : uint8[32], the bases before the block
        codes : uint8[32·n], those of the block
        """
        used = 0
        for some in (before[_bases_of(words, 0, 1)], codes[_bases_of(words, 1, 1 + len(codes) // BASES_A_WORD)]):
            if len(some):
                self.codes[used : used + len(some)].set(some, stream=self.copies)
                used += len(some)
        pack(self.codes[:used], self.block, words.start)

    def take(self, other: Room, words: slice) -> None:
        """Take some of a block's words from another device."""
        for array, theirs in zip(self.block[:2], other.block[:2], strict=True):
            from_device(theirs[words], array[words])

    def searched_into(self, share: slice) -> Any:
        """What a search writes to: of all places where k-mers have parts, else of the device's share."""
        return self.seen if self.tells_bits else self.answers[: share.stop - share.start]

    def answer(self, share: slice, k: int, stretch: Stretch, others: Sequence[Room]) -> None:
        """Make the answers of a share of the places of what the device's part says, and those of others."""
        words = -(-(share.stop - share.start) // ANSWERS_A_WORD)
        of_share = slice(share.start // ANSWERS_A_WORD, share.start // ANSWERS_A_WORD + words)
        theirs = self._theirs[: len(others) * words].reshape(len(others), words)
        for other, there in zip(others, theirs, strict=True):
            from_device(other.seen.view(np.uint8)[of_share], there)
        seen, answers = self.seen.view(np.uint8)[of_share], self.answers[: ANSWERS_A_WORD * words].view(np.uint64)
        launch(put_answers, words, BLOCK, self.block, k, stretch, seen, theirs, answers)

    def give(self, first: int, asked: Asked) -> None:
        """Send answers, from the first of this share's on, to the host."""
        to, count = asked.answers, len(asked.answers)
        if not asked.is_locked:
            used = sum(len(came) for _, came in self._landing)
            to = self._through[used : used + count]
            self._landing.append((asked.answers, to))
        there = self.answers[first : first + count]
        for part in parts_by_line(to):
            if len(to[part]):
                there[part].get(stream=self.copies, out=to[part], blocking=False)

    def land(self, copies: HostCopies, threads: int) -> None:
        """Begin to bring what came to where it belongs."""
        while self._landing:
            copies.begin(*self._landing.pop(), threads)


@dataclass
class BlockInFlight:
    """A block of the stream on its way: what it takes on each device, and what is known of it there."""

    rooms: list[Room]
    before: np.ndarray = field(default_factory=lambda: pinned(BASES_A_WORD, np.uint8))
    """uint8[32], pinned, the bases before it"""
    size: int = 0
    """its words"""
    first: int = 0
    """the place of the stream that is the first to be searched with it"""
    places: int = 0
    """that are searched with it"""
    shares: list[slice] = field(default_factory=list)
    """of them, whose answers each device gives back"""
    words: list[slice] = field(default_factory=list)
    """which of its words each device takes from the host; 0 is the one before"""
    packed: list[Any] = field(default_factory=list)
    """events that come when each device has packed them"""
    searched: list[Any] = field(default_factory=list)
    """events that come when each device has searched the block"""


def _bases_of(words: slice, first: int, last: int) -> slice:
    """The bases of some words that are among the words [first, last), counted from the first of these on."""
    return slice(*(BASES_A_WORD * (min(max(word, first), last) - first) for word in (words.start, words.stop)))

"""What the k-mers of a stream take of a GPU's memory, and in how many parts they fit it."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import NamedTuple

from warpseed.compute.gpu import free_memory, on_device
from warpseed.errors import MemoryLimitError
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap.gpu_answers import ANSWERS_A_WORD
from warpseed.tree_bitmap.gpu_direct import WORD_BITS
from warpseed.tree_bitmap.gpu_parts import most_of_part
from warpseed.tree_bitmap.gpu_shares import largest_share
from warpseed.tree_bitmap.gpu_structures import Kept, table_bytes, tells_bits

__all__ = [
    "BLOCK_BASES",
    "IN_FLIGHT",
    "Need",
    "block_bytes",
    "codes_of",
    "has_room",
    "passes_for",
    "plan_of",
    "seen_of",
    "theirs_of",
]

BLOCK_BASES = 1 << 25
"""Bases that go to the devices together, some milliseconds of the work of one."""
IN_FLIGHT = 3
"""Blocks on their way: one comes to the devices, one is searched, one goes back."""
_LISTED_BYTES = 16
"""Of each k-mer of a device's share of those that were counted: its code and place, at most."""
_LOOKED_UP_BYTES = 8
"""Of each k-mer that was counted, on each device: how often it has come, as far as that one knows, at most."""
_EXCHANGED_BYTES = 2 * 8
"""Of each place of a share, where devices look up for each other: a code, and a number that comes back."""
_UNEVEN = 1.05
"""How many more k-mers than the others a part of them may have."""
_MOST_FACTOR = 2
"""Times BLOCK_BASES for each of several devices, at most."""
_LEAST_BLOCKS = 12
"""Of a stream, where they are larger: what comes before the first one is searched, and behind the last, is beside no
other."""
_MOST_PASSES = 1000
"""Of a stream: a thousandth of its k-mers take less room than its blocks."""
_OF_FREE = 0.9
"""Of the memory that is free what is counted on."""


class Need(NamedTuple):
    """What a search takes of a device's memory; the stream's length is no part of it."""

    kept: Kept
    kmers: int
    """that are kept, at most"""
    block_factor: int = 1
    """times BLOCK_BASES that go to the devices together"""

    @property
    def block_bases(self) -> int:
        """Bases of a block."""
        return BLOCK_BASES * self.block_factor

    @classmethod
    def of(cls, k: int, places: int, known: int = 0, *, grows: bool = True, counting: bool = False) -> Need:
        """That of a stream of so many places, and k-mers that are known before."""
        return cls(Kept(k, grows, counting), min(known + (places if grows else 0), 4**k))

    def parts(self, devices: int, passes: int = 1) -> int:
        """Parts that k-mers are dealt out to, of which each device has one in each pass of the stream; of a dictionary
        that stays as it is all devices have the same one, and share the places."""
        return passes * devices if self.kept.grows else passes

    def part(self, devices: int, number: int, here: int) -> int:
        """Which of them a device, `here`, has in the pass of a number: side by side with those of the other devices."""
        return number * devices + here if self.kept.grows else number

    def bytes(self, devices: int = 1, passes: int = 1) -> int:
        """Bytes that a pass of a search takes on each of so many devices."""
        parts = self.parts(devices, passes)
        blocks = block_bytes(self.block_bases, devices, with_bits=tells_bits(self.kept, parts))
        return blocks + table_bytes(self.kept, self.kmers_of(parts), parts) + self.counted_bytes(devices, passes)

    def counted_bytes(self, devices: int, passes: int) -> int:
        """Bytes of the k-mers that a device lists in a pass, and of how often each of all that the pass has has come.
        They are dealt out by their first places there, not by their hash: if new ones stand in the first shares of
        blocks alone, as the last ones of short k-mers may, a device has those of a share of a block more."""
        if not self.kept.counting:
            return 0
        of_pass, share = self.kmers_of(passes), largest_share(self.block_bases, devices)
        if devices == 1:
            return (_LISTED_BYTES + _LOOKED_UP_BYTES) * of_pass
        mine = min(of_pass, int(_UNEVEN * of_pass / devices) + share)
        return _LISTED_BYTES * mine + _LOOKED_UP_BYTES * of_pass + _EXCHANGED_BYTES * share

    def kmers_of(self, parts: int) -> int:
        """K-mers that a part's table has room for: its own, and those of a block, which may all be its; no more than
        it can have."""
        if parts == 1:
            return self.kmers
        room = int(_UNEVEN * self.kmers / parts) + self.block_bases
        return min(self.kmers, room, most_of_part(self.kept.k, parts))

    def least(self, devices: int = 1) -> int:
        """Bytes that a search takes on each device at least, in one pass or as many as may be."""
        return min(self.bytes(devices), self.bytes(devices, _MOST_PASSES))


def codes_of(bases: int, devices: int) -> int:
    """Codes that a device brings from the host at most, of a block of so many bases and the word before it: those of
    its share, those in which its last k-mers end, and what makes them whole words."""
    return min(bases + BASES_A_WORD, largest_share(bases, devices) + 3 * BASES_A_WORD)


def seen_of(bases: int) -> int:
    """Words that have a bit for each place of a block of so many bases."""
    return -(-bases // WORD_BITS)


def theirs_of(bases: int, devices: int) -> int:
    """Bytes that have a bit for each place of a device's share of a block of so many bases."""
    return largest_share(bases, devices) // ANSWERS_A_WORD


def block_bytes(bases: int, devices: int, *, with_bits: bool) -> int:
    """Bytes of the blocks on their way: codes, bases packed with their marks, answers of a share, and bits, of which
    these are made where k-mers have parts."""
    bits = 4 * seen_of(bases) + (devices - 1) * theirs_of(bases, devices) if with_bits else 0
    return IN_FLIGHT * (codes_of(bases, devices) + bases // 2 + largest_share(bases, devices) + bits)


def _room(device: int, wanted: int) -> int:
    """Bytes that may be taken, of what nobody holds any more, too, if so many are wanted."""
    with on_device(device):
        room = int(_OF_FREE * free_memory())
        if room < wanted:
            gc.collect()  # an error's traceback holds arrays of the search that failed
            room = int(_OF_FREE * free_memory())
        return room


def has_room(devices: Sequence[int], need: Need) -> bool:
    """Whether devices have room for all of a search at once."""
    wanted = need.bytes(len(devices))
    return all(wanted <= _room(device, wanted) for device in devices)


def passes_for(devices: Sequence[int], need: Need) -> int:
    """How often a stream goes through the devices, each time for other parts of the k-mers.

    Raises
    ------
    MemoryLimitError : there is no room for a part
    """
    passes, least = 1, need.least(len(devices))
    for device in devices:
        room = _room(device, need.bytes(len(devices)))
        if least > room:
            raise MemoryLimitError(
                f"GPU {device} has {room / 1e6:,.0f} MB for {need.kmers:,} k-mers, which take "
                f"{least / 1e6:,.0f} MB at least, in parts or not; use a larger GPU, or device cpu."
            )
        while need.bytes(len(devices), passes) > room:
            passes += 1
    return passes


def plan_of(devices: Sequence[int], need: Need, length: int) -> tuple[Need, int]:
    """(need, passes) of a search of a stream of so many bases. Several devices take a long one in larger blocks, if
    there is room for all of it at once: they are through with a block sooner than one, but what is launched for it
    takes the host longer.

    Raises
    ------
    MemoryLimitError : there is no room for a part
    """
    larger = need._replace(block_factor=min(_MOST_FACTOR * len(devices), length // (_LEAST_BLOCKS * BLOCK_BASES)))
    if len(devices) > 1 and larger.block_factor > 1 and has_room(devices, larger):
        return larger, 1
    return need, passes_for(devices, need)

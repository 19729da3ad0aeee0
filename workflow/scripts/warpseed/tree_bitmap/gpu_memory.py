"""What the k-mers of a stream take of a GPU's memory, and in how many parts they fit it."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import NamedTuple

from warpseed.compute.gpu import free_memory, on_device
from warpseed.errors import MemoryLimitError
from warpseed.tree_bitmap.gpu_structures import Kept, table_bytes

__all__ = ["BLOCK_BASES", "IN_FLIGHT", "Need", "has_room", "passes_for"]

BLOCK_BASES = 1 << 25
"""Bases that go to the devices together, some milliseconds of their work."""
IN_FLIGHT = 3
"""Blocks on their way: one comes to the devices, one is searched, one goes back."""
_BLOCK_BYTES = 3
"""Of each base of a block: its code, its answer, and packed with a mark."""
_ORDERED_BYTES = 53
"""Of each k-mer that was counted, for what comes of it: its number, code, turn and count, and what sorting takes."""
_UNEVEN = 1.05
"""How many more k-mers than the others a part of them may have."""
_OF_FREE = 0.9
"""Of the memory that is free what is counted on."""


class Need(NamedTuple):
    """What a search takes of a device's memory; the stream's length is no part of it."""

    kept: Kept
    kmers: int
    """that are kept, at most"""

    @classmethod
    def of(cls, k: int, places: int, known: int = 0, *, grows: bool = True, counting: bool = False) -> Need:
        """That of a stream of so many places, and k-mers that are known before."""
        return cls(Kept(k, grows, counting), min(known + (places if grows else 0), 4**k))

    def parts(self, devices: int, passes: int = 1) -> int:
        """Parts that k-mers are dealt out to, of which each device has one in each pass of the stream; of a dictionary
        that stays as it is all devices have the same one, and share the places."""
        return passes * devices if self.kept.grows else passes

    def bytes(self, parts: int = 1) -> int:
        """Bytes that a search of one of so many parts of the k-mers takes."""
        kmers = self.kmers_of(parts)
        ordered = _ORDERED_BYTES * kmers if self.kept.counting else 0
        return IN_FLIGHT * _BLOCK_BYTES * BLOCK_BASES + table_bytes(self.kept, kmers) + ordered

    def kmers_of(self, parts: int) -> int:
        """K-mers that a part's table has room for: its own, and those of a block, which may all be its."""
        if parts == 1:
            return self.kmers
        return min(self.kmers, int(_UNEVEN * self.kmers / parts) + BLOCK_BASES)

    @property
    def least(self) -> int:
        """Bytes that a search takes at least, in however many parts."""
        return self._replace(kmers=min(self.kmers, BLOCK_BASES + BLOCK_BASES // 2)).bytes()


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
    wanted = need.bytes(need.parts(len(devices)))
    return all(wanted <= _room(device, wanted) for device in devices)


def passes_for(devices: Sequence[int], need: Need) -> int:
    """How often a stream goes through the devices, each time for other parts of the k-mers.

    Raises
    ------
    MemoryLimitError : there is no room for a part
    """
    passes = 1
    for device in devices:
        room = _room(device, need.bytes(need.parts(len(devices))))
        if need.least > room:
            raise MemoryLimitError(
                f"GPU {device} has {room / 1e6:,.0f} MB for {need.kmers:,} k-mers, which take "
                f"{need.least / 1e6:,.0f} MB even in parts; use a larger GPU, or device='cpu'."
            )
        while need.bytes(need.parts(len(devices), passes)) > room:
            passes += 1
    return passes

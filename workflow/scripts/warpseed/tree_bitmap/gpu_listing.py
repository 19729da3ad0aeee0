"""The k-mers that come first in a share of a block, where k-mers are counted: listed on the device, in order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.device_copies import copies_stream
from warpseed.compute.gpu import cupy, launch
from warpseed.compute.locked_memory import pinned
from warpseed.compute.warp import LANES
from warpseed.tree_bitmap.gpu_answers import TILE, count_new, list_new
from warpseed.tree_bitmap.gpu_fast import BLOCK, PackedBlock, Stretch
from warpseed.tree_bitmap.stream import place_type

__all__ = ["FirstKmers", "Listing"]


class FirstKmers(NamedTuple):
    """K-mers that come first in a share of a block, by their places: no other share of the stream has them."""

    kmers: Any
    """uint64[n] on the device, their codes"""
    places: Any
    """int32[n] or int64[n] there, by `place_type` of the places up to the end of the share: their first places in the
    stream"""


class Listing:
    """What lists the k-mers of one share of a block after another, on the device that is current now.

    Parameters
    ----------
    places : of a share, at most
    """

    def __init__(self, places: int) -> None:
        self._room = cupy().empty(-(-places // TILE), np.int64)
        """for `_ends`"""
        self._ends: Any = self._room[:0]
        """int64[tiles], of each tile of the share, how many there are up to its end"""
        self._found = pinned(1, np.int64)
        self._share: tuple[Any, ...] = ()
        """what kernels are given of it"""

    def begin(self, block: PackedBlock, k: int, stretch: Stretch, answers: Any) -> None:
        """Find how many k-mers of a stretch of a block come first there; `answers`, uint8[…] on the device, say what
        its places are. They and the block stay as they are until the list has come to its `end`."""
        self._share = block, k, stretch, answers
        self._ends, self._found[0] = self._room[: -(-(stretch.last - stretch.first) // TILE)], 0
        launch(count_new, LANES * len(self._ends), BLOCK, *self._share, self._ends)
        if len(self._ends):
            cupy().cumsum(self._ends, out=self._ends)
            self._ends[-1:].get(stream=cupy().cuda.get_current_stream(), out=self._found, blocking=False)

    def end(self) -> FirstKmers:
        """The list, when the host has waited for what `begin` has found; it is written on the stream that brings it to
        the host, on which its memory is kept for later, too."""
        count = int(self._found[0])
        _, _, stretch, _ = self._share
        with copies_stream():
            listed = FirstKmers(cupy().empty(count, np.uint64), cupy().empty(count, place_type(stretch.last)))
            launch(list_new, LANES * len(self._ends) if count else 0, BLOCK, *self._share, self._ends, *listed)
        return listed

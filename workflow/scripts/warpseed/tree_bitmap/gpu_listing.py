"""The k-mers that come first in a share of a block, where k-mers are counted: listed on the device, in order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.gpu import cupy, launch
from warpseed.compute.locked_memory import pinned
from warpseed.compute.warp import LANES
from warpseed.tree_bitmap.gpu_answers import TILE, count_new, list_new
from warpseed.tree_bitmap.gpu_fast import BLOCK, PackedBlock, Stretch
from warpseed.tree_bitmap.gpu_table import room_for_packed

__all__ = ["Listed", "Listing"]


class Listed(NamedTuple):
    """K-mers, by their places, which are in no other list of the stream."""

    kmers: Any
    """uint64[n] on the device, their codes"""
    places: Any
    """int64[n] there, where they come first in the stream"""


class Listing:
    """What lists the k-mers of one share of a block after another, on the device that is current now.

    Attributes
    ----------
    block : the bases of the block, packed; or room for them

    Parameters
    ----------
    bases : of a block, at most
    places : of a share, at most
    """

    def __init__(self, bases: int, places: int) -> None:
        self.block = room_for_packed(bases)
        self._ends = cupy().empty(-(-places // TILE), np.int64)
        """of each tile of a share, how many there are up to its end"""
        self._found = pinned(1, np.int64)
        self._share: tuple[PackedBlock, int, Stretch, Any] | None = None

    def count(self, k: int, stretch: Stretch, answers: Any) -> None:
        """Count the k-mers of a stretch of the block that come first there; `answers`, uint8[…] on the device, say what
        its places are. They and the block stay as they are until all are `listed`."""
        self._share = self.block, k, stretch, answers
        ends, self._found[0] = self._ends_of(stretch), 0
        launch(count_new, LANES * len(ends), BLOCK, *self._share, ends)
        if len(ends):
            cupy().cumsum(ends, out=ends)
            ends[-1:].get(stream=cupy().cuda.get_current_stream(), out=self._found, blocking=False)

    def listed(self) -> Listed:
        """These k-mers, when the host has waited for them to be counted."""
        assert self._share is not None
        count, ends = int(self._found[0]), self._ends_of(self._share[2])
        listed = Listed(cupy().empty(count, np.uint64), cupy().empty(count, np.int64))
        launch(list_new, LANES * len(ends) if count else 0, BLOCK, *self._share, ends, *listed)
        return listed

    def _ends_of(self, stretch: Stretch) -> Any:
        return self._ends[: -(-(stretch.last - stretch.first) // TILE)]

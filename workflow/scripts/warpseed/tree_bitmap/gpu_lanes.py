"""Bases of a stream on the host, on their way to devices: blocks that are filled, or lie in the caller's memory."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from warpseed.compute.host_copies import HostCopies
from warpseed.compute.locked_memory import pinned
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap.stream import NO_BASE

__all__ = ["Lane", "whole_words"]


def whole_words(bases: int) -> int:
    """So many bases, rounded up to whole words."""
    return -(-bases // BASES_A_WORD) * BASES_A_WORD


class Lane:
    """Bases of a block on the host, in memory that devices copy from at full speed: its own, which is taken when it is
    filled, or the caller's.

    Attributes
    ----------
    size : bases that make it full
    bases : that it has
    came : events, after which devices have taken what it had; `taken` waits for them, and lets them go

    Parameters
    ----------
    bases : that it has room for
    """

    def __init__(self, bases: int) -> None:
        self._most = bases
        self.size = bases
        self.bases = 0
        self.came: list[Any] = []
        self._filling = HostCopies()
        self._borrowed: np.ndarray | None = None

    @cached_property
    def codes(self) -> np.ndarray:
        """Memory of its own."""
        return pinned(self._most, np.uint8)

    @property
    def is_full(self) -> bool:
        """Whether it takes no more."""
        return self.bases == self.size

    @property
    def borrows(self) -> bool:
        """Whether its bases lie in the caller's memory."""
        return self._borrowed is not None

    def may_borrow(self, codes: np.ndarray) -> bool:
        """Whether so many bases can make it full where they lie."""
        return not self.bases and len(codes) >= self.size

    def borrow(self, codes: np.ndarray) -> np.ndarray:
        """Take bases that lie in locked memory, and stay there until they have been `taken`; returns the others."""
        self._borrowed, self.bases = codes[: self.size], self.size
        return codes[self.size :]

    def taken(self) -> None:
        """Wait until devices have taken what was launched."""
        while self.came:
            self.came.pop().synchronize()
        if not self.bases:
            self._borrowed = None

    def fill(self, codes: np.ndarray, threads: int) -> np.ndarray:
        """Take bases while there is room, which may be on their way still; returns the others."""
        self.taken()
        taken = codes[: self.size - self.bases]
        self._filling.begin(self.codes[self.bases : self.bases + len(taken)], taken, threads)
        self.bases += len(taken)
        return codes[len(taken) :]

    def filled(self) -> None:
        """Wait for all that was taken."""
        self._filling.wait()

    def words(self) -> np.ndarray:
        """The bases that were taken, in whole words; there are none then."""
        taken, self.bases = self.bases, 0
        if self._borrowed is not None:
            return self._borrowed
        size = whole_words(taken)
        self.codes[taken:size] = NO_BASE
        return self.codes[:size]

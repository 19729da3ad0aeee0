"""What is told of a stream, block by block as a file is read: its places, what is near k-mers in it, its k-mers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from warpseed.sequences.names import Names
from warpseed.tree_bitmap import cpu, output
from warpseed.tree_bitmap.cpu_listing import new_kmers
from warpseed.tree_bitmap.edits import TOO_FAR
from warpseed.tree_bitmap.request import Request, Totals
from warpseed.tree_bitmap.room import require_room
from warpseed.tree_bitmap.stream import NEW, SEEN, Stream
from warpseed.tree_bitmap.targets import answers_on, counts_on, distances_on, find_answers, known_before

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.tree_bitmap.targets import Answers, Counts, Distances, Target

__all__ = ["Ends", "Kmers", "Places", "Put", "Report", "WholePlaces"]

Put = Callable[[Stream, np.ndarray], None]
"""What writes a block and the kinds of its places, uint8[n]."""


class Report(ABC):
    """What is told of blocks of a stream, one after the other.

    Attributes
    ----------
    totals : Totals so far
    """

    def __init__(self, request: Request, watch: Stopwatch) -> None:
        self.totals = Totals()
        self._request = request
        self._watch = watch
        self._first = 0
        """the place of the stream at which the next block begins"""

    @abstractmethod
    def take(self, block: Stream, more: bool) -> None:
        """Take the next block, with whether another follows."""

    @property
    def held(self) -> int:
        """K-mers that are put into sets anew for every block."""
        return 0

    def _passed(self, block: Stream, kmers: int, new: int) -> None:
        """Count a block, behind which is one place that is no base."""
        self.totals = self.totals.and_block(block, kmers, new)
        self._first += len(block.codes) + 1


class Places(Report):
    """Places, written as they come."""

    def __init__(self, request: Request, watch: Stopwatch, target: Target, put: Put, keep: bool) -> None:
        super().__init__(request, watch)
        self._target = target
        self._put = put
        self._keep = keep
        self._kmers: Answers | None = None
        self._waiting: list[Stream] = []
        self._new = [request.known]

    def take(self, block: Stream, more: bool) -> None:
        """Match the next block, and write what places are."""
        if self._kmers is None:
            with self._watch.stage("build"):
                self._kmers = self._begun(block)
        self._waiting.append(block)
        with self._watch.stage("search"):
            found = self._kmers.take(block.codes, more)
        for answers in found:
            self._told(self._waiting.pop(0), answers)

    def _begun(self, block: Stream) -> Answers:
        """What knows the dictionary, and the seed where that is all; `block` is the first."""
        request = self._request
        known = request.known if request.grows else known_before(block.codes, request, self._watch)
        return answers_on(self._target, request, known, len(block.codes))

    def _told(self, block: Stream, answers: np.ndarray) -> None:
        """Write what the places of a block are."""
        with self._watch.stage("search"):
            if self._keep:
                self._new.append(new_kmers(block.codes, self._request.k, answers, self._request.options.threads))
            seed = answers[: max(0, self._request.seed_places - self._first)] if self._request.grows else answers[:0]
            seed[seed == NEW] = SEEN
        with self._watch.stage("write"):
            self._put(block, answers)
        self._passed(block, int(np.count_nonzero(answers)), int(np.count_nonzero(answers == NEW)))

    @property
    def held(self) -> int:
        """As `Report.held`."""
        return 0 if self._kmers is None else self._kmers.held

    def dictionary(self) -> np.ndarray:
        """All k-mers that have been seen."""
        return _in_order(self._new, self._request.k)


def _in_order(parts: list[np.ndarray], k: int) -> np.ndarray:
    """Distinct k-mers, ascending."""
    count = sum(map(len, parts))
    require_room(8 * count, f"To put {count:,} {k}-mers in order", "save no dictionary")
    kmers = np.concatenate(parts)
    kmers.sort()
    return kmers


class WholePlaces(Report):
    """Places of a stream that is one block."""

    def __init__(self, request: Request, watch: Stopwatch, put: Put) -> None:
        super().__init__(request, watch)
        self._put = put

    def take(self, block: Stream, more: bool) -> None:
        """Match the stream, and write what places are."""
        answers, self._grown = find_answers(block.codes, self._request, self._watch)
        with self._watch.stage("write"):
            self._put(block, answers)
        self._passed(block, int(np.count_nonzero(answers)), int(np.count_nonzero(answers == NEW)))

    def dictionary(self) -> np.ndarray:
        """All k-mers that have been seen."""
        return self._grown()


class Ends(Report):
    """Places at which something near a k-mer ends, written as they come."""

    def __init__(self, request: Request, watch: Stopwatch, put: Put) -> None:
        super().__init__(request, watch)
        self._put = put
        self._near: Distances | None = None

    def take(self, block: Stream, more: bool) -> None:
        """Find the distances of the next block, and write them."""
        if self._near is None:
            known = known_before(block.codes, self._request, self._watch)
            self._near = distances_on(self._request, known, self._watch)
        distances = self._near.find(block.codes)
        with self._watch.stage("write"):
            self._put(block, output.kinds_of(distances))
        self._passed(block, *_near_and_inexact(distances))


def _near_and_inexact(distances: np.ndarray) -> tuple[int, int]:
    """How many places have a distance, and how many one that is not 0."""
    near = int(np.count_nonzero(distances != TOO_FAR))
    return near, near - int(np.count_nonzero(distances == 0))


class Kmers(Report):
    """K-mers, written when all have been counted."""

    def __init__(self, request: Request, watch: Stopwatch, target: Target) -> None:
        super().__init__(request, watch)
        self._target = target
        self._counts: Counts | None = None
        self._names: list[Names] = []
        self._starts: list[np.ndarray] = []

    def take(self, block: Stream, more: bool) -> None:
        """Count the k-mers of the next block."""
        with self._watch.stage("search"):
            if self._counts is None:
                self._counts = counts_on(self._target, self._request, len(block.codes))
            self._counts.take(block.codes, more)
        self._names.append(block.names)
        self._starts.append(block.starts + self._first)
        self._passed(block, 0, 0)

    @property
    def held(self) -> int:
        """As `Report.held`."""
        return 0 if self._counts is None else self._counts.held

    def rows(self) -> output.KmerRows:
        """All k-mers."""
        assert self._counts is not None
        with self._watch.stage("search"):
            counted = self._counts.counted()
        self._counts = None  # whose memory is wanted
        seen = cpu.is_known(counted.codes, self._request.known)
        seen |= counted.places < self._request.seed_places
        new = len(seen) - np.count_nonzero(seen) if self._request.grows else counted.counts[~seen].sum()
        self.totals = self.totals._replace(kmers=int(counted.counts.sum()), new=int(new))
        names = Names.joined(self._names)
        return output.KmerRows(self._request.k, counted, seen, np.concatenate(self._starts), names)

    def dictionary(self, rows: output.KmerRows) -> np.ndarray:
        """All k-mers that have been seen."""
        known, codes = self._request.known, rows.counted.codes
        new = codes[~cpu.is_known(codes, known)] if len(known) else codes
        return _in_order([known, new], self._request.k)

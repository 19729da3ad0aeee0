"""Places of a stream at which something near a k-mer ends: who finds them, and how they go out as a file is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warpseed.batches import devices_of
from warpseed.tree_bitmap import cpu, cpu_edits, output
from warpseed.tree_bitmap.edits import TOO_FAR
from warpseed.tree_bitmap.request import Put, Report, Request
from warpseed.tree_bitmap.stream import Stream

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch

__all__ = ["Ends", "find_distances", "known_before"]


def known_before(codes: np.ndarray, request: Request, watch: Stopwatch) -> np.ndarray:
    """The k-mers of the dictionary and the seed, sorted; `codes` begin where the stream does."""
    seed = codes[: request.seed_length]
    if not len(seed):
        return request.known
    found = cpu.find_answers(seed, request.k, threads=request.options.threads, watch=watch)[1]()
    return np.union1d(request.known, found)


def find_distances(codes: np.ndarray, request: Request, watch: Stopwatch) -> np.ndarray:
    """As `warpseed.tree_bitmap.cpu_edits.find_distances`, on the device that is asked for."""
    wanted = codes, known_before(codes, request, watch), request.k, request.max_edits
    if request.options.device == "cpu":
        return cpu_edits.find_distances(*wanted, threads=request.options.threads, watch=watch)
    from warpseed.tree_bitmap import gpu_edits

    return gpu_edits.find_distances(*wanted, devices=devices_of(request.options.device), watch=watch)


class Ends(Report):
    """Places at which something near a k-mer ends, written as they come."""

    def __init__(self, request: Request, watch: Stopwatch, put: Put) -> None:
        super().__init__(request, watch)
        self._put = put
        self._near: cpu_edits.HostDistances | None = None

    def take(self, block: Stream, more: bool) -> None:
        """Find the distances of the next block, and write them."""
        distances = self._distances(block.codes)
        with self._watch.stage("write"):
            self._put(block, output.kinds_of(distances))
        self._passed(block, *_near_and_inexact(distances))

    def _distances(self, codes: np.ndarray) -> np.ndarray:
        """Those of a block; on GPUs the stream is one."""
        request = self._request
        if request.options.device != "cpu":
            return find_distances(codes, request, self._watch)
        if self._near is None:
            with self._watch.stage("build"):
                known = known_before(codes, request, self._watch)
                self._near = cpu_edits.HostDistances(known, request.k, request.max_edits)
        with self._watch.stage("search"):
            return self._near.find(codes, threads=request.options.threads)

    def dictionary(self) -> np.ndarray:
        """The k-mers of the dictionary: places near them add none."""
        return self._request.known

    def held(self) -> int:
        """As `_Places.held`."""
        return 0


def _near_and_inexact(distances: np.ndarray) -> tuple[int, int]:
    """How many places have a distance, and how many one that is not 0."""
    near = int(np.count_nonzero(distances != TOO_FAR))
    return near, near - int(np.count_nonzero(distances == 0))

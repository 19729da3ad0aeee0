"""The k-mers that come first among the places of a block, listed by threads of the CPU, in order."""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.ranges import borders_of, on_threads, steps
from warpseed.tree_bitmap.cpu_parts import ranges_of
from warpseed.tree_bitmap.room import require_room
from warpseed.tree_bitmap.stream import NEW, place_type
from warpseed.tree_bitmap.windows import BLOCK, kmers_of, new_windows, read_block

__all__ = ["NewPlaces", "new_kmers"]


@scalar
def _kmers_at(codes, places, k, windows, answers, out):
    """The k-mers of the places [begin, end) that are NEW, in order, to `out`, uint64[…], which has room for them.

    Returns
    -------
    how many there are
    """
    place, end = places
    used = int64(0)
    while place < end:
        count = min(int64(BLOCK), end - place)
        kmers_of(windows, k, count, read_block(codes, place, count, windows))
        for i in range(count):
            if answers[uint64(place + i)] == NEW:
                out[uint64(used)] = windows.kmers[uint64(i)]
                used += int64(1)
        place += count
    return used


@scalar
def _counts_at(answers, first_counts, places, first, out_places, out_counts):
    """Of the places [begin, end) those that are NEW, counted from `first` on, and how often their k-mers come, to
    arrays that have room for them.

    Returns
    -------
    how many there are
    """
    used = int64(0)
    for place in range(*places):
        if answers[uint64(place)] == NEW:
            out_places[uint64(used)] = first + place
            out_counts[uint64(used)] = first_counts[uint64(place)]
            used += int64(1)
    return used


class NewPlaces:
    """The places of a block that are NEW, of which threads list what is asked for.

    Attributes
    ----------
    count : how many there are

    Parameters
    ----------
    answers : uint8[…], what each place is
    threads : CPU threads
    """

    def __init__(self, answers: np.ndarray, threads: int) -> None:
        self._answers, self._threads = answers, threads
        self._spans = ranges_of(len(answers), threads)

        def count(number: int) -> int:
            return sum(int(np.count_nonzero(answers[begin:end] == NEW)) for begin, end in steps(*self._spans[number]))

        self._borders = borders_of(np.array(on_threads(threads, count, len(self._spans)), np.int64)).tolist()
        """of each span, how many there are before it; and of all"""
        self.count = self._borders[-1]

    def kmers(self, codes: np.ndarray, k: int) -> np.ndarray:
        """Their k-mers, in order: uint64[count]; `codes` may have more places than answers."""
        require_room(8 * self.count, f"To keep {self.count:,} {k}-mers")
        kmers = np.empty(self.count, np.uint64)

        def fill(number: int) -> None:
            windows, used = new_windows(), self._borders[number]
            for span in steps(*self._spans[number]):
                used += _kmers_at(codes, span, k, windows, self._answers, kmers[used:])

        on_threads(self._threads, fill, len(self._spans))
        return kmers

    def counts(self, first_counts: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
        """(places, counts): where they are in the stream, and how often their k-mers come, [count] of each, by
        `place_type` of all places up to the end of the block.

        Parameters
        ----------
        first_counts : as those of `Said`
        first : the place of the stream that is the first of the block
        """
        made_type = place_type(first + len(self._answers))
        places, counts = (np.empty(self.count, made_type) for _ in range(2))

        def fill(number: int) -> None:
            used = self._borders[number]
            for span in steps(*self._spans[number]):
                used += _counts_at(self._answers, first_counts, span, first, places[used:], counts[used:])

        on_threads(self._threads, fill, len(self._spans))
        return places, counts


def new_kmers(codes: np.ndarray, k: int, answers: np.ndarray, threads: int = 1) -> np.ndarray:
    """The k-mers of the places that are NEW, as of `NewPlaces.kmers`."""
    return NewPlaces(answers, threads).kmers(codes, k)

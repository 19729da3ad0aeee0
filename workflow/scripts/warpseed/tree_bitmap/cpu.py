"""The fast tier on the CPU: which structure answers for a stream, and its work on several threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from warpseed.compute.ranges import STEP, on_threads, steps
from warpseed.compute.stopwatch import Stopwatch
from warpseed.tree_bitmap.cpu_counts import CountedSets, CountTable
from warpseed.tree_bitmap.cpu_fast import (
    Said,
    add_bits,
    answer_by_bits,
    answer_by_set,
    seen_by_bits,
    slots_for,
)
from warpseed.tree_bitmap.cpu_parts import Parts, ranges_of
from warpseed.tree_bitmap.fast import add_kmers, clear_set, new_set
from warpseed.tree_bitmap.room import require_room
from warpseed.tree_bitmap.seeds import find_seeded
from warpseed.tree_bitmap.stream import KmerCounts
from warpseed.tree_bitmap.windows import BLOCK, new_windows

__all__ = ["BLOCK_PLACES", "MOST_PLACES", "HostCounts", "HostKmers", "find_answers", "is_known"]

BLOCK_PLACES = 1 << 27
"""Places of a file that are worked on together: the more, the less often a set in parts is filled anew."""
MOST_PLACES = 1 << 31
"""Places that are at most, or so: those of sets in parts have 32 bits."""
_MOST_BITS_K = 15
"""The longest k-mers that may have a bit each: 128 MiB."""
_CHEAP_BITS = 1 << 19
"""Bytes of bits that cost nothing to speak of."""
_ROUND = 1 << 22
"""Places for each thread, at least, after which all of them know what the others have seen."""
_PLACES_A_THREAD = 1 << 19
"""Places for which another thread is worth to be begun: some milliseconds of work."""
_BITS_A_KMER = 16
_CHEAP_COUNTS = 1 << 16
"""Counts that cost nothing to speak of."""
_PLACES_A_COUNT = 2
"""Places for which a count, of all threads, costs less than sets do."""
_MOST_COUNTED_K = 12
"""The longest k-mers that may have a count each."""


class _Bits:
    """A bit for each k-mer that there can be."""

    def __init__(self, k: int, known: np.ndarray, grows: bool, threads: int) -> None:
        self._k, self._grows, self._threads = k, grows, threads
        # The first are what has been seen; others, of ranges of places, are made when there are such.
        self._bits = [np.zeros(max(1, 4**k // 64), np.uint64)]
        for first, last in steps(0, len(known)):
            add_bits(self._bits[0], known[first:last])

    def answer(self, codes: np.ndarray, answers: np.ndarray, more: bool) -> None:
        """As `HostKmers.answer`."""
        # In a round every thread takes its own bits from those that all have seen: they cost little against its places.
        places = self._threads * max(_ROUND, self._bits[0].nbytes)
        for first in range(0, len(answers), places):
            last = first + places
            self._answer_round(codes[first : last + self._k - 1], answers[first:last])

    def _answer_round(self, codes: np.ndarray, answers: np.ndarray) -> None:
        spans, bits = ranges_of(len(answers), self._threads), self._bits
        rest = len(spans) - 1 if self._grows else 0
        bits += [np.empty_like(bits[0]) for _ in range(rest + 1 - len(bits))]
        on_threads(self._threads, lambda number: np.copyto(bits[number + 1], bits[0]), rest)

        def look(number: int) -> None:
            held = bits[number if self._grows else 0]
            windows = new_windows()
            for span in steps(*spans[number]):
                answer_by_bits(codes, span, self._k, held, self._grows, windows, answers)

        on_threads(self._threads, look, len(spans))
        for number in range(1, rest + 1):
            np.bitwise_or(bits[number - 1], bits[number], out=bits[number])
        # What a range took for new gives way to what those before it saw; all threads share these ranges.
        again = [
            (number, (spans[number][0] + begin, spans[number][0] + end))
            for number in range(1, rest + 1)
            for begin, end in ranges_of(spans[number][1] - spans[number][0], self._threads)
        ]

        def look_again(task: int) -> None:
            number, span = again[task]
            windows = new_windows()
            for some in steps(*span):
                seen_by_bits(codes, some, self._k, bits[number - 1], windows, answers)

        on_threads(self._threads, look_again, len(again))
        if rest > 0:
            bits[0], bits[rest] = bits[rest], bits[0]


class _FixedSet:
    """One set, for a dictionary that does not grow, with a bit of each k-mer before it."""

    def __init__(self, k: int, known: np.ndarray, threads: int) -> None:
        self._k, self._threads = k, threads
        bits = 1 << min(32, max(7, int(len(known) * _BITS_A_KMER - 1).bit_length()))
        slots = slots_for(len(known))
        require_room(8 * slots + bits // 8, f"A set of {len(known):,} {k}-mers", "give fewer")
        self._kmers = new_set(slots, bits)
        clear_set(self._kmers, slots)
        for first, last in steps(0, len(known)):
            add_kmers(self._kmers, slots, known, first, last, 0)

    def answer(self, codes: np.ndarray, answers: np.ndarray, more: bool) -> None:
        """As `HostKmers.answer`."""
        spans = ranges_of(len(answers), self._threads, STEP)

        def look(number: int) -> None:
            candidates = np.empty(BLOCK + 1, np.uint32)
            answer_by_set(codes, spans[number], self._k, self._kmers, new_windows(), candidates, answers)

        on_threads(self._threads, look, len(spans))


class _GrowingSets:
    """Sets in parts."""

    def __init__(self, k: int, known: np.ndarray, threads: int, places: int) -> None:
        self._parts = Parts(k, known, threads, places)

    @property
    def known(self) -> np.ndarray:
        """The k-mers that are known, in any order."""
        return self._parts.known

    def answer(self, codes: np.ndarray, answers: np.ndarray, more: bool) -> None:
        """As `HostKmers.answer`."""
        grouped = self._parts.answer(codes, Said(answers, np.empty(0, np.uint32), np.empty(0, np.int64)))
        if more:
            self._parts.learn(grouped, answers)


def _worth_of(threads: int, places: int) -> int:
    """As many of the threads as are worth to be begun for so many places."""
    return max(1, min(threads, places // _PLACES_A_THREAD))


class HostKmers:
    """The k-mers that have been seen; they answer for one block of a stream after the other.

    Parameters
    ----------
    k : bases of a k-mer, 1 to 31
    known : uint64[d], distinct k-mers that have been seen
    grows : whether those of the stream are, too, from their first place on
    threads : CPU threads
    places : how many places the largest block has, about
    """

    def __init__(self, k: int, known: np.ndarray, *, grows: bool = True, threads: int = 1, places: int) -> None:
        self.k = k
        threads = _worth_of(threads, places)
        cheap = 4**k // 8 * (threads if grows else 1) <= max(_CHEAP_BITS, 4 * max(places, len(known)))
        self._structure: _Bits | _FixedSet | _GrowingSets
        if k <= _MOST_BITS_K and cheap:
            self._structure = _Bits(k, known, grows, threads)
        elif not grows:
            self._structure = _FixedSet(k, known, threads)
        else:
            self._structure = _GrowingSets(k, known, threads, places)

    def answer(self, codes: np.ndarray, answers: np.ndarray, more: bool = True) -> None:
        """Say what the next places of the stream are: NO_KMER, NEW or SEEN.

        Parameters
        ----------
        codes : uint8[…], from the first of these places on; those behind the last are read too
        answers : uint8[places], zeros, filled
        more : whether other places will follow
        """
        self._structure.answer(codes, answers, more)

    def take(self, codes: np.ndarray, more: bool) -> list[np.ndarray]:
        """What the places of the next block are, uint8[…]; between two of them is one place that is no base."""
        answers = np.zeros(len(codes), np.uint8)
        self.answer(codes, answers, more)
        return [answers]

    @property
    def held(self) -> int:
        """K-mers that are put into sets anew for every block."""
        return len(self._structure.known) if isinstance(self._structure, _GrowingSets) else 0


class HostCounts:
    """The distinct k-mers of a stream, in the order of their first places, and how often each comes.

    Parameters
    ----------
    k : bases of a k-mer, 1 to 31
    threads : CPU threads
    places : how many places the largest block has, about
    """

    def __init__(self, k: int, *, threads: int = 1, places: int) -> None:
        threads = _worth_of(threads, places)
        self._structure: CountTable | CountedSets
        if k <= _MOST_COUNTED_K and 4**k * threads <= max(_CHEAP_COUNTS, places // _PLACES_A_COUNT):
            self._structure = CountTable(k, threads)
        else:
            self._structure = CountedSets(k, threads, places)

    def take(self, codes: np.ndarray, more: bool) -> None:
        """Count the k-mers of the next block; between two of them is one place that is no base.

        Parameters
        ----------
        codes : uint8[…]
        more : whether another block will follow
        """
        self._structure.take(codes, more)

    @property
    def held(self) -> int:
        """As `HostKmers.held`."""
        return self._structure.held

    def counted(self) -> KmerCounts:
        """What has been counted; nothing is taken after it."""
        return self._structure.counted()


def is_known(kmers: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Which k-mers are among some that are sorted: bool[…]."""
    if not len(known):
        return np.zeros(len(kmers), np.bool_)
    found = np.empty(len(kmers), np.bool_)
    for first, last in steps(0, len(kmers)):
        some = kmers[first:last]
        found[first:last] = known[np.minimum(np.searchsorted(known, some), len(known) - 1)] == some
    return found


def find_answers(
    codes: np.ndarray,
    k: int,
    *,
    seed_length: int = 0,
    dictionary: np.ndarray | None = None,
    grows: bool = True,
    threads: int = 1,
    watch: Stopwatch,
) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
    """What each place of a stream is, and the dictionary in the end.

    Parameters
    ----------
    codes : uint8[n], the stream; 4 where there is no base
    k : bases of a k-mer, 1 to 31
    seed_length : bases of the stream whose k-mers are seen before it begins
    dictionary : uint64[d] or None, distinct k-mers that are seen before it begins
    grows : whether k-mers of the stream are seen from their first place on
    threads : CPU threads
    watch : takes the seconds of the stages ``build`` and ``search``

    Returns
    -------
    (answers, dictionary) : uint8[n], by the places where k-mers begin, and what makes uint64[…], sorted numbers
    """
    return find_seeded(partial(_answer, threads=threads, watch=watch), codes, k, seed_length, dictionary, grows)


def _answer(codes: np.ndarray, k: int, known: np.ndarray, grows: bool, *, threads: int, watch: Stopwatch) -> np.ndarray:
    """What each place of a stream is, as `find_seeded` asks."""
    with watch.stage("build"):
        kmers = HostKmers(k, known, grows=grows, threads=threads, places=min(len(codes), MOST_PLACES))
    answers = np.zeros(len(codes), np.uint8)
    with watch.stage("search"):
        for first in range(0, len(codes), MOST_PLACES):
            last = first + MOST_PLACES
            kmers.answer(codes[first : last + k - 1], answers[first:last], last < len(codes))
    return answers

"""The fast tier on the CPU: which structure answers for a stream, and its work on several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from warpseed.compute.stopwatch import Stopwatch
from warpseed.tree_bitmap.cpu_fast import (
    Cut,
    Grouped,
    Runs,
    add_bits,
    answer_by_bits,
    answer_by_set,
    answer_parts,
    answer_runs,
    count_new,
    cut_range,
    gather_new,
    group_runs,
    kmers_at,
    part_of_kmers,
    seen_by_bits,
    slots_for,
)
from warpseed.tree_bitmap.fast import add_kmers, clear_set, move_kmers, new_set
from warpseed.tree_bitmap.stream import NEW, SEEN
from warpseed.tree_bitmap.windows import BLOCK, new_windows

__all__ = ["BLOCK_PLACES", "HostKmers", "find_answers", "iter_answers", "new_kmers"]

BLOCK_PLACES = 1 << 27
"""Places that are worked on together: the more, the less often a set in parts is filled anew."""
_MOST_BITS_K = 13
"""The longest k-mers that may have a bit each: 8 MiB."""
_CHEAP_BITS = 1 << 19
_PART_KMERS = 1 << 15
"""Places of a part: its set stays in the second-level cache."""
_MOST_PART_BITS = 14
_MOST_M = 12
_ROOM_SLOTS = 1 << 18
"""Slots of the set that a thread begins with; one that does not suffice is grown."""
_LOAD = 0.625
_BITS_A_KMER = 16
_Result = TypeVar("_Result")


def _on_threads(threads: int, task: Callable[[int], _Result], count: int) -> list[_Result]:
    """`task` of every number below `count`."""
    if threads == 1 or count < 2:
        return [task(number) for number in range(count)]
    with ThreadPoolExecutor(min(threads, count)) as pool:
        return list(pool.map(task, range(count)))


def _ranges(places: int, threads: int) -> list[tuple[int, int]]:
    """The places in ranges of whole blocks, one for each thread, at least one."""
    blocks = -(-places // BLOCK)
    borders = [min(places, BLOCK * (blocks * number // threads)) for number in range(threads + 1)]
    return [span for span in zip(borders, borders[1:], strict=False) if span[0] < span[1]]


class _Bits:
    """A bit for each k-mer that there can be."""

    def __init__(self, k: int, known: np.ndarray, grows: bool, threads: int) -> None:
        self._k, self._grows, self._threads = k, grows, threads
        self._bits = self._none()
        add_bits(self._bits, known)

    def _none(self) -> np.ndarray:
        return np.zeros(max(1, 4**self._k // 64), np.uint64)

    def answer(self, codes: np.ndarray, places: int, answers: np.ndarray) -> None:
        """As `HostKmers.answer`."""
        spans = _ranges(places, self._threads)
        rest = len(spans) - 1 if self._grows else 0
        bits = [self._bits, *(self._none() for _ in range(rest))]

        def look(number: int) -> None:
            held = bits[number] if self._grows else self._bits
            answer_by_bits(codes, spans[number], self._k, held, self._grows, new_windows(), answers)

        def look_again(number: int) -> None:
            seen_by_bits(codes, spans[number + 1], self._k, bits[number + 1], new_windows(), answers)

        _on_threads(self._threads, look, len(spans))
        # What a range saw gives way to what all before it did.
        before = bits[0]
        for number in range(1, len(bits)):
            bits[number], before = before, before | bits[number]
        _on_threads(self._threads, look_again, rest)
        self._bits = before


class _FixedSet:
    """One set, for a dictionary that does not grow, with a bit of each k-mer before it."""

    def __init__(self, k: int, known: np.ndarray, threads: int) -> None:
        self._k, self._threads = k, threads
        bits = 1 << max(7, int(len(known) * _BITS_A_KMER - 1).bit_length())
        self._kmers = new_set(slots_for(len(known)), bits)
        slots = len(self._kmers.slots)
        clear_set(self._kmers, slots)
        add_kmers(self._kmers, slots, known, 0, len(known))

    def answer(self, codes: np.ndarray, places: int, answers: np.ndarray) -> None:
        """As `HostKmers.answer`."""
        spans = _ranges(places, self._threads)

        def look(number: int) -> None:
            candidates = np.empty(BLOCK + 1, np.uint32)
            answer_by_set(codes, spans[number], self._k, self._kmers, new_windows(), candidates, answers)

        _on_threads(self._threads, look, len(spans))


class _Parts:
    """Sets in parts: each is filled when its places come, with the k-mers of it that are known, and given up."""

    def __init__(self, k: int, known: np.ndarray, threads: int, places: int, more: bool) -> None:
        self._threads, self._more = threads, more
        bits = min(_MOST_PART_BITS, max(0, (max(places, len(known)) - 1) // _PART_KMERS).bit_length())
        self._cut = Cut(k, min(_MOST_M, (k + 1) // 2), bits)
        parts = np.empty(len(known), np.uint16)
        part_of_kmers(known, self._cut, parts)
        order = np.argsort(parts, kind="stable")
        self._known = known[order]
        self._borders = np.searchsorted(parts[order], np.arange((1 << bits) + 1)).astype(np.int64)

    def answer(self, codes: np.ndarray, places: int, answers: np.ndarray) -> None:
        """As `HostKmers.answer`."""
        grouped = self._group(codes, places)
        count = len(grouped.kmers)
        size = max(1, -(-count // (4 * self._threads)))
        tasks = [(first, min(first + size, count)) for first in range(0, count, size)]

        def work(number: int) -> None:
            first, last = tasks[number]
            largest = slots_for(int((grouped.kmers + np.diff(grouped.known_borders))[first:last].max()))
            kmers = new_set(min(_ROOM_SLOTS, largest))
            while (first := answer_parts(grouped, (first, last), self._cut.k, kmers, answers)) < last:
                self._answer_large(grouped, first, answers)
                first += 1

        _on_threads(self._threads, work, len(tasks))
        if self._more:
            self._known, self._borders = self._grown(grouped, answers)

    def _group(self, codes: np.ndarray, places: int) -> Grouped:
        """The places, part by part."""
        spans = _ranges(places, self._threads)
        parts = 1 << self._cut.bits
        words = np.zeros(places // 32 + 4, np.uint64)

        def cut(number: int) -> tuple[Runs, int]:
            room = spans[number][1] - spans[number][0] + 1
            counts = np.zeros(parts, np.int64), np.zeros(parts, np.int64)
            runs = Runs(np.empty(room, np.uint32), np.empty(room, np.uint16), *counts)
            return runs, cut_range(codes, spans[number], self._cut, new_windows(), words, runs)

        cuts = _on_threads(self._threads, cut, len(spans))
        # Of each part, in order, the runs of the first range, then those of the next.
        counts = np.array([runs.runs for runs, _ in cuts], np.int64).reshape(len(spans), parts)
        ends = np.cumsum(counts.T).reshape(parts, len(spans)).T
        borders = np.append(0, counts.sum(axis=0).cumsum())
        grouped = np.empty(int(borders[-1]), np.uint64)

        def group(number: int) -> None:
            runs, used = cuts[number]
            group_runs(runs, used, np.ascontiguousarray(ends[number] - counts[number]), grouped)

        _on_threads(self._threads, group, len(spans))
        kmers = np.array([runs.kmers for runs, _ in cuts], np.int64).reshape(len(spans), parts).sum(axis=0)
        return Grouped(words, grouped, borders, kmers, self._known, self._borders)

    def _answer_large(self, grouped: Grouped, part: int, answers: np.ndarray) -> None:
        """A part with many places, which may have few k-mers: its set grows with them."""
        begin, end = map(int, grouped.borders[part : part + 2])
        known, known_end = map(int, grouped.known_borders[part : part + 2])
        slots = max(_ROOM_SLOTS, slots_for(known_end - known))
        kmers, used = new_set(slots), known_end - known
        clear_set(kmers, slots)
        add_kmers(kmers, slots, grouped.known, known, known_end)
        while True:
            room = slots, used, int(_LOAD * slots)
            begin, used = answer_runs(grouped, (begin, end), self._cut.k, kmers, room, answers)
            if begin == end:
                return
            larger = new_set(2 * slots)
            clear_set(larger, 2 * slots)
            move_kmers(kmers, slots, larger, 2 * slots)
            kmers, slots = larger, 2 * slots

    def _grown(self, grouped: Grouped, answers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The known k-mers with those that are new, part by part."""
        more = np.zeros(len(grouped.kmers), np.int64)
        count_new(grouped, answers, more)
        borders = np.append(0, np.cumsum(more + np.diff(grouped.known_borders)))
        known = np.empty(int(borders[-1]), np.uint64)
        gather_new(grouped, self._cut.k, answers, known)
        return known, borders


class HostKmers:
    """The k-mers that have been seen; they answer for one block of a stream after the other.

    Parameters
    ----------
    k : bases of a k-mer, 1 to 31
    known : uint64[d], distinct k-mers that have been seen
    grows : whether those of the stream are, too, from their first place on
    threads : CPU threads
    places : how many places the largest block has
    blocks : whether there may be more than one
    """

    def __init__(
        self, k: int, known: np.ndarray, *, grows: bool = True, threads: int = 1, places: int, blocks: bool = False
    ) -> None:
        self.k = k
        cheap = 4**k // 8 <= max(_CHEAP_BITS, 8 * max(places, len(known)))
        self._structure: _Bits | _FixedSet | _Parts
        if k <= _MOST_BITS_K and cheap:
            self._structure = _Bits(k, known, grows, threads)
        elif not grows:
            self._structure = _FixedSet(k, known, threads)
        else:
            self._structure = _Parts(k, known, threads, places, blocks)

    def answer(self, codes: np.ndarray, answers: np.ndarray) -> None:
        """Say what the next places of the stream are: NO_KMER, NEW or SEEN.

        Parameters
        ----------
        codes : uint8[…], from the first of these places on; those behind the last are read too
        answers : uint8[places], zeros
        """
        self._structure.answer(codes, len(answers), answers)


def iter_answers(kmers: HostKmers, blocks: Iterable[np.ndarray], *, watch: Stopwatch) -> Iterator[np.ndarray]:
    """What each place of a stream is, block by block.

    Parameters
    ----------
    kmers : what is seen before; takes the stream's k-mers, where it grows
    blocks : the stream's codes, uint8[…], in arrays of any lengths
    watch : takes the seconds of the stage ``search``

    Yields
    ------
    uint8[…], NO_KMER, NEW or SEEN; all together have as many places as the stream
    """
    kept = np.empty(0, np.uint8)
    for block in blocks:
        codes = np.concatenate([kept, block]) if len(kept) else block
        answers = np.zeros(max(0, len(codes) - kmers.k + 1), np.uint8)
        with watch.stage("search"):
            kmers.answer(codes, answers)
        kept = codes[len(answers) :].copy()
        yield answers
    yield np.zeros(len(kept), np.uint8)


def new_kmers(codes: np.ndarray, k: int, answers: np.ndarray) -> np.ndarray:
    """The k-mers of the places that are NEW, in order: uint64[…]; `codes` may have more places than `answers`."""
    kmers = np.empty(int(np.count_nonzero(answers == NEW)), np.uint64)
    kmers_at(codes, (0, len(answers)), k, new_windows(), answers, kmers)
    return kmers


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
    known = np.empty(0, np.uint64) if dictionary is None else np.asarray(dictionary, np.uint64)
    with watch.stage("build"):
        if seed_length and not grows:
            known = np.union1d(known, _distinct(codes[:seed_length], k, threads))
        places = min(len(codes), BLOCK_PLACES)
        kmers = HostKmers(k, known, grows=grows, threads=threads, places=places, blocks=len(codes) > BLOCK_PLACES)
    answers = np.zeros(len(codes), np.uint8)
    with watch.stage("search"):
        for first in range(0, len(codes), BLOCK_PLACES):
            last = first + BLOCK_PLACES
            kmers.answer(codes[first : last + k - 1], answers[first:last])
    seed = answers[: max(0, seed_length - k + 1)] if grows else answers[:0]
    seeded = seed == NEW
    seed[seeded] = SEEN

    def grown() -> np.ndarray:
        if not grows:
            return known
        # No place has a k-mer that is known before, so all are distinct.
        new = answers.copy()
        new[: len(seed)][seeded] = NEW
        return np.sort(np.concatenate([known, new_kmers(codes, k, new)]))

    return answers, grown


def _distinct(codes: np.ndarray, k: int, threads: int) -> np.ndarray:
    """The distinct k-mers of a stream, sorted."""
    answers, _ = find_answers(codes, k, threads=threads, watch=Stopwatch())
    return np.sort(new_kmers(codes, k, answers))

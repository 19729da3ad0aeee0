"""The dynamic system of paper 003: a dictionary that grows while a stream is matched (sections 3.3.9 to 3.3.12).

The host makes the Tree Bitmap of what the dictionary holds, a kernel matches a chunk of the stream with it, and the
k-mers of its mismatches, the deltas, go into the dictionary. Serially the next chunk waits for them. Concurrently, the
kernel of a chunk runs while the host works on the deltas of the chunk before, so it knows those up to two chunks ago;
a k-mer that it misses therefore may be there by the time its mismatch is looked at, which makes that a match. So the
answers are the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from warpseed.compute.devices import devices_of
from warpseed.errors import InputError, MemoryLimitError, check_number
from warpseed.tree_bitmap import cpu_paper
from warpseed.tree_bitmap.bitmap import TreeBitmap
from warpseed.tree_bitmap.cpu_paper import EXACT_TWINS
from warpseed.tree_bitmap.growing import STRUCTURES, Growing, Words
from warpseed.tree_bitmap.paper import MOST_PLACES, MOST_TRIE_NODES
from warpseed.tree_bitmap.sorted_kmers import SortedKmers
from warpseed.tree_bitmap.stream import MAX_K, NEW, NO_KMER, SEEN

__all__ = [
    "Event",
    "Events",
    "How",
    "LANES",
    "SORTED",
    "Matched",
    "Matcher",
    "Seed",
    "SharedMatcher",
    "chunks_of",
    "match_dynamically",
    "match_on_one_trie",
    "matcher_on",
]

SORTED = "sorted"
"""The structure that is none of the thesis's."""
LANES = (4, 8, 16, 32)
"""Lanes that a logical warp may have."""
_PLACES_A_TIME = 1 << 20
"""Places whose k-mers are held at a time."""


class Seed(NamedTuple):
    """What the dictionary holds at first."""

    length: int = 0
    """the k-mers of so many bases at the beginning of the stream"""
    kmers: np.ndarray = np.empty(0, np.uint64)
    """and these, uint64"""


class How(NamedTuple):
    """How a stream is worked on; the answers do not depend on it."""

    chunk_length: int = 100_000
    """places of the stream that a chunk adds to those before"""
    structure: str = "tree"
    """the intermediate structure, `tree` or `hybrid`, which is faster for small k, and takes much memory for large; or
    `sorted`, words in order, which lie where kernels run: there deltas are merged, and the Tree Bitmap is made"""
    kernel: str = "shuffle"
    """`naive` or `shuffle`"""
    concurrent: bool = False
    """whether kernels run beside the host's work"""
    pieces: int | None = None
    """parts that a chunk is cut into: blocks of the naive kernel, logical warps of the other; None: what suits the
    device"""
    lanes: int | None = None
    """those of a logical warp, of LANES; None: the fewest that k + 1 depths fit"""
    records: int | None = None
    """what a match buffer has room for at first; None: one record for each place of a chunk"""


_NO_SEED, _USUAL = Seed(), How()


class Event(NamedTuple):
    """Something that took time, for time lines. Those of several GPUs overlap: they are not added."""

    name: str
    """`to_bitmap`, `host_to_device`, `kernel`, `device_to_host` or `deltas`"""
    stream: int
    """the CUDA stream, 0 or 1, of a second GPU 2 or 3, and so on"""
    begin: float
    """seconds since the run began"""
    end: float


class Events:
    """The events of a run."""

    def __init__(self) -> None:
        self.begun, self.all = time.perf_counter(), list[Event]()

    def now(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.begun

    @contextmanager
    def timed(self, name: str, stream: int) -> Iterator[None]:
        """Note when the block begins and ends."""
        begin = self.now()
        yield
        self.all.append(Event(name, stream, begin, self.now()))


class Matched(NamedTuple):
    """What comes of a stream."""

    answers: np.ndarray
    """uint8[n], by the place where a k-mer begins: NO_KMER, NEW or SEEN"""
    dictionary: np.ndarray
    """uint64[d], all k-mers at the end, ascending"""
    events: list[Event]
    """in the order in which they ended"""


class Matcher(Protocol):
    """A kernel, and what it works on, wherever that is. It has two sets of chunk and match buffer, and one Tree
    Bitmap."""

    def upload(self, bitmap: TreeBitmap) -> None:
        """Replace the Tree Bitmap, when the kernel that uses it has ended."""

    def launch(self, places: tuple[int, int], which: int) -> None:
        """Begin to match the k-mers that begin at some places, into match buffer `which`."""

    def collect(self, which: int) -> np.ndarray:
        """The records in a match buffer, uint64[r], when its kernel has ended."""


class CpuMatcher:
    """A Matcher whose kernels are twins on the CPU, which have ended when `launch` returns."""

    def __init__(self, codes: np.ndarray, k: int, how: How, events: Events) -> None:
        self._stream, self._how, self._events = (codes, k), how, events
        self._records: dict[int, np.ndarray] = {}

    def upload(self, bitmap: TreeBitmap) -> None:
        self._bitmap = bitmap

    def launch(self, places: tuple[int, int], which: int) -> None:
        with self._events.timed("kernel", which):
            self._records[which] = cpu_paper.match_chunk(
                *self._stream, self._bitmap, places, self._how.kernel, self._how.pieces or 1
            )

    def collect(self, which: int) -> np.ndarray:
        return self._records.pop(which)


class SharedMatcher:
    """A Matcher of several, which share the places of every chunk. The Tree Bitmap goes to one after the other."""

    def __init__(self, matchers: Sequence[Matcher]) -> None:
        self._matchers = matchers

    def upload(self, bitmap: TreeBitmap) -> None:
        for matcher in self._matchers:
            matcher.upload(bitmap)

    def launch(self, places: tuple[int, int], which: int) -> None:
        (begin, end), count = places, len(self._matchers)
        borders = [begin + (end - begin) * part // count for part in range(count + 1)]
        for matcher, part in zip(self._matchers, pairwise(borders), strict=True):
            matcher.launch(part, which)

    def collect(self, which: int) -> np.ndarray:
        return np.concatenate([matcher.collect(which) for matcher in self._matchers])


def chunks_of(length: int, chunk_length: int, k: int) -> list[tuple[int, int]]:
    """The chunks of a stream, first place and the one behind the last: `chunk_length` places each, and the k - 1 before
    them, which the chunk before has too (Figure 10). The last one may be shorter."""
    return [
        (max(first - (k - 1), 0), min(first + chunk_length, length)) for first in range(0, length, chunk_length)
    ]  # fmt: skip


def _check(codes: np.ndarray, k: int, how: How = _USUAL) -> None:
    check_number("k", k, 1, MAX_K)
    check_number("chunk_length", how.chunk_length, 1)
    structures = (*STRUCTURES, SORTED)
    for name, value, names in (("structure", how.structure, structures), ("kernel", how.kernel, EXACT_TWINS)):
        if value not in names:
            raise InputError(f"{name} is {value!r}, but {' or '.join(map(repr, names))} was expected.")
    for name, number, least in (("pieces", how.pieces, 1), ("records", how.records, 0)):
        if number is not None:
            check_number(name, number, least)
    if how.lanes is not None and (how.lanes not in LANES or how.lanes <= k):
        few = ", ".join(map(str, LANES))
        raise InputError(f"lanes is {how.lanes!r}, but one of {few}, above k = {k}, was expected.")
    if len(codes) > MOST_PLACES:
        raise InputError(
            f"The stream has {len(codes):,} places, but a record of the paper tier counts {MOST_PLACES:,}; "
            "use the fast tier."
        )


def _empty_dictionary(k: int, structure: str, device: str) -> Words:
    """A dictionary that grows, where its structure is for such a device."""
    if structure != SORTED:
        return Growing(k, structure)
    if device == "cpu":
        return SortedKmers(k)
    from warpseed.tree_bitmap.gpu_dynamic import DeviceKmersInOrder

    return DeviceKmersInOrder(k)


def _seeded(codes: np.ndarray, k: int, seed: Seed, structure: str, device: str = "cpu") -> Words:
    """A dictionary of all k-mers of the seed."""
    if len(seed.kmers) and int(seed.kmers.max()) >> 2 * k:
        raise InputError(f"The seed has the word {int(seed.kmers.max())}, which is no number of {k} bases.")
    dictionary = _empty_dictionary(k, structure, device)
    dictionary.insert(seed.kmers)
    for kmers, _ in _all_kmers(codes[: seed.length], k):
        dictionary.insert(kmers)
    return dictionary


def _all_kmers(codes: np.ndarray, k: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The k-mers of a stream, uint64, and where they begin, int64, some at a time."""
    room = min(len(codes), _PLACES_A_TIME)
    kmers, places = np.empty(room, np.uint64), np.empty(room, np.int64)
    for first in range(0, len(codes), _PLACES_A_TIME):
        count = cpu_paper.kmers_between(codes, k, first, first + room, kmers, places)
        yield kmers[:count], places[:count]


def _converted(dictionary: Words) -> TreeBitmap:
    bitmap = dictionary.to_bitmap()
    if len(bitmap.inmaps) > MOST_TRIE_NODES:
        raise MemoryLimitError(
            f"The dictionary has {len(bitmap.inmaps):,} trie-nodes, but a record of the paper tier counts "
            f"{MOST_TRIE_NODES:,}; use the fast tier, or a shorter stream."
        )
    return bitmap


def _apply_deltas(
    codes: np.ndarray, dictionary: Words, places: tuple[int, int], records: np.ndarray, answers: np.ndarray
) -> None:
    """deltas() of section 3.3.10: answer for the places of a chunk, and insert the k-mers that were missed."""
    first, last = places
    kinds = answers[first:last]
    cpu_paper.settle_places(records, first, kinds)
    room = int((kinds == NEW).sum())
    kmers, missed = np.empty(room, np.uint64), np.empty(room, np.int64)
    count = cpu_paper.missed_kmers(codes, dictionary.k, first, kinds, kmers, missed)
    answers[missed[:count]] = np.where(dictionary.insert(kmers[:count]), NEW, SEEN)


def match_dynamically(
    codes: np.ndarray, k: int, seed: Seed = _NO_SEED, how: How = _USUAL, device: str = "cpu"
) -> Matched:
    """Match a stream with a dictionary that it extends, by a kernel on Tree Bitmaps.

    Parameters
    ----------
    codes : uint8[n], A, C, G, T as 0 to 3, 4 for what is no base
    k : bases of a k-mer, 1 to 31
    device : 'cpu', for the kernel's twin, 'gpu', or GPUs by number, 'gpu:0,1', which share the places of each chunk

    Raises
    ------
    InputError : k, the chunk's length or the stream's are out of range, or a structure that lies on the first GPU is
        asked for on others
    MemoryLimitError : the dictionary is larger than records, or 32 bits, can count, or than memory
    DeviceError : no GPU answers
    """
    _check(codes, k, how)
    if how.structure == SORTED and devices_of(device) not in ((), (0,)):
        raise InputError(f"device is {device!r}, but {SORTED!r} lies on the first GPU: 'cpu' or 'gpu' was expected.")
    dictionary = _seeded(codes, k, seed, how.structure, device)
    matcher, events = matcher_on(codes, k, how, device)
    answers = _matched(codes, dictionary, how, matcher, events)
    return Matched(answers, dictionary.kmers(), sorted(events.all, key=lambda event: event.end))


def matcher_on(codes: np.ndarray, k: int, how: How, device: str) -> tuple[Matcher, Events]:
    """What matches the chunks of a stream, and the events of the run, which begins now."""
    if device != "cpu":
        from warpseed.tree_bitmap.gpu_dynamic import device_matchers

        matchers, events = device_matchers(codes, k, how, devices_of(device))
        return (matchers[0] if len(matchers) == 1 else SharedMatcher(matchers)), events
    events = Events()
    return CpuMatcher(codes, k, how, events), events


def _matched(codes: np.ndarray, dictionary: Words, how: How, matcher: Matcher, events: Events) -> np.ndarray:
    """The loop of Figures 17 and 19: the answers, uint8[n]."""
    k = dictionary.k
    answers = np.full(len(codes), NO_KMER, np.uint8)
    waiting: list[tuple[int, tuple[int, int]]] = []

    def settle() -> None:
        which, places = waiting.pop(0)
        records = matcher.collect(which)
        with events.timed("deltas", which):
            _apply_deltas(codes, dictionary, places, records, answers)

    for number, (begin, end) in enumerate(chunks_of(len(codes), how.chunk_length, k)):
        which, places = number % 2, (begin, max(end - k + 1, begin))
        with events.timed("to_bitmap", which):
            bitmap = _converted(dictionary)
        matcher.upload(bitmap)
        matcher.launch(places, which)
        waiting.append((which, places))
        if len(waiting) > how.concurrent:
            settle()
    while waiting:
        settle()
    return answers


def match_on_one_trie(codes: np.ndarray, k: int, seed: Seed = _NO_SEED, structure: str = "tree") -> Matched:
    """The CPU-only version: every k-mer goes down one trie, and is inserted where that ends. Parameters and errors are
    those of `match_dynamically`."""
    _check(codes, k, _USUAL._replace(structure=structure))
    events = Events()
    dictionary = _seeded(codes, k, seed, structure)
    answers = np.full(len(codes), NO_KMER, np.uint8)
    with events.timed("match", 0):
        for kmers, places in _all_kmers(codes, k):
            answers[places] = np.where(dictionary.insert(kmers), NEW, SEEN)
    return Matched(answers, dictionary.kmers(), events.all)

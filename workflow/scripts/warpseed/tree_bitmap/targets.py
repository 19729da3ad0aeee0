"""Where a stream is matched and counted, by tier and device: block by block on the CPU or GPUs, or all at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from warpseed.compute.devices import devices_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.sequences.bgzf_format import is_gzip
from warpseed.tree_bitmap import cpu, cpu_edits
from warpseed.tree_bitmap.cpu_listing import new_kmers
from warpseed.tree_bitmap.stream import NEW, NO_KMER, KmerCounts, place_type

if TYPE_CHECKING:
    from warpseed.batches import Options
    from warpseed.tree_bitmap.gpu_memory import Need
    from warpseed.tree_bitmap.request import Request

__all__ = [
    "Answers",
    "Counts",
    "Distances",
    "Found",
    "Target",
    "answers_on",
    "count_fast",
    "counts_on",
    "distances_on",
    "find_answers",
    "find_fast",
    "known_before",
    "target_for",
]

Found = tuple[np.ndarray, Callable[[], np.ndarray]]
"""What each place of a stream is, and what makes the dictionary in the end (see `cpu.find_answers`)."""

_BASES_A_BYTE = 5
"""Of a compressed file, or more: what is compressed further is no common sequence."""


class Answers(Protocol):
    """What says of blocks of a stream what their places are."""

    @property
    def held(self) -> int:
        """K-mers that are put into sets anew for every block."""

    def take(self, codes: np.ndarray, more: bool) -> list[np.ndarray]:
        """Those of blocks, in order, that are known when the next one has come, with whether others follow."""


class Counts(Protocol):
    """What counts the k-mers of blocks of a stream."""

    @property
    def held(self) -> int:
        """K-mers that are put into sets anew for every block."""

    def take(self, codes: np.ndarray, more: bool) -> None:
        """Count those of the next one, with whether others follow."""

    def counted(self) -> KmerCounts:
        """All; nothing is taken after it."""


class Distances(Protocol):
    """What knows some k-mers, and says of blocks of a stream what is near them."""

    def find(self, codes: np.ndarray) -> np.ndarray:
        """The distances at the places of a block (see `cpu_edits.HostDistances`)."""


class Target(NamedTuple):
    """Where blocks go."""

    whole: bool = False
    """whether all of the stream has to be one block"""
    devices: tuple[int, ...] = ()
    """the GPUs that they go to as they come"""
    need: Need | None = None
    """what they take of their memory, as far as that is known"""


def target_for(source: Any, request: Request, *, counting: bool) -> Target:
    """Where the blocks of a source go. GPUs take them as they come if they have room for all that there may be; those
    with little memory take parts of the k-mers, one after the other, each of the whole stream."""
    options = request.options
    if options.tier == "paper":
        return Target(whole=True)
    if options.device == "cpu" or request.max_edits:
        return Target()
    from warpseed.tree_bitmap.gpu_memory import Need, has_room

    devices = devices_of(options.device)
    places = _most_places(source)
    known = 0 if counting else len(request.known) + (0 if request.grows else min(request.seed_length, places))
    need = Need.of(request.k, places, known, grows=request.grows or counting, counting=counting)
    return Target(devices=devices, need=need) if has_room(devices, need) else Target(whole=True)


def _most_places(source: Any) -> int:
    """Places that a file takes at most, or so; 0 where nobody knows, as of a pipe."""
    try:
        status = os.stat(source)
        if not stat.S_ISREG(status.st_mode):
            return 0
        return status.st_size * (_BASES_A_BYTE if is_gzip(source) else 1)
    except OSError:
        return 0  # who reads it says so


def answers_on(target: Target, request: Request, known: np.ndarray, places: int) -> Answers:
    """What says it where blocks go.

    Parameters
    ----------
    known : uint64[d], ascending, k-mers that are seen before the stream begins
    places : of the first block
    """
    if target.need is None:
        threads = request.options.threads
        return cpu.HostKmers(request.k, known, grows=request.grows, threads=threads, places=places)
    from warpseed.tree_bitmap.gpu import DeviceAnswers

    return DeviceAnswers(target.need, target.devices, request.options.threads, known)


def counts_on(target: Target, request: Request, places: int) -> Counts:
    """What counts it where blocks go; parameters as for `answers_on`."""
    options = request.options
    if options.tier == "paper":
        return _WholeCounts(lambda codes: _count_places(codes, request.k, _find_paper(codes, request, Stopwatch())[0]))
    if options.device == "cpu":
        return cpu.HostCounts(request.k, threads=options.threads, places=places)
    if target.need is None:
        return _WholeCounts(lambda codes: count_fast(codes, request.k, options, Stopwatch()))
    from warpseed.tree_bitmap.gpu import DeviceCounts

    return DeviceCounts(target.need, target.devices, options.threads)


def known_before(codes: np.ndarray, request: Request, watch: Stopwatch) -> np.ndarray:
    """The k-mers of the dictionary and the seed, sorted; `codes` begin where the stream does."""
    seed = codes[: request.seed_length]
    if not len(seed):
        return request.known
    found = cpu.find_answers(seed, request.k, threads=request.options.threads, watch=watch)[1]()
    return np.union1d(request.known, found)


def distances_on(request: Request, known: np.ndarray, watch: Stopwatch) -> Distances:
    """What finds what is near the k-mers `known`, uint64[d], on the device that is asked for."""
    options, wanted = request.options, (known, request.k, request.max_edits)
    if options.device == "cpu":
        return cpu_edits.HostDistances(*wanted, threads=options.threads, watch=watch)
    from warpseed.tree_bitmap.gpu_edits import DeviceDistances

    return DeviceDistances(*wanted, devices=devices_of(options.device), watch=watch)


# ---- a stream that is in memory


def find_answers(codes: np.ndarray, request: Request, watch: Stopwatch) -> Found:
    """What each place of a stream is, in the tier and on the device that is asked for."""
    if request.options.tier == "paper":
        return _find_paper(codes, request, watch)
    return find_fast(
        codes, request.k, request.options,
        seed_length=request.seed_length, dictionary=request.known, grows=request.grows, watch=watch,
    )  # fmt: skip


def find_fast(codes: np.ndarray, k: int, options: Options, **asked: Any) -> Found:
    """As `cpu.find_answers`, whose parameters `asked` are, on the device that is asked for."""
    if options.device == "cpu":
        return cpu.find_answers(codes, k, threads=options.threads, **asked)
    from warpseed.tree_bitmap import gpu

    return gpu.find_answers(codes, k, devices=devices_of(options.device), threads=options.threads, **asked)


def count_fast(codes: np.ndarray, k: int, options: Options, watch: Stopwatch) -> KmerCounts:
    """The distinct k-mers of a stream by their first places, and how often each comes, on the device that is asked for;
    the CPU takes up to `cpu.MOST_PLACES` places. `watch` takes the seconds of the device's stages, or of ``search``."""
    if options.device != "cpu":
        from warpseed.tree_bitmap.gpu import count_kmers

        return count_kmers(codes, k, devices=devices_of(options.device), threads=options.threads, watch=watch)
    with watch.stage("search"):
        counts = cpu.HostCounts(k, threads=options.threads, places=len(codes))
        counts.take(codes, False)
        return counts.counted()


def _find_paper(codes: np.ndarray, request: Request, watch: Stopwatch) -> Found:
    from warpseed.tree_bitmap.dynamic import How, Seed, match_dynamically, match_on_one_trie

    seed = Seed(min(request.seed_length, len(codes)), request.known)
    with watch.stage("search"):
        if request.options.device == "cpu":
            matched = match_on_one_trie(codes, request.k, seed)
        else:
            matched = match_dynamically(codes, request.k, seed, How(concurrent=True), request.options.device)
    return matched.answers, lambda: matched.dictionary


class _WholeCounts:
    """Counts of a stream that is one block.

    Parameters
    ----------
    count : of the codes of the stream
    """

    held = 0

    def __init__(self, count: Callable[[np.ndarray], KmerCounts]) -> None:
        self._count = count

    def take(self, codes: np.ndarray, more: bool) -> None:
        """Count its k-mers."""
        assert not more
        self._counted = self._count(codes)

    def counted(self) -> KmerCounts:
        """All."""
        return self._counted


def _count_places(codes: np.ndarray, k: int, answers: np.ndarray) -> KmerCounts:
    """The distinct k-mers of the places of a stream, of which it is known what each is."""
    places = np.flatnonzero(answers != NO_KMER)
    kmers = new_kmers(codes, k, np.minimum(answers, NEW))
    distinct, firsts, counts = np.unique(kmers, return_index=True, return_counts=True)
    order = np.argsort(firsts)
    made_type = place_type(len(codes))
    return KmerCounts(distinct[order], places[firsts[order]].astype(made_type), counts[order].astype(made_type))

"""A dictionary that does not grow, in a stream, beside other libraries: in this process, in turns, on the same k-mers.

ahocorasick_rs scans the letters with an Aho-Corasick automaton; numpy makes the number of every k-mer and looks it up
by binary search, the plain way. Stage `build` is what the dictionary takes, `search` the stream. All sides say of the
same places that their k-mer is in the dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from warpseed.batches import Options, Settings
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.measure.digests import digest_of
from warpseed.measure.timing import Outcome, Run, Side, add_total, each_taken
from warpseed.tree_bitmap.stream import NO_BASE, SEEN, spelled
from warpseed.tree_bitmap.targets import find_fast
from warpseed.tree_bitmap.timed import Work, kmers_of_stream, side_of

__all__ = ["TOOLS", "Fixed", "fixed_dictionary", "fixed_sides"]

_AHO_CORASICK = "ahocorasick_rs"
_DRAWN_FROM = 10_000_000
"""Bases whose k-mers are drawn: those of a billion would take minutes to put in order."""


class Fixed(NamedTuple):
    """A stream, and a dictionary that stays as it is."""

    work: Work
    kmers: np.ndarray
    """uint64[d], ascending"""


def fixed_dictionary(work: Work, count: int, seed: int) -> Fixed:
    """Up to `count` k-mers of a stream's first `_DRAWN_FROM` bases, drawn at random, and the stream followed by its
    reverse complement."""
    known = np.unique(kmers_of_stream(work.codes[:_DRAWN_FROM], work.k))
    if len(known) > count:
        known = np.sort(np.random.default_rng(seed).choice(known, count, replace=False))
    complement = np.array([3, 2, 1, 0, NO_BASE], np.uint8)[work.codes[::-1]]
    codes = np.concatenate([work.codes, np.array([NO_BASE], np.uint8), complement])
    return Fixed(work._replace(codes=codes, seed_length=0), known)


def _outcome(is_seen: np.ndarray) -> Outcome:
    return Outcome(len(is_seen), int(np.count_nonzero(is_seen)), digest_of(is_seen))


def _ours(fixed: Fixed, options: Options) -> Run:
    work, kmers = fixed

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        answers, _ = find_fast(work.codes, work.k, options, dictionary=kmers, grows=False, watch=watch)
        return lambda: _outcome(answers == SEEN)

    return add_total(run)


def _scan(fixed: Fixed) -> Run:
    """ahocorasick_rs's, with the implementation that it chooses, and overlapping matches."""
    try:
        import ahocorasick_rs as package
    except ImportError as error:
        raise InputError(
            f"{_AHO_CORASICK} is not installed, but a data set of 'tree_bitmap' names it: install it with "
            f"'pip install {_AHO_CORASICK}', or leave it out of its 'peers'."
        ) from error
    work, kmers = fixed
    patterns = [row.tobytes() for row in spelled(kmers, work.k)]
    text = np.frombuffer(b"ACGTN", np.uint8)[work.codes].tobytes()

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        with watch.stage("build"):
            automaton = package.BytesAhoCorasick(patterns)
        with watch.stage("search"):
            matches = automaton.find_matches_as_indexes(text, overlapping=True)

        def outcome() -> Outcome:
            is_seen = np.zeros(len(work.codes), bool)
            is_seen[np.fromiter((start for _, start, _ in matches), np.int64, len(matches))] = True
            return _outcome(is_seen)

        return outcome

    return add_total(run)


def _search_sorted(fixed: Fixed) -> Run:
    """numpy's: the numbers of all k-mers, base by base, and where they are among the sorted ones."""
    work, kmers = fixed

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        with watch.stage("build"):
            dictionary = np.sort(kmers)
        with watch.stage("search"):
            is_seen = _among(dictionary, work.codes, work.k)
        return lambda: _outcome(is_seen)

    return add_total(run)


def _among(dictionary: np.ndarray, codes: np.ndarray, k: int) -> np.ndarray:
    """Whether the k-mer of each place of a stream is in a sorted dictionary, bool[n]."""
    places = max(len(codes) - k + 1, 0)
    numbers, known = np.zeros(places, np.uint64), np.ones(places, bool)
    for i in range(k):
        base = codes[i : i + places]
        numbers = (numbers << np.uint64(2)) | (base & np.uint8(3))
        known &= base < NO_BASE
    at = np.searchsorted(dictionary, numbers)
    is_seen = np.zeros(len(codes), bool)
    if len(dictionary):
        is_seen[:places] = known & (dictionary[np.minimum(at, len(dictionary) - 1)] == numbers)
    return is_seen


TOOLS: dict[str, Callable[[Fixed], Run]] = {_AHO_CORASICK: _scan, "numpy": _search_sorted}
"""Libraries by name."""


def fixed_sides(fixed: Fixed, settings: Settings, tools: Sequence[str]) -> Iterator[Side]:
    """The fast tier on every device and number of threads, and each of the libraries, which have one thread."""
    named = {"kmers": len(fixed.kmers)}
    for options, codes in each_taken(fixed.work.codes, settings.options(None)):
        if options.tier == "fast":
            run = _ours(fixed._replace(work=fixed.work._replace(codes=codes)), options)
            yield side_of(fixed.work, run, run, options, named)
    for tool in tools:
        run = TOOLS[tool](fixed)
        side = side_of(fixed.work, run, run, Options("-", "cpu", 1, None), named)
        yield Side(side.run, side.warm_up, {**side.fields, "tool": tool})

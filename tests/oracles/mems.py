"""Every maximal exact match of a read, from its definition: the truth for seeds of long reads (paper 002).

A *match* is (strand, contig, start, read_start, length): the bases [read_start, read_start + length) of the read as it
is written (strand 0, '+'), or their reverse complement (strand 1, '-'), are the contig's [start, start + length), on
its forward strand. What is not ACGT, in a read or a contig, matches nothing; no match crosses the end of a contig.
What is searched for on a strand, the read or its reverse complement, is the *pattern*.

Three kinds of match are looked for, all of at least a minimum length:

maximal
    Definition 1: those that can be extended neither to the left nor to the right. Every occurrence is one by itself.
paper
    Definition 2, as Algorithm 1 and stages 2 and 3 have it, strand by strand. For each base of the pattern, the longest
    match that ends there, at all its occurrences but those that belong to a longer such match with the same start. It
    does not look the same from both ends: a match with an extension to the left at one occurrence is left out at all
    of them, one with an extension to the right is left out where it has it. Left is the left of the pattern; on strand
    1 that is the right of the read as it is written.
super
    SMEMs, strands together: an interval of the read that matches on either strand, and lies in no other interval that
    does, at all its occurrences on both strands.

A palindrome matches on both strands in all three.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from oracles.kmers import QUERY_HOLE, codes_of, in_contigs, one_behind_the_other, reverse_complement
from oracles.suffix_array import NaiveIndex, joined, segments_of

__all__ = [
    "KINDS",
    "Interval",
    "Match",
    "find_mems",
    "find_mems_plainly",
    "sa_intervals",
    "split_intervals",
    "without_redundant",
]

KINDS = ("paper", "super", "maximal")

Match = tuple[int, int, int, int, int]
"""strand (0 '+', 1 '-'), contig, start in the contig, start in the read as it is written, length; 0-based."""

Interval = tuple[int, int, int, int]
"""l and u, the first and the last row of the suffix array, start and end in the pattern; both ends included."""

LONGEST_WINDOW = 31
"""Bases that fit a word of 64 bits with its sign."""


def patterns_of(read: str) -> tuple[str, str]:
    """What is searched for on either strand, over A, C, G, T and N."""
    reverse = reverse_complement(read)
    return reverse_complement(reverse), reverse


def read_start_of(strand: int, first: Any, length: Any, read_length: int) -> Any:
    """Start in the read as it is written of what starts at `first` in the pattern of a strand: of ints, or arrays."""
    return read_length - first - length if strand else first


# ---- by windows


def _windows(codes: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The windows of k bases without a hole, each as a number of 2 k bits, and where they are."""
    words = np.zeros(max(len(codes) - k + 1, 0), np.int64)
    for offset in range(k):
        words = words * 4 + codes[offset : offset + len(words)]
    holes = np.concatenate([[0], np.cumsum(codes > 3)])
    places = np.flatnonzero(holes[k:] == holes[: len(words)])
    return words[places], places


@lru_cache(maxsize=4)
def _text_windows(contigs: tuple[str, ...], k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Windows of the contigs in the order of their numbers, their places in the text of all, and the starts in it."""
    text, firsts = one_behind_the_other(contigs)
    words, places = _windows(text, k)
    order = np.argsort(words, kind="stable")
    return words[order], places[order], firsts


def _maximal(
    contigs: tuple[str, ...], pattern: str, min_length: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Contigs, starts there, starts in the pattern and lengths of all matches that cannot be extended.

    Every window of the pattern is paired with all equal ones of the text. Pairs that follow each other on a diagonal
    are one match.
    """
    k = min(min_length, LONGEST_WINDOW)
    words, places, firsts = _text_windows(contigs, k)
    wanted, offsets = _windows(codes_of(pattern, QUERY_HOLE), k)
    low, high = (np.searchsorted(words, wanted, side) for side in ("left", "right"))
    counts = high - low
    rows = np.arange(counts.sum()) + np.repeat(low - (np.cumsum(counts) - counts), counts)
    offsets, places = np.repeat(offsets, counts), places[rows]
    order = np.lexsort((offsets, places - offsets))
    offsets, places = offsets[order], places[order]
    follows = (np.diff(offsets) == 1) & (np.diff(places) == 1)
    begins = np.flatnonzero(np.concatenate([[True], ~follows])) if len(offsets) else np.arange(0)
    lengths = np.diff(np.append(begins, len(offsets))) + k - 1
    begins, lengths = begins[lengths >= min_length], lengths[lengths >= min_length]
    of_contigs, starts = in_contigs(firsts, places[begins])
    return np.array(of_contigs, int), np.array(starts, int), offsets[begins], lengths


def _farthest_before(starts: np.ndarray, ends: np.ndarray, length: int) -> np.ndarray:
    """For each place from 0 to `length`, the last end of what starts before it; 0 where nothing does."""
    farthest = np.zeros(length + 2, int)
    np.maximum.at(farthest, starts + 1, ends)
    return np.maximum.accumulate(farthest)


def find_mems(contigs: Sequence[str], read: str, min_length: int, kind: str) -> set[Match]:
    """All matches of a kind, as what is left of the maximal ones: quick enough for real reads and small genomes.

    Of the maximal ones the paper's are those whose piece of the pattern lies in no match that starts before it, and
    the super-maximal ones those whose interval of the read lies in no other one.

    Parameters
    ----------
    contigs, read
        Sequences as they stand in the files: any case, any letter.
    min_length
        Fewest bases of a match, from 1 on.
    kind
        One of KINDS.
    """
    assert min_length > 0 and kind in KINDS, (min_length, kind)
    of_strands = []
    for strand, pattern in enumerate(patterns_of(read)):
        of_contigs, starts, firsts, lengths = _maximal(tuple(contigs), pattern, min_length)
        read_starts = read_start_of(strand, firsts, lengths, len(read))
        rows = np.stack([np.full_like(starts, strand), of_contigs, starts, read_starts, lengths], axis=1)
        if kind == "paper":
            rows = rows[firsts + lengths > _farthest_before(firsts, firsts + lengths, len(read))[firsts]]
        of_strands.append(rows)
    matches = np.concatenate(of_strands)
    if kind == "super":
        starts, ends = matches[:, 3], matches[:, 3] + matches[:, 4]
        before = _farthest_before(starts, ends, len(read))
        matches = matches[(ends > before[starts]) & (ends == before[starts + 1])]
    return set(map(tuple, matches.tolist()))


# ---- paper 002, on SA intervals (both ends included, as printed)


def sa_intervals(index: NaiveIndex, pattern: str, min_length: int) -> list[Interval]:
    """Algorithm 1 (stage 1): the longest match that ends at each base of the pattern, from its last base to its first.

    Line 15 is read with "at least", since a match has j - q bases in both of its cases.
    """
    mems = []
    for j in range(len(pattern) - 1, min_length - 2, -1):
        interval, q = (0, len(index.text) - 1), j
        while q >= 0 and pattern[q] in "ACGT":
            narrowed = index.step(pattern[q], interval)
            if narrowed[0] > narrowed[1]:
                break
            interval, q = narrowed, q - 1
        if j - q >= min_length:
            mems.append((*interval, q + 1, j))
    return mems


def without_redundant(mems: Sequence[Interval]) -> list[Interval]:
    """Section 4.4 (stage 2): those that differ from the one before in their start or in how many rows they have."""
    kept = []
    for i, (low, high, start, end) in enumerate(mems):
        before = mems[i - 1] if i else None
        if before is None or before[2] != start or before[1] - before[0] != high - low:
            kept.append((low, high, start, end))
    return kept


def split_intervals(mems: Sequence[Interval]) -> list[tuple[int, int, int]]:
    """Section 4.5 (stage 3): (row, start, end) of each row of the intervals, but not of those that the longer match
    before, with the same start, has already."""
    rows = []
    for i, (low, high, start, end) in enumerate(mems):
        had = range(mems[i - 1][0], mems[i - 1][1] + 1) if i and mems[i - 1][2] == start else ()
        rows += [(row, start, end) for row in range(low, high + 1) if row not in had]
    return rows


# ---- plainly


def _maximal_plainly(contigs: Sequence[str], read: str, min_length: int) -> set[Match]:
    """Definition 1, letter by letter."""
    matches = set()
    for strand, pattern in enumerate(patterns_of(read)):
        for contig, sequence in enumerate(contigs):

            def equal(i: int, at: int, pattern: str = pattern, bases: str = sequence.upper()) -> bool:
                inside = 0 <= i < len(pattern) and 0 <= at < len(bases)
                return inside and pattern[i] == bases[at] and pattern[i] in "ACGT"

            for first in range(len(pattern)):
                for start in range(len(sequence)):
                    if equal(first - 1, start - 1):
                        continue
                    length = 0
                    while equal(first + length, start + length):
                        length += 1
                    if length >= min_length:
                        matches.add((strand, contig, start, read_start_of(strand, first, length, len(read)), length))
    return matches


def _paper_plainly(contigs: Sequence[str], read: str, min_length: int) -> set[Match]:
    """Stages 1 to 4, one behind the other."""
    segments = segments_of(contigs)
    if not segments:
        return set()
    index = NaiveIndex.of(joined([bases for _, _, bases in segments]))
    places = [(contig, start + i) for contig, start, bases in segments for i in range(len(bases) + 1)]
    matches = set()
    for strand, pattern in enumerate(patterns_of(read)):
        for row, first, last in split_intervals(without_redundant(sa_intervals(index, pattern, min_length))):
            length = last - first + 1
            read_start = read_start_of(strand, first, length, len(read))
            matches.add((strand, *places[index.suffix_array[row]], read_start, length))
    return matches


def _starts_of(piece: str, sequence: str) -> Iterator[int]:
    """Where a piece begins in a sequence; copies may overlap."""
    start = sequence.find(piece)
    while start >= 0:
        yield start
        start = sequence.find(piece, start + 1)


def _super_plainly(contigs: Sequence[str], read: str, min_length: int) -> set[Match]:
    """Every interval of the read looked for, and those that match compared with each other."""
    found: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for first in range(len(read)):
        for end in range(first + 1, len(read) + 1):
            occurrences = [
                (strand, contig, start)
                for strand, piece in enumerate(patterns_of(read[first:end]))
                if "N" not in piece
                for contig, sequence in enumerate(contigs)
                for start in _starts_of(piece, sequence.upper())
            ]
            if occurrences:
                found[first, end] = occurrences
    return {
        (*occurrence, first, end - first)
        for (first, end), occurrences in found.items()
        if end - first >= min_length and not any(a <= first and end <= b and (a, b) != (first, end) for a, b in found)
        for occurrence in occurrences
    }


def find_mems_plainly(contigs: Sequence[str], read: str, min_length: int, kind: str) -> set[Match]:
    """The same sets without NumPy, each straight from its definition: what `find_mems` itself is held to."""
    plainly = {"paper": _paper_plainly, "super": _super_plainly, "maximal": _maximal_plainly}
    return plainly[kind](contigs, read, min_length)

"""Sequences packed two bits a base, of any lengths: what every search takes, on both targets.

A sequence has as many 64-bit words as its bases need, back to back with its neighbours': one long read among many short
ones costs its own words and no more. The functions here are scalar and run on the CPU and in kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from warpseed.compute.bits import reverse_complement_word
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.intrinsics import load_word
from warpseed.errors import InputError

if TYPE_CHECKING:
    from warpseed.sequences.names import Names
    from warpseed.sequences.queries import Queries

__all__ = [
    "BASES_A_WORD",
    "Bounds",
    "Measured",
    "NamedSet",
    "Packed",
    "all_known",
    "base_at",
    "eight_bases",
    "first_word",
    "join_packed",
    "measure",
    "one_word_each",
    "oriented_marks",
    "oriented_word",
    "pack",
    "pack_bounded",
    "part_of",
    "refuse_length",
    "view_of",
]


BASES_A_WORD = 32
"""Bases of a 64-bit word."""

_UNKNOWN = np.uint64(0x0C0C0C0C0C0C0C0C)
"""Bits 2 and 3 of a code in each of eight bytes: a code of `DECODE` that is no base, 4 to 14, has one of them."""
_LOWER, _GATHER = np.uint64(0xFFFFFFFF), np.uint64(1 << 30 | 1 << 20 | 1 << 10 | 1)


class Packed(NamedTuple):
    """Packed sequences; *word w of sequence i* is ``words[first[i] + w]``, or ``words[i]`` where each has one."""

    words: np.ndarray
    """uint64[total], 32 bases a word, first base in the top bits, zeros behind the end and for what is no base"""
    marks: np.ndarray
    """uint64[total], the low bit of a base's pair is 1 where it is no base; uint64[0] where all are"""
    first: np.ndarray
    """uint32[n + 1], where each sequence's words begin; uint32[0] where every sequence has exactly one word"""
    lengths: np.ndarray
    """uint32[n], bases of each sequence"""


class NamedSet(NamedTuple):
    """Packed sequences and their names."""

    packed: Packed
    names: Names


class Measured(NamedTuple):
    """Lengths of sequences, and what has to be known of them to pack them; one look at their offsets."""

    lengths: np.ndarray
    """uint32[n], bases of each"""
    shortest: int
    longest: int
    """bases, 0 where there are no sequences"""
    words: int
    """words that all of them take"""


@scalar
def _measure(offsets, lengths):
    """Lengths between offsets; returns the shortest, the longest, and the words of all."""
    shortest = longest = int64(offsets[1]) - int64(offsets[0]) if lengths.shape[0] else int64(0)
    words = int64(0)
    for i in range(lengths.shape[0]):
        length = int64(offsets[i + 1]) - int64(offsets[i])
        shortest = min(shortest, length)
        longest = max(longest, length)
        words += (length + int64(31)) >> int64(5)
        lengths[i] = length
    return shortest, longest, words


def measure(queries: Queries) -> Measured:
    """Look at the lengths of queries."""
    lengths = np.empty(len(queries), np.uint32)
    return Measured(lengths, *_measure(queries.offsets, lengths))


@scalar
def eight_bases(codes):
    """Eight codes 0-3, a byte each with the first in the lowest, as 16 bits with the first on top."""
    # Each of four bytes is added where it belongs, bits 30, 28, 26 and 24; their other sums lie below these or above.
    first = (((codes & _LOWER) * _GATHER) >> uint64(24)) & uint64(0xFF)
    second = (((codes >> uint64(32)) * _GATHER) >> uint64(24)) & uint64(0xFF)
    return (first << uint64(8)) | second


@scalar
def _pack(codes, offsets, first, words, marks):
    for i in range(offsets.shape[0] - 1):
        begin = int64(offsets[i])
        end = int64(offsets[i + 1])
        to = int64(first[i]) if first.shape[0] else int64(i)
        while begin < end:
            word = uint64(0)
            mark = uint64(0)
            stop = min(begin + int64(32), end)
            j = begin
            while j + int64(8) <= stop and load_word(codes, j) & _UNKNOWN == uint64(0):
                word = (word << uint64(16)) | eight_bases(load_word(codes, j))
                j += int64(8)
            while j < stop:
                code = uint64(codes[j])
                word = (word << uint64(2)) | (code if code <= uint64(3) else uint64(0))
                mark = (mark << uint64(2)) | (uint64(0) if code <= uint64(3) else uint64(1))
                j += int64(1)
            shift = uint64(int64(64) - int64(2) * (stop - begin))
            words[to] = word << shift
            if marks.shape[0]:
                marks[to] = mark << shift
            to += int64(1)
            begin = stop


@scalar
def _pack_short(codes, offsets, words):
    """As `_pack`, for sequences of one word each, if all they have is bases; returns whether that is so."""
    seen = uint64(0)
    for i in range(words.shape[0]):
        first = offsets[i]
        length = offsets[i + 1] - first
        word = uint64(0)
        for j in range(first, first + length):
            code = uint64(codes[j])
            seen |= code
            word = (word << uint64(2)) | code
        words[i] = word << uint64(64 - 2 * length)
    return seen <= uint64(3)


def pack(queries: Queries, measured: Measured | None = None) -> Packed:
    """Pack queries of any lengths, none of which is empty.

    Parameters
    ----------
    queries : Queries
        Codes 0-3, and 4, or where letters are kept those of `DECODE` behind it, for what is no base.
    measured : Measured, of these queries, where it is known

    Returns
    -------
    Packed
    """
    known = measured or measure(queries)
    nothing = np.empty(0, np.uint64)
    words = np.empty(known.words, np.uint64)
    first = np.empty(0, np.uint32)
    if known.longest <= BASES_A_WORD:
        if _pack_short(queries.codes, queries.offsets, words):
            return Packed(words, nothing, first, known.lengths)
    else:
        first = np.zeros(len(queries) + 1, np.uint32)
        np.cumsum((known.lengths + np.uint32(31)) >> np.uint32(5), out=first[1:])
    marks = np.empty(known.words if queries.codes.max(initial=0) > 3 else 0, np.uint64)
    _pack(queries.codes, queries.offsets, first, words, marks)
    return Packed(words, marks, first, known.lengths)


class Bounds(NamedTuple):
    """How long queries may be, and what a sentence says of another one."""

    kind: str
    """what a query is, such as 'read'"""
    longest: int
    """bases"""
    advice: str = ""
    """what the sentence ends with"""


def refuse_length(source: str, number: int, name: str, bases: int, bounds: Bounds) -> NoReturn:
    """Say that a query of a source, by its number from 0 on, has no bases or too many.

    Raises
    ------
    InputError
    """
    raise InputError(
        f"{source}: {bounds.kind} number {number + 1} ('{name[:60]}') has {bases} bases, but 1 to {bounds.longest} "
        f"were expected{bounds.advice}."
    )


def pack_bounded(queries: Queries, bounds: Bounds, first: int = 0) -> Packed:
    """Pack queries of 1 to `bounds.longest` bases; `first` is the number of the first one in its source.

    Raises
    ------
    InputError : a query is empty or longer
    """
    measured = measure(queries)
    if measured.longest > bounds.longest or (measured.shortest < 1 and len(queries)):
        lengths = queries.lengths
        worst = int(np.argmax((lengths > bounds.longest) | (lengths < 1)))
        refuse_length(queries.source, first + worst, queries.name(worst), int(lengths[worst]), bounds)
    return pack(queries, measured)


def part_of(packed: Packed, start: int, stop: int) -> Packed:
    """Sequences [start, stop), on the host or on a device: words, marks and lengths are views."""
    part, before = view_of(packed, start, stop)
    return part._replace(first=part.first - np.uint32(before)) if before else part


def view_of(packed: Packed, start: int, stop: int) -> tuple[Packed, int]:
    """Views of the sequences [start, stop), on the host or on a device, and the words before them, which their `first`
    counts as well."""
    lengths = packed.lengths[start:stop]
    if not len(packed.first):
        return Packed(packed.words[start:stop], packed.marks[start:stop], packed.first, lengths), 0
    begin, end = int(packed.first[start]), int(packed.first[stop])
    first = packed.first[start : stop + 1]
    return Packed(packed.words[begin:end], packed.marks[begin:end], first, lengths), begin


def join_packed(parts: Sequence[Packed], empty: Callable[[int, type], np.ndarray] = np.empty) -> Packed:
    """Sets of sequences, at least one, as a single set.

    Parameters
    ----------
    empty : function of a length and a type that makes an array, which is filled here
    """
    ends = np.cumsum([0, *(len(part.lengths) for part in parts)])
    word_ends = np.cumsum([0, *(len(part.words) for part in parts)])
    lengths, words = empty(int(ends[-1]), np.uint32), empty(int(word_ends[-1]), np.uint64)
    short = all(len(part.words) == len(part.lengths) for part in parts)
    first = empty(0 if short else len(lengths) + 1, np.uint32)
    marks = empty(len(words) if any(len(part.marks) for part in parts) else 0, np.uint64)
    for part, begin, end, word, word_end in zip(parts, ends, ends[1:], word_ends, word_ends[1:], strict=False):
        lengths[begin:end] = part.lengths
        words[word:word_end] = part.words
        if not short:
            first[begin:end] = (part.first[:-1] if len(part.first) else np.arange(end - begin)) + word
        if len(marks):
            marks[word:word_end] = part.marks if len(part.marks) else 0
    if not short:
        first[-1] = len(words)
    return Packed(words, marks, first, lengths)


@scalar
def one_word_each(packed):
    """Whether every sequence of the set has exactly one word."""
    return packed.first.shape[0] == 0


@scalar
def all_known(packed):
    """Whether every base of the set is one of A, C, G, T."""
    return packed.marks.shape[0] == 0


@scalar
def first_word(packed, i):
    """Where the words of sequence `i` begin, int64."""
    return int64(i) if one_word_each(packed) else int64(packed.first[i])


@scalar
def oriented_word(packed, i, strand, word):
    """Word `word` of sequence `i` (strand 0) or of its reverse complement (strand 1), uint64."""
    first = first_word(packed, i)
    if strand == int64(0):
        return packed.words[first + word]
    return reverse_complement_word(packed.words, first, int64(packed.lengths[i]), word, ~uint64(0))


@scalar
def oriented_marks(packed, i, strand, word):
    """Marks of what is no base in the same orientation, uint64; zero where the set has none at all."""
    if all_known(packed):
        return uint64(0)
    first = first_word(packed, i)
    if strand == int64(0):
        return packed.marks[first + word]
    return reverse_complement_word(packed.marks, first, int64(packed.lengths[i]), word, uint64(0))


@scalar
def base_at(packed, i, strand, position):
    """Code of one base of sequence `i` (strand 0) or its reverse complement (1): 0..3, or 4 for what is no base."""
    if strand != int64(0):
        position = int64(packed.lengths[i]) - int64(1) - position
    word = first_word(packed, i) + (position >> int64(5))
    shift = uint64(int64(62) - int64(2) * (position & int64(31)))
    if not all_known(packed) and (packed.marks[word] >> shift) & uint64(1):
        return int64(4)
    code = int64((packed.words[word] >> shift) & uint64(3))
    return code if strand == int64(0) else int64(3) - code

"""Packed k-mers and hits: what both tiers and both devices take and give."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import int64, uint64

from warpseed.compute.bits import reverse_complement_word
from warpseed.compute.compiled import scalar
from warpseed.errors import InputError

if TYPE_CHECKING:
    from warpseed.sequences.queries import Queries

__all__ = [
    "MAX_LENGTH",
    "QUERY_SHIFT",
    "Kmers",
    "base_at",
    "keyed_hit",
    "oriented_marks",
    "oriented_word",
    "pack_hit",
    "pack_kmers",
]

MAX_LENGTH = 255
QUERY_SHIFT = 35
"""Hits appended on a device carry their k-mer above the 35 bits of a packed hit, so one sort orders everything."""


class Kmers(NamedTuple):
    """Packed k-mers, as they are searched."""

    words: np.ndarray
    """uint64[n, W], 2 bits a base, first base in the top bits, zeros behind the end and for what is no base"""
    marks: np.ndarray
    """uint64[n, W], the low bit of a base's pair is 1 where it is no base; uint64[0, W] where all are"""
    lengths: np.ndarray
    """uint8[n], bases of each k-mer, 1 to MAX_LENGTH"""


@scalar
def _pack(codes, offsets, words, marks, lengths):
    for i in range(lengths.shape[0]):
        first = offsets[i]
        length = offsets[i + 1] - first
        lengths[i] = length
        for w in range((length + 31) >> 5):
            word = uint64(0)
            mark = uint64(0)
            begin = first + 32 * w
            for j in range(begin, min(begin + 32, first + length)):
                code = uint64(codes[j])
                word = (word << uint64(2)) | (code & uint64(3) if code <= uint64(3) else uint64(0))
                mark = (mark << uint64(2)) | (uint64(0) if code <= uint64(3) else uint64(1))
            shift = uint64(64 - 2 * (min(begin + 32, first + length) - begin))
            words[i, w] = word << shift
            marks[i, w] = mark << shift


@scalar
def _pack_bases(codes, offsets, words, lengths):
    """As `_pack`, for k-mers that are all bases and fit one word."""
    for i in range(lengths.shape[0]):
        first = offsets[i]
        length = offsets[i + 1] - first
        lengths[i] = length
        word = uint64(0)
        for j in range(first, first + length):
            word = (word << uint64(2)) | uint64(codes[j])
        words[i, 0] = word << uint64(64 - 2 * length)


def pack_kmers(queries: Queries, first: int = 0) -> Kmers:
    """Pack queries for searching; `first` is the number of the first one in its source, for the sentence.

    Raises
    ------
    InputError : a query is empty or longer than MAX_LENGTH
    """
    lengths = np.diff(queries.offsets)
    longest = int(lengths.max(initial=0))
    if longest > MAX_LENGTH or int(lengths.min(initial=1)) < 1:
        worst = int(np.argmax((lengths > MAX_LENGTH) | (lengths < 1)))
        raise InputError(
            f"{queries.source}: k-mer number {first + worst + 1} ('{queries.name(worst)[:60]}') has "
            f"{int(lengths[worst])} bases, but 1 to {MAX_LENGTH} were expected; cut longer sequences into k-mers first."
        )
    words = np.zeros((len(queries), max(1, (longest + 31) // 32)), np.uint64)
    packed_lengths = np.empty(len(queries), np.uint8)
    marked = bool(queries.codes.max(initial=0) > 3)
    marks = np.zeros((len(queries) if marked else 0, words.shape[1]), np.uint64)
    if marked or words.shape[1] > 1:
        scratch = marks if marked else np.zeros_like(words)
        _pack(queries.codes, queries.offsets, words, scratch, packed_lengths)
    else:
        _pack_bases(queries.codes, queries.offsets, words, packed_lengths)
    return Kmers(words, marks, packed_lengths)


@scalar
def oriented_word(kmers, query, strand, word):
    """Word `word` of a k-mer (strand 0) or of its reverse complement (strand 1), uint64."""
    if strand == int64(0):
        return kmers.words[query, word]
    return reverse_complement_word(kmers.words[query], int64(kmers.lengths[query]), word, ~uint64(0))


@scalar
def oriented_marks(kmers, query, strand, word):
    """Marks of what is no base in the same orientation, uint64; zero where the set has none at all."""
    if kmers.marks.shape[0] != kmers.words.shape[0]:
        return uint64(0)
    if strand == int64(0):
        return kmers.marks[query, word]
    reverse = reverse_complement_word(kmers.marks[query], int64(kmers.lengths[query]), word, uint64(0))
    return reverse


@scalar
def base_at(kmers, query, strand, position):
    """Code of one base of a k-mer (strand 0) or its reverse complement (1): 0..3, or 4 for what is no base."""
    if strand != int64(0):
        position = int64(kmers.lengths[query]) - int64(1) - position
    word = position >> int64(5)
    shift = uint64(int64(62) - int64(2) * (position & int64(31)))
    if kmers.marks.shape[0] == kmers.words.shape[0] and (kmers.marks[query, word] >> shift) & uint64(1):
        return int64(4)
    code = int64((kmers.words[query, word] >> shift) & uint64(3))
    return code if strand == int64(0) else int64(3) - code


@scalar
def pack_hit(position, strand, distance):
    """A hit as one word, uint64: text position, strand, distance; ascending words are in output order."""
    return (uint64(position) << uint64(3)) | (uint64(strand) << uint64(2)) | uint64(distance)


@scalar
def keyed_hit(query, position, strand, distance):
    """A packed hit with its k-mer above it."""
    return (uint64(query) << uint64(QUERY_SHIFT)) | pack_hit(position, strand, distance)

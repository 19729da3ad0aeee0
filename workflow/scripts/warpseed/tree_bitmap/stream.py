"""A stream: the bases of records one behind the other, and k-mers as numbers.

`codes` are uint8[n], A C G T as 0 to 3. Between two records stands one code NO_BASE, and so does it for every N. A
k-mer is k codes beside each other, none of them NO_BASE; it is named by the *place* where it begins, 0-based, in
`codes`. As a number it has two bits a base, the first base on top of the 2k bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.ranges import borders_of
from warpseed.sequences.names import Names

if TYPE_CHECKING:
    from warpseed.sequences.queries import Queries

__all__ = [
    "MAX_K",
    "NEW",
    "NO_BASE",
    "NO_KMER",
    "SEEN",
    "KmerCounts",
    "Stream",
    "kmer_at",
    "kmer_mask",
    "next_kmer",
    "next_unknown",
    "place_type",
    "spelled",
    "stream_of",
]

_MOST_IN_32_BITS = (1 << 31) - 1
"""Places that have 32 bits."""
MAX_K = 31
"""Bases of the longest k-mer: its number leaves bits free for marks."""
NO_BASE = np.uint8(4)
NO_KMER, NEW, SEEN = np.uint8(0), np.uint8(1), np.uint8(2)
"""What is said of a place: no k-mer begins there, or one that is in no seed and at no earlier place, or one that is."""


class Stream(NamedTuple):
    """Records one behind the other."""

    codes: np.ndarray
    """uint8[n], with one NO_BASE between two records"""
    starts: np.ndarray
    """int64[r], where each record begins in `codes`"""
    names: Names
    """of the records"""

    def records_of(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The records, int64[p], that hold these places, and where in them these are, int64[p]."""
        records = np.searchsorted(self.starts, places, side="right") - 1
        return records, places - self.starts[records]


class KmerCounts(NamedTuple):
    """The distinct k-mers of a stream, in the order of their first places."""

    codes: np.ndarray
    """uint64[d], their numbers"""
    places: np.ndarray
    """int32[d] or int64[d], by `place_type` of all places of the stream: where each begins for the first time"""
    counts: np.ndarray
    """of the same type, how often it is there"""


def place_type(places: int) -> type[np.signedinteger[Any]]:
    """The type of the places of a stream that has so many, and of numbers of them."""
    return np.int32 if places <= _MOST_IN_32_BITS else np.int64


def stream_of(records: Queries) -> Stream:
    """The records as a stream; one without bases keeps its name, and the NO_BASE behind it."""
    count = len(records)
    starts = borders_of(records.lengths + 1)
    codes = np.full(max(0, int(starts[-1]) - 1), NO_BASE)
    _lay_out(records.codes, records.offsets, starts, codes)
    return Stream(codes, starts[:count], records.names)


@scalar
def _lay_out(bases, offsets, starts, codes):
    """Copy the bases of each record to where it begins."""
    for record in range(offsets.shape[0] - 1):
        shift = starts[record] - offsets[record]
        for i in range(offsets[record], offsets[record + 1]):
            codes[i + shift] = min(bases[i], NO_BASE)


def spelled(kmers: np.ndarray, k: int) -> np.ndarray:
    """The letters of k-mers, uint8[d, k], of their numbers, uint64[d]."""
    shifts = np.arange(2 * k - 2, -1, -2, dtype=np.uint64)
    return np.frombuffer(b"ACGT", np.uint8)[((kmers[:, None] >> shifts) & np.uint64(3)).astype(np.intp)]


@scalar
def kmer_mask(k):
    """Ones over the 2k bits of a k-mer, uint64."""
    return (uint64(1) << (uint64(2) * uint64(k))) - uint64(1)


@scalar
def next_kmer(kmer, code, mask):
    """The k-mer that ends with `code`, of the one that begins a base before; `mask` is that of `kmer_mask`."""
    return ((kmer << uint64(2)) | (uint64(code) & uint64(3))) & mask


@scalar
def next_unknown(unknown, code, k):
    """A bit for each of the last k codes, the last one's lowest, set where it is no base; of the bits before."""
    return ((unknown << uint64(1)) | (uint64(code) >> uint64(2))) & ((uint64(1) << uint64(k)) - uint64(1))


@scalar
def kmer_at(codes, place, k):
    """(number, known): the k-mer that begins at a place, which has k codes, and whether all of them are bases."""
    mask = kmer_mask(k)
    kmer, unknown = uint64(0), uint64(0)
    for i in range(place, place + int64(k)):
        kmer = next_kmer(kmer, codes[i], mask)
        unknown = next_unknown(unknown, codes[i], k)
    return kmer, unknown == uint64(0)

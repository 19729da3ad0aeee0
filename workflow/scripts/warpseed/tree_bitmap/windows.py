"""Blocks of places at once: the k-mers of all of them, and their minimizers, without a step from base to base.

Two bases beside each other are put together for all places of a block, then two of these, and so on to sixteen; a
k-mer is two of the longest of them that overlap. Each such pass is a loop over arrays without a branch, which compilers
make vector code of, where a k-mer made of the one before would wait for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint8, uint32, uint64
from warpseed.tree_bitmap.stream import NO_BASE

__all__ = [
    "BLOCK",
    "Windows",
    "kmers_of",
    "known_of",
    "minimizer_rank",
    "new_windows",
    "rank_of_kmer",
    "ranks_of",
    "read_block",
    "word_of",
]

BLOCK = 2048
"""Places that are worked on together; what is known of them stays in the first-level cache."""
_BEHIND = 64
"""Codes that are read behind a block: the k-mers of its last places, and the words in which these end, need fewer."""
_FLIP, _ODD = np.uint32(0x2545F491), np.uint32(0x9E3779B1)


class Windows(NamedTuple):
    """What is known of the windows that begin at each place of a block."""

    ones: np.ndarray
    """uint8[], two bits of each base"""
    twos: np.ndarray
    """uint8[], of two bases, the first on top"""
    fours: np.ndarray
    """uint8[]"""
    eights: np.ndarray
    """uint16[]"""
    sixteens: np.ndarray
    """uint32[]"""
    unknown: np.ndarray
    """uint8[2, ], whether there is no base: of each place, then of windows, in one row or the other"""
    kmers: np.ndarray
    """uint64[], the k-mers"""
    known: np.ndarray
    """uint8[], 1 where all bases of the k-mer are known, else 0"""
    ranks: np.ndarray
    """uint32[2, ], of m-mers, then the least of those of a window, in one row or the other"""
    parts: np.ndarray
    """uint16[], the part of each k-mer"""
    begins: np.ndarray
    """uint8[], 1 where a run begins, else 0"""
    hashes: np.ndarray
    """uint32[], a bit for each k-mer"""


def new_windows() -> Windows:
    """Room for a block, whose content is none yet."""
    size = BLOCK + 2 * _BEHIND
    return Windows(
        np.zeros(size, np.uint8),
        np.zeros(size, np.uint8),
        np.zeros(size, np.uint8),
        np.zeros(size, np.uint16),
        np.zeros(size, np.uint32),
        np.zeros((2, size), np.uint8),
        np.zeros(size, np.uint64),
        np.zeros(size, np.uint8),
        np.zeros((2, size), np.uint32),
        np.zeros(size, np.uint16),
        np.zeros(size, np.uint8),
        np.zeros(size, np.uint32),
    )


@scalar
def _double(parts, shift, count, out):
    """Put each part, of as many bits as `shift` says, before the one that follows it."""
    ahead = uint64(shift) >> uint64(1)
    for i in range(count):
        out[uint64(i)] = (uint64(parts[uint64(i)]) << uint64(shift)) | uint64(parts[uint64(i) + ahead])


@scalar
def read_block(codes, place, count, windows):
    """Read the codes of `count` places, at most BLOCK, from `place` on; what lies behind the stream is no base.

    Returns
    -------
    whether all of them, and of those that are read behind them, are bases
    """
    wanted = int64(count) + int64(_BEHIND)
    there = min(wanted, int64(codes.shape[0]) - int64(place))
    unknown = windows.unknown[0]
    worst = uint8(0)
    for i in range(there):
        code = codes[uint64(place + i)]
        windows.ones[uint64(i)] = code & uint8(3)
        unknown[uint64(i)] = code >> uint8(2)
        worst |= code
    for i in range(there, wanted):
        windows.ones[uint64(i)] = uint8(0)
        unknown[uint64(i)] = uint8(1)
        worst |= NO_BASE
    _double(windows.ones, 2, wanted - 1, windows.twos)
    _double(windows.twos, 4, wanted - 3, windows.fours)
    _double(windows.fours, 8, wanted - 7, windows.eights)
    _double(windows.eights, 16, wanted - 15, windows.sixteens)
    return worst < NO_BASE


@scalar
def _join(parts, size, length, count, out):
    """Windows of `length` bases of two parts of `size` bases each, which overlap or touch."""
    ahead = uint64(length) - uint64(size)
    mask = (uint64(1) << (uint64(2) * ahead)) - uint64(1)
    for i in range(count):
        first, last = uint64(parts[uint64(i)]), uint64(parts[uint64(i) + ahead])
        out[uint64(i)] = (first << (uint64(2) * ahead)) | (last & mask)


@scalar
def _spell(windows, length, count, out):
    """The windows of `length` bases, 1 to 31, of the first `count` places."""
    if length >= 16:
        _join(windows.sixteens, 16, length, count, out)
    elif length >= 8:
        _join(windows.eights, 8, length, count, out)
    elif length >= 4:
        _join(windows.fours, 4, length, count, out)
    elif length >= 2:
        _join(windows.twos, 2, length, count, out)
    else:
        _join(windows.ones, 1, length, count, out)


@scalar
def kmers_of(windows, k, count, all_known):
    """The k-mers of a block's first `count` places, and which are known; `all_known` is what `read_block` said."""
    _spell(windows, k, count, windows.kmers)
    known_of(windows, k, count, all_known)


@scalar
def known_of(windows, k, count, all_known):
    """Which k-mers of a block's first `count` places are known."""
    if all_known:
        for i in range(count):
            windows.known[uint64(i)] = uint8(1)
        return
    width = int64(1)
    row = int64(0)
    while width < k:
        step = min(width, int64(k) - width)
        source, target = windows.unknown[row], windows.unknown[int64(1) - row]
        for i in range(int64(count) + int64(k) - width - step):
            target[uint64(i)] = source[uint64(i)] | source[uint64(i) + uint64(step)]
        width += step
        row = int64(1) - row
    unknown = windows.unknown[row]
    for i in range(count):
        windows.known[uint64(i)] = uint8(1) - unknown[uint64(i)]


@scalar
def word_of(windows, i):
    """The 32 bases from the block's place `i` on, which is at most 32 behind its last, the first base on top."""
    return (uint64(windows.sixteens[uint64(i)]) << uint64(32)) | uint64(windows.sixteens[uint64(i) + uint64(16)])


@scalar
def minimizer_rank(mmer):
    """The place of an m-mer (uint32, m up to 16) in an order in which poor sequence does not come first."""
    mixed = uint32(uint32(mmer ^ _FLIP) * _ODD)
    return mixed ^ (mixed >> uint32(15))


@scalar
def ranks_of(windows, k, m, count):
    """The least rank of the m-mers in each k-mer of a block's first `count` places.

    Returns
    -------
    the row of ``windows.ranks`` that has them
    """
    mmers = int64(count) + int64(k) - int64(m)
    first = windows.ranks[0]
    _spell(windows, m, mmers, first)
    for i in range(mmers):
        first[uint64(i)] = minimizer_rank(first[uint64(i)])
    wanted = int64(k) - int64(m) + int64(1)
    width = int64(1)
    row = int64(0)
    while width < wanted:
        step = min(width, wanted - width)
        source, target = windows.ranks[row], windows.ranks[int64(1) - row]
        for i in range(int64(count) + wanted - width - step):
            target[uint64(i)] = min(source[uint64(i)], source[uint64(i) + uint64(step)])
        width += step
        row = int64(1) - row
    return row


@scalar
def rank_of_kmer(kmer, k, m):
    """The least rank of the m-mers of one k-mer."""
    mask = (uint64(1) << (uint64(2) * uint64(m))) - uint64(1)
    least = uint32(0xFFFFFFFF)
    for shift in range(int64(0), int64(2) * (int64(k) - int64(m)) + int64(1), int64(2)):
        least = min(least, minimizer_rank(uint32((kmer >> uint64(shift)) & mask)))
    return least

"""Kernels for few conjugates, whose order takes fewer steps than many sorts are begun in.

They are sorted once, by 48 bits of letters with the position below; after that each is compared with those alone that
are equal to it as far as is known. A rank has 16 bits, so a key holds those of three conjugates that are further on in
the word. Rows of an array stand for rounds: those of `Rows` are read and written in turns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.ebwt.gpu_fast import further

__all__ = [
    "LETTER_BITS",
    "MOST_FEW",
    "MOST_IN_WORD",
    "Rows",
    "begin_rows",
    "deepen_keys",
    "finish_keys",
    "letter_keys",
    "place_ranks",
    "settle_rows",
]

MOST_FEW = 1 << 16
LETTER_BITS = 48
"""Of letters in the first keys; a position has the others."""
MOST_IN_WORD = 1 << 12
"""Letters of the longest word whose ranks are put in order by comparing each with all."""


class Rows(NamedTuple):
    """What is known of the order, twice, for rounds that read the one and write the other."""

    order: np.ndarray
    """uint32[2, n], the position of the conjugate of each rank"""
    starts: np.ndarray
    """uint32[2, n], the first rank of its group"""
    ranks: np.ndarray
    """uint32[n], of each position the first rank of its group"""


@kernel
def letter_keys(codes, words_of, offsets, bits, keys):
    """A thread a conjugate: its first letters, as many as LETTER_BITS hold, and its position."""
    place = int64(cuda.grid(1))
    if place >= codes.shape[0]:
        return
    word = words_of[place]
    first, last = int64(offsets[word]), int64(offsets[word + 1])
    key = uint64(0)
    at = place
    for _ in range(int64(LETTER_BITS) // int64(bits)):
        key = (key << uint64(bits)) | uint64(codes[at])
        at += int64(1)
        if at == last:
            at = first
    keys[place] = (key << uint64(64 - LETTER_BITS)) | uint64(place)


@kernel
def begin_rows(keys, rows):
    """A thread a rank: the conjugate that the sorted keys have there, and its group."""
    rank = int64(cuda.grid(1))
    if rank >= keys.shape[0]:
        return
    key = keys[rank]
    place = key & uint64((1 << (64 - LETTER_BITS)) - 1)
    start = rank
    while start > int64(0) and (keys[start - int64(1)] ^ key) >> uint64(64 - LETTER_BITS) == uint64(0):
        start -= int64(1)
    rows.order[0, rank] = uint32(place)
    rows.starts[0, rank] = uint32(start)
    rows.ranks[place] = uint32(start)


@kernel
def deepen_keys(rows, turn, words_of, offsets, steps, keys):
    """A thread a rank: the ranks of what is `steps` letters further on than its conjugate, twice, three times as many.

    turn : 0 or 1, which rows are read
    """
    rank = int64(cuda.grid(1))
    if rank >= keys.shape[0]:
        return
    at = int64(rows.order[turn, rank])
    key = uint64(0)
    for _ in range(3):
        at = further(at, int64(steps), words_of, offsets)
        key = (key << uint64(16)) | uint64(rows.ranks[at])
    keys[rank] = key


@kernel
def finish_keys(rows, turn, words_of, offsets, steps, keys):
    """A thread a rank: the rank of what is `steps` letters further on than its conjugate, and its word's length."""
    rank = int64(cuda.grid(1))
    if rank >= keys.shape[0]:
        return
    place = int64(rows.order[turn, rank])
    word = words_of[place]
    ahead = uint64(rows.ranks[further(place, int64(steps), words_of, offsets)])
    keys[rank] = (ahead << uint64(32)) | uint64(int64(offsets[word + 1]) - int64(offsets[word]))


@kernel
def settle_rows(rows, turn, keys, is_last):
    """A thread a rank: its conjugate goes to where its key is among those of the group, behind equal ones before it.

    is_last : whether what still is equal stands as it does, so that each has a rank of its own
    """
    rank = int64(cuda.grid(1))
    count = int64(keys.shape[0])
    if rank >= count:
        return
    start, key = rows.starts[turn, rank], keys[rank]
    smaller, before = int64(0), int64(0)
    other = int64(start)
    while other < count and rows.starts[turn, other] == start:
        if keys[other] < key:
            smaller += int64(1)
        elif keys[other] == key and other < rank:
            before += int64(1)
        other += int64(1)
    begins = int64(start) + smaller
    place = rows.order[turn, rank]
    rows.order[1 - turn, begins + before] = place
    rows.starts[1 - turn, begins + before] = uint32(begins)
    rows.ranks[place] = uint32(begins + before if is_last else begins)


@kernel
def place_ranks(ranks, words_of, offsets, positions):
    """A thread a conjugate: its rank goes to where it is among those of its word, ascending."""
    place = int64(cuda.grid(1))
    if place >= ranks.shape[0]:
        return
    rank, word = ranks[place], words_of[place]
    smaller = int64(0)
    for other in range(int64(offsets[word]), int64(offsets[word + 1])):
        if ranks[other] < rank:
            smaller += int64(1)
    positions[int64(offsets[word]) + smaller] = rank

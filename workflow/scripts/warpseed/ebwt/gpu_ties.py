"""What the first key of letters does not tell apart: conjugates that share one are a *group*. Where it is of few, a warp
compares the letters that follow, so that nothing of it need be sorted again.

A lane has a conjugate, and reads the next letters of it, a word of 64 bits at a time. It is told the words of the others
of its group, and counts those that come before it: so each word is read once, and all lanes have work, whatever the
sizes of groups.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, cupy, kernel, launch
from warpseed.compute.warp import ALL_LANES, BLOCK, LANES, LANES_BITS, lanes_before, warp_places
from warpseed.ebwt.gpu_fast import ends_at

__all__ = ["ROUNDS", "Compared", "Packed", "compare_few", "compared", "join_letters", "packed"]

ROUNDS = 16
"""Words of letters that are compared, at most."""
STRETCH = 4 * LANES
"""Conjugates of a warp."""
_WORD_BITS = 64
_SECTOR_BITS = 2
"""A sector of memory has four words."""


class Packed(NamedTuple):
    """Letters as words of 64 bits, the first letter of each on top."""

    words: Any
    """uint64[ceil(N / letters of a word)]"""
    bits: int
    """of a letter, a power of two, at most 8"""

    @property
    def compared(self) -> int:
        """Letters that `compare_few` looks at, at most."""
        return ROUNDS * (_WORD_BITS // self.bits)


@kernel
def join_letters(codes, bits, words):
    """A thread a word of 64 bits.

    codes : uint8[N]
    words : uint64[...], as of `Packed`
    """
    i, count = int64(cuda.grid(1)), int64(codes.shape[0])
    if i >= words.shape[0]:
        return
    held = int64(_WORD_BITS) // int64(bits)
    word = uint64(0)
    for at in range(i * held, (i + int64(1)) * held):
        word = (word << uint64(bits)) | (uint64(codes[at]) if at < count else uint64(0))
    words[i] = word


def packed(codes: Any, bits: int) -> Packed:
    """Letters, uint8[N] on the device, of so many bits."""
    of_letter = 1 << (bits - 1).bit_length()
    words = cupy().empty(-(-len(codes) * of_letter // _WORD_BITS), np.uint64)
    launch(join_letters, len(words), BLOCK, codes, of_letter, words)
    return Packed(words, of_letter)


@scalar
def start_of(words_of, offsets, place, known):
    """Where in its word a conjugate is so many letters further on, and where the word begins and ends; all uint32."""
    first, last = ends_at(words_of, offsets, place)
    ahead, left = uint32(uint32(known) % uint32(last - first)), uint32(last - place)
    if ahead < left:
        return uint32(place + ahead), first, last
    return uint32(first + uint32(ahead - left)), first, last


@scalar
def next_word(words, bits, there):
    """The next letters of a conjugate, as many as 64 bits hold, and where it is behind them.

    words, bits : as of `Packed`
    there : (at, first, last), as of `start_of`
    """
    at, first, last = there
    held, got, word = uint32(_WORD_BITS) // uint32(bits), uint32(0), uint64(0)
    while got < held:
        begin = uint64(at) * uint64(bits)
        i, behind = begin >> uint64(6), begin & uint64(63)
        letters = words[i] << behind
        if behind and i + uint64(1) < uint64(words.shape[0]):
            letters |= words[i + uint64(1)] >> (uint64(64) - behind)
        word |= letters >> uint64(got * uint32(bits))
        left = uint32(last - at)
        if left > held - got:
            at, got = uint32(at + uint32(held - got)), held
        else:  # (what is behind the word's end is no part of it)
            got, at = uint32(got + left), first
            if got < held:
                word &= ~(~uint64(0) >> uint64(got * uint32(bits)))
    return word, (at, first, last)


@scalar
def lanes_upto(lane):
    """One and those before it, as bits of a uint32."""
    return uint32(uint32(uint32(2) << uint32(lane)) - uint32(1))


@scalar
def first_lane(lanes):
    """The first of some lanes, bits of a uint32 that is not 0."""
    return int64(cuda.popc(uint32(uint32(lanes & uint32(~lanes + uint32(1))) - uint32(1))))


@scalar
def last_lane(lanes):
    """The last of them."""
    return int64(LANES - 1) - int64(cuda.clz(lanes))


@scalar
def span_of(heads, lane):
    """The lanes of the group of one: where its first is, and the one behind its last, int64.

    heads : uint32, lanes with which a group begins; with one at or before this lane, and one behind it
    """
    upto = lanes_upto(lane)
    return last_lane(uint32(heads & upto)), first_lane(uint32(heads & ~upto))


@scalar
def look_round(word, mine, span):
    """Compare words within groups: how many of the rivals come before a lane, and which are equal to it.

    Parameters
    ----------
    word : uint64, of this lane
    mine : (lane, rivals), rivals as lanes, uint32
    span : as of `span_of`
    """
    (lane, rivals), (first, end) = mine, span
    # (What lanes tell each other is signed: the top bit is turned for that, so that the order stays.)
    here, less, size = int64(word ^ (uint64(1) << uint64(63))), int64(0), end - first
    step = int64(1)
    while cuda.any_sync(ALL_LANES, rivals != uint32(0) and step < size):
        other = lane + step
        other = (other - size if other >= end else other) & int64(LANES - 1)
        there, bit = cuda.shfl_sync(ALL_LANES, here, other), uint32(uint32(1) << uint32(other))
        if rivals & bit and there != here:
            rivals = uint32(rivals & ~bit)
            less += int64(there < here)
        step += int64(1)
    return less, rivals


@kernel
def compare_few(rows, heads, order, read, how, made):
    """A warp STRETCH conjugates that are tied, and what is left of the group of the last: puts each group of less than
    LANES in the order of the letters that follow.

    Parameters
    ----------
    rows : uint32[t], their rows in the order, ascending
    heads : bool[t], whether a group begins with each
    order : uint32[N], positions, changed in place
    read : (words, words_of, offsets), letters as of `Packed`
    how : (known, bits, rounds), how many letters a group has in common, bits of a letter, words that are compared
    made : (begins, is_tied, is_many, noted): bool[t], at first `heads`, and true: whether a group begins with each now,
        whether it is tied still, and whether it is of a group that is not of few; uint64[2], to which are added the
        sectors that were read, and whether there is such a group
    """
    (words, words_of, offsets), (known, bits, rounds), (begins, is_tied, is_many, noted) = read, how, made
    count, lane, sectors = int64(rows.shape[0]), int64(cuda.threadIdx.x) & int64(LANES - 1), int64(0)
    at = (int64(cuda.grid(1)) >> int64(LANES_BITS)) * int64(STRETCH)
    stop = min(at + int64(STRETCH), count)
    while at < stop:
        here = at + lane
        lanes = uint32(cuda.ballot_sync(ALL_LANES, here >= count or heads[here]))
        behind = uint32(lanes & ~uint32(1))
        if not lanes & uint32(1):  # (the group of another warp, or the rest of one of many)
            at += first_lane(lanes) if lanes else int64(LANES)
            continue
        if behind == uint32(0):
            noted[1] = uint64(1)
            at += int64(LANES)
            continue
        taken, of_others = last_lane(behind), uint32(behind & ~lanes_upto(min(stop - at, int64(LANES)) - int64(1)))
        if of_others:
            taken = first_lane(of_others)
        is_mine, span, rivals = lane < taken and here < count, (lane, lane + int64(1)), uint32(0)
        place, there, less, looked = uint32(0), (uint32(0), uint32(0), uint32(1)), int64(0), int64(0)
        if is_mine:
            span = span_of(lanes, lane)
            members = (uint64(1) << uint64(span[1])) - (uint64(1) << uint64(span[0]))
            rivals = uint32(members & ~(uint64(1) << uint64(lane)))
            place = uint32(order[rows[here]])
            there = start_of(words_of, offsets, place, known)
        for _ in range(rounds):
            if cuda.ballot_sync(ALL_LANES, rivals != uint32(0)) == 0:
                break
            word = uint64(0)
            if rivals:
                word, there = next_word(words, bits, there)
                looked += int64(1)
            before, rivals = look_round(word, (lane, rivals), span)
            less += before
        if is_mine:
            equal_before = int64(lanes_before(rivals, lane))
            to = at + span[0] + less + equal_before
            order[rows[to]] = place
            begins[to], is_tied[to], is_many[to] = equal_before == int64(0), rivals != uint32(0), False
        sectors += (looked + int64((1 << _SECTOR_BITS) - 1)) >> int64(_SECTOR_BITS)
        at += taken
    _, read_here = warp_places(sectors)
    if lane == int64(0) and read_here:
        cuda.atomic.add(noted, 0, uint64(read_here))


class Compared(NamedTuple):
    """What `compare_few` makes beside the order."""

    begins: Any
    """bool[t]"""
    is_tied: Any
    """bool[t]"""
    is_many: Any
    """bool[t]"""
    noted: Any
    """uint64[2]"""


def compared(tied: tuple[Any, Any], order: Any, letters: Packed, words: tuple[Any, Any], known: int) -> Compared:
    """Tell conjugates apart that are tied, in place, as of `compare_few`.

    tied : (rows, heads)
    words : (words_of, offsets)
    """
    rows, heads = tied
    xp = cupy()
    made = Compared(heads.copy(), *xp.ones((2, len(rows)), np.bool_), xp.zeros(2, np.uint64))
    how, lanes = (known, letters.bits, ROUNDS), -(-len(rows) // STRETCH) * LANES
    launch(compare_few, lanes, BLOCK, rows, heads, order, (letters.words, *words), how, tuple(made))
    return made

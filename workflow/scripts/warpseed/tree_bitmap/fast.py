"""Steps of the fast tier on the CPU: sets of k-mers in cache lines, and the bits before them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import trailing_zeros
from warpseed.compute.vectors import WORDS, equal_words
from warpseed.tree_bitmap.slots import EMPTY

__all__ = [
    "KmerSet", "add_kmers", "bit_of", "clear_set", "find_slot", "keep_kmer", "line_of", "may_hold",
    "move_kmers", "new_set", "note_kmer", "tell_counts",
]  # fmt: skip

_ODD = np.uint64(0x9E37_79B9_7F4A_7C15)


class KmerSet(NamedTuple):
    """Distinct k-mers in lines of eight slots: a k-mer is in the first line from its own on that had a free one."""

    slots: np.ndarray
    """uint64[…], from a multiple of 64 bytes on; a power of two of them are used"""
    bits: np.ndarray
    """uint64[b], b a power of two: of each k-mer's hash one bit is set; uint64[0] where nobody asks"""
    notes: np.ndarray
    """uint64[slots], who brought each k-mer << 32 | how often it came; uint64[0] where nobody counts"""


def new_set(slots: int, bits: int = 0, counting: bool = False) -> KmerSet:
    """Room for a set, which is empty when it was cleared.

    Parameters
    ----------
    slots : a power of two, at least WORDS
    bits : 0, or a power of two, at least 128 and at most 2^32
    counting : whether it has notes
    """
    room = np.empty(slots + WORDS, np.uint64)
    first = -(room.ctypes.data // room.itemsize) % WORDS
    notes = np.empty(slots if counting else 0, np.uint64)
    return KmerSet(room[first : first + slots], np.zeros(bits // 64, np.uint64), notes)


@scalar
def clear_set(kmers, slots):
    """Empty the first `slots` slots."""
    for i in range(slots):
        kmers.slots[uint64(i)] = EMPTY


@inlined
def line_of(kmer, slots):
    """The first slot of a k-mer's own line, of `slots`, a power of two."""
    return (((kmer * _ODD) >> uint64(32)) * uint64(slots) >> uint64(32)) & ~uint64(WORDS - 1)


@inlined
def find_slot(kmers, slots, kmer):
    """(slot, found): where a k-mer is, or where it goes."""
    line = line_of(kmer, slots)
    same = equal_words(kmers.slots, int64(line), kmer)
    free = equal_words(kmers.slots, int64(line), EMPTY)
    while same | free == uint64(0):
        line = (line + uint64(WORDS)) & (uint64(slots) - uint64(1))
        same = equal_words(kmers.slots, int64(line), kmer)
        free = equal_words(kmers.slots, int64(line), EMPTY)
    found = same != uint64(0)
    return line + uint64(trailing_zeros(same if found else free)), found


@inlined
def keep_kmer(kmers, slots, kmer):
    """Have a k-mer in the set, which is not full; returns its slot, and whether it was there before."""
    slot, found = find_slot(kmers, slots, kmer)
    kmers.slots[slot] = kmer
    return slot, found


@inlined
def note_kmer(kmers, slot, found, owner, times):
    """Note that a k-mer came some times more; its first owner stays."""
    kmers.notes[slot] = (kmers.notes[slot] if found else uint64(owner) << uint64(32)) + uint64(times)


@inlined
def bit_of(kmers, kmer):
    """The number of a k-mer's bit, below 2^32."""
    return ((kmer * _ODD) >> uint64(24)) & (uint64(64) * uint64(kmers.bits.shape[0]) - uint64(1))


@inlined
def may_hold(kmers, bit):
    """1 where a bit is set, else 0: then the set holds no k-mer of this bit."""
    return (kmers.bits[bit >> uint64(6)] >> (bit & uint64(63))) & uint64(1)


@scalar
def add_kmers(kmers, slots, more, begin, end, owner):
    """Put ``more[begin:end]`` into a set that has room, and set their bits; they come 0 times yet, and the owner of the
    first of `more` is `owner`."""
    for i in range(begin, end):
        slot, found = keep_kmer(kmers, slots, more[uint64(i)])
        if kmers.notes.shape[0]:
            note_kmer(kmers, slot, found, owner + i, int64(0))
        if kmers.bits.shape[0]:
            bit = bit_of(kmers, more[uint64(i)])
            kmers.bits[bit >> uint64(6)] |= uint64(1) << (bit & uint64(63))


@scalar
def move_kmers(old, old_slots, kmers, slots):
    """Put all k-mers of a set into another, which has room."""
    for i in range(old_slots):
        if old.slots[uint64(i)] != EMPTY:
            slot, _ = keep_kmer(kmers, slots, old.slots[uint64(i)])
            if old.notes.shape[0]:
                kmers.notes[slot] = old.notes[uint64(i)]


@scalar
def tell_counts(kmers, slots, first_counts, known_counts):
    """Say how often each k-mer came: ``first_counts[owner]``, or of an owner beyond these, what is added for it to
    ``known_counts``."""
    places = uint64(first_counts.shape[0])
    for i in range(slots):
        if kmers.slots[uint64(i)] != EMPTY:
            owner, times = kmers.notes[uint64(i)] >> uint64(32), kmers.notes[uint64(i)] & uint64(0xFFFF_FFFF)
            if owner < places:
                first_counts[owner] = times
            else:
                known_counts[owner - places] += int64(times)

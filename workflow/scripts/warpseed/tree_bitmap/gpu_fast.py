"""Kernels of the fast tier: k-mers of a stream go to a hash table in device memory, a thread each.

A slot of the table is one word: some bits of the k-mer's hash above PLACE_BITS, and below them the least place where
the k-mer begins that any thread has come with. So a k-mer costs one sector of memory, read and written once, whatever k
is: which bases it has is read in the packed stream at that place, which only k-mers that come again do. Whoever comes
with a place below the slot's takes the slot, and whoever is behind it has been seen before; of equal k-mers exactly the
first is left, in whatever order threads run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word, mixed, prefix_mask
from warpseed.compute.compiled import int32, int64, scalar, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.tree_bitmap.slots import EMPTY, next_slot
from warpseed.tree_bitmap.stream import NO_KMER, SEEN

__all__ = [
    "PLACE_BITS",
    "SLOTS_A_BUCKET",
    "KmerTable",
    "Stretch",
    "insert_kmers",
    "move_slots",
    "pack_codes",
    "read_codes",
]

PLACE_BITS = 40
SLOTS_A_BUCKET = 4
"""Slots of a sector of 32 bytes, where the search of a k-mer begins."""
_PLACE = np.uint64((1 << PLACE_BITS) - 1)


class KmerTable(NamedTuple):
    """The k-mers so far, and the stream that they are read in."""

    words: np.ndarray
    """uint64[…], the stream, 32 bases a word, first base on top; one word more than its bases need, and one for what
    is read behind that"""
    marks: np.ndarray
    """uint64[…] beside them, the low bit of a pair is 1 where there is no base"""
    slots: np.ndarray
    """uint64[SLOTS_A_BUCKET·buckets], EMPTY or a k-mer's hash bits and place"""
    counts: np.ndarray
    """uint64[slots], how often each k-mer has come; uint64[0] where nobody asks"""
    used: np.ndarray
    """uint64[1], slots that are not empty"""
    k: int


class Stretch(NamedTuple):
    """Places of the stream that are searched together."""

    first: int
    last: int
    """the places [first, last)"""
    part: int
    parts: int
    """k-mers are dealt out by their hash to so many parts, and only those of one are searched"""
    grows: bool
    """whether the table takes k-mers that it does not have"""


@kernel
def pack_codes(codes, first_word, words, marks):
    """A thread packs 32 bases of codes, uint8[32·n], of which those above 3 are no base, behind `first_word` words."""
    word = cuda.grid(1)
    if word * 32 >= codes.shape[0]:
        return
    bases = uint64(0)
    unknown = uint64(0)
    for j in range(32):
        code = uint64(codes[word * 32 + j])
        is_base = code <= uint64(3)
        bases = (bases << uint64(2)) | (code if is_base else uint64(0))
        unknown = (unknown << uint64(2)) | (uint64(0) if is_base else uint64(1))
    words[first_word + word] = bases
    marks[first_word + word] = unknown


@scalar
def _first_slot(hashed, slots):
    """Where the search of a k-mer begins: the first slot of its bucket."""
    buckets = uint64(slots) // uint64(SLOTS_A_BUCKET)
    return int64(((hashed >> uint64(32)) * buckets) >> uint64(32)) * int64(SLOTS_A_BUCKET)


@scalar
def _claim(table, kmer, hashed, place, grows):
    """Bring a k-mer to its slot. Returns the slot, and the place that was there: `place` itself in an empty slot, which
    is left empty if the table does not grow."""
    mask = prefix_mask(int64(table.k))
    mine = (hashed << uint64(PLACE_BITS)) | uint64(place)
    slot = _first_slot(hashed, table.slots.shape[0])
    while True:
        # What is read may be old, but a slot keeps its hash bits, and its place only falls.
        held = table.slots[slot]
        if held == EMPTY and grows:
            held = cuda.atomic.cas(table.slots, slot, EMPTY, mine)
        if held == EMPTY:
            return slot, place
        if (held ^ mine) >> uint64(PLACE_BITS) == uint64(0):
            before = int64(held & _PLACE)
            if fetch_word(table.words, before) & mask == kmer:
                if before > place:
                    before = int64(cuda.atomic.min(table.slots, slot, mine) & _PLACE)
                return slot, before
        slot = next_slot(slot, table.slots.shape[0])


@kernel
def insert_kmers(table, stretch, answers):
    """A thread a place: its k-mer goes to the table.

    answers : uint8[last - first], NEW everywhere before; what each place is, if nothing behind `last` was inserted
        before. Of k-mers of other parts it is left as it is.
    """
    place = int64(stretch.first) + int64(cuda.grid(1))
    mask = prefix_mask(int64(table.k))
    is_new = False
    if place < stretch.last:
        if fetch_word(table.marks, place) & mask != uint64(0):
            answers[place - stretch.first] = NO_KMER
        else:
            kmer = fetch_word(table.words, place) & mask
            hashed = mixed(kmer)
            if stretch.parts == 1 or int64(hashed >> uint64(16) & uint64(0xFFFF)) % stretch.parts == stretch.part:
                slot, before = _claim(table, kmer, hashed, place, stretch.grows)
                is_new = before == place and stretch.grows
                if before != place:
                    # Of two places of a k-mer the one behind has seen it; each but the first is behind some other.
                    behind = max(place, before)
                    if behind >= stretch.first:
                        answers[behind - stretch.first] = SEEN
                if table.counts.shape[0] and stretch.grows:
                    cuda.atomic.add(table.counts, slot, uint64(1))
    taken = cuda.syncthreads_count(int32(is_new))
    if cuda.threadIdx.x == 0 and taken:
        cuda.atomic.add(table.used, 0, uint64(taken))


@kernel
def move_slots(old, table):
    """A thread a slot of a smaller table: its k-mer goes to the larger one."""
    place = int64(cuda.grid(1))
    if place >= old.slots.shape[0] or old.slots[place] == EMPTY:
        return
    held = old.slots[place]
    kmer = fetch_word(table.words, int64(held & _PLACE)) & prefix_mask(int64(table.k))
    hashed = mixed(kmer)
    slot = _first_slot(hashed, table.slots.shape[0])
    # No k-mer is there twice, so none is compared.
    while cuda.atomic.cas(table.slots, slot, EMPTY, held) != EMPTY:
        slot = next_slot(slot, table.slots.shape[0])
    if table.counts.shape[0]:
        table.counts[slot] = old.counts[place]


@kernel
def read_codes(table, places, codes):
    """A thread a place: the 2-bit code of the k-mer that begins there, first base on top of the 2k bits."""
    i = cuda.grid(1)
    if i < places.shape[0]:
        codes[i] = fetch_word(table.words, int64(places[i])) >> uint64(64 - 2 * table.k)

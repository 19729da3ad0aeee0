"""Kernels of the fast tier for short k-mers, which have bits: whatever there can be has its own place in a table, a
thread a place.

What has been seen is mostly a matter of one bit, in an array that caches hold: a k-mer whose bit is set costs nothing
more. Of the others the least turn is kept at which any thread has come with them, as in the hash table: exactly the
first of equal k-mers is left NEW. A k-mer's bit is set by who finds that the turn lies before the stretch, so that it
says of every place of a stretch the same. (Where k-mers have parts a place has a bit, too, as in `gpu_fast`.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.warp import ALL_LANES, LANES
from warpseed.tree_bitmap.gpu_fast import KNOWN, kmer_in, set_seen, times_of
from warpseed.tree_bitmap.gpu_parts import is_of_part
from warpseed.tree_bitmap.slots import EMPTY
from warpseed.tree_bitmap.stream import NO_KMER, SEEN

__all__ = [
    "SHARED_CELLS",
    "WORD_BITS",
    "ShortKmers",
    "count_short_kmers",
    "insert_short_kmers",
    "insert_short_kmers_of_part",
    "insert_short_known",
    "look_up_short_counts",
    "spread_slots",
]

WORD_BITS = 32
SHARED_CELLS = 1 << 12
"""K-mers that there can be at most where blocks of threads count them for themselves: 16 kB of shared memory."""


class ShortKmers(NamedTuple):
    """What is known of each of the 4^k k-mers, at its number."""

    seen: np.ndarray
    """uint32[…], a bit, which is set only of what was seen before the stretch began that is searched"""
    turns: np.ndarray
    """uint64[4^k], the least turn at which it has come, EMPTY for none; uint64[0] where none but the known are seen"""
    counts: np.ndarray
    """uint64[4^k], how often it has come; uint64[0] where nobody asks"""
    k: int


@scalar
def _bit_of(kmer):
    """(word, bit): where a k-mer's bit is."""
    return int64(kmer >> uint64(5)), uint32(1) << uint32(kmer & uint64(WORD_BITS - 1))


@scalar
def _insert(table, kmer, turn, first):
    """Bring a k-mer to its place at a turn of a stretch that begins at the place `first`. Of two places of a k-mer the
    one behind has seen it, and each but the first is behind some other: returns the turn of the one that is found to be
    behind now, EMPTY where there is none."""
    word, bit = _bit_of(kmer)
    if table.seen[word] & bit:
        return turn
    if table.turns.shape[0] == 0:
        return EMPTY
    # What is read may be old, but a turn only falls.
    before = table.turns[kmer]
    if before > turn:
        before = cuda.atomic.min(table.turns, int64(kmer), turn)
    if before == EMPTY:
        return EMPTY
    if before <= uint64(first):
        cuda.atomic.or_(table.seen, word, bit)
    return max(turn, before)


@kernel
def insert_short_kmers(table, block, stretch, answers):
    """A thread a place: what `insert_kmers` does, with a table of ShortKmers; where nothing comes to be seen, k-mers of
    other parts are NEW."""
    place = int64(stretch.first) + int64(cuda.grid(1))
    if place >= stretch.last:
        return
    kmer, known = kmer_in(block, place, table.k)
    if not known:
        answers[place - stretch.first] = NO_KMER
    elif is_of_part(kmer, table.k, stretch.part, stretch.parts):
        behind = _insert(table, kmer, uint64(place) + uint64(1), stretch.first)
        if behind != EMPTY:
            answers[int64(behind) - int64(1) - int64(stretch.first)] = SEEN


@kernel
def insert_short_kmers_of_part(table, block, stretch, seen):
    """A thread a place, in whole warps: what `insert_kmers_of_part` does, with a table of ShortKmers."""
    thread = int64(cuda.grid(1))
    place, behind = int64(stretch.first) + thread, EMPTY
    turn = uint64(place) + uint64(1)
    if place < stretch.last:
        kmer, known = kmer_in(block, place, table.k)
        if known and is_of_part(kmer, table.k, stretch.part, stretch.parts):
            behind = _insert(table, kmer, turn, stretch.first)
    # A warp's own places are a word.
    own = uint32(cuda.ballot_sync(ALL_LANES, behind == turn))
    if own and thread & int64(LANES - 1) == int64(0):
        cuda.atomic.or_(seen, thread >> int64(5), own)
    if behind != turn and behind != EMPTY:
        set_seen(seen, behind, stretch.first)


@scalar
def _put(table, kmer, turn):
    """Have a k-mer in the table with its turn."""
    if turn == KNOWN:
        word, bit = _bit_of(kmer)
        cuda.atomic.or_(table.seen, word, bit)
    if table.turns.shape[0]:
        table.turns[kmer] = turn


@kernel
def insert_short_known(table, kmers, part, parts):
    """A thread a code of k-mers, uint64[n], that are known before the stream begins."""
    i = cuda.grid(1)
    if i < kmers.shape[0] and is_of_part(kmers[i], table.k, part, parts):
        _put(table, kmers[i], KNOWN)


@kernel
def count_short_kmers(table, block, stretch):
    """Threads go over the places of a stretch in steps of the grid, and count their k-mers.

    Of few k-mers many threads would add to the same words: where all fit SHARED_CELLS, a block of threads counts in
    shared memory, uint32[SHARED_CELLS], and adds what it has to the table in the end.
    """
    cells, me, threads = int64(table.counts.shape[0]), int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    held = cuda.shared.array(SHARED_CELLS, uint32)
    is_shared = cells <= int64(SHARED_CELLS)
    for cell in range(me, cells if is_shared else int64(0), threads):
        held[cell] = uint32(0)
    cuda.syncthreads()
    for place in range(int64(stretch.first) + int64(cuda.grid(1)), int64(stretch.last), int64(cuda.gridsize(1))):
        kmer, known = kmer_in(block, place, table.k)
        if known and is_of_part(kmer, table.k, stretch.part, stretch.parts):
            if is_shared:
                cuda.atomic.add(held, int64(kmer), uint32(1))
            else:
                cuda.atomic.add(table.counts, int64(kmer), uint64(1))
    cuda.syncthreads()
    for cell in range(me, cells if is_shared else int64(0), threads):
        if held[cell]:
            cuda.atomic.add(table.counts, cell, uint64(held[cell]))


@kernel
def look_up_short_counts(table, kmers, counts):
    """A thread a code of k-mers, uint64[n]: how often it has come.

    counts : int32[n] or int64[n]
    """
    i = cuda.grid(1)
    if i < kmers.shape[0]:
        counts[i] = table.counts[kmers[i]]


@kernel
def spread_slots(old, table):
    """A thread a slot of a hash table: its k-mer goes to its own place."""
    i = int64(cuda.grid(1))
    if i >= old.slots.shape[0] or old.slots[i, 0] == EMPTY:
        return
    kmer = old.slots[i, 0]
    _put(table, kmer, old.slots[i, 1])
    if table.counts.shape[0]:
        table.counts[kmer] = times_of(old, i)

"""Kernels of the fast tier, for k-mers of any length: those of a stream go to a table, by a thread each, or, where a
table has a part of all k-mers, by warps that queue those of theirs.

A slot of a hash table is two words beside each other: a k-mer's code, and the least turn at which any thread has come
with it. Where most k-mers come that there can be, each has a place of its own instead, for its turn alone. Either way a
k-mer costs one sector of memory, which is read, and written where it is new, whatever k is, and the stream itself is
forgotten block by block. Whoever comes at a turn below that of the slot takes it, and whoever is behind it has been
seen before; of equal k-mers exactly the first is left, in whatever order threads run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word, first_slot, joined_bases, mixed, prefix_mask
from warpseed.compute.compiled import int32, int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.warp import ALL_LANES, LANES, lanes_before
from warpseed.tree_bitmap.gpu_parts import hash_of, is_of_part
from warpseed.tree_bitmap.slots import EMPTY, next_slot
from warpseed.tree_bitmap.stream import NEW, NO_KMER, SEEN

__all__ = [
    "BLOCK",
    "KNOWN",
    "PLACES_A_PART",
    "SLOTS_A_BUCKET",
    "KmerTable",
    "PackedBlock",
    "Stretch",
    "insert_kmers",
    "insert_kmers_of_part",
    "insert_known",
    "kmer_in",
    "look_up_counts",
    "look_up_kmers",
    "move_slots",
    "set_seen",
    "times_of",
]

KNOWN = np.uint64(0)
"""The turn of a k-mer that is known before the stream begins; that of a place is its number and 1."""
BLOCK = 256
"""Threads of a block."""
_QUEUED = 2 * BLOCK
"""K-mers that the queues of a block's warps have room for: what a step leaves, less than one a lane, and those of the
next step."""
PLACES_A_PART = 4
"""Places that a thread looks at for each part, where k-mers are queued: of fewer, more lanes are idle in the end; more
gain nothing."""
SLOTS_A_BUCKET = 2
"""Slots of a sector of 32 bytes, where the search of a k-mer begins."""


class KmerTable(NamedTuple):
    """The k-mers so far: a hash table of slots, or turns by hash, as of `hash_of`."""

    slots: np.ndarray
    """uint64[SLOTS_A_BUCKET·buckets, 2], the code of a k-mer, or EMPTY, and its turn, EMPTY for none; uint64[0, 2]
    where there are turns by hash"""
    turns: np.ndarray
    """uint64[hashes of a part], EMPTY for none; uint64[0] of a hash table"""
    repeats: np.ndarray
    """uint64[slots or turns], how often each k-mer has come behind its first place, so that one that comes once costs
    nothing here; of one that is known before, how often at all; uint64[0] where nobody counts"""
    filter: np.ndarray
    """uint32[…], of a dictionary that stays as it is, else uint32[0]: each k-mer sets three bits of a word, of sixteen
    bits for each k-mer that there is room for; so nearly all others are known by one word, which a cache may hold"""
    used: np.ndarray
    """uint64[1], slots that are not empty; uint64[0] where there are turns, which have room for all"""
    first_hash: int
    """the hash that the first of the turns is for"""
    k: int


class PackedBlock(NamedTuple):
    """Bases that lie beside each other in the stream."""

    words: np.ndarray
    """uint64[…], 32 bases a word, first base on top; one word more than its bases need"""
    marks: np.ndarray
    """uint64[…] beside them, the low bit of a pair is 1 where there is no base"""
    first: int
    """the place of the stream that is the first here"""


class Stretch(NamedTuple):
    """Places of the stream that are searched together."""

    first: int
    last: int
    """the places [first, last)"""
    part: int
    parts: int
    """k-mers are dealt out by their hash to so many parts, and only those of one are searched"""


@scalar
def _first_slot(kmer, slots):
    """Where the search of a k-mer begins: the first slot of its bucket."""
    return first_slot(kmer, int64(slots) // int64(SLOTS_A_BUCKET)) * int64(SLOTS_A_BUCKET)


@scalar
def kmer_in(block, place, k):
    """(number, known): the k-mer that begins at a place of the stream, and whether all its codes are bases."""
    here = int64(place) - int64(block.first)
    known = fetch_word(block.marks, here) & prefix_mask(int64(k)) == uint64(0)
    return fetch_word(block.words, here) >> uint64(int64(64) - int64(2) * int64(k)), known


@scalar
def _has_turns(table):
    """Whether a table has turns by hash, and no slots."""
    return table.turns.shape[0] > 0


@scalar
def _turn_index(table, kmer):
    """Where the turn of a k-mer is, of a table that has turns by hash."""
    return int64(hash_of(kmer, table.k)) - int64(table.first_hash)


@scalar
def _claim(table, kmer, turn):
    """Bring a k-mer to its slot at a turn. Returns the slot, or where its turn is, and the turn that was there: EMPTY
    if there was none."""
    if _has_turns(table):
        index = _turn_index(table, kmer)
        before = table.turns[index]  # (which may be old, but only falls)
        if before > turn:
            before = cuda.atomic.min(table.turns, index, turn)
        return index, before
    slot = _first_slot(kmer, table.slots.shape[0])
    while True:
        # What is read may be old, but a slot keeps its k-mer, and its turn only falls.
        held = table.slots[slot, 0]
        if held == EMPTY:
            held = cuda.atomic.cas(table.slots, (slot, 0), EMPTY, kmer)
            if held == EMPTY:  # (whose turn is not read before: that would be one more way to memory)
                return slot, cuda.atomic.min(table.slots, (slot, 1), turn)
        if held == kmer:
            before = table.slots[slot, 1]
            if before > turn:
                before = cuda.atomic.min(table.slots, (slot, 1), turn)
            return slot, before
        slot = next_slot(slot, table.slots.shape[0])


@scalar
def _turn_at(table, slot):
    """The turn of a slot, or the one that stands there."""
    if _has_turns(table):
        return table.turns[slot]
    return table.slots[slot, 1]


@scalar
def times_of(table, slot):
    """How often the k-mer of a slot has come, of a table that counts."""
    return table.repeats[slot] + uint64(_turn_at(table, slot) != KNOWN)


@scalar
def _slot_of(table, kmer):
    """The slot of a k-mer that has one, or where its turn is."""
    if _has_turns(table):
        return _turn_index(table, kmer)
    slot = _first_slot(kmer, table.slots.shape[0])
    while table.slots[slot, 0] != kmer:
        slot = next_slot(slot, table.slots.shape[0])
    return slot


@scalar
def _filter_bits(table, kmer):
    """(word, bits): what a k-mer sets of the filter."""
    hashed = uint32(mixed(kmer) & uint64(0x7FFF))
    bits = uint32(1) << (hashed & uint32(31))
    bits |= uint32(1) << ((hashed >> uint32(5)) & uint32(31))
    bits |= uint32(1) << (hashed >> uint32(10))
    return first_slot(kmer, int64(table.filter.shape[0])), bits


@scalar
def _set_filter(table, kmer):
    """Let a k-mer pass the filter, if there is one."""
    if table.filter.shape[0]:
        word, bits = _filter_bits(table, kmer)
        cuda.atomic.or_(table.filter, word, bits)


@scalar
def _is_held(table, kmer):
    """Whether a k-mer is in a table that has a filter."""
    word, bits = _filter_bits(table, kmer)
    if table.filter[word] & bits != bits:
        return False
    slot = _first_slot(kmer, table.slots.shape[0])
    while table.slots[slot, 0] != EMPTY:
        if table.slots[slot, 0] == kmer:
            return True
        slot = next_slot(slot, table.slots.shape[0])
    return False


@scalar
def _count_taken(table, is_new):
    """Add the slots that the threads of a block took, one at most each; all of them come here."""
    if _has_turns(table):
        return
    taken = cuda.syncthreads_count(int32(is_new))
    if cuda.threadIdx.x == 0 and taken:
        cuda.atomic.add(table.used, 0, uint64(taken))


@scalar
def _add_taken(table, taken):
    """Add the slots that each thread of a block took; all of them come here."""
    if _has_turns(table):
        return
    of_block = cuda.shared.array(1, int32)
    if cuda.threadIdx.x == 0:
        of_block[0] = int32(0)
    cuda.syncthreads()
    if taken:
        cuda.atomic.add(of_block, 0, int32(taken))
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and of_block[0]:
        cuda.atomic.add(table.used, 0, uint64(of_block[0]))


@scalar
def _insert(table, kmer, turn):
    """Bring a k-mer to its slot at a turn. Of two places of a k-mer the one behind has seen it, and each but the first
    is behind some other: returns the turn of the one that is found to be behind now, EMPTY where the k-mer is new."""
    slot, before = _claim(table, kmer, turn)
    if before == EMPTY:
        return EMPTY
    if table.repeats.shape[0]:
        cuda.atomic.add(table.repeats, slot, uint64(1))
    return max(turn, before)


@kernel
def insert_kmers(table, block, stretch, answers):
    """A thread a place: its k-mer goes to the table; all k-mers are of one part.

    answers : uint8[last - first], NEW everywhere before, unless the table has turns by hash; what each place is, if
        nothing behind `last` was inserted before
    """
    place = int64(stretch.first) + int64(cuda.grid(1))
    is_new = False
    if place < stretch.last:
        kmer, known = kmer_in(block, place, table.k)
        if not known:
            answers[place - stretch.first] = NO_KMER
        else:
            if _has_turns(table):
                # Before anybody can find the k-mer. (Where there are slots, that takes longer than to do it before.)
                answers[place - stretch.first] = NEW
                cuda.threadfence()
            turn = uint64(place) + uint64(1)
            behind = _insert(table, kmer, turn)
            is_new = behind == EMPTY
            if not is_new:
                if _has_turns(table) and behind != turn:
                    cuda.threadfence()  # (the other place is NEW by then)
                answers[int64(behind) - int64(1) - int64(stretch.first)] = SEEN
    _count_taken(table, is_new)


@scalar
def set_seen(seen, turn, first):
    """Set the bit of the place of a turn; `first` is the place of the first bit."""
    place = int64(turn) - int64(1) - int64(first)
    cuda.atomic.or_(seen, place >> int64(5), uint32(1) << uint32(place & int64(31)))


@scalar
def _insert_and_tell(table, kmer, turn, own, seen):
    """Bring a k-mer to its slot, and set the bit of the place that is found to be behind. Returns how many are new.

    own : (words, mine, first): in shared memory a word for each lane of a warp, of which the first is `mine`, and the
        place of the first bit there
    seen : (words, first): in device memory, and the place of the first bit
    """
    behind = _insert(table, kmer, turn)
    if behind == EMPTY:
        return int64(1)
    place = int64(behind) - int64(1) - int64(own[2])
    if uint64(place) < uint64(LANES * LANES):  # (else another warp's, or behind what lanes have words for)
        cuda.atomic.or_(own[0], own[1] + (place >> int64(5)), uint32(1) << uint32(place & int64(31)))
    else:
        set_seen(seen[0], behind, seen[1])
    return int64(0)


@kernel
def insert_kmers_of_part(table, block, stretch, seen):
    """What `insert_kmers` does, where k-mers have parts: a warp looks at 32 places after another, and queues the
    k-mers of its part, so that each of its lanes has one when they go to the table. A thread takes PLACES_A_PART places
    for each part; a block has BLOCK threads at most, and 9 kB of shared memory.

    seen : uint32[ceil((last - first) / 32)], 0 before; takes a bit for each place, from the lowest on, set where its
        k-mer is of the part, and stood before
    """
    kmers = cuda.shared.array(_QUEUED, uint64)
    turns = cuda.shared.array(_QUEUED, uint64)
    words = cuda.shared.array(BLOCK, uint32)
    me = int64(cuda.threadIdx.x)
    lane = me & int64(LANES - 1)
    queue, queued, new = int64(2) * (me - lane), int64(0), int64(0)
    places = int64(stretch.parts) * int64(PLACES_A_PART)
    place = int64(stretch.first) + (int64(cuda.grid(1)) - lane) * places + lane
    here = place - int64(block.first)
    # A lane's next place is 32 behind: it begins at the same base of the next word.
    word, base, unwanted = here >> int64(5), uint64(here & int64(31)), uint64(int64(64) - int64(2) * int64(table.k))
    bases, marks = uint64(0), uint64(0)
    if place < stretch.last:
        bases, marks = block.words[word], block.marks[word]
    own = words, me - lane, place - lane
    words[me] = uint32(0)
    cuda.syncwarp()
    for _ in range(places):
        kmer, is_mine = uint64(0), False
        if place < stretch.last:
            word += int64(1)
            bases_behind, marks_behind = block.words[word], block.marks[word]
            kmer = joined_bases(bases, bases_behind, base) >> unwanted
            known = joined_bases(marks, marks_behind, base) >> unwanted == uint64(0)
            bases, marks = bases_behind, marks_behind
            is_mine = known and is_of_part(kmer, table.k, stretch.part, stretch.parts)
        lanes = uint32(cuda.ballot_sync(ALL_LANES, is_mine))
        if is_mine:
            mine = queue + queued + int64(lanes_before(lanes, lane))
            kmers[mine] = kmer
            turns[mine] = uint64(place) + uint64(1)
        queued += int64(cuda.popc(lanes))
        cuda.syncwarp()
        if queued >= int64(LANES):
            queued -= int64(LANES)
            mine = queue + queued + lane
            new += _insert_and_tell(table, kmers[mine], turns[mine], own, (seen, stretch.first))
            cuda.syncwarp()
        place += int64(LANES)
    if lane < queued:
        new += _insert_and_tell(table, kmers[queue + lane], turns[queue + lane], own, (seen, stretch.first))
    cuda.syncwarp()
    if words[me]:
        cuda.atomic.or_(seen, ((own[2] - int64(stretch.first)) >> int64(5)) + lane, words[me])
    _add_taken(table, new)


@kernel
def look_up_kmers(table, block, stretch, answers):
    """A thread a place: what `insert_kmers` does, with a table that stays as it is."""
    place = int64(stretch.first) + int64(cuda.grid(1))
    if place < stretch.last:
        kmer, known = kmer_in(block, place, table.k)
        if not known:
            answers[place - stretch.first] = NO_KMER
        elif is_of_part(kmer, table.k, stretch.part, stretch.parts) and _is_held(table, kmer):
            answers[place - stretch.first] = SEEN


@kernel
def look_up_counts(table, kmers, part, parts, counts):
    """A thread a code of k-mers, uint64[n], all of which some part has: how often it has come.

    counts : int32[n] or int64[n], of k-mers of other parts 0
    """
    i = cuda.grid(1)
    if i >= kmers.shape[0]:
        return
    kmer, count = kmers[i], uint64(0)
    if is_of_part(kmer, table.k, part, parts):
        count = times_of(table, _slot_of(table, kmer))
    counts[i] = count


@kernel
def insert_known(table, kmers, part, parts):
    """A thread a code of k-mers, uint64[n], that are known before the stream begins."""
    i = cuda.grid(1)
    is_new = False
    if i < kmers.shape[0] and is_of_part(kmers[i], table.k, part, parts):
        _, before = _claim(table, kmers[i], KNOWN)
        is_new = before == EMPTY
        _set_filter(table, kmers[i])
    _count_taken(table, is_new)


@kernel
def move_slots(old, table):
    """A thread a slot of a smaller hash table: its k-mer goes to the larger one, or its turn to its hash."""
    i = int64(cuda.grid(1))
    if i >= old.slots.shape[0] or old.slots[i, 0] == EMPTY:
        return
    kmer = old.slots[i, 0]
    if _has_turns(table):
        slot = _turn_index(table, kmer)
        table.turns[slot] = old.slots[i, 1]
    else:
        slot = _first_slot(kmer, table.slots.shape[0])
        # No k-mer is there twice, so none is compared.
        while cuda.atomic.cas(table.slots, (slot, 0), EMPTY, kmer) != EMPTY:
            slot = next_slot(slot, table.slots.shape[0])
        table.slots[slot, 1] = old.slots[i, 1]
    if table.repeats.shape[0]:
        table.repeats[slot] = old.repeats[i]
    _set_filter(table, kmer)

"""Kernels for what places are: answers are made of what several parts say (`gpu_rooms`), and k-mers that come first
listed (`gpu_listing`)."""

from __future__ import annotations

from warpseed.compute.bits import fetch_word
from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.warp import ALL_LANES, LANES, lanes_before
from warpseed.tree_bitmap.gpu_fast import kmer_in
from warpseed.tree_bitmap.gpu_parts import is_of_part
from warpseed.tree_bitmap.stream import NEW

__all__ = ["ANSWERS_A_WORD", "TILE", "count_new", "list_new", "put_answers"]

ANSWERS_A_WORD = 8
"""Answers of a byte each, which a thread makes."""
TILE = 1024
"""Places that a warp looks at, 32 at a time."""
_EACH = 0x0101_0101_0101_0101
"""The lowest bit of each of eight answers."""
_ONE_OF_EACH = 0x8040_2010_0804_0201
"""Of eight bytes the bit that is one's own."""


@scalar
def _spread(bits):
    """Eight bits as eight bytes, 0 or 1, that of the lowest bit lowest."""
    own = (bits * uint64(_EACH)) & uint64(_ONE_OF_EACH)
    return ((own + uint64(0x7F) * uint64(_EACH)) >> uint64(7)) & uint64(_EACH)


@scalar
def _kmers_at(block, k, place, places):
    """Which of eight places, or as many as there are, have a k-mer, as bits."""
    here, kmers = place - int64(block.first), uint64(0)
    if places >= int64(ANSWERS_A_WORD):
        # (Marks up to the end of the last k-mer, and a few behind.)
        if fetch_word(block.marks, here) | fetch_word(block.marks, here + int64(ANSWERS_A_WORD - 1)) == uint64(0):
            return uint64(0xFF)
        places = int64(ANSWERS_A_WORD)
    for i in range(places):
        _, known = kmer_in(block, place + int64(i), k)
        if known:
            kmers |= uint64(1) << uint64(i)
    return kmers


@kernel
def put_answers(block, k, stretch, seen, theirs, answers):
    """A thread eight places: SEEN where a bit is set, else NEW, or NO_KMER.

    seen : uint8[ceil((last - first) / 8)], a bit for each place of the stretch, from the lowest on, of one part
    theirs : uint8[others, …], those of other parts
    answers : uint64[ceil((last - first) / 8)], take eight answers each
    """
    i = int64(cuda.grid(1))
    if i >= answers.shape[0]:
        return
    bits, place = uint64(seen[i]), int64(stretch.first) + int64(ANSWERS_A_WORD) * i
    for other in range(theirs.shape[0]):
        bits |= uint64(theirs[other, i])
    kmers = _spread(_kmers_at(block, k, place, int64(stretch.last) - place))
    answers[i] = (kmers + _spread(bits)) & (uint64(3) * kmers)


@scalar
def _new_at(block, k, stretch, answers, place):
    """(kmer, lanes): the k-mer of a place, and which lanes of the warp have one that comes first there and is of the
    stretch's part, as bits; `answers` begin with those of the stretch."""
    kmer, is_new = uint64(0), False
    if place < stretch.last and answers[place - stretch.first] == NEW:
        kmer, _ = kmer_in(block, place, k)
        is_new = is_of_part(kmer, k, stretch.part, stretch.parts)
    return kmer, uint32(cuda.ballot_sync(ALL_LANES, is_new))


@kernel
def count_new(block, k, stretch, answers, counts):
    """A warp a tile of TILE places: how many k-mers come first there.

    answers : uint8[…], what each place of the stretch is
    counts : int64[tiles]
    """
    thread = int64(cuda.grid(1))
    tile, lane = thread // int64(LANES), thread % int64(LANES)
    if tile >= counts.shape[0]:
        return
    place, found = int64(stretch.first) + tile * int64(TILE) + lane, int64(0)
    for _ in range(TILE // LANES):
        _, lanes = _new_at(block, k, stretch, answers, place)
        found += int64(cuda.popc(lanes))
        place += int64(LANES)
    if lane == int64(0):
        counts[tile] = found


@kernel
def list_new(block, k, stretch, answers, ends, kmers, places):
    """A warp a tile: the k-mers that come first, in the order of their places.

    ends : int64[tiles], how many there are up to the end of each tile
    kmers, places : uint64[…] and int32[…] or int64[…], take their codes, and places in the stream
    """
    thread = int64(cuda.grid(1))
    tile, lane = thread // int64(LANES), thread % int64(LANES)
    if tile >= ends.shape[0]:
        return
    place, used = int64(stretch.first) + tile * int64(TILE) + lane, int64(0)
    if tile > int64(0):
        used = ends[tile - int64(1)]
    for _ in range(TILE // LANES):
        kmer, lanes = _new_at(block, k, stretch, answers, place)
        if (lanes >> uint32(lane)) & uint32(1):
            at = used + int64(lanes_before(lanes, lane))
            kmers[at] = kmer
            places[at] = place
        used += int64(cuda.popc(lanes))
        place += int64(LANES)

"""Kernels for what places are: answers of several parts are joined (`gpu_rooms`), and k-mers that come first listed
(`gpu_listing`)."""

from __future__ import annotations

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.warp import ALL_LANES, LANES, lanes_before
from warpseed.tree_bitmap.gpu_fast import kmer_in
from warpseed.tree_bitmap.gpu_parts import is_of_part
from warpseed.tree_bitmap.stream import NEW

__all__ = ["ANSWERS_A_WORD", "TILE", "count_new", "join_answers", "list_new"]

ANSWERS_A_WORD = 8
"""Answers of a byte each, which a thread joins."""
TILE = 1024
"""Places that a warp looks at, 32 at a time."""
_EACH = 0x0101_0101_0101_0101
"""The lowest bit of each of eight answers."""


@kernel
def join_answers(answers, theirs):
    """A thread eight places: of what each is for two parts of the k-mers the greater, as it is NEW in the part that is
    not its k-mer's.

    answers : uint64[n], eight answers each, takes what comes of it
    theirs : uint64[n], of the other part
    """
    i = cuda.grid(1)
    if i < answers.shape[0]:
        # Both say NO_KMER, 0, or NEW, 1, or one of them SEEN, 2: with NEW that is 3, whose lower bit goes.
        both = answers[i] | theirs[i]
        answers[i] = both & ~((both >> uint64(1)) & uint64(_EACH))


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

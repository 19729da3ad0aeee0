"""Kernels of the fast tier's search with mismatches: look-ups, buckets with few rows, and how hits are settled."""

from __future__ import annotations

from warpseed.compute.appended import SEGMENTS, set_aside
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.warp import BLOCK, WARPS, reserve, warp_places
from warpseed.fm_index.tagged import exact_tag_range, position_of
from warpseed.fm_index.text import inside_segment
from warpseed.kmer_seeds.gpu_crowded import piece_rows
from warpseed.kmer_seeds.gpu_look_ups import (
    bases_behind,
    flush,
    is_dropped,
    is_whole,
    look_up_bucket,
    new_shared,
    sure_bases,
    try_rows,
    window_look_up,
)
from warpseed.kmer_seeds.kmers import QUERY_SHIFT
from warpseed.sequences.packed import all_known, oriented_word

__all__ = ["CLOSING_BLOCKS", "KEPT", "LANES_SHIFT", "append_inexact", "close_ranks", "settle_counts"]

LANES_SHIFT = 1
_LANES = 1 << LANES_SHIFT
"""Lanes that share the look-ups of one k-mer in one orientation."""
_CROWDED = 64
"""A bucket with more rows is narrowed, and if it has more then, left to whole warps."""
_ROUNDS = 4
"""Look-ups of a lane after which it asks whether the k-mer is dropped."""
CLOSING_BLOCKS = 32 * SEGMENTS
KEPT = 2 * SEGMENTS
"""Place of the cursor of what `close_ranks` keeps; dropped k-mers are counted behind it."""


@scalar
def _narrowed(search, look_up, rows, bases):
    """Rows of a crowded bucket that are left to be tried.

    Where no mismatch is left, the bases behind those that were looked up are as in the k-mer. Where more rows are so
    than a k-mer may have hits, and the tag shows them whole, they are counted, and that is all.
    """
    index = search.tagged
    low, high = rows
    way, query = look_up.way, look_up.owner >> int64(1)
    if is_whole(way) and all_known(search.kmers) and high - low > search.max_hits:
        length = int64(search.kmers.lengths[query])
        first, last = exact_tag_range(index, low, high, bases, bases_behind(way), int64(search.max_hits))
        if last - first > search.max_hits and inside_segment(index.segments, position_of(index, first), length):
            cuda.atomic.add(search.lists.counts, query, uint64(last - first))
            return low, low
    return exact_tag_range(index, low, high, bases, sure_bases(way), high)


@kernel
def append_inexact(search, rounds):
    """Matches with mismatches: 2 lanes a k-mer and orientation take its look-ups in turn, in `rounds` rounds.

    The rows of a warp's 32 buckets are dealt out to its lanes one by one (binary search in shared memory), so that one
    full bucket does not keep 31 lanes waiting. What is crowded is left to `append_crowded`. A k-mer that has a hit too
    many is not looked up any more.
    """
    dealt, nest = new_shared()
    index, kmers, scheme, lists = search.tagged, search.kmers, search.scheme, search.lists
    t = int64(cuda.grid(1))
    owner = t >> int64(LANES_SHIFT)
    query = owner >> int64(1)
    strand = owner & int64(1)
    pattern = int64(0)
    end = int64(0)
    first_word = uint64(0)
    if query < int64(kmers.lengths.shape[0]):
        length = int64(kmers.lengths[query])
        first_word = oriented_word(kmers, query, strand, int64(0))
        pattern = scheme.pattern_first[length, 0] + (t & int64(_LANES - 1))
        end = scheme.pattern_first[length, 0] + scheme.look_ups[length]
    look_up = window_look_up(search, int64(0), uint64(0), int64(0), uint64(0))
    for done in range(rounds):
        low = int64(0)
        high = int64(0)
        if int64(done) & int64(_ROUNDS - 1) == int64(0) and pattern < end and is_dropped(search, query):
            end = pattern
        if pattern < end:
            low, high, bases = look_up_bucket(index, kmers, scheme, query, strand, first_word, pattern)
            if low < high:
                look_up = window_look_up(search, owner, first_word, pattern, bases)
            if high - low > int64(_CROWDED):
                low, high = _narrowed(search, look_up, (low, high), bases)
                if high - low > int64(_CROWDED):
                    run = piece_rows(search, look_up, high - low)
                    set_aside(lists.cursors, lists.crowded, (owner, pattern), (low, high), run)
                    high = low
        try_rows(search, nest, dealt, look_up, (low, high))
        pattern += int64(_LANES)
    flush(lists, nest, int64(1))


@kernel
def close_ranks(lists, max_hits, hits):
    """Move the parts of the list of hits together, less those of dropped k-mers; CLOSING_BLOCKS blocks.

    Blocks share the parts, and reserve room for each piece of a part by one addition to ``cursors[KEPT]``.
    """
    warp_totals = cuda.shared.array(WARPS, uint64)
    me = int64(cuda.threadIdx.x)
    segment = int64(cuda.blockIdx.x) & int64(SEGMENTS - 1)
    room = int64(lists.hits.shape[0]) // int64(SEGMENTS)
    used = min(int64(lists.cursors[segment]), room)
    first = (int64(cuda.blockIdx.x) // int64(SEGMENTS)) * int64(BLOCK)
    for piece in range(first, used, (CLOSING_BLOCKS // SEGMENTS) * BLOCK):
        hit = uint64(0)
        keep = int64(piece) + me < used
        if keep:
            hit = lists.hits[segment * room + int64(piece) + me]
            keep = int64(lists.counts[int64(hit >> uint64(QUERY_SHIFT))]) <= max_hits
        place, total = warp_places(int64(1) if keep else int64(0))
        begin = reserve(warp_totals, total, lists.cursors, KEPT)
        if keep:
            hits[begin + place] = hit
        cuda.syncthreads()


@kernel
def settle_counts(lists, max_hits):
    """Count dropped k-mers behind ``cursors[KEPT]``, and set their counts to 0: one thread a k-mer."""
    query = int64(cuda.grid(1))
    if query < int64(lists.counts.shape[0]) and int64(lists.counts[query]) > max_hits:
        cuda.atomic.add(lists.cursors, KEPT + 1, uint64(1))
        lists.counts[query] = uint64(0)

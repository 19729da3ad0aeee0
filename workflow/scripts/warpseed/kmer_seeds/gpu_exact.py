"""Kernel of the fast tier's exact search: find a run of equal tags, append its rows.

Hits go to a list by one addition for many of them; their order is settled by a sort afterwards.
"""

from __future__ import annotations

from warpseed.compute.bits import fetch_word, mismatch_bits, prefix_mask
from warpseed.compute.compiled import int32, int64, scalar, uint8, uint32, uint64
from warpseed.compute.gpu import bounded_kernel, cuda
from warpseed.compute.warp import ALL_LANES, BLOCK, lane_of, warp_places
from warpseed.fm_index.tagged import decided_bases, exact_rows, is_inside, oriented_string_of, position_of, strand_place
from warpseed.kmer_seeds.kmers import keyed_hit
from warpseed.sequences.packed import oriented_marks, oriented_word

__all__ = ["append_exact"]

_SINGLE, _SIDE_BY_SIDE, _SCATTERED = 0, 1, 2
"""How a lane's exact matches lie: one, at a known position; rows in a run; rows to be compared one by one."""


@scalar
def _all_bases(kmers, query):
    for w in range((int64(kmers.lengths[query]) + int64(31)) >> int64(5)):
        if oriented_marks(kmers, query, int64(0), int64(w)) != uint64(0):
            return False
    return True


@scalar
def _matches(index, kmers, query, strand, position, length):
    """Whether a candidate of a k-mer that is longer than what its row decides is a match."""
    if not is_inside(index, position, length):
        return False
    for w in range((length + int64(31)) >> int64(5)):
        text = fetch_word(index.text, position + int64(32) * int64(w))
        differ = mismatch_bits(text, oriented_word(kmers, query, strand, int64(w)))
        if differ & prefix_mask(length - int64(32) * int64(w)):
            return False
    return True


@bounded_kernel(48)
def append_exact(index, kmers, max_hits, store, cursor, counts, hits):
    """Exact matches of a k-mer, a thread each; of one of its orientations where a string has to be looked up in both:
    thread 2·q + s, so that the two of a k-mer are lanes side by side.

    A warp reserves room for its hits by one addition to ``cursor[0]``, which counts all hits, those that found no room
    too: it waits for no other. Its lanes write them in turn, each finding by binary search whose hit it is (shared
    memory, 13 bytes a thread), so a k-mer with many hits keeps all lanes busy, in whole sectors. ``counts[q]`` is the
    number of a k-mer's hits, 0 where it was dropped; ``cursor[1]`` counts those.
    """
    places = cuda.shared.array(BLOCK, uint32)
    rows = cuda.shared.array(BLOCK, uint64)
    kinds = cuda.shared.array(BLOCK, uint8)
    t = int64(cuda.grid(1))
    me = int64(cuda.threadIdx.x)
    owner = oriented_string_of(index, t)
    query = owner >> int64(1)
    strand = owner & int64(1)
    there = query < int64(kmers.lengths.shape[0])
    count = int64(0)
    row = int64(0)
    length = int64(0)
    if there and _all_bases(kmers, query):
        length = int64(kmers.lengths[query])
        low, high = exact_rows(index, oriented_word(kmers, query, strand, int64(0)), length, int64(max_hits))
        row = low
        count = high - low
        if length > decided_bases(index):
            count = int64(0)
            for candidate in range(low, high):
                if _matches(index, kmers, query, strand, position_of(index, candidate), length):
                    count += int64(1)
                    if count > max_hits:
                        break
    total = count + (
        int64(cuda.shfl_xor_sync(ALL_LANES, int32(count), 1)) if int64(index.orientations) > int64(1) else int64(0)
    )
    if total > max_hits:
        if strand == int64(0):
            cuda.atomic.add(cursor, 1, uint64(1))
        count = int64(0)
        total = int64(0)
    if there and strand == int64(0):
        counts[query] = uint32(total)
    place, warp_total = warp_places(count)
    places[me] = uint32(place)
    kinds[me] = uint8(_SIDE_BY_SIDE if length <= decided_bases(index) else _SCATTERED)
    rows[me] = uint64(row)
    if count == int64(1) and length <= decided_bases(index):
        rows[me] = uint64(position_of(index, row))
        kinds[me] = uint8(_SINGLE)
    begin = int64(0)
    if me & int64(31) == int64(0) and warp_total > int64(0):
        begin = int64(cuda.atomic.add(cursor, 0, uint64(warp_total)))
    begin = int64(cuda.shfl_sync(ALL_LANES, begin, 0))
    cuda.syncwarp()
    if not store or begin + warp_total > int64(hits.shape[0]):
        return
    first_lane = me - (me & int64(31))
    for i in range(me & int64(31), warp_total, 32):
        lane = lane_of(places, first_lane, int64(i))
        if kinds[lane] != uint8(_SCATTERED):
            position = int64(rows[lane])
            if kinds[lane] == uint8(_SIDE_BY_SIDE):
                position = position_of(index, position + int64(i) - int64(places[lane]))
            owner = oriented_string_of(index, t - me + lane)
            of_query = owner >> int64(1)
            position, on_strand = strand_place(index, position, owner & int64(1), int64(kmers.lengths[of_query]))
            hits[begin + int64(i)] = keyed_hit(of_query, position, on_strand, int64(0))
    if kinds[me] == uint8(_SCATTERED):
        while count > int64(0):
            position = position_of(index, row)
            if _matches(index, kmers, query, strand, position, length):
                position, on_strand = strand_place(index, position, strand, length)
                hits[begin + place] = keyed_hit(query, position, on_strand, int64(0))
                place += int64(1)
                count -= int64(1)
            row += int64(1)

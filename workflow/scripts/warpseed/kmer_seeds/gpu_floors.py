"""Kernels that measure the device and count what a search must read; used by limits.py alone."""

from __future__ import annotations

from numba import int64, uint32, uint64

from warpseed.compute.gpu import cuda, kernel
from warpseed.fm_index.tagged import exact_tag_range
from warpseed.kmer_seeds.gpu_fast import look_up_bucket
from warpseed.sequences.packed import oriented_word

__all__ = ["count_sectors", "gather_sectors"]


@kernel
def gather_sectors(words, reads, sums):
    """Every thread reads `reads` random 32-byte sectors of uint32[] `words`, none depending on another."""
    t = int64(cuda.grid(1))
    if t >= int64(sums.shape[0]):
        return
    sectors = uint64(words.shape[0]) >> uint64(3)
    state = (uint64(t) + uint64(1)) * uint64(0x9E3779B97F4A7C15)
    total = uint32(0)
    for _ in range(reads):
        state ^= state << uint64(13)
        state ^= state >> uint64(7)
        state ^= state << uint64(17)
        total += words[int64(((state >> uint64(32)) * sectors >> uint64(32)) << uint64(3))]
    sums[t] = total


@kernel
def count_sectors(index, kmers, scheme, totals):
    """Sectors that the look-ups of a set must read: one look-up a thread, all k-mers of one length.

    ``totals[0]`` counts sectors of the table, once where look-ups share one; ``totals[1]`` those of tagged rows.
    """
    t = int64(cuda.grid(1))
    length = int64(kmers.lengths[0])
    look_ups = scheme.look_ups[length]
    owner = t // look_ups
    query = owner >> int64(1)
    strand = owner & int64(1)
    if query >= int64(kmers.lengths.shape[0]):
        return
    pattern = scheme.pattern_first[length, 0] + t % look_ups
    window = int64(scheme.pattern_window[pattern])
    first_word = oriented_word(kmers, query, strand, int64(0))
    low, high, bases = look_up_bucket(index, kmers, scheme, query, strand, first_word, pattern)
    before = pattern - int64(1)
    first_of_sector = pattern == scheme.pattern_first[length, window] or scheme.patterns[pattern] >> uint64(
        3
    ) != scheme.patterns[before] >> uint64(3)
    if first_of_sector:
        cuda.atomic.add(totals, 0, uint64(1))
    if low < high:
        exact = min(scheme.length[length, window], int64(32)) - int64(index.table_length)
        low, high = exact_tag_range(index, low, high, bases, exact)
        last = max(high - int64(1), low)
        cuda.atomic.add(totals, 1, uint64((last >> int64(2)) - (low >> int64(2)) + int64(1)))

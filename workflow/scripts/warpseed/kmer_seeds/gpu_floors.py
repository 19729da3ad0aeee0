"""The kernel that counts what a search must read; used by floors.py alone."""

from __future__ import annotations

from warpseed.compute.compiled import int64, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.fm_index.tagged import exact_tag_range
from warpseed.kmer_seeds.gpu_inexact import look_up_bucket
from warpseed.sequences.packed import oriented_word

__all__ = ["count_sectors"]


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

"""The kernels that count what a search must read; used by floors.py alone."""

from __future__ import annotations

from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.fm_index.tagged import exact_tag_range, oriented_string_of
from warpseed.kmer_seeds.gpu_look_ups import is_dropped, look_up_bucket, look_up_of
from warpseed.kmer_seeds.gpu_ways import bases_behind, is_whole, sure_bases, window_of

__all__ = ["count_hits_shown", "count_sectors"]

_MOST_SECTORS = 16
"""Of a bucket: where it has more, its rows need not be read one by one."""


@scalar
def _look_up_of(search, t):
    """Look-up t of a set of k-mers of one length: (its k-mer, its pattern, first row, row behind the last, LookUp)."""
    scheme = search.scheme
    length = int64(search.kmers.lengths[0])
    owner = oriented_string_of(search.tagged, t // scheme.look_ups[length])
    pattern = scheme.pattern_first[length, 0] + t % scheme.look_ups[length]
    query, strand = owner >> int64(1), owner & int64(1)
    look_up, bases = look_up_of(search, owner, pattern)
    low, high = look_up_bucket(search, query, strand, look_up.first_word, pattern)
    rows = exact_tag_range(search.tagged, low, high, bases, sure_bases(look_up.way), high)
    shown = exact_tag_range(search.tagged, low, high, bases, bases_behind(look_up.way), high)
    return query, pattern, rows, shown, look_up


@scalar
def _there(search, t):
    look_ups = search.scheme.look_ups[int64(search.kmers.lengths[0])]
    return t < int64(search.tagged.orientations) * look_ups * int64(search.kmers.lengths.shape[0])


@kernel
def count_hits_shown(search):
    """Count the hits of each k-mer that tags alone show, and that have no mismatch there: one look-up a thread."""
    t = int64(cuda.grid(1))
    if _there(search, t):
        query, _, _, shown, look_up = _look_up_of(search, t)
        if is_whole(look_up.way):
            cuda.atomic.add(search.lists.counts, query, uint64(shown[1] - shown[0]))


@kernel
def count_sectors(search, totals):
    """Sectors that the look-ups of a set must read: one look-up a thread, all k-mers of one length.

    ``totals[0]`` counts sectors of the table, once where look-ups share one; ``totals[1]`` those of tagged rows. Of a
    k-mer that `count_hits_shown` found to have too many hits no more than one of each is counted.
    """
    t = int64(cuda.grid(1))
    if not _there(search, t):
        return
    scheme = search.scheme
    query, pattern, rows, _, look_up = _look_up_of(search, t)
    first = pattern == scheme.pattern_first[int64(search.kmers.lengths[0]), window_of(look_up.way)]
    if is_dropped(search, query):
        if first and window_of(look_up.way) == int64(0) and look_up.owner & int64(1) == int64(0):
            cuda.atomic.add(totals, 0, uint64(1))
            cuda.atomic.add(totals, 1, uint64(1))
        return
    if first or scheme.patterns[pattern] >> uint64(3) != scheme.patterns[pattern - int64(1)] >> uint64(3):
        cuda.atomic.add(totals, 0, uint64(1))
    low, high = rows
    if low < high:
        sectors = ((high - int64(1)) >> int64(2)) - (low >> int64(2)) + int64(1)
        cuda.atomic.add(totals, 1, uint64(min(sectors, int64(_MOST_SECTORS))))

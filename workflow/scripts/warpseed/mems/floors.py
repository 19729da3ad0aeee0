"""How near the GPU kernels come to what the device can do: reads on the device, matches left there.

The floor is that of `warpseed.measure.floors`, of the sectors that must be read at least. For every seed of a read, in
each orientation, that is a sector of the table. Every match whose first seed this is holds the same bases from
there on. For these bases it is the sectors of the rows, of eight bytes each, of all places where they occur. For each
of these places it is a sector of the text, and for a match all sectors of the text that the match covers.

Matches may also be found by the longest one from every base on. Where they are, or where that takes fewer sectors, it
is a sector of the table for every base at which a match may begin. Where the string of the table that begins at this
base occurs, it is also a sector of the rows.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from warpseed.compute.bits import prefix_mask
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.ranges import run_ranges
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.buckets import narrow
from warpseed.fm_index.layout import SeedIndex
from warpseed.measure.floors import SECTOR, measure_kernels
from warpseed.mems.cpu import find_fast
from warpseed.mems.fast import How, how_for
from warpseed.mems.matches import MAXIMAL, Criteria
from warpseed.mems.reads import pack_long_reads
from warpseed.output.rows import Found
from warpseed.sequences.packed import Packed, all_known, oriented_marks, oriented_word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warpseed.sequences.queries import Queries

__all__ = ["least_sectors", "measure_limits"]

_BASES_A_SECTOR = 4 * SECTOR
_ROWS_A_SECTOR = SECTOR // 8


@scalar
def _bases_at(reads, query, strand, at, marks):
    """The 32 bases of a read in one orientation from `at` on, or their marks; zeros behind its end."""
    word, shift = at >> int64(5), uint64(int64(2) * (at & int64(31)))
    more = (word + int64(1)) << int64(5) < int64(reads.lengths[query])
    if marks:
        first = oriented_marks(reads, query, strand, word)
        second = oriented_marks(reads, query, strand, word + int64(1)) if more else uint64(0)
    else:
        first = oriented_word(reads, query, strand, word)
        second = oriented_word(reads, query, strand, word + int64(1)) if more else uint64(0)
    return first if shift == uint64(0) else (first << shift) | (second >> (uint64(64) - shift))


@scalar
def _rows_of(fast, table_length, word, bases):
    """How many rows begin with the first `bases` bases of a word, 32 at most."""
    seen = min(bases, table_length)
    entry = int64((word & prefix_mask(seen)) >> uint64(int64(64) - int64(2) * table_length))
    low, high = int64(fast.table[entry]), int64(fast.table[entry + (int64(1) << (int64(2) * (table_length - seen)))])
    if low < high:
        low, high = narrow(fast, low, high, word & prefix_mask(bases), bases)
    return high - low


@scalar
def _add_sectors(fast, table_length, reads, how, looked, first, last, sectors):
    """Add to int64[4], for the reads [first, last): seeds, sectors of the rows that begin with the first `looked` bases
    of one, 32 at most, these rows, and seeds that have some."""
    known = all_known(reads)
    held = int64(how.min_length) - int64(how.step) + int64(1)
    bases = min(held, int64(32))
    for read in range(first, last):
        query, length = int64(read), int64(reads.lengths[read])
        for s in range(how.strands):
            strand = int64(s)
            for seed in range(0, length - held + 1, how.step):
                at = int64(seed)
                if not known and _bases_at(reads, query, strand, at, True) & prefix_mask(bases) != uint64(0):
                    continue
                rows = _rows_of(fast, table_length, _bases_at(reads, query, strand, at, False), looked)
                sectors[0] += 1
                sectors[1] += (rows + int64(_ROWS_A_SECTOR) - int64(1)) // int64(_ROWS_A_SECTOR)
                sectors[2] += rows
                sectors[3] += rows > 0


def least_sectors(
    index: SeedIndex, reads: Packed, criteria: Criteria, found: Found, *, table_length: int, threads: int = 1
) -> dict[str, int]:
    """Sectors that a search which finds these matches must read at least, by array.

    Parameters
    ----------
    found : matches, packed as MATCH of `warpseed.mems.matches`
    table_length : bases of the strings in the device's table
    """
    how = how_for(criteria, table_length, index.rows)

    def counted(how: How, looked: int) -> list[int]:
        def add(first: int, last: int) -> np.ndarray:
            sectors = np.zeros(4, np.int64)
            _add_sectors(index.fast, index.table_length, reads, how, looked, first, last, sectors)
            return sectors

        counts: list[int] = sum(run_ranges(len(reads.lengths), threads, add), np.zeros(4, np.int64)).tolist()
        return counts

    if how.kind != MAXIMAL:
        bases, _, _, occurring = counted(how._replace(step=1), min(how.min_length, table_length))
        by_longest = {"table": bases, "rows": occurring, "text": 0}
        if how.longest:
            return by_longest
    table, rows, text, _ = counted(how, min(how.min_length - how.step + 1, 32))
    longer = int(((found.hits["span"] >> np.uint64(32)).astype(np.int64) // _BASES_A_SECTOR).sum())
    by_seeds = {"table": table, "rows": rows, "text": text + longer}
    if how.kind != MAXIMAL and sum(by_longest.values()) < sum(by_seeds.values()):
        return by_longest
    return by_seeds


def measure_limits(
    index: SeedIndex, reads: Queries, criteria: Criteria, repeats: int, fields: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Time a tier's kernels with reads on the device, beside the floor of the fast tier's.

    Parameters
    ----------
    fields : columns of every record; of its `tier` the kernels are timed, and `case` and `parameters` say what of

    Returns
    -------
    list of records, those of `warpseed.measure.floors.measure_kernels`
    """
    from warpseed.fm_index.device import tagged_on_device
    from warpseed.mems import gpu

    packed = pack_long_reads(reads)

    def sectors() -> dict[str, int]:
        threads, length = fields["threads"], tagged_on_device(index, Stopwatch()).table_length
        found = find_fast(index, packed, criteria, threads=threads)
        return least_sectors(index, packed, criteria, found, table_length=length, threads=threads)

    run_of = partial(gpu.device_run, index, packed, criteria, tier=fields["tier"])
    fields = {**fields, "queries": len(reads)}
    return measure_kernels(index, repeats, fields, run_of=run_of, sectors_of=sectors, unit="reads/s")

"""How near the GPU kernels come to what the device can do: reads on the device, matches left there.

The floor is that of `warpseed.measure.floors`. What must be read at least: of every seed of a read, in each
orientation, a sector of the table; where its bases occur, their rows of eight bytes, and at each of these places the
text, of a match all that it covers. Of a seed with more rows than `CROWDED`, which may be narrowed first, it is the
table alone.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from warpseed.compute.bits import prefix_mask
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.fm_index.layout import SeedIndex
from warpseed.measure.floors import SECTOR, measure_kernels
from warpseed.mems.cpu import find_fast
from warpseed.mems.fast import how_for
from warpseed.mems.matches import Criteria
from warpseed.mems.reads import pack_long_reads
from warpseed.output.rows import Found
from warpseed.sequences.packed import Packed, all_known, oriented_marks, oriented_word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warpseed.sequences.queries import Queries

__all__ = ["CROWDED", "least_sectors", "measure_limits"]

CROWDED = 64
"""Rows of a seed that are always looked at, at most."""
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
def _add_sectors(table, reads, how, sectors):
    """Add to int64[3] the seeds of all reads, the sectors of their rows, and the rows; not those of crowded ones."""
    bases, known = int64(how.seed_length), all_known(reads)
    more = int64(1) << (int64(2) * (int64(how.table_length) - bases))
    for read in range(reads.lengths.shape[0]):
        query, length = int64(read), int64(reads.lengths[read])
        for s in range(how.strands):
            strand = int64(s)
            for seed in range(0, length - bases + 1, how.step):
                at = int64(seed)
                if not known and _bases_at(reads, query, strand, at, True) & prefix_mask(bases) != uint64(0):
                    continue
                word = _bases_at(reads, query, strand, at, False) & prefix_mask(bases)
                entry = int64(word >> uint64(int64(64) - int64(2) * int64(how.table_length)))
                rows = int64(table[entry + more]) - int64(table[entry])
                sectors[0] += 1
                if rows <= int64(CROWDED):
                    sectors[1] += (rows + int64(_ROWS_A_SECTOR) - int64(1)) // int64(_ROWS_A_SECTOR)
                    sectors[2] += rows


def least_sectors(index: SeedIndex, reads: Packed, criteria: Criteria, found: Found) -> dict[str, int]:
    """Sectors that a search which finds these matches must read at least, by array.

    Parameters
    ----------
    found : matches, packed as MATCH of `warpseed.mems.matches`
    """
    sectors = np.zeros(3, np.int64)
    _add_sectors(index.fast.table, reads, how_for(criteria, index.table_length, index.rows), sectors)
    lengths = (found.hits["span"] >> np.uint64(32)).astype(np.int64)
    longer = int((lengths // _BASES_A_SECTOR).sum())
    return {"table": int(sectors[0]), "rows": int(sectors[1]), "text": int(sectors[2]) + longer}


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
    from warpseed.mems import gpu

    packed = pack_long_reads(reads)

    def sectors() -> dict[str, int]:
        found = find_fast(index, packed, criteria, threads=fields["threads"])
        return least_sectors(index, packed, criteria, found)

    run_of = partial(gpu.device_run, index, packed, criteria, tier=fields["tier"])
    fields = {**fields, "queries": len(reads)}
    return measure_kernels(index, repeats, fields, run_of=run_of, sectors_of=sectors, unit="reads/s")

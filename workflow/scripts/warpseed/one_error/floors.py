"""How near the GPU kernels come to what the device can do: reads on the device, placements left there.

The floor is that of `warpseed.measure.floors`. What must be read at least: of every read in each orientation the
table's sectors of its two halves, and behind them for each place where it lies a row of eight bytes, and the text that
it is compared with. Rows of one place may share a sector with others of the same read; the text begins anywhere.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from warpseed.fm_index.layout import SeedIndex
from warpseed.measure.floors import SECTOR, kernel_seconds, limit_rows, measure_kernels
from warpseed.measure.records import join_parameters, split_parameters
from warpseed.one_error.cpu import find_fast
from warpseed.one_error.reads import Criteria, pack_reads
from warpseed.output.rows import Found

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warpseed.sequences.queries import Queries

__all__ = ["least_sectors", "measure_limits", "time_blocks"]

_HALVES = 2
_BASES_A_SECTOR = 4 * SECTOR
_ROWS_A_SECTOR = SECTOR // 8
_SAME_PLACE = 2
"""Placements of a read whose starts are no further apart belong to one place: an edit moves a start by one."""


def least_sectors(found: Found, lengths: np.ndarray, criteria: Criteria) -> dict[str, int]:
    """Sectors that a search which finds these placements must read at least, by array.

    Parameters
    ----------
    found : placements, packed as `warpseed.one_error.reads.pack_placement` does
    lengths : uint32[n], bases of each read
    criteria : Criteria
    """
    query = np.repeat(np.arange(len(found.counts)), found.counts)
    oriented = 2 * query + ((found.hits >> np.uint64(31)) & np.uint64(1)).astype(np.int64)
    position = (found.hits >> np.uint64(32)).astype(np.int64)
    order = np.lexsort((position, oriented))
    oriented, position = oriented[order], position[order]
    near = (np.diff(oriented) == 0) & (np.diff(position) <= _SAME_PLACE)
    owner = oriented[np.concatenate([[True], ~near])] if len(oriented) else oriented
    rows = np.bincount(owner) if len(owner) else np.zeros(1, np.int64)
    text = -(-lengths.astype(np.int64)[owner // 2] // _BASES_A_SECTOR)
    return {
        "table": _HALVES * criteria.strands * len(lengths),
        "rows": int((-(-rows // _ROWS_A_SECTOR)).sum()),
        "text": int(text.sum()),
    }


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
    from warpseed.one_error import gpu

    packed = pack_reads(reads)

    def sectors() -> dict[str, int]:
        return least_sectors(find_fast(index, packed, criteria, threads=fields["threads"]), packed.lengths, criteria)

    run_of = partial(gpu.device_run, index, packed, criteria, tier=fields["tier"])
    fields = {**fields, "queries": len(reads)}
    return measure_kernels(index, repeats, fields, run_of=run_of, sectors_of=sectors, unit="reads/s")


def time_blocks(
    index: SeedIndex,
    reads: Queries,
    criteria: Criteria,
    repeats: int,
    fields: Mapping[str, Any],
    *,
    slots: int,
    sizes: Sequence[int],
) -> list[dict[str, Any]]:
    """Time the paper tier's kernel with reads on the device, in blocks of each of these sizes (Figure 7).

    Parameters
    ----------
    fields : columns of every record
    slots : results that a read has room for
    sizes : threads of a block

    Returns
    -------
    list of records with metric time and throughput (reads a second); instead of a digest the number of results
    """
    from warpseed.compute.gpu import on_device
    from warpseed.one_error import gpu

    packed = pack_reads(reads)
    rows: list[dict[str, Any]] = []
    with on_device(0):
        for threads in sizes:
            run = gpu.device_run(index, packed, criteria, tier="paper", slots=slots, block=threads)
            parameters = {"slots": slots, "block": threads, **split_parameters(fields["parameters"])}
            results = run()
            own = {"queries": len(reads), "results": results, "digest": f"count={results}"}
            own["parameters"] = join_parameters(parameters)
            rows += limit_rows(kernel_seconds(run, repeats), None, {**fields, **own}, unit="reads/s")
    return rows

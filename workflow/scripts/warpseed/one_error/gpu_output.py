"""Placements of reads as they go out of a device: from packed placements to rows, of which lines are made there."""

from __future__ import annotations

from warpseed.compute.compiled import int64
from warpseed.compute.gpu import cuda, kernel
from warpseed.one_error.output import expand
from warpseed.output.device_lines import ROWS_A_THREAD, row_query

__all__ = ["make_placement_rows"]


@kernel
def make_placement_rows(packed, hit_first, first, lengths, segments, rows):
    """Rows of packed placements from `first` on, ROWS_A_THREAD a thread: see LinesWanted."""
    begin = int64(cuda.grid(1)) * int64(ROWS_A_THREAD)
    if begin < int64(rows.shape[0]):
        hit = int64(first) + begin
        mine = rows[begin : min(begin + int64(ROWS_A_THREAD), int64(rows.shape[0]))]
        expand(packed, hit_first, row_query(hit_first, hit), hit, lengths, segments, int64(0), mine)

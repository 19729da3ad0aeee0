"""Placements of reads as they go out of a device: from packed placements to rows, of which lines are made there."""

from __future__ import annotations

from warpseed.compute.gpu import kernel
from warpseed.one_error.output import expand
from warpseed.output.device_lines import row_maker

__all__ = ["make_placement_rows"]

_make_rows = row_maker(expand)


@kernel
def make_placement_rows(packed, hit_first, first, lengths, segments, rows):
    """Rows of packed placements from `first` on, some a thread: see `row_maker`."""
    _make_rows(packed, hit_first, first, lengths, segments, rows)

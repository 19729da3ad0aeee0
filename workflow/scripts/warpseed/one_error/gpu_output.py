"""Placements of reads as they go out of a device: from packed placements to rows, of which lines are made there, or to
columns."""

from __future__ import annotations

from typing import Any, NamedTuple

from warpseed.compute.compiled import inlined
from warpseed.compute.gpu import kernel
from warpseed.one_error.output import PLACEMENT_ROW, expand
from warpseed.output.device_columns import column_maker, put_hit
from warpseed.output.device_lines import row_maker

__all__ = ["PlacementColumns", "make_placement_columns", "make_placement_rows"]


class PlacementColumns(NamedTuple):
    """The columns of PLACEMENT_ROW, an entry a placement, on the device."""

    query: Any
    contig: Any
    start: Any
    end: Any
    strand: Any
    distance: Any
    kind: Any
    offset: Any
    base: Any


@inlined
def _put_placement(columns, i, row):
    put_hit(columns, i, row)
    columns.kind[i] = row.kind
    columns.offset[i] = row.offset
    columns.base[i] = row.base


_make_rows = row_maker(expand)
_make_columns = column_maker(expand, PLACEMENT_ROW, _put_placement)


@kernel
def make_placement_rows(packed, hit_first, first, lengths, segments, rows):
    """Rows of packed placements from `first` on, some a thread: see `row_maker`."""
    _make_rows(packed, hit_first, first, lengths, segments, rows)


@kernel
def make_placement_columns(packed, hit_first, first_query, lengths, segments, columns):
    """Columns of packed placements, one a thread: see `column_maker`."""
    _make_columns(packed, hit_first, first_query, lengths, segments, columns)

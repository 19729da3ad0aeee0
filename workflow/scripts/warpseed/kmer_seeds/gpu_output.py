"""Hits of k-mers as they go out of a device: from packed hits to rows, of which lines are made there, or to columns."""

from __future__ import annotations

from warpseed.compute.gpu import kernel
from warpseed.kmer_seeds.output import expand
from warpseed.output.device_columns import column_maker, put_hit
from warpseed.output.device_lines import row_maker
from warpseed.output.rows import HIT_ROW

__all__ = ["make_hit_columns", "make_hit_rows"]

_make_rows = row_maker(expand)
_make_columns = column_maker(expand, HIT_ROW, put_hit)


@kernel
def make_hit_rows(packed, hit_first, first, lengths, segments, rows):
    """Rows of packed hits from `first` on, some a thread: see `row_maker`."""
    _make_rows(packed, hit_first, first, lengths, segments, rows)


@kernel
def make_hit_columns(packed, hit_first, first_query, lengths, segments, columns):
    """Columns of packed hits, one a thread: see `column_maker`."""
    _make_columns(packed, hit_first, first_query, lengths, segments, columns)

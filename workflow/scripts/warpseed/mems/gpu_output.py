"""Matches of long reads as they go out of a device that keeps them: from packed matches to columns."""

from __future__ import annotations

from typing import Any, NamedTuple

from warpseed.compute.compiled import inlined
from warpseed.compute.gpu import kernel
from warpseed.mems.output import MATCH_ROW, expand
from warpseed.output.device_columns import column_maker, put_hit

__all__ = ["MatchColumns", "make_match_columns"]


class MatchColumns(NamedTuple):
    """The columns of MATCH_ROW, an entry a match, on the device."""

    query: Any
    contig: Any
    start: Any
    end: Any
    strand: Any
    distance: Any
    read_start: Any
    read_end: Any
    length: Any
    read_length: Any
    contig_length: Any
    occurrences: Any


@inlined
def _put_match(columns, i, row):
    put_hit(columns, i, row)
    columns.read_start[i] = row.read_start
    columns.read_end[i] = row.read_end
    columns.length[i] = row.length
    columns.read_length[i] = row.read_length
    columns.occurrences[i] = row.occurrences


_make_columns = column_maker(expand, MATCH_ROW, _put_match)


@kernel
def make_match_columns(packed, hit_first, first_query, lengths, segments, columns):
    """Columns of packed matches, one a thread, without the lengths of their contigs: see `column_maker`."""
    _make_columns(packed, hit_first, first_query, lengths, segments, columns)

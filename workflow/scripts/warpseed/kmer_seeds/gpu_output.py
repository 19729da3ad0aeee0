"""Hits of k-mers as they go out of a device: from packed hits to rows, of which lines are made there."""

from __future__ import annotations

from warpseed.compute.gpu import kernel
from warpseed.kmer_seeds.output import expand
from warpseed.output.device_lines import row_maker

__all__ = ["make_hit_rows"]

_make_rows = row_maker(expand)


@kernel
def make_hit_rows(packed, hit_first, first, lengths, segments, rows):
    """Rows of packed hits from `first` on, some a thread: see `row_maker`."""
    _make_rows(packed, hit_first, first, lengths, segments, rows)

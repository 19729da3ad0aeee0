"""One digest for a set of hits, so that tiers, devices and other tools can be held to each other."""

from __future__ import annotations

import hashlib

import numpy as np

__all__ = ["ROW_DTYPE", "digest_rows"]

ROW_DTYPE = np.dtype(
    [("query", "<i8"), ("contig", "<i4"), ("start", "<i8"), ("end", "<i8"), ("strand", "i1"), ("distance", "i1")]
)
"""A hit: query and contig by number, 0-based half-open coordinates, strand 0 for '+' and 1 for '-', distance."""


def digest_rows(rows: np.ndarray) -> str:
    """SHA-256, in hex, of hits in output order (query, contig, start, strand, end): ROW_DTYPE[h], packed."""
    return hashlib.sha256(np.ascontiguousarray(rows, ROW_DTYPE).view(np.uint8).data).hexdigest()

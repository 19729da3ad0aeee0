"""Exact matches that tools print, as rows: pieces of a read and of a contig that are alike, or reverse complements."""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np

from warpseed.errors import PeerError
from warpseed.output.rows import order_rows

__all__ = ["PEER_MATCH", "match_rows"]

PEER_MATCH = np.dtype(
    [("query", "<i8"), ("contig", "<i4"), ("start", "<i8"), ("end", "<i8"), ("strand", "i1"), ("read_start", "<i8")]
)
"""A match: the contig's bases [start, end) are those of the read from `read_start` on, on strand 1 their reverse
complement; 0-based, the read as it is written."""


def match_rows(path: str | os.PathLike[str], matches: Iterable[tuple[int, ...]], queries: int, tool: str) -> np.ndarray:
    """Matches as they are read from a file as PEER_MATCH, ordered by all its fields.

    Parameters
    ----------
    matches
        The fields of each, worked out while the file is read.
    queries
        How many reads there are, named by number.
    tool
        Who wrote the file, for the error.

    Raises
    ------
    PeerError
        If reading raises what a file of another kind would lead to, or a read is not known.
    """
    try:
        rows = np.fromiter(matches, PEER_MATCH)
        if len(rows) and not (rows["query"].min() >= 0 and rows["query"].max() < queries):
            raise ValueError(f"reads {rows['query'].min()} to {rows['query'].max()}")
    except (ValueError, KeyError, IndexError) as error:
        raise PeerError(
            f"{path} is not what {tool} prints for reads named 0 to {queries - 1} on this reference ({error!r}); run "
            f"{tool} again on the same reads and reference"
        ) from error
    return order_rows(rows, PEER_MATCH.names or ())

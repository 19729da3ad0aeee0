"""Rows of results: their types, their order and their digest, and what a search of queries hands back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.ranges import on_threads

__all__ = ["HIT_ORDER", "HIT_ROW", "Found", "Result", "digest_rows", "join_found", "joined_parts", "order_rows"]

HIT_ROW = np.dtype(
    [("query", "<i8"), ("contig", "<i4"), ("start", "<i8"), ("end", "<i8"), ("strand", "i1"), ("distance", "i1")]
)
"""A hit: query and contig by number, 0-based half-open coordinates, strand 0 for '+' and 1 for '-', distance."""

HIT_ORDER = ("query", "contig", "start", "strand", "end")
"""The fields by which hits are ordered wherever they go out."""

_PIECE = 1 << 23
"""Bytes that a thread copies at a time."""


class Found(NamedTuple):
    """Results of a set of queries, query by query."""

    hits: np.ndarray
    """[h], in output order within a query, packed as their system does; empty where only counts were asked for"""
    counts: np.ndarray
    """int64[n], hits of each query, 0 for one that was dropped"""
    dropped_queries: int
    dropped_hits: int
    """theirs; at least so many where a search stops at the first too many"""


class Result(NamedTuple):
    """What a device found of consecutive queries."""

    found: Found
    continues: bool
    """whether the next result has more hits of the last query"""
    text: memoryview | None = None
    """the lines of the hits, where it made them"""


def joined_parts(parts: Sequence[np.ndarray], dtype: Any, threads: int = 1) -> np.ndarray:
    """Arrays of one type one behind the other; an empty one where there are none. (NumPy copies rows of several fields
    field by field, several times slower than their bytes.)"""
    joined = np.empty(sum(map(len, parts)), dtype)
    target, first = joined.view(np.uint8), 0
    pieces: list[tuple[np.ndarray, np.ndarray]] = []
    for part in parts:
        source = part.view(np.uint8)
        for begin in range(0, len(source), _PIECE):
            piece = source[begin : begin + _PIECE]
            pieces.append((target[first + begin : first + begin + len(piece)], piece))
        first += len(source)
    workers = max(1, min(threads, joined.nbytes // _PIECE))

    def copy(worker: int) -> None:
        for into, piece in pieces[worker::workers]:
            into[...] = piece

    on_threads(workers, copy, workers)
    return joined


def join_found(parts: Sequence[Found], threads: int = 1) -> Found:
    """The results of consecutive sets of queries as those of one set; no parts give those of no queries."""
    if len(parts) == 1:
        return parts[0]
    return Found(
        joined_parts([part.hits for part in parts], parts[0].hits.dtype if parts else np.uint64, threads),
        joined_parts([part.counts for part in parts], np.int64, threads),
        sum(part.dropped_queries for part in parts),
        sum(part.dropped_hits for part in parts),
    )


def order_rows(rows: np.ndarray, by: Sequence[str] = HIT_ORDER) -> np.ndarray:
    """Rows of any structured type, ordered by some of their fields, the first of them first; equal ones stay in place.

    Parameters
    ----------
    rows : structured[h]
    by : names of fields

    Returns
    -------
    structured[h], a copy
    """
    return rows[np.lexsort([rows[name] for name in reversed(by)])]


def digest_rows(rows: np.ndarray) -> str:
    """SHA-256, in hex, of rows of any structured type in the order they have.

    The bytes that count are those of the fields in their order, little-endian, nothing between them: neither padding
    nor the byte order of a machine changes a digest.
    """
    packed = np.dtype([(name, rows.dtype[name].newbyteorder("<")) for name in rows.dtype.names or ()])
    return hashlib.sha256(np.ascontiguousarray(rows, packed).view(np.uint8).data).hexdigest()

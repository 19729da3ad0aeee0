"""Queries named by number: what any tool prints back then says which query a hit is of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from warpseed.sequences.queries import Queries, write_fasta, write_fastq

__all__ = ["number_queries", "write_numbered"]


def number_queries(queries: Queries) -> Queries:
    """The same queries, named 0, 1, 2, …"""
    names = np.arange(len(queries)).astype("S")
    width = names.dtype.itemsize
    letters = names.view(np.uint8).reshape(len(queries), width)
    used = letters != 0
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(used.sum(axis=1), dtype=np.int64)])
    return replace(queries, name_bytes=letters[used], name_offsets=offsets)


def write_numbered(queries: Queries, folder: Path) -> str:
    """Write queries that are named so as FASTQ, or without qualities as FASTA; the path."""
    path = folder / ("queries.fa" if queries.qualities is None else "queries.fq")
    (write_fasta if queries.qualities is None else write_fastq)(queries, path)
    return str(path)

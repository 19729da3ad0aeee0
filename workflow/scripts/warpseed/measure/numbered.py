"""Queries named by number: what any tool prints back then says which query a hit is of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from warpseed.sequences.names import Names
from warpseed.sequences.queries import Queries, write_fasta, write_fastq

__all__ = ["number_queries", "write_numbered"]


def number_queries(queries: Queries) -> Queries:
    """The same queries, named 0, 1, 2, …"""
    text, offsets = Names.numbered(b"", len(queries))
    return replace(queries, name_bytes=text, name_offsets=offsets)


def write_numbered(queries: Queries, folder: Path) -> str:
    """Write queries that are named so as FASTQ, or without qualities as FASTA; the path."""
    path = folder / ("queries.fa" if queries.qualities is None else "queries.fq")
    (write_fasta if queries.qualities is None else write_fastq)(queries, path)
    return str(path)

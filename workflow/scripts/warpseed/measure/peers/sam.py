"""Alignments in SAM as our rows: of each record its own, and those that an XA tag lists beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

import numpy as np

from warpseed.errors import PeerError
from warpseed.output.rows import HIT_ROW, order_rows

__all__ = ["parse_sam"]

_UNMAPPED, _REVERSE = 4, 16
_ON_REFERENCE = re.compile(r"(\d+)[MDN=X]")


def _alignments(line: str) -> Iterator[tuple[str, int, int, str, str]]:
    """(contig, strand, 1-based start, CIGAR, edits) of each alignment of a record."""
    fields = line.rstrip("\n").split("\t")
    flag = int(fields[1])
    if flag & _UNMAPPED:
        return
    tags = {tag[:4]: tag[5:] for tag in fields[11:]}
    yield fields[2], int(flag & _REVERSE > 0), int(fields[3]), fields[5], tags["NM:i"]
    for other in filter(None, tags.get("XA:Z", "").split(";")):
        contig, place, cigar, edits = other.rsplit(",", 3)
        yield contig, "+-".index(place[0]), int(place[1:]), cigar, edits


def parse_sam(path: str | os.PathLike[str], contigs: Sequence[str], queries: int, tool: str) -> np.ndarray:
    """All alignments of a SAM file as our rows, in our output order, each once.

    Parameters
    ----------
    path
        SAM of reads named by number (`warpseed.measure.numbered.number_queries`).
    contigs
        Names of the contigs, in the order of the reference.
    queries
        How many reads there are.
    tool
        Who wrote it, for the error.

    Returns
    -------
    numpy.ndarray
        HIT_ROW; `start` and `end` are those of the bases that the CIGAR string aligns.

    Raises
    ------
    PeerError
        If a line is no record, or names a read or contig that is not known.
    """
    numbers = {name: number for number, name in enumerate(contigs)}
    rows = []
    try:
        with open(path, encoding="ascii") as handle:
            for line in handle:
                if line[0] == "@":
                    continue
                query = int(line.split("\t", 1)[0])
                if not 0 <= query < queries:
                    raise ValueError(f"read {query}")
                for contig, strand, start, cigar, edits in _alignments(line):
                    length = sum(map(int, _ON_REFERENCE.findall(cigar)))
                    rows.append((query, numbers[contig], start - 1, start - 1 + length, strand, int(edits)))
    except (ValueError, KeyError, IndexError) as error:
        raise PeerError(
            f"{path} is not what {tool} prints for reads named 0 to {queries - 1} on this reference ({error!r}); run "
            f"{tool} again on the same reads and reference"
        ) from error
    return np.unique(order_rows(np.array(rows, HIT_ROW)))

"""The hits of a set of k-mers as equal-length columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numba import int64, uint64

from warpseed.compute.compiled import scalar
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.text import segment_of
from warpseed.output.rows import HIT_ROW, digest_rows

if TYPE_CHECKING:
    import pandas as pd

    from warpseed.sequences.queries import Queries

__all__ = ["Hits"]


@scalar
def _expand(packed, counts, lengths, segments, first_query, rows):
    """Packed hits to rows: text positions become contig coordinates."""
    h = 0
    for query in range(counts.shape[0]):
        for _ in range(counts[query]):
            hit = packed[h]
            place = int64(hit >> uint64(3))
            segment = segment_of(segments, place)
            start = segments.contig_start[segment] + place - int64(segments.text_start[segment])
            row = rows[h]
            row.query = first_query + query
            row.contig = segments.contig[segment]
            row.start = start
            row.end = start + int64(lengths[query])
            row.strand = int64((hit >> uint64(2)) & uint64(1))
            row.distance = int64(hit & uint64(3))
            h += 1


def _all_names(queries: Queries) -> np.ndarray:
    """Names of all queries, object[n]: one decoding and one cut for all, as a name holds no white space."""
    ends = np.insert(queries.name_bytes, queries.name_offsets[1:-1], ord("\n"))
    names = ends.tobytes().decode("utf-8", "replace").split("\n")
    return np.array(names[: len(queries)], dtype=object)


@dataclass(frozen=True)
class Hits:
    """Hits of k-mers, sorted by query, contig, start, strand, end.

    Columns, each an array with one entry a hit: `query` int64 (number in the set), `contig` int32, `start` and
    `end` int64 (0-based, half-open, on the forward strand), `strand` int8 (0 is '+', 1 is '-'), `distance` int8
    (Hamming). They are worked out from the packed hits when first asked for.

    Attributes
    ----------
    packed : uint64[h], text position << 3 | strand << 2 | distance
    counts : int64[n], hits of each query; 0 for one dropped by max_hits
    dropped_queries, dropped_hits : int, what max_hits dropped
    """

    index: SeedIndex
    queries: Queries
    packed: np.ndarray
    counts: np.ndarray
    dropped_queries: int = 0
    dropped_hits: int = 0
    first_query: int = 0

    def __len__(self) -> int:
        return len(self.packed)

    @cached_property
    def _rows(self) -> np.ndarray:
        rows = np.empty(len(self.packed), HIT_ROW)
        lengths = np.diff(self.queries.offsets)
        _expand(self.packed, self.counts, lengths, self.index.fast.segments, self.first_query, rows)
        return rows

    def rows(self) -> np.ndarray:
        """The hits as HIT_ROW[h], in output order."""
        return self._rows

    query = property(lambda self: self._rows["query"])
    contig = property(lambda self: self._rows["contig"])
    start = property(lambda self: self._rows["start"])
    end = property(lambda self: self._rows["end"])
    strand = property(lambda self: self._rows["strand"])
    distance = property(lambda self: self._rows["distance"])

    def digest(self) -> str:
        """SHA-256 of the rows; equal for equal sets of hits."""
        return digest_rows(self._rows)

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame with query, contig, start, end, strand ('+', '-') and distance; names for numbers."""
        import pandas as pd

        rows = self._rows
        names = _all_names(self.queries)
        return pd.DataFrame(
            {
                "query": names[rows["query"] - self.first_query] if len(rows) else np.array([], dtype=object),
                "contig": np.array(self.index.names, dtype=object)[rows["contig"]],
                "start": rows["start"],
                "end": rows["end"],
                "strand": np.array(["+", "-"], dtype=object)[rows["strand"]],
                "distance": rows["distance"].astype(np.int64),
            }
        )

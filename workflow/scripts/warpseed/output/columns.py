"""Hits that a search left on a GPU: equal-length columns there, and what the host knows of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from warpseed.output.hits import Hits

if TYPE_CHECKING:
    from warpseed.sequences.names import Names

__all__ = ["DeviceColumns"]


@dataclass(frozen=True, eq=False, repr=False)
class DeviceColumns:
    """Hits of queries on a GPU, in the order of `warpseed.output.hits.Hits`: by query, contig, start, strand, end.

    Columns are CuPy arrays with one entry a hit, contiguous, on the GPU that searched: `query` int64, `contig` int32,
    `start` and `end` int64, `strand` and `distance` int8, which mean what those of Hits do. A search whose hits say
    more has more of them in `columns`. As any CuPy array they have ``__dlpack__`` and ``__cuda_array_interface__``, by
    which other libraries take them without a copy. They are the caller's, and may be written.

    Attributes
    ----------
    columns : dict of name to CuPy array[h], in the order of the fields of `dtype`
    counts : CuPy int64[n], hits of each query; 0 for one that was dropped
    names_of : function that gives the queries' Names
    contig_names : tuple of str
    contig_lengths : int64[c], NumPy
    dropped_queries, dropped_hits : int, what max_hits dropped; of k-mers at least so many hits
    dtype : type of the rows that the host has of such hits, such as HIT_ROW
    """

    columns: dict[str, Any]
    counts: Any
    names_of: Callable[[], Names]
    contig_names: tuple[str, ...]
    contig_lengths: np.ndarray
    dropped_queries: int
    dropped_hits: int
    dtype: np.dtype

    query = property(lambda self: self.columns["query"])
    contig = property(lambda self: self.columns["contig"])
    start = property(lambda self: self.columns["start"])
    end = property(lambda self: self.columns["end"])
    strand = property(lambda self: self.columns["strand"])
    distance = property(lambda self: self.columns["distance"])

    def __len__(self) -> int:
        return len(self.query)

    def __repr__(self) -> str:
        return f"<{len(self)} hits of {len(self.counts)} queries, on a GPU>"

    def to_host(self) -> Hits:
        """The same hits on the host, equal to what the search gives without on_device."""
        rows = np.empty(len(self), self.dtype)
        for name, column in self.columns.items():
            rows[name] = column.get()
        names = (self.names_of(), self.contig_names, self.contig_lengths)
        dropped = (self.dropped_queries, self.dropped_hits)
        return Hits(lambda first, last: rows[first:last], self.counts.get(), *names, *dropped, dtype=self.dtype)

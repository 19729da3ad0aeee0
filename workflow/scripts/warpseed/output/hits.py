"""Hits of queries on a reference as equal-length columns, whatever system found them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from warpseed.compute.ranges import borders_of
from warpseed.output.lines import Formatter, Letter, Line, Name, Number, format_rows, tab_separated
from warpseed.output.rows import HIT_ROW, digest_rows
from warpseed.sequences.names import Names

if TYPE_CHECKING:
    import pandas as pd

    from warpseed.fm_index.layout import SeedIndex
    from warpseed.output.rows import Found
    from warpseed.sequences.queries import Queries

__all__ = ["BED", "Hits", "PackedRows"]

BED = tab_separated(
    Name("contig", "contig"), Number("start"), Number("end"), Name("query", "query"), Number("distance"),
    Letter("strand", b"+-"),
)  # fmt: skip
"""The line of a hit that every system has."""


@lru_cache(maxsize=2)
def _names_of(names: tuple[str, ...], padded: bool) -> Names:
    """The names of contigs, with spaces behind them where they are padded to one length. Every batch of a search has
    the same ones, which may be a million."""
    if not padded:
        return Names.of(names)
    encoded = [name.encode() or b"." for name in names]
    longest = max(map(len, encoded), default=0)
    return Names.of([name.ljust(longest) for name in encoded])


def _part_of(rows: np.ndarray, first: int, last: int) -> np.ndarray:
    return rows[first:last]


@dataclass(frozen=True, eq=False, repr=False)
class Hits:
    """Hits of queries, sorted by query, contig, start, strand, end.

    Columns, each an array with one entry a hit: `query` int64 (number in the set), `contig` int32, `start` and
    `end` int64 (0-based, half-open, on the forward strand), `strand` int8 (0 is '+', 1 is '-'), `distance` int8.
    They are worked out when first asked for.

    Two are equal when their rows, names and what was dropped are. A pickled one holds its rows and names, and
    nothing of the index that it came from.

    Attributes
    ----------
    rows_of : function of (first, last) that gives these hits as `dtype`
    counts : int64[n], hits of each query; 0 for one that was dropped
    query_names : Names, of the n queries
    contig_names : tuple of str
    contig_lengths : int64[c]
    dropped_queries, dropped_hits : int, what max_hits dropped; of k-mers at least so many hits
    first_query : int, number of the first query
    dtype : type of the rows: HIT_ROW, or one that has its fields query, contig and strand too
    continues : bool, whether the last query has more hits, which come with the next hits
    queries : Queries, the queries themselves, or None where they were not kept
    """

    rows_of: Callable[[int, int], np.ndarray]
    counts: np.ndarray
    query_names: Names
    contig_names: tuple[str, ...]
    contig_lengths: np.ndarray
    dropped_queries: int = 0
    dropped_hits: int = 0
    first_query: int = 0
    dtype: np.dtype = HIT_ROW
    continues: bool = False
    queries: Queries | None = None

    @cached_property
    def _count(self) -> int:
        return int(self.counts.sum())

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<{len(self)} hits of {len(self.counts)} queries>"

    @cached_property
    def _rows(self) -> np.ndarray:
        return self.rows_of(0, len(self))

    def rows(self) -> np.ndarray:
        """The hits as `dtype`[h], in output order."""
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

    def _columns(self) -> tuple[np.ndarray, ...]:
        """What two equal Hits have in common, beside the rows and the numbers."""
        return self.counts, *self.query_names, self.contig_lengths

    def _numbers(self) -> tuple[Any, ...]:
        return self.contig_names, self.dropped_queries, self.dropped_hits, self.first_query, self.dtype, self.continues

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hits):
            return NotImplemented
        pairs = zip(self._columns(), other._columns(), strict=True)
        return (
            self._numbers() == other._numbers()
            and all(np.array_equal(mine, theirs) for mine, theirs in pairs)
            and np.array_equal(self._rows, other._rows)
        )

    def __hash__(self) -> int:
        return hash(self.digest())

    def __reduce__(self) -> tuple[Any, ...]:
        names = (self.query_names, self.contig_names, self.contig_lengths)
        return Hits, (partial(_part_of, self._rows), self.counts, *names, *self._numbers()[1:], self.queries)

    def formatter(self, line: Line) -> Formatter:
        """What makes lines of these hits."""
        padded = any(isinstance(part, Name) and part.padded for part in line)
        tables = {"query": self.query_names, "contig": _names_of(self.contig_names, padded)}
        return Formatter(line, self.dtype, tables, self.first_query)

    def lines(self, line: Line, threads: int = 1) -> Iterator[memoryview]:
        """The hits as lines of text, some thousand at a time, in order."""
        # Rows that are not there yet are made piece by piece, on the threads, and not kept.
        rows_of = partial(_part_of, self._rows) if "_rows" in self.__dict__ else self.rows_of
        return format_rows(self.formatter(line), len(self), rows_of, threads)

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame, a column a field: names for numbers of queries and contigs, '+' and '-' for strands."""
        import pandas as pd

        columns: dict[str, Any] = {name: self._rows[name].astype(np.int64) for name in self.dtype.names or ()}
        for name, labels in (
            ("query", self.query_names.decoded()),
            ("contig", np.array(self.contig_names, dtype=object)),
            ("strand", np.array(["+", "-"], dtype=object)),
        ):
            # (No hits, perhaps no names: an empty column of objects.)
            columns[name] = labels[columns[name] - (self.first_query if name == "query" else 0)]
        return pd.DataFrame(columns)


class PackedRows:
    """The rows of packed hits, made when they are asked for; called from several threads.

    Of the index it keeps what rows are made of, and of the queries their names and lengths, or all of them.

    Parameters
    ----------
    expand : compiled function of (packed, hit_first, query, first, lengths, segments, first_query, rows): fills in
        `rows` for the packed hits from `first` on, which is one of query `query`; `hit_first` is int64[n + 1], where
        the hits of each query begin, `lengths` int64[n], their bases
    index : SeedIndex that was searched
    queries : Queries, the n queries
    found : Found, their hits, packed
    first_query : int, number of the first query in the whole set
    row_type : type of the rows
    keep_queries : bool, whether the queries are kept
    """

    def __init__(
        self,
        expand: Callable[..., None],
        index: SeedIndex,
        queries: Queries,
        found: Found,
        first_query: int = 0,
        row_type: np.dtype = HIT_ROW,
        keep_queries: bool = False,
    ) -> None:
        self.found = found
        self.queries = queries if keep_queries else None
        self._expand = expand
        self._expanded = (queries.lengths, index.segments, first_query)
        self._row_type = row_type
        self._query_names = queries.names
        self._contigs = (tuple(index.names), np.asarray(index.lengths, np.int64))

    def __call__(self, first: int, last: int) -> np.ndarray:
        rows = np.empty(last - first, self._row_type)
        self._expand(self.found.hits, self.hit_first, self.query_of(first), first, *self._expanded, rows)
        return rows

    def query_of(self, hit: int) -> int:
        """The query that a hit is of, from 0."""
        return int(np.searchsorted(self.hit_first, hit, side="right")) - 1

    @cached_property
    def hit_first(self) -> np.ndarray:
        """int64[n + 1], where the hits of each query begin."""
        return borders_of(self.found.counts)

    def hits(self, continues: bool) -> Hits:
        """The same as Hits; `continues` says that more hits of the last query come."""
        dropped, first_query = (self.found.dropped_queries, self.found.dropped_hits), self._expanded[2]
        names = (self._query_names, *self._contigs)
        return Hits(self, self.found.counts, *names, *dropped, first_query, self._row_type, continues, self.queries)

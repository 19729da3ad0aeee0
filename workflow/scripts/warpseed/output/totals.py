"""What results add up to: queries found once, often, not at all, dropped."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Protocol

import numpy as np

from warpseed.output.hits import Hits
from warpseed.output.opening import open_output

__all__ = ["Numbered", "Totals", "write_summary"]


@dataclass
class Totals:
    """What batches of hits add up to while they pass; a query counts when all its hits have passed."""

    queries: int = 0
    found: int = 0
    """queries with a hit"""
    unique: int = 0
    """queries with one hit"""
    multiple: int = 0
    """queries with several"""
    not_found: int = 0
    """queries without a hit, of which none were dropped"""
    dropped_queries: int = 0
    """queries with more hits than max_hits"""
    hits: int = 0
    dropped_hits: int = 0
    """their hits, or at least so many"""
    _begun: int = field(default=0, repr=False)
    """hits of the last query, where more of them come"""

    def add(self, hits: Hits) -> None:
        """Count the hits that come next."""
        counts = hits.counts
        if self._begun:
            counts = counts.copy()
            counts[0] += self._begun
        self._begun = 0
        if hits.continues:
            self._begun = int(counts[-1])
            counts = counts[:-1]
        unique = int(np.count_nonzero(counts == 1))
        found = int(np.count_nonzero(counts))
        self.queries += len(counts)
        self.found += found
        self.unique += unique
        self.multiple += found - unique
        self.not_found += len(counts) - found - hits.dropped_queries
        self.dropped_queries += hits.dropped_queries
        self.hits += len(hits)
        self.dropped_hits += hits.dropped_hits

    def numbers(self) -> dict[str, int]:
        """Every number under its name."""
        return {name: number for name, number in asdict(self).items() if not name.startswith("_")}

    @classmethod
    def sum(cls, parts: Iterable[Totals]) -> Totals:
        """What parts of a set of queries add up to."""
        total = cls()
        for part in parts:
            for name, number in part.numbers().items():
                setattr(total, name, getattr(total, name) + number)
        return total


class Numbered(Protocol):
    """What something adds up to."""

    def numbers(self) -> dict[str, int]:
        """Every number under its name."""


def write_summary(path: str | os.PathLike[str], totals: Numbered, labels: Mapping[str, str] | None = None) -> None:
    """Write totals as a table of one row, tab-separated, under a header.

    Parameters
    ----------
    labels : columns that go before the numbers, such as the name of a sample

    Raises
    ------
    InputError : the file cannot be written
    """
    columns = {**(labels or {}), **totals.numbers()}
    with open_output(path) as handle:
        handle.write("".join("\t".join(map(str, line)) + "\n" for line in (columns, columns.values())).encode())

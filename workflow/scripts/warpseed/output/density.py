"""Where along the reference hits begin: how many in each bin, counted while sorted lines pass."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from warpseed.compute.ranges import borders_of
from warpseed.output.opening import open_output
from warpseed.output.sorting import SortedLines, contig_places

__all__ = ["BINS", "Counts", "Density"]

BINS = 500
"""Bins along a whole reference, about: every contig has bins of its own."""


class Counts(NamedTuple):
    """How many of some lines begin in some bins."""

    bins: slice
    plus: np.ndarray
    """int64[b], lines of the forward strand"""
    minus: np.ndarray
    """int64[b], lines of the reverse strand"""


class Density:
    """Counts of both strands in bins of one length, which begin anew with every contig.

    Parameters
    ----------
    names : names of the contigs
    lengths : int64[c], their bases
    bins : along all contigs, about

    Attributes
    ----------
    contig : int64[n], the contig of each bin
    start, end : int64[n], its coordinates, 0-based and half-open; the last bin of a contig ends with it
    plus, minus : int64[n], hits of each strand that begin in it
    """

    def __init__(self, names: Sequence[str], lengths: np.ndarray, bins: int = BINS) -> None:
        lengths = np.asarray(lengths, np.int64)
        width = max(1, -(-int(lengths.sum()) // bins))
        counts = -(-lengths // width)
        self._names = names
        self.contig = np.repeat(np.arange(len(lengths)), counts)
        self.start = (np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)) * width
        self.end = np.minimum(self.start + width, lengths[self.contig])
        self._places = contig_places(lengths)[self.contig] + self.start.astype(np.uint64)
        self.plus, self.minus = np.zeros((2, len(self.start)), np.int64)

    def counted(self, part: SortedLines) -> Counts:
        """What there is to add of some lines, at least one, which are sorted; from any thread."""
        first, last = np.searchsorted(self._places, part.place[[0, -1]], "right")
        bins = slice(int(first) - 1, int(last))
        edges = np.append(np.searchsorted(part.place, self._places[bins]), len(part))
        before = borders_of(part.shape & np.uint64(1))
        minus = np.diff(before[edges])
        return Counts(bins, np.diff(edges) - minus, minus)

    def add(self, counts: Counts) -> None:
        """Add what was counted of some lines."""
        self.plus[counts.bins] += counts.plus
        self.minus[counts.bins] += counts.minus

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a table, tab-separated: contig, start, end, plus, minus.

        Raises
        ------
        InputError : the file cannot be written
        """
        columns = (self.start, self.end, self.plus, self.minus)
        rows = zip(
            (self._names[i] for i in self.contig.tolist()), *(column.tolist() for column in columns), strict=True
        )
        with open_output(path) as handle:
            for row in [("contig", "start", "end", "plus", "minus"), *rows]:
                handle.write(("\t".join(map(str, row)) + "\n").encode("utf-8", "surrogateescape"))

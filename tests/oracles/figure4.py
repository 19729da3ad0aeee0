"""Figure 4 of paper 000, readable: DIFFS from the forward BWT, then depth first over the reverse BWT.

The twin of the paper tier, with a switch that breaks the DIFFS rule in the one way that looks harmless.
The figure leaves one thing unsaid: the first base to be tried at a node is the query's own; only then may the
node be popped as soon as one base exceeds the limit. The threshold on hits is left out here.
"""

from __future__ import annotations

from collections.abc import Sequence

from oracles.kmers import Hit, reverse_complement
from oracles.suffix_array import NaiveIndex, joined, reversed_text, segments_of

__all__ = ["Figure4", "lower_bounds"]


def lower_bounds(bwt: NaiveIndex, query: str, *, assign_after_increment: bool = False) -> list[int]:
    """DIFFS: DIFFS[i] mismatches at least are needed in query[i+1..].

    Parameters
    ----------
    bwt
        Index of the forward text.
    query
        Over ACGT and N; N occurs nowhere.
    assign_after_increment
        The mutation: DIFFS[i] then bounds query[i..], and the search counts base i twice.
    """
    everything = (0, len(bwt.text) - 1)
    diffs, interval = 0, everything
    bounds = [0] * len(query)
    for i in range(len(query) - 1, -1, -1):
        first, last = bwt.step(query[i], interval) if query[i] in "ACGT" else (1, 0)
        if not assign_after_increment:
            bounds[i] = diffs
        interval = (first, last)
        if first > last:
            interval = everything
            diffs += 1
        if assign_after_increment:
            bounds[i] = diffs
    return bounds


class Figure4:
    """Both BWTs of some contigs, and the search of Figure 4 over them.

    Attributes
    ----------
    bwt, rbwt
        Naive indexes of the text and of the text read backwards.
    visited
        Nodes whose interval was computed, over all searches so far.
    """

    def __init__(self, contigs: Sequence[str]) -> None:
        self.segments = segments_of(contigs)
        text = joined([bases for _, _, bases in self.segments])
        self.bwt = NaiveIndex.of(text)
        self.rbwt = NaiveIndex.of(reversed_text(text))
        self.visited = 0
        # Text position -> (contig, position in the contig).
        self.place = {}
        first = 0
        for contig, start, bases in self.segments:
            self.place |= {first + i: (contig, start + i) for i in range(len(bases))}
            first += len(bases) + 1

    def search_strand(
        self, query: str, max_mismatches: int, *, mutated: bool = False, bounded: bool = True
    ) -> list[tuple[int, int]]:
        """(text position, distance) of every hit of `query` as given; `bounded=False` leaves DIFFS out."""
        bounds = [0] * len(query)
        if bounded:
            bounds = lower_bounds(self.bwt, query, assign_after_increment=mutated)
        choices = [base + "ACGT".replace(base, "") for base in query]
        choices = [letters.replace("N", "") for letters in choices]
        found = []
        # A node: its position in the query, the next letter to try, the mismatches and interval above it.
        stack = [[0, 0, 0, 0, len(self.rbwt.text) - 1]]
        while stack:
            i, tried, mismatches, first, last = stack[-1]
            if tried == 4:
                stack.pop()
                continue
            base = choices[i][tried]
            stack[-1][1] += 1
            mismatches += base != query[i]
            if mismatches + bounds[i] > max_mismatches:
                stack.pop()
                continue
            first, last = self.rbwt.step(base, (first, last))
            self.visited += 1
            if first > last:
                continue
            if i + 1 < len(query):
                stack.append([i + 1, 0, mismatches, first, last])
                continue
            for row in range(first, last + 1):
                # The reversed text ends in $ too: text position p is reversed position n - 2 - p.
                start = len(self.rbwt.text) - 1 - self.rbwt.suffix_array[row] - len(query)
                found.append((start, mismatches))
        return found

    def find_kmers(
        self, queries: Sequence[str], max_mismatches: int, *, mutated: bool = False, bounded: bool = True
    ) -> list[Hit]:
        """All hits of all queries on both strands, in output order."""
        hits: list[Hit] = []
        for number, query in enumerate(queries):
            plain = reverse_complement(reverse_complement(query))
            for strand, spelled in enumerate((plain, reverse_complement(query))):
                found = self.search_strand(spelled, max_mismatches, mutated=mutated, bounded=bounded)
                for position, distance in found:
                    contig, start = self.place[position]
                    hits.append((number, contig, start, start + len(query), strand, distance))
        return sorted(hits, key=lambda hit: (hit[0], hit[1], hit[2], hit[4], hit[3]))

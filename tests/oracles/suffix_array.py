"""Suffix array, BWT, C, Occ and backward search by their definitions (papers 000 and 001).

A text here is a string over ``$ACGT`` in which every segment is followed by its ``$``, as in
``ACG$TTA$``. With one segment everything is what the papers print. With m separators the papers' "+ 1", which
stands for the one row of ``$``, becomes "+ m"; separators sort below A and are never matched. A suffix ends where its
segment does; what is equal then stands in the order of positions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["NaiveIndex", "joined", "reversed_text", "segments_of"]


def segments_of(contigs: Sequence[str]) -> list[tuple[int, int, str]]:
    """Runs of ACGT, as (contig, start in the contig, bases in upper case), in order."""
    return [
        (number, run.start(), run.group())
        for number, contig in enumerate(contigs)
        for run in re.finditer("[ACGT]+", contig.upper())
    ]


def joined(segments: Sequence[str]) -> str:
    """The text of these segments: each followed by ``$``."""
    return "".join(segment + "$" for segment in segments)


def reversed_text(text: str) -> str:
    """The text read backwards, with its last ``$`` at the end again (not the reverse complement)."""
    return text[-2::-1] + "$"


@dataclass(frozen=True)
class NaiveIndex:
    """The index of a text by sorting its suffixes.

    Attributes
    ----------
    text
        Segments, each followed by ``$``; n characters.
    suffix_array
        Start of the i-th smallest suffix, n entries (S in paper 001).
    bwt
        The character before each of these suffixes, cyclically (B in both papers).
    smaller
        C(x): how many bases of the text are smaller than x, separators not counted.
    separators
        How many ``$`` the text has.
    """

    text: str
    suffix_array: list[int]
    bwt: str
    smaller: dict[str, int]
    separators: int

    @classmethod
    def of(cls, text: str) -> NaiveIndex:
        """Sort the suffixes of `text`, which must end in ``$``."""
        assert text.endswith("$") and set(text) <= set("$ACGT"), text
        suffix_array = sorted(range(len(text)), key=lambda start: (text[start : text.index("$", start)], start))
        bwt = "".join(text[start - 1] for start in suffix_array)
        smaller = {x: sum(text.count(y) for y in "ACGT" if y < x) for x in "ACGT"}
        return cls(text, suffix_array, bwt, smaller, text.count("$"))

    def occ(self, base: str, row: int) -> int:
        """Occ(x, i), paper 001's O: how often `base` stands in B[0..row], row included; 0 for row -1."""
        return self.bwt[: row + 1].count(base)

    def step(self, base: str, interval: tuple[int, int]) -> tuple[int, int]:
        """One step of Equation 1: the interval of base + W from that of W, both ends included."""
        first, last = interval
        before = self.smaller[base] + self.separators
        return before + self.occ(base, first - 1), before + self.occ(base, last) - 1

    def backward_search(self, pattern: str) -> list[tuple[int, int]]:
        """The intervals after each base of `pattern`, from its last to its first, as Figure 3 shows them.

        Stops after the first empty interval (first > last).
        """
        interval = (0, len(self.text) - 1)
        intervals = []
        for base in reversed(pattern):
            interval = self.step(base, interval)
            intervals.append(interval)
            if interval[0] > interval[1]:
                break
        return intervals

    def last_to_first(self, row: int) -> int:
        """Equation 3: the row of the suffix that begins one character earlier; B[row] must be a base."""
        base = self.bwt[row]
        assert base != "$", "Equation 3 is undefined where the BWT has a separator"
        return self.smaller[base] + self.separators - 1 + self.occ(base, row)

    def locate(self, row: int, sampling: int) -> tuple[int, int]:
        """The pair (j, t) of Equation 2: after t steps row j is sampled, or its BWT character is ``$``.

        SA[row] = SA[j] + t.
        """
        steps = 0
        while row % sampling and self.bwt[row] != "$":
            row = self.last_to_first(row)
            steps += 1
        return row, steps

    def positions(self, pattern: str, sampling: int = 1) -> list[int]:
        """Where `pattern` begins in the text, ascending, by backward search and locating."""
        first, last = self.backward_search(pattern)[-1]
        pairs = [self.locate(row, sampling) for row in range(first, last + 1)]
        return sorted(self.suffix_array[row] + steps for row, steps in pairs)

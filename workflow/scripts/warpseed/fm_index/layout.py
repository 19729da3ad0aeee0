"""What an index is made of: NamedTuples of arrays that go whole into jitted functions and kernels.

Positions are in the *text*: every segment (a maximal run of ACGT in a contig) followed by one separator,
segment $ segment $ … segment $. A row is an index into the suffix array of the text; the separators sort below A.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

__all__ = ["HINT_SHIFT", "PAD_WORDS", "FastIndex", "PaperIndex", "SeedIndex", "Segments"]

HINT_SHIFT = 16
"""Text positions are looked up in blocks of 2**HINT_SHIFT before the segments of a block are searched."""

PAD_WORDS = 10
"""Zero words behind the packed text: a comparison of 255 bases may start at its last position."""


class Segments(NamedTuple):
    """Where the segments of the reference lie; the i-th entries describe segment i, in reference order."""

    text_start: np.ndarray
    """uint32[m + 1], text position of the first base; the last entry is the length of the text"""
    contig: np.ndarray
    """int32[m], number of the contig it belongs to"""
    contig_start: np.ndarray
    """int64[m], 0-based coordinate of its first base in the contig"""
    hint: np.ndarray
    """uint32[(n >> HINT_SHIFT) + 2], the segment that text position ``b << HINT_SHIFT`` lies in"""


class FastIndex(NamedTuple):
    """What the fast tier reads."""

    text: np.ndarray
    """uint64[n // 32 + PAD_WORDS], packed bases, separators stored as A"""
    suffix_array: np.ndarray
    """uint32[n], text position of every row"""
    table: np.ndarray
    """uint32[4**K + 1], rows [table[m], table[m + 1]) begin with the K bases m, where A stands for what lies behind
    the end of a segment"""
    segments: Segments


class PaperIndex(NamedTuple):
    """One BWT in the layout of paper 000, section III: ROcc and B, and the reduced suffix array RSA."""

    rocc: np.ndarray
    """uint32[4 * (n // q + 2)], entry 4·b + c counts base c in rows below b·q"""
    bwt: np.ndarray
    """uint64[…], 2 bits a row, separators stored as A, padded to a whole block"""
    separators: np.ndarray
    """uint32[n // q + 2], entry b counts the rows below b·q whose BWT character is a separator"""
    separator_row: np.ndarray
    """uint32[m], the rows whose BWT character is a separator, ascending"""
    separator_position: np.ndarray
    """uint32[m], the text position of these rows"""
    first_row: np.ndarray
    """uint32[5], C(c): rows that start with something smaller than base c; the last entry is n"""
    rsa: np.ndarray
    """uint32[ceil(n / p)], the suffix array at every p-th row"""
    q_shift: int
    """log2 of q, the distance between ROcc entries"""
    p_shift: int
    """log2 of p, the distance between RSA entries"""


@dataclass(frozen=True, eq=False)
class SeedIndex:
    """An index in memory or mapped from a folder.

    Attributes
    ----------
    names : tuple of str, contig names in reference order
    lengths : int64[c], their lengths in bases
    digest : str, SHA-256 of the reference file
    fast : FastIndex
    forward, reverse : PaperIndex, bwt and rbwt of paper 000
    seconds : dict, seconds of each build stage (empty where the index was opened)
    """

    names: tuple[str, ...]
    lengths: np.ndarray
    digest: str
    fast: FastIndex
    forward: PaperIndex
    reverse: PaperIndex
    seconds: dict[str, float]

    @property
    def rows(self) -> int:
        """Length of the text: bases and separators."""
        return int(self.fast.suffix_array.shape[0])

    @property
    def bases(self) -> int:
        """Bases that can be found: the text without its separators."""
        return self.rows - len(self.fast.segments.contig)

    @property
    def table_length(self) -> int:
        """K, the length of the strings in the lookup table."""
        return (int(self.fast.table.shape[0] - 1).bit_length() - 1) // 2

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by the name of their file."""
        named = {f"fast.{name}": getattr(self.fast, name) for name in ("text", "suffix_array", "table")}
        named |= {f"segments.{name}": array for name, array in self.fast.segments._asdict().items()}
        for direction in ("forward", "reverse"):
            parts = getattr(self, direction)._asdict()
            named |= {f"{direction}.{n}": a for n, a in parts.items() if isinstance(a, np.ndarray)}
        return named

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the index to a folder; see `warpseed.fm_index.store.save_index`."""
        from warpseed.fm_index.store import save_index

        save_index(self, folder)

    def report(self) -> list[dict[str, Any]]:
        """Size of each part, beside the paper's formula where there is one.

        Returns
        -------
        list of dict with part, bytes, bytes_per_base, formula_bytes (paper 000, section III.A and III.C; None
        where the paper has no such part). The formulas are 4·|G|·ceil(log2 |G|) / q + 2·|G| bits for a BWT and
        |G|·ceil(log2 |G|) / p bits for an RSA.
        """
        bases, bits = self.bases, max(self.bases - 1, 1).bit_length()
        parts: list[tuple[str, list[np.ndarray], float | None]] = [
            ("text (fast)", [self.fast.text], None),
            ("suffix array (fast)", [self.fast.suffix_array], None),
            (f"table of {self.table_length} bases (fast)", [self.fast.table], None),
            ("segments", list(self.fast.segments), None),
        ]
        for name, index in (("bwt", self.forward), ("rbwt", self.reverse)):
            bwt = [index.rocc, index.bwt, index.separators, index.separator_row, index.separator_position]
            parts.append((name, bwt, (4 * bases * bits / (1 << index.q_shift) + 2 * bases) / 8))
            parts.append((f"RSA of {name}", [index.rsa], bases * bits / (1 << index.p_shift) / 8))
        return [
            {
                "part": name,
                "bytes": (size := sum(array.nbytes for array in arrays)),
                "bytes_per_base": size / bases,
                "formula_bytes": formula,
            }
            for name, arrays, formula in parts
        ]

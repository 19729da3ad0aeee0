"""What an index is made of: NamedTuples of arrays that go whole into jitted functions and kernels.

Positions are in the *text*: every segment (a maximal run of ACGT in a contig) followed by one separator,
segment $ segment $ … segment $. A row is an index into the suffix array of the text; the separators sort below A.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from warpseed.errors import IndexFormatError

__all__ = [
    "HINT_SHIFT",
    "LIMITS",
    "NO_TAGS",
    "PAD_WORDS",
    "TAG_PADDING",
    "FastIndex",
    "PaperIndex",
    "Parameters",
    "SeedIndex",
    "Segments",
    "Tags",
    "inverse_of",
]

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


class Tags(NamedTuple):
    """Of each row four bases before and four behind those of the table (`tags.py`), a byte, the first base on top."""

    bases_before: np.ndarray
    """uint8[n + TAG_PADDING], those before the row's position"""
    bases_behind: np.ndarray
    """uint8[n + TAG_PADDING], those behind its first K"""


TAG_PADDING = 32
"""Zeros behind the tag of the last row: so many are compared at once."""
NO_TAGS = Tags(np.empty(0, np.uint8), np.empty(0, np.uint8))


class PaperIndex(NamedTuple):
    """One BWT in the layout of paper 000, section III: ROcc and B, and the reduced suffix array RSA."""

    rocc: np.ndarray
    """uint32[4 * (n // occ_interval + 2)], entry 4·b + c counts base c in the rows below b·occ_interval"""
    bwt: np.ndarray
    """uint64[…], 2 bits a row, separators stored as A, padded to a whole block"""
    separators: np.ndarray
    """uint32[n // occ_interval + 2], the same count of rows whose BWT character is a separator"""
    separator_row: np.ndarray
    """uint32[m], the rows whose BWT character is a separator, ascending"""
    separator_position: np.ndarray
    """uint32[m], the text position of these rows"""
    first_row: np.ndarray
    """uint32[5], C(c): rows that start with something smaller than base c; the last entry is n"""
    rsa: np.ndarray
    """uint32[ceil(n / sa_interval)], the suffix array at every row that is a multiple of sa_interval"""
    longest_walk: int
    """the most LF steps from a row to one whose position is known"""
    occ_shift: int
    """log2 of occ_interval (the paper's q)"""
    sa_inverse: int
    """inverse modulo 2**32 of the odd factor of sa_interval (the paper's p); see `locate.sample_of`"""
    sa_shift: int
    """how often 2 divides sa_interval"""


LIMITS = {"occ_interval": (32, 1 << 16), "sa_interval": (1, 1 << 16), "table_length": (1, 15)}
"""Least and largest of each of `Parameters`; an interval of ROcc is a power of two."""


def inverse_of(interval: int) -> tuple[int, int]:
    """What rows are divided by an interval with (`locate.sample_of`): the inverse modulo 2**32 of its odd factor, and
    how often 2 divides it."""
    twos = (interval & -interval).bit_length() - 1
    return pow(interval >> twos, -1, 1 << 32), twos


class Parameters(NamedTuple):
    """What is chosen when an index is built, and holds for all of its parts."""

    occ_interval: int
    """rows between two entries of ROcc (the paper's q), a power of two"""
    sa_interval: int
    """rows between two entries of RSA (the paper's p)"""
    table_length: int
    """K, the length of the strings in the lookup table"""


@dataclass(frozen=True, eq=False)
class SeedIndex:
    """An index in memory or mapped from a folder: the core (text, segments, contigs) and named parts.

    Attributes
    ----------
    names : tuple of str, contig names in reference order
    lengths : int64[c], their lengths in bases
    digest : str, SHA-256 of the reference file
    parameters : Parameters
    text : uint64[n // 32 + PAD_WORDS], packed bases, separators stored as A
    segments : Segments
    arrays_of : dict, the arrays of each part that is there: `fast`, `tags`, `forward`, `reverse`
    seconds : dict, seconds of each build stage (empty where the index was opened)
    folder : str, where it was opened; empty for one that was built
    fast : FastIndex, what the fast tier reads
    tags : Tags of its rows (`tags.py`); NO_TAGS where the index was made without them
    forward, reverse : PaperIndex, bwt and rbwt of paper 000
    """

    names: tuple[str, ...]
    lengths: np.ndarray
    digest: str
    parameters: Parameters
    text: np.ndarray
    segments: Segments
    arrays_of: dict[str, dict[str, np.ndarray]]
    seconds: dict[str, float]
    folder: str = ""

    def __repr__(self) -> str:
        parts = ", ".join(self.parts) or "no parts"
        return f"<index of {self.bases:,} bases in {len(self.names):,} contigs, with {parts}>"

    @property
    def rows(self) -> int:
        """Length of the text: bases and separators."""
        return int(self.segments.text_start[-1])

    @property
    def bases(self) -> int:
        """Bases that can be found: the text without its separators."""
        return self.rows - len(self.segments.contig)

    @property
    def table_length(self) -> int:
        """K, the length of the strings in the lookup table."""
        return self.parameters.table_length

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts that are there beside the core."""
        return tuple(self.arrays_of)

    @cached_property
    def fast(self) -> FastIndex:
        """What the fast tier reads; IndexFormatError where the index was made without it."""
        part = self._part("fast", "fast")
        return FastIndex(self.text, part["suffix_array"], part["table"], self.segments)

    @cached_property
    def tags(self) -> Tags:
        """Tags of the rows; NO_TAGS where the index was made without them, and none are read."""
        return Tags(**self.arrays_of["tags"]) if "tags" in self.arrays_of else NO_TAGS

    @cached_property
    def forward(self) -> PaperIndex:
        """The BWT of the text; IndexFormatError where the index was made without it."""
        return self._bwt("forward")

    @cached_property
    def reverse(self) -> PaperIndex:
        """The BWT of the reversed text; IndexFormatError where the index was made without it."""
        return self._bwt("reverse")

    def _bwt(self, name: str) -> PaperIndex:
        arrays: dict[str, Any] = dict(self._part(name, "paper"))
        arrays["longest_walk"] = int(arrays["longest_walk"][0])
        inverse, twos = inverse_of(self.parameters.sa_interval)
        occ_shift = self.parameters.occ_interval.bit_length() - 1
        return PaperIndex(**arrays, occ_shift=occ_shift, sa_inverse=inverse, sa_shift=twos)

    def _part(self, name: str, group: str) -> dict[str, np.ndarray]:
        if name in self.arrays_of:
            return self.arrays_of[name]
        if not self.folder:
            raise IndexFormatError(
                f"the index was built without the {group} tier's parts, which this search needs; build it with "
                f"parts={(*self.arrays_of, group)!r}."
            )
        raise IndexFormatError(
            f"{self.folder}: made without the {group} tier's parts, which this search needs; add them with "
            f"'python -m warpseed index --add {group} {self.folder}'."
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by part and name, such as ``fast.table``."""
        named = {"core.text": self.text} | {f"core.{name}": array for name, array in self.segments._asdict().items()}
        for part, arrays in self.arrays_of.items():
            named |= {f"{part}.{name}": array for name, array in arrays.items()}
        return named

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the index to a folder; see `warpseed.fm_index.store.save_index`."""
        from warpseed.fm_index.store import save_index

        save_index(self, folder)

    def report(self) -> list[dict[str, Any]]:
        """Size of what is there, beside the paper's formula where there is one.

        Returns
        -------
        list of dict with part, bytes, bytes_per_base, formula_bytes (paper 000, section III.A and III.C; None
        where the paper has no such part). The formulas are 4·|G|·ceil(log2 |G|) / q + 2·|G| bits for a BWT and
        |G|·ceil(log2 |G|) / p bits for an RSA.
        """
        bases, bits = self.bases, max(self.bases - 1, 1).bit_length()
        rows: list[tuple[str, list[np.ndarray], float | None]] = [("text (fast)", [self.text], None)]
        rows.append(("segments", list(self.segments), None))
        for part, arrays in self.arrays_of.items():
            if part == "fast":
                rows.append(("suffix array (fast)", [arrays["suffix_array"]], None))
                rows.append((f"table of {self.table_length} bases (fast)", [arrays["table"]], None))
            elif part == "tags":
                rows.append(("tags of rows (fast)", [*arrays.values()], None))
            else:
                name = {"forward": "bwt", "reverse": "rbwt"}[part]
                bwt = [array for key, array in arrays.items() if key != "rsa"]
                rows.append((name, bwt, (4 * bases * bits / self.parameters.occ_interval + 2 * bases) / 8))
                rows.append((f"RSA of {name}", [arrays["rsa"]], bases * bits / self.parameters.sa_interval / 8))
        return [
            {
                "part": name,
                "bytes": (size := sum(array.nbytes for array in arrays)),
                "bytes_per_base": size / bases,
                "formula_bytes": formula,
            }
            for name, arrays, formula in rows
        ]

"""Bases as codes, and bytes as people read them.

A C G T are 0 1 2 3, and every other IUPAC letter is 4, U included: write RNA with T. A code 4 matches nothing.
"""

from __future__ import annotations

import numpy as np

__all__ = ["BASE_CODE", "DECODE", "IS_IUPAC", "show_byte", "show_name"]

DECODE = np.frombuffer(b"ACGTN", np.uint8)
"""uint8[5]: the letter of each code."""


def _base_codes() -> np.ndarray:
    codes = np.full(256, 4, np.uint8)
    for code, letter in enumerate("ACGT"):
        codes[[ord(letter), ord(letter.lower())]] = code
    return codes


BASE_CODE = _base_codes()
"""uint8[256]: the code of each byte, 0-3 for A C G T in either case and 4 for everything else."""

IS_IUPAC = np.isin(np.arange(256), np.frombuffer(b"ACGTURYSWKMBDHVNacgturyswkmbdhvn", np.uint8))
"""bool[256]: whether a byte is an IUPAC letter for a nucleotide, in either case."""


SHOWN = 60
"""Characters of a name that a sentence shows: names of millions were seen."""


def show_byte(byte: int) -> str:
    """Return a byte as people would write it in a sentence: the character in quotes, or its number."""
    return repr(chr(byte)) if 32 <= byte < 127 else f"the byte 0x{byte:02x}"


def show_name(name: str) -> str:
    """Return a name in quotes for a sentence; a long one is cut."""
    return repr(name if len(name) <= SHOWN else name[:SHOWN] + "…")

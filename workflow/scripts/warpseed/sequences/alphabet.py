"""Bases as codes, and bytes as people read them.

A C G T are 0 1 2 3, and every other IUPAC letter is 4, U included: write RNA with T. A code 4 matches nothing. Where
letters are kept, those for several bases have codes above 4, which match nothing either.
"""

from __future__ import annotations

import numpy as np

__all__ = ["BASE_CODE", "DECODE", "IS_IUPAC", "KEPT_CODE", "SHOWN", "show_byte", "show_name"]

DECODE = np.frombuffer(b"ACGTNRYSWKMBDHV", np.uint8)
"""uint8[15]: the letter of each code, of those for several bases, too."""


def _base_codes() -> np.ndarray:
    codes = np.full(256, 4, np.uint8)
    for code, letter in enumerate("ACGT"):
        codes[[ord(letter), ord(letter.lower())]] = code
    return codes


BASE_CODE = _base_codes()
"""uint8[256]: the code of each byte, 0-3 for A C G T in either case and 4 for everything else."""


def _kept_codes() -> np.ndarray:
    codes = BASE_CODE.copy()
    for code, letter in enumerate(DECODE.tobytes().decode()):
        codes[[ord(letter), ord(letter.lower())]] = code
    return codes


KEPT_CODE = _kept_codes()
"""uint8[256]: the same where letters are kept: the place of each letter in `DECODE`, 4 for N, U and everything else."""

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

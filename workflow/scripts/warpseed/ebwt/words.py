"""Words: sequences over an alphabet, whose rotations are sorted.

Words lie back to back; a *position* is a place in `codes`, 0-based. The conjugate at a position is the rotation of its
word that begins there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from warpseed.compute.ranges import borders_of, steps
from warpseed.errors import InputError
from warpseed.sequences.names import Names

__all__ = ["BASES", "Words", "letters_of", "read_words", "words_of"]

BASES = b"ACGNT"
"""The letters of sequences from files, in their order; every IUPAC letter for several bases is N."""
_CODES_OF_BASES = np.array([0, 1, 2, 4, 3], np.uint8)
"""Of each code of a base, as `warpseed.sequences.alphabet` has them, which of BASES it is."""
_BYTES = np.arange(256)


class Words(NamedTuple):
    """Words back to back: word i is ``codes[offsets[i]:offsets[i + 1]]``. There is at least one, and none is empty."""

    letters: bytes
    """the letters that may occur, ascending"""
    codes: np.ndarray
    """uint8[N], which of `letters` each is"""
    offsets: np.ndarray
    """int64[m + 1], where words begin, and the end of the last"""
    names: Names
    """of the words"""

    @property
    def lengths(self) -> np.ndarray:
        """int64[m]: letters of each word."""
        return np.diff(self.offsets)

    def word(self, i: int) -> bytes:
        """The letters of a word."""
        return letters_of(self.codes[self.offsets[i] : self.offsets[i + 1]], self.letters)


def letters_of(codes: np.ndarray, letters: bytes) -> bytes:
    """What codes, uint8[n], are in letters."""
    return np.frombuffer(letters, np.uint8)[codes].tobytes()


def words_of(strings: Iterable[str | bytes], names: Iterable[str] | None = None) -> Words:
    """Words of Python strings.

    Parameters
    ----------
    strings : ASCII text, or any bytes; letters are ordered by their bytes, and case matters
    names : one for each string; "0", "1", … when not given

    Raises
    ------
    InputError : there are no strings, one is empty or not ASCII, or there are not as many names
    """
    given = list(strings)
    if not given:
        raise InputError("There are no words; give at least one.")
    texts = []
    for number, string in enumerate(given):
        if not isinstance(string, str | bytes) or not string:
            found = "empty" if isinstance(string, str | bytes) else f"{string!r:.60}"
            raise InputError(f"Word number {number} is {found}; text or bytes of at least one letter were expected.")
        if isinstance(string, str) and not string.isascii():
            raise InputError(f"Word number {number}, {string!r:.60}, has letters beyond ASCII; give it as bytes.")
        texts.append(string.encode() if isinstance(string, str) else string)
    labels = [str(number) for number in range(len(texts))] if names is None else list(names)
    if len(labels) != len(texts):
        raise InputError(f"There are {len(texts)} words but {len(labels)} names; give one each.")
    text = np.frombuffer(b"".join(texts), np.uint8)
    occurs = np.bincount(text, minlength=256) > 0
    codes = (np.cumsum(occurs) - 1).astype(np.uint8)[text]
    offsets = borders_of(np.fromiter(map(len, texts), np.int64, len(texts)))
    return Words(_BYTES[occurs].astype(np.uint8).tobytes(), codes, offsets, Names.of(labels))


def read_words(path: str | os.PathLike[str]) -> Words:
    """Words of a FASTA or FASTQ file, plain or gzip; '-' is standard input.

    Parameters
    ----------
    path : path-like
        Either case; A, C, G and T are letters of their own, every other IUPAC letter is N.

    Raises
    ------
    InputError
        With file, record and line, for what `warpseed.sequences.queries.iter_queries` names: no such file, another
        format, no records, a record without bases, a letter that is no IUPAC letter, ….
    """
    from warpseed.sequences.queries import read_queries

    queries = read_queries(path)
    codes = queries.codes
    for first, last in steps(0, len(codes)):
        codes[first:last] = _CODES_OF_BASES[codes[first:last]]
    return Words(BASES, codes, queries.offsets, queries.names)

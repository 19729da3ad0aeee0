"""The reference: contigs in memory, and how they are read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from warpseed.errors import InputError
from warpseed.sequences.files import open_bytes
from warpseed.sequences.queries import offsets_of, parse_batches, sniffed_pieces

__all__ = ["Reference", "read_reference"]


@dataclass(frozen=True)
class Reference:
    """One or more contigs, back to back.

    Attributes
    ----------
    names : tuple of str
        First token of each header; unique and not empty.
    lengths : int64[c]
        Bases of each contig.
    codes : uint8[sum(lengths)]
        Codes 0-4 of all contigs.
    digest : str
        SHA-256 of the file's bytes as they are on the disk, compressed or not.
    path : str
        The file, as it was named.
    """

    names: tuple[str, ...]
    lengths: np.ndarray
    codes: np.ndarray
    digest: str
    path: str

    @cached_property
    def offsets(self) -> np.ndarray:
        """int64[c + 1]: contig i is ``codes[offsets[i]:offsets[i + 1]]``."""
        return offsets_of(self.lengths)


def read_reference(path: str | os.PathLike[str]) -> Reference:
    """Read a genome from a FASTA file, plain or gzip.

    Parameters
    ----------
    path : path-like
        FASTA with lines of any length, LF or CRLF, either case; blank lines and a missing last newline are
        allowed. Compression is told by the first bytes, not by the name. ``-`` is standard input.

    Returns
    -------
    Reference
        Takes one byte a base; while reading, the peak is about that as well when the file tells its size.

    Raises
    ------
    InputError
        With file, record and line, for: no such file, another format, an empty or cut file, damaged gzip
        data, a contig without bases or name, two contigs of one name, anything in a sequence that is no IUPAC
        letter.
    """
    with open_bytes(path, digest=True) as stream:
        pieces = sniffed_pieces(stream)
        if next(pieces) == "FASTQ":
            raise InputError(f"{stream.name}: this is a FASTQ file; a reference must be a FASTA file.")
        (contigs,) = parse_batches(stream, pieces, "FASTA", 1 << 62)
        digest = stream.hexdigest
    names = tuple(contigs.name(i) for i in range(len(contigs)))
    seen: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if not name:
            raise InputError(f"{contigs.source}, record {number}: the contig has no name; put one right after its '>'.")
        if name in seen:
            raise InputError(
                f"{contigs.source}, record {number}: the contig name {name!r} is that of record {seen[name]} "
                "too; contig names, up to the first space, must be unique."
            )
        seen[name] = number
    return Reference(names, contigs.lengths, contigs.codes, digest, os.fspath(path))

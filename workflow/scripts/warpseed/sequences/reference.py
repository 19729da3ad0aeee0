"""The reference: contigs in memory, and how they are read."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from warpseed.compute.ranges import borders_of
from warpseed.errors import InputError
from warpseed.sequences.alphabet import show_byte, show_name
from warpseed.sequences.files import open_bytes
from warpseed.sequences.queries import parse_batches, sniffed

if TYPE_CHECKING:
    from warpseed.sequences.parse import Records

__all__ = ["Reference", "read_reference"]

_LARGE_BYTES = 1 << 24
"""Of a plain file, from which on threads share its stretches."""


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
    wait_for_digest : callable
        Returns the digest; that of a large file is taken while other work goes on, and waited for.
    path : str
        The file, as it was named.
    """

    names: tuple[str, ...]
    lengths: np.ndarray
    codes: np.ndarray
    wait_for_digest: Callable[[], str]
    path: str

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the file's bytes as they are on the disk, compressed or not."""
        return self.wait_for_digest()

    @cached_property
    def offsets(self) -> np.ndarray:
        """int64[c + 1]: contig i is ``codes[offsets[i]:offsets[i + 1]]``."""
        return borders_of(self.lengths)


def read_reference(path: str | os.PathLike[str], threads: int = 1) -> Reference:
    """Read a genome from a FASTA file, plain or gzip.

    Parameters
    ----------
    path : path-like
        FASTA with lines of any length, LF or CRLF, either case; blank lines and a missing last newline are
        allowed. Compression is told by the first bytes, not by the name. ``-`` is standard input.
    threads : int
        A large plain file is read and parsed by so many, while one more takes its SHA-256, also when this has returned.

    Returns
    -------
    Reference
        Takes one byte a base; while reading, the peak is about that as well when the file tells its size.

    Raises
    ------
    InputError
        With file, record and line, for: no such file, another format, an empty or cut file, damaged gzip
        data, a contig without bases or name, a name that is no UTF-8, two contigs of one name, anything in a
        sequence that is no IUPAC letter.
    """
    from warpseed.sequences.fastx import FastxParser
    from warpseed.sequences.stretches import read_stretches

    with open_bytes(path, digest=True) as stream:
        file = sniffed(stream)
        if file.format == "FASTQ":
            raise InputError(f"{stream.name}: this is a FASTQ file; a reference must be a FASTA file.")
        if threads > 1 and not stream.packed and stream.size >= _LARGE_BYTES:
            wait_for_digest = stream.digest_behind()
            contigs = read_stretches(stream, file.begin, threads)
            if contigs is None:
                return read_reference(path)
        else:
            parser = FastxParser(stream.name, "FASTA", lines=True, unchecked=stream.unchecked)
            (contigs,) = parse_batches(stream, file.text, parser, 1 << 62)
            wait_for_digest = partial(str, stream.hexdigest)
        names = _contig_names(contigs, stream.name)
    return Reference(names, np.diff(contigs.offsets), contigs.codes, wait_for_digest, os.fspath(path))


def _contig_names(contigs: Records, source: str) -> tuple[str, ...]:
    """Return the names, which must be there, be UTF-8 and differ."""
    first: dict[str, int] = {}
    for i, (start, stop) in enumerate(pairwise(contigs.name_offsets.tolist())):
        raw = contigs.names[start:stop].tobytes()
        place = f"{source}, record {i + 1}, line {contigs.lines[i]}"
        if not raw:
            raise InputError(f"{place}: the contig has no name; put one right after its '>'.")
        try:
            name = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{place}: the contig name holds {show_byte(raw[error.start])}, which is no UTF-8; "
                "rewrite the file in UTF-8, or give the contig a name of plain letters."
            ) from None
        other = first.setdefault(name, i)
        if other != i:
            raise InputError(
                f"{place}: the contig name {show_name(name)} is that of record {other + 1} (line "
                f"{contigs.lines[other]}) too; contig names, up to the first space, must be unique."
            )
    return tuple(first)

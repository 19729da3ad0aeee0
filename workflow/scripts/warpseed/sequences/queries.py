"""Queries: sequences in memory, and how they are read and written.

Bases are the codes of `warpseed.sequences.alphabet`. Coordinates are 0-based and half-open.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from warpseed.compute.ranges import borders_of
from warpseed.errors import InputError, say
from warpseed.sequences.alphabet import BASE_CODE, DECODE, IS_IUPAC, KEPT_CODE, show_byte
from warpseed.sequences.files import ByteStream, atomic_path, open_bytes, open_for_writing
from warpseed.sequences.names import Names

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.sequences.fastx import FastxParser
    from warpseed.sequences.parse import Records

__all__ = [
    "Queries",
    "Sniffed",
    "iter_queries",
    "parse_batches",
    "read_queries",
    "sequence_format",
    "sniffed",
    "split_queries",
    "write_fasta",
    "write_fastq",
]

_PIECE_BYTES = 1 << 20  # stays in the second-level cache between reading, checksum and parsing
_PART_BASES = 16 << 20  # formatted at once when writing
_SNIFF_BYTES = 16
_NOTED_BYTES = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_RECORDS_PER_BASE = 1 / 8  # a batch of one-base queries must not hold 64 million offsets


@dataclass(frozen=True)
class Queries:
    """Sequences to search for, back to back.

    Attributes
    ----------
    codes : uint8[total]
        Codes 0-4 of all queries; where letters were kept, those for several bases have codes above 4.
    offsets : int64[n + 1]
        Query i is ``codes[offsets[i]:offsets[i + 1]]``; `offsets` starts at 0 and ends at ``len(codes)``.
    name_bytes : uint8[]
        The names, back to back, as they are in the file.
    name_offsets : int64[n + 1]
        Name i is ``name_bytes[name_offsets[i]:name_offsets[i + 1]]``. Names may repeat and may be empty.
    source : str
        Where they come from, for error sentences.
    qualities : uint8[total] or None
        For each base its quality character as in a FASTQ file (Phred + 33, ``!`` to ``~``); None where there are none
        or they were not asked for.
    """

    codes: np.ndarray
    offsets: np.ndarray
    name_bytes: np.ndarray
    name_offsets: np.ndarray
    source: str
    qualities: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> np.ndarray:
        """int64[n]: bases of each query."""
        return np.diff(self.offsets)

    @property
    def names(self) -> Names:
        """The names of all."""
        return Names(self.name_bytes, self.name_offsets)

    def name(self, i: int) -> str:
        """Return the name of query `i`; bytes that are no UTF-8 become replacement characters."""
        i = self._index(i)
        return self.name_bytes[self.name_offsets[i] : self.name_offsets[i + 1]].tobytes().decode("utf-8", "replace")

    def sequence(self, i: int) -> str:
        """Return query `i` as upper-case letters; what is no base is N, or its letter where letters were kept."""
        i = self._index(i)
        return DECODE[self.codes[self.offsets[i] : self.offsets[i + 1]]].tobytes().decode("ascii")

    def slice(self, start: int, stop: int) -> Queries:
        """Return the queries ``[start, stop)``: bases, qualities and names are views, offsets are rebased."""
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        if stop - start == len(self):
            return self
        codes, names = self.offsets[start : stop + 1], self.name_offsets[start : stop + 1]
        return Queries(
            self.codes[codes[0] : codes[-1]],
            codes - codes[0],
            self.name_bytes[names[0] : names[-1]],
            names - names[0],
            self.source,
            None if self.qualities is None else self.qualities[codes[0] : codes[-1]],
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Queries]) -> Queries:
        """Return all queries of `parts` in their order; one part is returned as it is.

        Raises
        ------
        InputError
            When some parts have qualities and others have not.
        """
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.from_sequences([])
        qualities = [part.qualities for part in parts if part.qualities is not None]
        if qualities and len(qualities) < len(parts):
            without = next(part for part in parts if part.qualities is None)
            raise InputError(
                f"{without.source}: these sequences have no qualities, but others that they are joined with have; "
                "give FASTQ files only, or read all without qualities."
            )
        return cls(
            np.concatenate([part.codes for part in parts]),
            borders_of(np.concatenate([part.lengths for part in parts])),
            *Names.joined([part.names for part in parts]),
            parts[0].source,
            np.concatenate(qualities) if qualities else None,
        )

    @classmethod
    def from_sequences(
        cls,
        sequences: Iterable[str | bytes],
        names: Iterable[str] | None = None,
        *,
        source: str = "the sequences",
        letters: bool = False,
    ) -> Queries:
        """Make queries of Python strings.

        Parameters
        ----------
        sequences : iterable of str or bytes
            IUPAC letters in either case. No sequences at all give no queries.
        names : iterable of str, optional
            One for each sequence; ``"0"``, ``"1"``, … when not given.
        source : str
            What error sentences call them.
        letters : bool
            Whether letters for several bases keep codes of their own.

        Raises
        ------
        InputError
            When a sequence is empty or holds anything but IUPAC letters, or the names are not as many.
        """
        items = list(sequences)
        codes, offsets = _encode(items, source, KEPT_CODE if letters else BASE_CODE)
        labels = [str(i) for i in range(len(items))] if names is None else list(names)
        if len(labels) != len(items):
            raise InputError(f"{source}: there are {len(items)} sequences but {len(labels)} names; give one each.")
        return cls(codes, offsets, *Names.of(labels), source)

    def _index(self, i: int) -> int:
        if not -len(self) <= i < len(self):
            raise IndexError(f"query {i} of {len(self)}")
        return int(i) % len(self)


def iter_queries(
    source: str | os.PathLike[str] | Queries | Iterable[str | bytes],
    *,
    batch_bases: int = 64 << 20,
    qualities: bool = False,
    watch: Stopwatch | None = None,
) -> Iterator[Queries]:
    """Yield queries in batches of bounded memory.

    Parameters
    ----------
    source : path-like, Queries, or iterable of str or bytes
        A FASTA file (lines of any length) or FASTQ file (four lines a record), plain or gzip, ``-`` for
        standard input; or sequences in memory, which get the names ``"0"``, ``"1"``, ….
    batch_bases : int
        A batch ends soon after this many bases, and holds whole queries: at least one.
    qualities : bool
        Whether to keep the qualities of a FASTQ file, which takes one more byte a base; a FASTA file has none.
    watch : Stopwatch, optional
        Knows the share of the file that has been read, when a batch is there; None of a pipe.

    Yields
    ------
    Queries
        At least one query each. A query's name is the first token of its header.

    Raises
    ------
    InputError
        With file, record and line, for: no such file, another format, no records, a cut file, damaged gzip
        data, a query without bases, a quality string of another length, anything in a sequence that is no
        IUPAC letter.
    """
    if batch_bases < 1:
        raise ValueError("batch_bases must be at least 1")
    if not isinstance(source, str | os.PathLike):
        queries = source if isinstance(source, Queries) else Queries.from_sequences(source)
        yield from (queries.slice(*part) for part in split_queries(queries, batch_bases))
        return
    from warpseed.sequences.fastx import FastxParser

    with open_bytes(source) as stream:
        file = sniffed(stream)
        parser = FastxParser(stream.name, file.format, qualities=qualities, unchecked=stream.unchecked)
        for records in parse_batches(stream, file.text, parser, batch_bases):
            if watch is not None and stream.size:
                watch.share = min(1.0, stream.bytes_read / stream.size)
            yield Queries(*records[:4], stream.name, records.qualities if parser.keeps_qualities else None)


def read_queries(
    source: str | os.PathLike[str] | Queries | Iterable[str | bytes], *, qualities: bool = False
) -> Queries:
    """Read all queries of a source at once; see `iter_queries` for parameters and errors."""
    return Queries.concatenate(list(iter_queries(source, batch_bases=1 << 62, qualities=qualities)))


def write_fasta(queries: Queries, path: str | os.PathLike[str]) -> None:
    """Write queries as FASTA, each sequence on one line; compressed when `path` ends in ``.gz``.

    Parameters
    ----------
    queries : Queries
        What is no base is written as N, or as its letter where letters were kept.
    path : path-like
        Written under a temporary name and renamed.
    """
    from warpseed.sequences.parse import format_fasta

    _write_records(queries, path, format_fasta, 1)


def write_fastq(queries: Queries, path: str | os.PathLike[str]) -> None:
    """Write queries and their qualities as FASTQ, four lines each; compressed when `path` ends in ``.gz``.

    Parameters
    ----------
    queries : Queries
        With qualities. Letters are written as in `write_fasta`.
    path : path-like
        Written under a temporary name and renamed.

    Raises
    ------
    InputError
        When the queries have no qualities.
    """
    from warpseed.sequences.parse import format_fastq

    if queries.qualities is None:
        raise InputError(f"{queries.source}: the sequences have no qualities, which FASTQ needs; write them as FASTA.")
    _write_records(queries, path, format_fastq, 2)


def _write_records(
    queries: Queries, path: str | os.PathLike[str], format: Callable[..., int], bytes_a_base: int
) -> None:
    from warpseed.sequences.parse import Records

    with atomic_path(path) as temporary, open_for_writing(temporary) as handle:
        for part in (queries.slice(*part) for part in split_queries(queries, _PART_BASES)):
            qualities = np.empty(0, np.uint8) if part.qualities is None else part.qualities
            records = Records(
                part.codes, part.offsets, part.name_bytes, part.name_offsets, qualities, np.empty(0, np.int64)
            )
            room = bytes_a_base * len(part.codes) + len(part.name_bytes) + 6 * len(part)
            out = np.empty(room, np.uint8)
            handle.write(out.data[: format(records, DECODE, out)])


def _encode(items: list[str | bytes], source: str, code_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    try:
        pieces = [item.encode("ascii") if isinstance(item, str) else bytes(memoryview(item)) for item in items]
    except (UnicodeEncodeError, TypeError):
        number = next(i for i, item in enumerate(items) if not _is_plain(item))
        raise InputError(f"{source}, number {number}: {items[number]!r:.60} is no sequence of bases.") from None
    offsets = borders_of(np.fromiter(map(len, pieces), np.int64, len(pieces)))
    letters = np.frombuffer(b"".join(pieces), np.uint8)
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if len(empty):
        raise InputError(f"{source}, number {empty[0]}: the sequence is empty; remove it or give its bases.")
    good = IS_IUPAC[letters]
    if not good.all():
        place = int(np.argmin(good))
        number = int(np.searchsorted(offsets, place, side="right")) - 1
        raise InputError(
            f"{source}, number {number}: found {show_byte(int(letters[place]))} at position "
            f"{place - offsets[number]}; only IUPAC letters (A, C, G, T, N, …) are allowed."
        )
    return code_of[letters], offsets


def _is_plain(item: object) -> bool:
    return isinstance(item, bytes | bytearray | memoryview) or (isinstance(item, str) and item.isascii())


def split_queries(queries: Queries, batch_bases: int) -> Iterator[tuple[int, int]]:
    """Yield queries that follow each other as ``(start, stop)``: about `batch_bases` bases, at least one query."""
    start = 0
    while start < len(queries):
        stop = int(np.searchsorted(queries.offsets, queries.offsets[start] + batch_bases))
        stop = min(max(stop, start + 1), len(queries), start + max(1, int(batch_bases * _RECORDS_PER_BASE)))
        yield start, stop
        start = stop


def sequence_format(path: str | os.PathLike[str]) -> str:
    """Return "FASTA" or "FASTQ" by a file's first bytes; raises InputError for anything else."""
    with open_bytes(path) as stream:
        return sniffed(stream).format


class Sniffed(NamedTuple):
    """A file whose first bytes were looked at."""

    format: str
    """"FASTA" or "FASTQ\""""
    begin: int
    """bytes before the text: those of a byte-order mark"""
    first: int
    """byte at which the first record begins: white space may stand before it"""
    text: Iterator[memoryview | bytes]
    """the text from its beginning, in pieces as those of `ByteStream.pieces`"""


def sniffed(stream: ByteStream) -> Sniffed:
    """Tell the format of a file, and say on standard error when it is RNA.

    Raises
    ------
    InputError
        When it is neither FASTA nor FASTQ.
    """
    from warpseed.sequences.fastx import sniff_format

    pieces = stream.pieces(_PIECE_BYTES)
    start = b""
    for piece in pieces:
        start += bytes(piece)
        if len(start.lstrip()) >= _SNIFF_BYTES:
            break
    text = start.removeprefix(_BYTE_ORDER_MARK)
    format = sniff_format(text.lstrip(), stream.name)
    _note_rna(text, format, stream.name)
    return Sniffed(format, len(start) - len(text), len(start) - len(text.lstrip()), chain([text], pieces))


def _note_rna(start: bytes, format: str, source: str) -> None:
    """Say so on standard error when the first record of a file is RNA: its U are taken as N."""
    first, _, _ = start[:_NOTED_BYTES].lstrip().partition(b"\n")[2].partition(b">" if format == "FASTA" else b"+")
    letters = set(first.upper())
    if ord("U") in letters and ord("T") not in letters:
        say(f"Note: {source}: the bases are written with U (RNA), which are taken as N; write T.")


def parse_batches(
    stream: ByteStream, pieces: Iterator[memoryview | bytes], parser: FastxParser, batch_bases: int
) -> Iterator[Records]:
    """Yield the records of a file, whose text comes in `pieces`, in batches of about `batch_bases`."""
    batch_records = max(1, int(batch_bases * _RECORDS_PER_BASE))
    taken = 0  # bytes of the file, uncompressed, before this batch
    parsed = 0
    for piece in pieces:
        # How much larger the arrays get: by the share of the file, or of the batch, that they hold now. The
        # margin is for files whose later parts have fewer line ends; it takes no memory when it is not used.
        of_file = (stream.expected_size() - taken) / max(parsed - taken, 1)
        of_batch = batch_bases / max(parser.bases, 1)
        parser.feed(piece, max(1.0, 1.05 * min(of_file, of_batch)))
        parsed += len(piece)
        if parser.bases >= batch_bases or parser.records >= batch_records:
            if parser.complete_records() == 0:
                continue  # one query larger than a batch
            yield parser.take(all_records=False)
            taken = parsed
    parser.finish()
    if parser.records:
        yield parser.take(all_records=True)

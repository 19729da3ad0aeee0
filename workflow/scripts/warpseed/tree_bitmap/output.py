"""What is known of a stream as it goes out: k-mers or places, as TSV or in a compact binary form (docs/formats.md)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, TypeAlias

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.letters import SLACK, bytes_of, put_bytes, put_number, put_word, read_only
from warpseed.compute.pipeline import mapped
from warpseed.sequences.names import Names
from warpseed.tree_bitmap.request import Tell
from warpseed.tree_bitmap.stream import KmerCounts, Stream

__all__ = [
    "ANSWERS",
    "DISTANCES",
    "FORMATS",
    "KMER_HEAD",
    "KMER_ROW",
    "PLACES_HEAD",
    "RECORD_HEAD",
    "KmerRows",
    "Told",
    "begin_places",
    "kinds_of",
    "write_kmers",
    "write_kmers_as_binary",
    "write_places",
    "write_places_as_binary",
]

FORMATS = ("tsv", "bin")
KMER_HEADING = b"record\tstart\tcount\tkmer\tstatus\n"
PLACES_HEAD = struct.Struct("<16sIII4x")
"""A Told's magic, form, k, max_edits."""
RECORD_HEAD = struct.Struct("<QQ")
"""Bases of a record, bytes of its name."""
KMER_HEAD = struct.Struct("<16sIIQQQ16x")
"""KMERS_MAGIC, form, k, rows, records, bytes of their names."""
KMERS_MAGIC = b"warpseed counts\n"
FORM = 1
KMER_ROW = np.dtype([("kmer", "<u8"), ("start", "<u8"), ("count", "<u8"), ("record", "<u4"), ("seen", "<u4")])
"""A k-mer's number, where it begins for the first time, how often it comes, the record of that place, and 1 where the
dictionary or the seed has it, else 0."""
_BYTES_AT_ONCE = 1 << 22
"""Of lines or rows, at most, that a thread makes together; one such piece a thread is held."""
_NUMBER_BYTES = 20
_TAB, _DOT = np.uint64(ord("\t")), np.uint64(ord("."))
_LETTERS = np.uint64(int.from_bytes(b"ACGT", "little"))


class Told(NamedTuple):
    """What is told of places. Each is of a kind: 0, of which no line is written, or one of the statuses, from 1 on."""

    heading: bytes
    """of the TSV"""
    magic: bytes
    """of the binary form"""
    statuses: tuple[bytes, ...]
    ahead: int
    """what is added to a place in a line"""
    bits: int
    """of a kind in the binary form: 2 or 4"""

    def words(self) -> tuple[np.ndarray, np.ndarray]:
        """What ends a line of each kind as compiled code puts it: uint64[], and its bytes, int64[]."""
        ends = [b"", *(status + b"\n" for status in self.statuses)]
        return np.array([int.from_bytes(end, "little") for end in ends], np.uint64), np.array(list(map(len, ends)))


ANSWERS = Told(b"record\tstart\tstatus\n", b"warpseed places\n", (b"new", b"seen"), 0, 2)
"""What each place is where a k-mer begins: kinds are NO_KMER, NEW and SEEN."""
DISTANCES = Told(b"record\tend\tdistance\n", b"warpseed nearby\n", (b"0", b"1", b"2", b"3"), 1, 4)
"""How far from a k-mer is what ends at each place: kinds are distances and 1, and 0 where there is none. The end of a
line is behind the last base."""


class KmerRows(NamedTuple):
    """The k-mers of a stream, and what they are in."""

    k: int
    counted: KmerCounts
    seen: np.ndarray
    """bool[d], whether the dictionary or the seed has the k-mer"""
    starts: np.ndarray
    """int64[r], where each record begins in the stream"""
    names: Names
    """of the records"""


_Maker: TypeAlias = Callable[[slice, np.ndarray], memoryview]
"""What makes the bytes of some rows, given the record of each."""


class _Labels(NamedTuple):
    """Names of records, and where these begin, as compiled code reads them."""

    text: np.ndarray
    """uint8[], at least eight"""
    offsets: np.ndarray
    """int64[r + 1]"""
    starts: np.ndarray
    """int64[r]"""


def _labels(names: Names, starts: np.ndarray) -> tuple[_Labels, int]:
    """The labels, and the bytes of the longest name."""
    longest = int(np.diff(names.offsets).max(initial=1))
    return _Labels(bytes_of(names.text), read_only(names.offsets), read_only(starts)), max(1, longest)


@scalar
def _put_place(labels, record, place, out, to):
    """The name of a record, a dot for an empty one, and where in it a place is, each with a tab behind."""
    first, last = labels.offsets[record], labels.offsets[record + int64(1)]
    if first == last:
        put_word(out, to, _DOT, int64(1))
        to += int64(1)
    else:
        to = put_bytes(out, to, labels.text, first, last)
    put_word(out, to, _TAB, int64(1))
    to = put_number(out, to + int64(1), uint64(place - labels.starts[record]))
    put_word(out, to, _TAB, int64(1))
    return to + int64(1)


@scalar
def _format_places(kinds, span, record, labels, ahead, endings, out):
    """Lines of the places [begin, end) that have a kind, of which the first is in `record` or behind; returns the bytes
    written."""
    words, sizes = endings
    to = int64(0)
    for place in range(span[0], span[1]):
        kind = int64(kinds[place])
        if kind == int64(0):
            continue
        while record + int64(1) < labels.starts.shape[0] and labels.starts[record + int64(1)] <= place:
            record += int64(1)
        to = _put_place(labels, record, int64(place) + int64(ahead), out, to)
        put_word(out, to, words[kind], sizes[kind])
        to += sizes[kind]
    return to


@scalar
def _format_kmers(rows, counts, seen, labels, statuses, k, out):
    """Lines of k-mers; `rows` are those of KmerRows.counted, and the record of each, int64[d].

    Returns
    -------
    the bytes written
    """
    codes, places, records = rows
    words, sizes = statuses
    to = int64(0)
    for i in range(codes.shape[0]):
        to = _put_place(labels, records[i], places[i], out, to)
        to = put_number(out, to, uint64(counts[i]))
        put_word(out, to, _TAB, int64(1))
        to += int64(1)
        for shift in range(int64(2) * k - int64(2), int64(-2), int64(-2)):
            letter = (codes[i] >> uint64(shift)) & uint64(3)
            put_word(out, to, (_LETTERS >> (letter << uint64(3))) & uint64(0xFF), int64(1))
            to += int64(1)
        put_word(out, to, _TAB, int64(1))
        status = int64(2) if seen[i] else int64(1)
        put_word(out, to + int64(1), words[status], sizes[status])
        to += int64(1) + sizes[status]
    return to


def kinds_of(distances: np.ndarray) -> np.ndarray:
    """The kinds of places by their distances, uint8[n]: TOO_FAR, which is 255, becomes 0."""
    return distances + np.uint8(1)


def begin_places(handle: BinaryIO, format: str, told: Told, k: int, max_edits: int) -> None:
    """What goes before the first record."""
    handle.write(told.heading if format == "tsv" else PLACES_HEAD.pack(told.magic, FORM, k, max_edits))


def write_places(handle: BinaryIO, told: Told, threads: int, stream: Stream, kinds: np.ndarray) -> None:
    """A line for each place of a kind that is not 0: record, place in it, status.

    Parameters
    ----------
    told : what is told of them
    threads : that make lines
    stream : some records of it
    kinds : uint8[n], of their places
    """
    labels, longest = _labels(stream.names, stream.starts)
    line, endings = longest + _NUMBER_BYTES + 8, told.words()

    def lines(some: slice) -> memoryview:
        out = np.empty((some.stop - some.start) * line + SLACK, np.uint8)
        record = int(np.searchsorted(labels.starts, some.start, side="right")) - 1
        used = _format_places(kinds, (some.start, some.stop), record, labels, told.ahead, endings, out)
        return out.data[:used]

    for text in mapped(_slices(len(kinds), line), lines, threads, ahead=1):
        handle.write(text)


def write_places_as_binary(handle: BinaryIO, told: Told, stream: Stream, kinds: np.ndarray) -> None:
    """For each record its size, its name, and the kinds of its places, the first in a byte's lowest bits."""
    offsets, a_byte = stream.names.offsets, 8 // told.bits
    ends = np.append(stream.starts[1:] - 1, len(kinds))
    for record, (start, end) in enumerate(zip(stream.starts, ends, strict=True)):
        name = stream.names.text[offsets[record] : offsets[record + 1]].tobytes()
        padded = np.zeros(-(-int(end - start) // a_byte) * a_byte, np.uint8)
        padded[: end - start] = kinds[start:end]
        packed = padded[::a_byte].copy()
        for i in range(1, a_byte):
            packed |= padded[i::a_byte] << np.uint8(i * told.bits)
        handle.write(RECORD_HEAD.pack(end - start, len(name)) + name)
        handle.write(packed.data)


def _slices(count: int, row_bytes: int) -> Iterator[slice]:
    """So many rows of so many bytes in pieces that are made together."""
    size = max(1, _BYTES_AT_ONCE // row_bytes)
    return (slice(first, min(first + size, count)) for first in range(0, count, size))


def _write_rows(handle: BinaryIO, rows: KmerRows, row_bytes: int, make: _Maker, tell: Tell, threads: int) -> None:
    """Write what threads make of rows, so many bytes of each at most."""
    count, done = len(rows.counted.codes), 0

    def written() -> str:
        return f"{done:,} of {count:,} {rows.k}-mers written"

    def piece(some: slice) -> tuple[memoryview, int]:
        records = np.searchsorted(rows.starts, rows.counted.places[some], side="right") - 1
        return make(some, records), some.stop

    for text, last in tell(written, mapped(_slices(count, row_bytes), piece, threads, ahead=1)):
        handle.write(text)
        done = last


def write_kmers(handle: BinaryIO, rows: KmerRows, tell: Tell, threads: int) -> None:
    """A line for each k-mer, made on threads: record, first place in it, how often it comes, its bases, 'new' or
    'seen'."""
    handle.write(KMER_HEADING)
    labels, longest = _labels(rows.names, rows.starts)
    line, statuses = longest + 2 * _NUMBER_BYTES + rows.k + 10, ANSWERS.words()
    codes, places, counts = rows.counted

    def lines(some: slice, records: np.ndarray) -> memoryview:
        out = np.empty(len(records) * line + SLACK, np.uint8)
        kmers = codes[some], places[some], records
        used = _format_kmers(kmers, counts[some], rows.seen[some], labels, statuses, rows.k, out)
        return out.data[:used]

    _write_rows(handle, rows, line, lines, tell, threads)


def write_kmers_as_binary(handle: BinaryIO, rows: KmerRows, tell: Tell, threads: int) -> None:
    """A head, a KMER_ROW for each k-mer, and the names of the records."""
    names, count = rows.names, len(rows.seen)
    handle.write(KMER_HEAD.pack(KMERS_MAGIC, FORM, rows.k, count, len(rows.starts), len(names.text)))

    def bytes_of_rows(some: slice, records: np.ndarray) -> memoryview:
        table = np.empty(len(records), KMER_ROW)
        table["kmer"], table["count"] = rows.counted.codes[some], rows.counted.counts[some]
        table["start"], table["record"] = rows.counted.places[some] - rows.starts[records], records
        table["seen"] = rows.seen[some]
        return table.data.cast("B")

    _write_rows(handle, rows, KMER_ROW.itemsize, bytes_of_rows, tell, threads)
    handle.write(names.offsets.astype("<u8").data.cast("B"))
    handle.write(names.text.tobytes())

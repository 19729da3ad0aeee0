"""Hits as BED or TSV, formatted without a Python loop over hits."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
from numba import int64, uint8, uint64

from warpseed.compute.compiled import scalar
from warpseed.errors import InputError
from warpseed.fm_index.text import segment_of
from warpseed.sequences.files import atomic_path, open_for_writing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpseed.output.hits import Hits

__all__ = ["TSV_HEADER", "output_format", "write_hits"]

TSV_HEADER = b"query\tcontig\tstart\tend\tstrand\tdistance\n"
_HITS_AT_ONCE = 1 << 16
_BYTES_AT_ONCE = 1 << 26
_NUMBERS_BYTES = 3 * 20 + 16
"""More than the numbers, tabs and signs of a line ever take."""

_TAB, _NEWLINE, _ZERO, _PLUS, _MINUS, _DOT = (ord(c) for c in "\t\n0+-.")


class _Names(NamedTuple):
    contig_bytes: np.ndarray
    contig_offsets: np.ndarray
    query_bytes: np.ndarray
    query_offsets: np.ndarray


@scalar
def _put_number(out, to, number):
    digits = int64(1)
    rest = number
    while rest >= int64(10):
        rest //= int64(10)
        digits += int64(1)
    for i in range(to + digits - int64(1), to - int64(1), -1):
        out[i] = uint8(int64(_ZERO) + number % int64(10))
        number //= int64(10)
    return to + digits


@scalar
def _put_name(out, to, names, offsets, which):
    """A name, or a dot for an empty one, which would shift the columns."""
    first = offsets[which]
    last = offsets[which + 1]
    if first == last:
        out[to] = uint8(_DOT)
        return to + 1
    for i in range(first, last):
        out[to] = names[i]
        to += 1
    return to


@scalar
def _format(packed, hit_first, query, first, last, lengths, segments, names, bed, out):
    """Format hits [first, last), of which the first belongs to `query`; returns the bytes written."""
    to = int64(0)
    for h in range(first, last):
        while hit_first[query + 1] <= h:
            query += 1
        hit = packed[h]
        place = int64(hit >> uint64(3))
        segment = segment_of(segments, place)
        start = segments.contig_start[segment] + place - int64(segments.text_start[segment])
        contig = int64(segments.contig[segment])
        strand = uint8(_MINUS if (hit >> uint64(2)) & uint64(1) else _PLUS)
        distance = uint8(int64(_ZERO) + int64(hit & uint64(3)))
        if not bed:
            to = _put_name(out, to, names.query_bytes, names.query_offsets, query)
            out[to] = uint8(_TAB)
            to += int64(1)
        to = _put_name(out, to, names.contig_bytes, names.contig_offsets, contig)
        out[to] = uint8(_TAB)
        to = _put_number(out, to + int64(1), start)
        out[to] = uint8(_TAB)
        to = _put_number(out, to + int64(1), start + lengths[query])
        out[to] = uint8(_TAB)
        to += int64(1)
        if bed:
            to = _put_name(out, to, names.query_bytes, names.query_offsets, query)
            out[to] = uint8(_TAB)
            to += int64(1)
        out[to] = distance if bed else strand
        out[to + 1] = uint8(_TAB)
        out[to + 2] = strand if bed else distance
        out[to + 3] = uint8(_NEWLINE)
        to += int64(4)
    return to


def output_format(path: str | os.PathLike[str]) -> str:
    """'bed' or 'tsv', by the ending of a file's name ('-', standard output, is BED).

    Raises
    ------
    InputError : another ending
    """
    name = os.fspath(path)
    if name == "-":
        return "bed"
    for ending in ("bed", "tsv"):
        if name.endswith((f".{ending}", f".{ending}.gz")):
            return ending
    raise InputError(f"{name}: the ending says no output format; end it in .bed or .tsv, or .gz behind these.")


def _pieces(hits: Hits, names: _Names, bed: bool, threads: int) -> Iterator[memoryview]:
    """The formatted hits, some thousand at a time, in order."""
    hit_first = np.concatenate([[0], np.cumsum(hits.counts)])
    lengths = np.diff(hits.queries.offsets)
    longest_names = sum(int(np.diff(offsets).max(initial=1)) for offsets in (names.contig_offsets, names.query_offsets))
    # A name may be as long as a header line: fewer hits at once then.
    room = longest_names + _NUMBERS_BYTES
    at_once = max(1, min(_HITS_AT_ONCE, _BYTES_AT_ONCE // room))

    def piece(first: int) -> memoryview:
        last = min(first + at_once, len(hits))
        query = int(np.searchsorted(hit_first, first, side="right")) - 1
        out = np.empty((last - first) * room, np.uint8)
        used = _format(hits.packed, hit_first, query, first, last, lengths, hits.index.fast.segments, names, bed, out)
        return out[:used].data

    starts = range(0, len(hits), at_once)
    if threads == 1:
        yield from map(piece, starts)
        return
    with ThreadPoolExecutor(threads) as pool:
        for begin in range(0, len(starts), 4 * threads):
            yield from pool.map(piece, starts[begin : begin + 4 * threads])


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    to_stdout = os.fspath(path) == "-"
    if not to_stdout and os.path.isdir(path):
        raise InputError(f"{path}: this is a folder, but the hits go to a file; name a file.")
    try:
        if to_stdout:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        else:
            # The temporary name ends as the final one does, so .gz is compressed.
            with atomic_path(path) as temporary, open_for_writing(temporary) as handle:
                yield handle
    except BrokenPipeError:
        raise
    except OSError as error:
        where = "standard output" if to_stdout else path
        no_folder = isinstance(error, FileExistsError | NotADirectoryError)
        reason = "a file stands where its folder should be" if no_folder else error.strerror or str(error)
        raise InputError(f"{where}: cannot be written ({reason}); free some space, or write elsewhere.") from error


def write_hits(
    path: str | os.PathLike[str], batches: Hits | Iterable[Hits], *, threads: int = 1, format: str | None = None
) -> int:
    """Write hits in output order; the same bytes for any number of threads or batches.

    Parameters
    ----------
    path : file that ends in .bed or .tsv (or .bed.gz, .tsv.gz), or '-' for standard output
    batches : Hits, or the batches of `iter_kmer_hits`, which are written as they come
    format : 'bed' (contig, start, end, name, distance, strand) or 'tsv' (a header line; query, contig, start, end,
        strand, distance); by the file's ending where None

    Returns
    -------
    int, hits written. An empty name is written as a dot. The file appears when it is complete.

    Raises
    ------
    InputError : the ending says no format, or the file cannot be written
    """
    from warpseed.output.hits import Hits

    kind = format or output_format(path)
    if kind not in ("bed", "tsv"):
        raise InputError(f"format is {kind!r}, but 'bed' or 'tsv' was expected.")
    written = 0
    with _opened(path) as handle:
        if kind == "tsv":
            handle.write(TSV_HEADER)
        for hits in [batches] if isinstance(batches, Hits) else batches:
            encoded = [name.encode() for name in hits.index.names]
            offsets = np.concatenate([[0], np.cumsum([len(name) for name in encoded])]).astype(np.int64)
            contigs = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
            names = _Names(contigs.copy(), offsets, hits.queries.name_bytes, hits.queries.name_offsets)
            for text in _pieces(hits, names, kind == "bed", threads):
                handle.write(text)
            written += len(hits)
    return written

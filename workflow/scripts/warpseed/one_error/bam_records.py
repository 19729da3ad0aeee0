"""Placements of reads as BAM records (SAM specification, section 4.2), encoded in compiled code, one behind the other.

A record is planned first: which placement of which read it is, its flag and mapping quality. The one of a read's
placements that is *primary* has the fewest edits; of those, as many bases as the read; then it is the first in output
order. The others are secondary records, without bases and qualities, which the primary one has; or they stand in its
tag XA, and take no bytes of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint8, uint64
from warpseed.compute.intrinsics import store_word
from warpseed.compute.letters import put_bytes, put_number
from warpseed.one_error.reads import DELETION, INSERTION, MATCH, MISMATCH

__all__ = [
    "HIDDEN",
    "MOST_IN_XA",
    "PLANNED",
    "PRIMARY",
    "SECONDARY",
    "UNMAPPED",
    "Contigs",
    "Reads",
    "choose",
    "encode",
    "map_quality",
    "plan",
    "room_for",
]

PRIMARY, UNMAPPED, SECONDARY = 0, 4, 0x100
"""Flags."""
_REVERSE = 0x10
HIDDEN = -1
"""What stands for a flag where a placement has no record of its own."""

PLANNED = np.dtype(
    [("row", "<i8"), ("read", "<i8"), ("flag", "<i4"), ("quality", "<i4"), ("placements", "<i8"), ("first", "<i8"),
     ("last", "<i8")]
)  # fmt: skip
"""A record: its row among the placements (none where it is unmapped) and its read; flag, without that of the strand;
mapping quality; of a primary record, the placements of the read, and the rows [first, last) that are listed in its XA,
its own left out."""

MOST_IN_XA = 1000
"""Placements beside the primary one up to which they are listed."""
_UNIQUE, _A_BETTER_EDIT = 60, 20
"""Mapping qualities: of a read's only placement; for each edit that the next one has more."""

_FIXED = 208
"""Bytes of a record beside its name, bases, qualities and XA, at most, and what is written behind it."""
_LISTED = 128
"""Bytes of an entry of XA beside the contig's name, at most, and what is written behind it."""
_FIELDS = 36
"""Bytes before a record's name."""
_M, _I, _D = 0, 1, 2
"""CIGAR operations."""
_NO_BIN = 4680
_NIBBLES = np.array([1, 2, 4, 8, 15, 5, 10, 6, 9, 12, 3, 14, 13, 11, 7], np.uint8)
"""BAM's four bits for each code of `warpseed.sequences.alphabet.DECODE`: one for each base that it may be."""
_COMPLEMENTS = np.array([int(f"{bits:04b}"[::-1], 2) for bits in range(16)], np.uint8)
_LETTERS = np.frombuffer(b"ACGT", np.uint8)
_OPERATIONS = np.frombuffer(b"MID", np.uint8)
_NOTHING, _STAR = np.uint64(0xFFFF_FFFF), 42


class Reads(NamedTuple):
    """The reads of some records."""

    codes: np.ndarray
    """uint8[], as `Queries.codes`"""
    offsets: np.ndarray
    """int64[n + 1]"""
    qualities: np.ndarray
    """uint8[], as `Queries.qualities`; uint8[0] where there are none"""
    names: np.ndarray
    """uint8[], at least eight bytes, which cannot be written"""
    name_offsets: np.ndarray
    """int64[n + 1]"""


class Contigs(NamedTuple):
    """The contigs that records are on."""

    names: np.ndarray
    """uint8[], as `Reads.names`"""
    name_offsets: np.ndarray
    """int64[c + 1]"""
    places: np.ndarray
    """uint64[c + 1], what orders the first base of each, and what is on none"""


# ---------------------------------------------------------------------------------------------------- planning


@scalar
def map_quality(distance, next_distance):
    """The mapping quality of a read's best placement, by its edits and those of the next best (-1: there is none)."""
    if next_distance < int64(0):
        return int64(_UNIQUE)
    return min(int64(_UNIQUE), int64(_A_BETTER_EDIT) * (next_distance - distance))


@scalar
def choose(rows, first, last, lengths):
    """Which of a read's placements [first, last), at least one, in output order, is primary, and the distance of the
    best other one: (int64 row, int64 distance or -1). `lengths` are those of reads, the row's query one of them."""
    best = first
    best_key = int64(1) << int64(60)
    next_distance = int64(-1)
    for i in range(first, last):
        bases = int64(rows[i].end) - int64(rows[i].start)
        key = int64(2) * int64(rows[i].distance) + int64(bases != lengths)
        other = int64(rows[i].distance)
        if key < best_key:
            other = best_key >> int64(1)
            best = int64(i)
            best_key = key
        if i > first and (next_distance < int64(0) or other < next_distance):
            next_distance = other
    return best, next_distance


@scalar
def plan(rows, counts, offsets, in_xa, records):
    """Plan the records of whole reads: as many as there are rows, and one for each read without a placement.

    Parameters
    ----------
    rows : EDITED_ROW[n], in output order, those of a read behind each other
    counts : int64[r], rows of each read
    offsets : int64[r + 1], as `Reads.offsets`
    in_xa : whether placements beside the primary one are listed in its record
    records : PLANNED[], filled
    """
    at = int64(0)
    to = int64(0)
    for read in range(counts.shape[0]):
        end = at + int64(counts[read])
        best, next_distance = at, int64(-1)
        if end > at:
            best, next_distance = choose(rows, at, end, int64(offsets[read + 1]) - int64(offsets[read]))
        for row in range(at, max(end, at + int64(1))):
            record = records[to]
            to += int64(1)
            record.row = row
            record.read = read
            record.flag = int64(SECONDARY) if not in_xa else int64(HIDDEN)
            record.quality = int64(0)
            record.placements = record.first = record.last = int64(0)
            if end == at:
                record.flag = int64(UNMAPPED)
            elif row == best:
                record.flag = int64(PRIMARY)
                record.quality = map_quality(int64(rows[row].distance), next_distance)
                record.placements = end - at
                if in_xa and end - at - int64(1) <= int64(MOST_IN_XA):
                    record.first = at
                    record.last = end
        at = end


def room_for(records: np.ndarray, reads: Reads, contigs: Contigs) -> int:
    """Bytes that records take at most, and what is written behind them."""
    names = np.diff(reads.name_offsets)[records["read"]]
    bases = np.where(records["flag"] <= UNMAPPED, np.diff(reads.offsets)[records["read"]], 0)
    listed = int((records["last"] - records["first"]).sum())
    longest = int(np.diff(contigs.name_offsets).max(initial=0))
    return int((names + bases + (bases + 1) // 2 + _FIXED).sum()) + listed * (_LISTED + longest)


# ---------------------------------------------------------------------------------------------------- encoding


@scalar
def _edits_of(row):
    """How many edits a placement has, and up to two of them: (kind, bases of the read before it, base)."""
    first = (int64(row.first_kind), int64(row.first_offset), int64(row.first_base))
    second = (int64(row.second_kind), int64(row.second_offset), int64(row.second_base))
    return int64(first[0] != int64(MATCH)) + int64(second[0] != int64(MATCH)), (first, second)


@scalar
def _add_operation(out, to, held, operation, length):
    """Take the next CIGAR operation, and write the one before if it is another: (place, (operation, length) held)."""
    if length == int64(0):
        return to, held
    if held[0] == operation:
        return to, (operation, held[1] + length)
    if held[1] > int64(0):
        store_word(out, to, (uint64(held[1]) << uint64(4)) | uint64(held[0]))
        to += int64(4)
    return to, (operation, length)


@scalar
def _put_cigar(out, to, length, edits):
    """The CIGAR operations of a read of `length` bases, four bytes each."""
    held = (int64(_M), int64(0))
    done = int64(0)
    for i in range(edits[0]):
        kind, offset, _ = edits[1][i]
        to, held = _add_operation(out, to, held, int64(_M), offset - done)
        done = offset
        if kind == int64(INSERTION):
            to, held = _add_operation(out, to, held, int64(_D), int64(1))
        else:
            operation = int64(_I) if kind == int64(DELETION) else int64(_M)
            to, held = _add_operation(out, to, held, operation, int64(1))
            done += int64(1)
    to, held = _add_operation(out, to, held, int64(_M), length - done)
    to, held = _add_operation(out, to, held, int64(-1), int64(1))
    return to


@scalar
def _put_difference(out, to, length, edits):
    """The text of tag MD: bases that agree, the reference's where they do not, behind ^ those that the read lacks."""
    run = int64(0)
    done = int64(0)
    lacking = False
    for i in range(edits[0]):
        kind, offset, base = edits[1][i]
        run += offset - done
        done = offset
        if kind == int64(DELETION):
            done += int64(1)
            continue
        if not (lacking and kind == int64(INSERTION) and run == int64(0)):
            to = put_number(out, to, uint64(run))
            if kind == int64(INSERTION):
                out[to] = uint8(94)
                to += int64(1)
        lacking = kind == int64(INSERTION)
        out[to] = _LETTERS[base & int64(3)]
        to += int64(1)
        run = int64(0)
        done += int64(kind == int64(MISMATCH))
    return put_number(out, to, uint64(run + length - done))


@scalar
def _put_name(out, to, reads, read):
    """A read's name up to its first blank, a star for an empty one, and a zero."""
    first = int64(reads.name_offsets[read])
    last = first
    while last < int64(reads.name_offsets[read + 1]) and reads.names[last] > 32:
        last += int64(1)
    out[to] = uint8(_STAR)
    to = put_bytes(out, to, reads.names, first, last) + int64(first == last)
    out[to] = uint8(0)
    return to + int64(1)


@scalar
def _put_bases(out, to, reads, read, reverse):
    """Bases and qualities of a read, or of its reverse complement."""
    first = int64(reads.offsets[read])
    length = int64(reads.offsets[read + 1]) - first
    for i in range(0, length, 2):
        byte = uint8(0)
        for j in range(i, i + 2):
            bits = uint8(0)
            if j < length:
                at = first + (length - int64(1) - int64(j) if reverse else int64(j))
                bits = _NIBBLES[reads.codes[at]]
                if reverse:
                    bits = _COMPLEMENTS[bits]
            byte = uint8(byte << uint8(4)) | bits
        out[to] = byte
        to += int64(1)
    known = reads.qualities.shape[0] > 0
    for i in range(length):
        quality = uint8(255)
        if known:
            at = first + (length - int64(1) - int64(i) if reverse else int64(i))
            quality = reads.qualities[at] - uint8(33)
        out[to] = quality
        to += int64(1)
    return to


@scalar
def _put_tag(out, to, letters, kind):
    """The name and type of a tag, given as bytes in the machine's order."""
    store_word(out, to, uint64(letters) | (uint64(kind) << uint64(16)))
    return to + int64(3)


@scalar
def _put_listed(out, to, row, length, contigs):
    """An entry of XA: contig, sign of the strand and first base (from 1), CIGAR, edits."""
    contig = int64(row.contig)
    to = put_bytes(out, to, contigs.names, contigs.name_offsets[contig], contigs.name_offsets[contig + 1])
    out[to] = uint8(44)
    out[to + int64(1)] = uint8(45) if row.strand else uint8(43)
    to = put_number(out, to + int64(2), uint64(row.start + 1))
    out[to] = uint8(44)
    to += int64(1)
    # The operations are written further on, and the text of each before them.
    at = to + int64(64)
    end = _put_cigar(out, at, length, _edits_of(row))
    while at < end:
        word = int64(out[at]) | (int64(out[at + 1]) << int64(8)) | (int64(out[at + 2]) << int64(16))
        word |= int64(out[at + 3]) << int64(24)
        to = put_number(out, to, uint64(word >> int64(4)))
        out[to] = _OPERATIONS[word & int64(15)]
        to += int64(1)
        at += int64(4)
    out[to] = uint8(44)
    to = put_number(out, to + int64(1), uint64(row.distance))
    out[to] = uint8(59)
    return to + int64(1)


@scalar
def _bin_of(start, end):
    """The smallest bin of a .bai that holds the bases [start, end); at least one base."""
    last = end - int64(1)
    first = int64(_NO_BIN + 1)
    for level in range(5):
        shift = int64(14) + int64(3) * int64(level)
        if start >> shift == last >> shift:
            return first + (start >> shift)
        first >>= int64(3)
    return int64(0)


@scalar
def _put_tags(out, to, rows, record, length, contigs):
    """NM and MD, and of a primary record NH, and XA where others are listed."""
    row = rows[record.row]
    to = _put_tag(out, to, int64(0x4D4E), int64(67))
    out[to] = uint8(row.distance)
    to = _put_tag(out, to + int64(1), int64(0x444D), int64(90))
    to = _put_difference(out, to, length, _edits_of(row))
    out[to] = uint8(0)
    to += int64(1)
    if record.placements:
        to = _put_tag(out, to, int64(0x484E), int64(105))
        store_word(out, to, uint64(record.placements))
        to += int64(4)
    if record.last - record.first > int64(1):
        to = _put_tag(out, to, int64(0x4158), int64(90))
        for i in range(record.first, record.last):
            if i != record.row:
                to = _put_listed(out, to, rows[i], length, contigs)
        out[to] = uint8(0)
        to += int64(1)
    return to


@scalar
def encode(rows, records, reads, contigs, columns, out):
    """Encode planned records; returns the bytes written.

    Parameters
    ----------
    rows : EDITED_ROW[n]
    records : PLANNED[r]
    reads : Reads
    contigs : Contigs
    columns : (place, shape, query, sizes) of the lines: uint64[r], uint64[r], int64[r], int64[r]
    out : uint8[`room_for`]
    """
    place, shape, query, sizes = columns
    to = int64(0)
    for r in range(records.shape[0]):
        record = records[r]
        read = int64(record.read)
        length = int64(reads.offsets[read + 1]) - int64(reads.offsets[read])
        flag = int64(record.flag)
        contig, start, end, reverse = int64(-1), int64(-1), int64(-1), int64(0)
        if flag == int64(UNMAPPED):
            place[r] = contigs.places[contigs.places.shape[0] - 1]
            shape[r] = uint64(0)
        else:
            row = rows[record.row]
            contig, start, end, reverse = int64(row.contig), int64(row.start), int64(row.end), int64(row.strand)
            place[r] = contigs.places[contig] + uint64(start)
            shape[r] = (uint64(end - start) << uint64(1)) | uint64(reverse)
        query[r] = read
        sizes[r] = int64(0)
        if flag == int64(HIDDEN):
            continue
        begin = to
        to = _put_name(out, begin + int64(_FIELDS), reads, read)
        name_bytes = to - begin - int64(_FIELDS)
        operations = int64(0)
        bin = int64(_NO_BIN)
        if flag != int64(UNMAPPED):
            cigar = to
            to = _put_cigar(out, to, length, _edits_of(rows[record.row]))
            operations = (to - cigar) >> int64(2)
            bin = _bin_of(start, end) & int64(0xFFFF)
        shown = int64(0)
        if flag != int64(SECONDARY):
            shown = length
            to = _put_bases(out, to, reads, read, reverse != int64(0))
        if flag != int64(UNMAPPED):
            to = _put_tags(out, to, rows, record, length, contigs)
        flag |= int64(_REVERSE) * reverse
        quality = int64(record.quality)
        behind = to  # fields are written in words of eight bytes, the last one before the name
        store_word(out, begin, uint64(behind - begin - int64(4)) | (uint64(contig) << uint64(32)))
        store_word(
            out,
            begin + int64(8),
            (uint64(start) & _NOTHING)
            | (uint64(name_bytes) << uint64(32))
            | (uint64(quality) << uint64(40))
            | (uint64(bin) << uint64(48)),
        )
        word = uint64(operations) | (uint64(flag) << uint64(16)) | (uint64(shown) << uint64(32))
        store_word(out, begin + int64(16), word)
        store_word(out, begin + int64(24), ~uint64(0))  # no next record of the template
        out[begin + int64(32)] = out[begin + int64(33)] = out[begin + int64(34)] = out[begin + int64(35)] = uint8(0)
        sizes[r] = to - begin
    return to

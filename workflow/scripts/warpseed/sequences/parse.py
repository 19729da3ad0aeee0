"""FASTA and FASTQ at the speed of memory: two compiled state machines, and their inverse.

A state machine takes one piece of the file at a time and can stop at any byte, so that lines of any length (a
chromosome on one line) need no buffer of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import scalar
from warpseed.compute.vectors import ALL_BYTES, WIDTH, copy_bytes, copy_codes, first_in_mask, mask_outside
from warpseed.sequences.alphabet import BASE_CODE, IS_IUPAC, KEPT_CODE

__all__ = [
    "BAD_BASE",
    "BAD_BYTE",
    "BAD_NAME",
    "BAD_QUALITY",
    "BASES",
    "EMPTY_SEQUENCE",
    "ERROR",
    "FULL",
    "KEEPS_LETTERS",
    "LINE",
    "LONE_RETURN",
    "LONG_QUALITY",
    "MODE",
    "NAME_BYTES",
    "NO_HEADER",
    "NO_PLUS",
    "OK",
    "QUALITY_END",
    "QUALITY_RETURN",
    "RECORDS",
    "SEQUENCE",
    "SHORT_QUALITY",
    "START",
    "STATE_CELLS",
    "TAKEN",
    "Records",
    "format_fasta",
    "format_fastq",
    "parse_fasta",
    "parse_fastq",
]


class Records(NamedTuple):
    """The records of a file, back to back, as the state machines fill them."""

    codes: np.ndarray
    """uint8[:], codes of all bases: 0-4, or also those of letters that are kept"""
    offsets: np.ndarray
    """int64[:], start of each record in `codes`, and the end of the last"""
    names: np.ndarray
    """uint8[:], bytes of all names"""
    name_offsets: np.ndarray
    """int64[:], start of each name in `names`, and the end of the last"""
    qualities: np.ndarray
    """uint8[:], quality characters, for each base one; uint8[0] where they are not kept"""
    lines: np.ndarray
    """int64[:], line of each record's header, from 1; int64[0] where they are not kept"""


# Classes of a byte inside a sequence: 0-3 A C G T, 4 another IUPAC letter, then
NEWLINE, RETURN, INVALID = 5, 6, 7

# Cells of the state array, which is int64[STATE_CELLS].
MODE, LINE, RECORDS, BASES, NAME_BYTES, QUALITIES, ERROR, BAD_BYTE, TAKEN, KEEPS_LETTERS, STATE_CELLS = range(11)

# Modes: what the next byte is part of. START is the first byte of a line that may open a record.
START, NAME, COMMENT, SEQUENCE, SEQUENCE_RETURN, PLUS, PLUS_COMMENT, QUALITY, QUALITY_END, QUALITY_RETURN = range(10)

# Errors; each has its sentence in FastxParser._fail, but FULL.
(
    OK,
    FULL,
    NO_HEADER,
    EMPTY_SEQUENCE,
    BAD_BASE,
    LONE_RETURN,
    BAD_NAME,
    NO_PLUS,
    SHORT_QUALITY,
    LONG_QUALITY,
    BAD_QUALITY,
) = range(11)


def _byte_classes() -> np.ndarray:
    classes = np.full(256, INVALID, np.uint8)
    classes[IS_IUPAC] = BASE_CODE[IS_IUPAC]
    classes[ord("\n")] = NEWLINE
    classes[ord("\r")] = RETURN
    return classes


CLASSES = _byte_classes()


@scalar
def _is_space(byte):
    return byte == 32 or 9 <= byte <= 13


@scalar
def _copy_known(piece, i, codes, m):
    """Copy codes, 32 bytes at once, up to the first byte that is none of A, C, G, T, or near the end of the piece.

    The place reached in both arrays is returned. It is so short that it becomes part of what calls it.
    """
    while i + WIDTH <= piece.size:
        others = copy_codes(piece, i, codes, m)
        if others != 0:
            known = first_in_mask(others)
            return i + known, m + known
        i += WIDTH
        m += WIDTH
    return i, m


@scalar
def _copy_others(piece, i, codes, m, keeps_letters):
    """Copy the code of one base, or of a run of those that are none of A, C, G, T; return the places reached."""
    codes[m] = KEPT_CODE[piece[i]] if keeps_letters else CLASSES[piece[i]]
    m += 1
    i += 1
    while i < piece.size and CLASSES[piece[i]] == 4:  # N and the like come in runs
        codes[m] = KEPT_CODE[piece[i]] if keeps_letters else np.uint8(4)
        m += 1
        i += 1
    return i, m


@scalar
def _copy_name(piece, i, names, w):
    """Copy bytes up to the first one that is no visible character; return the places reached in both arrays."""
    n = piece.size
    while i + WIDTH <= n:
        copy_bytes(piece, i, names, w)
        ends = mask_outside(piece, i, 33, 255)
        if ends != 0:
            length = first_in_mask(ends)
            return i + length, w + length
        i += WIDTH
        w += WIDTH
    while i < n and piece[i] > 32:
        names[w] = piece[i]
        w += 1
        i += 1
    return i, w


@scalar
def _skip_line(piece, i):
    """The place of the next newline, or the end."""
    n = piece.size
    while i + WIDTH <= n and piece[i] != 10:
        others = ~mask_outside(piece, i, 10, 10) & ALL_BYTES
        if others != 0:
            return i + first_in_mask(others)
        i += WIDTH
    while i < n and piece[i] != 10:
        i += 1
    return i


@scalar
def parse_fasta(piece, state, records):
    """Parse one piece of a FASTA file.

    Parameters
    ----------
    piece : uint8[:]
        Bytes of the file that follow the piece before.
    state : int64[STATE_CELLS]
        Where the parser is; read and updated. ``state[ERROR]`` is OK when the piece was taken whole, and FULL when
        there is no room for one more record: the piece was taken up to ``state[TAKEN]``.
    records : Records
        With room for WIDTH more bases and name bytes than the piece has bytes.
    """
    codes, offsets, names, name_offsets = records.codes, records.offsets, records.names, records.name_offsets
    keeps_lines = records.lines.size > 0
    i = np.int64(0)  # a plain 0 would be a type of its own: what is called with it would be compiled twice
    n = piece.size
    mode, line, r = state[MODE], state[LINE], state[RECORDS]
    m, w = state[BASES], state[NAME_BYTES]
    error = OK
    while i < n:
        if mode == START:
            byte = piece[i]
            if byte == 62:  # '>'
                if r > 0 and m == offsets[r - 1]:
                    error = EMPTY_SEQUENCE
                    break
                if r + 1 >= offsets.size:
                    error = FULL
                    break
                offsets[r] = m
                name_offsets[r] = w
                if keeps_lines:
                    records.lines[r] = line
                r += 1
                mode = NAME
                i += 1
            elif byte == 10:
                line += 1
                i += 1
                continue
            elif byte == 13:
                mode = SEQUENCE_RETURN
                i += 1
                continue
            elif r == 0:
                error = NO_HEADER
                break
            else:
                mode = SEQUENCE
        if mode == SEQUENCE:
            i, m = _copy_known(piece, i, codes, m)
            if i == n:
                break
            kind = CLASSES[piece[i]]
            if kind == NEWLINE:
                line += 1
                i += 1
                mode = START
            elif kind <= 4:
                i, m = _copy_others(piece, i, codes, m, state[KEEPS_LETTERS] != 0)
            elif kind == RETURN:
                i += 1
                mode = SEQUENCE_RETURN
            else:
                error = BAD_BASE
                break
            continue
        if mode == NAME:
            i, w = _copy_name(piece, i, names, w)
            if i == n:
                break
            if not _is_space(piece[i]):
                error = BAD_NAME
                break
            mode = COMMENT
        if mode == COMMENT:
            i = _skip_line(piece, i)
            if i < n:
                line += 1
                i += 1
                mode = START
        elif i < n:  # SEQUENCE_RETURN
            if piece[i] != 10:
                error = LONE_RETURN
                break
            line += 1
            i += 1
            mode = START
    state[MODE], state[LINE], state[RECORDS] = mode, line, r
    state[BASES], state[NAME_BYTES] = m, w
    state[ERROR], state[TAKEN] = error, i
    if i < n:
        state[BAD_BYTE] = piece[i]


@scalar
def _check_quality(piece, i, count):
    """Return how many of the next `count` bytes are quality characters, from '!' to '~'."""
    good = np.int64(0)
    while good + WIDTH <= count:
        others = mask_outside(piece, i + good, 33, 126)
        if others != 0:
            return good + first_in_mask(others)
        good += WIDTH
    while good < count and piece[i + good] >= 33 and piece[i + good] <= 126:
        good += 1
    return good


@scalar
def _copy(piece, i, count, target, place):
    """Copy `count` bytes; what is behind them in `target` may change, up to WIDTH bytes."""
    done = np.int64(0)
    while done < count and i + done + WIDTH <= piece.size:
        copy_bytes(piece, i + done, target, place + done)
        done += WIDTH
    while done < count:
        target[place + done] = piece[i + done]
        done += 1


@scalar
def parse_fastq(piece, state, records):
    """Parse one piece of a FASTQ file with four lines a record; the arguments are those of `parse_fasta`."""
    codes, offsets, names, name_offsets = records.codes, records.offsets, records.names, records.name_offsets
    keeps_qualities = records.qualities.size > 0
    i = np.int64(0)  # a plain 0 would be a type of its own: what is called with it would be compiled twice
    n = piece.size
    mode, line, r = state[MODE], state[LINE], state[RECORDS]
    m, w, qualities = state[BASES], state[NAME_BYTES], state[QUALITIES]
    error = OK
    while i < n and error == OK:
        byte = piece[i]
        if mode == START:
            if byte == 64:  # '@'
                if r + 1 >= offsets.size:
                    error = FULL
                    break
                offsets[r] = m
                name_offsets[r] = w
                r += 1
                mode = NAME
            elif byte == 10:
                line += 1
            elif byte != 13:
                error = NO_HEADER
                break
            i += 1
        elif mode == NAME:
            i, w = _copy_name(piece, i, names, w)
            if i < n:
                if not _is_space(piece[i]):
                    error = BAD_NAME
                    break
                mode = COMMENT
        elif mode in (COMMENT, PLUS_COMMENT):
            i = _skip_line(piece, i)
            if i < n:
                line += 1
                i += 1
                mode = SEQUENCE if mode == COMMENT else QUALITY
                qualities = 0
        elif mode == SEQUENCE:
            i, m = _copy_known(piece, i, codes, m)
            if i < n:
                kind = CLASSES[piece[i]]
                if kind == INVALID:
                    error = BAD_BASE
                    break
                if kind <= 4:
                    i, m = _copy_others(piece, i, codes, m, state[KEEPS_LETTERS] != 0)
                    continue
                if m == offsets[r - 1]:
                    error = EMPTY_SEQUENCE
                    break
                i += 1
                mode = PLUS if kind == NEWLINE else SEQUENCE_RETURN
                line += 1 if kind == NEWLINE else 0
        elif mode == PLUS:
            if byte != 43:  # '+'
                error = NO_PLUS
                break
            i += 1
            mode = PLUS_COMMENT
        elif mode == QUALITY:
            length = m - offsets[r - 1]
            wanted = min(n - i, length - qualities)
            good = _check_quality(piece, i, wanted)
            if keeps_qualities:
                _copy(piece, i, good, records.qualities, offsets[r - 1] + qualities)
            i += good
            qualities += good
            if good < wanted:
                error = SHORT_QUALITY if (piece[i] == 10 or piece[i] == 13) else BAD_QUALITY
                break
            if qualities == length:
                mode = QUALITY_END
        elif byte == 10:  # the end of a sequence or quality line, with or without a carriage return
            line += 1
            i += 1
            mode = PLUS if mode == SEQUENCE_RETURN else START
        elif mode == QUALITY_END and byte == 13:
            i += 1
            mode = QUALITY_RETURN
        else:
            error = LONG_QUALITY if mode == QUALITY_END else LONE_RETURN
    state[MODE], state[LINE], state[RECORDS] = mode, line, r
    state[BASES], state[NAME_BYTES], state[QUALITIES] = m, w, qualities
    state[ERROR], state[TAKEN] = error, i
    if i < n:
        state[BAD_BYTE] = piece[i]


@scalar
def _write_bases(records, r, mark, decode, out, w):
    """Write the byte `mark`, the name and the bases of record `r`, a line each; return the place reached."""
    out[w] = mark
    w += 1
    for i in range(records.name_offsets[r], records.name_offsets[r + 1]):
        out[w] = records.names[i]
        w += 1
    out[w] = 10
    w += 1
    for i in range(records.offsets[r], records.offsets[r + 1]):
        out[w] = decode[records.codes[i]]
        w += 1
    out[w] = 10
    return w + 1


@scalar
def format_fasta(records, decode, out):
    """Write `Records` as ``>name``, newline, bases, newline into `out` (uint8); return the bytes written."""
    w = np.int64(0)
    for r in range(records.offsets.size - 1):
        w = _write_bases(records, r, 62, decode, out, w)
    return w


@scalar
def format_fastq(records, decode, out):
    """Write `Records` with qualities as ``@name``, bases, ``+``, qualities; return the bytes written into `out`."""
    w = np.int64(0)
    for r in range(records.offsets.size - 1):
        w = _write_bases(records, r, 64, decode, out, w)
        out[w] = 43
        out[w + 1] = 10
        w += 2
        for i in range(records.offsets[r], records.offsets[r + 1]):
            out[w] = records.qualities[i]
            w += 1
        out[w] = 10
        w += 1
    return w

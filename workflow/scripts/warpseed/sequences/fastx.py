"""FASTA and FASTQ at the speed of memory: two compiled state machines and the arrays that they fill.

A state machine takes one piece of the file at a time and can stop at any byte, so that lines of any length (a
chromosome on one line) need no buffer of their own. This module imports numba: import it where it is used.
"""

from __future__ import annotations

import os
from typing import NoReturn

import numpy as np
from numba import njit

from warpseed.errors import InputError
from warpseed.sequences.queries import BASE_CODE, IS_IUPAC, show_byte

__all__ = ["FastxParser", "format_fasta", "gather_windows", "pack_rows", "sniff_format"]

# Classes of a byte inside a sequence: 0-3 A C G T, 4 another IUPAC letter, then
NEWLINE, RETURN, INVALID = 5, 6, 7

# Cells of the state array, which is int64[STATE_CELLS].
MODE, LINE, RECORDS, BASES, NAME_BYTES, QUALITIES, ERROR, BAD_BYTE, STATE_CELLS = range(9)

# Modes: what the next byte is part of. START is the first byte of a line that may open a record.
START, NAME, COMMENT, SEQUENCE, SEQUENCE_RETURN, PLUS, PLUS_COMMENT, QUALITY, QUALITY_END, QUALITY_RETURN = range(10)

# Errors; each has its sentence in FastxParser._fail.
(
    OK,
    NO_HEADER,
    EMPTY_SEQUENCE,
    BAD_BASE,
    LONE_RETURN,
    BAD_NAME,
    NO_PLUS,
    SHORT_QUALITY,
    LONG_QUALITY,
    BAD_QUALITY,
) = range(10)


def _byte_classes() -> np.ndarray:
    classes = np.full(256, INVALID, np.uint8)
    classes[IS_IUPAC] = BASE_CODE[IS_IUPAC]
    classes[ord("\n")] = NEWLINE
    classes[ord("\r")] = RETURN
    return classes


CLASSES = _byte_classes()


@njit(cache=True, nogil=True)
def _is_space(byte):
    return byte == 32 or 9 <= byte <= 13


@njit(cache=True, nogil=True)
def _copy_bases(piece, i, codes, m):
    """Copy codes up to the first byte that is no base; return the places reached in both arrays."""
    n = piece.size
    while i < n:
        code = CLASSES[piece[i]]
        if code > 4:
            break
        codes[m] = code
        m += 1
        i += 1
    return i, m


@njit(cache=True, nogil=True)
def _copy_name(piece, i, names, w):
    n = piece.size
    while i < n and piece[i] > 32:
        names[w] = piece[i]
        w += 1
        i += 1
    return i, w


@njit(cache=True, nogil=True)
def _skip_line(piece, i):
    n = piece.size
    while i < n and piece[i] != 10:
        i += 1
    return i


@njit(cache=True, nogil=True)
def parse_fasta(piece, state, codes, offsets, names, name_offsets):
    """Parse one piece of a FASTA file.

    Parameters
    ----------
    piece : uint8[:]
        Bytes of the file that follow the piece before.
    state : int64[STATE_CELLS]
        Where the parser is; read and updated. ``state[ERROR]`` is 0 when the piece was taken whole.
    codes, names : uint8[:]
        Base codes 0-4 and name bytes of all records, with room for as many more as the piece has bytes.
    offsets, name_offsets : int64[:]
        Start of every record in `codes` and `names`, with room for half as many more as the piece has bytes.
    """
    i = 0
    n = piece.size
    mode, line, r = state[MODE], state[LINE], state[RECORDS]
    m, w = state[BASES], state[NAME_BYTES]
    error = OK
    while i < n and error == OK:
        byte = piece[i]
        if mode == SEQUENCE:
            i, m = _copy_bases(piece, i, codes, m)
            if i < n:
                kind = CLASSES[piece[i]]
                if kind == NEWLINE:
                    line += 1
                    mode = START
                elif kind == RETURN:
                    mode = SEQUENCE_RETURN
                else:
                    error = BAD_BASE
                    break
                i += 1
        elif mode == START:
            if byte == 62:  # '>'
                if r > 0 and m == offsets[r - 1]:
                    error = EMPTY_SEQUENCE
                    break
                offsets[r] = m
                name_offsets[r] = w
                r += 1
                mode = NAME
                i += 1
            elif byte == 10:
                line += 1
                i += 1
            elif byte == 13:
                mode = SEQUENCE_RETURN
                i += 1
            elif r == 0:
                error = NO_HEADER
            else:
                mode = SEQUENCE
        elif mode == NAME:
            i, w = _copy_name(piece, i, names, w)
            if i < n:
                if not _is_space(piece[i]):
                    error = BAD_NAME
                    break
                mode = COMMENT
        elif mode == COMMENT:
            i = _skip_line(piece, i)
            if i < n:
                line += 1
                i += 1
                mode = START
        else:  # SEQUENCE_RETURN
            if byte != 10:
                error = LONE_RETURN
                break
            line += 1
            i += 1
            mode = START
    state[MODE], state[LINE], state[RECORDS] = mode, line, r
    state[BASES], state[NAME_BYTES] = m, w
    state[ERROR] = error
    if i < n:
        state[BAD_BYTE] = piece[i]


@njit(cache=True, nogil=True)
def _check_quality(piece, i, count):
    """Return how many of the next `count` bytes are quality characters, from '!' to '~'."""
    good = 0
    while good < count and piece[i + good] >= 33 and piece[i + good] <= 126:
        good += 1
    return good


@njit(cache=True, nogil=True)
def parse_fastq(piece, state, codes, offsets, names, name_offsets):
    """Parse one piece of a FASTQ file with four lines a record; the arguments are those of `parse_fasta`."""
    i = 0
    n = piece.size
    mode, line, r = state[MODE], state[LINE], state[RECORDS]
    m, w, qualities = state[BASES], state[NAME_BYTES], state[QUALITIES]
    error = OK
    while i < n and error == OK:
        byte = piece[i]
        if mode == START:
            if byte == 64:  # '@'
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
            i, m = _copy_bases(piece, i, codes, m)
            if i < n:
                kind = CLASSES[piece[i]]
                if kind == INVALID:
                    error = BAD_BASE
                    break
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
    state[ERROR] = error
    if i < n:
        state[BAD_BYTE] = piece[i]


@njit(cache=True, nogil=True)
def format_fasta(codes, offsets, names, name_offsets, decode, out):
    """Write records as ``>name``, newline, bases, newline into `out` (uint8); return the bytes written."""
    w = 0
    for r in range(offsets.size - 1):
        out[w] = 62
        w += 1
        for i in range(name_offsets[r], name_offsets[r + 1]):
            out[w] = names[i]
            w += 1
        out[w] = 10
        w += 1
        for i in range(offsets[r], offsets[r + 1]):
            out[w] = decode[codes[i]]
            w += 1
        out[w] = 10
        w += 1
    return w


@njit(cache=True, nogil=True)
def gather_windows(codes, starts, k):
    """Copy the `k` codes from each of `starts` (int64) into one row each; return uint8[len(starts), k]."""
    out = np.empty((starts.size, k), np.uint8)
    for r in range(starts.size):
        for i in range(k):
            out[r, i] = codes[starts[r] + i]
    return out


@njit(cache=True, nogil=True)
def pack_rows(rows):
    """Pack rows of codes (uint8[n, k]) three bits a base, 21 bases a word; return uint64[words, n]."""
    n, k = rows.shape
    words = np.zeros(((k + 20) // 21, n), np.uint64)
    for r in range(n):
        for i in range(k):
            words[i // 21, r] = words[i // 21, r] << np.uint64(3) | np.uint64(rows[r, i])
    return words


class FastxParser:
    """The arrays of the records parsed so far, and the state between two pieces.

    Parameters
    ----------
    source : str
        What error sentences call the file.
    format : {"FASTA", "FASTQ"}

    Notes
    -----
    The arrays grow by copying into a larger one, whose untouched part takes no memory: at the peak, twice
    what is filled. With a good `growth` they are made large enough at the second piece, and little is copied.
    """

    def __init__(self, source: str, format: str) -> None:
        self.source = source
        self.format = format
        self._parse = parse_fasta if format == "FASTA" else parse_fastq
        self._state = np.zeros(STATE_CELLS, np.int64)
        self._state[LINE] = 1
        self._codes = np.empty(0, np.uint8)
        self._names = np.empty(0, np.uint8)
        self._offsets = np.empty(0, np.int64)
        self._name_offsets = np.empty(0, np.int64)
        self._records_taken = 0

    @property
    def bases(self) -> int:
        """Bases held at present."""
        return int(self._state[BASES])

    @property
    def records(self) -> int:
        """Records held at present, one that is not complete included."""
        return int(self._state[RECORDS])

    def feed(self, piece: memoryview | bytes, growth: float = 1.0) -> None:
        """Parse the next piece of the file.

        Parameters
        ----------
        piece : bytes-like
        growth : float
            How many times larger than now the arrays are expected to become before `take`: a hint.

        Raises
        ------
        InputError
            With the file, record and line of the first thing that is wrong.
        """
        # Read-only whatever it is: a second kind of array would be compiled for in the middle of a large file.
        data = np.frombuffer(memoryview(piece).toreadonly(), np.uint8)
        room = data.size
        records = room // 2 + 2  # one more than can begin: `take` puts the end behind the last start
        self._codes = _with_room(self._codes, self.bases, room, growth)
        self._names = _with_room(self._names, int(self._state[NAME_BYTES]), room, growth)
        self._offsets = _with_room(self._offsets, self.records, records, growth)
        self._name_offsets = _with_room(self._name_offsets, self.records, records, growth)
        self._parse(data, self._state, self._codes, self._offsets, self._names, self._name_offsets)
        if self._state[ERROR] != OK:
            self._fail(int(self._state[ERROR]))

    def finish(self) -> None:
        """Tell the parser that the file is at its end.

        Raises
        ------
        InputError
            When the last record is not complete, or there is no record at all.
        """
        mode = int(self._state[MODE])
        if self._records_taken + self.records == 0:
            raise InputError(f"{self.source}: the file has no records; a {self.format} file was expected.")
        if self.format == "FASTA":
            if self.bases == self._offsets[self.records - 1]:
                self._fail(EMPTY_SEQUENCE)
        elif mode not in (START, QUALITY_END, QUALITY_RETURN):
            raise InputError(
                f"{self._place()}: the file ends in the middle of a FASTQ record, which has four lines; "
                "the file was cut: get it again."
            )
        self._state[MODE] = START

    def take(self, *, all_records: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the complete records and keep only what is left.

        Parameters
        ----------
        all_records : bool
            Take the last one too: right after `finish`.

        Returns
        -------
        codes, offsets, names, name_offsets : uint8[:], int64[n + 1], uint8[:], int64[n + 1]
        """
        state = self._state
        held, bases, name_bytes = self.records, self.bases, int(state[NAME_BYTES])
        count = held if all_records else self.complete_records()
        if count == held:
            self._offsets[held], self._name_offsets[held] = bases, name_bytes
        codes, offsets, names, name_offsets = self._codes, self._offsets, self._names, self._name_offsets
        end, name_end = int(offsets[count]), int(name_offsets[count])
        self._codes, self._names = codes[end:bases].copy(), names[name_end:name_bytes].copy()
        self._offsets = np.zeros(2, np.int64)
        self._name_offsets = np.zeros(2, np.int64)
        state[RECORDS], state[BASES], state[NAME_BYTES] = held - count, bases - end, name_bytes - name_end
        self._records_taken += count
        if all_records:
            # Nobody else holds these arrays yet: give the room at their ends back without a copy.
            for array, size in (
                (codes, end),
                (names, name_end),
                (offsets, count + 1),
                (name_offsets, count + 1),
            ):
                array.resize(size, refcheck=False)
        return codes[:end], offsets[: count + 1], names[:name_end], name_offsets[: count + 1]

    def complete_records(self) -> int:
        """Records that `take` would return now."""
        # In FASTA only the next '>' ends a record; in FASTQ its fourth line does.
        partial = self.format == "FASTA" or self._state[MODE] != START
        return max(self.records - int(partial), 0)

    def _place(self, next_record: int = 0) -> str:
        where = f"{self.source}, record {self._records_taken + self.records + next_record}"
        if self.records > 0 and not next_record:
            start, end = int(self._name_offsets[self.records - 1]), int(self._state[NAME_BYTES])
            name = self._names[start : min(end, start + 60)].tobytes().decode("utf-8", "replace")
            where += f" ({name!r})"
        return f"{where}, line {int(self._state[LINE])}"

    def _fail(self, error: int) -> NoReturn:
        byte = show_byte(int(self._state[BAD_BYTE]))
        first = ">" if self.format == "FASTA" else "@"
        sentences = {
            NO_HEADER: (
                f"found {byte} where a record's '{first}' was expected; "
                f"the file is damaged, or is no {self.format} file."
            ),
            EMPTY_SEQUENCE: "the record has no bases; remove the record or add its sequence.",
            BAD_BASE: f"found {byte} in a sequence; only IUPAC letters (A, C, G, T, N, …) are allowed.",
            LONE_RETURN: "found a carriage return without a newline; convert the line ends to newlines.",
            BAD_NAME: f"found {byte} in a record's name; this is no text file.",
            NO_PLUS: (
                f"found {byte} where the '+' line of a FASTQ record was expected; sequences over several "
                "lines are not supported in FASTQ, so rewrite the file with four lines a record."
            ),
            SHORT_QUALITY: "the quality string is shorter than the sequence; the record is damaged.",
            LONG_QUALITY: "the quality string is longer than the sequence; the record is damaged.",
            BAD_QUALITY: f"found {byte} in a quality string; only characters from '!' to '~' are allowed.",
        }
        raise InputError(f"{self._place(int(error == NO_HEADER))}: {sentences[error]}")


def _with_room(array: np.ndarray, used: int, room: int, growth: float) -> np.ndarray:
    if used + room <= array.size:
        return array
    larger = np.empty(max(int(used * growth), array.size * 5 // 4) + room, array.dtype)
    larger[:used] = array[:used]
    return larger


def sniff_format(start: bytes, source: str | os.PathLike[str]) -> str:
    """Tell FASTA from FASTQ by a file's first (uncompressed) bytes.

    Parameters
    ----------
    start : bytes
        From the start of the file, white space and a byte-order mark stripped.
    source : path-like
        For the sentence.

    Returns
    -------
    {"FASTA", "FASTQ"}

    Raises
    ------
    InputError
        For anything else; formats that people mix up with these are named.
    """
    if start.startswith(b">"):
        return "FASTA"
    if not start:
        raise InputError(f"{source}: the file is empty; a FASTA or FASTQ file was expected.")
    for magic, kind in _OTHER_FORMATS:
        if start.startswith(magic):
            raise InputError(f"{source}: this is {kind}; a FASTA or FASTQ file, plain or gzip, was expected.")
    if start.startswith(b"@"):
        return "FASTQ"
    raise InputError(
        f"{source}: the file starts with {show_byte(start[0])}; "
        "a FASTA file (starts with '>') or a FASTQ file (starts with '@') was expected."
    )


_OTHER_FORMATS = (
    (b"BAM\x01", "a BAM file"),
    (b"CRAM", "a CRAM file"),
    (b"@HD\t", "a SAM file"),
    (b"@SQ\t", "a SAM file"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"PK\x03\x04", "a zip file"),
    (b"\x43\x27\x41\x1a", "a 2bit file"),
    (b"LOCUS ", "a GenBank file"),
    (b"##gff", "a GFF file"),
    (b"<", "an HTML or XML file"),
)

"""The parser of FASTA and FASTQ files: the arrays that the compiled state machines fill, and its sentences.

This module imports numba: import it where it is used.
"""

from __future__ import annotations

import os
from typing import NoReturn

import numpy as np

from warpseed.errors import InputError
from warpseed.sequences.alphabet import show_byte
from warpseed.sequences.parse import (
    BAD_BASE,
    BAD_BYTE,
    BAD_NAME,
    BAD_QUALITY,
    BASES,
    EMPTY_SEQUENCE,
    ERROR,
    LINE,
    LONE_RETURN,
    LONG_QUALITY,
    MODE,
    NAME_BYTES,
    NO_HEADER,
    NO_PLUS,
    OK,
    QUALITY_END,
    QUALITY_RETURN,
    RECORDS,
    SHORT_QUALITY,
    START,
    STATE_CELLS,
    parse_fasta,
    parse_fastq,
)

__all__ = ["FastxParser", "sniff_format"]


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

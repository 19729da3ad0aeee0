"""The parser of FASTA and FASTQ files: the arrays that the compiled state machines fill, and its sentences."""

from __future__ import annotations

import os
from typing import NoReturn

import numpy as np

from warpseed.compute.vectors import WIDTH
from warpseed.errors import InputError
from warpseed.sequences.alphabet import SHOWN, show_byte, show_name
from warpseed.sequences.bgzf_format import GZIP_MAGIC
from warpseed.sequences.parse import (
    BAD_BASE,
    BAD_BYTE,
    BAD_NAME,
    BAD_QUALITY,
    BASES,
    EMPTY_SEQUENCE,
    ERROR,
    FULL,
    KEEPS_LETTERS,
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
    SEQUENCE,
    SHORT_QUALITY,
    START,
    STATE_CELLS,
    TAKEN,
    Records,
    parse_fasta,
    parse_fastq,
)

__all__ = ["FastxParser", "sniff_format"]


_RECORD_BYTES = 16
"""Of a record, at least, in most files: room for records is made by it, and more where it does not suffice."""
_MAY_BE_DAMAGED = "; as the file is compressed, it may be damaged: 'gzip -t FILE' tells"


class FastxParser:
    """The arrays of the records parsed so far, and the state between two pieces.

    Parameters
    ----------
    source : str
        What error sentences call the file.
    format : {"FASTA", "FASTQ"}
    qualities : bool
        Whether to keep the qualities of a FASTQ file.
    letters : bool
        Whether letters for several bases keep codes of their own (`warpseed.sequences.alphabet.KEPT_CODE`).
    lines : bool
        Whether to keep the line of each header of a FASTA file.
    before : (int, int)
        Records and lines of the file before what is parsed: sentences count them.
    unchecked : bool
        Whether the bytes come from a compressed file before they are checked: sentences say so.

    Notes
    -----
    The arrays grow by copying into a larger one, whose untouched part takes no memory: at the peak, twice
    what is filled. With a good `growth` they are made large enough at the second piece, and little is copied.
    """

    def __init__(
        self,
        source: str,
        format: str,
        *,
        qualities: bool = False,
        letters: bool = False,
        lines: bool = False,
        before: tuple[int, int] = (0, 0),
        unchecked: bool = False,
    ) -> None:
        self.source = source
        self.format = format
        self._parse = parse_fasta if format == "FASTA" else parse_fastq
        self._letters = letters
        self.keeps_qualities = qualities and format == "FASTQ"
        self.keeps_lines = lines and format == "FASTA"
        self._before = before
        self._doubt = _MAY_BE_DAMAGED if unchecked else ""
        self._held = _no_records()
        self.restart()

    def restart(self) -> None:
        """Forget what was parsed. The arrays stay, for what is parsed next: to have the pages of new ones cleared takes
        about as long as parsing."""
        self._records_taken, lines = self._before
        self._state = np.zeros(STATE_CELLS, np.int64)
        self._state[LINE] = 1 + lines
        self._state[KEEPS_LETTERS] = self._letters
        self._first_line_returns = False

    @property
    def bases(self) -> int:
        """Bases held at present."""
        return int(self._state[BASES])

    @property
    def records(self) -> int:
        """Records held at present, one that is not complete included."""
        return int(self._state[RECORDS])

    @property
    def line(self) -> int:
        """Line of the file, from 1, that the next byte is on."""
        return int(self._state[LINE])

    @property
    def at_line(self) -> bool:
        """Whether the next byte is the first of a line that may open a record."""
        return int(self._state[MODE]) == START

    @property
    def in_sequence(self) -> bool:
        """Whether the next byte may be a base of a FASTA file's sequence."""
        return self.at_line or int(self._state[MODE]) == SEQUENCE

    @property
    def _name_bytes(self) -> int:
        return int(self._state[NAME_BYTES])

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
        rest, records = data, data.size // _RECORD_BYTES + 2
        self._state[ERROR] = FULL
        while self._state[ERROR] == FULL:
            self._make_room(rest.size + WIDTH, records, growth)
            self._parse(rest, self._state, self._held)
            # What is held of this piece was not there when the growth was told.
            rest, records, growth = rest[self._state[TAKEN] :], 2 * records, 1.0
        if self._state[LINE] == 1:
            self._first_line_returns = self._first_line_returns or bool((data == 13).any())
        if self._state[ERROR] != OK:
            self._fail(int(self._state[ERROR]), self._doubt)

    def _make_room(self, bases: int, records: int, growth: float) -> None:
        """Have room for so many more bases, bytes of names, and records."""
        held = self._held
        self._held = Records(
            _with_room(held.codes, self.bases, bases, growth),
            _with_room(held.offsets, self.records, records, growth),
            _with_room(held.names, self._name_bytes, bases, growth),
            _with_room(held.name_offsets, self.records, records, growth),
            _with_room(held.qualities, self.bases, bases, growth) if self.keeps_qualities else held.qualities,
            _with_room(held.lines, self.records, records, growth) if self.keeps_lines else held.lines,
        )

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
        if self._state[LINE] == 1 and self._first_line_returns:
            raise InputError(
                f"{self.source}: the lines end with carriage returns only, as on old Macs; convert the line ends to "
                "newlines."
            )
        if self.format == "FASTA":
            if self.bases == self._held.offsets[self.records - 1]:
                self._fail(EMPTY_SEQUENCE)
        elif mode not in (START, QUALITY_END, QUALITY_RETURN):
            raise InputError(
                f"{self._place()}: the file ends in the middle of a FASTQ record, which has four lines; "
                "the file was cut: get it again."
            )
        self._state[MODE] = START

    def take(self, *, all_records: bool) -> Records:
        """Return the complete records and keep only what is left.

        Parameters
        ----------
        all_records : bool
            Take the last one too: right after `finish`.
        """
        held, records, bases, name_bytes = self._held, self.records, self.bases, self._name_bytes
        count = records if all_records else self.complete_records()
        sizes = self._sizes(count)
        end, _, name_end, _, qualities_end, lines_end = sizes
        self._held = _no_records()
        if not all_records:
            self._held = Records(
                codes=held.codes[end:bases].copy(),
                offsets=np.zeros(2, np.int64),
                names=held.names[name_end:name_bytes].copy(),
                name_offsets=np.zeros(2, np.int64),
                qualities=held.qualities[qualities_end:bases].copy(),
                lines=held.lines[lines_end:records].copy(),
            )
        self._state[RECORDS], self._state[BASES] = records - count, bases - end
        self._state[NAME_BYTES] = name_bytes - name_end
        self._records_taken += count
        if all_records:
            # Nobody else holds these arrays yet: give the room at their ends back without a copy.
            for array, size in zip(held, sizes, strict=True):
                array.resize(size, refcheck=False)
        return Records(*(array[:size] for array, size in zip(held, sizes, strict=True)))

    def view(self) -> Records:
        """All records, the last one whole or not, in the parser's own arrays: until it is fed or restarted."""
        return Records(*(array[:size] for array, size in zip(self._held, self._sizes(self.records), strict=True)))

    def _sizes(self, count: int) -> tuple[int, ...]:
        """How much of each array the first records take; the end of the last record is put where there is none yet."""
        held = self._held
        if count == self.records:
            held.offsets[count], held.name_offsets[count] = self.bases, self._name_bytes
        end, name_end = int(held.offsets[count]), int(held.name_offsets[count])
        qualities, lines = end if self.keeps_qualities else 0, count if self.keeps_lines else 0
        return end, count + 1, name_end, count + 1, qualities, lines

    def complete_records(self) -> int:
        """Records that `take` would return now."""
        # In FASTA only the next '>' ends a record; in FASTQ its fourth line does.
        partial = self.format == "FASTA" or self._state[MODE] != START
        return max(self.records - int(partial), 0)

    def _place(self, next_record: int = 0) -> str:
        where = f"{self.source}, record {self._records_taken + self.records + next_record}"
        if self.records > 0 and not next_record:
            start, end = int(self._held.name_offsets[self.records - 1]), self._name_bytes
            name = self._held.names[start : min(end, start + 4 * SHOWN + 4)].tobytes().decode("utf-8", "replace")
            where += f" ({show_name(name)})"
        return f"{where}, line {int(self._state[LINE])}"

    def _fail(self, error: int, doubt: str = "") -> NoReturn:
        byte = show_byte(int(self._state[BAD_BYTE]))
        first = ">" if self.format == "FASTA" else "@"
        sentences = {
            NO_HEADER: (
                f"found {byte} where a record's '{first}' was expected; "
                f"the file is damaged, or is no {self.format} file"
            ),
            EMPTY_SEQUENCE: "the record has no bases; remove the record or add its sequence",
            BAD_BASE: f"found {byte} in a sequence; only IUPAC letters (A, C, G, T, N, …) are allowed",
            LONE_RETURN: "found a carriage return without a newline; convert the line ends to newlines",
            BAD_NAME: f"found {byte} in a record's name; this is no text file",
            NO_PLUS: (
                f"found {byte} where the '+' line of a FASTQ record was expected; sequences over several "
                "lines are not supported in FASTQ, so rewrite the file with four lines a record"
            ),
            SHORT_QUALITY: "the quality string is shorter than the sequence; the record is damaged",
            LONG_QUALITY: "the quality string is longer than the sequence; the record is damaged",
            BAD_QUALITY: f"found {byte} in a quality string; only characters from '!' to '~' are allowed",
        }
        raise InputError(f"{self._place(int(error == NO_HEADER))}: {sentences[error]}{doubt}.")


def _no_records() -> Records:
    letters, places = np.empty(0, np.uint8), np.empty(0, np.int64)
    return Records(letters, places, letters, places, letters, places)


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
    if start.startswith(GZIP_MAGIC):  # within what was unpacked already
        raise InputError(f"{source}: the file was compressed twice with gzip; decompress it once.")
    if start == GZIP_MAGIC[:1]:
        raise InputError(f"{source}: the file has a single byte, the first of gzip data; it was cut: get it again.")
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

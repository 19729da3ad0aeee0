"""Lines of text from rows of any type: a line is described once, and formatted without a Python loop over rows.

A line is a tuple of parts: `Number`, `Name`, `Letter` and `Text`. What is compiled knows no type of rows: it reads
fields from the rows' bytes, by offset and size, so that it is compiled once for all types and all lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import load_word
from warpseed.compute.letters import SLACK, bytes_of, put_bytes, put_number, put_word, read_only
from warpseed.compute.pipeline import mapped
from warpseed.errors import InputError
from warpseed.sequences.names import Names

if TYPE_CHECKING:
    from warpseed.output.sorted_lines import LineMaker

__all__ = [
    "Format",
    "Formatter",
    "Group",
    "Letter",
    "Line",
    "Name",
    "Number",
    "Parts",
    "Plan",
    "Tables",
    "Text",
    "format_lines",
    "format_rows",
    "header",
    "line_putter",
    "plan_of",
    "tab_separated",
]

_ROWS_AT_ONCE = 1 << 17
"""As many as a thread is given. Each call waits for the interpreter lock, which the other threads want too, so few long
calls are better."""
_BYTES_AT_ONCE = 1 << 26
_WORD = 8
"""Bytes that are read or written together."""
_NUMBER_BYTES = {1: 4, 2: 6, 4: 11, 8: 20}
"""The longest number of a field of so many bytes, its sign included."""

_MINUS, _DOT = (ord(c) for c in "-.")
_SPACES = 0x2020_2020_2020_2020


class Number(NamedTuple):
    """The number that a field holds, in decimal."""

    field: str
    first: int = 0
    """what stands for 0: 1 for places that are counted from 1"""
    width: int = 0
    """bytes that it takes at least, spaces before the number among them"""


class Name(NamedTuple):
    """The name in a table, 'query' or 'contig', of the number that a field holds; a dot for an empty name."""

    field: str
    table: str
    padded: bool = False
    """of a contig: whether spaces behind it make it as long as the longest one"""


class Letter(NamedTuple):
    """The letter for the number that a field holds, from 0 on; such as b"+-" for a strand. Eight letters at most."""

    field: str
    letters: bytes


class Text(NamedTuple):
    """The same text in every line."""

    text: bytes


Line: TypeAlias = tuple[Number | Name | Letter | Text, ...]


class Group(NamedTuple):
    """What is written of a query's hits on one strand."""

    heading: Line
    """a line before them, whether there are any or not; its only field is 'query'"""
    line: Line
    """that of each"""


class Format(NamedTuple):
    """What goes into a file of lines."""

    line: Line
    heading: bytes = b""
    """what goes before the first line"""
    preset: Literal["bed", "paf", "bam"] | None = None
    """what such lines are to htslib, sorted: it can index them"""
    maker: Callable[[], LineMaker] | None = None
    """makes what makes the lines, where `line` does not say it; they are always sorted then"""
    groups: tuple[Group, ...] = ()
    """of each strand in turn, where a query's hits stand strand by strand below headings, and `line` says nothing"""


_TABLES = ("contig", "query")
_NUMBER, _LETTER, _NOTHING, _END, _ALIGNED, _FIRST_TABLE = range(6)
_KINDS = {"Number": _NUMBER, "Letter": _LETTER}


def tab_separated(*columns: Number | Name | Letter | Text) -> Line:
    """A line of columns with a tab between them and a newline behind."""
    parts: list[Number | Name | Letter | Text] = []
    for column in columns:
        parts += [Text(b"\t"), column] if parts else [column]
    return (*parts, Text(b"\n"))


def header(line: Line) -> bytes:
    """A line with the name of every column's field, separated as the columns are."""
    return b"".join(part.text if isinstance(part, Text) else part.field.encode() for part in line)


class Parts(NamedTuple):
    """The parts of a line as compiled code reads them, an entry each: up to eight bytes of text, then a value."""

    texts: np.ndarray
    """uint64[p], a byte each, the first in the lowest"""
    sizes: np.ndarray
    """int64[p], bytes of each text"""
    letters: np.ndarray
    """uint64[p], the letters that a value stands for, as the texts"""
    kinds: np.ndarray
    """int64[p], the kind of each value; the last part is the line's end"""
    places: np.ndarray
    """int64[p], where the eight bytes begin in a row that end with the field: it may be before the row"""
    spare_bits: np.ndarray
    """int64[p], bits of these eight bytes that are not the field's"""
    signed: np.ndarray
    """int64[p], whether the field is"""
    firsts: np.ndarray
    """int64[p], what stands for 0; of the kind _ALIGNED, as the next"""
    widths: np.ndarray
    """int64[p], bytes of the number at least"""


class Tables(NamedTuple):
    """The names of contigs and queries as compiled code reads them; each text has at least eight bytes."""

    contigs: np.ndarray
    """uint8[]"""
    contig_ends: np.ndarray
    """int64[c + 1], the offsets of the contigs' Names"""
    queries: np.ndarray
    """uint8[]"""
    query_ends: np.ndarray
    """int64[n + 1], the offsets of the queries' Names"""


class Plan(NamedTuple):
    """What is known of a line without its names."""

    parts: Parts
    room: int
    """bytes that a line takes at most, its names left out, but for the dot that stands for one"""
    tables: tuple[str, ...]
    """tables that the line names"""


@lru_cache
def plan_of(line: Line, dtype: np.dtype) -> Plan:
    """What is known of a line of rows of this type.

    Raises
    ------
    InputError : the line names a field that the rows do not have
    """
    parts: list[tuple[bytes, bytes, int, int, int, int, int, int]] = []
    text, room = b"", 0
    for part in (*line, None):
        if isinstance(part, Text):
            text += part.text
            continue
        while len(text) > _WORD:
            parts.append((text[:_WORD], b"", _NOTHING, 0, 0, 0, 0, 0))
            text = text[_WORD:]
        if part is None:
            parts.append((text, b"", _END, 0, 0, 0, 0, 0))
            break
        kind = _FIRST_TABLE + _TABLES.index(part.table) if isinstance(part, Name) else _KINDS[type(part).__name__]
        if part.field not in (dtype.names or ()):
            known = ", ".join(dtype.names or ())
            raise InputError(f"these hits have no field '{part.field}', which the format writes; they have {known}.")
        field, offset = dtype.fields[part.field][:2]  # type: ignore[index]
        if field.kind not in "iu" or field != field.newbyteorder("<"):
            raise TypeError(f"field {part.field} is {field}, but a little-endian integer was expected")
        size = field.itemsize
        letters = part.letters if isinstance(part, Letter) else b""
        first, width = part[1:] if isinstance(part, Number) else (0, 0)
        kind = _ALIGNED if first or width else kind
        room += max(_NUMBER_BYTES[size] + bool(first), width) if isinstance(part, Number) else 1
        place = offset + size - _WORD
        parts.append((text, letters, kind, place, 8 * (_WORD - size), int(field.kind == "i"), first, width))
        text = b""
    texts, letters_of, *numbers = zip(*parts, strict=True)
    sizes = np.array([len(text) for text in texts], np.int64)
    columns = Parts(_words(texts), sizes, _words(letters_of), *(np.array(column, np.int64) for column in numbers))
    tables = tuple(part.table for part in line if isinstance(part, Name))
    return Plan(columns, int(sizes.sum()) + room, tables)


def _words(texts: Iterable[bytes]) -> np.ndarray:
    """Texts of up to eight bytes as uint64[n], the first byte in the lowest."""
    return np.array([int.from_bytes(text, "little") for text in texts], np.uint64)


def line_putter(put_word: Any, put_number: Any, put_bytes: Any) -> Any:
    """What puts a line where these functions put words, numbers and bytes (see `warpseed.compute.letters`): a function
    of (rows, begin, parts, names, first_query, out, to).

    Parameters of that function
    ---------------------------
    rows : uint8[] of at least eight, the bytes of rows
    begin : int64, where the row begins
    parts : Parts
    names : Tables
    first_query : int64, the number of the query whose name is the first
    out : uint8[]
    to : int64, where the line begins in it

    It returns the place behind the line, or -1 where a name is missing.
    """

    @scalar
    def put_name(out, to, which, text, ends):
        """The name of a number in a table, a dot for an empty one; -1 where the table has no such name."""
        if which < int64(0) or which >= int64(ends.shape[0]) - int64(1):
            return int64(-1)
        if ends[which] == ends[which + 1]:  # an empty name would shift the columns
            put_word(out, to, uint64(_DOT), int64(1))
            return to + int64(1)
        return put_bytes(out, to, text, ends[which], ends[which + 1])

    @scalar
    def put_signed(out, to, value):
        """The digits of an int64, behind a minus where it is negative."""
        if value < int64(0):
            put_word(out, to, uint64(_MINUS), int64(1))
            return put_number(out, to + int64(1), ~uint64(value) + uint64(1))
        return put_number(out, to, uint64(value))

    @scalar
    def put_aligned(out, to, value, width):
        """As `put_signed`, behind as many spaces as make it `width` bytes."""
        size, rest = int64(1), uint64(value)
        if value < int64(0):
            size, rest = int64(2), ~uint64(value) + uint64(1)
        while rest >= uint64(10):
            size, rest = size + int64(1), rest // uint64(10)
        while size < width:
            spaces = min(width - size, int64(_WORD))
            put_word(out, to, uint64(_SPACES), spaces)
            to, size = to + spaces, size + spaces
        return put_signed(out, to, value)

    @inlined
    def put_line(rows, begin, parts, names, first_query, out, to):
        texts, sizes, letters, kinds, places, spare_bits, signed, firsts, widths = parts
        contigs, contig_ends, queries, query_ends = names
        p = int64(0)
        while True:
            put_word(out, to, texts[p], sizes[p])
            to += sizes[p]
            kind = kinds[p]
            if kind == _END:
                return to
            # The eight bytes that end with the field, of which the first row lacks some that are not the field's.
            at = begin + places[p]
            word = load_word(rows, at) if at >= int64(0) else load_word(rows, int64(0)) << uint64(int64(-8) * at)
            value = uint64(int64(word) >> spare_bits[p]) if signed[p] else word >> uint64(spare_bits[p])
            if kind == _NUMBER:
                to = put_signed(out, to, int64(value)) if signed[p] else put_number(out, to, value)
            elif kind == _LETTER:
                put_word(out, to, (letters[p] >> ((value & uint64(7)) << uint64(3))) & uint64(0xFF), int64(1))
                to += int64(1)
            elif kind == _ALIGNED:
                to = put_aligned(out, to, int64(value) + firsts[p], widths[p])
            elif kind != _NOTHING:
                if kind == _FIRST_TABLE:
                    to = put_name(out, to, int64(value), contigs, contig_ends)
                else:
                    to = put_name(out, to, int64(value) - first_query, queries, query_ends)
                if to < int64(0):
                    return int64(-1)
            p += int64(1)

    return put_line


_put_line = line_putter(put_word, put_number, put_bytes)


@scalar
def format_lines(rows, width, parts, names, first_query, out, ends):
    """Format rows, uint8[n * width]; returns the bytes written, or -1 - row where a name of a row is missing.

    SLACK bytes behind what is written are room for whole words.

    Parameters
    ----------
    parts, names, first_query : as of `line_putter`
    ends : int64[n], filled with the place behind each line
    """
    to = int64(0)
    for row in range(ends.shape[0]):
        to = _put_line(rows, int64(row) * width, parts, names, first_query, out, to)
        if to < int64(0):
            return int64(-1) - int64(row)
        ends[row] = to
    return to


class Formatter:
    """Lines of rows of one type, with the names that they stand for; used from several threads.

    Parameters
    ----------
    line : the parts of a line
    dtype : the rows' type; the fields that the line names are integers of any size
    tables : names of 'query' and 'contig'
    first_query : number of the query whose name is the first of its table
    """

    def __init__(self, line: Line, dtype: np.dtype, tables: Mapping[str, Names], first_query: int = 0) -> None:
        self._dtype = dtype
        self._plan = plan_of(line, dtype)
        nothing = Names.of([])
        named = [tables.get(table, nothing) for table in _TABLES]
        self._names = Tables(*(part for text, offsets in named for part in (bytes_of(text), read_only(offsets))))
        self._first_query = first_query
        # A name may be as long as a header line: fewer rows at once then.
        longest = (int(np.diff(tables[table].offsets).max(initial=1)) for table in self._plan.tables)
        self._room = self._plan.room + sum(longest)
        self.rows_at_once = max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // self._room))
        """rows that are best formatted together"""

    def format(self, rows: np.ndarray, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """The lines of rows, of which the first has number `first`: uint8[], and where each ends in it, int64[n].

        Raises
        ------
        InputError : a row's query or contig has no name
        """
        rows = np.asarray(rows, self._dtype)
        out, ends = np.empty(len(rows) * self._room + SLACK, np.uint8), np.empty(len(rows), np.int64)
        parts, width = self._plan.parts, self._dtype.itemsize
        used = format_lines(bytes_of(rows), width, parts, self._names, self._first_query, out, ends)
        if used < 0:
            raise InputError(f"row {first - used} of the results names a query or a contig that is not there.")
        return out[:used], ends

    def format_all(self, rows: np.ndarray, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """As `format`, some rows after the other: the lines, uint8[], and the bytes of each, int64[n]."""
        at_once = range(0, len(rows), self.rows_at_once)
        pieces = [self.format(rows[begin : begin + self.rows_at_once], first + begin) for begin in at_once]
        lengths = [np.diff(ends, prepend=0) for _, ends in pieces]
        text = np.concatenate([np.empty(0, np.uint8), *(text for text, _ in pieces)])
        return text, np.concatenate([np.empty(0, np.int64), *lengths])


def format_rows(
    formatter: Formatter, count: int, rows_of: Callable[[int, int], np.ndarray], threads: int = 1
) -> Iterator[memoryview]:
    """Lines of rows, some thousand at a time, in order; the same for any number of threads.

    Parameters
    ----------
    count : number of rows
    rows_of : function of (first, last) that gives these rows; it is called from several threads

    Raises
    ------
    InputError : a row's query or contig has no name
    """

    def piece(first: int) -> memoryview:
        rows = rows_of(first, min(first + formatter.rows_at_once, count))
        return formatter.format(rows, first)[0].data

    return mapped(range(0, count, formatter.rows_at_once), piece, threads)

"""Lines of text from rows of any type: a line is described once, and formatted without a Python loop over rows.

A line is a tuple of parts: `Number`, `Name`, `Sign` and `Text`. What is compiled knows no type of rows: it reads fields
from the rows' bytes, by offset and size, so that it is compiled once for all types and all lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint8, uint64
from warpseed.compute.intrinsics import load_word
from warpseed.compute.letters import bytes_of, put_bytes, put_number, read_only
from warpseed.compute.pipeline import mapped
from warpseed.errors import InputError

__all__ = [
    "Format",
    "Formatter",
    "Line",
    "Name",
    "Names",
    "Number",
    "Sign",
    "Text",
    "format_rows",
    "header",
    "tab_separated",
]

_ROWS_AT_ONCE = 1 << 17
"""As many as a thread is given: between two calls it would wait for the interpreter, which the others want as well."""
_BYTES_AT_ONCE = 1 << 26
_NUMBER_BYTES = 20
"""The longest number of 64 bits, its sign included."""

_PLUS, _MINUS, _DOT = (ord(c) for c in "+-.")


class Number(NamedTuple):
    """The number that a field holds, in decimal."""

    field: str


class Name(NamedTuple):
    """The name in a table, 'query' or 'contig', of the number that a field holds; a dot for an empty name."""

    field: str
    table: str


class Sign(NamedTuple):
    """'+' where a field holds 0, else '-'."""

    field: str


class Text(NamedTuple):
    """The same text in every line."""

    text: bytes


Line: TypeAlias = tuple[Number | Name | Sign | Text, ...]


class Format(NamedTuple):
    """What goes into a file of lines."""

    line: Line
    heading: bytes = b""
    """what goes before the first line"""
    preset: Literal["bed"] | None = None
    """the name that tabix has for such lines, sorted"""


_TABLES = ("contig", "query")
_NUMBER, _SIGN, _NOTHING, _FIRST_TABLE = range(4)
_KINDS = {"Number": _NUMBER, "Sign": _SIGN}


class Names(NamedTuple):
    """Names back to back, as they are in a file; they may repeat and may be empty."""

    text: np.ndarray
    """uint8[]"""
    offsets: np.ndarray
    """int64[n + 1], name i is text[offsets[i]:offsets[i + 1]]"""

    @classmethod
    def of(cls, names: Iterable[str]) -> Names:
        encoded = [name.encode() for name in names]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(name) for name in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    def decoded(self) -> np.ndarray:
        """All names, object[n]: one decoding and one cut for all, as a name holds no white space."""
        ends = np.insert(self.text, self.offsets[1:-1], ord("\n"))
        names = ends.tobytes().decode("utf-8", "replace").split("\n")
        return np.array(names[: len(self.offsets) - 1], dtype=object)


def tab_separated(*columns: Number | Name | Sign | Text) -> Line:
    """A line of columns with a tab between them and a newline behind."""
    parts: list[Number | Name | Sign | Text] = []
    for column in columns:
        parts += [Text(b"\t"), column] if parts else [column]
    return (*parts, Text(b"\n"))


def header(line: Line) -> bytes:
    """A line with the name of every column's field, separated as the columns are."""
    return b"".join(part.text if isinstance(part, Text) else part.field.encode() for part in line)


class _Plan(NamedTuple):
    """A line as compiled code reads it: a text, then a value, part by part."""

    parts: np.ndarray
    """int64[p, 6]: where the text begins and ends, the kind of value, then where the eight bytes begin in a row that
    end with the field (which may be before the row), the bits of these that are not the field's, whether it is signed
    """
    texts: np.ndarray
    """uint8[], and eight bytes more"""
    room: int
    """bytes that a line takes at most, its names left out"""
    tables: tuple[str, ...]
    """tables that the line names"""


def _plan(line: Line, dtype: np.dtype) -> _Plan:
    parts, texts, first = [], b"", 0
    for part in (*line, Text(b"")):
        if isinstance(part, Text):
            texts += part.text
            continue
        kind = _FIRST_TABLE + _TABLES.index(part.table) if isinstance(part, Name) else _KINDS[type(part).__name__]
        field, offset = dtype.fields[part.field][:2]  # type: ignore[index]
        if field.kind not in "iu" or field != field.newbyteorder("<"):
            raise TypeError(f"field {part.field} is {field}, but a little-endian integer was expected")
        size = field.itemsize
        parts.append((first, len(texts), kind, offset + size - 8, 64 - 8 * size, int(field.kind == "i")))
        first = len(texts)
    parts.append((first, len(texts), _NOTHING, 0, 0, 0))
    tables = tuple(part.table for part in line if isinstance(part, Name))
    room = len(texts) + _NUMBER_BYTES * len(parts)
    return _Plan(np.array(parts, np.int64), np.frombuffer(texts + bytes(8), np.uint8), room, tables)


@scalar
def _field(rows, at, spare_bits, signed):
    """A field, of which the eight bytes end that begin at `at`, as 64 bits with the sign carried through."""
    begin = max(at, int64(0))
    word = load_word(rows, begin) << uint64(int64(8) * (begin - at))
    if signed:
        return uint64(int64(word) >> spare_bits)
    return word >> uint64(spare_bits)


@scalar
def _format(rows, width, plan, names, first_query, out, ends):
    """Format rows, uint8[n * width]; returns the bytes written, or -1 - row where a name of a row is missing.

    Arrays of bytes have at least eight; eight bytes behind what is written are room for whole words.

    Parameters
    ----------
    plan : (parts, texts) of a _Plan
    names : (text, offsets) of the contigs' names, then of the queries'
    ends : int64[n], filled with the place behind each line
    """
    parts, texts = plan
    contigs, contig_ends, queries, query_ends = names
    to = int64(0)
    for row in range(ends.shape[0]):
        begin = int64(row) * width
        for p in range(parts.shape[0]):
            to = put_bytes(out, to, texts, parts[p, 0], parts[p, 1])
            kind = parts[p, 2]
            if kind == _NOTHING:
                continue
            value = _field(rows, begin + parts[p, 3], parts[p, 4], parts[p, 5])
            if kind == _SIGN:
                out[to] = uint8(_MINUS if value else _PLUS)
                to += int64(1)
            elif kind == _NUMBER:
                if parts[p, 5] and int64(value) < int64(0):
                    out[to] = uint8(_MINUS)
                    to += int64(1)
                    value = ~value + uint64(1)
                to = put_number(out, to, value)
            else:
                in_contigs = kind == _FIRST_TABLE
                name_ends = contig_ends if in_contigs else query_ends
                which = int64(value) - (int64(0) if in_contigs else first_query)
                if which < int64(0) or which >= int64(name_ends.shape[0]) - int64(1):
                    return int64(-1) - int64(row)
                out[to] = uint8(_DOT)  # an empty name would shift the columns
                end = put_bytes(out, to, contigs if in_contigs else queries, name_ends[which], name_ends[which + 1])
                to = max(end, to + int64(name_ends[which] == name_ends[which + 1]))
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
        self._plan = _plan(line, dtype)
        nothing = Names.of([])
        named = [tables.get(table, nothing) for table in _TABLES]
        self._names = tuple(part for text, offsets in named for part in (bytes_of(text), read_only(offsets)))
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
        out, ends = np.empty(len(rows) * self._room + 8, np.uint8), np.empty(len(rows), np.int64)
        plan = self._plan[:2]
        used = _format(bytes_of(rows), self._dtype.itemsize, plan, self._names, self._first_query, out, ends)
        if used < 0:
            raise InputError(f"row {first - used} of the results names a query or a contig that is not there.")
        return out[:used], ends


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

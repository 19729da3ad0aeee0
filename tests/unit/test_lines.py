"""Lines from rows of any type: every kind of part, every size of field, every number of threads."""

from __future__ import annotations

import random

import numpy as np
import pytest
from warpseed.errors import InputError
from warpseed.output import lines
from warpseed.output.lines import Formatter, Letter, Line, Name, Number, Text, format_rows, header, tab_separated
from warpseed.sequences.names import Names

KINDS = ["<i1", "<u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8"]
TABLES = {"contig": Names.of(["chr1", "", "a-long-name-of-a-contig"]), "query": Names.of(["q", "число", "xyz" * 20])}
MATCHES = np.dtype([("strand", "u1"), ("length", "<u2"), ("query", "<u4"), ("contig", "i1"), ("gap", "<i4")])
"""A type that no system has: other fields, other sizes, and the first one is a single byte."""
PAF_LIKE = tab_separated(
    Name("query", "query"), Number("length"), Letter("strand", b"+-"), Name("contig", "contig"), Number("gap"),
    Text(b"tp:A:P"),
)  # fmt: skip


def text_of(
    line: Line, rows: np.ndarray, tables: dict[str, Names] = TABLES, *, first_query: int = 0, threads: int = 1
) -> bytes:
    formatter = Formatter(line, rows.dtype, tables, first_query)
    pieces = format_rows(formatter, len(rows), lambda first, last: rows[first:last], threads)
    return b"".join(bytes(piece) for piece in pieces)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_every_size_and_length(kind: str) -> None:
    limits = np.iinfo(kind)
    edges = {10**i + d for i in range(20) for d in (-1, 0, 1)} | {limits.max, limits.max - 1, limits.min, 0, -1, -10}
    numbers = sorted(number for number in edges if limits.min <= number <= limits.max)
    rows = np.zeros(len(numbers), np.dtype([("number", kind)]))
    rows["number"] = numbers
    assert text_of((Number("number"), Text(b"\n")), rows).decode().split() == [str(number) for number in numbers]


@pytest.mark.parametrize("width", [1, 8, 9, 20, 25])
def test_numbers_in_columns(width: int) -> None:
    numbers = [0, 9, 10, 99, 99_999_998, 99_999_999, 10**18, -1, -9_999_999, -99_999_999, 1 - 2**63, 2**63 - 2]
    rows = np.array(numbers, "<i8").view([("number", "<i8")])
    for first in (0, 1):
        line = (Number("number", first=first, width=width), Text(b"\n"))
        assert text_of(line, rows).decode().split("\n")[:-1] == [f"{number + first:{width}}" for number in numbers]
    small = np.array([0, 9, 255], "u1").view([("number", "u1")])
    assert text_of((Number("number", first=1, width=4),), small) == b"   1  10 256"


def test_a_single_row_of_a_single_byte() -> None:
    rows = np.array([(-7,)], np.dtype([("number", "i1")]))
    assert text_of((Number("number"),), rows) == b"-7"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("at_once", [1, 7, 1 << 14])
def test_rows_of_another_type_and_every_kind_of_part(
    monkeypatch: pytest.MonkeyPatch, threads: int, at_once: int
) -> None:
    monkeypatch.setattr(lines, "_ROWS_AT_ONCE", at_once)
    draw = random.Random(2)
    rows = np.empty(500, MATCHES)
    for name, first, last in (
        ("strand", 0, 1), ("length", 0, 65535), ("query", 0, 2), ("contig", 0, 2), ("gap", -(2**31), 2**31 - 1)
    ):  # fmt: skip
        rows[name] = [draw.randint(first, last) for _ in rows]
    queries, contigs = ["q", "число", "xyz" * 20], ["chr1", ".", "a-long-name-of-a-contig"]
    expected = "".join(
        f"{queries[query]}\t{length}\t{'+-'[strand]}\t{contigs[contig]}\t{gap}\ttp:A:P\n"
        for strand, length, query, contig, gap in rows.tolist()
    )
    assert text_of(PAF_LIKE, rows, threads=threads).decode() == expected


def test_queries_are_numbered_from_the_first_of_their_batch() -> None:
    rows = np.zeros(2, MATCHES)
    rows["query"] = [1000, 1002]
    line = (Name("query", "query"), Text(b" "))
    assert text_of(line, rows, first_query=1000).decode() == f"q {'xyz' * 20} "


def test_a_header_names_the_fields() -> None:
    line = tab_separated(Name("query", "query"), Number("length"), Letter("strand", b"+-"))
    assert header(line) == b"query\tlength\tstrand\n"


@pytest.mark.parametrize(("field", "number"), [("query", 3), ("query", 2**32 - 1), ("contig", -1), ("contig", 3)])
def test_a_number_without_a_name_is_said(field: str, number: int) -> None:
    rows = np.zeros(40, MATCHES)
    rows[field][33] = number
    with pytest.raises(InputError, match="^row 34 of the results names a query or a contig that is not there"):
        text_of(PAF_LIKE, rows)


def test_fields_that_are_no_little_endian_integers_are_refused() -> None:
    for kind in (">i4", "<f8", "S3"):
        with pytest.raises(TypeError, match="a little-endian integer was expected"):
            text_of((Number("number"),), np.zeros(1, np.dtype([("number", kind)])))


def test_names_are_decoded_all_at_once() -> None:
    assert Names.of(["a", "", "число"]).decoded().tolist() == ["a", "", "число"]
    assert Names.of([]).decoded().tolist() == []
    assert Names(np.frombuffer(b"na\xefve", np.uint8), np.array([0, 5])).decoded().tolist() == ["na\ufffdve"]


def test_rows_without_a_field_of_the_line_are_refused() -> None:
    rows = np.dtype([("start", "<i8"), ("end", "<i8")])
    with pytest.raises(InputError, match="no field 'kind', which the format writes; they have start, end"):
        Formatter(tab_separated(Number("start"), Letter("kind", b"=XDI")), rows, {})

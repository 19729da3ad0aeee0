"""Lines that a device makes: put as the host puts them, and files that are the same, byte by byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from device_files import SEARCHES, write_file, write_queries
from test_gpu_searches import index, pretended
from warpseed.compute import device_stream
from warpseed.compute import gpu as device
from warpseed.compute.compiled import int64, scalar
from warpseed.compute.letters import bytes_of
from warpseed.kmer_seeds.gpu_output import make_hit_rows
from warpseed.output import device_lines, from_device
from warpseed.output.hits import BED
from warpseed.output.lines import Formatter, Letter, Name, Number, Tables, plan_of, tab_separated
from warpseed.output.rows import HIT_ROW
from warpseed.sequences.names import Names

__all__ = ["index", "pretended"]


@scalar
def put_one(rows, begin, parts, names, out):
    """The size of a line, and the end of the same line, put from the tenth byte on."""
    size = device_lines._size_of_line(rows, begin, parts, names, int64(0), out, int64(0))
    return size, device_lines._put_line(rows, begin, parts, names, int64(0), out, int64(10))


def test_lines_are_put_as_the_host_puts_them() -> None:
    """Numbers of all lengths and signs, names of none to many bytes; nothing is written beside the line."""
    row = np.dtype([("query", "<i8"), ("big", "<i8"), ("small", "<i4"), ("tiny", "i1"), ("contig", "<i4")])
    line = tab_separated(
        Name("contig", "contig"), Number("big"), Number("small"), Name("query", "query"), Letter("tiny", b"+-XDI*"),
        Number("tiny"),
    )  # fmt: skip
    tables = {"query": Names.of(["", "q", "a name of forty bytes and more, all of it"]), "contig": Names.of(["chrI"])}
    plan = plan_of(line, row)
    bigs = [0, 9, 10, 99_999_999, 100_000_000, 10**16 - 1, 10**16, 2**63 - 1, -1, -10, -(10**17)]
    rows = np.zeros(len(bigs), row)
    rows["big"], rows["small"] = bigs, [each % 2**31 for each in bigs]
    rows["query"], rows["tiny"] = np.arange(len(bigs)) % 3, np.arange(len(bigs)) % 6
    expected, ends = Formatter(line, row, tables).format(rows)
    texts = (tables["contig"], tables["query"])
    names = Tables(*(part for text, offsets in texts for part in (bytes_of(text), offsets)))
    for i, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        out = np.full(300, 0xAB, np.uint8)
        size, stop = put_one(bytes_of(rows), i * row.itemsize, plan.parts, names, out)
        text = expected[begin:end].tobytes()
        assert (size, stop) == (len(text), 10 + len(text)) and size <= plan.room + 40 + 4
        assert out.tobytes() == b"\xab" * 10 + text + b"\xab" * (300 - stop)


@SEARCHES
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("device", ["gpu", "gpu:0,1"])
def test_files_are_those_of_the_cpu(
    index: Any, pretended: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: Any, threads: int, device: str
) -> None:
    reads = write_queries(index, tmp_path / "reads.fa", count=150, name="read_{} and more" if threads == 1 else "{}")
    expected = write_file(how, index, reads, tmp_path / "cpu", "cpu", threads)
    monkeypatch.setattr(device_stream, "LEAST_BATCH", 30)
    for chunk in (1 << 20, 20, 3):
        monkeypatch.setattr(from_device, "_CHUNK", chunk)
        assert write_file(how, index, reads, tmp_path / "gpu", device, threads) == expected
    assert len(expected) > 500
    assert ("put_lines" in pretended[1].launched) == how.on_device


def test_lines_with_long_names_are_made_by_the_host(index: Any, pretended: Any, tmp_path: Path) -> None:
    """Room for the longest line is kept for every hit."""
    how = SEARCHES.args[1][0]
    reads = write_queries(index, tmp_path / "reads.fa", count=50, name="r" * device_lines._LONGEST_LINE + "{}")
    expected = write_file(how, index, reads, tmp_path / "cpu", "cpu", 1)
    assert write_file(how, index, reads, tmp_path / "gpu", "gpu", 1) == expected
    assert "put_lines" not in pretended[1].launched and "append_exact" in pretended[1].launched


def test_one_query_has_room_for_its_hits_and_none_for_their_lines(
    index: Any, pretended: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    how = SEARCHES.args[1][0]
    (tmp_path / "base.fa").write_text(">base\nA\n")
    expected = write_file(how, index, tmp_path / "base.fa", tmp_path / "cpu", "cpu", 1)
    assert write_file(how, index, tmp_path / "base.fa", tmp_path / "gpu", "gpu", 1) == expected
    assert "put_lines" in pretended[1].launched
    monkeypatch.setattr(device, "_probe", lambda size: None)
    pretended[0].largest = len(expected)
    pretended[1].launched.clear()
    assert write_file(how, index, tmp_path / "base.fa", tmp_path / "gpu", "gpu", 1) == expected
    assert "put_lines" not in pretended[1].launched and "append_exact" in pretended[1].launched


def test_another_takes_the_memory_while_lines_are_made(
    index: Any, pretended: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is done with hits that lie on the device takes no halves: where it needs more, the host goes on."""
    how, make_rows = SEARCHES.args[1][0], pretended[1].make_hit_rows
    reads = write_queries(index, tmp_path / "reads.fa", count=50, name="r{}")
    expected = write_file(how, index, reads, tmp_path / "cpu", "cpu", 1)
    monkeypatch.setattr(from_device, "_CHUNK", 5)

    def make_and_leave_none(*arguments: Any) -> None:
        pretended[0].largest = 0
        make_rows(*arguments)

    monkeypatch.setattr(pretended[1], "make_hit_rows", make_and_leave_none)
    assert write_file(how, index, reads, tmp_path / "gpu", "gpu", 1) == expected
    assert pretended[1].launched.count("make_hit_rows") > 1


def test_the_number_of_a_query_is_not_for_devices(index: Any) -> None:
    """Queries are numbered in their batch there."""
    by_number = tab_separated(Number("query"), Number("start"))
    assert device_lines.LinesWanted.of(by_number, HIT_ROW, make_hit_rows, index) is None
    assert device_lines.LinesWanted.of(None, HIT_ROW, make_hit_rows, index) is None
    by_name = device_lines.LinesWanted.of(BED, HIT_ROW, make_hit_rows, index)
    assert by_name is not None and by_name.line == BED

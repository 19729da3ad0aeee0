"""The index beside sorted hits: what htslib finds by it is what lies there, and it reads no more than it has to."""

from __future__ import annotations

import gzip
import os
import random
import struct
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy.lib.recfunctions as rfn
import pysam
import pytest
from interruptions import interrupted
from made_up_hits import batches_of, hits_of, sorted_text
from warpseed.errors import InputError
from warpseed.kmer_seeds.output import LINES, write_hits
from warpseed.mems.output import LINES as MEM_LINES
from warpseed.mems.output import MATCH_ROW
from warpseed.output.hits import Hits
from warpseed.output.sorted_lines import merge_run_files, open_run_writer, open_sorted
from warpseed.sequences.bgzf_format import END_BLOCK

WINDOW = 1 << 14
NUMBERS = 37450
"""The bin of a .tbi behind the last one."""
NARROW = {"x": 40, "long": 30_000_000, "none": 5000, "y|1": 200_000}
WIDE = {"x": 40, "wheat": 1 << 30, "y|1": 200_000}


def draw(contigs: dict[str, int], seed: int, count: int = 30_000) -> Hits:
    """Intervals of one base to a hundred thousand, at window borders, in clusters, and with deserts between them."""
    draw = random.Random(seed)
    lengths = list(contigs.values())
    rows = []
    for query in range(count):
        contig = draw.choice([i for i, name in enumerate(contigs) if name != "none"])
        length = min(draw.choice([1, 20, 20, 20, 20, 300, 70_000]), lengths[contig])
        middle = draw.choice([draw.randrange(lengths[contig]), WINDOW * draw.randrange(lengths[contig] // WINDOW + 1)])
        start = min(max(0, middle // 3 - length + draw.randint(0, length)), lengths[contig] - length)
        rows.append((query % 50, contig, start, start + length, query % 2, 0))
    return hits_of(sorted(set(rows)), [f"q{i}" for i in range(50)], contigs)


def regions(contigs: dict[str, int], seed: int) -> list[tuple[str, int, int]]:
    choose = random.Random(seed)
    chosen = []
    for _ in range(150):
        name = choose.choice([name for name in contigs if name != "none"])
        start = choose.choice([0, choose.randrange(contigs[name] // 3 + 1), WINDOW * choose.randrange(50)])
        start = min(start, contigs[name] - 1)
        chosen.append((name, start, min(start + choose.choice([1, 50, 40_000, 1 << 29]), contigs[name])))
    return chosen


@pytest.mark.parametrize(("contigs", "ending"), [(NARROW, ".tbi"), (WIDE, ".csi")])
def test_htslib_finds_what_lies_in_a_region(tmp_path: Path, contigs: dict[str, int], ending: str) -> None:
    hits = draw(contigs, 1)
    path = os.fspath(tmp_path / "h.bed.gz")
    write_hits(path, hits, sorted=True, threads=2)
    assert {each.name for each in tmp_path.iterdir()} == {"h.bed.gz", f"h.bed.gz{ending}"}
    text = sorted_text(hits, "bed").decode()
    assert gzip.decompress(Path(path).read_bytes()).decode() == text
    lines = [(line, *line.split("\t")[:3]) for line in text.splitlines()]
    found = 0
    with pysam.TabixFile(path, index=path + ending) as table:
        assert table.contigs == [name for name in contigs if name != "none"]
        for name, start, end in regions(contigs, 2):
            expected = [line for line, contig, a, b in lines if contig == name and int(a) < end and int(b) > start]
            assert list(table.fetch(name, start, end)) == expected, (name, start, end)
            found += len(expected)
    assert found > 10_000


@pytest.mark.parametrize(("contigs", "ending"), [(NARROW, ".tbi"), (WIDE, ".csi")])
@pytest.mark.parametrize("format", ["bed", "paf"])
def test_htslib_reads_all_lines(tmp_path: Path, contigs: dict[str, int], ending: str, format: str) -> None:
    """Without a region it begins where the first contig with lines does; here several have none."""
    contigs = {"first": 5000, **contigs, "last": 50}
    last = list(contigs).index("y|1")
    hits = hits_of([(0, 2, 70, 90, 0, 0), (0, last, 5, 25, 1, 0), (1, last, 100_000, 100_020, 0, 0)], "ab", contigs)
    matches = rfn.append_fields(hits.rows(), MATCH_ROW.names[6:], [[20] * 3] * 6, usemask=False).astype(MATCH_ROW)
    path = os.fspath(tmp_path / f"h.{format}.gz")
    with open_sorted(path, MEM_LINES[format]) as writer:
        writer.put(replace(hits, rows_of=lambda a, b: matches[a:b], dtype=MATCH_ROW))
    text = gzip.decompress(Path(path).read_bytes()).decode().splitlines()
    with pysam.TabixFile(path, index=path + ending) as table:
        assert list(table.fetch()) == text and len(text) == 3
        assert table.contigs == [list(contigs)[2], "y|1"]
        assert list(table.fetch("y|1", 20_000)) == text[2:]


def test_of_no_lines_htslib_reads_none(tmp_path: Path) -> None:
    write_hits(tmp_path / "h.bed.gz", hits_of([], ["a"], NARROW), sorted=True)
    with pysam.TabixFile(os.fspath(tmp_path / "h.bed.gz")) as table:
        assert list(table.fetch()) == table.contigs == []


def read_tbi(path: Path) -> tuple[list[int], bytes, list[tuple[dict[int, list[tuple[int, int]]], list[int]]], int]:
    """Settings, names, of each contig its bins' chunks and its linear index, and how many lines are of no contig."""
    data, at = gzip.decompress(path.read_bytes()), 4

    def take(kinds: str) -> Any:
        nonlocal at
        values = struct.unpack_from(f"<{kinds}", data, at)
        at += struct.calcsize(f"<{kinds}")
        return values

    count, *settings, size = take("8i")
    (names,) = take(f"{size}s")
    contigs = []
    for _ in range(count):
        bins = {}
        for _ in range(take("i")[0]):
            number, chunks = take("Ii")
            bins[number] = [take("2Q") for _ in range(chunks)]
        contigs.append((bins, list(take(f"{take('i')[0]}Q"))))
    (unplaced,) = take("Q")
    assert at == len(data)
    return settings, names, contigs, unplaced


def test_settings_windows_and_numbers_are_those_that_htslib_writes(tmp_path: Path) -> None:
    path = tmp_path / "h.bed.gz"
    write_hits(path, draw(NARROW, 3), sorted=True)
    pysam.tabix_index(os.fspath(path), preset="bed", index=os.fspath(tmp_path / "theirs.tbi"))
    settings, names, ours, unplaced = read_tbi(tmp_path / "h.bed.gz.tbi")
    theirs = read_tbi(tmp_path / "theirs.tbi")
    assert (settings, names, unplaced) == (*theirs[:2], theirs[3])
    numbers = []
    for (bins, windows), (their_bins, expected) in zip(ours, theirs[2], strict=True):
        assert windows == expected
        numbers.append((bins.pop(NUMBERS), their_bins[NUMBERS]))
        assert sum(map(len, bins.values())) < 2 * len(bins) + len(windows)
        for chunks in bins.values():
            assert all(begin < end for begin, end in chunks)
            # What touches within a block is one chunk.
            assert all(one[1] >> 16 < two[0] >> 16 for one, two in zip(chunks, chunks[1:], strict=False))
    assert len(ours) == 3 and len(ours[1][0]) > 400
    # Where a contig's lines begin and end, and how many there are; theirs end behind the last block, which is as far.
    assert all(one == two for one, two in numbers[:-1])
    ((begin, _), *counts), ((their_begin, their_end), *their_counts) = numbers[-1]
    assert (begin, counts) == (their_begin, their_counts)
    assert their_end == (path.stat().st_size - len(END_BLOCK)) << 16


@pytest.mark.parametrize("order", [True, False])
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("contigs", [NARROW, WIDE])
def test_no_index_of_an_older_file_is_left(tmp_path: Path, contigs: dict[str, int], linked: bool, order: bool) -> None:
    """htslib takes a .csi before a .tbi, and either without a look at what it was made of."""
    path = tmp_path / "h.bed.gz"
    if linked:
        (tmp_path / "old.bed.gz").write_bytes(b"")
        path.symlink_to("old.bed.gz")
    for name in ("h.bed.gz.tbi", "h.bed.gz.csi", "old.bed.gz.csi", "other.bed.gz.tbi"):
        (tmp_path / name).write_bytes(b"of another file")
    hits = draw(contigs, 5, 200)
    write_hits(path, hits, sorted=order)
    indexes = {each.name for each in tmp_path.iterdir() if each.suffix in (".tbi", ".csi")}
    new = {f"h.bed.gz{'.tbi' if contigs is NARROW else '.csi'}"} if order else set()
    assert indexes == new | {"other.bed.gz.tbi"} | (set() if linked else {"old.bed.gz.csi"})
    if order:
        (index,) = new
        with pysam.TabixFile(os.fspath(path), index=os.fspath(tmp_path / index)) as table:
            assert len(list(table.fetch("x"))) == int((hits.contig == 0).sum()) > 10


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # (what Python swallows)
def test_wherever_it_is_interrupted_no_file_has_another_ones_index(tmp_path: Path) -> None:
    path, indexes = tmp_path / "h.bed.gz", {}
    both = draw(NARROW, 5, 3), draw(NARROW, 6, 60)
    for hits in (*both, *both):
        write_hits(path, hits, sorted=True)
        indexes[path.read_bytes()] = (tmp_path / "h.bed.gz.tbi").read_bytes()
    assert len(indexes) == len(set(indexes.values())) == 2
    turns, lacking = cycle(both), 0
    for place in interrupted(lambda: write_hits(path, next(turns), sorted=True)):
        assert {each.name for each in tmp_path.iterdir()} <= {"h.bed.gz", "h.bed.gz.tbi"}, place
        index = tmp_path / "h.bed.gz.tbi"
        assert not index.exists() or index.read_bytes() == indexes[path.read_bytes()], place
        lacking += not index.exists()
    assert 0 < lacking < place // 4


def test_an_index_that_cannot_go_is_named(tmp_path: Path) -> None:
    """A folder that was there before is refused before; this one comes while hits are written."""

    def batches() -> Iterator[Hits]:
        (tmp_path / "h.bed.gz.csi").mkdir()
        yield draw(NARROW, 6, 20)

    with pytest.raises(InputError, match=r"h\.bed\.gz\.csi: this index of an older file cannot be removed \("):
        write_hits(tmp_path / "h.bed.gz", batches())


@pytest.mark.parametrize(("contigs", "names"), [(NARROW, {".tbi"}), (WIDE, {".tbi", ".csi"})])
def test_a_merge_has_its_index_under_a_name_that_is_known_before(
    tmp_path: Path, contigs: dict[str, int], names: set[str]
) -> None:
    hits = draw(contigs, 7, 200)
    with open_run_writer(tmp_path / "r", LINES["bed"]) as writer:
        writer.put(hits)
    (tmp_path / "h.bed.gz.csi").write_bytes(b"of another file")
    merge_run_files([tmp_path / "r"], tmp_path / "h.bed.gz", index_path=tmp_path / "h.bed.gz.tbi")
    assert {each.name for each in tmp_path.iterdir()} == {"r", "h.bed.gz", *(f"h.bed.gz{name}" for name in names)}
    (tmp_path / "h.bed.gz.csi").unlink(missing_ok=True)
    with pysam.TabixFile(os.fspath(tmp_path / "h.bed.gz")) as table:
        assert len(list(table.fetch("x"))) == int((hits.contig == 0).sum()) > 10


@pytest.mark.parametrize("memory", [1 << 14, 1 << 20, 1 << 28])
def test_the_index_does_not_depend_on_how_lines_came(tmp_path: Path, memory: int) -> None:
    hits = draw(NARROW, 4, 5000)
    write_hits(tmp_path / "whole.bed.gz", hits, sorted=True)
    with open_sorted(tmp_path / "h.bed.gz", LINES["bed"], threads=2, memory=memory) as writer:
        for batch in batches_of(hits, cycle([3, 0])):
            writer.put(batch, writer.make(batch))
    assert (tmp_path / "h.bed.gz.tbi").read_bytes() == (tmp_path / "whole.bed.gz.tbi").read_bytes()


def test_a_text_that_ends_with_its_last_block(tmp_path: Path) -> None:
    # 65,280 bytes a block are 2,040 lines of 32 bytes.
    name = "q" * (32 - len("x\t1000\t1020\t\t0\t+\n"))
    hits = hits_of([(q, 0, 1000 + s % 9000, 1020 + s % 9000, 0, 0) for q, s in enumerate(range(4080))], [name] * 4080,
                   {"x": 20_000})  # fmt: skip
    assert sorted_text(hits, "bed").startswith(f"x\t1000\t1020\t{name}".encode())
    path = os.fspath(tmp_path / "h.bed.gz")
    write_hits(path, hits, sorted=True)
    assert len(sorted_text(hits, "bed")) == 2 * 65_280
    with pysam.TabixFile(path) as table:
        assert len(list(table.fetch("x"))) == 4080
        assert len(list(table.fetch("x", 5078, 5079))) == 20

"""Tags of rows: what they are, which rows they leave, and that a search finds the same with them and without."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import warpseed
from oracles.kmers import find_kmers
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.errors import IndexFormatError
from warpseed.fm_index.build import build_index
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.store import open_index, save_index
from warpseed.fm_index.tags import make_tags, tag_mask, tagged_rows
from warpseed.fm_index.text import PackedText

FILE = "tags.bases_behind.npy"


@scalar
def rows_left(tags, low, high, wanted, bases, out):
    """`tagged_rows`, as Python can call it."""
    first, last = tagged_rows(tags, int64(low), int64(high), uint64(wanted), tag_mask(int64(bases)))
    out[0] = first
    out[1] = last


def packed(tags: list[int]) -> np.ndarray:
    """Tags of rows, 16 to a word."""
    words = np.zeros(len(tags) // 16 + 2, np.uint64)
    for row, tag in enumerate(tags):
        words[row // 16] |= np.uint64(tag << 60 - 4 * (row % 16))
    return words


def written(folder: Path, *contigs: str) -> Path:
    path = folder / "genome.fa"
    path.write_text("".join(f">c{i}\n{bases}\n" for i, bases in enumerate(contigs)))
    return path


def drawn(seed: int, count: int) -> str:
    return "".join(random.Random(seed).choices("ACGT", k=count))


def without(index: SeedIndex) -> SeedIndex:
    return replace(index, arrays_of={part: arrays for part, arrays in index.arrays_of.items() if part != "tags"})


def assert_same(index: SeedIndex, kmers: list[str], **options: int | None) -> int:
    """Whether k-mers have the same hits with tags and without; how many."""
    found = [warpseed.find_kmers(each, kmers, **options) for each in (index, without(index))]
    assert found[0].digest() == found[1].digest() and found[0].counts.tolist() == found[1].counts.tolist()
    assert found[0].dropped_hits == found[1].dropped_hits
    return len(found[0])


# ------------------------------------------------------------------------------------------ what they are


@pytest.mark.parametrize("table_length", [1, 2, 4, 7, 15])
@pytest.mark.parametrize(
    "contigs", [("A",), ("T", "C", "G"), ("GNANTNC" * 9,), ("ACGTTTNNACG" * 40, "TT"), ("G" * 95,)]
)
def test_tags_are_the_bases_behind_the_table_s(tmp_path: Path, contigs: tuple[str, ...], table_length: int) -> None:
    index = build_index(written(tmp_path, *contigs), parts="tags", table_length=table_length)
    # As in the packed text, where what is no base is an A.
    bases = np.unpackbits(index.text.byteswap().view(np.uint8)).reshape(-1, 2) @ np.array([2, 1])
    places = index.fast.suffix_array.astype(np.int64) + table_length
    assert np.array_equal(index.tags, packed((4 * bases[places] + bases[places + 1]).tolist()))
    assert index.tags[-1] == 0


@pytest.mark.parametrize("threads", [2, 3, 50])
def test_threads_make_the_same_tags(tmp_path: Path, threads: int) -> None:
    genome = written(tmp_path, drawn(1, 5000), drawn(2, 31))
    one, more = (build_index(genome, parts="tags", threads=each) for each in (1, threads))
    assert np.array_equal(one.tags, more.tags)


def test_a_damaged_suffix_array_leads_nowhere(tmp_path: Path) -> None:
    index = build_index(written(tmp_path, drawn(1, 320)), parts="tags", table_length=15)
    rows = np.full(index.rows, 2**32 - 1, np.uint32)
    assert not make_tags(PackedText(index.text, index.segments), rows, 15, 1).any()


# ------------------------------------------------------------------------------------------ which rows they leave


@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 31, 32, 33, 255, 256, 257])
@pytest.mark.parametrize("bases", [1, 2, 9])
def test_rows_from_the_first_to_the_last_of_a_tag(rows: int, bases: int) -> None:
    chance = random.Random(rows)
    out = np.zeros(2, np.int64)
    for low, few in itertools.product((0, 1, 15, 16, 40), (2, 16)):
        # Up to the very last row: behind it there is no more than one word.
        tags = [chance.randrange(16) for _ in range(low)] + [chance.randrange(few) for _ in range(rows)]
        for wanted in range(16):
            shift = 2 if bases == 1 else 0
            there = [row for row in range(low, low + rows) if tags[row] >> shift == wanted >> shift]
            rows_left(packed(tags), low, low + rows, wanted, bases, out)
            assert out[0] >= out[1] if not there else out.tolist() == [there[0], there[-1] + 1]


# ------------------------------------------------------------------------------------------ searches


@pytest.mark.parametrize("table_length", [2, 4, 5, 8])
@pytest.mark.parametrize("mismatches", [0, 1, 2, 3])
def test_borders_and_lengths_around_the_table_s(tmp_path: Path, table_length: int, mismatches: int) -> None:
    """Segments of one base and of up to K + 3, and k-mers of K, K + 1, K + 2 and more: as the oracle says."""
    base = drawn(3, 60)
    pieces = [base[:length] for length in range(1, table_length + 4)]
    contigs = ["N".join([*pieces, "A", "C", base, base[: table_length + 1]]), base[7:40], "T"]
    index = build_index(written(tmp_path, *contigs), parts="tags", table_length=table_length)
    for k in (table_length, table_length + 1, table_length + 2, table_length + 3, 2 * table_length + 5):
        kmers = [base[i : i + k] for i in range(0, 60 - k, 5)]
        kmers += [base[: k - 1] + "A", base[: k - 2] + "AA", base[: k - 1] + "N", "A" * k]
        rows = warpseed.find_kmers(index, kmers, max_mismatches=mismatches).rows()
        assert [tuple(row) for row in rows.tolist()] == find_kmers(contigs, kmers, mismatches)
        assert_same(index, kmers, max_mismatches=mismatches)


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 255, 256, 257, 100_000])
def test_buckets_of_any_size(tmp_path: Path, rows: int) -> None:
    """A string of K bases that comes so often, each time before others, and the largest of all: its rows are last."""
    chance = random.Random(rows)
    often = "TTTTTTTT"
    genome = "".join(often + "".join(chance.choices("ACG", k=9)) for _ in range(rows))
    index = build_index(written(tmp_path, genome), parts="tags", table_length=8)
    low, high = index.fast.table[-2:].tolist()
    assert high - low == rows and high == index.rows
    places = [17 * chance.randrange(rows) for _ in range(20)]
    kmers = [genome[place : place + k] for place in places for k in (9, 10, 17)] + [often + "T", often + "CT"]
    for mismatches, limit in itertools.product((0, 1), (None, 128) if rows < 1000 else (128,)):
        assert assert_same(index, kmers, max_mismatches=mismatches, max_hits=limit) > 0


def test_tags_are_read_where_they_are_there_and_of_use(tmp_path: Path) -> None:
    genome = drawn(5, 4000)
    index = build_index(written(tmp_path, genome), parts="tags", table_length=6)
    wrong = replace(index, arrays_of=index.arrays_of | {"tags": {"bases_behind": ~index.tags}})
    kmers = [genome[i : i + 20] for i in range(0, 3000, 100)]
    assert len(warpseed.find_kmers(index, kmers)) >= 30 > len(warpseed.find_kmers(wrong, kmers))
    # Six-mers have nothing behind the K that a tag could be compared with.
    short = [kmer[:6] for kmer in kmers]
    assert warpseed.find_kmers(wrong, short).digest() == warpseed.find_kmers(index, short).digest()


# ------------------------------------------------------------------------------------------ on disk


@pytest.mark.parametrize("check", [None, True, False])
@pytest.mark.parametrize("kind", ["missing", "cut", "longer", "changed"])
def test_a_damaged_file_of_tags_is_refused(tmp_path: Path, kind: str, check: bool | None) -> None:
    save_index(build_index(written(tmp_path, drawn(7, 3000)), parts="tags"), tmp_path / "index")
    path = tmp_path / "index" / FILE
    data = path.read_bytes()
    changed = data[:-20] + bytes([data[-20] ^ 1]) + data[-19:]
    path.write_bytes({"missing": b"", "cut": data[:-8], "longer": data + bytes(8), "changed": changed}[kind])
    if kind == "missing":
        path.unlink()
    if kind == "changed" and check is False:
        assert open_index(tmp_path / "index", check=check).parts == ("fast", "tags")
        return
    with pytest.raises(IndexFormatError, match=FILE):
        open_index(tmp_path / "index", check=check)


def test_an_index_without_tags_is_searched_without_them(tmp_path: Path) -> None:
    genome = drawn(8, 3000)
    save_index(build_index(written(tmp_path, genome)), tmp_path / "index")
    index = open_index(tmp_path / "index")
    assert index.parts == ("fast",) and len(index.tags) == 0
    kmers = [genome[i : i + 20] for i in range(0, 2900, 50)]
    rows = warpseed.find_kmers(index, kmers, max_mismatches=1).rows()
    assert [tuple(row) for row in rows.tolist()] == find_kmers([genome], kmers, 1)

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
from warpseed.compute.vectors import WIDTH, agreeing_bytes
from warpseed.errors import IndexFormatError
from warpseed.fm_index.build import build_index
from warpseed.fm_index.layout import TAG_PADDING, SeedIndex
from warpseed.fm_index.store import open_index, save_index
from warpseed.fm_index.tags import make_tags
from warpseed.fm_index.text import PackedText
from warpseed.kmer_seeds.cpu import COSTS
from warpseed.kmer_seeds.plans import plan_scheme

FILES = ("tags.bases_before.npy", "tags.bases_behind.npy")


@scalar
def agreeing(tags, row, bases, sure, compared, allowed, out):
    """`agreeing_bytes`, as Python can call it."""
    out[0] = agreeing_bytes(tags, int64(row), uint64(bases), uint64(sure), uint64(compared), uint64(allowed))


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
def test_tags_are_the_bases_around_the_table_s(tmp_path: Path, contigs: tuple[str, ...], table_length: int) -> None:
    index = build_index(written(tmp_path, *contigs), parts="tags", table_length=table_length)
    # As in the packed text, where what is no base is an A.
    bases = np.unpackbits(index.text.byteswap().view(np.uint8)).reshape(-1, 2) @ np.array([2, 1])
    bases = np.concatenate([np.zeros(4, int), bases])
    places = index.fast.suffix_array.astype(np.int64)
    before, behind = (
        sum(bases[first + i] << 6 - 2 * i for i in range(4)).tolist() for first in (places, places + 4 + table_length)
    )
    assert index.tags.bases_before.tolist() == before + [0] * 32
    assert index.tags.bases_behind.tolist() == behind + [0] * 32


@pytest.mark.parametrize("threads", [2, 3, 50])
def test_threads_make_the_same_tags(tmp_path: Path, threads: int) -> None:
    genome = written(tmp_path, drawn(1, 5000), drawn(2, 31))
    one, more = (build_index(genome, parts="tags", threads=each).tags for each in (1, threads))
    assert all(np.array_equal(*each) for each in zip(one, more, strict=True))


def test_as_many_zeros_lie_behind_tags_as_are_compared_at_once() -> None:
    assert TAG_PADDING >= WIDTH


def test_a_damaged_suffix_array_leads_nowhere(tmp_path: Path) -> None:
    index = build_index(written(tmp_path, drawn(1, 320) + "ACGT"), parts="tags", table_length=15)
    rows = np.full(index.rows, 2**32 - 1, np.uint32)
    tags = make_tags(PackedText(index.text, index.segments), rows, 15, 1)
    assert not tags.bases_behind.any()
    assert set(tags.bases_before[:-32].tolist()) == {0b00011011}  # ACGT, before the last separator


# ------------------------------------------------------------------------------------------ which rows agree


@pytest.mark.parametrize("allowed", [0, 1, 2, 3])
def test_rows_that_agree_with_four_bases(allowed: int) -> None:
    """Every tag beside others, under each mask that a search takes, at each place."""
    first, last = (0x40, 0x50, 0x54, 0x55), (0x01, 0x05, 0x15, 0x55)
    masks = [(0, compared) for compared in (*first, *last)] + list(itertools.combinations_with_replacement(first, 2))
    tags, out = np.array([*range(256), *[0] * 32], np.uint8), np.zeros(1, np.uint64)
    for (sure, compared), wanted in itertools.product(masks, (0, 1, 27, 100, 180, 255)):
        differ = [tag ^ wanted | (tag ^ wanted) >> 1 for tag in tags.tolist()]
        agrees = [not each & sure and (each & compared).bit_count() <= allowed for each in differ]
        for row in range(256):
            agreeing(tags, row, wanted, sure, compared, allowed, out)
            assert int(out[0]) == sum(1 << i for i in range(32) if agrees[row + i])


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


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 255, 256, 257, 4095, 4096, 4097, 100_000])
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


@pytest.mark.parametrize("every", [2, 3, 9])
def test_rows_that_agree_here_and_there(tmp_path: Path, every: int) -> None:
    """More pieces than there is room for: every so many rows of a bucket agree with a k-mer before it, and behind it
    they alternate, too."""
    often = "TTTTTTTT"
    chance = random.Random(every)
    pieces = []
    for i in range(9000):
        before = "CAGG" if i % every == 0 else "".join(chance.choices("AC", k=4))
        behind = "GCAC" if chance.random() < 0.5 else "".join(chance.choices("ACG", k=4))
        pieces.append("G" + before + often + behind + "".join(chance.choices("ACG", k=6)))
    index = build_index(written(tmp_path, "".join(pieces)), parts="tags", table_length=8)
    kmers = ["CAGG" + often, "CAGG" + often + "GC", often + "GCAC", "GCAGG" + often + "GCACA", "AGG" + often + "GCA"]
    for mismatches in (0, 1, 2, 3):
        assert assert_same(index, kmers, max_mismatches=mismatches) > 1000
        assert_same(index, kmers, max_mismatches=mismatches, max_hits=5000)


def test_no_hit_twice_where_room_is_out(tmp_path: Path) -> None:
    """Buckets behind those that took all room for pieces are left whole, and no row before them comes with them."""
    chance = random.Random(2)
    pieces = []
    for _ in range(9000):
        before = "CAGG" if chance.random() < 0.5 else "".join(chance.choices("AC", k=4))
        pieces.append("G" + before + "TTTTTTTT" + "".join(chance.choices("ACG", k=8)))
    short = [("".join(chance.choices("ACG", k=7)), "".join(chance.choices("ACG", k=2))) for _ in range(40)]
    pieces += [stem + last + tail + "G" for stem, tail in short for last in "ACGT" for _ in range(3)]
    genome = "".join(pieces)
    index = build_index(written(tmp_path, genome), parts="tags", table_length=8)
    crowded = [first + "CAGGTTTTTTTTC" for first in ("ACG", "CCC", "GAC", "TGA", "CAT")]
    others = [stem + last + tail for stem, tail in short for last in "ACGT"]
    # The look-ups of five and ten of them are a block's, so that each block begins with what takes the room.
    lengths = np.array([16, 10], np.uint32)
    assert plan_scheme(index, lengths, 1, COSTS).look_ups[lengths].tolist() == [5, 23]
    kmers = [kmer for i in range(0, 160, 10) for kmer in crowded + others[i : i + 10]]
    rows = warpseed.find_kmers(index, kmers, max_mismatches=1).rows()
    assert [tuple(row) for row in rows.tolist()] == find_kmers([genome], kmers, 1)
    assert_same(index, kmers, max_mismatches=1)


@pytest.mark.parametrize("length", [16, 17, 20, 24, 31, 32, 33, 40, 64, 70, 255])
@pytest.mark.parametrize("mismatches", [0, 1, 2, 3])
def test_lengths_and_mismatches(tmp_path: Path, length: int, mismatches: int) -> None:
    """K-mers of any length, with as many mismatches as are allowed and one more, at their ends and anywhere, N in
    them: as without tags. Repeats make buckets of many rows."""
    chance = random.Random(length)
    family = drawn(11, 400)
    copies = ["".join(c if chance.random() > 0.05 else chance.choice("ACGT") for c in family) for _ in range(60)]
    genome = "".join(copy + drawn(i, 50) for i, copy in enumerate(copies))
    index = build_index(written(tmp_path, genome, genome[5:300]), parts="tags", table_length=6)
    kmers = []
    for _ in range(60):
        place = chance.randrange(len(genome) - length)
        kmer = list(genome[place : place + length])
        for at in chance.choices([0, 1, 2, 3, *range(length), -4, -3, -2, -1], k=chance.randrange(mismatches + 2)):
            kmer[at] = chance.choice("ACGTN")
        kmers.append("".join(kmer))
    assert assert_same(index, kmers, max_mismatches=mismatches) > 0


@pytest.mark.parametrize("name", ["bases_before", "bases_behind"])
def test_tags_are_read_where_they_are_there_and_of_use(tmp_path: Path, name: str) -> None:
    genome = drawn(5, 400) * 12
    index = build_index(written(tmp_path, genome), parts="tags", table_length=6)
    inverted = index.tags._replace(**{name: ~getattr(index.tags, name)})
    wrong = replace(index, arrays_of=index.arrays_of | {"tags": inverted._asdict()})
    kmers = [genome[i : i + 12] for i in range(0, 300, 10)]
    # One mismatch in the first half, so that the second is looked up, and the other way round.
    other = str.maketrans("ACGT", "CATG")
    kmers = [kmer[:at] + kmer[at].translate(other) + kmer[at + 1 :] for kmer in kmers for at in (2, 9)]
    found = len(warpseed.find_kmers(index, kmers, max_mismatches=1))
    assert found >= 300 and len(warpseed.find_kmers(wrong, kmers, max_mismatches=1)) < found - 100
    # Six-mers have nothing around the K that a tag could be compared with.
    short = [kmer[:6] for kmer in kmers]
    assert warpseed.find_kmers(wrong, short).digest() == warpseed.find_kmers(index, short).digest()


# ------------------------------------------------------------------------------------------ on disk


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("check", [None, True, False])
@pytest.mark.parametrize("kind", ["missing", "cut", "longer", "changed"])
def test_a_damaged_file_of_tags_is_refused(tmp_path: Path, kind: str, check: bool | None, file: str) -> None:
    save_index(build_index(written(tmp_path, drawn(7, 3000)), parts="tags"), tmp_path / "index")
    path = tmp_path / "index" / file
    data = path.read_bytes()
    changed = data[:-20] + bytes([data[-20] ^ 1]) + data[-19:]
    path.write_bytes({"missing": b"", "cut": data[:-8], "longer": data + bytes(8), "changed": changed}[kind])
    if kind == "missing":
        path.unlink()
    if kind == "changed" and check is False:
        assert open_index(tmp_path / "index", check=check).parts == ("fast", "tags")
        return
    with pytest.raises(IndexFormatError, match=file):
        open_index(tmp_path / "index", check=check)


def test_an_index_without_tags_is_searched_without_them(tmp_path: Path) -> None:
    genome = drawn(8, 3000)
    save_index(build_index(written(tmp_path, genome)), tmp_path / "index")
    index = open_index(tmp_path / "index")
    assert index.parts == ("fast",) and not any(map(len, index.tags))
    kmers = [genome[i : i + 20] for i in range(0, 2900, 50)]
    rows = warpseed.find_kmers(index, kmers, max_mismatches=1).rows()
    assert [tuple(row) for row in rows.tolist()] == find_kmers([genome], kmers, 1)

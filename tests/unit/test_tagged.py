"""The functions that read tagged rows run on both targets: here on the CPU, over sound and over damaged arrays."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.pretend_cupy import Array, OutOfMemoryError, PretendCupy
from oracles.pretend_index import play_build
from oracles.tagged import Far, rows_of_both, tagged_rows, with_opposites
from warpseed import build_index
from warpseed.compute.compiled import Compiled
from warpseed.compute.device_sums import TILE
from warpseed.compute.gpu import on_device
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index import device, gpu_rows, tagged
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.tagged import TaggedIndex
from warpseed.fm_index.text import suffix_start

TEXT = "ACGTTGCATGCCATGANNGATTACAGATTACA"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> SeedIndex:
    fasta = tmp_path_factory.mktemp("tiny") / "tiny.fa"
    Path(fasta).write_text(f">tiny\n{TEXT}\n")
    return build_index(fasta, table_length=3)


def tag(index: SeedIndex, table: np.ndarray) -> TaggedIndex:
    """Tagged rows around a table of one's own."""
    return tagged_rows(index)._replace(table=table)


def word(bases: str) -> np.uint64:
    return np.uint64(sum("ACGT".index(base) << (62 - 2 * i) for i, base in enumerate(bases)))


@contextmanager
def as_written() -> Iterator[None]:
    """On a device, with what kernels call run as it is written."""
    with on_device(0), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compiled, "__call__", lambda self, *given: self.py_func(*given))
        yield


def play_small_build(monkeypatch: pytest.MonkeyPatch, index: SeedIndex) -> PretendCupy:
    """As `play_build`, with few threads, which sort short buckets in each of the ways."""
    package = play_build(monkeypatch, index)
    for name, few in (("FEW", 1), ("BY_WARP", 4), ("_LONG_BUCKET", 40), ("SORTING_BLOCKS", 2), ("LARGE_BLOCK", 64)):
        monkeypatch.setattr(gpu_rows, name, few)
    monkeypatch.setattr(device, "MOST_SEGMENTS", 1 << 27)
    return package


def made_of_both(
    monkeypatch: pytest.MonkeyPatch, index: SeedIndex, table_length: int, first: int | None = None
) -> TaggedIndex:
    """The rows of both strands that the kernels make, run as they are written, of which the first one has a number."""
    package = play_small_build(monkeypatch, index)
    monkeypatch.setattr(device, "table_length_for", lambda rows, free: table_length)
    if first is not None:
        count, sum_up = 2 * (index.rows - len(index.segments.contig)), gpu_rows._sum_up

        def from_first(table: np.ndarray, strings: int) -> gpu_rows.Beyond:
            sum_up(table, strings)
            begins = table[1:].astype(np.int64) + first
            table += np.uint32(first % (1 << 32))
            entry = int(np.searchsorted(begins, 1 << 32))
            return gpu_rows.Beyond(entry, int(begins[entry - 1]) if entry else 0)

        monkeypatch.setattr(gpu_rows, "_sum_up", from_first)
        empty = package.empty

        def empty_from_first(shape: int, dtype: type) -> Any:
            return Far(empty(shape, dtype), first) if (shape, dtype) == (count, np.uint64) else empty(shape, dtype)

        monkeypatch.setattr(package, "empty", empty_from_first)
    with as_written():
        return device.kmer_rows_on_device(index, Stopwatch())


@pytest.mark.parametrize("table_length", [4, 5])
@pytest.mark.parametrize("lengths", [(1,), (30, 1), (32, 31), (63,), (64, 70, 1), (95, 40), (9,) * 20])
def test_rows_of_both_strands(
    monkeypatch: pytest.MonkeyPatch, write_reference: Callable[..., Path], lengths: tuple[int, ...], table_length: int
) -> None:
    """They are those of the contigs and of their reverse complements, sorted as strings; where repeats are, too."""
    draw = random.Random(f"{lengths}")
    contigs = ["".join(draw.choices("ACGT", k=length)) for length in lengths]
    contigs += ["A" * 45, "CA" * 30, "GATTACA" * 9, "GATTACAAAA", "TTTTTTTT"] if len(lengths) > 1 else []
    index = build_index(write_reference(contigs))
    made = made_of_both(monkeypatch, index, table_length)
    both = build_index(write_reference(with_opposites(contigs)))
    expected = rows_of_both(index, both, table_length)
    assert (made.orientations, made.forward, made.first_beyond) == (1, index.rows, expected.first_beyond)
    assert made.rows.tolist() == expected.rows.tolist()
    assert made.table.tolist() == expected.table.tolist()
    for start, end in zip(both.segments.text_start[:-1].tolist(), both.segments.text_start[1:].tolist(), strict=True):
        ours, theirs = (
            [int(text[i // 32]) >> (62 - 2 * (i % 32)) & 3 for i in range(start, end - 1)]
            for text in (made.text, both.fast.text)
        )
        assert ours == theirs


@pytest.mark.parametrize("share", [0.0, 0.3, 0.75, 1.0])
def test_rows_of_both_strands_whose_numbers_reach_beyond_32_bits(
    monkeypatch: pytest.MonkeyPatch, write_reference: Callable[..., Path], share: float
) -> None:
    """So many of them are below 2^32; the bucket in which that is reached, too, is as it was."""
    draw = random.Random(f"{share}")
    contigs = ["".join(draw.choices("ACGT", k=90)) + "ACGT" * 12, "CCGA" * 8]
    index = build_index(write_reference(contigs))
    near = made_of_both(monkeypatch, index, 4)
    first = (1 << 32) - int(share * len(near.rows))
    monkeypatch.undo()
    again = build_index(write_reference(contigs))
    far = made_of_both(monkeypatch, again, 4, first)
    assert np.asarray(far.rows).tolist() == near.rows.tolist()
    for code in range(4**4):
        bases = np.uint64(code << 56)
        low, high = (row + first for row in tagged.bucket_rows(near, bases, 4, np.uint64(0)))
        assert tagged.bucket_rows(as_scalars(far), bases, 4, np.uint64(0)) == (low, high)


def as_scalars(index: TaggedIndex) -> TaggedIndex:
    """Without what compiled code knows no type of."""
    return index._replace(rows=np.asarray(index.rows))


@pytest.mark.parametrize("most", [(1 << 32) // 6145, (1 << 32) // 4500, 1 << 20])
@pytest.mark.parametrize("seed", range(2))
def test_sums_of_counts_beyond_32_bits(monkeypatch: pytest.MonkeyPatch, most: int, seed: int) -> None:
    play_build(monkeypatch)
    counts = np.random.default_rng(seed).integers(0, 2 * most, 3 * TILE, np.uint32)
    counts[:2] = counts[-1] = 0
    table = counts.copy().view(Array)
    with as_written():
        beyond = gpu_rows._sum_up(table, len(counts) - 2)
    ends = np.cumsum(counts.astype(np.int64))
    assert table.tolist() == (ends % (1 << 32)).tolist()
    if (there := np.flatnonzero(ends >= 1 << 32)).size:
        assert beyond == (there[0] - 1, ends[there[0] - 1])
    else:
        assert beyond.entry == len(table) - 1


@pytest.mark.parametrize("before", [0, 1])
def test_sums_that_reach_32_bits_where_a_tile_begins(monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    play_build(monkeypatch)
    counts = np.zeros(3 * TILE, np.uint32)
    counts[[TILE - 2, TILE - 1, TILE, TILE + 5, 2 * TILE]] = (1 << 31, (1 << 31) - 1 - before, 1, before, 7)
    table = counts.copy().view(Array)
    with as_written():
        beyond = gpu_rows._sum_up(table, len(counts) - 2)
    assert beyond == ((TILE - 1, (1 << 32) - 1) if not before else (TILE + 4, (1 << 32) - 1))
    assert int(table[-1]) == 7


def test_rows_of_the_text_alone_where_a_long_bucket_cannot_be_sorted(
    monkeypatch: pytest.MonkeyPatch, write_reference: Callable[..., Path]
) -> None:
    def short_of_memory(rows: np.ndarray) -> None:
        raise OutOfMemoryError

    monkeypatch.setattr(gpu_rows, "sort", short_of_memory)
    assert made_of_both(monkeypatch, build_index(write_reference(["A" * 90])), 4).orientations == 2


def test_rows_of_the_text_alone_while_memory_is_short(monkeypatch: pytest.MonkeyPatch, index: SeedIndex) -> None:
    """On each device by itself; what was made once stays."""
    package = play_small_build(monkeypatch, index)
    short = 3 * gpu_rows.bytes_for_rows(index.rows, 4) // 2 - 2
    with as_written():
        for number, free, orientations in ((0, short, 2), (0, 1 << 40, 1), (0, short, 1), (1, short, 2)):
            package.free = free
            with on_device(number):
                assert device.kmer_rows_on_device(index, Stopwatch()).orientations == orientations


@pytest.mark.parametrize("most", [100, 3, 1, 0])
@pytest.mark.parametrize("bases", ["A", "GA", "GATTACA", "TGCATG", "CCC", "ATGA", "CAAA"])
def test_exact_rows_are_where_the_bases_are(index: SeedIndex, bases: str, most: int) -> None:
    sound = tag(index, index.fast.table)
    low, high = tagged.exact_rows(sound, word(bases), len(bases), most)
    found = sorted(tagged.position_of(sound, row) for row in range(low, high))
    # In the text, one separator stands for the two Ns.
    text = TEXT.replace("NN", "$")
    expected = [i for i in range(len(text)) if text.startswith(bases, i)]
    assert found == expected if len(expected) <= most else len(found) > most and set(found) <= set(expected)


def test_rows_that_end_early_are_no_matches_where_others_are_cut_off(tmp_path: Path) -> None:
    """In every contig a string stands twice, and at its end without its last base, for which A stands there."""
    (tmp_path / "ends.fa").write_text("".join(f">{i}\nGATTACAGATTACACGATTAC\n" for i in range(9)))
    ends = build_index(tmp_path / "ends.fa", table_length=3)
    sound = tag(ends, ends.fast.table)
    for most in range(20):
        low, high = tagged.exact_rows(sound, word("GATTACA"), 7, most)
        found = {tagged.position_of(sound, row) for row in range(low, high)}
        assert found <= {22 * i + at for i in range(9) for at in (0, 7)}
        assert len(found) == high - low and (high - low == 18 if most >= 18 else high - low > most)


@pytest.mark.parametrize("rows", [0, 1, 2, 8, 9, 10, 40, 1000])
def test_a_range_of_tags_is_where_they_are_equal(rows: int) -> None:
    chance = np.random.default_rng(rows)
    for mask in (0xFFFFFFFC, 0xFFFFF000, 0xC0000000, 0):
        tags = np.sort(chance.integers(0, 1 << 32, rows, np.uint64) & np.uint64(0xC010000C))
        words = (tags << np.uint64(32)) | np.arange(rows, dtype=np.uint64)
        masked = tags & np.uint64(mask)
        for wanted in np.unique(np.concatenate([masked, [np.uint64(mask), np.uint64(0)]])):
            low, high = (int(np.searchsorted(masked, wanted, side)) for side in ("left", "right"))
            for most in (rows, 5, 1, 0):
                found = tagged.tag_range(words, 0, rows, wanted, np.uint64(mask), most)
                assert (
                    found[0] == low and found[1] == high if high - low <= most else most < found[1] - low <= high - low
                )


def test_a_bucket_never_ends_before_it_begins(index: SeedIndex) -> None:
    rows = index.rows
    table = np.random.default_rng(1).integers(0, rows + 1, len(index.fast.table)).astype(np.uint32)
    damaged = tag(index, table)
    for bucket in range(len(table) - 1):
        low, high = tagged.bucket_rows(damaged, np.uint64(bucket << 58), 3, np.uint64(0))
        assert 0 <= low <= high <= rows
        low, high = tagged.exact_rows(damaged, np.uint64(bucket << 58) | np.uint64(1 << 50), 12, rows)
        assert 0 <= low <= high <= rows


def test_positions_behind_the_text_are_cut_to_it(index: SeedIndex) -> None:
    suffix_array = np.array([0, 5, index.rows - 1, index.rows, 2**32 - 1], np.uint32)
    fill = np.zeros(index.rows - len(suffix_array), np.uint32)
    suffix_array = np.concatenate([suffix_array, fill])
    positions = [suffix_start(suffix_array, row) for row in range(5)]
    assert positions == [0, 5, index.rows - 1, index.rows - 1, index.rows - 1]

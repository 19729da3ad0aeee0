"""The functions that read tagged rows run on both targets: here on the CPU, over sound and over damaged arrays."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.lockstep import run_kernel
from oracles.pretend_index import play_build
from oracles.tagged import rows_of_both, tagged_rows, with_opposites
from warpseed import build_index
from warpseed.compute.gpu import on_device
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index import device, tagged
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.tagged import TaggedIndex

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


@pytest.mark.parametrize("lengths", [(1,), (30, 1), (32, 31), (63,), (64, 70, 1), (95, 40)])
def test_rows_of_both_strands(
    monkeypatch: pytest.MonkeyPatch, write_reference: Callable[..., Path], lengths: tuple[int, ...]
) -> None:
    """They are those of an index of the contigs and, behind them, of their reverse complements."""
    draw = random.Random(f"{lengths}")
    contigs = ["".join(draw.choices("ACGT", k=length)) for length in lengths]
    index = build_index(write_reference(contigs))
    play_build(monkeypatch, index)
    monkeypatch.setattr(device, "_ROWS_OF_BOTH", 1 << 32)
    monkeypatch.setattr(
        device, "launch", lambda function, *given: run_kernel((tagged,), (), (function, *given[:2]), *given[2:])
    )
    with on_device(0):
        made = device.kmer_rows_on_device(index, Stopwatch())
    expected = build_index(write_reference(with_opposites(contigs)), table_length=made.table_length)
    assert made.orientations == 1
    assert made.rows.tolist() == rows_of_both(expected).rows.tolist()
    assert made.table.tolist() == expected.fast.table.tolist()
    assert [each.tolist() for each in made.segments[:1]] == [expected.segments.text_start.tolist()]
    for number, contig in enumerate(with_opposites(contigs)):
        begin = int(expected.segments.text_start[number])
        bases = [int(made.text[i // 32]) >> (62 - 2 * (i % 32)) & 3 for i in range(begin, begin + len(contig))]
        assert "".join("ACGT"[base] for base in bases) == contig


def test_rows_of_the_text_alone_where_memory_is_short(monkeypatch: pytest.MonkeyPatch, index: SeedIndex) -> None:
    package = play_build(monkeypatch, index)
    monkeypatch.setattr(device, "_ROWS_OF_BOTH", 1 << 32)
    package.free = 2 * (device._BYTES_A_ROW * 2 * index.rows + 4 * 4**4) - 1
    with on_device(0):
        assert device.kmer_rows_on_device(index, Stopwatch()).orientations == 2


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
    for mask in (0xFFFFFFFF, 0xFFFFF000, 0xC0000000, 0):
        tags = np.sort(chance.integers(0, 1 << 32, rows, np.uint64) & np.uint64(0xC0100003))
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
    positions = [tagged._position(suffix_array, row) for row in range(5)]
    assert positions == [0, 5, index.rows - 1, index.rows - 1, index.rows - 1]

"""The functions that read tagged rows run on both targets: here on the CPU, over sound and over damaged arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.tagged import tagged_rows
from warpseed import build_index
from warpseed.fm_index import tagged
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

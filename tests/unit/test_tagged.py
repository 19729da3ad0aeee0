"""The functions that read tagged rows run on both targets: here on the CPU, over sound and over damaged arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

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
    """Tagged rows as the kernel makes them, around a table of one's own."""
    fast = index.fast
    rows = np.empty(index.rows, np.uint64)
    for row in range(index.rows):
        position = tagged._position(fast.suffix_array, row)
        behind = tagged._suffix_word(fast.text, fast.segments, position, index.table_length)
        rows[row] = (behind >> np.uint64(32)) << np.uint64(32) | np.uint64(position)
    return TaggedIndex(fast.text, rows, table, fast.segments, index.table_length)


def word(bases: str) -> np.uint64:
    return np.uint64(sum("ACGT".index(base) << (62 - 2 * i) for i, base in enumerate(bases)))


@pytest.mark.parametrize("bases", ["A", "GA", "GATTACA", "TGCATG", "CCC", "ATGA"])
def test_exact_rows_are_where_the_bases_are(index: SeedIndex, bases: str) -> None:
    sound = tag(index, index.fast.table)
    low, high = tagged.exact_rows(sound, word(bases), len(bases))
    found = sorted(tagged.position_of(sound, row) for row in range(low, high))
    # In the text, one separator stands for the two Ns.
    text = TEXT.replace("NN", "$")
    assert found == [i for i in range(len(text)) if text.startswith(bases, i)]


def test_a_bucket_never_ends_before_it_begins(index: SeedIndex) -> None:
    rows = index.rows
    table = np.random.default_rng(1).integers(0, rows + 1, len(index.fast.table)).astype(np.uint32)
    damaged = tag(index, table)
    for bucket in range(len(table) - 1):
        low, high = tagged.bucket_rows(damaged, np.uint64(bucket << 58), 3, np.uint64(0))
        assert 0 <= low <= high <= rows
        low, high = tagged.exact_rows(damaged, np.uint64(bucket << 58) | np.uint64(1 << 50), 12)
        assert 0 <= low <= high <= rows


def test_positions_behind_the_text_are_cut_to_it(index: SeedIndex) -> None:
    suffix_array = np.array([0, 5, index.rows - 1, index.rows, 2**32 - 1], np.uint32)
    fill = np.zeros(index.rows - len(suffix_array), np.uint32)
    suffix_array = np.concatenate([suffix_array, fill])
    positions = [tagged._position(suffix_array, row) for row in range(5)]
    assert positions == [0, 5, index.rows - 1, index.rows - 1, index.rows - 1]

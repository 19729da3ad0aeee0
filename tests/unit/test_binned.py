"""The index of paper 002, section 4.1, against the suffix array; what it is made with, and of what."""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.suffix_array import NaiveIndex, joined, segments_of
from warpseed import build_index
from warpseed.errors import IndexFormatError, InputError
from warpseed.fm_index import bins
from warpseed.fm_index.binned import BinParameters, binned_index, binned_report


def contigs_of(draw: random.Random) -> list[str]:
    contigs = ["".join(draw.choices("ACGTN", [6, 6, 6, 6, draw.choice([0, 1, 6])], k=draw.randint(1, 150)))]
    return [*contigs, "AC" * 40, "A" * 30]


@pytest.mark.parametrize(
    "parameters", [BinParameters(16, 1, 1), BinParameters(32, 2, 2), BinParameters(64, 7, 3), BinParameters(256, 12, 5)]
)
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_and_intervals_are_those_of_the_suffix_array(
    write_reference: Callable[..., Path], parameters: BinParameters, threads: int
) -> None:
    draw = random.Random(threads)
    for _ in range(6):
        contigs = contigs_of(draw)
        index = build_index(write_reference(contigs), table_length=draw.choice([1, 3, 6]))
        made = binned_index(index, draw.choice([2, 20]), parameters, threads=threads)
        naive = NaiveIndex.of(joined([bases for *_, bases in segments_of(contigs)]))
        rows = index.fast.suffix_array.tolist()
        assert [bins.locate_row(made, row) for row in range(index.rows)] == rows
        before = "".join(naive.text[position - 1] for position in rows)
        for _ in range(50):
            low, high = sorted(draw.randint(0, index.rows) for _ in range(2))
            for code, base in enumerate("ACGT"):
                smaller = naive.separators + naive.smaller[base]
                expected = smaller + before[:low].count(base), smaller + before[:high].count(base)
                assert bins.narrowed(made, code, low, high) == expected
        for code in range(4**made.pre_calc_length):
            places = range(2 * made.pre_calc_length - 2, -1, -2)
            string = "".join("ACGT"[code >> place & 3] for place in places)
            begin = [row for row in range(index.rows) if naive.text.startswith(string, rows[row])]
            low, high = bins.pre_calculated.py_func(made, code)
            assert list(range(low, high)) == begin


@pytest.fixture
def index(write_reference: Callable[..., Path]) -> Any:
    return build_index(write_reference(["".join(random.Random(1).choices("ACGT", k=3000)), "ACGTN" * 9]))


def test_pre_calculated_strings_are_no_longer_than_a_match_or_the_table(index: Any) -> None:
    """13 bases, where matches are so long and the text is large enough for as many."""
    lengths = [(binned_index(index, least).pre_calc_length) for least in (1, 3, 20)]
    assert lengths == [1, 3, index.table_length] and index.table_length < 13
    assert binned_index(index, 20, BinParameters(pre_calc_length=2)).pre_calc_length == 2


def test_it_is_made_once(index: Any) -> None:
    first, again = binned_index(index, 20), binned_index(index, 3)
    assert first.bins is again.bins and first.intervals is not again.intervals
    assert binned_index(index, 20).intervals is first.intervals


def test_sizes_are_those_of_section_4_1(index: Any) -> None:
    report = {row["part"]: row for row in binned_report(binned_index(index, 20))}
    for part in ("BWT in bins of 64", "C", "SP, every 7", f"intervals of {index.table_length} bases"):
        assert report[part]["bytes"] == pytest.approx(report[part]["formula_bytes"], rel=0.02)
    assert binned_index(index, 20).bins.nbytes == 32 * (index.rows // 64 + 1)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (BinParameters(bin_size=48), "bin_size is 48, but a power of two from 16"),
        (BinParameters(bin_size=8), "bin_size is 8"),
        (BinParameters(sa_ratio=0), "sa_ratio is 0"),
        (BinParameters(pre_calc_length=16), "pre_calc_length is 16"),
    ],
)
def test_parameters_out_of_range(index: Any, parameters: BinParameters, sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        binned_index(index, 20, parameters)


@pytest.mark.parametrize("value", [0, (1 << 32) - 1])
def test_a_damaged_suffix_array_is_refused(index: Any, value: int) -> None:
    damaged = index.fast.suffix_array.copy()
    damaged[100:200] = value
    arrays = {**index.arrays_of, "fast": {**index.arrays_of["fast"], "suffix_array": damaged}}
    with pytest.raises(IndexFormatError, match="its suffix array is not that of the text"):
        binned_index(dataclasses.replace(index, arrays_of=arrays), 20)


def test_a_damaged_table_leads_nowhere_else(index: Any) -> None:
    table = np.random.default_rng(1).integers(0, 1 << 32, len(index.fast.table), np.uint32)
    arrays = {**index.arrays_of, "fast": {**index.arrays_of["fast"], "table": table}}
    intervals = binned_index(dataclasses.replace(index, arrays_of=arrays), 20).intervals
    low, high = intervals >> np.uint64(32), intervals & np.uint64(0xFFFF_FFFF)
    assert (low <= high).all() and int(high.max()) <= index.rows

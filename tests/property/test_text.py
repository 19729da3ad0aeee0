"""Segments and the packed text against their definitions, whatever ranges the threads take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracles.suffix_array import joined, segments_of
from warpseed.fm_index import text
from warpseed.fm_index.layout import HINT_SHIFT, PAD_WORDS
from warpseed.fm_index.text import PackedText, find_segments, pack_text

CODES = {base: code for code, base in enumerate("ACGTNRYK")}
"""Letters for several bases may have codes of their own."""

RUNS = st.lists(st.one_of(st.text("ACGT", max_size=80), st.text("NRYK", max_size=80)), max_size=6).map("".join)
SHORT = st.text("ANC", max_size=150)
FEW = st.integers(1, 5).map(lambda count: "AN" * count)
CONTIGS = st.lists(st.one_of(RUNS, SHORT, FEW, st.just("N"), st.just("T")), min_size=1, max_size=12)


def text_of(contigs: Sequence[str], threads: int) -> PackedText:
    """The text of contigs, of which some may be empty."""
    codes = np.array([CODES[base] for contig in contigs for base in contig], np.uint8)
    offsets = np.cumsum([0, *map(len, contigs)])
    return pack_text(codes, offsets, find_segments(codes, offsets, threads), threads)


def check(contigs: Sequence[str], threads: int) -> None:
    words, segments = text_of(contigs, threads)
    expected = segments_of(contigs)
    assert [*zip(segments.contig.tolist(), segments.contig_start.tolist(), strict=True)] == [e[:2] for e in expected]
    ends = np.cumsum([0, *(len(bases) + 1 for _, _, bases in expected)])
    assert segments.text_start.tolist() == ends.tolist()
    assert [array.dtype for array in segments] == [np.uint32, np.int32, np.int64, np.uint32]
    whole = joined([bases for _, _, bases in expected]).replace("$", "A").ljust(32 * (ends[-1] // 32 + PAD_WORDS), "A")
    digits = "".join(f"{CODES[base]:02b}" for base in whole)
    assert words.tolist() == [int(digits[at : at + 64], 2) for at in range(0, len(digits), 64)]


@given(contigs=CONTIGS, threads=st.integers(1, 3), span=st.sampled_from([1, 7, 32, 33, 64, 100, 1 << 22]))
@example(contigs=["", "ACGT" * 16, "", "ACGT" * 16, ""], threads=2, span=64)
@example(contigs=["N" * 40 + "ACGT" * 9 + "N" * 40], threads=1, span=32)
@example(contigs=["N"], threads=3, span=32)
def test_the_text_is_its_segments(contigs: list[str], threads: int, span: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_CODES", span)
        patch.setattr(text, "_WORDS", -(-span // 32))
        patch.setattr(text, "_BORDERS", 2)
        check(contigs, threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_thousands_of_contigs(threads: int) -> None:
    draw = np.random.default_rng(5)
    bases = draw.choice([*"ACGTN"], 300_000, p=[0.2425] * 4 + [0.03])
    cuts = np.sort(draw.choice(len(bases), 5000, replace=False))
    contigs = ["".join(part) for part in np.split(bases, cuts)]
    check([*contigs, "A" * (3 << HINT_SHIFT), "N" * 3, "C"], threads)

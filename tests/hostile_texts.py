"""Segments whose suffixes are hard to sort."""

from __future__ import annotations

import random

import numpy as np
from warpseed.fm_index.text import PackedText, find_segments, pack_text

__all__ = ["HOSTILE", "UNIT", "bases", "text_of"]

DRAW = random.Random(11)


def text_of(segments: list[str]) -> PackedText:
    """The packed text of segments, each of them a contig."""
    codes = np.array(["ACGT".index(base) for segment in segments for base in segment], np.uint8)
    offsets = np.cumsum([0, *map(len, segments)])
    found = find_segments(codes, offsets)
    return pack_text(codes, offsets, found)


def bases(count: int, letters: str = "ACGT") -> str:
    return "".join(DRAW.choices(letters, k=count))


LONG, UNIT = bases(300), bases(13)
HOSTILE = {
    "one base": ["A"],
    "all A": ["A" * 700],
    "all T, and shorter": ["T" * 300, "T" * 299, "T"],
    "runs of A to the ends": ["CAAAA" * 9 + "A" * 30, "A" * 40, "GAAA"],
    "tandem repeats": ["ACGT" * 90, "CGTA" * 50, UNIT * 40],
    "equal contigs": [LONG] * 4,
    "ends of each other": [LONG, LONG[100:], LONG[290:], LONG[299:]],
    "beginnings of each other": [LONG[:7], LONG[:64], LONG[:65], LONG],
    "segments of one base": list(bases(150, "AT")),
    "two letters": [bases(900, "AC")],
    "copies with changes": [LONG, LONG[:150] + "G" + LONG[151:], LONG[:299] + "A"],
    "around 32 bases": [LONG[:n] for n in (21, 22, 23, 31, 32, 33, 49, 50, 51, 63, 64, 65)],
}

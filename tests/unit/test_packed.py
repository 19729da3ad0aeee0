"""Sequences in words of 32 bases: every base and every unknown one has its place."""

from __future__ import annotations

import random

from warpseed.sequences.packed import pack
from warpseed.sequences.queries import Queries


def unpacked(words: list[int], marks: list[int], length: int) -> str:
    letters = ""
    for i in range(length):
        shift = 62 - 2 * (i % 32)
        unknown = marks and marks[i // 32] >> shift & 1
        letters += "N" if unknown else "ACGT"[words[i // 32] >> shift & 3]
    return letters


def test_every_base_has_its_place() -> None:
    """Sequences of 1 to 100 bases, which begin at any byte; one unknown base at any place of a word, or several."""
    draw = random.Random(5)
    sequences = ["".join(draw.choices("ACGT", k=length)) for length in range(1, 101)]
    for place in range(40):
        sequences.append("".join(draw.choices("ACGT", k=place)) + "N" + "".join(draw.choices("ACGT", k=70 - place)))
        sequences.append("".join(draw.choices("ACGTN", k=60 + place)))
    for chosen in (sequences, sequences[33:100], sequences[100:]):
        packed = pack(Queries.from_sequences(chosen))
        first, words, marks = packed.first.tolist(), packed.words.tolist(), packed.marks.tolist()
        assert bool(marks) == any("N" in sequence for sequence in chosen)
        for sequence, begin, end in zip(chosen, first, first[1:], strict=False):
            assert unpacked(words[begin:end], marks[begin:end], len(sequence)) == sequence
            spare = 2 * (32 * (end - begin) - len(sequence))
            assert words[end - 1] % (1 << spare) == 0 and (not marks or marks[end - 1] % (1 << spare) == 0)

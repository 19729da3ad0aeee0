"""Sequences in words of 32 bases: every base and every unknown one has its place."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from warpseed.sequences.packed import Packed, pack, part_of, view_of
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


class There(np.ndarray):
    """An array as CuPy's, which computes nothing into one of the host."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        assert not options
        return getattr(ufunc, method)(*(np.asarray(each) for each in inputs)).view(There)


@pytest.mark.parametrize("length", [7, 8, 15, 32, 33, 40, 71])
@pytest.mark.parametrize("letter", "NRYSWKMBDHVUnw")
def test_a_letter_for_several_bases_is_marked_whether_it_is_kept_or_not(letter: str, length: int) -> None:
    """At each place, alone and with its like as neighbours; searches must not depend on what is kept for BAM."""
    bases = "".join(random.Random(length).choices("ACGT", k=length))
    texts = [bases[:place] + letter + bases[place + 1 :] for place in range(length)]
    texts += [bases[:place] + 2 * letter + bases[place + 2 :] for place in range(length - 1)] + [letter * length]
    kept, plain = (pack(Queries.from_sequences(texts, letters=letters)) for letters in (True, False))
    for ours, theirs in zip(kept, plain, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert all(int(plain.marks[plain.first[i] if len(plain.first) else i]) for i in range(min(length, 32)))


@pytest.mark.parametrize("on_device", [False, True])
def test_a_part_begins_where_its_words_do(on_device: bool) -> None:
    draw = random.Random(3)
    packed = pack(
        Queries.from_sequences(["".join(draw.choices("ACGTN", k=length)) for length in (70, 3, 32, 33, 90, 1)])
    )
    given = Packed(*(array.view(There) for array in packed)) if on_device else packed
    for start in range(7):
        for stop in range(start, 7):
            views, before = view_of(given, start, stop)
            assert all(
                np.shares_memory(mine, whole) or not len(mine) for mine, whole in zip(views, packed, strict=True)
            )
            for part in (part_of(given, start, stop), views._replace(first=views.first - np.uint32(before))):
                assert len(part.first) == stop - start + 1 and part.first[0] == 0
                for i in range(stop - start):
                    mine, whole = (
                        [column[each.first[at] : each.first[at + 1]].tolist() for column in (each.words, each.marks)]
                        for each, at in ((part, i), (packed, start + i))
                    )
                    assert mine == whole and part.lengths[i] == packed.lengths[start + i]

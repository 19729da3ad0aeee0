"""Distances of all pairs of words on the CPU, against Definition 24."""

from __future__ import annotations

import random
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from hostile_words import HOSTILE, word_sets
from hypothesis import given
from oracles import ebwt as truth
from warpseed.compute import machine
from warpseed.ebwt import cpu, cpu_distances, cpu_gaps, fast
from warpseed.ebwt.words import words_of
from warpseed.errors import MemoryLimitError

SETTINGS = {
    "as it is": {},
    "threads share ranks": {"A_THREAD": 1},
    "threads share lines": {"A_THREAD": 1, "_TILE": 1},
    "times of 32 bits": {"_SHORT_TIMES": 1},
    "many blocks, and calls": {"_SHORT_TIMES": 1 << 10, "_COMPARED": 1000},
    "gaps": {"_FEW_WORDS": 0},
    "gaps in small slabs": {"_FEW_WORDS": 0, "_TIMES_OF_SLAB": 64, "_SHORT_TIMES": 1},
    "gaps in slabs of few ranks, which threads share": {
        "A_THREAD": 1, "_FEW_WORDS": 0, "_LEAST_RANKS": 64, "_RANKS_OF_WORD": 1,
    },
}  # fmt: skip


@pytest.fixture(params=SETTINGS.values(), ids=SETTINGS)
def setting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in request.param.items():
        module = next(each for each in (fast, cpu_distances, cpu_gaps) if hasattr(each, name))
        monkeypatch.setattr(module, name, value)


def distances_of(words: list[str], threads: int) -> np.ndarray:
    made = words_of(words)
    return cpu.distances(made, cpu.order_conjugates(made), threads=threads)


def true_distances(words: list[str]) -> list[list[int]]:
    return [[truth.distance(u, v) if i != j else 0 for j, v in enumerate(words)] for i, u in enumerate(words)]


def from_colours(colours: list[int], count: int) -> list[list[int]]:
    """Definition 24 of each pair, on the colours that are left when all other words' are struck out."""

    def distance(u: int, v: int) -> int:
        return sum(len(list(run)) - 1 for _, run in groupby(colour for colour in colours if colour in (u, v)))

    return [[distance(u, v) if u != v else 0 for v in range(count)] for u in range(count)]


@pytest.mark.usefixtures("setting")
@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE)
def test_hostile_sets(words: list[str]) -> None:
    for threads in (1, 3):
        assert np.triu(distances_of(words, threads)).tolist() == np.triu(true_distances(words)).tolist()


@pytest.mark.usefixtures("setting")
@given(word_sets(40))
def test_words_of_each_other(words: list[str]) -> None:
    made = distances_of(words, 2)
    assert (made == made.T).all() and made.dtype == np.int32
    assert made.tolist() == from_colours(truth.colouring(words), len(words))


@pytest.mark.usefixtures("setting")
@pytest.mark.parametrize(("count", "longest"), [(70, 6), (129, 3), (3, 900)])
def test_many_words_and_long_ones(count: int, longest: int) -> None:
    """Words in several lines, and changes that are more than a byte counts."""
    draw = random.Random(count)
    words = ["".join(draw.choices("acgt", k=draw.randint(1, longest))) for _ in range(count)]
    words[1], words[-1] = words[0] * 2, words[0]
    expected = from_colours(truth.colouring(words), count)
    for threads in (1, 2):
        assert distances_of(words, threads).tolist() == expected


@pytest.mark.parametrize("slab", [64, 1 << 14])
@pytest.mark.parametrize(("count", "longest"), [(512, 20), (513, 9), (1100, 12), (1537, 3)])
def test_more_words_than_a_set_has(count: int, longest: int, slab: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gaps of words of several sets, against comparisons: with long words among short ones, and words of one letter."""
    draw = random.Random(count)
    words = ["".join(draw.choices("acgt", k=draw.randint(1, longest))) for _ in range(count)]
    words[3] = words[count - 2] = "".join(draw.choices("acgt", k=4000))
    words[7], words[count // 2], words[-1] = "".join(draw.choices("acgt", k=700)), words[0] * 3, words[1]
    made = words_of(words)
    order = cpu.order_conjugates(made)
    monkeypatch.setattr(fast, "A_THREAD", 1)
    monkeypatch.setattr(cpu_distances, "_FEW_WORDS", count)
    expected = cpu.distances(made, order)
    monkeypatch.setattr(cpu_distances, "_FEW_WORDS", 0)
    monkeypatch.setattr(cpu_gaps, "_TIMES_OF_SLAB", slab)
    for threads in (1, 2, 5):
        assert (cpu.distances(made, order, threads=threads) == expected).all()


def test_more_words_than_slabs_are_made_smaller_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slabs of half as many times, of less than a step, too."""
    draw = random.Random(5)
    made = words_of(["".join(draw.choices("acgt", k=draw.randint(1, 9))) for _ in range(600)] + ["acgt" * 900])
    order = cpu.order_conjugates(made)
    expected = cpu.distances(made, order)
    monkeypatch.setattr(cpu_distances, "_FEW_WORDS", 0)
    monkeypatch.setattr(cpu_gaps, "_MANY_WORDS", 500)
    for times in (64, 128, 1 << 12):
        monkeypatch.setattr(cpu_gaps, "_TIMES_OF_SLAB", times)
        assert (cpu.distances(made, order) == expected).all()


def test_what_counting_gaps_takes_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the matrix and a number for each rank: at least what a thread makes for the last members."""
    words = words_of(["acgt" * 10] * 600)
    order, asked = cpu.order_conjugates(words), []
    monkeypatch.setattr(cpu_distances, "_FEW_WORDS", 0)
    monkeypatch.setattr(cpu_distances, "require_memory", lambda needed, *told: asked.append(needed))
    made: list[int] = []
    no_gaps = cpu_gaps._no_gaps

    def noted(*arguments: Any) -> Any:
        gaps = no_gaps(*arguments)
        made.append(sum(array.nbytes for array in gaps))
        return gaps

    monkeypatch.setattr(cpu_gaps, "_no_gaps", noted)
    cpu.distances(words, order)
    assert len(made) == 2 and asked[0] >= max(made) + 4 * 600**2 + 2 * len(order)
    assert asked[0] <= 3 * max(made) + 4 * 600**2 + 2 * len(order)


@pytest.mark.parametrize("few", [0, 40])
def test_what_does_not_fit_is_refused(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    words = words_of(["acgt"] * 40)
    order = cpu.order_conjugates(words)
    monkeypatch.setattr(cpu_distances, "_FEW_WORDS", few)
    monkeypatch.setattr(machine, "_ALWAYS_THERE", 0)
    monkeypatch.setattr(machine, "available_memory", lambda: 1000)
    with pytest.raises(MemoryLimitError, match=r"all pairs of 40 words take \S+ GB, but 1e-06 GB are free; take fewer"):
        cpu.distances(words, order)

"""The kernels that keep the k-mers of a stream in a table, run as they are written, against brute force."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles import tree_bitmap as truth
from oracles.lockstep import run_kernel
from warpseed.tree_bitmap import gpu_fast as kernels
from warpseed.tree_bitmap.gpu_fast import KmerTable, Stretch
from warpseed.tree_bitmap.slots import EMPTY

BLOCK = 8


def launched(kernel: Any, threads: int, *arguments: Any) -> None:
    run_kernel((kernels,), (kernels._claim,), (kernel, threads, BLOCK), *arguments)


def table_of(codes: list[int], k: int, slots: int) -> KmerTable:
    """A table of nothing, and a stream."""
    padded = np.full(-(-len(codes) // 32) * 32, 4, np.uint8)
    padded[: len(codes)] = codes
    words, marks = np.zeros((2, len(padded) // 32 + 2), np.uint64)
    launched(kernels.pack_codes, len(padded) // 32, padded, 0, words, marks)
    empty = np.full(slots, EMPTY)
    return KmerTable(words, marks, empty, np.zeros(slots, np.uint64), np.zeros(1, np.uint64), k)


def streams() -> list[tuple[str, list[int], int]]:
    draw = random.Random(11)
    some = [draw.randrange(4) for _ in range(60)]
    return [
        ("random", some, 3),
        ("repeat", (some[:25] * 3)[:70], 17),
        ("homopolymer", [2] * 50, 31),
        ("no bases", [draw.choice([0, 1, 2, 3, 4]) for _ in range(70)], 2),
        ("one k-mer", some[:31], 31),
    ]


@pytest.mark.parametrize(("codes", "k"), [case[1:] for case in streams()], ids=[case[0] for case in streams()])
@pytest.mark.parametrize("stretches", [1, 3])
def test_each_place_is_what_it_is(codes: list[int], k: int, stretches: int) -> None:
    table, places = table_of(codes, k, 92), len(codes) - k + 1
    answers = np.full(places, truth.NEW, np.uint8)
    borders = [places * i // stretches for i in range(stretches + 1)]
    for first, last in zip(borders, borders[1:], strict=False):
        stretch = Stretch(first, last, 0, 1, True)
        launched(kernels.insert_kmers, last - first, table, stretch, answers[first:last])

    expected, dictionary = truth.answers_to(codes, k)
    assert answers.tolist() == list(expected)[:places]
    assert int(table.used[0]) == len(dictionary) == int((table.slots != EMPTY).sum())
    held = table.slots[table.slots != EMPTY]
    places_held = held & np.uint64((1 << kernels.PLACE_BITS) - 1)
    first_places = {word: place for place, word in reversed(list(truth.words_at(codes, k)))}
    assert sorted(places_held.tolist()) == sorted(first_places.values())
    read = np.zeros(len(held), np.uint64)
    launched(kernels.read_codes, len(held), table, places_held, read)
    assert sorted(read.tolist()) == sorted(truth.codes_of_words(first_places))
    assert int(table.counts.sum()) == sum(1 for _ in truth.words_at(codes, k))


def test_parts_share_the_kmers() -> None:
    codes = streams()[0][1]
    tables = []
    answers = np.full((3, len(codes) - 3), truth.NEW, np.uint8)
    for part in range(3):
        tables.append(table_of(codes, 4, 92))
        launched(
            kernels.insert_kmers, len(codes) - 3, tables[-1], Stretch(0, len(codes) - 3, part, 3, True), answers[part]
        )
    expected, dictionary = truth.answers_to(codes, 4)
    assert answers.max(axis=0).tolist() == list(expected)[: len(codes) - 3]
    assert sum(int(table.used[0]) for table in tables) == len(dictionary)
    assert all(int(table.used[0]) for table in tables)


def test_a_larger_table_has_the_same_kmers() -> None:
    codes = streams()[0][1]
    small, large = table_of(2 * codes, 5, 64), table_of(2 * codes, 5, 200)
    launched(kernels.insert_kmers, 56, small, Stretch(0, 56, 0, 1, True), np.full(56, truth.NEW, np.uint8))
    launched(kernels.move_slots, len(small.slots), small, large)
    assert sorted(small.slots.tolist())[: int(small.used[0])] == sorted(large.slots.tolist())[: int(small.used[0])]
    again = np.full(56, truth.NEW, np.uint8)
    launched(kernels.insert_kmers, 56, large, Stretch(60, 116, 0, 1, True), again)
    assert again.tolist() == [truth.SEEN] * 56
    assert int(large.counts.sum()) == 2 * 56


def test_a_fixed_table_takes_nothing() -> None:
    codes = streams()[0][1]
    table = table_of(2 * codes, 5, 92)
    launched(kernels.insert_kmers, 30, table, Stretch(0, 30, 0, 1, True), np.full(30, truth.NEW, np.uint8))
    before = table.slots.copy(), table.used.copy(), table.counts.copy()
    answers = np.full(56, truth.NEW, np.uint8)
    launched(kernels.insert_kmers, 56, table, Stretch(60, 116, 0, 1, False), answers)
    known = {word for _, word in truth.words_at(codes[:34], 5)}
    assert answers.tolist() == [truth.SEEN if word in known else truth.NEW for _, word in truth.words_at(codes, 5)]
    for held, then in zip((table.slots, table.used, table.counts), before, strict=True):
        assert held.tolist() == then.tolist()

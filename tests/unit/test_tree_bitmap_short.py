"""The kernels that keep short k-mers at places of their own, run as they are written, against brute force."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles import tree_bitmap as truth
from oracles.lockstep import run_kernel
from test_tree_bitmap_table import WARPS, bits_in, blocks_of, first_places, launched, seen_of_part, table_of
from warpseed.tree_bitmap import gpu_direct as kernels
from warpseed.tree_bitmap import gpu_fast
from warpseed.tree_bitmap.gpu_direct import ShortKmers
from warpseed.tree_bitmap.gpu_fast import PackedBlock, Stretch
from warpseed.tree_bitmap.slots import EMPTY

BLOCK = 8


def started(kernel: Any, threads: int, *arguments: Any, size: int = BLOCK) -> None:
    functions = (
        kernels._insert,
        kernels._put,
        kernels.kmer_in,
        kernels.set_seen,
        kernels.times_of,
        gpu_fast._turn_at,
        gpu_fast._has_turns,
    )
    run_kernel((kernels, gpu_fast), functions, (kernel, threads, size), *arguments)


def short_table(k: int, grows: bool = True) -> ShortKmers:
    """A table of nothing."""
    cells = 4**k if grows else 0
    return ShortKmers(np.zeros(max(8, 4**k // 32), np.uint32), np.full(cells, EMPTY), np.zeros(cells, np.uint64), k)


def searched(table: ShortKmers, block: PackedBlock, stretch: Stretch) -> list[int]:
    """What the places of a stretch are; their k-mers are counted where that is asked for."""
    answers = np.full(stretch.last - stretch.first, truth.NEW, np.uint8)
    started(kernels.insert_short_kmers, len(answers), table, block, stretch, answers)
    if len(table.counts):
        started(kernels.count_short_kmers, 2 * BLOCK, table, block, stretch)
    return answers.tolist()


def seen_by_part(table: ShortKmers, block: PackedBlock, stretch: Stretch) -> list[bool]:
    """Which places of a stretch have a k-mer of a part that stood before."""
    seen = np.zeros(-(-(stretch.last - stretch.first) // 32), np.uint32)
    places = stretch.last - stretch.first
    started(kernels.insert_short_kmers_of_part, places, table, block, stretch, seen, size=WARPS)
    return bits_in(seen, places)


def turns_of(table: ShortKmers) -> dict[int, int]:
    """The turns of a table's k-mers, by their codes; a bit is set of none that is not there."""
    held = {kmer: int(turn) for kmer, turn in enumerate(table.turns) if turn != EMPTY}
    assert set(bits_of(table)) <= set(held)
    return held


def bits_of(table: ShortKmers) -> list[int]:
    return [kmer for kmer in range(32 * len(table.seen)) if int(table.seen[kmer // 32]) >> kmer % 32 & 1]


def streams() -> list[tuple[str, list[int], int]]:
    draw = random.Random(12)
    some = [draw.randrange(4) for _ in range(60)]
    return [
        ("random", some, 3),
        ("repeat", (some[:25] * 3)[:70], 5),
        ("homopolymer", [2] * 50, 4),
        ("last k-mer", [3] * 40, 2),
        ("no bases", [draw.choice([0, 1, 2, 3, 4]) for _ in range(70)], 2),
        ("one k-mer", some[:6], 6),
        ("letters", some, 1),
    ]


@pytest.mark.parametrize(("codes", "k"), [case[1:] for case in streams()], ids=[case[0] for case in streams()])
@pytest.mark.parametrize("stretches", [1, 3])
@pytest.mark.parametrize("cells", [kernels.SHARED_CELLS, 0], ids=["shared", "global"])
def test_each_place_is_what_it_is(
    monkeypatch: pytest.MonkeyPatch, codes: list[int], k: int, stretches: int, cells: int
) -> None:
    """Counted in shared memory and without it."""
    monkeypatch.setattr(kernels, "SHARED_CELLS", cells)
    table, places = short_table(k), len(codes) - k + 1
    (block,) = blocks_of(codes, [])
    borders = [places * i // stretches for i in range(stretches + 1)]
    answers: list[int] = []
    for first, last in itertools.pairwise(borders):
        answers += searched(table, block, Stretch(first, last, 0, 1))
        # Bits are only of what stood before the stretch.
        assert set(bits_of(table)) <= {kmer for kmer, place in first_places(codes, k).items() if place < first}

    assert answers == list(truth.answers_to(codes, k)[0])[:places]
    assert turns_of(table) == {kmer: place + 1 for kmer, place in first_places(codes, k).items()}
    counts = Counter(truth.codes_of_words(word for _, word in truth.words_at(codes, k)))
    assert {kmer: int(times) for kmer, times in enumerate(table.counts) if times} == counts
    asked, found = np.array(sorted(counts, key=counts.__getitem__), np.uint64), np.zeros(len(counts), np.uint64)
    started(kernels.look_up_short_counts, len(asked), table, asked, found)
    assert found.tolist() == [counts[kmer] for kmer in asked.tolist()]


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize(("codes", "k"), [case[1:] for case in streams()], ids=[case[0] for case in streams()])
def test_parts_tell_by_bits(codes: list[int], k: int, parts: int) -> None:
    """In three stretches, of more places than a warp has lanes and fewer."""
    codes = [*codes, 4, *codes]
    places = len(codes) - k + 1
    (block,) = blocks_of(codes, [])
    for part in range(parts):
        table, told = short_table(k), list[bool]()
        for first, last in itertools.pairwise((0, places // 2, places // 2 + 3, places)):
            told += seen_by_part(table, block, Stretch(first, last, part, parts))
        assert told == seen_of_part(codes, k, part, parts)


def test_bits_are_set_of_what_comes_again() -> None:
    """In a later stretch; then no turn of them is looked at any more."""
    codes = [0, 1, 2, 3] * 12
    (block,) = blocks_of(codes, [])
    table = short_table(2)
    assert searched(table, block, Stretch(0, 10, 0, 1)).count(truth.NEW) == 4 and bits_of(table) == []
    assert searched(table, block, Stretch(10, 20, 0, 1)) == [truth.SEEN] * 10
    assert bits_of(table) == sorted(first_places(codes, 2)) and int(table.counts.sum()) == 20
    table.turns[...] = EMPTY
    assert searched(table, block, Stretch(20, 30, 0, 1)) == [truth.SEEN] * 10


def test_parts_share_the_kmers() -> None:
    codes = streams()[0][1]
    (block,) = blocks_of(codes, [])
    tables = [short_table(4) for _ in range(3)]
    known = truth.codes_of_words({word for _, word in truth.words_at(codes[30:], 4)})
    answers, fixed = [], []
    for part, table in enumerate(tables):
        answers.append(searched(table, block, Stretch(0, 57, part, 3)))
        some = short_table(4, grows=False)
        started(kernels.insert_short_known, len(known), some, np.array(known, np.uint64), part, 3)
        fixed.append(searched(some, block, Stretch(0, 57, part, 3)))
    expected, dictionary = truth.answers_to(codes, 4)
    assert np.max(answers, axis=0).tolist() == list(expected)[:57]
    held = [kmer for table in tables for kmer in turns_of(table)]
    assert sorted(held) == list(dictionary) and all(turns_of(table) for table in tables)
    assert int(sum(table.counts.sum() for table in tables)) == 57
    kmers = truth.codes_of_words(word for _, word in truth.words_at(codes, 4))
    assert np.max(fixed, axis=0).tolist() == [truth.SEEN if kmer in known else truth.NEW for kmer in kmers]


@pytest.mark.parametrize("grows", [False, True])
def test_what_is_known_before(grows: bool) -> None:
    """It has been seen at its first place, too; where nothing grows, bits are all that there is."""
    codes = streams()[0][1]
    (block,) = blocks_of(codes, [])
    known = truth.codes_of_words(sorted({word for _, word in truth.words_at(codes[20:40], 5)}))
    table = short_table(5, grows)
    for _ in range(2):
        started(kernels.insert_short_known, len(known), table, np.array(known, np.uint64), 0, 1)
    assert bits_of(table) == sorted(known)
    answers = searched(table, block, Stretch(0, 56, 0, 1))
    kmers = truth.codes_of_words(word for _, word in truth.words_at(codes, 5))
    if grows:
        expected, _ = truth.answers_to(codes, 5, 0, known)
        assert answers == list(expected)[:56]
        turns = {kmer: place + 1 for kmer, place in first_places(codes, 5).items()} | dict.fromkeys(known, 0)
        assert turns_of(table) == turns
    else:
        assert answers == [truth.SEEN if kmer in known else truth.NEW for kmer in kmers]
        assert bits_of(table) == sorted(known) and len(table.turns) == 0


@pytest.mark.parametrize("grows", [False, True])
def test_a_hash_table_goes_to_places_of_their_own(grows: bool) -> None:
    codes = streams()[0][1]
    (block,) = blocks_of(2 * codes, [])
    small = table_of(5, 92)
    known = np.array([3, 700], np.uint64)
    launched(gpu_fast.insert_known, 2, small, known, 0, 1)
    launched(gpu_fast.insert_kmers, 56, small, block, Stretch(0, 56, 0, 1), np.full(56, truth.NEW, np.uint8))
    table = short_table(5, grows)
    started(kernels.spread_slots, len(small.slots), small, table)
    assert bits_of(table) == [3, 700]
    if grows:
        turns = {kmer: place + 1 for kmer, place in first_places(codes, 5).items()} | {3: 0, 700: 0}
        assert turns_of(table) == turns
        assert int(table.counts.sum()) == 56
        assert searched(table, block, Stretch(60, 116, 0, 1)) == [truth.SEEN] * 56

"""The kernels that keep the k-mers of a stream in a table, run as they are written, against brute force."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles import tree_bitmap as truth
from oracles.lockstep import run_kernel
from warpseed.compute import warp
from warpseed.tree_bitmap import gpu_fast as kernels
from warpseed.tree_bitmap import gpu_packed
from warpseed.tree_bitmap.gpu_fast import KmerTable, PackedBlock, Stretch
from warpseed.tree_bitmap.gpu_parts import hash_of, hashes_of_part
from warpseed.tree_bitmap.slots import EMPTY

BLOCK = 8
WARPS = 64
"""Threads of a block of two warps."""
MOST_TURNS_K = 5
"""The longest k-mers that there are tables of turns for."""


def launched(kernel: Any, threads: int, *arguments: Any, block: int = BLOCK) -> None:
    functions = (
        kernels.kmer_in,
        kernels._claim,
        kernels._has_turns,
        kernels._insert_and_tell,
        kernels._turn_index,
        kernels._slot_of,
        kernels._turn_at,
        kernels._insert,
        kernels._add_taken,
        kernels._count_taken,
        kernels._set_filter,
        kernels.set_seen,
        kernels._is_held,
        kernels.times_of,
        warp.lanes_before,
    )
    run_kernel((kernels, gpu_packed, warp), functions, (kernel, threads, block), *arguments)


def prepared(table: KmerTable, *shape: int) -> np.ndarray:
    """Answers as kernels find them: NEW, unless they make them so."""
    return np.full(shape, 77 if len(table.turns) else truth.NEW, np.uint8)


def inserted(table: KmerTable, block: PackedBlock, stretch: Stretch) -> list[bool]:
    """Insert the k-mers of a part from a queue. Returns which places have one of it that stood before."""
    places = stretch.last - stretch.first
    seen = np.zeros(-(-places // 32), np.uint32)
    threads = -(-places // (kernels.PLACES_A_PART * stretch.parts))
    launched(kernels.insert_kmers_of_part, threads, table, block, stretch, seen, block=WARPS)
    return bits_in(seen, places)


def bits_in(seen: np.ndarray, places: int) -> list[bool]:
    """The bits of so many places; there are no others."""
    bits = np.unpackbits(seen.view(np.uint8), bitorder="little").astype(bool).tolist()
    assert not any(bits[places:])
    return bits[:places]


def seen_of_part(codes: list[int], k: int, part: int, parts: int) -> list[bool]:
    """Which places of a stream have a k-mer of a part that stood before."""
    words = dict(truth.words_at(codes, k))
    kmers = dict(zip(words, truth.codes_of_words(words.values()), strict=True))
    answers, _ = truth.answers_to(codes, k)
    mine = range(4**k)[hashes_of_part(k, part, parts)]
    return [
        answers[place] == truth.SEEN and int(hash_of.py_func(np.array([kmers[place]], np.uint64), k)[0]) in mine
        for place in range(len(codes) - k + 1)
    ]


def table_of(k: int, slots: int, filter_words: int = 0) -> KmerTable:
    """A table of nothing."""
    slots_of, repeats = np.full((slots, 2), EMPTY), np.zeros(slots, np.uint64)
    filter_bits = np.zeros(filter_words, np.uint32)
    return KmerTable(slots_of, np.zeros(0, np.uint64), repeats, filter_bits, np.zeros(1, np.uint64), 0, k)


def turn_table_of(k: int, part: int = 0, parts: int = 1) -> KmerTable:
    """A table of nothing, with turns for the k-mers of a part."""
    hashes = hashes_of_part(k, part, parts)
    turns = np.full(hashes.stop - hashes.start, EMPTY)
    repeats, used = np.zeros(len(turns), np.uint64), np.zeros(0, np.uint64)
    return table_of(k, 0)._replace(turns=turns, repeats=repeats, used=used, first_hash=hashes.start)


def tables_of(k: int, slots: int, part: int = 0, parts: int = 1) -> list[KmerTable]:
    """One of slots, and of short k-mers one of turns."""
    return [table_of(k, slots), *([turn_table_of(k, part, parts)] if k <= MOST_TURNS_K else [])]


def blocks_of(codes: list[int], sizes: list[int]) -> list[PackedBlock]:
    """A stream packed in blocks of so many words, each behind the last word of the one before; the last has the rest.
    Behind what a block has is what was there."""
    padded = np.full(-(-len(codes) // 32) * 32, 4, np.uint8)
    padded[: len(codes)] = codes
    blocks, first, carried = [], 0, (0, 0)
    for size in [*sizes, len(padded) // 32 - sum(sizes)]:
        words, marks = np.full((2, size + 3), 0xABAB_ABAB_ABAB_ABAB, np.uint64)
        words[0], marks[0] = carried
        launched(gpu_packed.pack_codes, size, padded[first : first + 32 * size].view(np.uint64), 1, words, marks)
        blocks.append(PackedBlock(words, marks, first - 32))
        first, carried = first + 32 * size, (words[size], marks[size])
    return blocks


def having_used(table: KmerTable, other: KmerTable) -> KmerTable:
    """A table to which the slots of another one go."""
    return table._replace(used=other.used[: len(table.used)].copy())


def held_by(table: KmerTable) -> dict[int, int]:
    """The turns of a table's k-mers, by their codes."""
    if not len(table.slots):
        assert not table.repeats[table.turns == EMPTY].any()
        indexes = hash_of.py_func(np.arange(4**table.k, dtype=np.uint64), table.k).astype(np.int64) - table.first_hash
        turns = {kmer: int(table.turns[i]) for kmer, i in enumerate(indexes) if 0 <= i < len(table.turns)}
        return {kmer: turn for kmer, turn in turns.items() if turn != EMPTY}
    taken = table.slots[:, 0] != EMPTY
    assert (table.slots[~taken] == EMPTY).all() and not table.repeats[~taken].any()
    kmers: list[int] = table.slots[taken, 0].tolist()
    assert len(set(kmers)) == len(kmers) == int(table.used[0])
    return dict(zip(kmers, table.slots[taken, 1].tolist(), strict=True))


def times_in(table: KmerTable) -> dict[int, int]:
    """How often a table's k-mers have come again, by their codes."""
    if not len(table.slots):
        kmers = np.array(list(held_by(table)), np.uint64)
        places = hash_of.py_func(kmers, table.k).astype(np.int64) - table.first_hash
        return dict(zip(kmers.tolist(), table.repeats[places].tolist(), strict=True))
    taken = table.slots[:, 0] != EMPTY
    return dict(zip(table.slots[taken, 0].tolist(), table.repeats[taken].tolist(), strict=True))


def first_places(codes: list[int], k: int) -> dict[int, int]:
    """The first places of a stream's k-mers, by their codes."""
    places = {word: place for place, word in reversed(list(truth.words_at(codes, k)))}
    return dict(zip(truth.codes_of_words(places), places.values(), strict=True))


def streams() -> list[tuple[str, list[int], int]]:
    draw = random.Random(11)
    some = [draw.randrange(4) for _ in range(60)]
    return [
        ("random", some, 3),
        ("repeat", (some[:25] * 3)[:70], 17),
        ("homopolymer", [2] * 50, 31),
        ("no bases", [draw.choice([0, 1, 2, 3, 4]) for _ in range(70)], 2),
        ("one k-mer", some[:31], 31),
        ("letters", some, 1),
    ]


@pytest.mark.parametrize(("codes", "k"), [case[1:] for case in streams()], ids=[case[0] for case in streams()])
@pytest.mark.parametrize("stretches", [1, 3])
def test_each_place_is_what_it_is(codes: list[int], k: int, stretches: int) -> None:
    places = len(codes) - k + 1
    (block,) = blocks_of(codes, [])
    borders = [places * i // stretches for i in range(stretches + 1)]
    expected, dictionary = truth.answers_to(codes, k)
    for table in tables_of(k, 92):
        answers = prepared(table, places)
        for first, last in itertools.pairwise(borders):
            stretch = Stretch(first, last, 0, 1)
            launched(kernels.insert_kmers, last - first, table, block, stretch, answers[first:last])

        assert answers.tolist() == list(expected)[:places]
        assert sorted(held_by(table)) == list(dictionary)
        assert held_by(table) == {kmer: place + 1 for kmer, place in first_places(codes, k).items()}
        assert int(table.repeats.sum()) == sum(1 for _ in truth.words_at(codes, k)) - len(dictionary)


@pytest.mark.parametrize("k", [1, 2, 17, 31])
@pytest.mark.parametrize("sizes", [[1], [2], [1, 1, 1], [2, 1], [1, 2]])
@pytest.mark.parametrize("no_bases", [[], [31], [32], [63, 64], [20, 95]])
def test_blocks_go_on_where_those_before_end(k: int, sizes: list[int], no_bases: list[int]) -> None:
    """All k-mers that a block ends are looked up with it; the next one has the bases that others begin with."""
    draw = random.Random(k)
    codes = [draw.randrange(4) for _ in range(40)] * 3
    for place in no_bases:
        codes[place] = 4
    table, answers, first = table_of(k, 164), np.full(len(codes) - k + 1, truth.NEW, np.uint8), 0
    for block, size in zip(blocks_of(codes, sizes), [*sizes, 4 - sum(sizes)], strict=True):
        last = min(block.first + 32 * (size + 1), len(codes)) - k + 1
        stretch = Stretch(first, last, 0, 1)
        launched(kernels.insert_kmers, last - first, table, block, stretch, answers[first:last])
        first = last
    assert answers.tolist() == list(truth.answers_to(codes, k)[0])[: len(answers)]
    assert held_by(table) == {kmer: place + 1 for kmer, place in first_places(codes, k).items()}


def test_parts_share_the_kmers() -> None:
    codes = streams()[0][1]
    places = len(codes) - 3
    (block,) = blocks_of(codes, [])
    tables = list(zip(*(tables_of(4, 92, part, 3) for part in range(3)), strict=True))
    known = truth.codes_of_words({word for _, word in truth.words_at(codes[30:], 4)})
    told: list[list[list[bool]]] = [[] for _ in tables]
    looked_up = np.full((3, places), truth.NEW, np.uint8)
    for part in range(3):
        stretch = Stretch(0, places, part, 3)
        for kind, of_parts in enumerate(tables):
            told[kind].append(inserted(of_parts[part], block, stretch))
        fixed = table_of(4, 92, 3)
        launched(kernels.insert_known, len(known), fixed, np.array(known, np.uint64), part, 3)
        launched(kernels.look_up_kmers, places, fixed, block, stretch, looked_up[part])
    expected, dictionary = truth.answers_to(codes, 4)
    for kind, of_parts in enumerate(tables):
        assert np.sum(told[kind], axis=0).tolist() == [answer == truth.SEEN for answer in expected[:places]]
        held = [kmer for table in of_parts for kmer in held_by(table)]
        assert sorted(held) == list(dictionary) and all(held_by(table) for table in of_parts)
    kmers = truth.codes_of_words(word for _, word in truth.words_at(codes, 4))
    assert looked_up.max(axis=0).tolist() == [truth.SEEN if kmer in known else truth.NEW for kmer in kmers]


@pytest.mark.parametrize("moved", [False, True])
def test_what_is_known_before(moved: bool) -> None:
    """It has been seen at its first place, too, and keeps its turn, also in a larger table; no k-mer is there twice."""
    codes = streams()[0][1]
    (block,) = blocks_of(codes, [])
    known = truth.codes_of_words(sorted({word for _, word in truth.words_at(codes[20:40], 5)}))
    table = table_of(5, 64)
    launched(kernels.insert_known, len(known), table, np.array(known, np.uint64), 0, 1)
    launched(kernels.insert_known, len(known), table, np.array(known, np.uint64), 0, 1)
    assert held_by(table) == dict.fromkeys(known, int(kernels.KNOWN))
    turns = {kmer: place + 1 for kmer, place in first_places(codes, 5).items()} | dict.fromkeys(known, 0)
    expected, dictionary = truth.answers_to(codes, 5, 0, known)
    tables = [table, turn_table_of(5)]
    if moved:
        tables = [having_used(larger, table) for larger in tables_of(5, 92)]
    for after in tables:
        if moved:
            launched(kernels.move_slots, len(table.slots), table, after)
        else:
            launched(kernels.insert_known, len(known), after, np.array(known, np.uint64), 0, 1)
        answers = prepared(after, 56)
        launched(kernels.insert_kmers, 56, after, block, Stretch(0, 56, 0, 1), answers)
        assert answers.tolist() == list(expected)[:56]
        assert sorted(held_by(after)) == list(dictionary)
        assert held_by(after) == turns


def test_a_larger_table_has_the_same_kmers() -> None:
    codes = streams()[0][1]
    (block,) = blocks_of(2 * codes, [])
    small = table_of(5, 64)
    launched(kernels.insert_kmers, 56, small, block, Stretch(0, 56, 0, 1), np.full(56, truth.NEW, np.uint8))
    for large in tables_of(5, 200):
        large = having_used(large, small)
        launched(kernels.move_slots, len(small.slots), small, large)
        assert held_by(large) == held_by(small)
        again = prepared(large, 56)
        launched(kernels.insert_kmers, 56, large, block, Stretch(60, 116, 0, 1), again)
        assert again.tolist() == [truth.SEEN] * 56
        assert int(large.repeats.sum()) == 2 * 56 - len(held_by(large))


def of_many_warps() -> list[tuple[str, list[int], int]]:
    """Streams of more places than a block of two warps takes, of two parts."""
    draw = random.Random(12)
    some = [draw.randrange(4) for _ in range(1200)]
    return [
        ("many", some, 30),
        ("repeat of many", [*some[:150], *some[:150], 4, *some[:300]], 12),
        ("few bases", [draw.choice([0, 4, 4]) for _ in range(700)], 3),
        ("homopolymer of many", [1] * 1100, 29),
    ]


QUEUED = [*streams(), *of_many_warps()]


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 40])
@pytest.mark.parametrize(("codes", "k"), [case[1:] for case in QUEUED], ids=[case[0] for case in QUEUED])
def test_a_queue_takes_what_threads_take(codes: list[int], k: int, parts: int) -> None:
    """Of each part, in two stretches, of which some places are no k-mer's; also of a part that nearly all are of."""
    places = len(codes) - k + 1
    (block,) = blocks_of(codes, [])
    plain = table_of(k, 2 * len(codes))
    launched(kernels.insert_kmers, places, plain, block, Stretch(0, places, 0, 1), np.full(places, truth.NEW, np.uint8))
    for part in range(min(parts, 4)):
        mine = range(4**k)[hashes_of_part(k, part, parts)]
        kmers = [kmer for kmer in held_by(plain) if int(hash_of.py_func(np.array([kmer], np.uint64), k)[0]) in mine]
        for table in tables_of(k, 2 * len(codes), part, parts):
            told: list[bool] = []
            for first, last in ((0, places // 3), (places // 3, places)):
                told += inserted(table, block, Stretch(first, last, part, parts))
            assert told == seen_of_part(codes, k, part, parts)
            assert held_by(table) == {kmer: held_by(plain)[kmer] for kmer in kmers}
            assert times_in(table) == {kmer: times_in(plain)[kmer] for kmer in kmers}


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("made_type", [np.int32, np.int64])
def test_how_often_kmers_have_come(parts: int, made_type: type) -> None:
    """Each part knows it of its own."""
    codes = [*streams()[0][1], *streams()[0][1][:30]]
    places = len(codes) - 2
    (block,) = blocks_of(codes, [])
    kmers = truth.codes_of_words(word for _, word in truth.words_at(codes, 3))
    asked = np.array(sorted(set(kmers)), np.uint64)
    known = np.zeros((2, len(asked)), made_type)
    for part in range(parts):
        stretch = Stretch(0, places, part, parts)
        for table, told in zip(tables_of(3, 92, part, parts), known, strict=True):
            counts = np.full(len(asked), 77, made_type)
            inserted(table, block, stretch)
            launched(kernels.look_up_counts, len(asked), table, asked, part, parts, counts)
            told += counts
    assert known.tolist() == 2 * [[kmers.count(kmer) for kmer in asked.tolist()]]


@pytest.mark.parametrize("filter_words", [1, 2, 40])
@pytest.mark.parametrize("moved", [False, True])
def test_a_fixed_table_takes_nothing(filter_words: int, moved: bool) -> None:
    """However many k-mers that it does not have pass its filter; a larger one has a filter, too."""
    codes = [*streams()[0][1][:50], 4, *streams()[0][1][51:]]
    (block,) = blocks_of(codes, [])
    held = {word for _, word in truth.words_at(codes[:34], 5)}
    known = np.array(truth.codes_of_words(held), np.uint64)
    table = table_of(5, 92, filter_words)
    launched(kernels.insert_known, len(known), table, known, 0, 1)
    if moved:
        table, small = table_of(5, 120, filter_words + 1)._replace(used=table.used), table
        launched(kernels.move_slots, len(small.slots), small, table)
    before = [np.array(array) for array in table[:-2]]
    answers = np.full(56, truth.NEW, np.uint8)
    launched(kernels.look_up_kmers, 56, table, block, Stretch(0, 56, 0, 1), answers)
    words = dict(truth.words_at(codes, 5))
    kinds = [truth.SEEN if words.get(place) in held else truth.NEW for place in range(56)]
    assert answers.tolist() == [kind if place in words else truth.NO_KMER for place, kind in enumerate(kinds)]
    assert all(map(np.array_equal, table[:-2], before))

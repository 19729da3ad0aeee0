"""The paper tier of the extended Burrows-Wheeler transform on the CPU, against the definitions."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hostile_words import HOSTILE, word_sets
from hypothesis import given
from oracles import ebwt as truth
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import cpu_paper, paper
from warpseed.ebwt.cpu_paper import SORTS, compare, distances, order_conjugates
from warpseed.ebwt.paper import all_pairs, bitonic_steps, prefix_length
from warpseed.ebwt.words import words_of
from warpseed.errors import InputError, MemoryLimitError

SETS = HOSTILE | {
    "print": ["abac", "cbab", "bca", "cba"],
    "Fine and Wilf": ["abaab", "abaababa", "aba", "abaabaab"],
    "length of a key": ["abcdefgh", "abcdefghabcdefgi", "abcdefg", "abcdefgha"],
}


def positions(strings: Sequence[str]) -> list[int]:
    """The oracle's order of the conjugates by their positions."""
    begins = [0, *itertools.accumulate(map(len, strings))]
    return [begins[number] + offset for number, offset in truth.ordered_conjugates(strings)]


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("strings", SETS.values(), ids=SETS)
def test_the_order_of_hostile_words_is_the_oracles(strings: list[str], sort: str) -> None:
    order = order_conjugates(words_of(strings), sort=sort)
    assert order.dtype == np.uint32 and order.tolist() == positions(strings)


def test_distances_are_those_of_definition_24() -> None:
    for strings in SETS.values():
        check_distances(strings)


@given(word_sets(60))
def test_orders_and_distances_of_drawn_words_are_the_oracles(strings: list[str]) -> None:
    expected = positions(strings)
    for sort in SORTS:
        assert order_conjugates(words_of(strings), sort=sort).tolist() == expected
    check_distances(strings)


def check_distances(strings: list[str]) -> None:
    words = words_of(strings)
    measured = distances(words, order_conjugates(words))
    assert measured.dtype == np.int64 and measured.shape == (len(strings), len(strings))
    for i, j in itertools.combinations(range(len(strings)), 2):
        assert measured[i, j] == measured[j, i] == truth.distance(strings[i], strings[j])
    assert not measured.diagonal().any()


def test_pairs_are_measured_among_all_words() -> None:
    """Of the pairs that are asked for, and with the stages of the paper."""
    strings = ["bcaa", "abc", "ccbab"] * 2
    pairs = np.array([[0, 2], [2, 0], [5, 3], [1, 1], [0, 3]], np.uint32)
    for sort in SORTS:
        watch = Stopwatch()
        compared = compare(words_of(strings), pairs, sort, watch=watch)
        assert compared.distances.tolist() == [3, 3, 3, 2, 0]  # Example 26; a word alone has one run
        assert compared.order.tolist() == positions(strings)
        assert list(watch.seconds) == ["conjugates", "sort", "distance"]
    assert compare(words_of(strings), pairs[:0]).distances.tolist() == []


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200])
def test_words_and_pairs_are_worked_on_in_parts(count: int) -> None:
    strings = [f"{number:b}" for number in range(count)]
    words = words_of(strings)
    order = order_conjugates(words)
    assert sorted(order.tolist()) == list(range(len(words.codes)))
    assert order.tolist() == order_conjugates(words, sort="merge").tolist()
    measured = distances(words, order)
    for i, j in ((0, count - 1), (count // 2, count - 1), (count // 3, count // 2)):
        if i < j:
            assert measured[i, j] == truth.distance(strings[i], strings[j])


def test_conjugates_are_written_out_to_the_length_of_section_iii() -> None:
    for strings in SETS.values():
        assert prefix_length(words_of(strings)) == truth.prefix_length(strings)
    assert prefix_length(words_of(["abac", "cbab", "bca", "cba"])) == 6


def test_one_letter_less_would_not_do() -> None:
    """Two words of a and b that agree as far as |u| + |v| - gcd - 1, and the whole bound is needed (Proposition 1)."""
    pairs = [(u, v) for u, v in itertools.product(map("".join, itertools.product("ab", repeat=5)), ["aab", "aba"])]
    bound = 5 + 3 - 1
    close = [pair for pair in pairs if truth_prefix(pair[0], bound - 1) == truth_prefix(pair[1], bound - 1)]
    assert close
    for pair in close:
        assert order_conjugates(words_of(pair)).tolist() == positions(pair)


def truth_prefix(word: str, length: int) -> str:
    return (word * length)[:length]


@pytest.mark.parametrize("bits", range(6))
def test_steps_of_a_bitonic_sort_order_any_numbers(bits: int) -> None:
    """The steps and the places of their threads alone; zeros and ones suffice, and all of them up to 16."""
    size = 1 << bits
    steps = bitonic_steps(size)
    assert len(steps) == bits * (bits + 1) // 2
    draw = random.Random(bits)
    rows = itertools.product([0, 1], repeat=size) if size <= 8 else (draw.choices([0, 1], k=size) for _ in range(99))
    for row in rows:
        values = list(row)
        for width, stride in steps:
            places = [paper.begin_exchange(thread, stride) for thread in range(size // 2)]
            assert sorted([*places, *(place + stride for place in places)]) == list(range(size))
            for low in places:
                pair = sorted([values[low], values[low + stride]], reverse=bool(low & width))
                values[low], values[low + stride] = pair
        assert values == sorted(row)


def test_memory_for_all_conjugates_is_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_paper, "available_memory", lambda: 10_000_000)
    words = words_of(["ab" * 2000, "abc" * 300])
    with pytest.raises(MemoryLimitError, match=r"writes out 4,900 conjugates of 4,[0-9]{3} letters, .* tier='fast'"):
        order_conjugates(words)
    assert len(order_conjugates(words_of(["ab" * 300]))) == 600


def test_a_sort_that_there_is_not_is_refused() -> None:
    with pytest.raises(InputError, match="sort is 'radix', but 'bitonic' or 'merge' was expected on the CPU"):
        order_conjugates(words_of(["ab"]), sort="radix")
    assert all_pairs(3).tolist() == [[0, 1], [0, 2], [1, 2]] and all_pairs(1).shape == (0, 2)

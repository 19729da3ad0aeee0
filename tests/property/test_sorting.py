"""Sorts in compiled code beside Python's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpseed.compute.groups import SPLIT, TIED, UNTIED, set_states, state_of, untied
from warpseed.compute.sorting import STACK, sort_numbers, sort_pairs, sort_ranges
from warpseed.fm_index.suffix_ranks import sort_large_group

RANGES = st.lists(st.lists(st.integers(0, 9) | st.integers(0, 2**63), max_size=90), max_size=4)


@given(RANGES)
def test_ranges_of_values(ranges: list[list[int]]) -> None:
    values = np.array([value for each in ranges for value in each], np.uint64)
    sort_ranges(values, np.array([len(each) for each in ranges], np.int64))
    assert values.tolist() == [value for each in ranges for value in sorted(each)]


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@given(st.randoms(use_true_random=False), st.integers(0, 400), st.integers(0, 400))
def test_numbers(dtype: type, random, before: int, size: int) -> None:
    """Of which no two are equal; the smallest and the largest among them, and what stands around them."""
    largest = int(np.iinfo(dtype).max)
    among = {0, largest, *(random.randrange(largest) for _ in range(size))}
    numbers = np.array([5] * before + random.sample(sorted(among), len(among)) + [5], dtype)
    sort_numbers(numbers, before, before + len(among), np.empty(STACK, np.int64))
    assert numbers.tolist() == [5] * before + sorted(among) + [5]


@pytest.mark.parametrize("budget", [1, 1 << 40])
@given(st.randoms(use_true_random=False), st.integers(0, 400), st.sampled_from([1, 3, 2**40, 2**64]))
def test_pairs_step_by_step(budget: int, random, size: int, most: int) -> None:
    """Whatever is left is on the stack, and every key keeps what goes with it."""
    keys = [random.randrange(most) for _ in range(size)]
    sorted_keys, places = np.array(keys, np.uint64), np.arange(size, dtype=np.uint32)
    stack = np.zeros(STACK, np.int64)
    stack[:3] = 1, 0, size
    calls = 1
    while sort_pairs(sorted_keys, places, stack, budget):
        calls += 1
    assert sorted_keys.tolist() == sorted(keys) == [keys[place] for place in places]
    assert sorted(places.tolist()) == list(range(size))
    assert calls == 1 or budget == 1


@pytest.mark.parametrize("budget", [1, 1 << 40])
@given(st.randoms(use_true_random=False), st.integers(2, 400), st.sampled_from([1, 3, 2**30]))
def test_a_large_group_step_by_step(budget: int, random, size: int, most: int) -> None:
    """Rows are in the order of the ranks behind, and those of one rank are tied still."""
    depth, before = 2, 3
    ranks = [random.randrange(most) for _ in range(size + depth)]
    positions = np.array([9] * before + random.sample(range(size), size), np.uint32)
    tied = untied(before + size)
    set_states(tied, before + 1, before + size, TIED)
    stack, gone = np.zeros(STACK, np.int64), 0
    stack[:3] = 1, before, before + size
    while stack[0]:
        gone += sort_large_group(np.array(ranks, np.uint32), depth, positions, tied, stack, budget)
    found = [ranks[position + depth] for position in positions[before:]]
    assert positions[:before].tolist() == [9] * before and sorted(positions[before:].tolist()) == list(range(size))
    assert found == sorted(found)
    expected = [TIED if rank == other else SPLIT for rank, other in zip(found, found[1:], strict=False)]
    states = [state_of(tied, row) for row in range(32 * len(tied))]
    assert states == [UNTIED] * (before + 1) + expected + [UNTIED] * (len(states) - before - size)
    assert gone == expected.count(SPLIT)

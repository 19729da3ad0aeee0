"""States of rows, two bits each, beside a list of numbers; and threads that share words of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpseed.compute.compiled import scalar, uint64
from warpseed.compute.groups import (
    NO_BITS,
    SPLIT,
    TIED,
    UNTIED,
    border_behind,
    next_tie,
    set_state,
    set_states,
    settle_ties,
    spans_of_groups,
    state_of,
    turn_bits,
    turn_state,
    untied,
    write_states,
)

STATES = st.lists(st.integers(0, 3) | st.just(0), max_size=200) | st.builds(
    lambda states, times: states * times, st.lists(st.integers(0, 3), max_size=2), st.integers(0, 90)
)


def tied_of(states: list[int]) -> np.ndarray:
    tied = untied(len(states))
    write_states(tied, 0, len(states), np.array(states, np.uint8))
    return tied


def states_of(tied: np.ndarray, rows: int) -> list[int]:
    """The states of all rows; what is behind them is UNTIED."""
    assert all(state_of(tied, row) == UNTIED for row in range(rows, 32 * len(tied)))
    return [state_of(tied, row) for row in range(rows)]


@given(STATES)
def test_states_are_written_and_read(states: list[int]) -> None:
    tied = tied_of(states)
    assert tied.dtype == np.uint64 and len(tied) * 32 > len(states)
    assert states_of(tied, len(states)) == states


@given(STATES.filter(len), st.data())
def test_states_change_by_rows_and_by_ranges(states: list[int], data: st.DataObject) -> None:
    tied, rows = tied_of(states), len(states)
    for _ in range(3):
        row, state = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, 3))
        set_state(tied, row, state)
        states[row] = state
        first, last = sorted(data.draw(st.tuples(st.integers(0, rows), st.integers(0, rows))))
        set_states(tied, first, last, state ^ 1)
        states[first:last] = [state ^ 1] * (last - first)
        assert states_of(tied, rows) == states


@scalar
def _turn(tied, changes):
    """Change the states of those rows whose change is not 0."""
    turned = NO_BITS
    for row in range(changes.shape[0]):
        if changes[row] != 0:
            turned = turn_state(tied, row, changes[row], turned)
    turn_bits(tied, turned)


@given(STATES, st.randoms(use_true_random=False), st.integers(1, 70))
def test_states_change_in_turn(states: list[int], random, seldom: int) -> None:
    """Some of the rows, as they come, with words left out; what is between them stays."""
    tied, changes = tied_of(states), [random.randrange(4) * (not random.randrange(seldom)) for _ in states]
    _turn(tied, np.array(changes, np.uint8))
    assert states_of(tied, len(states)) == [state ^ change for state, change in zip(states, changes, strict=True)]


@given(STATES, st.data())
def test_ties_and_borders_are_found(states: list[int], data: st.DataObject) -> None:
    tied, rows = tied_of(states), len(states)
    for row in range(rows + 1):
        last = data.draw(st.integers(row, rows))
        assert next_tie(tied, row, last) == next((i for i in range(row, last) if states[i]), last)
        assert border_behind(tied, row) == next((i for i in range(row, rows) if not states[i]), rows)


@given(STATES.filter(len), st.integers(1, 5))
def test_no_group_leads_out_of_a_span(states: list[int], threads: int) -> None:
    states[0] = 0
    spans = spans_of_groups(tied_of(states), len(states), threads)
    assert [row for span in spans for row in range(*span)] == list(range(len(states)))
    assert all(states[first] == 0 for first, _ in spans)


@scalar
def _count_up(tied, first, last, rounds):
    """The state of every row grows by one, `rounds` times, as numbers of two bits do."""
    for _ in range(rounds):
        for row in range(first, last):
            set_state(tied, row, (state_of(tied, row) + uint64(1)) & uint64(3))


@scalar
def _turn_all(tied, first, last, rounds):
    """All rows become 3, then 0 again, `rounds` times, by ranges and in turn."""
    for _ in range(rounds):
        set_states(tied, first, last, 3)
        turned = NO_BITS
        for row in range(first, last):
            turned = turn_state(tied, row, 3, turned)
        turn_bits(tied, turned)


@pytest.mark.parametrize("borders", [(0, 16, 32), (0, 1, 31, 32, 40), (3, 37, 38, 70, 96), (0, 5, 10, 15, 20, 25)])
def test_threads_share_words(borders: tuple[int, ...]) -> None:
    """Whatever thread changes a state, no other one's change of the same word is lost."""
    spans, rounds = list(zip(borders, borders[1:], strict=False)), 100_001
    tied = untied(borders[-1])
    with ThreadPoolExecutor(len(spans)) as pool:
        list(pool.map(lambda span: _count_up(tied, *span, rounds), spans))
    assert states_of(tied, borders[-1]) == [0] * borders[0] + [rounds % 4] * (borders[-1] - borders[0])
    tied = untied(borders[-1])
    with ThreadPoolExecutor(len(spans)) as pool:
        list(pool.map(lambda span: _turn_all(tied, *span, rounds), spans))
    assert not tied.any()


@given(st.lists(st.integers(0, 2), min_size=1, max_size=150), st.integers(1, 3), st.randoms(use_true_random=False))
def test_ranks_are_first_rows_of_groups(states: list[int], threads: int, random) -> None:
    """What is SPLIT at first, none of it behind a tie, shares the rank before; later it begins a group."""
    states[0] = 0
    for row in range(1, len(states)):
        states[row] = 0 if states[row] == SPLIT and states[row - 1] == TIED else states[row]
    rows, often, depths = len(states), random.random(), []
    order = np.array(random.sample(range(rows), rows), np.uint32)
    tied, ranks = tied_of(states), np.empty(rows, np.uint32)
    heads = {row for row, state in enumerate(states) if not state}
    ties = {row for row, state in enumerate(states) if state == TIED}

    def sort_round(depth: int) -> int:
        assert ranks[order].tolist() == np.maximum.accumulate([row * (row in heads) for row in range(rows)]).tolist()
        assert states_of(tied, rows) == [int(TIED) * (row in ties) for row in range(rows)]
        split = {row for row in ties if random.random() < often}
        for row in split:
            set_state(tied, row, SPLIT)
        heads.update(split)
        ties.difference_update(split)
        depths.append(depth)
        return len(depths) < 4

    settle_ties(order, tied, ranks, 5, sort_round, threads)
    assert depths == [5, 10, 20, 40]

"""The CPU's windows of a k-mer, chosen by the rows that buckets of this genome have, and how far look-ups narrow.

Beside the windows of `warpseed.kmer_seeds.fast`, which are looked up alone, there are lists from right to left, whose
windows are looked up with the bases behind them: these lie in the window before in the list, which had more mismatches
than its own, or it would have reported the match. So few strings of them are possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from math import comb
from typing import NamedTuple

import numpy as np

from warpseed.fm_index.crowding import crowding_of
from warpseed.fm_index.layout import SeedIndex
from warpseed.kmer_seeds.fast import (
    Costs,
    Scheme,
    Window,
    error_splits,
    lay_outs,
    lengths_in,
    scheme_of,
    seen_bases,
    spare_mismatches,
    spent_in,
)
from warpseed.sequences.packed import BASES_A_WORD

__all__ = ["Plan", "make_plan"]


class Plan(NamedTuple):
    """What is looked up for k-mers of each length, and how far the rows that are wanted agree with it."""

    scheme: Scheme
    exact: np.ndarray
    """uint8[patterns of the scheme], bases from the window's first on, at most 32: what is looked up, and those behind
    it in which a match is as the k-mer, since all mismatches that it may have there
    are spent"""


class _Task(NamedTuple):
    length: int
    max_mismatches: int
    table_length: int


class _BucketCosts(NamedTuple):
    """What a bucket of s bases costs on average, for s from 0 to K, as tuples."""

    own: tuple[float, ...]
    near: tuple[float, ...]
    own_narrowed: tuple[float, ...]
    near_narrowed: tuple[float, ...]


def _exact_bases(windows: Sequence[Window], i: int, spent: tuple[int, int], task: _Task) -> int:
    """Bases from window i on that a match has as what is looked up says, or else as the k-mer.

    Parameters
    ----------
    spent : mismatches of what is looked up, in the window and ahead of it
    """
    window = windows[i]
    seen = sum(seen_bases(window, task.table_length))
    exact = seen
    if sum(spent) == task.max_mismatches:
        exact = task.length - window.offset
    elif spare_mismatches(windows, i, spent, task.max_mismatches) == 0:
        # What is left belongs to the windows before; the nearest on the right ends what is sure.
        behind = [before.offset for before in windows[:i] if before.offset >= window.offset + window.length]
        exact = min(behind, default=task.length) - window.offset
    elif spent[0] == window.errors:
        exact = window.length
    return min(max(seen, exact), BASES_A_WORD)


def _classes(windows: Sequence[Window], i: int, task: _Task) -> Iterator[tuple[int, tuple[int, int]]]:
    """How many strings are looked up for window i, by their mismatches in it and ahead of it."""
    own, ahead = seen_bases(windows[i], task.table_length)
    left = task.max_mismatches - sum(window.errors + 1 for window in windows[: max(i - 1, 0)])
    for a in range(min(windows[i].errors, own) + 1):
        for b in range(min(left - a, ahead) + 1):
            yield comb(own, a) * comb(ahead, b) * 3 ** (a + b), (a, b)


def _cost(windows: Sequence[Window], task: _Task, costs: Costs, buckets: _BucketCosts) -> float:
    total = 0.0
    for i, window in enumerate(windows):
        seen = sum(seen_bases(window, task.table_length))
        each = costs.look_up if seen == task.table_length else costs.short_look_up
        for number, spent in _classes(windows, i, task):
            narrowed = _exact_bases(windows, i, spent, task) > seen
            total += number * (each + buckets[(sum(spent) > 0) + 2 * narrowed][seen])
    return total


def _right_to_left(lengths: Sequence[int], errors: Sequence[int], table_length: int) -> list[Window]:
    """Windows of these lengths and mismatches, given and listed from right to left, with the bases ahead."""
    ends = list(accumulate(lengths, lambda end, length: end - length, initial=sum(lengths)))
    ahead = [0] + [min(max(table_length - own, 0), behind) for behind, own in pairwise(lengths)]
    return [Window(*each) for each in zip(ends[1:], lengths, errors, ahead, strict=True)]


def _lists_ahead(task: _Task) -> Iterator[list[Window]]:
    """Two windows of any lengths, and the whole k-mer shared evenly among exact ones."""
    k, table_length, most = task.length, task.table_length, task.max_mismatches
    for right in range(1, k):
        if min(right, k - right) <= table_length or right == k // 2:
            for errors in range(most):
                yield _right_to_left((right, k - right), (errors, most - 1 - errors), table_length)
    if 2 <= most < k:
        yield _right_to_left([(k + i) // (most + 1) for i in range(most + 1)], [0] * (most + 1), table_length)


def _choose(task: _Task, costs: Costs, buckets: _BucketCosts) -> list[Window]:
    options = [
        windows
        for errors in error_splits(task.max_mismatches + 1)
        for windows in lay_outs(task.length, errors, task.table_length)
    ]
    options += _lists_ahead(task)
    return min(options, key=lambda windows: _cost(windows, task, costs, buckets))


def _bucket_costs(index: SeedIndex, costs: Costs) -> _BucketCosts:
    sampled = crowding_of(index)
    tuples = []
    for rows in sampled:
        steps = costs.narrowing * np.log2(np.maximum(rows, 2)) + costs.row
        narrowed = np.where(rows > costs.narrow_above, steps, costs.row * rows)
        tuples.append([tuple(each.mean(axis=1).tolist()) for each in (costs.row * rows, narrowed)])
    (own, own_narrowed), (near, near_narrowed) = tuples
    return _BucketCosts(own, near, own_narrowed, near_narrowed)


def _exact_of(chosen: dict[int, list[Window]], scheme: Scheme, max_mismatches: int) -> np.ndarray:
    """`Plan.exact` of a scheme."""
    exact = np.zeros(len(scheme.patterns), np.uint8)
    for length, windows in chosen.items():
        task = _Task(length, max_mismatches, scheme.table_length)
        for i, window in enumerate(windows):
            _, ahead = seen_bases(window, scheme.table_length)
            first, last = scheme.pattern_first[length, i : i + 2].tolist()
            spent = spent_in(scheme.patterns[first:last], ahead)
            exact[first:last] = [_exact_bases(windows, i, each, task) for each in spent]
    return exact


def make_plan(index: SeedIndex, lengths: np.ndarray, max_mismatches: int, costs: Costs) -> Plan:
    """Choose the windows for every length in a set.

    Parameters
    ----------
    lengths : uint32[n], bases of the k-mers
    max_mismatches : int, 0 to MAX_MISMATCHES
    costs : Costs of the CPU
    """
    # Without mismatches there is one window, and nothing to choose.
    buckets = _bucket_costs(index, costs) if max_mismatches else None
    return _plan_of(lengths_in(lengths), max_mismatches, index.table_length, costs, buckets)


@lru_cache(maxsize=64)
def _plan_of(
    present: tuple[int, ...], max_mismatches: int, table_length: int, costs: Costs, buckets: _BucketCosts | None
) -> Plan:
    chosen = {}
    for k in present:
        task = _Task(k, max_mismatches, table_length)
        chosen[k] = [Window(0, k, 0)] if buckets is None else _choose(task, costs, buckets)
    scheme = scheme_of(chosen, max_mismatches, table_length)
    return Plan(scheme, _exact_of(chosen, scheme, max_mismatches))

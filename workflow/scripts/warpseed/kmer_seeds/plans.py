"""The CPU's windows of a k-mer, chosen by the rows that buckets of this genome have.

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
from weakref import WeakKeyDictionary

import numpy as np

from warpseed.fm_index.crowding import Crowding, crowding_of
from warpseed.fm_index.layout import SeedIndex
from warpseed.kmer_seeds.fast import (
    Costs,
    Scheme,
    Window,
    error_splits,
    exact_bases,
    lay_outs,
    lengths_in,
    scheme_of,
    seen_bases,
)

__all__ = ["plan_scheme"]


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
            narrowed = exact_bases(windows, i, spent, *task) > seen
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


_known: WeakKeyDictionary[SeedIndex, dict[Costs, _BucketCosts]] = WeakKeyDictionary()


def _bucket_costs(index: SeedIndex, costs: Costs) -> _BucketCosts:
    """Worked out once: each part of a set of k-mers asks for them."""
    known = _known.setdefault(index, {})
    if costs not in known:
        known[costs] = _costs_of(crowding_of(index), costs)
    return known[costs]


def _costs_of(sampled: Crowding, costs: Costs) -> _BucketCosts:
    tuples = []
    for rows in sampled:
        steps = costs.narrowing * np.log2(np.maximum(rows, 2)) + costs.row
        narrowed = np.where(rows > costs.narrow_above, steps, costs.row * rows)
        tuples.append([tuple(each.mean(axis=1).tolist()) for each in (costs.row * rows, narrowed)])
    (own, own_narrowed), (near, near_narrowed) = tuples
    return _BucketCosts(own, near, own_narrowed, near_narrowed)


def plan_scheme(index: SeedIndex, lengths: np.ndarray, max_mismatches: int, costs: Costs) -> Scheme:
    """Choose the windows for every length in a set.

    Parameters
    ----------
    lengths : uint32[n], bases of the k-mers
    max_mismatches : int, 0 to MAX_MISMATCHES
    costs : Costs of the CPU
    """
    # Without mismatches there is one window, and nothing to choose.
    buckets = _bucket_costs(index, costs) if max_mismatches else None
    return _planned(lengths_in(lengths), max_mismatches, index.table_length, costs, buckets)


@lru_cache(maxsize=64)
def _planned(
    present: tuple[int, ...], max_mismatches: int, table_length: int, costs: Costs, buckets: _BucketCosts | None
) -> Scheme:
    chosen = {}
    for k in present:
        task = _Task(k, max_mismatches, table_length)
        chosen[k] = [Window(0, k, 0)] if buckets is None else _choose(task, costs, buckets)
    return scheme_of(chosen, max_mismatches, table_length)

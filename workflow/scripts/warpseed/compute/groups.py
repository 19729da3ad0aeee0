"""Groups of what is tied, in an order that is being made by prefix doubling.

Of a row that is tied with the one before it `tied` is 1. Where they are tied no more it is 2, until ranks are renewed,
and then 0. Rows that are tied with each other are a *group*; the *rank* of what stands in a row is the first row of its
group. `tied` has 8 entries of 0 behind the last row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint8, uint64
from warpseed.compute.intrinsics import load_word
from warpseed.compute.ranges import on_threads, spans_of

__all__ = ["border_behind", "next_tie", "settle_ties", "spans_of_groups"]


@scalar
def border_behind(tied, row):
    """The first row from `row` on at which a group begins, or the end."""
    while row < tied.shape[0] and tied[uint64(row)] != uint8(0):
        row += int64(1)
    return row


@inlined
def next_tie(tied, row, last):
    """The first row of [row, last) that is tied with the one before, or `last`."""
    while row < last and tied[uint64(row)] == uint8(0):
        row += int64(8) if load_word(tied, int64(row)) == uint64(0) else int64(1)
    return min(row, last)


@scalar
def _first_ranks(span, order, tied, ranks):
    """Write the ranks of what stands in the rows [first, last), where a group begins; what is 2 becomes 0.

    Parameters
    ----------
    order : uint32[n] or uint64[n], what stands in each row
    ranks : uint32[n] or uint64[n], of what stands anywhere
    """
    first, last = span
    head = first
    for row in range(first, last):
        if tied[uint64(row)] == uint8(0):
            head = int64(row)
        elif tied[uint64(row)] == uint8(2):
            tied[uint64(row)] = uint8(0)
        ranks[uint64(order[uint64(row)])] = head


@scalar
def _renew_ranks(span, order, tied, ranks):
    """Renew the ranks of the groups of [first, last), which no group leads out of."""
    first, last = span
    row = next_tie(tied, first + int64(1), last)
    while row < last:
        head, moved = row - int64(1), False
        while row < last and tied[uint64(row)] != uint8(0):
            if tied[uint64(row)] == uint8(2):
                tied[uint64(row)] = uint8(0)
                head, moved = row, True
            if moved:
                ranks[uint64(order[uint64(row)])] = head
            row += int64(1)
        row = next_tie(tied, row, last)


def spans_of_groups(tied: np.ndarray, count: int, threads: int) -> list[tuple[int, int]]:
    """The first `count` rows in ranges that no group leads out of, some for each of the threads."""
    spans = spans_of(count, threads * 4 if threads > 1 else 1)
    borders = [0, *(border_behind(tied, last) for _, last in spans)]
    return [span for span in zip(borders, borders[1:], strict=False) if span[0] < span[1]]


def settle_ties(
    order: np.ndarray,
    tied: np.ndarray,
    ranks: np.ndarray,
    depth: int,
    sort_round: Callable[[int], int],
    threads: int,
) -> None:
    """Sort what is tied by its first `depth` letters by ranks, round for round, each of twice as many letters.

    Parameters
    ----------
    order : uint32[n] or uint64[n], what stands in each row
    tied : uint8[n + 8]
    ranks : uint32[n] or uint64[n], filled
    sort_round : ``sort_round(depth)`` sorts all groups once, marks in `tied` what is tied no more, and returns how many
        ties are worth another round
    threads : CPU threads
    """

    def each_group(write: Callable[..., None]) -> None:
        spans = spans_of_groups(tied, len(order), threads)
        on_threads(threads, lambda number: write(spans[number], order, tied, ranks), len(spans))

    each_group(_first_ranks)
    while sort_round(depth):
        each_group(_renew_ranks)
        depth *= 2

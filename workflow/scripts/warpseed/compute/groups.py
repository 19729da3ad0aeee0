"""Groups of what is tied, in an order that is being made by prefix doubling.

`tied` holds two bits for each row, its *state*: UNTIED; TIED with the row before; SPLIT, which is tied with it no more,
until ranks are renewed; and EQUAL, for what an order means by it. Rows that are not UNTIED are in the *group* of the
row before; the *rank* of what stands in a row is the first row of its group.

Threads that work on ranges of rows share the words at the borders of these, so bits are turned by atomic instructions:
where states change, which is a few times a row in all, and those of a word at once where rows come one by one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import atomic_xor, popcount, trailing_zeros
from warpseed.compute.ranges import on_threads, spans_of

__all__ = [
    "EQUAL", "NO_BITS", "SPLIT", "TIED", "UNTIED", "border_behind", "next_tie", "set_state", "set_states",
    "settle_ties", "spans_of_groups", "state_of", "turn_bits", "turn_state", "untied", "write_states",
]  # fmt: skip

UNTIED, TIED, SPLIT, EQUAL = np.arange(4, dtype=np.uint64)
NO_BITS = 0, np.uint64(0)
"""(word, bits): none that are to be turned."""
_PASSES = 3
"""Of other means, at most, before what is left is sorted by ranks."""
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW = np.uint64(0x5555555555555555)
"""The lower bit of every state of a word."""


def untied(rows: int) -> np.ndarray:
    """States of so many rows, UNTIED, uint64[rows // 32 + 1]: behind the last row there is one more at least."""
    return np.zeros(rows // 32 + 1, np.uint64)


@inlined
def state_of(tied, row):
    """The state of a row, uint64."""
    return (tied[uint64(row) >> uint64(5)] >> ((uint64(row) & uint64(31)) << uint64(1))) & uint64(3)


@inlined
def set_state(tied, row, state):
    """Give a row a state, while other threads may do so with other rows."""
    change = state_of(tied, row) ^ uint64(state)
    if change != uint64(0):
        atomic_xor(tied, int64(uint64(row) >> uint64(5)), change << ((uint64(row) & uint64(31)) << uint64(1)))


@inlined
def turn_bits(tied, turned):
    """Turn the bits of a word: those that `turn_state` returned last."""
    word, bits = turned
    if bits != uint64(0):
        atomic_xor(tied, int64(word), bits)


@inlined
def turn_state(tied, row, change, turned):
    """Change the state of a row as soon as those of its word are all known: rows come in turn, `turn_bits` at the end.

    Parameters
    ----------
    change : the state that it has, xor the one that it gets
    turned : (word, bits) that this returned of the row before, or NO_BITS
    """
    word, bits = turned
    at = int64(uint64(row) >> uint64(5))
    if at != word:
        turn_bits(tied, turned)
        bits = uint64(0)
    return at, bits | (uint64(change) << ((uint64(row) & uint64(31)) << uint64(1)))


@inlined
def write_states(tied, first, last, states):
    """Give the rows [first, last), which are UNTIED, the states of a uint8 array."""
    turned = NO_BITS
    for row in range(first, last):
        turned = turn_state(tied, row, states[uint64(row - first)], turned)
    turn_bits(tied, turned)


@inlined
def _bits_of(word, first, last):
    """The bits of those of the rows [first, last) that are in a word."""
    begin = word << int64(5)
    bits = uint64(_ALL) << uint64(int64(2) * max(int64(0), first - begin))
    return bits & (uint64(_ALL) >> uint64(int64(2) * max(int64(0), begin + int64(32) - last)))


@scalar
def set_states(tied, first, last, state):
    """Give the rows [first, last) a state, while other threads may do so with other rows."""
    states = uint64(_LOW) * uint64(state)
    for word in range(first >> int64(5), (last + int64(31)) >> int64(5)):
        change = (tied[uint64(word)] ^ states) & _bits_of(word, first, last)
        if change != uint64(0):
            atomic_xor(tied, int64(word), change)


@inlined
def border_behind(tied, row):
    """The first row from `row` on at which a group begins, or the one behind the last."""
    word = uint64(row) >> uint64(5)
    bits = uint64(_ALL) << ((uint64(row) & uint64(31)) << uint64(1))
    while True:
        heads = ~(tied[word] | (tied[word] >> uint64(1))) & uint64(_LOW) & bits
        if heads != uint64(0):
            return int64(word << uint64(5)) + (trailing_zeros(heads) >> int64(1))
        word += uint64(1)
        bits = uint64(_ALL)


@inlined
def next_tie(tied, row, last):
    """The first row of [row, last) that is not UNTIED, or `last`."""
    while row < last:
        left = tied[uint64(row) >> uint64(5)] >> ((uint64(row) & uint64(31)) << uint64(1))
        if left != uint64(0):
            return min(row + (trailing_zeros(left) >> int64(1)), last)
        row = (row | int64(31)) + int64(1)
    return last


@inlined
def _end_splits(tied, first, last):
    """Of the rows [first, last) those that are SPLIT become UNTIED."""
    for word in range(first >> int64(5), (last + int64(31)) >> int64(5)):
        states = tied[uint64(word)]
        split = states & ~(states << uint64(1)) & ~uint64(_LOW) & _bits_of(word, first, last)
        if split != uint64(0):
            atomic_xor(tied, int64(word), split)


@scalar
def _first_ranks(span, order, tied, ranks):
    """Write the ranks of what stands in the rows [first, last), where a group begins; what is SPLIT, which no tie comes
    before, becomes UNTIED and keeps its rank.

    Parameters
    ----------
    order : uint32[n] or uint64[n], what stands in each row
    ranks : uint32[n] or uint64[n], of what stands anywhere
    """
    first, last = span
    head = first
    for row in range(first, last):
        if state_of(tied, row) == uint64(UNTIED):
            head = int64(row)
        ranks[uint64(order[uint64(row)])] = head
    _end_splits(tied, first, last)


@scalar
def _renew_ranks(span, order, tied, ranks):
    """Renew the ranks of the groups of [first, last), which no group leads out of."""
    first, last = span
    begin = next_tie(tied, first + int64(1), last)
    while begin < last:
        end = border_behind(tied, begin)
        head, moved = begin - int64(1), False
        for row in range(begin, end):
            if state_of(tied, row) == uint64(SPLIT):
                head, moved = int64(row), True
            if moved:
                ranks[uint64(order[uint64(row)])] = head
        begin = next_tie(tied, end, last)
    _end_splits(tied, first, last)


@scalar
def count_ties(tied):
    """How many rows are TIED, int64."""
    count = int64(0)
    for word in range(tied.shape[0]):
        states = tied[uint64(word)]
        count += int64(popcount(states & ~(states >> uint64(1)) & uint64(_LOW)))
    return count


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
    sort_at_first: Callable[[], None] | None = None,
) -> None:
    """Sort what is tied by its first `depth` letters by ranks, round for round, each of twice as many letters.

    Parameters
    ----------
    order : uint32[n] or uint64[n], what stands in each row
    tied : uint64[n // 32 + 1]
    ranks : uint32[n] or uint64[n], filled
    sort_round : ``sort_round(depth)`` sorts all groups once, marks in `tied` what is tied no more, and returns how many
        ties are worth another round
    threads : CPU threads
    sort_at_first : sorts groups by other means, when ranks have been written, and makes SPLIT what is tied no more;
        called up to _PASSES times, as long as it does, as what is sorted may show the order of what is not
    """

    def each_group(write: Callable[..., None]) -> None:
        spans = spans_of_groups(tied, len(order), threads)
        on_threads(threads, lambda number: write(spans[number], order, tied, ranks), len(spans))

    each_group(_first_ranks)
    if sort_at_first is not None:
        left = count_ties(tied)
        for _ in range(_PASSES):
            sort_at_first()
            before, left = left, count_ties(tied)
            if not left:
                return
            if left == before:
                break
            each_group(_renew_ranks)
    while sort_round(depth):
        each_group(_renew_ranks)
        depth *= 2

"""Steps of sorting the suffixes of a packed text on the CPU: by ranks, what letters left tied.

Suffixes that are tied by their first h bases are sorted by the ranks of those that begin h bases later. `tied`, groups
and ranks are those of `warpseed.compute.groups`.
"""

from __future__ import annotations

from warpseed.compute.compiled import int64, scalar, uint8, uint32, uint64
from warpseed.compute.groups import next_tie
from warpseed.compute.sorting import middle, sort_numbers

__all__ = ["sort_groups", "sort_large_group"]


@scalar
def sort_groups(ranks, depth, span, positions, tied, room):
    """Sort groups by the ranks of what begins `depth` bases later.

    Parameters
    ----------
    ranks : uint32[n], of positions
    span : (first, last), rows that no group leads out of

    Returns
    -------
    (row, ties) : it stopped before the group of this row, which has no room, or at the end; and how many ties are left
    """
    first, last = span
    ties = int64(0)
    row = next_tie(tied, first + int64(1), last)
    while row < last:
        begin = row - int64(1)
        size = int64(0)
        tie = True
        while tie:
            if size == room.elements.shape[0]:
                return begin, ties
            position = uint64(positions[uint64(begin + size)])
            room.elements[uint64(size)] = (uint64(ranks[position + uint64(depth)]) << uint64(32)) | position
            size += int64(1)
            tie = begin + size < last and tied[uint64(begin + size)] != uint8(0)
        sort_numbers(room.elements, int64(0), size, room.stack)
        positions[uint64(begin)] = uint32(room.elements[0])
        for i in range(int64(1), size):
            element = room.elements[uint64(i)]
            other = (element ^ room.elements[uint64(i - int64(1))]) >> uint64(32) != uint64(0)
            positions[uint64(begin + i)] = uint32(element)
            tied[uint64(begin + i)] = uint8(1) + uint8(other)
            ties += int64(1) - int64(other)
        row = next_tie(tied, begin + size, last)
    return last, ties


@scalar
def sort_large_group(ranks, depth, positions, tied, stack, budget):
    """Sort ranges of a group by the ranks of what begins `depth` bases later, as far as about `budget` steps lead.

    Parameters
    ----------
    stack : int64[STACK], of compute.sorting, how many ranges of rows are to be sorted, then first and last of each

    Returns
    -------
    int64, how many ties are gone; ranges that are left are on the stack
    """
    waiting = stack[0]
    gone = int64(0)
    while waiting > int64(0) and budget > int64(0):
        waiting -= int64(1)
        first, last = stack[int64(1) + int64(2) * waiting], stack[int64(2) + int64(2) * waiting]
        while last - first > int64(1):
            budget -= last - first
            size = uint64(last - first)
            drawn = uint64(first + last) * uint64(0x9E37_79B9_7F4A_7C15)
            pivot = middle(
                ranks[uint64(positions[uint64(first) + (drawn >> uint64(32)) % size]) + uint64(depth)],
                ranks[uint64(positions[uint64(first + last) >> uint64(1)]) + uint64(depth)],
                ranks[uint64(positions[uint64(first) + (drawn >> uint64(12)) % size]) + uint64(depth)],
            )
            # Smaller ones to the left, equal ones between, larger ones to the right.
            low, high, i = first, last, first
            while i < high:
                position = positions[uint64(i)]
                rank = ranks[uint64(position) + uint64(depth)]
                if rank < pivot:
                    positions[uint64(i)], positions[uint64(low)] = positions[uint64(low)], position
                    low += int64(1)
                    i += int64(1)
                elif rank > pivot:
                    high -= int64(1)
                    positions[uint64(i)], positions[uint64(high)] = positions[uint64(high)], position
                else:
                    i += int64(1)
            for border in (low, high):
                if first < border and border < last:
                    tied[uint64(border)] = uint8(2)
                    gone += int64(1)
            if low - first < last - high:
                stack[int64(1) + int64(2) * waiting], stack[int64(2) + int64(2) * waiting] = high, last
                last = low
            else:
                stack[int64(1) + int64(2) * waiting], stack[int64(2) + int64(2) * waiting] = first, low
                first = high
            waiting += int64(1)
    stack[0] = waiting
    return gone

"""Binary searches, for both targets."""

from __future__ import annotations

from warpseed.compute.compiled import int64, scalar

__all__ = ["lower_bound", "owner_of"]


@scalar
def lower_bound(values, first, last, least):
    """The first place in [first, last) with `least` or more, of values that ascend; `last` where none has."""
    while first < last:
        middle = (first + last) >> int64(1)
        if values[middle] < least:
            first = middle + int64(1)
        else:
            last = middle
    return first


@scalar
def owner_of(borders, item):
    """Of those whose items begin at or before this one the last, int64; ``borders`` (int64[n + 1]) is where the items
    of each begin."""
    low, high = int64(0), int64(borders.shape[0]) - int64(1)
    while high - low > int64(1):
        middle = (low + high) >> int64(1)
        if int64(borders[middle]) <= item:
            low = middle
        else:
            high = middle
    return low

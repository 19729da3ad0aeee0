"""A bucket of the fast tier's table, narrowed by the bases behind the K that it is of."""

from __future__ import annotations

from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import int64, scalar
from warpseed.fm_index.text import segment_of

__all__ = ["compare_suffix", "narrow"]


@scalar
def compare_suffix(fast, row, wanted, length):
    """-1, 0, 1: the first `length` (at most 32) bases of a row's suffix against a packed string."""
    # A damaged index must not lead outside the text.
    position = min(int64(fast.suffix_array[row]), int64(fast.suffix_array.shape[0]) - int64(1))
    end = int64(fast.segments.text_start[segment_of(fast.segments, position) + int64(1)]) - int64(1)
    there = min(length, end - position)
    mask = prefix_mask(there)
    suffix = fetch_word(fast.text, position) & mask
    if suffix != wanted & mask:
        return int64(-1) if suffix < wanted & mask else int64(1)
    return int64(0) if there == length else int64(-1)


@scalar
def narrow(fast, low, high, wanted, length):
    """The rows of [low, high) whose suffixes begin with `wanted`, by binary search.

    Parameters
    ----------
    wanted : uint64, packed, first base on top
    length : int64, its bases, at most 32

    Returns
    -------
    (low, high) : int64
    """
    first, last = low, high
    while first < last:
        middle = (first + last) >> int64(1)
        if compare_suffix(fast, middle, wanted, length) < int64(0):
            first = middle + int64(1)
        else:
            last = middle
    begin, last = first, high
    while first < last:
        middle = (first + last) >> int64(1)
        if compare_suffix(fast, middle, wanted, length) > int64(0):
            last = middle
        else:
            first = middle + int64(1)
    return begin, first

"""The small numbers of a look-up with mismatches, as one word: made on the host, and read by the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpseed.compute.compiled import int64, scalar
from warpseed.fm_index.tagged import BASES_BEFORE, TAG_BASES
from warpseed.kmer_seeds.fast import Scheme, bases_in_tags, changed_bases

__all__ = [
    "bases_behind",
    "deeper_way",
    "has_framed",
    "is_framed",
    "is_whole",
    "offset_of",
    "spare_of",
    "spent_of",
    "sure_bases",
    "ways_of",
    "window_of",
]

_SPENT, _WINDOW, _WHOLE, _BEHIND, _SURE, _OFFSET, _FRAMED = 2, 4, 6, 7, 12, 17, 25
"""Bits of a way below each of its numbers; the first one, the spare mismatches, is at the bottom."""


def ways_of(scheme: Scheme, framed: bool) -> np.ndarray:
    """The small numbers of every look-up of a scheme, each as one word: uint32[patterns]; see `way_of`.

    framed : whether a look-up is marked where the k-mer has two windows, this is the second one's, and the bases before
        a row hold the first window, while what is looked up and the tag hold all bases from the second on
    """
    ways = np.zeros(len(scheme.patterns), np.uint32)
    table_length = scheme.table_length
    in_tags = bases_in_tags(scheme, TAG_BASES)
    for k in np.flatnonzero(scheme.windows).tolist():
        first, last = scheme.pattern_first[k, [0, scheme.windows[k]]].tolist()
        seen, offset = (each[first:last].astype(np.int64) for each in (scheme.pattern_length, scheme.pattern_offset))
        window, spare = (each[first:last].astype(np.int64) for each in (scheme.pattern_window, scheme.pattern_spare))
        behind, sure = (each[first:last] * (seen == table_length) for each in in_tags)
        whole = (offset == 0) & (seen == table_length) & (scheme.length[k, 0] == table_length)
        whole &= k <= table_length + TAG_BASES
        spent = changed_bases(scheme.patterns[first:last])
        ways[first:last] = way_of(spare, spent, window, whole.astype(np.int64), behind, sure, offset)
        if framed:
            shown = (window == 1) & (offset == scheme.length[k, 0]) & (offset <= BASES_BEFORE)
            shown &= (scheme.windows[k] == 2) & (offset + seen + behind == k)
            ways[first:last] |= shown.astype(np.uint32) << np.uint32(_FRAMED)
    return ways


def has_framed(ways: np.ndarray) -> bool:
    """Whether of some look-up the bases before a row and its tag hold the whole k-mer."""
    return bool((ways >> np.uint32(_FRAMED)).any())


def way_of(spare: Any, spent: Any, window: Any, whole: Any, behind: Any, sure: Any, offset: Any) -> Any:
    """The small numbers of a look-up as one, of 32 bits.

    Parameters
    ----------
    spare : mismatches that the bases in a tag may have, `Scheme.pattern_spare`
    spent : mismatches of what is looked up
    window : the number of the window that reports what is found
    whole : 1 where the tag decides, as it holds all other bases of the k-mer, else 0
    behind : bases of the k-mer that a tag shows behind the K that are looked up; 0 where these are fewer than K
    sure : those of them that a match has as the k-mer, of `Scheme.pattern_exact`
    offset : of what is looked up, from the k-mer's first base on
    """
    small = spare | (spent << _SPENT) | (window << _WINDOW) | (whole << _WHOLE)
    return small | (behind << _BEHIND) | (sure << _SURE) | (offset << _OFFSET)


@scalar
def spare_of(way):
    return way & int64(3)


@scalar
def spent_of(way):
    return (way >> int64(_SPENT)) & int64(3)


@scalar
def window_of(way):
    return (way >> int64(_WINDOW)) & int64(3)


@scalar
def is_whole(way):
    return (way >> int64(_WHOLE)) & int64(1) == int64(1)


@scalar
def bases_behind(way):
    return (way >> int64(_BEHIND)) & int64(31)


@scalar
def sure_bases(way):
    return (way >> int64(_SURE)) & int64(31)


@scalar
def offset_of(way):
    return (way >> int64(_OFFSET)) & int64(255)


@scalar
def is_framed(way):
    return (way >> int64(_FRAMED)) & int64(1) == int64(1)


@scalar
def deeper_way(way, mismatches, whole):
    """The way of a look-up of the K bases that a k-mer begins with, with so many mismatches, in the place of one behind
    them; it spends all, and what it finds is reported by that one's window."""
    spent = spent_of(way) + mismatches
    return (spent << int64(_SPENT)) | (window_of(way) << int64(_WINDOW)) | (whole << int64(_WHOLE))

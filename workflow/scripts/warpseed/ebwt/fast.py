"""The fast tier: words laid out for sorting, and what comes of their order.

Each word is packed, and followed by its first letters again, so that a *key*, as many letters as 64 bits hold, is read
without regard to where the word ends. A letter of the laid words is named by its *place*; the conjugate at a position
of the words begins at one place. Words begin at a uint64 each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from warpseed.compute.compiled import inlined, int64, uint64

if TYPE_CHECKING:
    from warpseed.ebwt.transform import Transform

__all__ = ["Found", "Laid", "fetch_key", "key_behind", "order_key", "position_of", "threads_for"]

A_THREAD = 1 << 17
"""Conjugates for which another thread is worth to be begun: some two milliseconds of work."""


def threads_for(conjugates: int, threads: int) -> int:
    """As many of the threads as have enough to do."""
    return max(1, min(threads, conjugates // A_THREAD))


class Found(NamedTuple):
    """What comes of the order of conjugates; None what was not asked for."""

    order: np.ndarray | None
    """uint32[N], the position of the conjugate of each rank"""
    transform: Transform | None
    distances: np.ndarray | None
    """[m, m], as of `warpseed.ebwt.matrix.distance_type`, δ of all pairs of words"""


class Laid(NamedTuple):
    """Words as they are laid out."""

    text: np.ndarray
    """uint64[t + 1], 2^shift letters each, the first on top"""
    word_of: np.ndarray
    """uint32[t] or uint64[t], whose letters they are"""
    starts: np.ndarray
    """int64[m + 1], the place where each word begins, and the end of the last"""
    offsets: np.ndarray
    """int64[m + 1], the position where it begins, and the end of the last"""
    ranked: np.ndarray
    """int64[m], the position where it would begin if words stood in the order of their lengths, then as they do"""
    shift: int
    """log2 of the letters in a uint64: 3 to 6"""


@inlined
def fetch_key(laid, place):
    """The letters from a place on, of which there must be so many, as uint64."""
    shift = uint64(laid.shift)
    at = uint64(place) >> shift
    down = (uint64(place) & ((uint64(1) << shift) - uint64(1))) << (uint64(6) - shift)
    return (laid.text[at] << down) | ((laid.text[at + uint64(1)] >> uint64(1)) >> (uint64(63) - down))


@inlined
def key_behind(laid, place, depth):
    """(key, length): the letters of a conjugate behind its first `depth` ones, and the length of its word."""
    word = uint64(laid.word_of[uint64(place) >> uint64(laid.shift)])
    start = uint64(laid.starts[word])
    length = uint64(laid.offsets[word + uint64(1)] - laid.offsets[word])
    offset = (uint64(place) - start + uint64(depth)) % length
    return fetch_key(laid, start + offset), int64(length)


@inlined
def order_key(laid, place):
    """What conjugates that are equal as infinite words are ordered by, uint64: length, word, and offset in it."""
    word = uint64(laid.word_of[uint64(place) >> uint64(laid.shift)])
    return uint64(laid.ranked[word] - laid.starts[word] + int64(place))


@inlined
def position_of(laid, place):
    """The position of the conjugate that begins at a place, int64."""
    word = uint64(laid.word_of[uint64(place) >> uint64(laid.shift)])
    return int64(place) - laid.starts[word] + laid.offsets[word]

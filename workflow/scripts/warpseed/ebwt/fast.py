"""The fast tier: words laid out for sorting, and how pairs of keys and places are sorted.

Each word is packed, and followed by its first letters again, so that a *key*, as many letters as 64 bits hold, is read
without regard to where the word ends. A letter of the laid words is named by its *place*; the conjugate at a position
of the words begins at one place. Words begin at a uint64 each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64

__all__ = ["FEW", "Laid", "fetch_key", "key_behind", "order_key", "position_of", "sort_all", "sort_pairs"]

FEW = 24
"""Pairs that are sorted by insertion."""


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


@inlined
def _insert(keys, places, first, last):
    """Sort the pairs [first, last) by their keys."""
    for i in range(first + int64(1), last):
        key, place = keys[uint64(i)], places[uint64(i)]
        j = i
        while j > first and keys[uint64(j - int64(1))] > key:
            keys[uint64(j)] = keys[uint64(j - int64(1))]
            places[uint64(j)] = places[uint64(j - int64(1))]
            j -= int64(1)
        keys[uint64(j)] = key
        places[uint64(j)] = place


@inlined
def _swap(keys, places, i, j):
    key, place = keys[uint64(i)], places[uint64(i)]
    keys[uint64(i)], places[uint64(i)] = keys[uint64(j)], places[uint64(j)]
    keys[uint64(j)] = key
    places[uint64(j)] = place


@inlined
def _pivot(keys, first, last):
    """The middle one of three keys of [first, last), at places that no order of them makes bad for long."""
    size = uint32(last - first)
    drawn = uint64(first + last) * uint64(0x9E37_79B9_7F4A_7C15)
    a = keys[uint64(first) + ((drawn >> uint64(32)) % uint64(size))]
    b = keys[uint64(first + last) >> uint64(1)]
    c = keys[uint64(last) - uint64(1) - ((drawn >> uint64(40)) % uint64(size))]
    return max(min(a, b), min(max(a, b), c))


@scalar
def sort_pairs(keys, places, stack, budget):
    """Sort ranges of pairs by their keys, in place, as far as about `budget` steps lead.

    Parameters
    ----------
    keys : uint64[…]
    places : uint32[…] or uint64[…], go with the keys; pairs of one key come in any order
    stack : int64[129], the number of ranges that are to be sorted, then first and last of each: one to begin with

    Returns
    -------
    bool, whether ranges are left, which are on the stack
    """
    ranges = stack[0]
    while ranges > int64(0) and budget > int64(0):
        ranges -= int64(1)
        first, last = stack[int64(1) + int64(2) * ranges], stack[int64(2) + int64(2) * ranges]
        while last - first > int64(FEW):
            # Smaller keys to the left, equal ones between, larger ones to the right.
            budget -= last - first
            pivot = _pivot(keys, first, last)
            low, high, i = first, last, first
            while i < high:
                key = keys[uint64(i)]
                if key < pivot:
                    if low != i:
                        _swap(keys, places, low, i)
                    low += int64(1)
                    i += int64(1)
                elif key > pivot:
                    high -= int64(1)
                    _swap(keys, places, i, high)
                else:
                    i += int64(1)
            # The larger side waits, so that few do.
            if low - first < last - high:
                stack[int64(1) + int64(2) * ranges], stack[int64(2) + int64(2) * ranges] = high, last
                last = low
            else:
                stack[int64(1) + int64(2) * ranges], stack[int64(2) + int64(2) * ranges] = first, low
                first = high
            ranges += int64(1)
        _insert(keys, places, first, last)
    stack[0] = ranges
    return ranges > int64(0)


@inlined
def sort_all(keys, places, first, last, stack):
    """Sort the pairs [first, last) by their keys; those of one key come in any order."""
    if last - first <= int64(FEW):
        _insert(keys, places, first, last)
    else:
        stack[0], stack[1], stack[2] = int64(1), first, last
        sort_pairs(keys, places, stack, int64(1) << int64(62))

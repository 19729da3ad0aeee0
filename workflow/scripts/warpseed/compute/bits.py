"""Arithmetic on 2-bit packed bases, shared by every index, tier and device.

32 bases to a uint64, the first base in the top two bits, so that comparing words as numbers compares strings.
All functions are scalar and take and return uint64 (words) or int64 (positions and lengths); every mix of the two
is cast, because Numba turns ``uint64 op int64`` into a float.
"""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint64

__all__ = [
    "fetch_word",
    "first_slot",
    "joined_bases",
    "mismatch_bits",
    "mixed",
    "prefix_mask",
    "reverse_bases",
    "reverse_complement_word",
]

_EVEN = np.uint64(0x5555555555555555)
_PAIRS = np.uint64(0x3333333333333333)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x00FF00FF00FF00FF)
_SHORTS = np.uint64(0x0000FFFF0000FFFF)
_ODD = np.uint64(0xD6E8FEB86659FD93)


@scalar
def joined_bases(word, behind, first):
    """The 32 bases from base `first` of a word on, uint64 0 to 31; the last ones are those of the word behind it."""
    shift = first << uint64(1)
    return (word << shift) | ((behind >> uint64(1)) >> (uint64(63) - shift))


@scalar
def fetch_word(words, position):
    """The 32 bases from `position` on; reads `words[position // 32]` and the one behind it."""
    word = uint64(position) >> uint64(5)
    return joined_bases(words[word], words[word + uint64(1)], uint64(position) & uint64(31))


@scalar
def prefix_mask(length):
    """Ones over the first `length` bases of a word; `length` may be below 0 or above 32."""
    if length <= int64(0):
        return uint64(0)
    if length >= int64(32):
        return ~uint64(0)
    return ~((~uint64(0)) >> uint64(int64(2) * length))


@scalar
def mismatch_bits(a, b):
    """One bit (the low bit of its pair) for each base in which two words differ."""
    difference = a ^ b
    return (difference | (difference >> uint64(1))) & _EVEN


@scalar
def reverse_bases(word):
    """The 32 bases of a word, the last one first."""
    word = ((word >> uint64(2)) & _PAIRS) | ((word & _PAIRS) << uint64(2))
    word = ((word >> uint64(4)) & _NIBBLES) | ((word & _NIBBLES) << uint64(4))
    word = ((word >> uint64(8)) & _BYTES) | ((word & _BYTES) << uint64(8))
    word = ((word >> uint64(16)) & _SHORTS) | ((word & _SHORTS) << uint64(16))
    return (word >> uint64(32)) | (word << uint64(32))


@scalar
def reverse_complement_word(words, first, length, word, complement):
    """Word `word` of the reverse complement of a packed string.

    Parameters
    ----------
    words : uint64[…], packed strings, each zero behind its end
    first : int64, where the words of this one begin
    length : int64, its bases
    word : int64, which word of the result, below ceil(length / 32)
    complement : uint64, all ones to complement the bases, 0 to reverse only (marks of bases that are no base)

    Returns
    -------
    uint64, zero behind the end of the string.
    """
    start = int64(length) - int64(32) * (int64(word) + int64(1))
    if start >= int64(0):
        index = first + (start >> int64(5))
        shift = uint64(start & int64(31)) << uint64(1)
        bases = words[index] << shift
        if shift != uint64(0):
            bases |= words[index + int64(1)] >> (uint64(64) - shift)
    else:
        bases = words[first] >> uint64(int64(-2) * start)
    return reverse_bases(bases ^ complement) & prefix_mask(int64(length) - int64(32) * int64(word))


@scalar
def mixed(word):
    """A word whose every bit depends on all bits of `word`; no two words become the same."""
    word ^= word >> uint64(32)
    word *= _ODD
    word ^= word >> uint64(32)
    word *= _ODD
    return word ^ (word >> uint64(32))


@scalar
def first_slot(key, slots):
    """Where the search of a key begins among so many slots of a hash table, less than 2^32: int64."""
    return int64(((mixed(key) >> uint64(32)) * uint64(slots)) >> uint64(32))

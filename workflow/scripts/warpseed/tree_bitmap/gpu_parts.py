"""How k-mers are dealt out to parts, of which each of several devices, or each of several passes of a stream, has one.

A k-mer has a hash of as many bits as itself, and no other k-mer of k bases the same; a part has a range of these
hashes. So parts are as large as each other, whatever k is, and one may keep what it knows of a k-mer at its hash. The
parts that the devices have in one of several passes are side by side, and together one part of as many as there are
passes.
"""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint64

__all__ = ["hash_of", "hashes_of_part", "is_of_part", "most_of_part"]

_SHARED_BITS = 16
"""The top bits of a hash, at most, that say which part it is of: so there are 65,536 parts at most."""
_ODD, _OTHER_ODD = np.uint64(0x9E6C63D0876A9A47), np.uint64(0xC2B2AE3D27D4EB4F)
"""Other ones than those of the hash table's slots, so that the k-mers of one part go to all of its slots."""


@scalar
def hash_of(kmer, k):
    """The hash of a k-mer, below 4^k, which no other k-mer has: its upper half depends on all bases."""
    bases = uint64(k)
    all_bits = (~uint64(0)) >> (uint64(64) - uint64(2) * bases)
    half_way = (kmer * uint64(_ODD)) & all_bits
    return ((half_way ^ (half_way >> bases)) * uint64(_OTHER_ODD)) & all_bits


@scalar
def is_of_part(kmer, k, part, parts):
    """Whether a k-mer is one of a part's."""
    if parts == 1:
        return True
    shared = min(int64(2) * int64(k), int64(_SHARED_BITS))
    top = hash_of(kmer, k) >> uint64(int64(2) * int64(k) - shared)
    return int64((top * uint64(parts)) >> uint64(shared)) == int64(part)


def _shared_and_others(k: int) -> tuple[int, int]:
    """How many values the top bits of hashes have, and how many the others, of which there may be none."""
    shared = min(2 * k, _SHARED_BITS)
    return 1 << shared, 1 << (2 * k - shared)


def hashes_of_part(k: int, part: int, parts: int) -> slice:
    """The hashes of a part's k-mers."""
    tops, others = _shared_and_others(k)
    return slice(*(-(-tops * number // parts) * others for number in (part, part + 1)))


def most_of_part(k: int, parts: int) -> int:
    """K-mers that one of so many parts has of all that there can be, at most."""
    tops, others = _shared_and_others(k)
    return -(-tops // parts) * others

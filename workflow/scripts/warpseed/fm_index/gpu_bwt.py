"""A BWT in the layout of paper 000, section III, from a text and its suffix array on the current GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, cupy, kernel, launch, sort
from warpseed.compute.intrinsics import popcount
from warpseed.compute.warp import ALL_LANES
from warpseed.fm_index.parts import Sizes
from warpseed.fm_index.text import PackedText, segment_of

__all__ = ["fill_bwt", "fill_rocc", "make_bwt_on_device"]

_BLOCK = 256
_LOW_HALF = np.uint64(0xFFFFFFFF)


@scalar
def _spread(bits):
    """The bits of the lower half of a word, whose upper half is 0, each at twice its place."""
    word = (bits | (bits << uint64(16))) & uint64(0x0000FFFF0000FFFF)
    word = (word | (word << uint64(8))) & uint64(0x00FF00FF00FF00FF)
    word = (word | (word << uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    word = (word | (word << uint64(2))) & uint64(0x3333333333333333)
    return (word | (word << uint64(1))) & uint64(0x5555555555555555)


@kernel
def fill_bwt(text, suffix_array, occ_interval, bwt, counts, cursor, separator_rows):
    """A warp a block of `occ_interval` rows, a lane one of 32 of them: what stands before the rows' suffixes.

    Parameters
    ----------
    bwt : uint64[blocks * occ_interval // 32], 32 bases each, separators as A
    counts : uint32[5, blocks], separators, A, C, G and T of each block
    cursor : uint64[1], how many rows have a separator
    separator_rows : uint32[segments], these, in any order
    """
    lane = int64(cuda.threadIdx.x) & int64(31)
    block = int64(cuda.grid(1)) >> int64(5)
    blocks = counts.shape[1]
    if block >= blocks:
        return
    rows = int64(suffix_array.shape[0])
    segments = text.segments
    separators = a = c = g = t = int64(0)
    for word in range(int64(occ_interval) >> int64(5)):
        # The first row's base is on top of a word, and so its bit of a ballot.
        row = block * int64(occ_interval) + int64(32) * word + int64(31) - lane
        there, begins, base = row < rows, False, uint64(0)
        if there:
            position = int64(suffix_array[row])
            begins = int64(segments.text_start[segment_of(segments, position)]) == position
            if begins:
                separator_rows[cuda.atomic.add(cursor, 0, uint64(1))] = uint32(row)
            else:
                before = uint64(position) - uint64(1)
                base = (text.words[before >> uint64(5)] >> (uint64(62) - uint64(2) * (before & uint64(31)))) & uint64(3)
        low = cuda.ballot_sync(ALL_LANES, base & uint64(1) != uint64(0))
        high = cuda.ballot_sync(ALL_LANES, base & uint64(2) != uint64(0))
        ended = cuda.ballot_sync(ALL_LANES, begins)
        valid = cuda.ballot_sync(ALL_LANES, there)
        if lane == int64(0):
            # A ballot may be a number below 0.
            low, high = uint64(low) & _LOW_HALF, uint64(high) & _LOW_HALF
            ended, valid = uint64(ended) & _LOW_HALF, uint64(valid) & _LOW_HALF
            separators += popcount(ended)
            a += popcount(valid & ~(ended | low | high))
            c += popcount(low & ~high)
            g += popcount(high & ~low)
            t += popcount(low & high)
            bwt[((block * int64(occ_interval)) >> int64(5)) + word] = _spread(low) | (_spread(high) << uint64(1))
    if lane == int64(0):
        counts[0, block] = uint32(separators)
        counts[1, block] = uint32(a)
        counts[2, block] = uint32(c)
        counts[3, block] = uint32(g)
        counts[4, block] = uint32(t)


@kernel
def fill_rocc(before, rocc):
    """A thread a block: the bases before it, side by side.

    before : uint32[5, blocks]
    rocc : uint32[4 * blocks]
    """
    block = cuda.grid(1)
    if block < before.shape[1]:
        for base in range(4):
            rocc[4 * block + base] = before[base + 1, block]


def make_bwt_on_device(text: PackedText, suffix_array: Any, sizes: Sizes) -> dict[str, Any]:
    """The arrays that `warpseed.fm_index.bwt.make_bwt` makes, on the current device but for the smallest.

    Parameters
    ----------
    text : PackedText, on the device
    suffix_array : uint32[n], on the device
    """
    xp = cupy()
    occ_interval, sa_interval, _ = sizes.parameters
    blocks = sizes.blocks
    bwt, counts = xp.empty(blocks * occ_interval // 32, np.uint64), xp.empty((5, blocks), np.uint32)
    cursor, separator_row = xp.zeros(1, np.uint64), xp.empty(sizes.segments, np.uint32)
    made = (bwt, counts, cursor, separator_row)
    launch(fill_bwt, 32 * blocks, _BLOCK, text, suffix_array, occ_interval, *made)
    sort(separator_row)
    until = xp.cumsum(counts, axis=1, dtype=np.uint32)
    before, rocc = until - counts, xp.empty(4 * blocks, np.uint32)
    launch(fill_rocc, blocks, _BLOCK, before, rocc)
    positions, rsa = suffix_array[separator_row], xp.ascontiguousarray(suffix_array[::sa_interval])
    return {
        "rocc": rocc,
        "bwt": bwt,
        "separators": xp.ascontiguousarray(before[0]),
        "separator_row": separator_row,
        "separator_position": positions,
        "first_row": np.cumsum(until[:, -1].get().astype(np.int64)).astype(np.uint32),
        "rsa": rsa,
        "longest_walk": np.array([_longest_walk(rsa, positions, sizes.rows)], np.uint32),
    }


def _longest_walk(rsa: Any, separator_position: Any, rows: int) -> int:
    """As `warpseed.fm_index.bwt.longest_walk`."""
    xp = cupy()
    known = xp.concatenate([rsa, separator_position])
    sort(known)
    gaps = int(xp.diff(known).max()) - 1 if len(known) > 1 else 0
    return max(gaps, rows - 1 - int(known[-1]), 0)

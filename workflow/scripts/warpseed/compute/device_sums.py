"""Sums of counts in device memory. Running sums of very many are made where these lie: of whole tiles first, then of
each tile's counts."""

from __future__ import annotations

from typing import Any

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, cupy, kernel, launch
from warpseed.compute.warp import ALL_LANES, BLOCK, warp_places

__all__ = ["TILE", "borders_of", "running_sums", "sum_up_tiles", "total_tiles"]

TILE = 2048
"""Counts that a warp adds up."""
_WORDS = TILE // 2
"""Words of two counts, of which each lane takes four at a time, so that several are on their way from memory."""
_AHEAD = 4


@scalar
def _pair(word):
    """Both counts of a word, the first of them in its lower half: uint32 each."""
    return uint32(word), uint32(word >> uint64(32))


@kernel
def total_tiles(words, totals):
    """Add up each tile of uint32 counts, two a word, a warp each: ``totals``, int64[tiles]."""
    tile = int64(cuda.grid(1)) >> int64(5)
    if tile >= int64(totals.shape[0]):
        return
    lane = int64(cuda.threadIdx.x) & int64(31)
    total = int64(0)
    for step in range(_WORDS // 32):
        first, second = _pair(words[tile * int64(_WORDS) + int64(step) * int64(32) + lane])
        total += int64(first) + int64(second)
    for step in (16, 8, 4, 2, 1):
        total += int64(cuda.shfl_xor_sync(ALL_LANES, total, step))
    if lane == int64(0):
        totals[tile] = total


@scalar
def _sum_up_word(word, before):
    """A word of each lane with sums in the place of its counts, where `before` is that of all before the first lane's,
    and the sum behind the last lane's; modulo 2^32. All lanes take part."""
    first, second = _pair(word)
    place, total = warp_places(int64(uint32(first + second)))
    begin = uint32(before + uint32(place) + first)
    return uint64(begin) | (uint64(uint32(begin + second)) << uint64(32)), uint32(before + uint32(total))


@kernel
def sum_up_tiles(words, before):
    """Make of the counts of each tile the sums of all up to each, modulo 2^32, a warp each.

    ``before``, int64[tiles + 1], has the sum of all before each tile.
    """
    tile = int64(cuda.grid(1)) >> int64(5)
    if tile + int64(1) >= int64(before.shape[0]):
        return
    begin = tile * int64(_WORDS) + (int64(cuda.threadIdx.x) & int64(31))
    known = uint32(before[tile])
    for step in range(_WORDS // (32 * _AHEAD)):
        at = begin + int64(step) * int64(32 * _AHEAD)
        one, two, three, four = words[at], words[at + int64(32)], words[at + int64(64)], words[at + int64(96)]
        words[at], known = _sum_up_word(one, known)
        words[at + int64(32)], known = _sum_up_word(two, known)
        words[at + int64(64)], known = _sum_up_word(three, known)
        words[at + int64(96)], known = _sum_up_word(four, known)


def borders_of(counts: Any) -> Any:
    """Where what each has begins, and where all ends.

    Parameters
    ----------
    counts : CuPy array of whole numbers of any kind, [n]

    Returns
    -------
    int64[n + 1], CuPy
    """
    xp = cupy()
    borders = xp.zeros(len(counts) + 1, xp.int64)
    xp.cumsum(counts, dtype=xp.int64, out=borders[1:])
    return borders


def running_sums(counts: Any) -> Any:
    """Make of counts the sums of all up to each, modulo 2^32, where they lie.

    Parameters
    ----------
    counts : uint32[tiles · TILE], CuPy

    Returns
    -------
    int64[tiles + 1], CuPy: the sum of all before each tile
    """
    xp = cupy()
    words, tiles = counts.view(xp.uint64), len(counts) // TILE
    before = xp.zeros(tiles + 1, xp.int64)
    launch(total_tiles, 32 * tiles, BLOCK, words, before[1:])
    xp.cumsum(before, out=before)
    launch(sum_up_tiles, 32 * tiles, BLOCK, words, before)
    return before

"""Bytes in device memory that are read eight at a time, and the places of flags that are set, in their order: first how
many there are of each tile of flags, then each behind those before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.device_sums import borders_of
from warpseed.compute.gpu import cuda, cupy, kernel, launch
from warpseed.compute.locked_memory import pinned
from warpseed.compute.warp import BLOCK, LANES, LANES_BITS, warp_places

__all__ = ["EIGHT", "count_flags", "eight_at", "flagged_places", "put_places", "whole_words"]

EIGHT = 8
"""Bytes of a word."""
_WORDS = 8
"""Words of flags of a lane; those of a warp are a tile."""
_TILE = _WORDS * LANES


def whole_words(values: Any) -> Any:
    """Bytes, all of a CuPy array's, as words of EIGHT, without what is left behind the last."""
    return values.view(np.uint8)[: len(values) // EIGHT * EIGHT].view(np.uint64)


@scalar
def eight_at(values, words, i):
    """Bytes i * EIGHT and those behind it, the first one lowest; 0 where there are none.

    Parameters
    ----------
    values : of one byte each, [n]
    words : their `whole_words`
    """
    if i < words.shape[0]:
        return uint64(words[i])
    word = uint64(0)
    for at in range(i * int64(EIGHT), int64(values.shape[0])):
        word |= uint64(values[at]) << uint64(int64(8) * (at & int64(EIGHT - 1)))
    return word


@kernel
def count_flags(flags, words, counts):
    """A warp a tile: how many flags are set.

    Parameters
    ----------
    flags : bool[n]
    words : their `whole_words`
    counts : uint32[tiles]
    """
    thread = int64(cuda.grid(1))
    tile, count = thread >> int64(LANES_BITS), int64(0)
    at = tile * int64(_TILE) + (thread & int64(LANES - 1))
    for _ in range(_WORDS):
        count += int64(cuda.popc(eight_at(flags, words, at)))
        at += int64(LANES)
    _, total = warp_places(count)
    if thread & int64(LANES - 1) == int64(0) and tile < counts.shape[0]:
        counts[tile] = total


@kernel
def put_places(flags, words, borders, places):
    """A warp a tile: the places of the flags that are set.

    Parameters
    ----------
    flags, words : as of `count_flags`
    borders : int64[tiles + 1], how many there are before each tile
    places : uint32[borders[-1]]
    """
    thread = int64(cuda.grid(1))
    tile = thread >> int64(LANES_BITS)
    if tile + int64(1) >= borders.shape[0] or borders[tile] == borders[tile + int64(1)]:
        return
    begin, at = int64(borders[tile]), tile * int64(_TILE) + (thread & int64(LANES - 1))
    for _ in range(_WORDS):
        word = eight_at(flags, words, at)
        place, total = warp_places(int64(cuda.popc(word)))
        to = begin + place
        for flag in range(int64(EIGHT) if word else int64(0)):
            if (word >> uint64(int64(8) * flag)) & uint64(1):
                places[to] = at * int64(EIGHT) + flag
                to += int64(1)
        begin += total
        at += int64(LANES)


def flagged_places(flags: Any, meanwhile: Callable[[], None] = lambda: None) -> Any:
    """Where flags are set, ascending; the host waits until it is known how many are.

    Parameters
    ----------
    flags : bool[n], CuPy, the whole of an array, n at most 2^32
    meanwhile : gives the device more to do, for which the host does not wait

    Returns
    -------
    uint32[k], CuPy
    """
    words, tiles = whole_words(flags), -(-len(flags) // (EIGHT * _TILE))
    counts = cupy().empty(tiles, np.uint32)
    launch(count_flags, tiles * LANES, BLOCK, flags, words, counts)
    borders, count = borders_of(counts), pinned(1, np.int64)
    stream = cupy().cuda.get_current_stream()
    borders[-1:].get(out=count, blocking=False)
    counted = stream.record()
    meanwhile()
    counted.synchronize()
    places = cupy().empty(int(count[0]), np.uint32)
    if len(places):
        launch(put_places, tiles * LANES, BLOCK, flags, words, borders, places)
    return places

"""Places where flags are set, in device memory, in their order: of tiles of flags first how many are set, then each
where the ones before it end."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32
from warpseed.compute.device_sums import borders_of
from warpseed.compute.gpu import cuda, cupy, kernel, launch
from warpseed.compute.warp import ALL_LANES, BLOCK, LANES, LANES_BITS, lanes_before

__all__ = ["count_flags", "places_of", "put_places"]

_FLAGS = 64
"""Of a lane; those of a warp are a tile."""
_TILE = _FLAGS * LANES


@scalar
def _tile_of_warp(flags):
    """The number of a warp's tile, its lane's first flag, and the one behind the tile's last."""
    thread = int64(cuda.grid(1))
    tile, first = thread >> int64(LANES_BITS), (thread >> int64(LANES_BITS)) * int64(_TILE)
    return tile, first + (thread & int64(LANES - 1)), min(first + int64(_TILE), int64(flags.shape[0]))


@kernel
def count_flags(flags, counts):
    """A warp a tile: how many flags are set.

    Parameters
    ----------
    flags : bool[n]
    counts : uint32[tiles]
    """
    tile, at, end = _tile_of_warp(flags)
    count = int64(0)
    for _ in range(int64(_FLAGS)):
        count += int64(cuda.popc(cuda.ballot_sync(ALL_LANES, at < end and bool(flags[at]))))
        at += int64(LANES)
    if tile < counts.shape[0]:
        counts[tile] = count


@kernel
def put_places(flags, borders, places):
    """A warp a tile: the places of the flags that are set.

    Parameters
    ----------
    flags : bool[n]
    borders : int64[tiles + 1], how many there are before each tile
    places : uint32[borders[-1]]
    """
    tile, at, end = _tile_of_warp(flags)
    if tile + int64(1) >= borders.shape[0] or borders[tile] == borders[tile + int64(1)]:
        return
    to, lane = int64(borders[tile]), int64(cuda.threadIdx.x) & int64(LANES - 1)
    for _ in range(int64(_FLAGS)):
        is_set = at < end and bool(flags[at])
        lanes = uint32(cuda.ballot_sync(ALL_LANES, is_set))
        if is_set:
            places[to + int64(lanes_before(lanes, lane))] = at
        to += int64(cuda.popc(lanes))
        at += int64(LANES)


def places_of(flags: Any) -> Any:
    """Where flags are set, ascending; the host waits until it is known how many are.

    Parameters
    ----------
    flags : bool[n], CuPy, n at most 2^32

    Returns
    -------
    uint32[k], CuPy
    """
    tiles = -(-len(flags) // _TILE)
    counts = cupy().empty(tiles, np.uint32)
    launch(count_flags, tiles * LANES, BLOCK, flags, counts)
    borders = borders_of(counts)
    places = cupy().empty(int(borders[-1]), np.uint32)
    if len(places):
        launch(put_places, tiles * LANES, BLOCK, flags, borders, places)
    return places

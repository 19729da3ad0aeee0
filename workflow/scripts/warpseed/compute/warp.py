"""How the lanes of a warp share work: places by prefix sums, owners by binary search, room in lists; and how all blocks
wait for each other."""

from __future__ import annotations

from warpseed.compute.compiled import int32, int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda

__all__ = [
    "ALL_LANES",
    "BLOCK",
    "LANES",
    "LANES_BITS",
    "POLLS",
    "WARPS",
    "first_lane",
    "lane_of",
    "lanes_before",
    "lanes_upto",
    "last_lane",
    "reserve",
    "wait_for_blocks",
    "warp_places",
]

LANES_BITS = 5
LANES = 1 << LANES_BITS
ALL_LANES = 0xFFFFFFFF
"""Those that take part in what a warp does together."""
BLOCK = 128
"""Threads of a block, for every kernel whose warps share their work."""
WARPS = BLOCK // LANES
POLLS = 1 << 22
"""How often a block looks whether the others are there: some seconds."""


@scalar
def lanes_before(lanes, lane):
    """How many of some lanes, bits of a mask, there are before one."""
    return uint32(cuda.popc(uint32(lanes & uint32(uint32(uint32(1) << uint32(lane)) - uint32(1)))))


@scalar
def lanes_upto(lane):
    """A lane and those before it, as bits of a uint32."""
    return uint32(uint32(uint32(2) << uint32(lane)) - uint32(1))


@scalar
def first_lane(lanes):
    """The first of some lanes, bits of a uint32: int64, LANES where there are none."""
    return int64(cuda.popc(uint32(uint32(lanes & uint32(~lanes + uint32(1))) - uint32(1))))


@scalar
def last_lane(lanes):
    """The last of some lanes, bits of a uint32: int64, -1 where there are none."""
    return int64(LANES - 1) - int64(cuda.clz(lanes))


@scalar
def warp_places(count):
    """Where each lane's `count` items begin among its warp's, and the items of the whole warp; all lanes take part."""
    lane = int64(cuda.threadIdx.x) & int64(31)
    ends = int32(count)
    for step in (1, 2, 4, 8, 16):
        before = cuda.shfl_up_sync(ALL_LANES, ends, step)
        if lane >= int64(step):
            ends += before
    return int64(ends) - count, int64(cuda.shfl_sync(ALL_LANES, ends, 31))


@scalar
def lane_of(places, first_thread, item):
    """The thread of a warp whose items begin at or before `item`: binary search over shared memory."""
    owner = first_thread
    step = int64(16)
    while step > int64(0):
        if int64(places[owner + step]) <= item:
            owner += step
        step >>= int64(1)
    return owner


@scalar
def reserve(warp_totals, total, cursors, which):
    """Room in a list for each warp of a block, by one atomic addition a block; all threads take part."""
    me = int64(cuda.threadIdx.x)
    if me & int64(31) == int64(0):
        warp_totals[me >> int64(5)] = uint64(total)
    cuda.syncthreads()
    if me == int64(0):
        whole = uint64(0)
        for warp in range(int64(cuda.blockDim.x) >> int64(5)):
            mine = warp_totals[warp]
            warp_totals[warp] = whole
            whole += mine
        begin = cuda.atomic.add(cursors, which, whole) if whole > uint64(0) else uint64(0)
        for warp in range(int64(cuda.blockDim.x) >> int64(5)):
            warp_totals[warp] += begin
    cuda.syncthreads()
    return int64(warp_totals[me >> int64(5)])


@scalar
def wait_for_blocks(state, turn):
    """Wait for all blocks of the grid, and see what they have written; all threads take part.

    No more blocks may be launched than run at once: one for each multiprocessor. Where they do not come all the same,
    for some seconds, all threads are told so, and are to return.

    Parameters
    ----------
    state : uint32[], zeros when the kernel begins: [0] counts the blocks that came, [1] becomes 1 where one gave up
    turn : how often the kernel has waited before

    Returns
    -------
    bool, whether all are there
    """
    cuda.threadfence()
    cuda.syncthreads()
    lost = int32(0)
    if int64(cuda.threadIdx.x) == int64(0):
        cuda.atomic.add(state, 0, uint32(1))
        wanted, polls = uint32(cuda.gridDim.x) * uint32(turn + 1), int64(0)
        while cuda.atomic.add(state, 0, uint32(0)) < wanted and polls < int64(POLLS):
            polls += int64(1)
        if polls == int64(POLLS):
            lost = int32(1)
            state[1] = uint32(1)
    lost = cuda.syncthreads_count(lost)
    cuda.threadfence()
    return lost == int32(0)

"""Sorting words (uint64) where they lie in device memory, by a thread, a warp or a block: what kernels call for each of
many short lists. Places and numbers of words are int64."""

from __future__ import annotations

from warpseed.compute.compiled import int64, scalar
from warpseed.compute.gpu import cuda
from warpseed.compute.warp import WARPS

__all__ = [
    "BLOCK_BY_WARPS",
    "BY_BLOCK",
    "BY_WARP",
    "FEW",
    "LARGE_BLOCK",
    "SORTING_BLOCKS",
    "sort_by_block",
    "sort_by_thread",
    "sort_by_warp",
]

FEW = 12
"""Words that one thread sorts."""
BY_WARP = 256
"""Words that a warp sorts, in shared memory."""
BLOCK_BY_WARPS = BY_WARP * WARPS
BY_BLOCK = 4096
"""Words that a block sorts in shared memory; more of them lie where they are."""
LARGE_BLOCK = 512
"""Threads of a block that sorts together."""
SORTING_BLOCKS = 4096
"""Blocks that share the lists."""


@scalar
def _wait(lanes):
    """Wait for the other lanes of the warp, or the other threads of the block."""
    if lanes == int64(32):
        cuda.syncwarp()
    else:
        cuda.syncthreads()


@scalar
def _exchange(words, first, count, step, mirrored, sorters):
    """Compare the pairs of one step of a bitonic network of which no comparison turns round, so that what lies behind
    the last of the `count` words never moves, and need not be there.

    Parameters
    ----------
    mirrored : whether the first of 2·step words is compared with the last of them, not with the one `step` behind
    sorters : (int64, int64), number of this thread, and of all that sort: 32 for a warp, else the whole block
    """
    pair, lanes = sorters
    last = int64(2) * step - int64(1)  # a power of two less one: no division
    pairs = ((count + last) & ~last) >> int64(1)
    while pair < pairs:
        inside = pair & (step - int64(1))
        low = int64(2) * (pair - inside) + inside
        high = low + int64(2) * (step - inside) - int64(1) if mirrored else low + step
        if high < count and words[first + low] > words[first + high]:
            word = words[first + low]
            words[first + low] = words[first + high]
            words[first + high] = word
        pair += lanes
    _wait(lanes)


@scalar
def _sort_together(words, first, count, sorters):
    """Sort words[first : first + count]."""
    reach = int64(1)
    while reach < count:
        _exchange(words, first, count, reach, True, sorters)
        step = reach >> int64(1)
        while step > int64(0):
            _exchange(words, first, count, step, False, sorters)
            step >>= int64(1)
        reach <<= int64(1)


@scalar
def _sort_in(shared, room, grouped, part, merging, sorters):
    """Sort grouped[begin : begin + count], (begin, count), in shared memory from place `room` on; with `merging`, only
    by the steps that are shorter than BY_BLOCK, behind those that were made where the words lie."""
    begin, count = part
    me, lanes = sorters
    for i in range(me, count, lanes):
        shared[room + int64(i)] = grouped[begin + int64(i)]
    _wait(lanes)
    if merging:
        step = int64(BY_BLOCK >> 1)
        while step > int64(0):
            _exchange(shared, room, count, step, False, sorters)
            step >>= int64(1)
    else:
        _sort_together(shared, room, count, sorters)
    for i in range(me, count, lanes):
        grouped[begin + int64(i)] = shared[room + int64(i)]
    _wait(lanes)


@scalar
def _sort_parts(shared, grouped, begin, count, merging, sorters):
    """`_sort_in` for one part of BY_BLOCK words after the other."""
    for first in range(0, count, BY_BLOCK):
        part = (begin + int64(first), min(count - int64(first), int64(BY_BLOCK)))
        _sort_in(shared, int64(0), grouped, part, merging, sorters)


@scalar
def sort_by_thread(words, begin, end):
    """Sort words[begin:end], which are few: one thread alone, each word into those before it."""
    for i in range(begin + int64(1), end):
        word = words[i]
        to = int64(i)
        while to > begin and words[to - int64(1)] > word:
            words[to] = words[to - int64(1)]
            to -= int64(1)
        words[to] = word


@scalar
def sort_by_warp(shared, words, begin, count):
    """Sort words[begin : begin + count], at most BY_WARP, by all lanes of a warp.

    shared : uint64[BLOCK_BY_WARPS], of the block, in shared memory
    """
    me = int64(cuda.threadIdx.x)
    room = (me >> int64(5)) * int64(BY_WARP)
    _sort_in(shared, room, words, (begin, count), False, (me & int64(31), int64(32)))


@scalar
def sort_by_block(shared, words, begin, count):
    """Sort words[begin : begin + count], however many, by all threads of a block.

    shared : uint64[BY_BLOCK], in shared memory
    """
    sorters = (int64(cuda.threadIdx.x), int64(cuda.blockDim.x))
    _sort_parts(shared, words, begin, count, False, sorters)
    reach = int64(BY_BLOCK)
    while reach < count:
        _exchange(words, begin, count, reach, True, sorters)
        step = reach >> int64(1)
        while step >= int64(BY_BLOCK):
            _exchange(words, begin, count, step, False, sorters)
            step >>= int64(1)
        _sort_parts(shared, words, begin, count, True, sorters)
        reach <<= int64(1)

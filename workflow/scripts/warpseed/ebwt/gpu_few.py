"""Kernels for few conjugates, whose order takes fewer steps than many launches are begun in: one makes all of it.

What is sorted are numbers of 64 bits, no two of them equal: a position, and above it 48 bits of what is known of the
conjugate there. Its first letters are known at first, then its rank and those of what is further on in its word. Blocks
sort tiles, a number a thread; then every thread finds the place of its numbers in runs that are merged. In between all
blocks wait for each other, and give up where some do not run.
"""

from __future__ import annotations

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import bounded_kernel, cuda
from warpseed.compute.warp import wait_for_blocks
from warpseed.ebwt.gpu_fast import further, letters_from, lower_bound

__all__ = ["MOST_FEW", "STATE", "TILE", "order_few"]

MOST_FEW = 1 << 16
TILE = 512
"""Threads of a block, and numbers that it sorts by itself."""
STATE = 2 + 16
"""Numbers that the kernel keeps of itself: two of waits, and one a round, of which there are fewer than 16, as what is
known grows three times in each."""
_PLACE_BITS = 16
_PLACE = (1 << _PLACE_BITS) - 1
_KNOWN_BITS = 64 - _PLACE_BITS
_REGISTERS = 128
"""Of a thread: a block has 65,536."""


@scalar
def _sort_tiles(keys, tile):
    """Each block sorts tiles of numbers, by a bitonic sort in shared memory.

    tile : uint64[TILE], shared
    """
    count, me = int64(keys.shape[0]), int64(cuda.threadIdx.x)
    for first in range(int64(cuda.blockIdx.x) * int64(TILE), count, int64(cuda.gridDim.x) * int64(TILE)):
        at = int64(first) + me
        tile[me] = keys[at] if at < count else ~uint64(0)
        size = int64(2)
        while size <= int64(TILE):
            stride = size >> int64(1)
            while stride > int64(0):
                cuda.syncthreads()
                other = me ^ stride
                if other > me and (tile[me] > tile[other]) == ((me & size) == int64(0)):
                    tile[me], tile[other] = tile[other], tile[me]
                stride >>= int64(1)
            size <<= int64(1)
        cuda.syncthreads()
        if at < count:
            keys[at] = tile[me]


@scalar
def _merge_runs(source, target, width):
    """Merge every two runs of `width` numbers: of each its place, by how many of the other run are smaller."""
    count = int64(source.shape[0])
    for i in range(int64(cuda.grid(1)), count, int64(cuda.gridDim.x) * int64(cuda.blockDim.x)):
        run = int64(i) // width
        begin = min((run ^ int64(1)) * width, count)
        smaller = lower_bound(source, begin, min(begin + width, count), source[i]) - begin
        target[(run & ~int64(1)) * width + int64(i) - run * width + smaller] = source[i]


@scalar
def _sort(keys, row, tile, state, turn):
    """Sort a row of uint64[2, n], no two of which are equal; the row that has them then, -1 where a block did not come,
    and how often there was a wait by then."""
    _sort_tiles(keys[row], tile)
    together = wait_for_blocks(state, turn)
    turn += int64(1)
    width = int64(TILE)
    while together and width < int64(keys.shape[1]):
        _merge_runs(keys[row], keys[int64(1) - row], width)
        together = wait_for_blocks(state, turn)
        turn += int64(1)
        row = int64(1) - row
        width *= int64(2)
    return (row if together else int64(-1)), turn


@scalar
def _note_ranks(keys, ranks, state, number):
    """Of each position the first rank of what is equal to it as far as is known; whether two are equal goes to
    ``state[number]``."""
    for i in range(int64(cuda.grid(1)), int64(keys.shape[0]), int64(cuda.gridDim.x) * int64(cuda.blockDim.x)):
        known = keys[i] >> uint64(_PLACE_BITS)
        start = lower_bound(keys, int64(0), int64(i), known << uint64(_PLACE_BITS))
        ranks[int64(keys[i] & uint64(_PLACE))] = uint32(start)
        if start != int64(i):
            state[number] = uint32(1)


@scalar
def _deepen(key, words_of, offsets, ranks, steps, is_last):
    """What is known of a conjugate when ranks are known: its own, that of what is `steps` letters further on, and of
    what is so again; or at last the length of its word."""
    place = int64(key & uint64(_PLACE))
    ahead = further(place, steps, words_of, offsets)
    if is_last:
        word = words_of[place]
        third = uint64(int64(offsets[word + 1]) - int64(offsets[word]) - int64(1))
    else:
        third = uint64(ranks[further(ahead, steps, words_of, offsets)])
    known = (((uint64(ranks[place]) << uint64(16)) | uint64(ranks[ahead])) << uint64(16)) | third
    return (known << uint64(_PLACE_BITS)) | uint64(place)


@bounded_kernel(_REGISTERS)
def order_few(codes, words_of, offsets, how, keys, rows, state):
    """All threads together: the order of the conjugates, at most MOST_FEW. Blocks of TILE threads, one for each
    multiprocessor at most.

    how : (bits, longest): bits of a letter, and letters of the longest word
    keys : uint64[2, n], to work in
    rows : uint32[2, n]; becomes the order, the position of each rank, and what was known of it last
    state : uint32[STATE], zeros; of `wait_for_blocks`, and behind it of each round whether any were equal
    """
    tile = cuda.shared.array(TILE, uint64)
    bits, longest = int64(how[0]), int64(how[1])
    me, threads, count = int64(cuda.grid(1)), int64(cuda.gridDim.x) * int64(cuda.blockDim.x), int64(keys.shape[1])
    for i in range(me, count, threads):
        letters = letters_from(codes, words_of, offsets, int64(i), bits, _KNOWN_BITS)
        keys[0, i] = (letters << uint64(_PLACE_BITS)) | uint64(i)
    row, turn = _sort(keys, int64(0), tile, state, int64(0))
    steps, number, is_last = int64(_KNOWN_BITS) // bits, int64(2), False
    while row >= int64(0) and not is_last:
        _note_ranks(keys[row], rows[1], state, number)
        if not wait_for_blocks(state, turn):
            return
        if state[number] == uint32(0):
            break
        # What is equal in twice the letters of the longest word always is; then words are told apart by their lengths.
        is_last = steps >= longest
        for i in range(me, count, threads):
            keys[row, i] = _deepen(keys[row, i], words_of, offsets, rows[1], steps, is_last)
        row, turn = _sort(keys, row, tile, state, turn + int64(1))
        steps, number = int64(3) * steps, number + int64(1)
    if row >= int64(0):
        for i in range(me, count, threads):
            rows[0, i] = uint32(keys[row, i] & uint64(_PLACE))

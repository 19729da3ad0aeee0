"""Kernels for few conjugates: one launch sorts them all, as starting many launches would take longer than sorting.

What is sorted are numbers of 64 bits, no two of them equal: a position, and above it 48 bits of what is known of the
conjugate there. Its first letters are known at first, then its rank and those of what is further on in its word. Blocks
sort tiles; then every thread finds the place of a number by how many are smaller in each of the other tiles, and its
rank by how many are known to be. Only ranks are looked up in the next round, so nothing moves.
In between all blocks wait for each other, twice a round, and give up where some do not run.

What words take lies in one array of 32-bit numbers (`Layout`), so that it is copied there at once, and back.
"""

from __future__ import annotations

from typing import NamedTuple

from warpseed.compute.compiled import int64, scalar, uint8, uint32, uint64
from warpseed.compute.gpu import bounded_kernel, cuda, kernel
from warpseed.compute.searching import lower_bound
from warpseed.compute.warp import wait_for_blocks
from warpseed.ebwt.gpu_fast import further, last_letter, letters_from, repeats

__all__ = [
    "GROUP_GAVE_UP",
    "MOST_FEW",
    "ORDER_GAVE_UP",
    "ROUNDS",
    "ROWS",
    "TILE",
    "Layout",
    "group_few",
    "measure_few",
    "order_few",
    "put_few_letters",
]

MOST_FEW = 1 << 16
TILE = 1 << 10
"""Numbers that a block sorts by itself, two a thread; a power of two."""
WAYS = 16
"""Runs of numbers that are merged at a time; a power of two."""
HEADER = 8
"""Numbers that the kernels are told: a `Header`, and one of padding."""
ORDER_GAVE_UP, GROUP_WAITS, GROUP_GAVE_UP, ROUNDS = 1, 2, 3, 4
"""Where of `state` the flag of `order_few` is, the count and the flag of `group_few`, and where rounds begin."""
STATE = ROUNDS + 16
"""Numbers that the kernels keep: for each of the two kernels that wait, a count of arrivals and a flag that one gave
up; then one a round, whether conjugates are still tied (fewer than 16 rounds, as the known length triples each
time)."""
ROWS = 4
"""Of `work`: the word of each letter; of each position its rank as far as is known, and its place in the order; and
the places of each word's conjugates, ascending, one word behind the other."""
_PLACE_BITS = 16
_PLACE = (1 << _PLACE_BITS) - 1
_KNOWN_BITS = 64 - _PLACE_BITS
_REGISTERS = 128
"""Of a thread: a multiprocessor has 65,536."""


class Header(NamedTuple):
    """What the kernels are told, the first numbers of a `Layout`; on a device each is int64."""

    conjugates: int
    words: int
    bits: int
    """of a letter"""
    longest: int
    """letters of the longest word"""
    state: int
    """where it begins"""
    stretches: int
    """of ranks, that a pair of words is measured in"""
    indices: int
    """where they begin"""


class Layout(NamedTuple):
    """Where of an array of 32-bit numbers what few words take begins: HEADER numbers, then these."""

    conjugates: int
    words: int
    offsets: int
    """of words + 1 numbers"""
    codes: int
    """of a byte a letter"""
    state: int
    """of STATE numbers, zeros at first"""
    order: int
    """of a number for each conjugate"""
    distances: int
    """of a number for each word and word, if these are asked for"""
    indices: int
    """of a number for each word, if the transform is asked for"""
    last: int
    """of a byte for each conjugate, if the transform is asked for"""
    end: int

    @classmethod
    def of(cls, count: int, words: int, *, transform: bool = False, distances: bool = False) -> Layout:
        """That of so many conjugates and words, and of what is asked for."""
        codes = HEADER + words + 1
        state = codes + -(-count // 4)
        order = state + STATE
        indices = order + count + (words * words if distances else 0)
        last = indices + (words if transform else 0)
        end = last + (-(-count // 4) if transform else 0)
        return cls(count, words, HEADER, codes, state, order, order + count, indices, last, end)

    def header(self, bits: int, longest: int, stretches: int = 1) -> tuple[int, ...]:
        """What the kernels are told, HEADER numbers."""
        return *Header(self.conjugates, self.words, bits, longest, self.state, stretches, self.indices), 0


@scalar
def header_of(numbers):
    """The `Header` that a `Layout` begins with."""
    conjugates, words, bits, longest = int64(numbers[0]), int64(numbers[1]), int64(numbers[2]), int64(numbers[3])
    return Header(conjugates, words, bits, longest, int64(numbers[4]), int64(numbers[5]), int64(numbers[6]))


@scalar
def _sort_tile(tile):
    """All threads of a block: a bitonic sort of uint64[TILE] in shared memory; a thread compares two numbers a step."""
    me = int64(cuda.threadIdx.x)
    size = int64(2)
    while size <= int64(TILE):
        stride = size >> int64(1)
        while stride > int64(0):
            cuda.syncthreads()
            i = (me << int64(1)) - (me & (stride - int64(1)))
            low, high = tile[i], tile[i + stride]
            if (low > high) == ((i & size) == int64(0)):
                tile[i], tile[i + stride] = high, low
            stride >>= int64(1)
        size <<= int64(1)
    cuda.syncthreads()


@scalar
def _place(keys, i, width, begin, end):
    """Of the i-th number among [begin, end), which are runs of `width` that ascend: how many are smaller, and how many
    of these are so by what is known, not by position."""
    key = keys[i]
    known = (key >> uint64(_PLACE_BITS)) << uint64(_PLACE_BITS)
    smaller, equal = int64(0), int64(0)
    for run in range(begin, end, width):
        first = int64(run)
        last = min(first + width, end)
        at = i if first <= i and i < last else lower_bound(keys, first, last, key)
        smaller += at - first
        if at > first and keys[at - int64(1)] >= known:
            equal += at - lower_bound(keys, first, at, known)
    return smaller, smaller - equal


@scalar
def _merge(keys, count, state, turn):
    """Wait for sorted tiles, and merge them where they are many: the row of keys that has runs then, -1 where a block
    did not come; the numbers of a run; and how often there was a wait by then."""
    row, width = int64(0), int64(TILE)
    together = wait_for_blocks(state, turn)
    turn += int64(1)
    while together and width * int64(WAYS) < count:
        source, target, wider = keys[row], keys[int64(1) - row], width * int64(WAYS)
        for at in range(int64(cuda.grid(1)), count, int64(cuda.gridDim.x) * int64(cuda.blockDim.x)):
            i = int64(at)
            begin = i & -wider
            smaller, _ = _place(source, i, width, begin, min(begin + wider, count))
            target[begin + smaller] = source[i]
        together = wait_for_blocks(state, turn)
        turn += int64(1)
        row, width = int64(1) - row, wider
    return (row if together else int64(-1)), width, turn


@scalar
def _deepen(place, words_of, offsets, ranks, steps, is_last):
    """What is known of a conjugate when ranks are known: its own, that of what is `steps` letters further on, and of
    what is so again; or at last the length of its word."""
    ahead = further(place, steps, words_of, offsets)
    if is_last:
        word = words_of[place]
        third = uint64(int64(offsets[word + 1]) - int64(offsets[word]) - int64(1))
    else:
        third = uint64(ranks[further(ahead, steps, words_of, offsets)])
    return (((uint64(ranks[place]) << uint64(16)) | uint64(ranks[ahead])) << uint64(16)) | third


@scalar
def _make_tiles(numbers, codes, keys, work, tile, steps, is_last):
    """Each block makes tiles of numbers, of the first letters where no steps are known yet, and sorts them."""
    header = header_of(numbers)
    count, words = header.conjugates, header.words
    offsets, words_of = numbers[HEADER : int64(HEADER) + words + int64(1)], work[0]
    for begin in range(int64(cuda.blockIdx.x) * int64(TILE), count, int64(cuda.gridDim.x) * int64(TILE)):
        for slot in range(int64(cuda.threadIdx.x), int64(TILE), int64(cuda.blockDim.x)):
            at = int64(begin) + int64(slot)
            key = ~uint64(0)
            if at < count:
                if steps == int64(0):
                    words_of[at] = uint32(lower_bound(offsets, int64(0), words, at + int64(1)) - int64(1))
                    known = letters_from(codes, words_of, offsets, at, header.bits, _KNOWN_BITS)
                else:
                    known = _deepen(at, words_of, offsets, work[1], steps, is_last)
                key = (known << uint64(_PLACE_BITS)) | uint64(at)
            tile[slot] = key
        _sort_tile(tile)
        _keep_tile(tile, keys[0], int64(begin), count)


@scalar
def _keep_tile(tile, keys, begin, count):
    """A sorted tile goes to where it belongs; then it may be filled again."""
    for slot in range(int64(cuda.threadIdx.x), int64(TILE), int64(cuda.blockDim.x)):
        if begin + int64(slot) < count:
            keys[begin + int64(slot)] = tile[slot]
    cuda.syncthreads()


@bounded_kernel(_REGISTERS)
def order_few(letters, numbers, keys, work):
    """All threads together: the order of the conjugates, at most MOST_FEW. Blocks of TILE / 2 threads, one for
    each multiprocessor at most.

    letters, numbers : uint8[], uint32[], the same memory; a Layout, with its header, offsets, codes and state. Takes
        the order, position by rank, and zeros for the distances
    keys : uint64[2, n], to work in, n conjugates at least
    work : uint32[ROWS, n]; all of it but the last row is written
    """
    tile = cuda.shared.array(TILE, uint64)
    header = header_of(numbers)
    count, state_at = header.conjugates, header.state
    first = int64(HEADER) + header.words + int64(1)
    codes, state = letters[int64(4) * first : int64(4) * first + count], numbers[state_at : state_at + int64(STATE)]
    order = state_at + int64(STATE)
    me, threads = int64(cuda.grid(1)), int64(cuda.gridDim.x) * int64(cuda.blockDim.x)
    for i in range(order + count + me, header.indices, threads):
        numbers[i] = uint32(0)
    steps, turn, number, is_last, tied = int64(0), int64(0), int64(ROUNDS), False, True
    while tied:
        _make_tiles(numbers, codes, keys, work, tile, steps, is_last)
        row, width, turn = _merge(keys, count, state, turn)
        if row < int64(0):
            return
        for i in range(me, count, threads):
            place, rank = _place(keys[row], int64(i), width, int64(0), count)
            position = int64(keys[row, i] & uint64(_PLACE))
            numbers[order + place] = uint32(position)
            work[1, position], work[2, position] = uint32(rank), uint32(place)
            if rank != place:
                state[number] = uint32(1)
        if not wait_for_blocks(state, turn):
            return
        turn += int64(1)
        tied = not is_last and state[number] != uint32(0)
        steps = int64(3) * steps if steps > int64(0) else int64(_KNOWN_BITS) // header.bits
        # What is equal in twice the letters of the longest word always is; then words are told apart by their lengths.
        number, is_last = number + int64(1), steps >= header.longest


@bounded_kernel(_REGISTERS)
def group_few(numbers, keys, work):
    """All threads together, behind `order_few` and launched as that: the places of each word's conjugates."""
    tile = cuda.shared.array(TILE, uint64)
    header = header_of(numbers)
    count, state_at = header.conjugates, header.state
    if numbers[state_at + int64(ORDER_GAVE_UP)] != uint32(0):
        return
    for begin in range(int64(cuda.blockIdx.x) * int64(TILE), count, int64(cuda.gridDim.x) * int64(TILE)):
        for slot in range(int64(cuda.threadIdx.x), int64(TILE), int64(cuda.blockDim.x)):
            at = int64(begin) + int64(slot)
            key = ~uint64(0)
            if at < count:
                key = ((uint64(work[0, at]) << uint64(_PLACE_BITS)) | uint64(work[2, at])) << uint64(_PLACE_BITS)
            tile[slot] = key
        _sort_tile(tile)
        _keep_tile(tile, keys[0], int64(begin), count)
    waits = numbers[state_at + int64(GROUP_WAITS) : state_at + int64(ROUNDS)]
    row, width, _ = _merge(keys, count, waits, int64(0))
    if row < int64(0):
        return
    for i in range(int64(cuda.grid(1)), count, int64(cuda.gridDim.x) * int64(cuda.blockDim.x)):
        place, _ = _place(keys[row], int64(i), width, int64(0), count)
        work[3, place] = uint32((keys[row, i] >> uint64(_PLACE_BITS)) & uint64(_PLACE))


@kernel
def measure_few(numbers, work):
    """A thread two words and one stretch of ranks, behind `group_few`: what that adds to their distance."""
    i, header = int64(cuda.grid(1)), header_of(numbers)
    conjugates, words, stretches = header.conjugates, header.words, header.stretches
    u, v, number = i // stretches // words, i // stretches % words, i % stretches
    # Places are compared, and nothing is looked up by them: those of blocks that did not come do no harm.
    if u >= words or v <= u:
        return
    grouped, distances = work[3], header.state + int64(STATE) + conjugates
    stretch = (conjugates + stretches - int64(1)) // stretches
    begin_u, end_u = int64(numbers[int64(HEADER) + u]), int64(numbers[int64(HEADER) + u + int64(1)])
    begin_v, end_v = int64(numbers[int64(HEADER) + v]), int64(numbers[int64(HEADER) + v + int64(1)])
    u_first = lower_bound(grouped, begin_u, end_u, number * stretch)
    v_first = lower_bound(grouped, begin_v, end_v, number * stretch)
    u_last = lower_bound(grouped, u_first, end_u, (number + int64(1)) * stretch)
    v_last = lower_bound(grouped, v_first, end_v, (number + int64(1)) * stretch)
    before_u = int64(grouped[u_first - int64(1)]) if u_first > begin_u else int64(-1)
    before_v = int64(grouped[v_first - int64(1)]) if v_first > begin_v else int64(-1)
    count = uint32(repeats(grouped, (before_u, u_first, u_last), (before_v, v_first, v_last)))
    cuda.atomic.add(numbers, distances + u * words + v, count)
    cuda.atomic.add(numbers, distances + v * words + u, count)


@kernel
def put_few_letters(letters, numbers, work):
    """A thread a conjugate in their order, behind `order_few`: its last letter, and where the words themselves are."""
    i, header = int64(cuda.grid(1)), header_of(numbers)
    count, words, state_at, indices = header.conjugates, header.words, header.state, header.indices
    if i >= count or numbers[state_at + int64(ORDER_GAVE_UP)] != uint32(0):
        return
    first = int64(HEADER) + words + int64(1)
    codes, offsets = letters[int64(4) * first : int64(4) * first + count], numbers[HEADER:first]
    place = int64(numbers[state_at + int64(STATE) + i])
    letter, is_word = last_letter(codes, offsets, uint32(work[0, place]), uint32(place))
    letters[int64(4) * (indices + words) + i] = uint8(letter)
    if is_word:
        numbers[indices + int64(work[0, place])] = uint32(i)

"""Kernels that count between how many ranks of a word another one has some.

The ranks between two of a word that follow each other are a *gap* of it. Which of WORDS words have a rank among some
ranks is a *set* of them, a bit for each word of what a warp holds: of word w bit w // 32 of lane w % 32. Sets of RANKS
ranks that follow each other are made once, and of JOINED, JOINED² … times as many. A gap's is that of a few of these,
which may overlap, and of the ranks at its two ends, which are looked at one by one. So a warp sees which of WORDS words
are in a gap with a few reads of memory. How often each was is counted where its bit is: the bits 2^k of all counts are
one number of 64 bits a lane, a *plane*, and sets are added to planes as numbers are, with a carry.
"""

from __future__ import annotations

from warpseed.compute.compiled import int64, scalar, uint8, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.warp import WARPS
from warpseed.ebwt.gpu_fast import lower_bound

__all__ = [
    "GAPS",
    "JOINED",
    "LANES",
    "RANKS",
    "SQUARE",
    "WORDS",
    "count_between",
    "count_warps",
    "find_last",
    "join_sets",
    "make_sets",
    "mirror_counts",
    "put_distances",
]

_LANES_BITS = 5
LANES = 1 << _LANES_BITS
WORDS = 64 * LANES
_RANKS_BITS = 4
RANKS = 1 << _RANKS_BITS
"""Ranks of the smallest sets: those at both ends of a gap are no more than a warp has lanes."""
_JOINED_BITS = 2
JOINED = 1 << _JOINED_BITS
GAPS = 224
"""That a warp counts in its planes, at most: eight of them hold 255."""
_AT_ONCE = 4
"""Gaps whose sets are made at once: they wait for memory together."""
_HALVES = 2
"""Numbers of 32 bits of a lane's set: it is put together from these."""
_MARKS = WARPS * _AT_ONCE * _HALVES * LANES
_EVERY_EIGHTH = 0x0101010101010101
_MIRRORED_ROWS = 8
_SQUARE_ROW = LANES + 1
_SQUARE = LANES * _SQUARE_ROW
SQUARE = _MIRRORED_ROWS * LANES
"""Threads of a block of `mirror_counts`."""


@kernel
def make_sets(colours, first_word, sets):
    """A warp RANKS ranks: which words they are of.

    colours : uint16[k] or uint32[k], the word of each rank
    first_word : of the WORDS words of the sets
    sets : uint64[levels * (k // RANKS) * LANES], each level's one behind the other; level 0 is written
    """
    i = int64(cuda.grid(1))
    lane, rank = uint32(i) & uint32(LANES - 1), uint64(i >> int64(_LANES_BITS)) << uint64(_RANKS_BITS)
    if rank + uint64(RANKS) > uint64(colours.shape[0]):
        return
    bits = uint64(0)
    for k in range(RANKS):
        word = uint32(uint32(colours[rank + uint64(k)]) - uint32(first_word))
        if word < uint32(WORDS) and uint32(word & uint32(LANES - 1)) == lane:
            bits |= uint64(1) << uint64(word >> uint32(_LANES_BITS))
    sets[uint64(i)] = bits


@kernel
def join_sets(level, sets):
    """A thread a lane of a set: those of JOINED times as many ranks, of a level and the one below it.

    level : that is written
    sets : uint64[levels, count * LANES]; sets that would go beyond the last rank are left
    """
    i, count = int64(cuda.grid(1)), int64(sets.shape[1]) >> int64(_LANES_BITS)
    size = int64(1) << (int64(_JOINED_BITS) * (int64(level) - int64(1)))
    if (i >> int64(_LANES_BITS)) + int64(JOINED) * size > count:
        return
    step = size << int64(_LANES_BITS)
    bits = uint64(0)
    for part in range(JOINED):
        bits |= sets[level - 1, uint64(i + int64(part) * step)]
    sets[level, uint64(i)] = bits


@kernel
def count_warps(cuts, first_stretch, warps):
    """A thread a stretch and word: how many warps serve its gaps.

    cuts : as of `count_between`
    first_stretch : of those that are served
    warps : int64[stretches, words]
    """
    i, words = int64(cuda.grid(1)), int64(warps.shape[1])
    stretch, word = i // words, i % words
    if stretch >= warps.shape[0]:
        return
    at = int64(first_stretch) + stretch
    gaps = int64(cuts[word, at + int64(1)]) - int64(cuts[word, at])
    warps[stretch, word] = (gaps + int64(GAPS - 1)) // int64(GAPS)


@kernel
def find_last(positions, cuts, stretch, first, last):
    """A thread a word: its last rank before a stretch, where the device has one.

    positions : as of `count_between`, less `first`
    cuts : as there
    last : int64[words]; it stays where there is none
    """
    word = int64(cuda.grid(1))
    if word >= cuts.shape[0]:
        return
    end = int64(cuts[word, stretch])
    if end > cuts[word, 0]:
        last[word] = int64(positions[end - int64(1)]) + int64(first)


@scalar
def later_words(before, word, first_word, lane):
    """The words whose last rank was behind that of a word, where that had one: bits of a lane."""
    mine, bits, words = before[word], uint64(0), int64(before.shape[0])
    for bit in range(int64(WORDS >> _LANES_BITS)):
        other = int64(first_word) + bit * int64(LANES) + lane
        if other < words and before[other] > mine:
            bits |= uint64(1) << uint64(bit)
    return bits


@scalar
def stop_of(positions, gap, end, start, first_rank):
    """Where the gap ends that begins at `start` and belongs to a place of the positions: at once from `end` on."""
    return uint32(positions[gap] - first_rank) if gap < end else start


@scalar
def sets_inside(start, stop):
    """(first, last) of the sets of level 0 that are in a gap, uint32; twice the same where there are none."""
    first, last = uint32(start + uint32(RANKS - 1)) >> uint32(_RANKS_BITS), stop >> uint32(_RANKS_BITS)
    return uint32(first), uint32(max(first, last))


@scalar
def end_word(colours, start, stop, first_word):
    """The word of one of those ranks of a gap that are in no set inside it, a lane a rank, less the first word.

    WORDS or more where the lane has no rank, or its word is none of WORDS.
    """
    lane = uint32(cuda.threadIdx.x) & uint32(LANES - 1)
    first, last = sets_inside(start, stop)
    inside = uint32(first << uint32(_RANKS_BITS)) if first < last else stop
    behind = uint32(last << uint32(_RANKS_BITS)) if first < last else stop
    head = uint32(inside - start)
    at = uint32(start + lane) if lane < head else uint32(behind + uint32(lane - head))
    return uint32(uint32(colours[at]) - first_word) if at < stop else uint32(WORDS)


@scalar
def mark(word, marks, room):
    """Mark a word of WORDS, from a place on where the warp's marks of a gap begin."""
    if word < uint32(WORDS):
        half = uint32(word >> uint32(_LANES_BITS + 5)) << uint32(_LANES_BITS)
        bit = uint32(word >> uint32(_LANES_BITS)) & uint32(31)
        to = uint32(room + uint32(half | (word & uint32(LANES - 1))))
        cuda.atomic.or_(marks, to, uint32(uint32(1) << uint32(bit)))


@scalar
def set_at(sets, begin, number, last_number, last):
    """A lane of a set that begins at `number`, of those that end in a gap with the set before `last`; the last of them
    where it would go beyond that; none where it would begin there.

    begin : the place in `sets` of the first set's lane
    """
    at = uint32(min(number, last_number))
    return sets[uint32(begin + uint32(at << uint32(_LANES_BITS)))] if number < last else uint64(0)


@scalar
def joined_inside(sets, of_level, levels, start, stop):
    """The words of all sets that are in a gap, bits of a lane.

    of_level : numbers of `sets` of one level
    """
    first, last = sets_inside(start, stop)
    level = uint32(uint32(31) - uint32(cuda.clz(uint32(last - first)))) >> uint32(_JOINED_BITS - 1)
    level = uint32(min(uint32(level), uint32(levels - uint32(1))))
    size = uint32(uint32(1) << uint32(uint32(_JOINED_BITS) * level))
    begin = uint32(uint32(level * of_level) + (uint32(cuda.threadIdx.x) & uint32(LANES - 1)))
    last_number = uint32(last - size)
    second, third = uint32(first + size), uint32(first + uint32(size + size))
    fourth = uint32(third + size)
    bits = set_at(sets, begin, first, last_number, last) | set_at(sets, begin, second, last_number, last)
    bits |= set_at(sets, begin, third, last_number, last) | set_at(sets, begin, fourth, last_number, last)
    at = uint32(fourth + size)
    while at < last:
        bits |= set_at(sets, begin, at, last_number, last)
        at = uint32(at + size)
    return bits


@scalar
def take_marks(marks, room):
    """What is marked of a lane, which is cleared."""
    low = uint32(room + (uint32(cuda.threadIdx.x) & uint32(LANES - 1)))
    high = uint32(low + uint32(LANES))
    bits = (uint64(marks[high]) << uint64(32)) | uint64(marks[low])
    marks[low] = uint32(0)
    marks[high] = uint32(0)
    return bits


@scalar
def added(a, b, c):
    """The sum of three bits, and what is carried, of each bit."""
    different = a ^ b
    return different ^ c, (a & b) | (different & c)


@scalar
def add_four(planes, a, b, c, d):
    """Add four bits to every count."""
    p0, p1, p2, p3, p4, p5, p6, p7 = planes
    p0, e = added(p0, a, b)
    p0, f = added(p0, c, d)
    p1, carry = added(p1, e, f)
    p2, carry = p2 ^ carry, p2 & carry
    p3, carry = p3 ^ carry, p3 & carry
    p4, carry = p4 ^ carry, p4 & carry
    p5, carry = p5 ^ carry, p5 & carry
    p6, carry = p6 ^ carry, p6 & carry
    return p0, p1, p2, p3, p4, p5, p6, p7 ^ carry


@scalar
def eight_counts(planes, bit):
    """The counts of every eighth bit from one on, a byte each."""
    p0, p1, p2, p3, p4, p5, p6, p7 = planes
    every, down = uint64(_EVERY_EIGHTH), uint64(bit)
    low = ((p0 >> down) & every) | (((p1 >> down) & every) << uint64(1))
    low |= (((p2 >> down) & every) << uint64(2)) | (((p3 >> down) & every) << uint64(3))
    high = ((p4 >> down) & every) | (((p5 >> down) & every) << uint64(1))
    high |= (((p6 >> down) & every) << uint64(2)) | (((p7 >> down) & every) << uint64(3))
    return low | (high << uint64(4))


@scalar
def add_counts(planes, word, first_word, lane, counts):
    """Add what planes count to the counts of a word."""
    for bit in range(int64(8)):
        eight = eight_counts(planes, bit)
        for byte in range(int64(8)):
            count = uint32(uint8(eight >> uint64(int64(8) * byte)))
            other = int64(first_word) + (bit + int64(8) * byte) * int64(LANES) + lane
            if count and other < counts.shape[1]:
                cuda.atomic.add(counts, (word, other), count)


@scalar
def counted(read, marks, gaps, known, how):
    """Planes of some gaps of a word, by a warp.

    Parameters
    ----------
    read : (colours, positions, sets), as of `count_between`
    marks : uint32[_MARKS], of the block, in shared memory
    gaps : (first, end, start): places of the positions that they belong to, uint64, and where the first of them begins,
        uint32
    known : uint64, the words that are in the first one before these stretches
    how : (first of the WORDS words, position of the first rank, numbers of a level of sets, levels), uint32
    """
    colours, positions, sets = read
    i, end, start = gaps
    first_word, first_rank, of_level, levels = how
    thread, none, step = uint32(cuda.threadIdx.x), uint64(0), uint32(_HALVES * LANES)
    room_a = uint32(uint32(thread >> uint32(_LANES_BITS)) * uint32(_AT_ONCE * _HALVES * LANES))
    room_b, room_c = uint32(room_a + step), uint32(room_a + uint32(2) * step)
    room_d = uint32(room_c + step)
    for room in (room_a, room_b, room_c, room_d):
        take_marks(marks, room)
    cuda.syncwarp()
    planes = none, none, none, none, none, none, none, none
    while i < end:
        start_a, stop_a = start, stop_of(positions, i, end, start, first_rank)
        start_b = uint32(stop_a + uint32(1))
        stop_b = stop_of(positions, i + uint64(1), end, start_b, first_rank)
        start_c = uint32(stop_b + uint32(1))
        stop_c = stop_of(positions, i + uint64(2), end, start_c, first_rank)
        start_d = uint32(stop_c + uint32(1))
        stop_d = stop_of(positions, i + uint64(3), end, start_d, first_rank)
        start = uint32(stop_d + uint32(1))
        word_a = end_word(colours, start_a, stop_a, first_word)
        word_b = end_word(colours, start_b, stop_b, first_word)
        word_c = end_word(colours, start_c, stop_c, first_word)
        word_d = end_word(colours, start_d, stop_d, first_word)
        a = known | joined_inside(sets, of_level, levels, start_a, stop_a)
        b = joined_inside(sets, of_level, levels, start_b, stop_b)
        c = joined_inside(sets, of_level, levels, start_c, stop_c)
        d = joined_inside(sets, of_level, levels, start_d, stop_d)
        known = none
        mark(word_a, marks, room_a)
        mark(word_b, marks, room_b)
        mark(word_c, marks, room_c)
        mark(word_d, marks, room_d)
        cuda.syncwarp()
        a |= take_marks(marks, room_a)
        b |= take_marks(marks, room_b)
        c |= take_marks(marks, room_c)
        d |= take_marks(marks, room_d)
        cuda.syncwarp()
        planes = add_four(planes, a, b, c, d)
        i += uint64(_AT_ONCE)
    return planes


@kernel
def count_between(colours, positions, cuts, before, sets, ends, how, counts):
    """A warp at most GAPS gaps of a word: in how many of them each of WORDS words is.

    A gap belongs to the rank behind it. It is looked at among some stretches of ranks, and begins with the first of
    these where the rank before it is not among them.

    Parameters
    ----------
    colours : uint16[k] or uint32[k], the word of each rank of these stretches
    positions : uint32[], of each word, one behind the other, its ranks less some number, ascending
    cuts : int64[words, all stretches + 1], where a word's positions of each stretch begin
    before : int64[words], the last rank of each word before these stretches, -1 of one that has none
    sets : uint64[levels * (k // RANKS) * LANES], of `make_sets` and `join_sets`
    ends : int64[stretches * words], how many warps serve all up to each stretch and word
    how : (first of the WORDS words, first of the stretches, the position of its first rank, numbers of a level of sets,
        levels)
    counts : uint32[words, words], added to, but for words behind all of WORDS
    """
    marks = cuda.shared.array(_MARKS, uint32)
    first_word, first_stretch = int64(how[0]), int64(how[1])
    number, words = int64(cuda.grid(1)) >> int64(_LANES_BITS), int64(cuts.shape[0])
    if number >= ends[ends.shape[0] - 1]:
        return
    owner = lower_bound(ends, int64(0), int64(ends.shape[0]) - int64(1), number + int64(1))
    word, stretch = owner % words, first_stretch + owner // words
    if word >= first_word + int64(WORDS):
        return
    served = int64(ends[owner - int64(1)]) if owner > int64(0) else int64(0)
    begin = int64(cuts[word, stretch]) + (number - served) * int64(GAPS)
    end = min(begin + int64(GAPS), int64(cuts[word, stretch + int64(1)]))
    known, lane = uint64(0), int64(cuda.threadIdx.x) & int64(LANES - 1)
    if begin == cuts[word, first_stretch]:
        start = int64(0)
        if before[word] >= int64(0):
            known = later_words(before, word, first_word, lane)
        else:
            start = int64(positions[begin]) - int64(how[2]) + int64(1)
            begin += int64(1)
    else:
        start = int64(positions[begin - int64(1)]) - int64(how[2]) + int64(1)
    gaps = uint64(begin), uint64(end), uint32(start)
    given = uint32(how[0]), uint32(how[2]), uint32(how[3]), uint32(how[4])
    planes = counted((colours, positions, sets), marks, gaps, known, given)
    add_counts(planes, word, first_word, lane, counts)


@kernel
def mirror_counts(counts):
    """A block a square of counts: what an earlier word has of a later one becomes what that has of the earlier.

    counts : uint32[words, words]
    """
    square = cuda.shared.array(_SQUARE, uint32)
    words, block = int64(counts.shape[0]), int64(cuda.blockIdx.x)
    lane, row = int64(cuda.threadIdx.x) & int64(LANES - 1), int64(cuda.threadIdx.x) >> int64(_LANES_BITS)
    squares = (words + int64(LANES - 1)) >> int64(_LANES_BITS)
    u, v = (block // squares) << int64(_LANES_BITS), (block % squares) << int64(_LANES_BITS)
    if u > v:
        return
    for i in range(row, int64(LANES), _MIRRORED_ROWS):
        if u + i < words and v + lane < words:
            square[i * int64(_SQUARE_ROW) + lane] = counts[u + i, v + lane]
    cuda.syncthreads()
    for i in range(row, int64(LANES), _MIRRORED_ROWS):
        if u + lane < v + i and v + i < words:
            counts[v + i, u + lane] = square[lane * int64(_SQUARE_ROW) + i]


@kernel
def put_distances(counts, first_row, offsets, firsts, lasts, distances):
    """A block a part of a row: distances of a word and as many others as it has threads. Between two runs of a word's
    ranks there is one of the other's, and before the first and behind the last there may be one.

    Parameters
    ----------
    counts : uint32[rows, words], from the row of one word on: in how many gaps of the earlier word the later one is
    first_row : the number of that word
    offsets : int64[words + 1], where words begin, and the end of the last
    firsts, lasts : int64[words], the first and the last rank of each word
    distances : int64[rows, words]
    """
    words = int64(distances.shape[1])
    parts = (words + int64(cuda.blockDim.x) - int64(1)) // int64(cuda.blockDim.x)
    row, part = int64(cuda.blockIdx.x) // parts, int64(cuda.blockIdx.x) % parts
    v = part * int64(cuda.blockDim.x) + int64(cuda.threadIdx.x)
    if row >= distances.shape[0] or v >= words:
        return
    u = int64(first_row) + row
    distance = int64(0)
    if u != v:
        runs = int64(2) * int64(counts[row, v]) + int64(1)
        early, late = min(u, v), max(u, v)
        runs += int64(1) if firsts[late] < firsts[early] else int64(0)
        runs += int64(1) if lasts[late] > lasts[early] else int64(0)
        letters = offsets[u + int64(1)] - offsets[u] + offsets[v + int64(1)] - offsets[v]
        distance = letters - runs
    distances[row, v] = distance

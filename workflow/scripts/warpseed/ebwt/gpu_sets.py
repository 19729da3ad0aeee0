"""Which of WORDS words are among some ranks, on a GPU.

These words are the *members*. Time stands still where no member has a rank: a rank's *time* is how many ranks of
members there are before it. Which members have a rank from one time to another is a *set* of them, a bit for each in
what a warp holds: of member w bit w // 32 of lane w % 32. Sets of RANKS times that follow each other are made once, and
of JOINED, JOINED² … times as many; any other is the union of a few of these, which may overlap, and of what is at its
two ends.
"""

from __future__ import annotations

from warpseed.compute.compiled import int32, int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.warp import ALL_LANES, LANES, LANES_BITS, lanes_before

__all__ = [
    "COUNTED",
    "JOINED",
    "MOST_CHUNKS",
    "RANKS",
    "RANKS_BITS",
    "WORDS",
    "count_members",
    "join_sets",
    "joined_inside",
    "make_sets",
    "mark_members",
    "sets_inside",
    "take_members",
    "time_of",
]

WORDS = 64 * LANES
MOST_CHUNKS = 256
"""Times WORDS words, more than there is room for distances of on any GPU."""
COUNTED = 1 << 12
"""Ranks that a block of `count_members` looks at."""
RANKS_BITS = 4
RANKS = 1 << RANKS_BITS
"""Times of the smallest sets: those at both ends of a gap are no more than a warp has lanes."""
_READ_AT_ONCE = 4
"""Ranks that a thread of `mark_members` reads before it waits for any."""
_JOINED_BITS = 2
JOINED = 1 << _JOINED_BITS
"""`joined_inside` looks at as many sets at once."""


@kernel
def count_members(colours, stretch, pieces, members):
    """A block some ranks of a stretch: how many there are of each WORDS words.

    Parameters
    ----------
    colours : uint16[N] or uint32[N], the word of each rank
    stretch : ranks of a stretch
    pieces : blocks of one, of COUNTED ranks each
    members : uint64[ceil(words / WORDS), stretches], added to; MOST_CHUNKS rows at most
    """
    counts = cuda.shared.array(MOST_CHUNKS, uint32)
    block, me, threads = int64(cuda.blockIdx.x), int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    number = block // int64(pieces)
    first = number * int64(stretch) + block % int64(pieces) * int64(COUNTED)
    last = min(first + int64(COUNTED), (number + int64(1)) * int64(stretch), int64(colours.shape[0]))
    for chunk in range(me, int64(MOST_CHUNKS), threads):
        counts[chunk] = uint32(0)
    cuda.syncthreads()
    for rank in range(first + me, last, threads):
        cuda.atomic.add(counts, int64(colours[rank]) // int64(WORDS), uint32(1))
    cuda.syncthreads()
    for chunk in range(me, int64(members.shape[0]), threads):
        if counts[chunk]:
            cuda.atomic.add(members, (chunk, number), uint64(counts[chunk]))


@scalar
def is_member(colours, rank, first_word):
    """Whether a rank is a member's; not if there is no such rank."""
    if rank >= colours.shape[0]:
        return False
    return uint32(uint32(colours[rank]) - uint32(first_word)) < uint32(WORDS)


@kernel
def mark_members(colours, first_word, masks, counts):
    """A thread LANES ranks: which of them are of members, and how many. (A warp looks at those of each lane in turn.)

    colours : uint16[k] or uint32[k], the word of each rank
    first_word : the first member
    masks, counts : uint32[ceil(k / LANES)]
    """
    i = int64(cuda.grid(1))
    lane, mask_here = i & int64(LANES - 1), uint32(0)
    first = ((i - lane) << int64(LANES_BITS)) + lane
    for other in range(0, LANES, _READ_AT_ONCE):
        rank = first + (int64(other) << int64(LANES_BITS))
        a = is_member(colours, rank, first_word)
        b = is_member(colours, rank + int64(LANES), first_word)
        c = is_member(colours, rank + int64(2 * LANES), first_word)
        d = is_member(colours, rank + int64(3 * LANES), first_word)
        mask_a, mask_b = cuda.ballot_sync(ALL_LANES, a), cuda.ballot_sync(ALL_LANES, b)
        mask_c, mask_d = cuda.ballot_sync(ALL_LANES, c), cuda.ballot_sync(ALL_LANES, d)
        mask_here = uint32(mask_a) if lane == int64(other) else mask_here
        mask_here = uint32(mask_b) if lane == int64(other + 1) else mask_here
        mask_here = uint32(mask_c) if lane == int64(other + 2) else mask_here
        mask_here = uint32(mask_d) if lane == int64(other + 3) else mask_here
    if i < masks.shape[0]:
        masks[i] = mask_here
        counts[i] = uint32(cuda.popc(mask_here))


@kernel
def take_members(colours, first_word, masks, ends, times, members):
    """A thread LANES ranks: the members in the order of their ranks. (A warp takes those of each lane in turn.)

    Parameters
    ----------
    colours, first_word, masks : as of `mark_members`
    ends : uint32[ceil(k / LANES)], the ranks of members up to the end of each LANES
    times : uint64[ceil(k / LANES)], of each LANES the time of the first, and below it, in 32 bits, their mask
    members : uint16[t], less the first one
    """
    i = int64(cuda.grid(1))
    lane, mask, time = uint32(i) & uint32(LANES - 1), uint32(0), uint32(0)
    if i < masks.shape[0]:
        mask = uint32(masks[i])
        time = uint32(ends[i]) - uint32(cuda.popc(mask))
        times[i] = uint64(uint64(time) << uint64(32)) | uint64(mask)
    first = ((i - int64(lane)) << int64(LANES_BITS)) + int64(lane)
    for other in range(LANES):
        theirs = uint32(cuda.shfl_sync(ALL_LANES, int32(mask), int32(other)))
        begin = uint32(cuda.shfl_sync(ALL_LANES, int32(time), int32(other)))
        if uint32(theirs >> lane) & uint32(1):
            word = uint32(colours[first + (int64(other) << int64(LANES_BITS))])
            members[int64(begin) + int64(lanes_before(theirs, lane))] = uint32(word - uint32(first_word))


@scalar
def time_of(times, rank):
    """The time of a rank, uint32.

    times : as of `take_members`, or nothing where all words are members, and a rank is its time
    """
    if times.shape[0] == 0:
        return uint32(rank)
    some = uint64(times[rank >> uint32(LANES_BITS)])
    return uint32(uint32(some >> uint64(32)) + lanes_before(uint32(some), rank & uint32(LANES - 1)))


@kernel
def make_sets(members, sets):
    """A warp RANKS times: the members there.

    members : uint16[t], that of each time, less the first one
    sets : uint64[levels * (t // RANKS) * LANES], each level's one behind the other; level 0 is written
    """
    i = int64(cuda.grid(1))
    lane, time = uint32(i) & uint32(LANES - 1), uint64(i >> int64(LANES_BITS)) << uint64(RANKS_BITS)
    if time + uint64(RANKS) > uint64(members.shape[0]):
        return
    bits = uint64(0)
    for k in range(RANKS):
        member = uint32(members[time + uint64(k)])
        if uint32(member & uint32(LANES - 1)) == lane:
            bits |= uint64(1) << uint64(member >> uint32(LANES_BITS))
    sets[uint64(i)] = bits


@kernel
def join_sets(level, sets):
    """A thread a lane of a set: those of JOINED times as many times, of a level and the one below it.

    level : that is written
    sets : uint64[levels, count * LANES]; sets that would go beyond the last time are left
    """
    i, count = int64(cuda.grid(1)), int64(sets.shape[1]) >> int64(LANES_BITS)
    size = int64(1) << (int64(_JOINED_BITS) * (int64(level) - int64(1)))
    if (i >> int64(LANES_BITS)) + int64(JOINED) * size > count:
        return
    step = size << int64(LANES_BITS)
    bits = uint64(0)
    for part in range(JOINED):
        bits |= sets[level - 1, uint64(i + int64(part) * step)]
    sets[level, uint64(i)] = bits


@scalar
def sets_inside(start, stop):
    """(first, last) of the sets of level 0 from one time to another, uint32; twice the same where there are none."""
    first, last = uint32(start + uint32(RANKS - 1)) >> uint32(RANKS_BITS), stop >> uint32(RANKS_BITS)
    return uint32(first), uint32(max(first, last))


@scalar
def set_at(sets, begin, number, last_number, last):
    """A lane of a set that begins at `number`, of those that end in a gap with the set before `last`; the last of them
    where it would go beyond that; none where it would begin there.

    begin : the place in `sets` of the first set's lane
    """
    at = uint32(min(number, last_number))
    return sets[uint32(begin + uint32(at << uint32(LANES_BITS)))] if number < last else uint64(0)


@scalar
def joined_inside(sets, of_level, levels, start, stop):
    """The members of all sets that lie from one time to another, bits of a lane.

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

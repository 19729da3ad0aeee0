"""Which of WORDS words are among some ranks, on a GPU.

These words are the *members*. Time stands still where no member has a rank: a rank's *time* is how many ranks of
members there are before it. Which members have a rank from one time to another is a *set* of them, a bit for each in
what a warp holds: of member w bit w // 32 of lane w % 32. Sets of RANKS times that follow each other are made once, and
of twice, four times … as many, a *level* each: any other is the union of two of one level, which may overlap, or of a
few where it is longer than two of the largest, and of what is at its two ends.
"""

from __future__ import annotations

from warpseed.compute.compiled import int32, int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.warp import ALL_LANES, LANES, LANES_BITS, lanes_before

__all__ = [
    "COUNTED",
    "MARK_BITS",
    "MOST_CHUNKS",
    "NO_MEMBER",
    "RANKS",
    "RANKS_BITS",
    "WORDS",
    "between_ends",
    "count_in_chunks",
    "cover_of",
    "ends_of_cover",
    "is_long",
    "join_sets",
    "make_sets",
    "mask_members",
    "take_all_members",
    "take_members",
    "time_of",
]

WORDS = 64 * LANES
NO_MEMBER = WORDS
"""In the place of a member's mark, where there is none."""
MARK_BITS = 5
"""Of a mark: which bit of a number of 32 it is."""
MOST_CHUNKS = 256
"""Times WORDS words, more than there is room for distances of on any GPU."""
COUNTED = 1 << 12
"""Ranks that a block of `count_in_chunks` looks at."""
RANKS_BITS = 4
RANKS = 1 << RANKS_BITS
"""Times of the smallest sets: those at both ends of a gap are no more than a warp has lanes."""
_READ_AT_ONCE = 4
"""Ranks that a thread of `mask_members` reads before it waits for any."""


@kernel
def count_in_chunks(colours, stretch, blocks, counted):
    """A block some ranks of a stretch: how many there are of each WORDS words.

    Parameters
    ----------
    colours : uint16[N] or uint32[N], the word of each rank
    stretch : ranks of a stretch
    blocks : of a stretch, of COUNTED ranks each
    counted : uint64[ceil(words / WORDS), stretches], added to; MOST_CHUNKS rows at most
    """
    counts = cuda.shared.array(MOST_CHUNKS, uint32)
    block, me, threads = int64(cuda.blockIdx.x), int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    number = block // int64(blocks)
    first = number * int64(stretch) + block % int64(blocks) * int64(COUNTED)
    last = min(first + int64(COUNTED), (number + int64(1)) * int64(stretch), int64(colours.shape[0]))
    for chunk in range(me, int64(MOST_CHUNKS), threads):
        counts[chunk] = uint32(0)
    cuda.syncthreads()
    for rank in range(first + me, last, threads):
        cuda.atomic.add(counts, int64(colours[rank]) // int64(WORDS), uint32(1))
    cuda.syncthreads()
    for chunk in range(me, int64(counted.shape[0]), threads):
        if counts[chunk]:
            cuda.atomic.add(counted, (chunk, number), uint64(counts[chunk]))


@scalar
def is_member(colours, rank, first_word):
    """Whether a rank is a member's; not if there is no such rank."""
    if rank >= colours.shape[0]:
        return False
    return uint32(uint32(colours[rank]) - uint32(first_word)) < uint32(WORDS)


@scalar
def mark_of(member):
    """A member's *mark*: which bit it is among 2 · LANES numbers of 32 bits, the lower half of what each lane holds,
    then the upper ones. That of member w is bit w // 32 % 32 of number w // 1,024 · LANES + w % 32; uint32.

    member : less the first one, uint32
    """
    bit = uint32(member >> uint32(LANES_BITS))
    half = uint32(bit >> uint32(MARK_BITS))
    number = uint32(uint32(half << uint32(LANES_BITS)) | (member & uint32(LANES - 1)))
    return uint32(uint32(number << uint32(MARK_BITS)) | (bit & uint32((1 << MARK_BITS) - 1)))


@scalar
def lane_of_mark(mark):
    """The lane that holds a marked member."""
    return uint32(mark >> uint32(MARK_BITS)) & uint32(LANES - 1)


@scalar
def bit_of_mark(mark):
    """Which bit it is there."""
    half = uint32(mark >> uint32(MARK_BITS + LANES_BITS))
    return uint32(half << uint32(MARK_BITS)) | (mark & uint32((1 << MARK_BITS) - 1))


@kernel
def mask_members(colours, first_word, masks, counts):
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
    colours, first_word, masks : as of `mask_members`
    ends : uint32[ceil(k / LANES)], the ranks of members up to the end of each LANES
    times : uint64[ceil(k / LANES)], of each LANES the time of the first, and below it, in 32 bits, their mask
    members : uint16[t], marks, as of `mark_of`
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
            members[int64(begin) + int64(lanes_before(theirs, lane))] = mark_of(uint32(word - uint32(first_word)))


@kernel
def take_all_members(colours, members):
    """A thread a rank: what `take_members` does, where all words are members.

    Parameters
    ----------
    colours : as of `mask_members`
    members : uint16[k], marks
    """
    i = int64(cuda.grid(1))
    if i < colours.shape[0]:
        members[i] = mark_of(uint32(colours[i]))


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

    members : uint16[t], the mark of that of each time
    sets : uint64[levels * (t // RANKS) * LANES], each level's one behind the other; level 0 is written
    """
    i = int64(cuda.grid(1))
    lane, time = uint32(i) & uint32(LANES - 1), uint64(i >> int64(LANES_BITS)) << uint64(RANKS_BITS)
    if time + uint64(RANKS) > uint64(members.shape[0]):
        return
    bits = uint64(0)
    for k in range(RANKS):
        member = uint32(members[time + uint64(k)])
        if lane_of_mark(member) == lane:
            bits |= uint64(1) << uint64(bit_of_mark(member))
    sets[uint64(i)] = bits


@kernel
def join_sets(level, sets):
    """A thread a lane of a set: those of a level, and of the next one if there is one, from the level below both.

    level : the lower one that is written
    sets : uint64[levels, count * LANES]; sets that would go beyond the last time are left
    """
    i, count = int64(cuda.grid(1)), int64(sets.shape[1]) >> int64(LANES_BITS)
    number, size = i >> int64(LANES_BITS), int64(1) << (int64(level) - int64(1))
    if number + int64(2) * size > count:
        return
    step = size << int64(LANES_BITS)
    bits = sets[level - 1, uint64(i)] | sets[level - 1, uint64(i + step)]
    sets[level, uint64(i)] = bits
    if level + 1 < sets.shape[0] and number + int64(4) * size <= count:
        bits |= sets[level - 1, uint64(i + int64(2) * step)] | sets[level - 1, uint64(i + int64(3) * step)]
        sets[level + 1, uint64(i)] = bits


@scalar
def cover_of(of_level, levels, gap):
    """The sets of one level that make the one from one time to another, but for its ends.

    of_level : numbers of `sets` of one level
    gap : (start, stop), these times, uint32

    Returns
    -------
    (number, count, first, last, step), uint32: `count` of the smallest sets lie inside, from a number on. Where there
    are any, `first` and `last` are the places of a lane in the sets that reach to their ends; between these others
    begin each `step`, where both do not meet.
    """
    number = uint32(uint32(gap[0] + uint32(RANKS - 1)) >> uint32(RANKS_BITS))
    count = uint32(max(uint32(gap[1] >> uint32(RANKS_BITS)), number) - number)
    level = min(uint32(uint32(31) - uint32(cuda.clz(count))), uint32(levels - uint32(1)))
    lane = uint32(cuda.threadIdx.x) & uint32(LANES - 1)
    first = uint32(uint32(uint32(level * of_level) + lane) + uint32(number << uint32(LANES_BITS)))
    step = uint32(uint32(LANES) << level)
    return number, count, first, uint32(uint32(first + uint32(count << uint32(LANES_BITS))) - step), step


@scalar
def ends_of_cover(sets, cover):
    """A lane of the two sets at the ends of a cover, bits; of none where it has none."""
    _, count, first, last, _ = cover
    at_first, at_last = uint64(0), uint64(0)
    if count:
        at_first, at_last = sets[first], sets[last]
    return at_first, at_last


@scalar
def is_long(levels, counts):
    """Whether one of some covers may be longer than two of the largest sets.

    counts : of each how many of the smallest sets it has, all joined by or
    """
    return uint32(counts >> levels) != uint32(0)


@scalar
def between_ends(sets, cover):
    """The members of the sets between the two ends of a cover, where both do not meet, bits of a lane."""
    _, count, at, last, step = cover
    bits = uint64(0)
    while count and uint32(at + step) < last:
        second = uint32(at + step)
        third, fourth = uint32(second + step), uint32(uint32(second + step) + step)
        at = uint32(fourth + step)
        bits |= sets[second] | sets[min(third, last)] | sets[min(fourth, last)] | sets[min(at, last)]
    return bits

"""Kernels that count between how many ranks of a word another one has some.

The ranks between two of a word that follow each other are a *gap* of it. Which of WORDS words, the *members*, are in a
gap is a set that a warp puts together with a few reads of memory (`gpu_sets.py`): of sets that were made before, and of
what is at its two ends, which is looked at one by one. How often each member was in one is counted where its bit is:
the bits 2^k of all counts are one number of 64 bits a lane, a *plane*, and sets are added to planes as numbers are,
with a carry.
"""

from __future__ import annotations

from warpseed.compute.compiled import int32, int64, scalar, uint8, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.warp import ALL_LANES, LANES, LANES_BITS, WARPS
from warpseed.ebwt.gpu_sets import (
    MARK_BITS,
    NO_MEMBER,
    RANKS_BITS,
    WORDS,
    between_ends,
    cover_of,
    ends_of_cover,
    is_long,
    time_of,
)

__all__ = [
    "GAPS",
    "SQUARE_BLOCK",
    "count_between",
    "count_warps",
    "find_last",
    "is_counted",
    "put_distances",
    "put_owners",
]

GAPS = 224
"""That a warp counts in its planes, at most: eight of them hold 255."""
_AT_ONCE = 4
"""Gaps whose sets are made at once: they wait for memory together."""
_ROOM = 2 * LANES
"""Numbers of 32 bits that hold the marks of one gap, 64 bits a lane."""
_MARKS = WARPS * _AT_ONCE * _ROOM
_EVERY_EIGHTH = 0x0101010101010101
_ROWS_AT_ONCE = 4
"""Of a square of counts, by a warp each: so each computes once, for eight rows, what it is and whose."""
_SQUARE_ROW = LANES + 1
_SQUARE = LANES * _SQUARE_ROW
SQUARE_BLOCK = _ROWS_AT_ONCE * LANES
"""Threads of a block of `put_distances`."""


@scalar
def is_counted(word, member, words):
    """Whether of two words it is the gaps of the first one that are counted, in which the other one is.

    Within one chunk of WORDS words, both words' gaps are counted. Otherwise those of the word whose chunk reaches the
    other's in fewer steps forward around the circle of chunks; for exactly opposite chunks a parity decides. So the
    gaps of each word are counted for half of the chunks, or, of an even number of chunks, for one more or not; of two
    chunks, the first's for both.
    """
    chunks = (int64(words) + int64(WORDS - 1)) // int64(WORDS)
    chunk, to = int64(word) // int64(WORDS), int64(member) // int64(WORDS)
    if chunk == to:
        return True
    steps = to - chunk if to > chunk else to - chunk + chunks
    if int64(2) * steps != chunks:
        return int64(2) * steps < chunks
    return ((chunk % steps + chunk // steps) & int64(1)) == int64(0)


@scalar
def is_before(word, rank, limit_word, limit_rank):
    """Whether a rank of a word, by its number among those of the word, is before a limit: of an earlier word, or of the
    same one, and before."""
    return word < limit_word or (word == limit_word and rank < limit_rank)


@kernel
def count_warps(cuts, first_stretch, first_word, part, warps):
    """A thread a stretch and word: how many warps serve its gaps, none where they are not counted here.

    cuts : as of `count_between`
    first_stretch : of those that are served
    first_word : the first member
    part : (word, rank, word, rank): from which gap on of which word, and up to before which of which, gaps are counted:
        those of a stretch and word all or none, as their first one is (parts cut words where stretches begin); a gap is
        named by the rank behind it, among those of the word
    warps : int64[stretches, rows], of the words from the part's first one on
    """
    i, rows = int64(cuda.grid(1)), int64(warps.shape[1])
    stretch, row = i // rows, i % rows
    if stretch >= warps.shape[0]:
        return
    at, word, gaps = int64(first_stretch) + stretch, int64(part[0]) + row, int64(0)
    rank = int64(cuts[word, at]) - int64(cuts[word, int64(0)])
    is_here = not is_before(word, rank, part[0], part[1]) and is_before(word, rank, part[2], part[3])
    if is_here and is_counted(word, int64(first_word), int64(cuts.shape[0])):
        gaps = int64(cuts[word, at + int64(1)]) - int64(cuts[word, at])
    warps[stretch, row] = (gaps + int64(GAPS - 1)) // int64(GAPS)


@kernel
def put_owners(ends, owners):
    """A warp LANES stretches and words: tell the warps that serve their gaps, which follow each other.

    ends : int64[stretches * rows], how many warps serve all up to each stretch and word, of the part's words
    owners : uint32[ends[-1] or more], of each warp the number of its stretch and word in `ends`; what is behind the
        last warp is left as it is
    """
    i, count = int64(cuda.grid(1)), int64(ends.shape[0])
    me = i & int64(LANES - 1)
    first = i - me
    if first >= count:
        return
    base = int64(ends[first - int64(1)]) if first > int64(0) else int64(0)
    mine = int32(int64(ends[min(i, count) - int64(1)]) - base) if me > int64(0) else int32(0)
    last = int32(int64(ends[min(first + int64(LANES), count) - int64(1)]) - base)
    for some in range(int32(0), last, int32(LANES)):
        warp, owner = int32(some + int32(me)), int32(0)
        for step in (16, 8, 4, 2, 1):
            begin = cuda.shfl_sync(ALL_LANES, mine, int32(owner + int32(step)))
            if begin <= warp:
                owner = int32(owner + int32(step))
        if warp < last:
            owners[base + int64(warp)] = first + int64(owner)


@kernel
def find_last(ranks_by_word, cuts, stretch, last):
    """A thread a word: its last rank before a stretch, -1 where it has none.

    ranks_by_word, cuts : as of `count_between`
    last : int64[words]
    """
    word = int64(cuda.grid(1))
    if word < cuts.shape[0]:
        end = int64(cuts[word, stretch])
        last[word] = int64(ranks_by_word[end - int64(1)]) if end > cuts[word, int64(0)] else int64(-1)


@scalar
def later_members(before, word, first_word, lane):
    """The members whose last rank was behind that of a word, where that had one: bits of a lane."""
    rank, bits, words = before[word], uint64(0), int64(before.shape[0])
    for bit in range(int64(WORDS >> LANES_BITS)):
        other = int64(first_word) + bit * int64(LANES) + lane
        if other < words and before[other] > rank:
            bits |= uint64(1) << uint64(bit)
    return bits


@scalar
def stop_of(stops, lane, start):
    """The time at which a lane's gap ends; `start`, where it begins, if it has none.

    stops : each lane's, 0 if it has none
    """
    return max(uint32(cuda.shfl_sync(ALL_LANES, int32(stops), int32(lane))), uint32(start))


@scalar
def end_member(members, gap, cover):
    """The mark of the member at one of those times of a gap that are in no set inside it, a lane a time; NO_MEMBER if
    it has none.

    gap, cover : as of `cover_of`
    """
    (start, stop), (number, count, _, _, _) = gap, cover
    time = uint32(start + (uint32(cuda.threadIdx.x) & uint32(LANES - 1)))
    if time >= uint32(number << uint32(RANKS_BITS)):
        time = uint32(time + uint32(count << uint32(RANKS_BITS)))
    return uint32(members[time]) if time < stop else uint32(NO_MEMBER)


@scalar
def mark(member, marks, room):
    """Mark a member, if it is one.

    member : as of `end_member`
    room : where the warp's marks of a gap begin
    """
    if member != uint32(NO_MEMBER):
        to = uint32(room + uint32(member >> uint32(MARK_BITS)))
        cuda.atomic.or_(marks, to, uint32(uint32(1) << uint32(member & uint32((1 << MARK_BITS) - 1))))


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
def add_counts(planes, word, lane, counts):
    """Add what planes count to the counts of a word."""
    for bit in range(int64(8)):
        eight = eight_counts(planes, bit)
        for byte in range(int64(8)):
            count = uint32(uint8(eight >> uint64(int64(8) * byte)))
            member = (bit + int64(8) * byte) * int64(LANES) + lane
            if count and member < counts.shape[1]:
                cuda.atomic.add(counts, (word, member), count)


@scalar
def counted(read, marks, gaps, known, how):
    """Planes of some gaps of a word, by a warp.

    Parameters
    ----------
    read : (members, ranks_by_word, times, sets), as of `count_between`
    marks : uint32[_MARKS], of the block, in shared memory
    gaps : (begin, count, start): the place, in `ranks_by_word`, of the first of the ranks that they belong to, how many
        there are, and the time at which the first gap begins, uint32
    known : uint64, the members that are in the first one before these stretches
    how : (first rank, numbers of a level of sets, levels, times that a rank of the word takes itself), uint32
    """
    members, ranks_by_word, times, sets = read
    begin, count, start = gaps
    first_rank, of_level, levels, own = how
    none, step, me = uint64(0), uint32(_ROOM), uint32(cuda.threadIdx.x) & uint32(LANES - 1)
    room_a = uint32(uint32(uint32(cuda.threadIdx.x) >> uint32(LANES_BITS)) * uint32(_AT_ONCE * _ROOM))
    room_b, room_c = uint32(room_a + step), uint32(room_a + uint32(2) * step)
    room_d = uint32(room_c + step)
    for room in (room_a, room_b, room_c, room_d):
        take_marks(marks, room)
    cuda.syncwarp()
    planes = none, none, none, none, none, none, none, none
    stops, gap = uint32(0), uint32(0)
    while gap < count:
        lane = gap & uint32(LANES - 1)
        if lane == uint32(0):
            mine, stops = uint32(gap + me), uint32(0)
            if mine < count:
                stops = time_of(times, uint32(ranks_by_word[uint32(begin + mine)] - first_rank))
        gap_a = start, stop_of(stops, lane, start)
        start = uint32(gap_a[1] + own)
        gap_b = start, stop_of(stops, lane + uint32(1), start)
        start = uint32(gap_b[1] + own)
        gap_c = start, stop_of(stops, lane + uint32(2), start)
        start = uint32(gap_c[1] + own)
        gap_d = start, stop_of(stops, lane + uint32(3), start)
        start = uint32(gap_d[1] + own)
        cover_a, cover_b = cover_of(of_level, levels, gap_a), cover_of(of_level, levels, gap_b)
        cover_c, cover_d = cover_of(of_level, levels, gap_c), cover_of(of_level, levels, gap_d)
        member_a, member_b = end_member(members, gap_a, cover_a), end_member(members, gap_b, cover_b)
        member_c, member_d = end_member(members, gap_c, cover_c), end_member(members, gap_d, cover_d)
        near_a, far_a = ends_of_cover(sets, cover_a)
        near_b, far_b = ends_of_cover(sets, cover_b)
        near_c, far_c = ends_of_cover(sets, cover_c)
        near_d, far_d = ends_of_cover(sets, cover_d)
        mark(member_a, marks, room_a)
        mark(member_b, marks, room_b)
        mark(member_c, marks, room_c)
        mark(member_d, marks, room_d)
        cuda.syncwarp()
        a = near_a | far_a | take_marks(marks, room_a) | known
        b = near_b | far_b | take_marks(marks, room_b)
        c = near_c | far_c | take_marks(marks, room_c)
        d = near_d | far_d | take_marks(marks, room_d)
        known = none
        if is_long(levels, cover_a[1] | cover_b[1] | cover_c[1] | cover_d[1]):
            a |= between_ends(sets, cover_a)
            b |= between_ends(sets, cover_b)
            c |= between_ends(sets, cover_c)
            d |= between_ends(sets, cover_d)
        cuda.syncwarp()
        planes = add_four(planes, a, b, c, d)
        gap = uint32(gap + uint32(_AT_ONCE))
    return planes


@kernel
def count_between(members, ranks_by_word, cuts, before, times, sets, served_by, how, counts):
    """A warp at most GAPS gaps of a word: in how many of them each member is.

    A gap belongs to the rank behind it. It is looked at among some stretches of ranks, and begins with the first of
    these where the rank before it is not among them. Blocks have BLOCK threads, and _MARKS numbers of shared memory.

    Parameters
    ----------
    members : uint16[t], the mark of that of each time in these stretches
    ranks_by_word : uint32[], of each word, one behind the other, its ranks, ascending
    cuts : int64[words, all stretches + 1], where a word's ranks of each stretch begin
    before : int64[words], the last rank of each word before these stretches, -1 of one that has none
    times : uint64[], as of `time_of`, of the ranks of these stretches
    sets : uint64[levels * (t // RANKS) * LANES], of `make_sets` and `join_sets`
    served_by : (owners, ends, first row, rows): as of `put_owners`, of so many words from one on
    how : (the first member, first of the stretches, its first rank, numbers of a level of sets, levels)
    counts : uint32[words, k], of each word and member, added to
    """
    marks = cuda.shared.array(_MARKS, uint32)
    first_word, first_stretch, first_rank = int64(how[0]), int64(how[1]), uint32(how[2])
    number, (owners, ends, first_row, rows) = int64(cuda.grid(1)) >> int64(LANES_BITS), served_by
    if number >= ends[ends.shape[0] - 1]:
        return
    owner = int64(owners[number])
    word, stretch = int64(first_row) + owner % int64(rows), first_stretch + owner // int64(rows)
    served = int64(ends[owner - int64(1)]) if owner > int64(0) else int64(0)
    begin = int64(cuts[word, stretch]) + (number - served) * int64(GAPS)
    end = min(begin + int64(GAPS), int64(cuts[word, stretch + int64(1)]))
    own = uint32(1) if word // int64(WORDS) == first_word // int64(WORDS) else uint32(0)
    known, start, lane = uint64(0), uint32(0), int64(cuda.threadIdx.x) & int64(LANES - 1)
    if begin > cuts[word, first_stretch]:
        start = uint32(time_of(times, uint32(ranks_by_word[begin - int64(1)] - first_rank)) + own)
    elif before[word] >= int64(0):
        known = later_members(before, word, first_word, lane)
    else:
        start = uint32(time_of(times, uint32(ranks_by_word[begin] - first_rank)) + own)
        begin += int64(1)
    gaps = uint32(begin), uint32(end - begin), start
    given = first_rank, uint32(how[3]), uint32(how[4]), own
    planes = counted((members, ranks_by_word, times, sets), marks, gaps, known, given)
    add_counts(planes, word, lane, counts)


@scalar
def ends_of(word, offsets, firsts, lasts):
    """The letters of a word, int64, and its first and last rank, uint32; the word is uint64."""
    return int64(offsets[word + uint64(1)]) - int64(offsets[word]), uint32(firsts[word]), uint32(lasts[word])


@scalar
def distance(count, of_word, of_member):
    """δ of a word and a member that is another one, from the number of gaps of the word where it is. Between two of its
    ranks that follow each other is a run of the member's or none, and before the first and behind the last there may be
    one.

    Parameters
    ----------
    count : int64
    of_word, of_member : as of `ends_of`

    Returns
    -------
    int64
    """
    letters, first, last = of_word
    member_letters, member_first, member_last = of_member
    runs = int64(2) * count + int64(1)
    runs += int64(1) if member_first < first else int64(0)
    runs += int64(1) if member_last > last else int64(0)
    return letters + member_letters - runs


@kernel
def put_distances(counts, first_row, first_word, offsets, firsts, lasts, distances):
    """A block a square of counts: distances of words and members, and of members and words, if these are of two chunks.
    Entries of words whose gaps are not counted stay as they are. Blocks have SQUARE_BLOCK threads.

    Parameters
    ----------
    counts : uint32[rows, k], as of `count_between`, of the words from one on
    first_row : that word
    first_word : the first member
    offsets : int64[words + 1], where words begin, and the end of the last
    firsts, lasts : uint32[words], the first and the last rank of each word
    distances : [words, words], as of `distance_type`
    """
    square = cuda.shared.array(_SQUARE, int64)
    words, columns = uint64(distances.shape[0]), uint64(counts.shape[1])
    lane, warp = uint64(cuda.threadIdx.x) & uint64(LANES - 1), uint64(cuda.threadIdx.x) >> uint64(LANES_BITS)
    across = uint32((columns + uint64(LANES - 1)) >> uint64(LANES_BITS))
    down = uint32(uint32(cuda.blockIdx.x) // across)
    right = uint32(uint32(cuda.blockIdx.x) - uint32(down * across))
    u, v = uint64(down) << uint64(LANES_BITS), uint64(right) << uint64(LANES_BITS)
    member, word_there = uint64(first_word) + v + lane, uint64(first_row) + u + lane
    # All members are of one chunk.
    is_counted_there = u + lane < uint64(counts.shape[0]) and is_counted(word_there, int64(first_word), words)
    rows_counted = uint32(cuda.ballot_sync(ALL_LANES, is_counted_there))
    if rows_counted == uint32(0):  # (as all warps of the block see)
        return
    of_member = ends_of(min(member, words - uint64(1)), offsets, firsts, lasts)
    for turn in range(LANES // _ROWS_AT_ONCE):
        i = warp + uint64(turn * _ROWS_AT_ONCE)
        word = uint64(first_row) + u + i
        if uint32(rows_counted >> uint32(i)) & uint32(1) and v + lane < columns:
            made = distance(int64(counts[u + i, v + lane]), ends_of(word, offsets, firsts, lasts), of_member)
            made = made if word != member else int64(0)
            distances[word, member] = made
            square[i * uint64(_SQUARE_ROW) + lane] = made
    cuda.syncthreads()
    if not is_counted_there or word_there // uint64(WORDS) == uint64(first_word) // uint64(WORDS):
        return
    for turn in range(LANES // _ROWS_AT_ONCE):
        i = warp + uint64(turn * _ROWS_AT_ONCE)
        if v + i < columns:
            distances[uint64(first_word) + v + i, word_there] = square[lane * uint64(_SQUARE_ROW) + i]

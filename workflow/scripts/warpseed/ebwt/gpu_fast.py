"""Kernels of the fast tier: keys of conjugates, each word's ranks, and, of few, how often a word's follow each
other.

A conjugate is named by its position, that of its first letter among the letters of all words. Its *rank* is the place
in the order at which the group of those begins that are equal to it as far as is known.
"""

from __future__ import annotations

from warpseed.compute.compiled import int64, scalar, uint8, uint16, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.warp import BLOCK as KEY_BLOCK
from warpseed.compute.warp import WARPS, reserve, warp_places

__all__ = [
    "KEY_BLOCK",
    "ROLLED",
    "cut_positions",
    "first_keys",
    "further",
    "keys_between",
    "last_letter",
    "letters_from",
    "lower_bound",
    "mark_letters",
    "next_keys",
    "number_letters",
    "put_colours",
    "put_last_letters",
    "put_letters_before",
    "put_words",
    "rank_keys",
    "repeats",
    "roll_keys",
    "sample_letters",
    "take_apart",
]

ROLLED = 16
"""Conjugates one behind the other whose keys a thread makes."""
_MADE = ROLLED * KEY_BLOCK


@scalar
def further(place, steps, words_of, offsets):
    """The place so many letters further on in the same word, around its end."""
    word = words_of[place]
    first = int64(offsets[word])
    length = int64(offsets[word + 1]) - first
    ahead = place - first + steps % length
    return first + (ahead - length if ahead >= length else ahead)


@scalar
def letters_from(codes, words_of, offsets, place, bits, room):
    """The letters of a word from a place on, around its end: as many as `room` bits hold with `bits` each, the first
    one on top."""
    word = words_of[place]
    first, last = int64(offsets[word]), int64(offsets[word + 1])
    letters = uint64(0)
    at = place
    for _ in range(int64(room) // int64(bits)):
        letters = (letters << uint64(bits)) | uint64(codes[at])
        at += int64(1)
        if at == last:
            at = first
    return letters


@scalar
def lower_bound(values, first, last, least):
    """The first place in [first, last) with `least` or more, of values that ascend; `last` where none has."""
    while first < last:
        middle = (first + last) >> int64(1)
        if values[middle] < least:
            first = middle + int64(1)
        else:
            last = middle
    return first


@kernel
def put_words(offsets, words_of):
    """A thread ROLLED letters, neighbouring threads neighbouring ones: the word of each, looked for among those that
    its block has letters of.

    words_of : uint32[N]
    """
    ends = cuda.shared.array(2, int64)
    me, threads = int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    begin = int64(cuda.blockIdx.x) * threads * int64(ROLLED)
    last = min(begin + threads * int64(ROLLED), int64(words_of.shape[0]))
    if me < int64(2):
        place = begin if me == int64(0) else last - int64(1)
        ends[me] = lower_bound(offsets, int64(0), int64(offsets.shape[0]), place + int64(1))
    cuda.syncthreads()
    for place in range(begin + me, last, threads):
        words_of[place] = lower_bound(offsets, ends[0], ends[1], place + int64(1)) - int64(1)


@kernel
def put_colours(words_of, order, colours):
    """A thread a rank: its word.

    order : uint32[k], positions
    colours : uint16[k] or uint32[k]
    """
    i = int64(cuda.grid(1))
    if i < order.shape[0]:
        colours[i] = words_of[order[i]]


@kernel
def mark_letters(codes, occurs):
    """A thread a letter: it occurs. (Where that is known it is only read: so many writes to few places wait for each
    other.)

    occurs : bool[256]
    """
    i = int64(cuda.grid(1))
    if i < codes.shape[0] and not occurs[codes[i]]:
        occurs[codes[i]] = True


@kernel
def number_letters(codes, numbers, numbered):
    """A thread a letter: its number among those that occur.

    numbers : uint8[256], of each code
    numbered : uint8[N]
    """
    i = int64(cuda.grid(1))
    if i < codes.shape[0]:
        numbered[i] = numbers[codes[i]]


@scalar
def roll_keys(read, how, places, into, to):
    """Write the keys of conjugates one behind the other, a letter more for each: its first letters, above its position.

    Parameters
    ----------
    read : (codes, words_of, offsets)
    how : (bits, place_bits): bits of a letter, and of a position
    places : (first, last), positions [first, last)
    to : (first, step), places in `into`, uint64
    """
    codes, words_of, offsets = read
    bits, place_bits = int64(how[0]), int64(how[1])
    room = int64(64) - place_bits
    known = room // bits
    mask = (uint64(1) << uint64(known * bits)) - uint64(1)
    letters, at, begin, end, place, here = uint64(0), int64(0), int64(0), int64(0), places[0], to[0]
    while place < places[1]:
        if place >= end:
            word = words_of[place]
            begin, end = int64(offsets[word]), int64(offsets[word + 1])
            letters = letters_from(codes, words_of, offsets, place, bits, room)
            at = int64(further(place, known, words_of, offsets))
        else:
            letters = ((letters << uint64(bits)) | uint64(codes[at])) & mask
            at += int64(1)
            if at == end:
                at = begin
        into[here] = (letters << uint64(place_bits)) | uint64(place)
        place += int64(1)
        here += to[1]


@kernel
def first_keys(codes, words_of, offsets, how, keys):
    """A thread ROLLED conjugates: the key of each, in any order, so that neighbouring threads write neighbours.

    how : as of `roll_keys`
    keys : uint64[N]
    """
    count, me, threads = int64(codes.shape[0]), int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    begin = int64(cuda.grid(1)) * int64(ROLLED)
    block_begin = begin - me * int64(ROLLED)
    is_whole = block_begin + int64(ROLLED) * threads <= count
    to = (block_begin + me, threads) if is_whole else (begin, int64(1))
    roll_keys((codes, words_of, offsets), how, (begin, min(begin + int64(ROLLED), count)), keys, to)


@kernel
def sample_letters(codes, words_of, offsets, how, letters):
    """A thread a conjugate, at like steps: its first letters, as a key has them.

    how : as of `roll_keys`
    letters : uint64[s]
    """
    i, count = int64(cuda.grid(1)), int64(letters.shape[0])
    if i < count:
        place = i * int64(codes.shape[0]) // count
        letters[i] = letters_from(codes, words_of, offsets, place, int64(how[0]), int64(64) - int64(how[1]))


@kernel
def keys_between(codes, words_of, offsets, how, limits, counts, keys):
    """A thread ROLLED conjugates, in blocks of KEY_BLOCK: the keys of those whose first letters lie between limits, in
    any order.

    Parameters
    ----------
    how : as of `roll_keys`
    limits : (least, most), letters as of `sample_letters`
    counts : uint64[2], added to: how many these are, and how many conjugates have less
    keys : uint64[N]
    """
    made, totals = cuda.shared.array(_MADE, uint64), cuda.shared.array(WARPS, uint64)
    count, me, threads = int64(codes.shape[0]), int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    least, most, place_bits = int64(limits[0]), int64(limits[1]), uint64(how[1])
    begin = int64(cuda.grid(1)) * int64(ROLLED)
    last = min(begin + int64(ROLLED), count)
    roll_keys((codes, words_of, offsets), how, (begin, last), made, (me, threads))
    inside, below, end = int64(0), int64(0), me + max(int64(0), last - begin) * threads
    for i in range(me, end, threads):
        letters = int64(made[i] >> place_bits)
        inside += int64(1) if least <= letters and letters <= most else int64(0)
        below += int64(1) if letters < least else int64(0)
    place, total = warp_places(inside)
    at = reserve(totals, total, counts, 0) + place
    for i in range(me, end, threads):
        letters = int64(made[i] >> place_bits)
        if least <= letters and letters <= most:
            keys[at] = made[i]
            at += int64(1)
    place, total = warp_places(below)
    reserve(totals, total, counts, 1)


@kernel
def take_apart(keys, place_bits, order, begins, is_tied):
    """A thread a rank: what a key of `first_keys` says when all are sorted.

    Parameters
    ----------
    keys : uint64[k], ascending
    order : uint32[k], positions
    begins, is_tied : bool[k], whether a group begins here, of equal letters, and whether it has others
    """
    i = cuda.grid(1)
    if i >= keys.shape[0]:
        return
    bits = uint64(place_bits)
    letters = keys[i] >> bits
    order[i] = keys[i] & ((uint64(1) << bits) - uint64(1))
    begins[i] = i == 0 or keys[i - 1] >> bits != letters
    is_tied[i] = not begins[i] or (i + 1 < keys.shape[0] and keys[i + 1] >> bits == letters)


@kernel
def next_keys(places, numbers, codes, words_of, offsets, how, keys):
    """A thread a conjugate: its letters from some number of them on, below the number of its group.

    Parameters
    ----------
    places : uint32[t], positions
    numbers : uint64[t]
    how : (known, bits, room): how many letters further on, bits of a letter, and of all that go into a key
    keys : uint64[t]
    """
    i = cuda.grid(1)
    if i >= places.shape[0]:
        return
    known, bits, room = int64(how[0]), int64(how[1]), int64(how[2])
    place = further(int64(places[i]), known, words_of, offsets)
    keys[i] = (numbers[i] << uint64(room)) | letters_from(codes, words_of, offsets, place, bits, room)


@kernel
def rank_keys(tied, order, ranks, words_of, offsets, how, keys):
    """A thread a conjugate that is tied: its rank, and those of what is further on in its word.

    tied : uint32[t], places in the order
    how : (steps, parts, bits): how many letters further on, how often that, and bits of a rank
    """
    i = cuda.grid(1)
    if i >= tied.shape[0]:
        return
    steps, parts, bits = int64(how[0]), int64(how[1]), uint64(how[2])
    place = int64(order[tied[i]])
    key = uint64(ranks[place])
    for _ in range(parts):
        place = further(place, steps, words_of, offsets)
        key = (key << bits) | uint64(ranks[place])
    keys[i] = key


@scalar
def last_letter(codes, words_of, offsets, place):
    """The last letter of the conjugate at a place, and whether it is its word itself."""
    word = words_of[place]
    first = int64(offsets[word])
    return codes[(place if place > first else int64(offsets[word + 1])) - int64(1)], place == first


@kernel
def put_letters_before(codes, words_of, offsets, before):
    """A thread a place: the last letter of its conjugate, and above it, in a byte, whether that is its word itself.

    before : uint16[N]
    """
    place = int64(cuda.grid(1))
    if place < codes.shape[0]:
        letter, is_word = last_letter(codes, words_of, offsets, place)
        before[place] = uint16(letter) | (uint16(256) if is_word else uint16(0))


@kernel
def put_last_letters(before, words_of, order, first, last, indices):
    """A thread a conjugate in their order, from the rank `first` on: its last letter, and where the words themselves
    are.

    before : as of `put_letters_before`: one read at random, where a letter's word, and its begin, would be two more
    """
    i = int64(cuda.grid(1))
    if i >= order.shape[0]:
        return
    place = int64(order[i])
    letter = uint16(before[place])
    last[i] = uint8(letter & uint16(255))
    if letter > uint16(255):
        indices[words_of[place]] = int64(first) + i


@kernel
def cut_positions(positions, offsets, stretch, cuts):
    """A thread a word and stretch of ranks: where the word's positions of this stretch begin.

    positions : uint32[k], of each word, one behind the other, the ranks of its conjugates, ascending
    stretch : ranks of a stretch
    cuts : int64[words, stretches + 1]
    """
    i = int64(cuda.grid(1))
    stretches = int64(cuts.shape[1])
    if i >= cuts.shape[0] * stretches:
        return
    word, number = i // stretches, i % stretches
    cuts[word, number] = lower_bound(positions, int64(offsets[word]), int64(offsets[word + 1]), number * int64(stretch))


@scalar
def repeats(positions, part_u, part_v):
    """How often, in a stretch of the ranks of two words, one of a word follows one of the same word.

    part_u, part_v : (before, first, last) of each: the last of its ranks before the stretch, which is the same of both
        where neither has one; where its positions of the stretch begin, and end
    """
    before_u, i, i_end = part_u
    before_v, j, j_end = part_v
    none = int64(0x7FFF_FFFF_FFFF_FFFF)
    a = int64(positions[i]) if i < i_end else none
    b = int64(positions[j]) if j < j_end else none
    # The first of all follows none.
    is_u = before_u > before_v if before_u != before_v else b < a
    count = int64(0)
    while i < i_end or j < j_end:
        next_is_u = a < b
        count += int64(1) if next_is_u == is_u else int64(0)
        is_u = next_is_u
        if next_is_u:
            i += int64(1)
            a = int64(positions[i]) if i < i_end else none
        else:
            j += int64(1)
            b = int64(positions[j]) if j < j_end else none
    return count

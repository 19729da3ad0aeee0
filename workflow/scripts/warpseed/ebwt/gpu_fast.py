"""Kernels of the fast tier: keys of conjugates, groups of equal ones, and colours that alternate.

A conjugate is named by its position, that of its first letter among the letters of all words. Its *rank* is the place
in the order at which the group of those begins that are equal to it as far as is known.
"""

from __future__ import annotations

from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.gpu import cuda, kernel

__all__ = [
    "alternations",
    "count_alternations",
    "cut_positions",
    "first_keys",
    "further",
    "last_letter",
    "letters_from",
    "lower_bound",
    "put_last_letters",
    "rank_keys",
]


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
def first_keys(codes, words_of, offsets, bits, keys):
    """A thread a conjugate: its first letters, as many as 64 bits hold."""
    place = int64(cuda.grid(1))
    if place < codes.shape[0]:
        keys[place] = letters_from(codes, words_of, offsets, place, bits, 64)


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
def put_last_letters(codes, words_of, offsets, order, last, indices):
    """A thread a conjugate in their order: its last letter, and where the words themselves are."""
    i = cuda.grid(1)
    if i >= order.shape[0]:
        return
    place = int64(order[i])
    last[i], is_word = last_letter(codes, words_of, offsets, place)
    if is_word:
        indices[words_of[place]] = i


@kernel
def cut_positions(positions, offsets, stretch, cuts):
    """A thread a word and stretch of ranks: where the word's positions of this stretch begin.

    positions : uint32[N], of each word, one behind the other, the ranks of its conjugates, ascending
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
def alternations(positions, part_u, part_v):
    """How often the colours of two words alternate in a stretch of ranks.

    part_u, part_v : (begin, first, last) of each: where its positions begin, and those of the stretch, and end there
    """
    begin_u, i, i_end = part_u
    begin_v, j, j_end = part_v
    before_u = int64(positions[i - int64(1)]) if i > begin_u else int64(-1)
    before_v = int64(positions[j - int64(1)]) if j > begin_v else int64(-1)
    none = int64(0x7FFF_FFFF_FFFF_FFFF)
    a = int64(positions[i]) if i < i_end else none
    b = int64(positions[j]) if j < j_end else none
    is_u = before_u > before_v if before_u != before_v else a < b
    count = int64(0)
    while i < i_end or j < j_end:
        next_is_u = a < b
        count += int64(1) if next_is_u != is_u else int64(0)
        is_u = next_is_u
        if next_is_u:
            i += int64(1)
            a = int64(positions[i]) if i < i_end else none
        else:
            j += int64(1)
            b = int64(positions[j]) if j < j_end else none
    return count


@kernel
def count_alternations(positions, offsets, cuts, share, distances):
    """A thread a word of a pair, for one other and one stretch of ranks: their distance is that of one run of each
    colour behind the other, their letters less one, and falls by one with each alternation of the two.

    cuts : int64[words, stretches + 1], as `cut_positions` fills them
    share : (first, stretches): the first of the stretches that are looked at, and how many; other launches, also on
        other devices, look at the others, and what all of them write is added up
    distances : uint64[words, words], zeros; both halves are written
    """
    words, stretches = int64(cuts.shape[0]), int64(share[1])
    blocks = (words + int64(cuda.blockDim.x) - int64(1)) // int64(cuda.blockDim.x)
    block = int64(cuda.blockIdx.x)
    v = (block % blocks) * int64(cuda.blockDim.x) + int64(cuda.threadIdx.x)
    number = int64(share[0]) + (block // blocks) % stretches
    u = block // blocks // stretches
    if u >= words or v >= words or v <= u:
        return
    begin_u, begin_v, after = int64(offsets[u]), int64(offsets[v]), number + int64(1)
    part_u = begin_u, int64(cuts[u, number]), int64(cuts[u, after])
    part_v = begin_v, int64(cuts[v, number]), int64(cuts[v, after])
    change = -alternations(positions, part_u, part_v)
    if number == int64(0):
        change += int64(offsets[u + 1]) - begin_u + int64(offsets[v + 1]) - begin_v - int64(1)
    cuda.atomic.add(distances, (u, v), uint64(change))
    cuda.atomic.add(distances, (v, u), uint64(change))

"""Kernels of the fast tier: keys of conjugates, groups of equal ones, and colours that alternate.

A conjugate is named by its position, that of its first letter among the letters of all words. Its *rank* is the place
in the order at which the group of those begins that are equal to it as far as is known.
"""

from __future__ import annotations

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, kernel

__all__ = [
    "begin_distances",
    "count_alternations",
    "cut_positions",
    "first_keys",
    "further",
    "mark_heads",
    "number_starts",
    "put_last_letters",
    "rank_groups",
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


@kernel
def first_keys(codes, dense, words_of, offsets, bits, keys):
    """A thread a conjugate: its first letters, as many as 64 bits hold with `bits` each, the first one on top.

    dense : uint8[256], the number of each code among those that occur
    """
    place = int64(cuda.grid(1))
    if place >= codes.shape[0]:
        return
    word = words_of[place]
    first, last = int64(offsets[word]), int64(offsets[word + 1])
    key = uint64(0)
    at = place
    for _ in range(int64(64) // int64(bits)):
        key = (key << uint64(bits)) | uint64(dense[codes[at]])
        at += int64(1)
        if at == last:
            at = first
    keys[place] = key


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


@kernel
def mark_heads(keys, sorting, tied, places, order, heads):
    """A thread a place among the tied: which conjugate comes there, and whether a group begins with it.

    sorting : int64[t], the order of the keys
    places : uint32[t], the conjugates whose keys they are
    """
    i = cuda.grid(1)
    if i >= tied.shape[0]:
        return
    order[tied[i]] = places[sorting[i]]
    heads[i] = uint32(1) if i == 0 or keys[sorting[i]] != keys[sorting[i - 1]] else uint32(0)


@kernel
def number_starts(heads, numbers, tied, starts):
    """A thread a place among the tied: where the group that begins with it begins in the order."""
    i = cuda.grid(1)
    if i < heads.shape[0] and heads[i]:
        starts[numbers[i] - uint32(1)] = tied[i]


@kernel
def rank_groups(groups, order, ranks, is_tied):
    """A thread a place among the tied: its conjugate's rank, and whether others have it, too.

    groups : the arrays heads, numbers, tied and starts of `number_starts`
    """
    heads, numbers, tied, starts = groups
    i = cuda.grid(1)
    count = heads.shape[0]
    if i >= count:
        return
    ranks[order[tied[i]]] = starts[numbers[i] - uint32(1)]
    is_tied[i] = not (heads[i] and (i + 1 == count or heads[i + 1]))


@kernel
def put_last_letters(codes, words_of, offsets, order, last, indices):
    """A thread a conjugate in their order: its last letter, and where the words themselves are."""
    i = cuda.grid(1)
    if i >= order.shape[0]:
        return
    place = int64(order[i])
    word = words_of[place]
    first = int64(offsets[word])
    last[i] = codes[(place if place > first else int64(offsets[word + 1])) - int64(1)]
    if place == first:
        indices[word] = i


@scalar
def _lower_bound(values, first, last, least):
    while first < last:
        middle = (first + last) >> int64(1)
        if int64(values[middle]) < least:
            first = middle + int64(1)
        else:
            last = middle
    return first


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
    cuts[word, number] = _lower_bound(
        positions, int64(offsets[word]), int64(offsets[word + 1]), number * int64(stretch)
    )


@kernel
def begin_distances(offsets, distances):
    """A thread a pair: its letters less one run of one colour, which is what its distance is without an alternation."""
    i = int64(cuda.grid(1))
    words = int64(distances.shape[0])
    if i >= words * words:
        return
    u, v = i // words, i % words
    letters = int64(offsets[u + 1]) - int64(offsets[u]) + int64(offsets[v + 1]) - int64(offsets[v])
    distances[u, v] = uint64(letters - int64(1)) if u != v else uint64(0)


@kernel
def count_alternations(positions, offsets, cuts, distances):
    """A thread a word of a pair, for one other and one stretch of ranks: their distance falls by one with each
    alternation of the two colours.

    distances : uint64[words, words], both halves are written
    """
    words, stretches = int64(cuts.shape[0]), int64(cuts.shape[1]) - int64(1)
    blocks = (words + int64(cuda.blockDim.x) - int64(1)) // int64(cuda.blockDim.x)
    block = int64(cuda.blockIdx.x)
    v = (block % blocks) * int64(cuda.blockDim.x) + int64(cuda.threadIdx.x)
    number = (block // blocks) % stretches
    u = block // blocks // stretches
    if u >= words or v >= words or v <= u:
        return
    i, i_end = cuts[u, number], cuts[u, number + 1]
    j, j_end = cuts[v, number], cuts[v, number + 1]
    before_u = int64(positions[i - 1]) if i > int64(offsets[u]) else int64(-1)
    before_v = int64(positions[j - 1]) if j > int64(offsets[v]) else int64(-1)
    if i == i_end and j == j_end:
        return
    none = int64(0x7FFF_FFFF_FFFF_FFFF)
    a = int64(positions[i]) if i < i_end else none
    b = int64(positions[j]) if j < j_end else none
    is_u = before_u > before_v if before_u != before_v else a < b
    count = uint64(0)
    while i < i_end or j < j_end:
        next_is_u = a < b
        count += uint64(1) if next_is_u != is_u else uint64(0)
        is_u = next_is_u
        if next_is_u:
            i += int64(1)
            a = int64(positions[i]) if i < i_end else none
        else:
            j += int64(1)
            b = int64(positions[j]) if j < j_end else none
    cuda.atomic.add(distances, (u, v), uint64(0) - count)
    cuda.atomic.add(distances, (v, u), uint64(0) - count)

"""Kernels of the fast tier: keys of conjugates, each word's ranks, and, of few, how often a word's follow each
other.

A conjugate is named by its position, that of its first letter among the letters of all words. Its *rank* is the place
in the order at which the group of those begins that are equal to it as far as is known.
"""

from __future__ import annotations

from warpseed.compute.compiled import int64, scalar, uint8, uint16, uint32, uint64
from warpseed.compute.device_places import EIGHT, eight_at
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.searching import lower_bound
from warpseed.compute.warp import ALL_LANES, LANES, WARPS, lanes_before, reserve
from warpseed.compute.warp import BLOCK as KEY_BLOCK

__all__ = [
    "KEY_BLOCK",
    "ROLLED",
    "WALKED",
    "cut_ranks",
    "ends_at",
    "first_keys",
    "further",
    "keys_between",
    "known_of",
    "last_letter",
    "letters_from",
    "mark_letters",
    "next_keys",
    "number_letters",
    "put_colours",
    "put_last_letters",
    "put_letters_before",
    "put_words",
    "rank_keys",
    "repeats",
    "read_on",
    "roll_on",
    "sample_letters",
]

ROLLED = 16
"""Conjugates one behind the other whose keys a thread makes."""
WALKED = 64
"""Letters of a lane whose words it looks for, each from the one before on."""
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
def read_on(codes, ends, place, bits, known):
    """So many letters of a word from a place on, around its end, the first one on top, and the place behind the last.

    ends : (first, last), where the word begins, and what is behind it, uint32
    place : uint32
    """
    letters, at = uint64(0), uint32(place)
    for _ in range(known):
        letters = (letters << uint64(bits)) | uint64(codes[at])
        at = uint32(at + uint32(1))
        if at == ends[1]:
            at = uint32(ends[0])
    return letters, at


@scalar
def ends_at(words_of, offsets, place):
    """As of `read_on`, of the word at a place."""
    word = uint32(words_of[place])
    return uint32(offsets[word]), uint32(offsets[word + uint32(1)])


@scalar
def letters_from(codes, words_of, offsets, place, bits, room):
    """The letters of a word from a place on, around its end: as many as `room` bits hold with `bits` each, the first
    one on top."""
    ends = ends_at(words_of, offsets, place)
    letters, _ = read_on(codes, ends, uint32(place), bits, int64(room) // int64(bits))
    return letters


@scalar
def word_behind(offsets, word, place):
    """The word of a letter, which is this one or one behind it; all are uint32."""
    while uint32(offsets[uint32(word + uint32(1))]) <= place:
        word = uint32(word + uint32(1))
    return word


@scalar
def stretch_of_warp(offsets, count):
    """Of `count` letters those that a warp serves, LANES at a time: its lane's first one, the one behind the last, and
    the word of the warp's first; uint32."""
    lane = int64(cuda.threadIdx.x) & int64(LANES - 1)
    begin = min((int64(cuda.grid(1)) - lane) * int64(WALKED), int64(count) - int64(1))
    end = min(begin + int64(LANES * WALKED), int64(count))
    word = lower_bound(offsets, int64(0), int64(offsets.shape[0]), begin + int64(1)) - int64(1)
    return uint32(min(begin + lane, end)), uint32(end), uint32(word)


@kernel
def put_words(offsets, words_of):
    """A warp LANES * WALKED letters, LANES at a time: the word of each, which is looked for from the one before on.

    words_of : uint32[N]
    """
    place, end, word = stretch_of_warp(offsets, words_of.shape[0])
    while place < end:
        word = word_behind(offsets, word, place)
        words_of[place] = word
        if end - place <= uint32(LANES):
            return
        place = uint32(place + uint32(LANES))


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
def mark_letters(codes, words, occurs):
    """A thread EIGHT letters: they occur. (Where that is known it is only read: so many writes to few places wait for
    each other.)

    words : `whole_words` of the codes
    occurs : bool[256]
    """
    i = int64(cuda.grid(1))
    eight, count = eight_at(codes, words, i), min(int64(EIGHT), int64(codes.shape[0]) - i * int64(EIGHT))
    for _ in range(count):
        code = uint8(eight)
        if not occurs[code]:
            occurs[code] = True
        eight >>= uint64(8)


@kernel
def number_letters(codes, words, numbers, numbered):
    """A thread EIGHT letters: the number of each among those that occur.

    words : `whole_words` of the codes
    numbers : uint8[256], of each code
    numbered : uint64[ceil(N / EIGHT)], as `eight_at` reads them
    """
    i = int64(cuda.grid(1))
    if i < numbered.shape[0]:
        eight, made = eight_at(codes, words, i), uint64(0)
        for byte in range(EIGHT):
            shift = uint64(8 * byte)
            made |= uint64(numbers[uint8(eight >> shift)]) << shift
        numbered[i] = made


@scalar
def roll_on(read, how, place, before):
    """The first letters of a conjugate, from those of the one a place before.

    Parameters
    ----------
    read : (codes, words_of, offsets)
    how : (bits, known, mask): bits of a letter, letters that are known, and the bits of all of them
    place : uint32
    before, and what is returned : (letters, at, first, last), these letters, uint64, the place of the next one, and as
        of `read_on`, uint32; of none (0, 0, 0, 0)
    """
    letters, at, first, last = before
    if place >= last:
        first, last = ends_at(read[1], read[2], place)
        letters, at = read_on(read[0], (first, last), place, how[0], how[1])
    else:
        letters = ((letters << uint64(how[0])) | uint64(read[0][at])) & how[2]
        at = uint32(at + uint32(1))
        if at == last:
            at = uint32(first)
    return letters, at, first, last


@scalar
def known_of(how):
    """Of (bits, place_bits), bits of a letter, and of a position, what `roll_on` takes."""
    known = (int64(64) - int64(how[1])) // int64(how[0])
    return int64(how[0]), known, (uint64(1) << uint64(known * int64(how[0]))) - uint64(1)


@kernel
def first_keys(codes, words_of, offsets, how, keys):
    """A thread ROLLED conjugates: the first letters of each, above its position, in any order, so that neighbouring
    threads write neighbours.

    how : (bits, place_bits)
    keys : uint64[N]
    """
    count, me, threads = int64(codes.shape[0]), int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    begin = int64(cuda.grid(1)) * int64(ROLLED)
    block_begin = begin - me * int64(ROLLED)
    is_whole = block_begin + int64(ROLLED) * threads <= count
    to, step = (block_begin + me, threads) if is_whole else (begin, int64(1))
    how_read, none = known_of(how), uint32(0)
    rolling = uint64(0), none, none, none
    for place in range(begin, min(begin + int64(ROLLED), count)):
        rolling = roll_on((codes, words_of, offsets), how_read, uint32(place), rolling)
        keys[uint64(to)] = (rolling[0] << uint64(how[1])) | uint64(place)
        to += step


@kernel
def sample_letters(codes, words_of, offsets, how, letters):
    """A thread a conjugate, at like steps: its first letters, as a key has them.

    how : as of `first_keys`
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
    how : as of `first_keys`
    limits : (least, most), letters as of `sample_letters`
    counts : uint64[2], added to: how many these are, and how many conjugates have less
    keys : uint64[N]
    """
    made, totals = cuda.shared.array(_MADE, uint64), cuda.shared.array(WARPS, uint64)
    count, me = int64(codes.shape[0]), int64(cuda.threadIdx.x)
    lane, least, most = me & int64(LANES - 1), int64(limits[0]), int64(limits[1])
    begin, room = int64(cuda.grid(1)) * int64(ROLLED), (me - lane) * int64(ROLLED)
    how_read, none, inside, below = known_of(how), uint32(0), int64(0), int64(0)
    rolling = uint64(0), none, none, none
    for place in range(begin, begin + int64(ROLLED)):
        is_inside, is_below = False, False
        if place < count:
            rolling = roll_on((codes, words_of, offsets), how_read, uint32(place), rolling)
            is_below = int64(rolling[0]) < least
            is_inside = not is_below and int64(rolling[0]) <= most
        lanes = uint32(cuda.ballot_sync(ALL_LANES, is_inside))
        if is_inside:
            to = room + inside + int64(lanes_before(lanes, lane))
            made[uint64(to)] = (rolling[0] << uint64(how[1])) | uint64(place)
        inside += int64(cuda.popc(lanes))
        below += int64(cuda.popc(cuda.ballot_sync(ALL_LANES, is_below)))
    at = reserve(totals, inside, counts, 0)
    for i in range(lane, inside, int64(LANES)):
        keys[uint64(at + i)] = made[uint64(room + i)]
    cuda.syncwarp()  # (all lanes have their place from `totals` before that is written anew)
    reserve(totals, below, counts, 1)


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
def last_letter(codes, offsets, word, place):
    """The last letter of the conjugate at a place of a word, and whether it is the word itself; both are uint32."""
    is_word = place == uint32(offsets[word])
    behind = uint32(offsets[uint32(word + uint32(1))]) if is_word else uint32(place)
    return codes[uint32(behind - uint32(1))], is_word


@kernel
def put_letters_before(codes, offsets, before):
    """As `put_words`: of each place the last letter of its conjugate, and above it, in a byte, whether that is its word
    itself.

    before : uint16[N]
    """
    place, end, word = stretch_of_warp(offsets, codes.shape[0])
    while place < end:
        word = word_behind(offsets, word, place)
        letter, is_word = last_letter(codes, offsets, word, place)
        before[place] = uint16(letter) | (uint16(256) if is_word else uint16(0))
        if end - place <= uint32(LANES):
            return
        place = uint32(place + uint32(LANES))


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
def cut_ranks(ranks_by_word, offsets, stretch, cuts):
    """A thread a word and stretch of ranks: where the word's ranks of this stretch begin.

    ranks_by_word : uint32[k], of each word, one behind the other, the ranks of its conjugates, ascending
    stretch : ranks of a stretch
    cuts : int64[words, stretches + 1]
    """
    i = int64(cuda.grid(1))
    stretches = int64(cuts.shape[1])
    if i >= cuts.shape[0] * stretches:
        return
    word, number = i // stretches, i % stretches
    begin, end = int64(offsets[word]), int64(offsets[word + 1])
    cuts[word, number] = lower_bound(ranks_by_word, begin, end, number * int64(stretch))


@scalar
def repeats(ranks_by_word, part_u, part_v):
    """How often, in a stretch of the ranks of two words, one of a word follows one of the same word.

    part_u, part_v : (before, first, last) of each: the last of its ranks before the stretch, which is the same of both
        where neither has one; where its ranks of the stretch begin, and end
    """
    before_u, i, i_end = part_u
    before_v, j, j_end = part_v
    none = int64(0x7FFF_FFFF_FFFF_FFFF)
    a = int64(ranks_by_word[i]) if i < i_end else none
    b = int64(ranks_by_word[j]) if j < j_end else none
    # The first of all follows none.
    is_u = before_u > before_v if before_u != before_v else b < a
    count = int64(0)
    while i < i_end or j < j_end:
        next_is_u = a < b
        count += int64(1) if next_is_u == is_u else int64(0)
        is_u = next_is_u
        if next_is_u:
            i += int64(1)
            a = int64(ranks_by_word[i]) if i < i_end else none
        else:
            j += int64(1)
            b = int64(ranks_by_word[j]) if j < j_end else none
    return count

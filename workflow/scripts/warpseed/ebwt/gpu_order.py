"""The ω-order on the current device: what is known of conjugates is doubled, or more, until no two are equal.

They are sorted by as many letters as a word of 64 bits holds; those that are equal then by the ranks of what is further
on in their words. Where ranks have few bits, a key holds several, and what is known grows as many times.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.gpu import argsort, cupy, launch, view
from warpseed.ebwt import gpu_few
from warpseed.ebwt.gpu_fast import (
    begin_distances,
    count_alternations,
    cut_positions,
    first_keys,
    mark_heads,
    number_starts,
    put_last_letters,
    rank_groups,
    rank_keys,
)
from warpseed.ebwt.words import Words

__all__ = ["DeviceWords", "Ordered", "distances_of", "order_of", "transform_of"]

BLOCK = 256
_PAIR_BLOCK = 64
_PIECES = 1 << 20
"""Threads that count alternations, at least, where there are so many ranks."""
_LEAST_STRETCH = 1 << 10


class DeviceWords(NamedTuple):
    """Words on the current device."""

    codes: Any
    """uint8[N]"""
    offsets: Any
    """int64[m + 1]"""
    words_of: Any
    """uint32[N], the word of each letter"""
    letters: int
    """that may occur"""
    longest: int
    """letters of the longest word"""

    @classmethod
    def of(cls, words: Words) -> DeviceWords:
        """Bring words there."""
        xp = cupy()
        codes, offsets, lengths = xp.asarray(words.codes), xp.asarray(words.offsets), words.lengths
        if len(codes) <= gpu_few.MOST_FEW:
            words_of = xp.asarray(np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths))
        else:
            words_of = xp.zeros(len(codes), np.uint32)
            words_of[offsets[1:-1]] = 1
            xp.cumsum(words_of, dtype=np.uint32, out=words_of)
        return cls(codes, offsets, words_of, len(words.letters), int(lengths.max()))


class Ordered(NamedTuple):
    """Conjugates of words in ω-order, on the current device."""

    order: Any
    """uint32[N], the position of the conjugate of each rank"""
    ranks: Any
    """uint32[N], the rank of each position; None where nobody has it yet"""


def order_of(words: DeviceWords) -> Ordered:
    """Put the conjugates of words in ω-order."""
    return (_order_few if len(words.codes) <= gpu_few.MOST_FEW else _order_many)(words)


def _order_few(words: DeviceWords) -> Ordered:
    """That of at most MOST_FEW; nothing is waited for."""
    xp = cupy()
    count = len(words.codes)
    codes, of, offsets = map(view, (words.codes, words.words_of, words.offsets))
    bits = _bits_for(words.letters)
    keys, rows = xp.empty(count, np.uint64), xp.empty((5, count), np.uint32)
    there, mine = view(keys), gpu_few.Rows(view(rows[:2]), view(rows[2:4]), view(rows[4]))
    launch(gpu_few.letter_keys, count, BLOCK, codes, of, offsets, bits, there)
    keys.sort()
    launch(gpu_few.begin_rows, count, BLOCK, there, mine)
    known, turn = gpu_few.LETTER_BITS // bits, 0
    while known < words.longest:
        launch(gpu_few.deepen_keys, count, BLOCK, mine, turn, of, offsets, known, there)
        launch(gpu_few.settle_rows, count, BLOCK, mine, turn, there, False)
        known, turn = 4 * known, 1 - turn
    # The last keys double what is known, which is then twice the longest word.
    launch(gpu_few.finish_keys, count, BLOCK, mine, turn, of, offsets, known, there)
    launch(gpu_few.settle_rows, count, BLOCK, mine, turn, there, True)
    return Ordered(rows[1 - turn], rows[4])


def _bits_for(letters: int) -> int:
    return max(1, (letters - 1).bit_length())


def _order_many(words: DeviceWords) -> Ordered:
    xp = cupy()
    count = len(words.codes)
    codes, of, offsets = map(view, (words.codes, words.words_of, words.offsets))
    # Letters that do not occur take no bits.
    occurs = xp.zeros(256, np.bool_)
    occurs[words.codes] = True
    dense = xp.cumsum(occurs, dtype=np.int64) - 1
    bits, rank_bits = _bits_for(int(dense[-1]) + 1), (count - 1).bit_length()
    keys = xp.empty(count, np.uint64)
    launch(first_keys, count, BLOCK, codes, view(dense.astype(np.uint8)), of, offsets, bits, view(keys))
    order, ranks = xp.arange(count, dtype=np.uint32), xp.empty(count, np.uint32)
    tied, _ = _split(keys, xp.arange(count, dtype=np.uint32), order, ranks)
    known, parts = 64 // bits, 64 // rank_bits - 1
    while len(tied) and known < 2 * words.longest:
        keys = xp.empty(len(tied), np.uint64)
        how = known, parts, rank_bits
        launch(rank_keys, len(tied), BLOCK, view(tied), view(order), view(ranks), of, offsets, how, view(keys))
        groups = int((ranks[order[tied]] == tied).sum())
        tied, now = _split(keys, tied, order, ranks)
        known *= 1 + parts
        if now == groups:
            break  # what is not told apart once never is
    if len(tied):
        _order_powers(words, tied, order, ranks)
    return Ordered(order, None)


def _split(keys: Any, tied: Any, order: Any, ranks: Any) -> tuple[Any, int]:
    """Put what is tied in the order of its keys.

    Parameters
    ----------
    keys : uint64[t], changed
    tied : uint32[t], the ranks that are not decided, ascending
    order, ranks : uint32[N]; of each rank the position, and of each position the first rank of its group

    Returns
    -------
    (tied, groups) : the ranks that are still not decided, and into how many groups `keys` put theirs
    """
    xp = cupy()
    count = len(tied)
    sorting, places = argsort(keys), order[tied]
    heads, is_tied = xp.empty(count, np.uint32), xp.empty(count, np.bool_)
    there, head, of, rank = view(tied), view(heads), view(order), view(ranks)
    launch(mark_heads, count, BLOCK, view(keys), view(sorting), there, view(places), of, head)
    numbers, starts = xp.cumsum(heads, dtype=np.uint32), view(xp.empty(count, np.uint32))
    number = view(numbers)
    launch(number_starts, count, BLOCK, head, number, there, starts)
    launch(rank_groups, count, BLOCK, (head, number, there, starts), of, rank, view(is_tied))
    return tied[is_tied], int(numbers[-1])


def _order_powers(words: DeviceWords, tied: Any, order: Any, ranks: Any) -> None:
    """Put conjugates whose infinite words are equal in the order of their lengths, which is that of their exponents."""
    places = order[tied]
    word = words.words_of[places]
    lengths = (words.offsets[word + 1] - words.offsets[word]).astype(np.uint64)
    order[tied] = places[argsort((ranks[places].astype(np.uint64) << np.uint64(32)) | lengths)]


def transform_of(words: DeviceWords, ordered: Ordered) -> tuple[Any, Any]:
    """L, uint8[N], and I, int64[m], 0-based, on the device."""
    xp = cupy()
    count = len(ordered.order)
    last, indices = xp.empty(count, np.uint8), xp.empty(len(words.offsets) - 1, np.int64)
    read = words.codes, words.words_of, words.offsets, ordered.order
    launch(put_last_letters, count, BLOCK, *map(view, (*read, last, indices)))
    return last, indices


def distances_of(words: DeviceWords, ordered: Ordered) -> Any:
    """δ of all pairs of words: uint64[m, m] on the device."""
    xp = cupy()
    count, m = len(words.codes), len(words.offsets) - 1
    positions, offsets = view(_positions(words, ordered)), view(words.offsets)
    stretches = max(1, min(_PIECES // max(1, m * (m - 1) // 2), count // _LEAST_STRETCH))
    cuts, distances = view(xp.empty((m, stretches + 1), np.int64)), xp.empty((m, m), np.uint64)
    launch(cut_positions, m * (stretches + 1), BLOCK, positions, offsets, -(-count // stretches), cuts)
    launch(begin_distances, m * m, BLOCK, offsets, view(distances))
    blocks = -(-m // _PAIR_BLOCK) * stretches * m
    launch(count_alternations, blocks * _PAIR_BLOCK, _PAIR_BLOCK, positions, offsets, cuts, view(distances))
    return distances


def _positions(words: DeviceWords, ordered: Ordered) -> Any:
    """The ranks of each word's conjugates, ascending, one word behind the other: uint32[N]."""
    if ordered.ranks is None or words.longest > gpu_few.MOST_IN_WORD:
        return argsort(words.words_of[ordered.order]).astype(np.uint32)
    positions = cupy().empty(len(ordered.ranks), np.uint32)
    of, offsets = view(words.words_of), view(words.offsets)
    launch(gpu_few.place_ranks, len(positions), BLOCK, view(ordered.ranks), of, offsets, view(positions))
    return positions

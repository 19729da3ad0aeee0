"""The ω-order on a device: what is known of conjugates is doubled, or more, until no two are equal.

They are sorted by as many letters as a word of 64 bits holds above their positions; those that are equal then by as
many letters more, and what is still equal by the ranks of what is further on in its words. Where ranks have few bits, a
key holds several, and what is known grows as many times. Ranks of all are made when they are first read: random words,
which letters tell apart, need none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.device_copies import copied_from_host
from warpseed.compute.device_ties import Split, split_groups
from warpseed.compute.gpu import argsort, cupy, launch, multiprocessors, sort
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import gpu_fast, gpu_few
from warpseed.ebwt.gpu_fast import first_keys, mark_letters, next_keys, put_last_letters, rank_keys, take_apart
from warpseed.ebwt.gpu_few import Layout
from warpseed.ebwt.gpu_few_words import bits_for, came_together, together
from warpseed.ebwt.words import Words

__all__ = ["DeviceWords", "order_of", "transform_of"]

BLOCK = 256


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
    def of(cls, words: Words, threads: int = 1) -> DeviceWords:
        """Bring words there, by so many threads of the host."""
        xp = cupy()
        codes, offsets = (copied_from_host(each, threads) for each in (words.codes, words.offsets))
        words_of = xp.zeros(len(words.codes), np.uint32)
        words_of[offsets[1:-1]] = 1
        xp.cumsum(words_of, dtype=np.uint32, out=words_of)
        return cls(codes, offsets, words_of, len(words.letters), int(words.lengths.max()))


def order_of(words: DeviceWords, watch: Stopwatch | None = None, *, at_once: bool = True) -> Any:
    """The conjugates of words in ω-order.

    Parameters
    ----------
    words : DeviceWords
    at_once : whether at most MOST_FEW may be ordered by one kernel, whose blocks wait for each other
    watch : counts, of more than MOST_FEW, the ``letters`` and ``ranks`` that tied ones read further on in their words:
        of letters those of a key as one

    Returns
    -------
    uint32[N] on the current device, the position of the conjugate of each rank
    """
    order = _order_few(words) if at_once and len(words.codes) <= gpu_few.MOST_FEW else None
    return _order_many(words, watch or Stopwatch()) if order is None else order


def _order_few(words: DeviceWords) -> Any:
    """That of at most MOST_FEW, in one launch; None, and a line that says so, where its blocks did not run at once."""
    xp, count = cupy(), len(words.codes)
    layout = Layout.of(count, len(words.offsets) - 1)
    numbers = xp.zeros(layout.end, np.uint32)
    letters, codes = numbers.view(np.uint8), 4 * layout.codes
    header = layout.header(bits_for(words.letters), words.longest)
    numbers[: layout.offsets] = xp.asarray(np.array(header, np.uint32))
    numbers[layout.offsets : layout.codes] = words.offsets.astype(np.uint32)
    letters[codes : codes + count] = words.codes
    keys, work = xp.empty((2, count), np.uint64), xp.empty((gpu_few.ROWS, count), np.uint32)
    shape = together(count, multiprocessors())
    launch(gpu_few.order_few, *shape, letters, numbers, keys, work)
    return numbers[layout.order : layout.distances] if came_together(numbers[layout.state :][:4].get()) else None


class _Letters(NamedTuple):
    """Letters as keys hold them: those that do not occur take no bits."""

    codes: Any
    """uint8[N]"""
    bits: int
    """of a letter"""
    place_bits: int
    """of a position"""

    @classmethod
    def of(cls, words: DeviceWords) -> _Letters:
        """Those of words."""
        xp, count = cupy(), len(words.codes)
        occurs = xp.zeros(256, np.bool_)
        launch(mark_letters, count, BLOCK, words.codes, occurs)
        dense = xp.cumsum(occurs, dtype=np.int64) - 1
        bits = bits_for(int(dense[-1]) + 1)
        return cls(dense.astype(np.uint8)[words.codes], bits, bits_for(count))

    @property
    def room(self) -> int:
        """Bits of a key for letters."""
        return 64 - self.place_bits

    @property
    def known(self) -> int:
        """Letters of a key."""
        return self.room // self.bits


def _order_many(words: DeviceWords, watch: Stopwatch) -> Any:
    """The order, by sorts of all that is tied."""
    letters = _Letters.of(words)
    order, begins, rows = _order_by_first_letters(words, letters)
    if not len(rows):
        return order
    ranks, keys = cupy().empty(len(order), np.uint32), _next_keys(words, letters, order[rows], begins[rows])
    watch.count("letters", len(keys))
    split = split_groups(keys, rows, order, ranks)
    del keys
    known = 2 * letters.known
    if len(split.tied) and known < 2 * words.longest:
        _rank_all(rows, order, ranks)
        split = _split_by_ranks(words, split, known, order, ranks, watch)
    if len(split.tied):
        _order_powers(words, split.tied, order, ranks)
    return order


def _order_by_first_letters(words: DeviceWords, letters: _Letters) -> tuple[Any, Any, Any]:
    """The order as far as first keys tell it, uint32[N]; bool[N], whether a group of equal ones begins at a place; and
    the places of groups of more than one, uint32[t], ascending."""
    xp, keys = cupy(), _first_keys(words, letters)
    order, begins, is_tied = (xp.empty(len(keys), dtype) for dtype in (np.uint32, np.bool_, np.bool_))
    launch(take_apart, len(keys), BLOCK, keys, letters.place_bits, order, begins, is_tied)
    del keys
    return order, begins, xp.flatnonzero(is_tied).astype(np.uint32)


def _first_keys(words: DeviceWords, letters: _Letters) -> Any:
    """The first letters of every conjugate, above its position: uint64[N], ascending."""
    keys = cupy().empty(len(words.codes), np.uint64)
    read, how = (letters.codes, words.words_of, words.offsets), (letters.bits, letters.place_bits)
    launch(first_keys, -(-len(keys) // gpu_fast.ROLLED), BLOCK, *read, how, keys)
    sort(keys)
    return keys


def _next_keys(words: DeviceWords, letters: _Letters, places: Any, begins: Any) -> Any:
    """As many letters more of what is tied, below the number of its group: uint64[t].

    Parameters
    ----------
    places : uint32[t], in the order
    begins : bool[t], whether a group begins with each
    """
    keys, numbers = cupy().empty(len(places), np.uint64), cupy().cumsum(begins, dtype=np.uint64)
    read, how = (letters.codes, words.words_of, words.offsets), (letters.known, letters.bits, letters.room)
    launch(next_keys, len(keys), BLOCK, places, numbers, *read, how, keys)
    return keys


def _rank_all(ranked: Any, order: Any, ranks: Any) -> None:
    """Make the ranks of all, where only those in some rows, uint32[t], are known: the others are alone in theirs."""
    places = order[ranked]
    known = ranks[places]
    ranks[order] = cupy().arange(len(order), dtype=np.uint32)
    ranks[places] = known


def _split_by_ranks(words: DeviceWords, split: Split, known: int, order: Any, ranks: Any, watch: Stopwatch) -> Split:
    """Put what is tied in the order of ranks further on in its words, until nothing is, or stays so.

    known : how many letters ranks tell apart
    """
    rank_bits = max(1, (len(ranks) - 1).bit_length())
    parts = 64 // rank_bits - 1
    while len(split.tied) and known < 2 * words.longest:
        keys, how = cupy().empty(len(split.tied), np.uint64), (known, parts, rank_bits)
        watch.count("ranks", parts * len(keys))
        launch(rank_keys, len(keys), BLOCK, split.tied, order, ranks, words.words_of, words.offsets, how, keys)
        before, split = split, split_groups(keys, split.tied, order, ranks)
        known *= 1 + parts
        if split.groups == before.groups_tied:
            break  # what is not told apart once never is
    return split


def _order_powers(words: DeviceWords, tied: Any, order: Any, ranks: Any) -> None:
    """Put conjugates whose infinite words are equal in the order of their lengths, as exponents have it."""
    places = order[tied]
    word = words.words_of[places]
    lengths = (words.offsets[word + 1] - words.offsets[word]).astype(np.uint64)
    order[tied] = places[argsort((ranks[places].astype(np.uint64) << np.uint64(32)) | lengths)]


def transform_of(words: DeviceWords, order: Any) -> tuple[Any, Any]:
    """L, uint8[N], and I, int64[m], 0-based, on the device."""
    xp = cupy()
    last, indices = xp.empty(len(order), np.uint8), xp.empty(len(words.offsets) - 1, np.int64)
    read = words.codes, words.words_of, words.offsets, order
    launch(put_last_letters, len(order), BLOCK, *read, last, indices)
    return last, indices

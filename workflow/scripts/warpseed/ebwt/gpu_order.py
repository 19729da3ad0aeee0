"""The ω-order on a device: what is known of conjugates is doubled, or more, until no two are equal.

They are sorted by as many letters as a word of 64 bits holds above their positions. Of the few that share such a key
the next letters are compared (`gpu_groups.py`); where many do they are sorted by as many letters more first. What is
still equal is sorted by the ranks of what is further on in its words. Where ranks have few bits, a key holds several,
and what is known grows as many times. Ranks of all are made when they are first read: random words, which letters tell
apart, need none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.device_copies import copied_from_host
from warpseed.compute.device_places import EIGHT, flagged_places, whole_words
from warpseed.compute.device_ties import Split, settle_groups, split_groups
from warpseed.compute.gpu import argsort, cupy, launch, multiprocessors, sort
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.warp import LANES
from warpseed.ebwt import gpu_fast, gpu_few
from warpseed.ebwt.gpu_fast import (
    KEY_BLOCK,
    first_keys,
    keys_between,
    mark_letters,
    next_keys,
    number_letters,
    put_letters_before,
    put_words,
    rank_keys,
    sample_letters,
)
from warpseed.ebwt.gpu_few import Layout
from warpseed.ebwt.gpu_few_words import bits_for, came_together, together
from warpseed.ebwt.gpu_groups import PackedLetters, find_groups, pack_letters
from warpseed.ebwt.words import Words

__all__ = [
    "BLOCK",
    "DeviceWords",
    "Letters",
    "Ordering",
    "begin_order",
    "end_order",
    "letters_before",
    "letters_in",
    "order_by_ranks",
    "order_further",
    "order_of",
    "packed_letters",
    "rank_all",
    "rounds_of",
]

BLOCK = 256
_FEW_WORDS = 1 << 16
"""Of which the host tells the longest."""
_SAMPLE = 1 << 14
"""Conjugates that tell where ranges of as many begin."""


class Letters(NamedTuple):
    """Words as they come to a device: letters, and where words begin."""

    codes: Any
    """uint8[n]"""
    offsets: Any
    """int64[k]"""


class DeviceWords(NamedTuple):
    """Words on the current device."""

    codes: Any
    """uint8[N]"""
    words_of: Any
    """uint32[N], the word of each letter"""
    offsets: Any
    """int64[m + 1]"""
    letters: int
    """that may occur"""
    longest: int
    """letters of the longest word"""

    @classmethod
    def of(cls, words: Words, threads: int = 1) -> DeviceWords:
        """Bring words there, by so many threads of the host."""
        return cls.there(words, *copied_from_host(Letters(words.codes, words.offsets), threads))

    @classmethod
    def there(cls, words: Words, codes: Any, offsets: Any) -> DeviceWords:
        """Words whose codes and offsets are there."""
        words_of = cupy().empty(len(codes), np.uint32)
        launch(put_words, -(-len(codes) // gpu_fast.WALKED), KEY_BLOCK, offsets, words_of)
        lengths = words.lengths if len(offsets) <= _FEW_WORDS else cupy().diff(offsets)
        return cls(codes, words_of, offsets, len(words.letters), int(lengths.max()))


def order_of(words: DeviceWords, watch: Stopwatch | None = None, *, at_once: bool = True) -> Any:
    """The conjugates of words in ω-order.

    Parameters
    ----------
    words : DeviceWords
    at_once : whether at most MOST_FEW may be ordered by one kernel, whose blocks wait for each other
    watch : counts, of more than MOST_FEW, what tied ones read further on in their words: ``letters``, the fewest
        sectors of 32 bytes that hold them packed, and one for each second key, and ``ranks``

    Returns
    -------
    uint32[N] on the current device, the position of the conjugate of each rank
    """
    order = _order_few(words) if at_once and len(words.codes) <= gpu_few.MOST_FEW else None
    return _order_many(words, watch) if order is None else order


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
    waits = numbers[layout.state : layout.state + gpu_few.ROUNDS].get()
    return numbers[layout.order : layout.distances] if came_together(waits) else None


def letters_in(codes: Any) -> Any:
    """Which letters occur: bool[256], on the device, by their codes."""
    occurs = cupy().zeros(256, np.bool_)
    launch(mark_letters, -(-len(codes) // EIGHT), BLOCK, codes, whole_words(codes), occurs)
    return occurs


def packed_letters(words: DeviceWords) -> Any:
    """What ties read of letters: uint64[...] on the device."""
    letters = _Dense.of(words, letters_in(words.codes).get())
    return pack_letters(letters.codes, letters.bits).numbers


class _Dense(NamedTuple):
    """Letters as keys hold them: those that do not occur take no bits."""

    codes: Any
    """uint8[N]"""
    bits: int
    """of a letter"""
    place_bits: int
    """of a position"""

    @classmethod
    def of(cls, words: DeviceWords, occurs: np.ndarray) -> _Dense:
        """Those of words, of which it is known which occur, as `letters_in` tells."""
        codes = cupy().empty(-(-len(words.codes) // EIGHT), np.uint64)
        numbers = cupy().asarray(np.cumsum(occurs, dtype=np.uint8) - np.uint8(1))
        launch(number_letters, len(codes), BLOCK, words.codes, whole_words(words.codes), numbers, codes)
        count = len(words.codes)
        return cls(codes.view(np.uint8)[:count], bits_for(int(occurs.sum())), bits_for(count))

    @property
    def room(self) -> int:
        """Bits of a key for letters."""
        return 64 - self.place_bits

    @property
    def known(self) -> int:
        """Letters of a key."""
        return self.room // self.bits


@dataclass
class Ordering:
    """An order, or the range of it that is one device's, as far as it is made: by letters of keys and those behind
    them, and by ranks of what is known, which are those of the whole order."""

    words: DeviceWords
    order: Any
    """uint32[N], of which `range` is known"""
    range: slice
    known: int
    """letters that ranks tell apart"""
    tied_first: Any
    """uint32[...], the rows of the range that the first `find_groups` left tied, ascending"""
    rows: Any
    """uint32[...], those of the range that were not decided before, ascending"""
    split: Split
    """what is left of them"""
    ranks: Any
    """uint32[N], by positions, of what is in these rows, or, when all are needed, of all"""

    @property
    def is_open(self) -> bool:
        """Whether ranks can tell more."""
        return len(self.split.tied) > 0 and self.known < 2 * self.words.longest


def rounds_of(made: Sequence[Ordering]) -> Iterator[None]:
    """Rounds by ranks of one order, in ranges, as long as they tell anything apart: what is not told apart once never
    is."""
    groups = -1
    while any(each.is_open for each in made) and sum(each.split.groups for each in made) != groups:
        groups = sum(each.split.groups_tied for each in made)
        yield


def _order_many(words: DeviceWords, watch: Stopwatch | None) -> Any:
    """That of more than MOST_FEW."""
    made = begin_order(words, letters_in(words.codes).get(), watch)
    order_by_ranks(made, watch)
    return made.order


def order_by_ranks(made: Ordering, watch: Stopwatch | None = None) -> None:
    """End an order that is all on one device: by ranks, until nothing is tied, or stays so, and by lengths."""
    if made.is_open:
        rank_all(made)
        for _ in rounds_of([made]):
            order_further(made, watch)
    end_order(made)


def begin_order(
    words: DeviceWords,
    occurs: np.ndarray,
    watch: Stopwatch | None = None,
    number: int = 0,
    devices: int = 1,
    meanwhile: Callable[[Any], None] = lambda order: None,
) -> Ordering:
    """Order conjugates by letters: by those of a key, and, of the few that share one, by those that follow.

    Parameters
    ----------
    occurs : of the words, as `letters_in` tells, on the host
    watch : as of `order_of`; None: nothing is counted, nor copied from the device where nothing is tied
    number, devices : which range of first letters is meant, of so many that have about as many conjugates
    meanwhile : called with uint32[k], positions of the range as the first `find_groups` leaves them, of which those
        that are tied may still move: gives the device something to do while the host finds what is
    """
    xp, letters = cupy(), _Dense.of(words, occurs)
    keys, first = (_first_keys(words, letters), 0) if devices == 1 else _keys_of(words, letters, number, devices)
    order, here = xp.empty(len(words.codes), np.uint32), slice(first, first + len(keys))
    read, known = pack_letters(letters.codes, letters.bits), letters.known
    groups = find_groups(keys, letters.place_bits, read, (words.words_of, words.offsets), known, order[here])
    del keys
    places = flagged_places(groups.is_tied, lambda: meanwhile(order[here]))
    rows = places + np.uint32(first)
    ranks = xp.empty(len(order), np.uint32)
    made = Ordering(words, order, here, known + read.compared, rows, rows, Split(rows, 0, 0), ranks)
    if watch is None and not len(rows):
        return made
    sectors, has_many = groups.told()
    _count(watch, "letters", sectors)
    left = _Tied(rows, groups.begins[places])
    if has_many:
        few, many = _many_of(left)
        left = _joined(few, _settle_many(made, letters, read, many, watch))
    split = settle_groups(left.heads.astype(np.uint32), left.rows, order, ranks)
    made.rows, made.split = left.rows, split._replace(tied=left.rows)  # (the same rows, once in memory)
    return made


class _Tied(NamedTuple):
    """What is tied."""

    rows: Any
    """uint32[t], ascending"""
    heads: Any
    """bool[t], whether a group begins with each"""


def _many_of(tied: _Tied) -> tuple[_Tied, _Tied]:
    """What is in groups of less than LANES, and what is not."""
    numbers = cupy().cumsum(tied.heads, dtype=np.int64)
    is_many = cupy().bincount(numbers)[numbers] >= LANES
    few, many = (_Tied(tied.rows[which], tied.heads[which]) for which in (~is_many, is_many))
    return few, many


def _joined(one: _Tied, other: _Tied) -> _Tied:
    """All that is tied, in order."""
    rows, heads = (cupy().concatenate(both) for both in zip(one, other, strict=True))
    sorting = argsort(rows)
    return _Tied(rows[sorting], heads[sorting])


def _settle_many(made: Ordering, letters: _Dense, read: PackedLetters, many: _Tied, watch: Stopwatch | None) -> _Tied:
    """Put groups of LANES and more in the order of a second key, and compare what follows it where few share that.

    Parameters
    ----------
    made : whose `order`, `ranks` and `known` are changed
    many : what `find_groups` has left of such groups

    Returns
    -------
    _Tied, what is equal still
    """
    words, order, rows = made.words, made.order, many.rows
    keys = _next_keys(words, letters, order[rows], cupy().cumsum(many.heads, dtype=np.uint64))
    _count(watch, "letters", len(rows))
    rows, known = split_groups(keys, rows, order, made.ranks).tied, 2 * letters.known
    if not len(rows):
        return _Tied(rows, cupy().empty(0, np.bool_))
    positions = order[rows]
    # (Their ranks are those of the second key now.)
    keys = (made.ranks[positions].astype(np.uint64) << np.uint64(32)) | positions
    put = cupy().empty(len(positions), np.uint32)
    groups = find_groups(keys, 32, read, (words.words_of, words.offsets), known, put)
    order[rows] = put
    sectors, has_many = groups.told()
    _count(watch, "letters", sectors)
    made.known = min(made.known, known + (0 if has_many else read.compared))
    still = flagged_places(groups.is_tied)
    return _Tied(rows[still], groups.begins[still])


def _count(watch: Stopwatch | None, what: str, number: int) -> None:
    """Count what ties read, where somebody wants to know."""
    if watch is not None:
        watch.count(what, number)


def _first_keys(words: DeviceWords, letters: _Dense) -> Any:
    """The first letters of every conjugate, above its position: uint64[N], ascending."""
    keys = cupy().empty(len(words.codes), np.uint64)
    read, how = (letters.codes, words.words_of, words.offsets), (letters.bits, letters.place_bits)
    launch(first_keys, -(-len(keys) // gpu_fast.ROLLED), BLOCK, *read, how, keys)
    sort(keys)
    return keys


def _keys_of(words: DeviceWords, letters: _Dense, number: int, devices: int) -> tuple[Any, int]:
    """Those of one of some ranges, which are the same on every device, and how many conjugates are before it."""
    xp, count, sample = cupy(), len(words.codes), cupy().empty(min(len(words.codes), _SAMPLE), np.uint64)
    read, how = (letters.codes, words.words_of, words.offsets), (letters.bits, letters.place_bits)
    launch(sample_letters, len(sample), BLOCK, *read, how, sample)
    sort(sample)
    sampled = sample.get()
    limits = [0, *(int(sampled[len(sampled) * part // devices]) for part in range(1, devices)), 1 << 63]
    keys, counts = xp.empty(count, np.uint64), xp.zeros(2, np.uint64)
    between = limits[number], limits[number + 1] - 1
    launch(keys_between, -(-count // gpu_fast.ROLLED), KEY_BLOCK, *read, how, between, counts, keys)
    inside, below = map(int, counts.get())
    sort(keys[:inside])
    return keys[:inside], below


def _next_keys(words: DeviceWords, letters: _Dense, places: Any, numbers: Any) -> Any:
    """As many letters more of what is tied, below the number of its group: uint64[t].

    Parameters
    ----------
    places : uint32[t], in the order
    numbers : uint64[t]
    """
    keys = cupy().empty(len(places), np.uint64)
    read, how = (letters.codes, words.words_of, words.offsets), (letters.known, letters.bits, letters.room)
    launch(next_keys, len(keys), BLOCK, places, numbers, *read, how, keys)
    return keys


def rank_all(made: Ordering) -> None:
    """Make the ranks of all in the range, where only those of some rows are known: the others are alone in theirs."""
    places = made.order[made.rows]
    known = made.ranks[places]
    made.ranks[made.order[made.range]] = cupy().arange(made.range.start, made.range.stop, dtype=np.uint32)
    made.ranks[places] = known


def order_further(made: Ordering, watch: Stopwatch | None = None) -> None:
    """Put what is tied in the order of ranks further on in its words.

    The ranks of all conjugates have to be known.
    """
    words, tied, bits = made.words, made.split.tied, max(1, (len(made.ranks) - 1).bit_length())
    parts, keys = 64 // bits - 1, cupy().empty(len(tied), np.uint64)
    _count(watch, "ranks", parts * len(keys))
    read, how = (made.order, made.ranks, words.words_of, words.offsets), (made.known, parts, bits)
    launch(rank_keys, len(keys), BLOCK, tied, *read, how, keys)
    made.rows, made.split = tied, split_groups(keys, tied, made.order, made.ranks)
    made.known *= 1 + parts


def end_order(made: Ordering) -> None:
    """Put conjugates whose infinite words are equal in the order of their lengths, as exponents have it."""
    words, tied = made.words, made.split.tied
    if len(tied):
        places = made.order[tied]
        word = words.words_of[places]
        lengths = (words.offsets[word + 1] - words.offsets[word]).astype(np.uint64)
        made.order[tied] = places[argsort((made.ranks[places].astype(np.uint64) << np.uint64(32)) | lengths)]


def letters_before(words: DeviceWords) -> Any:
    """As of `put_letters_before`, uint16[N] on the device."""
    before = cupy().empty(len(words.codes), np.uint16)
    launch(put_letters_before, -(-len(before) // gpu_fast.WALKED), KEY_BLOCK, words.codes, words.offsets, before)
    return before

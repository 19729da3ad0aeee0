"""The ω-order on one or more devices: what is known of conjugates is doubled, or more, until no two are equal.

They are sorted by as many letters as a word of 64 bits holds above their positions; those that are equal then by as
many letters more, and what is still equal by the ranks of what is further on in its words. Where ranks have few bits, a
key holds several, and what is known grows as many times. Ranks of all are made when they are first read: random words,
which letters tell apart, need none.

Each of several devices has all letters, and orders the conjugates whose first letters lie in its range. A sample, the
same on each, says where ranges end, so that they hold about as many. What is equal lies in one range. So ranks are all
that devices tell each other, and only while some are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from warpseed.compute.device_copies import copied_from_host, from_device
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.device_ties import Split, split_groups
from warpseed.compute.gpu import argsort, cupy, launch, multiprocessors, sort
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.warp import BLOCK as KEY_BLOCK
from warpseed.ebwt import gpu_fast, gpu_few
from warpseed.ebwt.gpu_fast import first_keys, mark_letters, next_keys, put_last_letters, rank_keys, take_apart
from warpseed.ebwt.gpu_few import Layout
from warpseed.ebwt.gpu_few_words import bits_for, came_together, together
from warpseed.ebwt.words import Words

__all__ = ["DeviceWords", "Ordered", "Serve", "order_of", "shared_order", "transform_of"]

BLOCK = 256
_SAMPLED = 1 << 16
"""Conjugates that say where ranges end."""
_GOLDEN = 0x9E37_79B9_7F4A_7C15
"""Of 2^64 the golden section: multiples of it lie evenly, whatever the period of what they fall on."""
_MOST_LETTERS = (1 << 63) - 1
"""Letters of a key have one bit less than it, as a position has one at least."""

Serve: TypeAlias = "Callable[[Callable[[int, Stopwatch], Any]], list[Any]]"
"""What calls a function on each device, with its number from 0 on and the stopwatch to use there, and returns what all
of them returned, when all that they were given is done."""


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
    def of(cls, words: Words, codes: Any = None) -> DeviceWords:
        """Bring words there; their codes where they do not lie there yet."""
        xp = cupy()
        if codes is None:
            codes = copied_from_host(words.codes)
        offsets, words_of = copied_from_host(words.offsets), xp.zeros(len(words.codes), np.uint32)
        words_of[offsets[1:-1]] = 1
        xp.cumsum(words_of, dtype=np.uint32, out=words_of)
        return cls(codes, offsets, words_of, len(words.letters), int(words.lengths.max()))


class Ordered(NamedTuple):
    """The part of the order that one device has made."""

    order: Any
    """uint32[N] on that device, of each of these ranks the position of its conjugate; the others are not known there"""
    ranks: slice
    """which; those of a device begin where those of the one before end"""


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
    if order is None:
        mine = watch or Stopwatch()
        [(order, _)] = shared_order([words], lambda work: [work(0, mine)])
    return order


def shared_order(words: Sequence[DeviceWords], serve: Serve) -> list[Ordered]:
    """The same, of which each of several devices makes a part.

    Parameters
    ----------
    words : the same words on each device
    serve : works on these devices; takes the seconds of ``order``, and of several devices of ``device_to_device``
    """

    def begin(number: int, mine: Stopwatch) -> _Range:
        with time_on_device(mine, "order"):
            return _Range(words[number], number, len(words), mine)

    def tell(number: int, mine: Stopwatch) -> _Told | None:
        with time_on_device(mine, "order"):
            ranges[number].know_ranks()
            return ranges[number].told() if len(ranges) > 1 else None

    def split(number: int, mine: Stopwatch) -> None:
        if len(ranges) > 1:
            with time_on_device(mine, "device_to_device"):
                ranges[number].hear(each for other, each in enumerate(all_told) if other != number)
        with time_on_device(mine, "order"):
            ranges[number].split_further(mine)

    def order_powers(number: int, mine: Stopwatch) -> None:
        with time_on_device(mine, "order"):
            ranges[number].order_powers()

    ranges: list[_Range] = serve(begin)
    while any(each.is_tied for each in ranges) and ranges[0].known < 2 * words[0].longest:
        groups_tied = sum(each.split.groups_tied for each in ranges)
        all_told = serve(tell)
        serve(split)
        if sum(each.split.groups for each in ranges) == groups_tied:
            break  # what is not told apart once never is
    if any(each.is_tied for each in ranges):
        serve(order_powers)
    return [Ordered(each.order, each.rows) for each in ranges]


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


class _Told(NamedTuple):
    """What one device tells the others."""

    places: Any
    """uint32[t], conjugates whose ranks are new"""
    ranks: Any
    """uint32[t], these"""


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


class _Range:
    """Those conjugates that the current device orders, while it does so."""

    def __init__(self, words: DeviceWords, number: int, devices: int, watch: Stopwatch) -> None:
        xp, count, letters = cupy(), len(words.codes), _Letters.of(words)
        keys, before = _first_keys(words, letters, number, devices)
        self.words, self.known = words, letters.room // letters.bits
        self.rows = slice(before, before + len(keys))
        self.order, self.ranks = xp.empty(count, np.uint32), xp.empty(count, np.uint32)
        begins, is_tied = xp.empty(len(keys), np.bool_), xp.empty(len(keys), np.bool_)
        read = keys, letters.place_bits, self.order[self.rows]
        launch(take_apart, len(keys), BLOCK, *read, begins, is_tied)
        tied = xp.flatnonzero(is_tied) if len(keys) else xp.empty(0, np.int64)
        self._numbers = xp.cumsum(begins[tied], dtype=np.uint64) if len(tied) else xp.empty(0, np.uint64)
        self._renewed = (tied + before).astype(np.uint32)
        self._all_ranked = False
        del keys, read
        self.split = self._split_by_letters(letters, watch)

    def _split_by_letters(self, letters: _Letters, watch: Stopwatch) -> Split:
        """Put what is tied in the order of as many letters more; only its ranks are known then."""
        words, tied, keys = self.words, self._renewed, cupy().empty(len(self._renewed), np.uint64)
        watch.count("letters", len(tied))
        how, read = (self.known, letters.bits, letters.room), (letters.codes, words.words_of, words.offsets)
        launch(next_keys, len(tied), BLOCK, self.order[tied], self._numbers, *read, how, keys)
        self.known *= 2
        return split_groups(keys, tied, self.order, self.ranks)

    def know_ranks(self) -> None:
        """Make the ranks of all that lie in the range, where only those of what was tied at first are known yet: each
        of the others is alone in its row."""
        if self._all_ranked:
            return
        self._all_ranked = True
        tied = self.order[self._renewed]
        ranks = self.ranks[tied]
        self._renewed = cupy().arange(self.rows.start, self.rows.stop, dtype=np.uint32)
        if len(self._renewed):
            self.ranks[self.order[self.rows]] = self._renewed
        if len(tied):
            self.ranks[tied] = ranks

    @property
    def is_tied(self) -> bool:
        """Whether some are equal as far as is known."""
        return len(self.split.tied) > 0

    def told(self) -> _Told:
        """The ranks that the last split has renewed."""
        places = self.order[self._renewed]
        return _Told(places, self.ranks[places])

    def hear(self, others: Iterable[_Told]) -> None:
        """Take what the others tell."""
        for told in others:
            if len(told.places):
                places, ranks = from_device(told)
                self.ranks[places] = ranks

    def split_further(self, watch: Stopwatch) -> None:
        """Put what is tied in the order of ranks further on in its words. The ranks of all devices must be known."""
        words, tied, rank_bits = self.words, self.split.tied, max(1, (len(self.ranks) - 1).bit_length())
        parts, keys = 64 // rank_bits - 1, cupy().empty(len(tied), np.uint64)
        how = self.known, parts, rank_bits
        watch.count("ranks", parts * len(keys))
        launch(rank_keys, len(keys), BLOCK, tied, self.order, self.ranks, words.words_of, words.offsets, how, keys)
        self._renewed, self.split = tied, split_groups(keys, tied, self.order, self.ranks)
        self.known *= 1 + parts

    def order_powers(self) -> None:
        """Put conjugates whose infinite words are equal in the order of their lengths, as exponents have it."""
        words, tied = self.words, self.split.tied
        places = self.order[tied]
        word = words.words_of[places]
        lengths = (words.offsets[word + 1] - words.offsets[word]).astype(np.uint64)
        self.order[tied] = places[argsort((self.ranks[places].astype(np.uint64) << np.uint64(32)) | lengths)]


def _first_keys(words: DeviceWords, letters: _Letters, number: int, devices: int) -> tuple[Any, int]:
    """The first letters of every conjugate in the range of one of the devices, above its position: uint64[k],
    ascending; and how many lie in ranges before."""
    xp, count = cupy(), len(words.codes)
    keys, counts = xp.empty(count, np.uint64), xp.zeros(2, np.uint64)
    read = letters.codes, words.words_of, words.offsets
    how = letters.bits, letters.place_bits, *_limits(words, letters, number, devices)
    launch(first_keys, -(-count // gpu_fast.ROLLED), KEY_BLOCK, *read, how, counts, keys)
    inside, before = counts.get().tolist()
    keys = keys[:inside]
    if inside:
        sort(keys)
    return keys, before


def _limits(words: DeviceWords, letters: _Letters, number: int, devices: int) -> tuple[int, int]:
    """The least letters of a key, and the greatest, that lie in the range of one of the devices; less than the least
    where none do."""
    if devices == 1:
        return 0, _MOST_LETTERS
    xp = cupy()
    places, sample = _sampled(len(letters.codes)), xp.empty(_SAMPLED, np.uint64)
    read = places, xp.zeros(_SAMPLED, np.uint64), letters.codes, words.words_of, words.offsets
    launch(next_keys, _SAMPLED, BLOCK, *read, (0, letters.bits, letters.room), sample)
    sort(sample)
    return _limits_of(sample[_SAMPLED // devices :: _SAMPLED // devices][: devices - 1].get().tolist(), number)


def _limits_of(borders: list[int], number: int) -> tuple[int, int]:
    """The same, of the range of a number, where each of these letters is the least of a range."""
    return [0, *borders][number], [*(border - 1 for border in borders), _MOST_LETTERS][number]


def _sampled(count: int) -> Any:
    """Conjugates that say where ranges end, uint32[_SAMPLED], of so many."""
    spread = (cupy().arange(_SAMPLED, dtype=np.uint64) * np.uint64(_GOLDEN)) >> np.uint64(32)
    return ((spread * np.uint64(count)) >> np.uint64(32)).astype(np.uint32)


def transform_of(words: DeviceWords, order: Any) -> tuple[Any, Any]:
    """L, uint8[N], and I, int64[m], 0-based, on the device."""
    xp = cupy()
    last, indices = xp.empty(len(order), np.uint8), xp.empty(len(words.offsets) - 1, np.int64)
    read = words.codes, words.words_of, words.offsets, order
    launch(put_last_letters, len(order), BLOCK, *read, last, indices)
    return last, indices

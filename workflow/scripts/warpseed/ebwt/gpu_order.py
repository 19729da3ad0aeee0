"""The ω-order on one or more devices: what is known of conjugates is doubled, or more, until no two are equal.

They are sorted by as many letters as a word of 64 bits holds; those that are equal then by the ranks of what is further
on in their words. Where ranks have few bits, a key holds several, and what is known grows as many times.

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
from warpseed.compute.device_ties import split_groups
from warpseed.compute.gpu import argsort, cupy, launch, multiprocessors, sort
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import gpu_few
from warpseed.ebwt.gpu_fast import first_keys, mark_letters, put_last_letters, rank_keys
from warpseed.ebwt.gpu_few import Layout
from warpseed.ebwt.gpu_few_words import bits_for, came_together, together
from warpseed.ebwt.words import Words

__all__ = ["DeviceWords", "Ordered", "Serve", "order_of", "shared_order", "transform_of"]

BLOCK = 256
_SAMPLED = 1 << 16
"""Conjugates that say where ranges end."""
_GOLDEN = 0x9E37_79B9_7F4A_7C15
"""Of 2^64 the golden section: multiples of it lie evenly, whatever the period of what they fall on."""

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
    def of(cls, words: Words, codes: Any = None, threads: int = 1) -> DeviceWords:
        """Bring words there, by so many threads of the host; their codes where they do not lie there yet."""
        xp = cupy()
        if codes is None:
            codes = copied_from_host(words.codes, threads)
        offsets, words_of = copied_from_host(words.offsets, threads), xp.zeros(len(words.codes), np.uint32)
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
    watch : counts, of more than MOST_FEW, the ``ranks`` that tied ones read further on in their words

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
            return _Range(words[number], number, len(words))

    def told(number: int, mine: Stopwatch) -> _Told:
        with time_on_device(mine, "order"):
            return ranges[number].told()

    def split(number: int, mine: Stopwatch) -> None:
        if all_told:
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
        all_told: list[_Told] = serve(told) if len(ranges) > 1 else []
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


class _Range:
    """Those conjugates that the current device orders, while it does so."""

    def __init__(self, words: DeviceWords, number: int, devices: int) -> None:
        xp, count = cupy(), len(words.codes)
        keys, bits = _first_keys(words)
        first, places = 0, xp.arange(count, dtype=np.uint32)
        if devices > 1:
            first, places = _places_in_range(keys, number, devices)
            keys = keys[places]
        self.words, self.known = words, 64 // bits
        self.rows = slice(first, first + len(places))
        self.order, self.ranks = xp.empty(count, np.uint32), xp.empty(count, np.uint32)
        self.order[self.rows] = places
        self._renewed = xp.arange(self.rows.start, self.rows.stop, dtype=np.uint32)
        self.split = split_groups(keys, self._renewed, self.order, self.ranks)

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


def _first_keys(words: DeviceWords) -> tuple[Any, int]:
    """The first letters of every conjugate, uint64[N], and bits of a letter in these: letters that do not occur take
    none."""
    xp, count = cupy(), len(words.codes)
    occurs = xp.zeros(256, np.bool_)
    launch(mark_letters, count, BLOCK, words.codes, occurs)
    dense = xp.cumsum(occurs, dtype=np.int64) - 1
    bits, keys = bits_for(int(dense[-1]) + 1), xp.empty(count, np.uint64)
    codes = dense.astype(np.uint8)[words.codes]
    launch(first_keys, count, BLOCK, codes, words.words_of, words.offsets, bits, keys)
    return keys, bits


def _places_in_range(keys: Any, number: int, devices: int) -> tuple[int, Any]:
    """How many conjugates lie in ranges before that of one of the devices, and those that lie in it, uint32[k]."""
    xp, step = cupy(), _SAMPLED // devices
    spread = (xp.arange(_SAMPLED, dtype=np.uint64) * np.uint64(_GOLDEN)) >> np.uint64(32)
    sample = keys[((spread * np.uint64(len(keys))) >> np.uint64(32)).astype(np.int64)]
    sort(sample)
    ranges = xp.searchsorted(sample[step::step][: devices - 1], keys, side="right")
    return int((ranges < number).sum()), xp.flatnonzero(ranges == number).astype(np.uint32)


def transform_of(words: DeviceWords, order: Any) -> tuple[Any, Any]:
    """L, uint8[N], and I, int64[m], 0-based, on the device."""
    xp = cupy()
    last, indices = xp.empty(len(order), np.uint8), xp.empty(len(words.offsets) - 1, np.int64)
    read = words.codes, words.words_of, words.offsets, order
    launch(put_last_letters, len(order), BLOCK, *read, last, indices)
    return last, indices

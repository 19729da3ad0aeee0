"""The ω-order by several devices: each has all words, and orders those conjugates whose first letters are in its range.

What is equal so far never leaves its range, so that letters are all that is needed, until what is tied is told apart by
ranks: then each device tells the others those of its range, and, round by round, what became of the tied ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.device_batches import take_step
from warpseed.compute.device_copies import (
    LEAST_LOCKED,
    copied_to_host,
    from_device,
    joined_from,
    sent_from_host,
    sent_to_host,
    wait_for_sent,
)
from warpseed.compute.device_marks import marked_on_device, time_on_device
from warpseed.compute.gpu import cupy, launch
from warpseed.compute.locked_memory import is_locked, locked
from warpseed.compute.ranges import equal_share, spans_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt.gpu_counts import colours_of
from warpseed.ebwt.gpu_fast import put_colours, put_last_letters
from warpseed.ebwt.gpu_order import (
    BLOCK,
    DeviceWords,
    Letters,
    Ordering,
    begin_order,
    end_order,
    letters_before,
    letters_in,
    order_by_ranks,
    order_further,
    rank_all,
    rounds_of,
)
from warpseed.ebwt.transform import Transform
from warpseed.ebwt.words import Words

__all__ = ["Ordered", "order_shared", "order_to_host", "transform_to_host"]

_FEW_TIED = 4
"""Of so many ranks one that is tied, or fewer: then the words of these alone are renewed."""
_LEAST_SENT, _MOST_PARTS = 1 << 24, 8
"""Letters of a part that goes to the host while others are made, at least, and how many parts at most."""


class Ordered(NamedTuple):
    """What one device has of the order: the conjugates of some ranks."""

    words: DeviceWords
    order: Any
    """uint32[n], positions"""
    first: int
    """the first of these ranks"""
    colours: Any = None
    """as of `colours_of`, where they were asked for"""

    @property
    def ranks(self) -> slice:
        """Those in the whole order."""
        return slice(self.first, self.first + len(self.order))


def order_shared(
    words: Words,
    devices: Sequence[int],
    threads: int,
    watch: Stopwatch,
    *,
    with_colours: bool = False,
    meanwhile: Callable[[], None] = lambda: None,
) -> list[Ordered]:
    """Bring words to one or more devices, and order their conjugates there.

    Parameters
    ----------
    words : of less than 2^32 letters
    devices : their numbers; the first is the current one
    threads : of the host, that copy to it
    watch : takes the seconds of ``host_to_device``, ``order`` and, of several, ``device_to_device``: of each step those
        of the slowest
    with_colours : whether the word of each rank is wanted, too
    meanwhile : called once, while letters are on their way

    Returns
    -------
    list of Ordered, one of each device, whose arrays lie there: its range of the order as uint32[n], one range behind
    the other, and, if asked for, the words of these ranks as [n], of `colours_type`
    """
    parts, occur = _brought(words, devices, threads, watch, meanwhile)
    colours: list[Any] = [None for _ in devices]

    def begin(number: int, watch_here: Stopwatch) -> Ordering:
        with marked_on_device(watch_here) as mark:
            codes, offsets = (joined_from(each, number) for each in zip(*parts, strict=True))
            if len(devices) > 1:
                mark("device_to_device")
            there = DeviceWords.there(words, codes, offsets)
            mark("host_to_device")

            def colour(order: Any) -> None:
                colours[number] = colours_of(there, order) if with_colours else None

            made = begin_order(there, np.logical_or.reduce(occur), None, number, len(devices), colour)
            if not made.is_open:
                _colour_again(made, colours[number])
            mark("order")
        return made

    def colour_again(number: int, watch_here: Stopwatch) -> None:
        with time_on_device(watch_here, "order"):
            _colour_again(made[number], colours[number])

    made = take_step(devices, begin, watch)
    if _order_by_ranks(made, devices, watch) and with_colours:
        take_step(devices, colour_again, watch)
    return [
        Ordered(each.words, each.order[each.range], each.range.start, coloured)
        for each, coloured in zip(made, colours, strict=True)
    ]


def _colour_again(made: Ordering, colours: Any) -> None:
    """Renew the colours, if there are any, of what was tied when they were made."""
    if colours is None or not len(made.tied_first):
        return
    if len(made.tied_first) * _FEW_TIED > len(colours):
        launch(put_colours, len(colours), BLOCK, made.words.words_of, made.order[made.range], colours)
    else:
        words_there = made.words.words_of[made.order[made.tied_first]]
        colours[made.tied_first - np.uint32(made.range.start)] = words_there.astype(colours.dtype)


def _brought(
    words: Words, devices: Sequence[int], threads: int, watch: Stopwatch, meanwhile: Callable[[], None]
) -> tuple[list[Letters], list[np.ndarray]]:
    """Words on devices, a part on each, and which letters occur in it: from memory that is locked each takes one, as
    each has a way of its own to it; from ordinary memory, which threads of the host copy, the first takes all, as those
    of several devices take longer."""
    takers = len(devices) if is_locked(words.codes) else 1

    def bring(number: int, watch_here: Stopwatch) -> tuple[Letters, np.ndarray]:
        def part_of(values: np.ndarray) -> np.ndarray:
            return values[equal_share(len(values), number, takers)] if number < takers else values[:0]

        with marked_on_device(watch_here) as mark:
            part = sent_from_host(Letters(part_of(words.codes), part_of(words.offsets)), threads)
            mark("host_to_device")
            occurs = letters_in(part.codes)
            mark("order")
            if not number:
                meanwhile()
        return part, occurs.get()

    parts, occur = zip(*take_step(devices, bring, watch), strict=True)
    return list(parts), list(occur)


def _order_by_ranks(made: Sequence[Ordering], devices: Sequence[int], watch: Stopwatch) -> bool:
    """End the order on all devices: by ranks, until nothing is tied, or stays so, and by lengths.

    Returns
    -------
    whether there was anything to do
    """

    def tell_all(number: int, watch_here: Stopwatch) -> Any:
        with time_on_device(watch_here, "order"):
            rank_all(made[number])
            # (A copy: this device may go on, and change its order, while others still read what they are told.)
            return _positions_and_ranks(made[number], made[number].order[made[number].range].copy())

    def go_on(number: int, watch_here: Stopwatch) -> Any:
        with marked_on_device(watch_here) as mark:
            for places, ranks in (*told[:number], *told[number + 1 :]):
                made[number].ranks[from_device(places)] = from_device(ranks)
            mark("device_to_device")
            order_further(made[number])
            told_here = _positions_and_ranks(made[number], made[number].order[made[number].rows])
            mark("order")
        return told_here

    def end(number: int, watch_here: Stopwatch) -> None:
        with time_on_device(watch_here, "order"):
            end_order(made[number])

    def end_alone(number: int, watch_here: Stopwatch) -> None:
        with time_on_device(watch_here, "order"):
            order_by_ranks(made[number])

    known = min(each.known for each in made)  # (Ranks of several devices are compared: they tell no more than that.)
    for each in made:
        each.known = known
    is_open, is_tied = any(each.is_open for each in made), any(len(each.split.tied) for each in made)
    if len(devices) == 1 and is_tied:
        take_step(devices, end_alone, watch)
        return True
    if is_open:
        told = take_step(devices, tell_all, watch)
        for _ in rounds_of(made):
            told = take_step(devices, go_on, watch)
    if any(len(each.split.tied) for each in made):
        take_step(devices, end, watch)
    return is_open or is_tied


def _positions_and_ranks(made: Ordering, places: Any) -> tuple[Any, Any]:
    """What a device tells the others: positions that only it may re-rank, and their ranks."""
    return places, made.ranks[places]


def transform_to_host(
    ordered: Sequence[Ordered], letters: bytes, devices: Sequence[int], threads: int, watch: Stopwatch
) -> Transform:
    """The transform, of which each device makes what it has the order of, and sends it in parts.

    Parameters
    ----------
    ordered : as of `order_shared`, whose first device is the current one
    letters : that may occur, ascending
    watch : takes the seconds of ``transform`` and ``device_to_host``, of this to locked memory what is left when all is
        made, and of several devices of ``device_to_device``

    Returns
    -------
    Transform, on the host: uint8[N], the last letters of the ordered conjugates, and int64[m], the ranks of the words
    """
    last = locked(sum(len(each.order) for each in ordered), np.uint8, threads)

    def make(number: int, watch_here: Stopwatch) -> Any:
        words, order, first, _ = ordered[number]
        with marked_on_device(watch_here) as mark:
            made, indices = cupy().empty(len(order), np.uint8), cupy().full(len(words.offsets) - 1, -1, np.int64)
            before = letters_before(words)
            parts = max(1, min(_MOST_PARTS, len(order) // _LEAST_SENT))
            for begin, end in spans_of(len(order), parts, max(1, len(order))):
                part = slice(begin, end)
                rank, there, out = first + begin, made[part], last[ordered[number].ranks][part]
                launch(put_last_letters, len(there), BLOCK, before, words.words_of, order[part], rank, there, indices)
                sent_to_host(there.reshape(1, -1), out.reshape(1, -1), threads)
            mark("transform")
            wait_for_sent()
            mark("device_to_host")
        return indices

    indices, *others = take_step(devices, make, watch)
    if others:
        with time_on_device(watch, "device_to_device"):
            for other in others:
                indices = cupy().maximum(indices, from_device(other))
    with time_on_device(watch, "device_to_host"):
        here = copied_to_host(indices, threads, locked(len(indices), np.int64, threads, LEAST_LOCKED))
    return Transform(last, here, letters)


def order_to_host(ordered: Sequence[Ordered], devices: Sequence[int], threads: int, watch: Stopwatch) -> np.ndarray:
    """The whole order, uint32[N]."""
    order = locked(sum(len(each.order) for each in ordered), np.uint32, threads)

    def bring(number: int, watch_here: Stopwatch) -> None:
        with time_on_device(watch_here, "device_to_host"):
            copied_to_host(ordered[number].order, threads, order[ordered[number].ranks])

    take_step(devices, bring, watch)
    return order

"""Distances of all pairs of words on GPUs: gaps of words are counted in shares of the ranks, one for each device.

Shares of as many ranks are as much work, or nearly, whether words are thousands, two, or one that is longer than all
others. (Of more than WORDS words, those with a low number are counted more often, as every pair is counted once;
shares are equal where a word's number says nothing of its place in the order.) The first device has the order, and
makes of it the word of each rank, its *colour*; the others are brought the colours of their shares, and need nothing
else. Each lays out its ranks by words, is told where each word was last before them, and counts in how many gaps of
each word every other one is (`gpu_between.py`): in one *slab* of stretches of ranks after the other, whose sets take
little memory, and for WORDS words after the other. Then it adds up, in its share of the rows, what all of them
counted, and makes distances of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from warpseed.compute.device_batches import serve_devices
from warpseed.compute.device_copies import copied_to_host, from_device
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.gpu import argsort, cupy, launch, on_own_stream
from warpseed.compute.locked_memory import locked
from warpseed.compute.warp import BLOCK
from warpseed.ebwt.gpu_between import (
    GAPS,
    JOINED,
    LANES,
    RANKS,
    SQUARE,
    WORDS,
    count_between,
    count_warps,
    find_last,
    join_sets,
    make_sets,
    mirror_counts,
    put_distances,
)
from warpseed.ebwt.gpu_fast import cut_positions, find_words

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.ebwt.gpu_order import DeviceWords

__all__ = ["bytes_of_sets", "distances_of", "shared_distances", "shares_of"]

_Result = TypeVar("_Result")

_BLOCK = 256
_LEAST_LOCKED = 1 << 22
"""Bytes of distances up to which a copy by the driver takes no longer than one to memory that is locked."""
_FEW_WORDS = 1 << 16
"""Their numbers have 16 bits, which are sorted in half the time."""
_LEAST_STRETCH = 1 << 16
_GAPS_OF_STRETCH = 128
"""Of each word in a stretch, about, where there are so many words that it is not the least."""
_SLAB = 1 << 23
"""Ranks of a slab, about, where a stretch is shorter."""
_SETS_OF_GAP = 3
"""Of the largest sets, in a gap of words of one length, about, at most."""
_MOST_SETS = 1 << 13
"""Of the largest sets, in any gap: a warp looks at them one by one, some thousands in a millisecond."""


class _Ranked(NamedTuple):
    """What the distances are counted from, on one device: k ranks from its first on."""

    colours: Any
    """uint16[k] or uint32[k], the word of each"""
    positions: Any
    """uint32[k], the ranks of each word's conjugates less the first, ascending, one word behind the other"""
    cuts: Any
    """int64[m, stretches + 1], where a word's ranks of each stretch begin in it, and those of the last end"""
    firsts: Any
    """int64[m], the first of each word's ranks, NEVER of a word that has none"""
    lasts: Any
    """int64[m], the last of them, -1 of a word that has none"""


def distances_of(words: DeviceWords, order: Any) -> Any:
    """δ of all pairs of words, by the current device.

    Parameters
    ----------
    words : DeviceWords
    order : uint32[N] on the device, the position of the conjugate of each rank

    Returns
    -------
    int64[m, m] on the device
    """
    m = len(words.offsets) - 1
    ranked = _rank(words.words_of[order], m, 0)
    counts = _count(ranked, 0, _before([ranked], 0))
    return _distances(counts, 0, words.offsets, *_ends([ranked], 0))


def shared_distances(
    words: DeviceWords, order: Any, devices: Sequence[int], threads: int, watch: Stopwatch
) -> np.ndarray:
    """The same, by one or more devices, brought to the host.

    Parameters
    ----------
    words, order : as of `distances_of`, on the first device, which is the current one
    devices : their numbers
    threads : of the host, that copy from each device
    watch : takes the seconds of ``distances`` and ``device_to_host``, and of several devices of ``device_to_device``:
        of each step those of the slowest

    Returns
    -------
    int64[m, m]

    Raises
    ------
    MemoryLimitError : one of the devices has no room
    DeviceError : one does not answer
    """
    m, shares = len(words.offsets) - 1, shares_of(len(order), len(devices))
    with time_on_device(watch, "distances"):
        colours = words.words_of[order]

    def rank(number: int, mine: Stopwatch) -> _Ranked:
        own = colours[shares[number]]
        if number > 0:
            with time_on_device(mine, "device_to_device"):
                own = from_device(own)
        with time_on_device(mine, "distances"):
            return _rank(own, m, shares[number].start)

    def count(number: int, mine: Stopwatch) -> Any:
        with time_on_device(mine, "distances"):
            return _count(ranked[number], shares[number].start, _before(ranked, number))

    def add_up(number: int, mine: Stopwatch) -> None:
        share = rows[number]
        counts, offsets = counted[number][share], from_device(words.offsets) if number > 0 else words.offsets
        if len(counted) > 1:
            with time_on_device(mine, "device_to_device"):
                for other in (*counted[:number], *counted[number + 1 :]):
                    counts += from_device(other[share])
        with time_on_device(mine, "distances"):
            distances = _distances(counts, share.start, offsets, *_ends(ranked, number))
        with time_on_device(mine, "device_to_host"):
            copied_to_host(distances, threads, out=found[share])

    ranked = _serve(devices, rank, watch)
    counted = _serve(devices, count, watch)
    found, rows = locked(m * m, np.int64, threads, _LEAST_LOCKED).reshape(m, m), shares_of(m, len(devices))
    _serve(devices, add_up, watch)
    return found


def shares_of(count: int, devices: int) -> list[slice]:
    """So many rows in parts of one size, or nearly, one for each device."""
    ends = [count * number // devices for number in range(devices + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]


def _serve(devices: Sequence[int], work: Callable[[int, Stopwatch], _Result], watch: Stopwatch) -> list[_Result]:
    """What each device comes to in one step, by its number from 0 on; all of it is done then, on every device."""

    def there(number: int, mine: Stopwatch) -> _Result:
        with on_own_stream(0):
            return work(number, mine)

    return serve_devices(devices, there, watch)


def _rank(colours: Any, m: int, first: int) -> _Ranked:
    """The ranks of each of m words in a part of the order, from the rank `first` on, cut where stretches begin.

    colours : uint32[k], the word of each of these ranks
    """
    xp, count = cupy(), len(colours)
    colours = colours.astype(np.uint16) if m <= _FEW_WORDS else colours
    positions = argsort(colours).astype(np.uint32)
    offsets, firsts, lasts = xp.empty(m + 1, np.int64), xp.empty(m, np.int64), xp.empty(m, np.int64)
    launch(find_words, m, _BLOCK, colours, positions, first, offsets, firsts, lasts)
    stretch = _stretch_for(m)
    stretches = -(-count // stretch)
    cuts = xp.empty((m, stretches + 1), np.int64)
    launch(cut_positions, m * (stretches + 1), _BLOCK, positions, offsets, stretch, cuts)
    return _Ranked(colours, positions, cuts, firsts, lasts)


def _stretch_for(m: int) -> int:
    """Ranks of a stretch."""
    return max(_LEAST_STRETCH, _GAPS_OF_STRETCH * m)


def _stretches_of_slab(m: int) -> int:
    return max(1, _SLAB // _stretch_for(m))


def _before(ranked: Sequence[_Ranked], number: int) -> Any:
    """int64[m], the last rank of each word on the devices before one, -1 of a word that has none."""
    xp = cupy()
    before = xp.full(len(ranked[number].lasts), -1, np.int64)
    for each in ranked[:number]:
        before = xp.maximum(before, from_device(each.lasts))
    return before


def _ends(ranked: Sequence[_Ranked], number: int) -> tuple[Any, Any]:
    """int64[m] each, the first and the last rank of each word on all devices, for one of them."""
    xp, (firsts, lasts) = cupy(), (ranked[number].firsts, ranked[number].lasts)
    for other in (*ranked[:number], *ranked[number + 1 :]):
        firsts, lasts = xp.minimum(firsts, from_device(other.firsts)), xp.maximum(lasts, from_device(other.lasts))
    return firsts, lasts


def _count(ranked: _Ranked, first: int, before: Any) -> Any:
    """In how many gaps that end on one device, from the rank `first` on, each word is: uint32[m, m], of every word the
    gaps of each.

    before : int64[m], the last rank of each word before, -1 of a word that has none; it is changed
    """
    xp, m, stretches = cupy(), len(ranked.cuts), ranked.cuts.shape[1] - 1
    counts, stretch, of_slab = xp.zeros((m, m), np.uint32), _stretch_for(m), _stretches_of_slab(m)
    for begin in range(0, stretches, of_slab):
        end = min(begin + of_slab, stretches)
        slab = slice(begin * stretch, min(end * stretch, len(ranked.colours)))
        launch(find_last, m, _BLOCK, ranked.positions, ranked.cuts, begin, first, before)
        _count_slab(ranked, slab, (begin, end), before, counts)
    launch(mirror_counts, (-(-m // LANES)) ** 2 * SQUARE, SQUARE, counts)
    return counts


def _count_slab(ranked: _Ranked, slab: slice, stretches: tuple[int, int], before: Any, counts: Any) -> None:
    """Add what the ranks of some stretches, [first, last), count."""
    xp, colours, m, (first, last) = cupy(), ranked.colours[slab], len(counts), stretches
    warps = xp.empty((last - first, m), np.int64)
    launch(count_warps, warps.size, _BLOCK, ranked.cuts, first, warps)
    ends, most = xp.cumsum(warps.reshape(-1), dtype=np.int64), len(colours) // GAPS + warps.size
    sets = xp.empty((_levels_for(m, len(colours)), len(colours) // RANKS * LANES), np.uint64)
    for first_word in range(0, m, WORDS):
        launch(make_sets, sets.shape[1], _BLOCK, colours, first_word, sets.reshape(-1))
        for level in range(1, len(sets)):
            launch(join_sets, sets.shape[1], _BLOCK, level, sets)
        read = colours, ranked.positions, ranked.cuts, before, sets.reshape(-1), ends
        how = first_word, first, slab.start, sets.shape[1], len(sets)
        launch(count_between, most * LANES, BLOCK, *read, how, counts)


def _levels_for(m: int, ranks: int) -> int:
    """Levels of sets of so many ranks: so that a gap of words of one length is a few of the last, and that no gap, of a
    word that hardly comes, is very many."""
    level = 0
    while _SETS_OF_GAP * RANKS * JOINED**level < m or ranks > _MOST_SETS * RANKS * JOINED**level:
        level += 1
    return level + 1


def bytes_of_sets(ranks: int, m: int) -> int:
    """Of a device's memory that the sets of m words take, where it counts so many ranks."""
    of_slab = min(ranks, _stretches_of_slab(m) * _stretch_for(m))
    return of_slab // RANKS * LANES * 8 * _levels_for(m, of_slab)


def _distances(counts: Any, first_row: int, offsets: Any, firsts: Any, lasts: Any) -> Any:
    """δ of some words and all, int64[rows, m], of what was counted from the row of the first of them on."""
    distances = cupy().empty(counts.shape, np.int64)
    parts = -(-counts.shape[1] // _BLOCK)
    launch(put_distances, len(counts) * parts * _BLOCK, _BLOCK, counts, first_row, offsets, firsts, lasts, distances)
    return distances

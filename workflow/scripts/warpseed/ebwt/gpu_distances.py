"""Distances of all pairs of words on GPUs: gaps of words are counted in shares of the ranks, one for each device.

Shares of as many ranks are as much work, or nearly, whether words are thousands, two, or one that is longer than all
others. (Of two chunks of WORDS words the first is looked at for both.) The first device has the order, and makes of it
the word of each rank, its *colour*; the others are brought the colours of their shares, and need nothing else. Each
lays out its ranks by words, is told where each word was last before them, and counts in how many gaps of each word
every other one is (`gpu_counts.py`), for WORDS words, the *members*, after the other. What all of them counted for
some members each adds up in its share of the rows, and makes distances of it, which go to the host while the next
members are counted for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from warpseed.compute.device_batches import serve_devices
from warpseed.compute.device_copies import from_device, sent_to_host, wait_for_sent
from warpseed.compute.device_marks import marked_on_device, time_on_device
from warpseed.compute.gpu import cupy, launch, on_own_stream
from warpseed.compute.locked_memory import locked
from warpseed.ebwt.gpu_between import SQUARE, is_counted, put_distances
from warpseed.ebwt.gpu_counts import Ranked, bytes_of_sets, count_gaps, ends_of, lasts_before, rank_words
from warpseed.ebwt.gpu_sets import LANES, WORDS

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.ebwt.gpu_order import DeviceWords

__all__ = ["bytes_of_distances", "distances_of", "shared_distances", "shares_of"]

_Result = TypeVar("_Result")

_LEAST_LOCKED = 1 << 22
"""Bytes of distances up to which a copy by the driver takes no longer than one to memory that is locked."""
_COUNTS = 3
"""Of some members, that are on a device at once: those that are counted, those before, and others' of these."""


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
    ranked = rank_words(words.words_of[order], m, 0)
    before, ends, distances = lasts_before([ranked], 0), ends_of([ranked], 0), cupy().empty((m, m), np.int64)
    for first_word in range(0, m, WORDS):
        counts = count_gaps(ranked, 0, before, first_word)
        _put_distances(counts, slice(0, m), first_word, words.offsets, ends, distances)
    return distances


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
        of each step those of the slowest; of ``device_to_host`` to locked memory what is left when all is counted

    Returns
    -------
    int64[m, m]

    Raises
    ------
    MemoryLimitError : one of the devices has no room
    DeviceError : one does not answer
    """
    m, shares = len(words.offsets) - 1, shares_of(len(order), len(devices))
    rows = shares_of(m, len(devices))
    with time_on_device(watch, "distances"):
        colours = words.words_of[order]

    def rank(number: int, mine: Stopwatch) -> tuple[Ranked, Any]:
        own = colours[shares[number]]
        if number > 0:
            with time_on_device(mine, "device_to_device"):
                own = from_device(own)
        with time_on_device(mine, "distances"):
            return rank_words(own, m, shares[number].start), cupy().empty((m, m), np.int64)

    def count(first_word: int, number: int, mine: Stopwatch) -> Any:
        with time_on_device(mine, "distances"):
            return count_gaps(ranked[number], shares[number].start, lasts_before(ranked, number), first_word)

    def put(first_word: int, counted: Sequence[Any], number: int, mine: Stopwatch) -> None:
        share, offsets = rows[number], from_device(words.offsets) if number > 0 else words.offsets
        counts = counted[number][share]
        with marked_on_device(mine) as mark:
            if len(devices) > 1:
                for other in (*counted[:number], *counted[number + 1 :]):
                    counts += from_device(other[share])
                mark("device_to_device")
            _put_distances(counts, share, first_word, offsets, ends_of(ranked, number), made[number])
            mark("distances")
            _send(made[number], share, first_word, found, threads)
            mark("device_to_host")

    def step(first_word: int, counted: Sequence[Any], number: int, mine: Stopwatch) -> Any:
        """What was counted for the members before becomes distances, which are on their way while the next count."""
        if counted:
            put(first_word - WORDS, counted, number, mine)
        return count(first_word, number, mine) if first_word < m else None

    def land(number: int, mine: Stopwatch) -> None:
        with time_on_device(mine, "device_to_host"):
            wait_for_sent()

    ranked, made = zip(*_serve(devices, rank, watch), strict=True)
    found, counted = locked(m * m, np.int64, threads, _LEAST_LOCKED).reshape(m, m), list[Any]()
    try:
        for first_word in range(0, m + WORDS, WORDS):
            counted = _serve(devices, partial(step, first_word, counted), watch)
    finally:
        _serve(devices, land, watch)
    return found


def shares_of(count: int, devices: int) -> list[slice]:
    """So many rows in parts of one size, or nearly, one for each device."""
    ends = [count * number // devices for number in range(devices + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]


def bytes_of_distances(ranks: int, m: int) -> int:
    """Of a device's memory that the distances of m words take at most beside what each rank does, where it counts so
    many ranks."""
    return bytes_of_sets(ranks, m) + 8 * m * m + _COUNTS * 4 * m * min(m, WORDS)


def _serve(devices: Sequence[int], work: Callable[[int, Stopwatch], _Result], watch: Stopwatch) -> list[_Result]:
    """What each device comes to in one step, by its number from 0 on; all of it is done then, on every device, but
    copies to the host."""

    def there(number: int, mine: Stopwatch) -> _Result:
        with on_own_stream(0):
            return work(number, mine)

    return serve_devices(devices, there, watch)


def _put_distances(
    counts: Any, rows: slice, first_word: int, offsets: Any, ends: tuple[Any, Any], distances: Any
) -> None:
    """Make distances, in both halves of the matrix, of what was counted for some words and the members from one on."""
    squares = -(-counts.shape[0] // LANES) * -(-counts.shape[1] // LANES)
    launch(put_distances, squares * SQUARE, SQUARE, counts, rows.start, first_word, offsets, *ends, distances)


def _send(distances: Any, rows: slice, first_word: int, found: np.ndarray, threads: int) -> None:
    """Send to the host what `_put_distances` has made."""
    m, members = len(found), slice(first_word, min(first_word + WORDS, len(found)))
    for begin in range(rows.start // WORDS * WORDS, rows.stop, WORDS):
        some = slice(max(begin, rows.start), min(begin + WORDS, rows.stop))
        if is_counted.py_func(begin, first_word, m):
            sent_to_host(distances[some, members], found[some, members], threads)
            if begin != first_word:
                sent_to_host(distances[members, some], found[members, some], threads)

"""Distances of all pairs of words on GPUs: each device counts a part of the gaps of words, and goes its own way.

Each device has a range of the order, and makes of it the word of each rank, its *colour*, which it tells the others.
Each lays out its ranks by words, and takes what the others have laid out (`gpu_runs.py`). Then each counts in how many
gaps of each word every other one is (`gpu_counts.py`), for WORDS words, the *members*, after the other: the work is
dealt out in equal parts (`gpu_parts.py`). What was counted for some members becomes distances at once, which go to the
host while the next members are counted for. Only of words of which several devices have some gaps one of them adds up
what all have counted, when they are done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpseed.compute.device_batches import Meeting, take_step
from warpseed.compute.device_copies import LEAST_LOCKED, from_device, sent_to_host, wait_for_sent
from warpseed.compute.device_marks import marked_on_device, time_on_device
from warpseed.compute.gpu import cupy, launch
from warpseed.compute.locked_memory import locked
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.warp import LANES
from warpseed.ebwt.gpu_between import SQUARE_BLOCK, is_counted, put_distances
from warpseed.ebwt.gpu_counts import Ranked, bytes_of_sets, colours_of, count_gaps, rank_words
from warpseed.ebwt.gpu_parts import Part, parts_of
from warpseed.ebwt.gpu_runs import rank_shared
from warpseed.ebwt.gpu_sets import WORDS
from warpseed.ebwt.matrix import distance_type

if TYPE_CHECKING:
    from warpseed.ebwt.gpu_order import DeviceWords
    from warpseed.ebwt.gpu_ranges import Ordered

__all__ = ["bytes_of_distances", "distances_of", "shared_distances"]

_COUNTS = 2
"""Of some members, that are on a device at once: those that are counted, and those before."""
_LEAST_SENT = 1 << 25
"""Bytes of distances that go to the host at once, at least: for the last of them it waits when all is counted."""
_LATER_TO_MORE = 4
"""So many bytes that are still to come make these one more: what goes before the last should be gone by then."""
_MOST_PIECES = 8
"""Of the distances of some members, however many there are: each takes up to seven more launches."""


class _Counted(NamedTuple):
    """What one device has counted, and made of it."""

    ranked: Ranked
    offsets: Any
    """int64[m + 1], where words begin, and the end of the last"""
    distances: Any
    """[m, m], as of `distance_type`, of what is the device's"""
    rests: dict[tuple[int, int], Any]
    """of (first member, word), where other devices have other gaps of the word, uint32[1, k]"""


def distances_of(words: DeviceWords, order: Any) -> Any:
    """δ of all pairs of words, by the current device.

    Parameters
    ----------
    words : DeviceWords
    order : uint32[N] on the device, the position of the conjugate of each rank

    Returns
    -------
    [m, m], as of `distance_type`, on the device
    """
    parts, *_ = parts_of(np.diff(words.offsets.get()), 1)
    return _count(rank_words(colours_of(words, order), words.offsets), words, parts, None).distances


def shared_distances(
    ordered: Sequence[Ordered],
    parts: Sequence[Sequence[Part]],
    devices: Sequence[int],
    threads: int,
    watch: Stopwatch,
) -> np.ndarray:
    """The same, by one or more devices, brought to the host.

    Parameters
    ----------
    ordered : what each of them has of the order, and, where it is there, of the words of ranks
    parts : what each counts, as of `parts_of`
    devices : their numbers
    threads : of the host, that copy from each device
    watch : takes the seconds of ``distances`` and ``device_to_host``, and of several devices of ``device_to_device``:
        of each step those of the slowest; of ``device_to_host`` to locked memory what is left when all is counted, and
        of ``device_to_device`` what is left when own ranks are laid out

    Returns
    -------
    [m, m], as of `distance_type`

    Raises
    ------
    MemoryLimitError : one of the devices has no room
    DeviceError : one does not answer
    """
    words = ordered[0].words
    m = len(words.offsets) - 1
    matrix = locked(m * m, distance_type(words.longest), threads, LEAST_LOCKED).reshape(m, m)

    def colour(number: int, watch_here: Stopwatch) -> Any:
        with time_on_device(watch_here, "distances"):
            return colours_of(ordered[number].words, ordered[number].order)

    def send(distances: Any, part: Part) -> None:
        _send(distances, part, matrix, threads)

    def rank(number: int, mark: Callable[[str], None]) -> Ranked | None:
        offsets = ordered[number].words.offsets
        if len(devices) == 1:
            return rank_words(colours[0], offsets)
        return rank_shared(colours, number, offsets, meeting, mark, counts=bool(parts[number]))

    def count(number: int, watch_here: Stopwatch) -> _Counted | None:
        with marked_on_device(watch_here) as mark:
            ranked = rank(number, mark)
            if ranked is None:
                return None
            counted = _count(ranked, ordered[number].words, parts[number], send)
            mark("distances")
            wait_for_sent()
            mark("device_to_host")
        return counted

    def join(number: int, watch_here: Stopwatch) -> None:
        """Of words of which several devices have some gaps, the first of these adds up what all have counted."""
        counted = by_devices[number]
        if counted is None:
            return
        with marked_on_device(watch_here) as mark:
            for (first_word, word), counts in _rests_of(by_devices, number):
                rest = Part(first_word, (word, 0), (word + 1, 0))
                summed = sum(map(from_device, counts[1:]), counts[0])
                mark("device_to_device")
                _put_distances(counted, summed, rest)
                mark("distances")
                send(counted.distances, rest)
            wait_for_sent()
            mark("device_to_host")

    colours = [each.colours for each in ordered]
    if any(each is None for each in colours):
        colours = take_step(devices, colour, watch)
    meeting = Meeting(len(devices))
    by_devices = take_step(devices, count, watch, meeting.end)
    if any(each and each.rests for each in by_devices):
        take_step(devices, join, watch)
    return matrix


def bytes_of_distances(ranks: int, m: int, longest: int) -> int:
    """Of a device's memory that the distances of m words of up to `longest` letters, which have so many ranks, take at
    most beside what each rank does. (Runs of several devices, before anything is counted, take less than counts;
    what they tell each other, 4 bytes a rank, is among what each rank takes.)"""
    return bytes_of_sets(ranks, m) + np.dtype(distance_type(longest)).itemsize * m * m + _COUNTS * 4 * m * min(m, WORDS)


def _count(
    ranked: Ranked, words: DeviceWords, parts: Sequence[Part], send: Callable[[Any, Part], None] | None
) -> _Counted:
    """Count some parts on the current device, and make distances of each word of which all gaps are in one.

    Parameters
    ----------
    send : called with the distances and a part, when those of its complete words are made; None where they stay
    """
    m = len(words.offsets) - 1
    distances = cupy().empty((m, m), distance_type(words.longest))
    counted = _Counted(ranked, words.offsets, distances, {})

    def done(counts: Any, part: Part) -> None:
        _put_distances(counted, counts[part.complete_words], part)
        if send is not None:
            send(distances, part)

    for part, pieces in zip(parts, _pieces_of(parts, m, distances.itemsize), strict=True):
        counts = count_gaps(ranked, part.split(pieces if send else 1), done)
        counted.rests.update(((part.first_word, word), counts[word : word + 1].copy()) for word in part.split_words)
    return counted


def _pieces_of(parts: Sequence[Part], m: int, itemsize: int) -> list[int]:
    """In how many pieces the distances of each part go to the host, of m words."""
    pieces, later = list[int](), 0
    for part in reversed(parts):
        # (Half of the words are counted, and of these two entries are made with each member.)
        size = itemsize * min(WORDS, m - part.first_word) * len(part.words)
        pieces.append(min(max(1, size // (_LEAST_SENT + later // _LATER_TO_MORE)), _MOST_PIECES))
        later += size
    return pieces[::-1]


def _rests_of(by_devices: Sequence[_Counted | None], number: int) -> Iterator[tuple[tuple[int, int], list[Any]]]:
    """What several devices have counted of one word, of words of which a device is the first."""
    rests = [each.rests if each else {} for each in by_devices]
    for key in rests[number]:
        if not any(key in others for others in rests[:number]):
            yield key, [others[key] for others in rests[number:] if key in others]


def _put_distances(counted: _Counted, counts: Any, part: Part) -> None:
    """Make distances, in both halves of the matrix, of what was counted for the complete words of a part.

    counts : uint32[words, k]
    """
    squares = -(-counts.shape[0] // LANES) * -(-counts.shape[1] // LANES)
    read = (
        counts,
        part.complete_words.start,
        part.first_word,
        counted.offsets,
        counted.ranked.firsts,
        counted.ranked.lasts,
    )
    launch(put_distances, squares * SQUARE_BLOCK, SQUARE_BLOCK, *read, counted.distances)


def _send(distances: Any, part: Part, matrix: np.ndarray, threads: int) -> None:
    """Send to the host what `_put_distances` has made."""
    m, first_word = len(matrix), part.first_word
    members = slice(first_word, min(first_word + WORDS, m))
    for begin, end in _counted_in(part, m):
        sent_to_host(distances[begin:end, members], matrix[begin:end, members], threads)
        for others in (slice(begin, min(end, members.start)), slice(max(begin, members.stop), end)):
            if others.start < others.stop:
                sent_to_host(distances[members, others], matrix[members, others], threads)


def _counted_in(part: Part, m: int) -> Iterator[tuple[int, int]]:
    """[begin, end) of the complete words of a part whose gaps are counted, as many at once as follow each other: long
    rows go to the host faster than short ones."""
    rows = part.complete_words
    chunks = range(rows.start // WORDS * WORDS, rows.stop if rows.start < rows.stop else 0, WORDS)
    for are_counted, some in groupby(chunks, lambda first: is_counted.py_func(first, part.first_word, m)):
        if are_counted:
            firsts = [*some]
            yield max(firsts[0], rows.start), min(firsts[-1] + WORDS, rows.stop)

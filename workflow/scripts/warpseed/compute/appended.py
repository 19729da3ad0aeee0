"""Lists that the threads of a kernel append words to, and how these come to lie query by query, in order.

Nobody knows beforehand how many results a query has. Threads append them to lists in any order and count them; prefix
sums of the counts say where each query's results begin; they are moved there, and sorted where they lie. So memory
follows the results. What one thread has too much of it sets aside in such a list, too, for whole warps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.device_sorting import (
    BLOCK_BY_WARPS,
    BY_BLOCK,
    BY_WARP,
    FEW,
    LARGE_BLOCK,
    SORTING_BLOCKS,
    sort_by_block,
    sort_by_thread,
    sort_by_warp,
)
from warpseed.compute.device_sums import borders_of
from warpseed.compute.gpu import cuda, cupy, kernel, launch
from warpseed.compute.warp import ALL_LANES, BLOCK, warp_places
from warpseed.errors import MemoryLimitError

__all__ = [
    "SEGMENTS",
    "Appended",
    "Grouped",
    "append_word",
    "group_words",
    "place_words",
    "reserve_words",
    "room_next_time",
    "run_at",
    "runs_of_warp",
    "set_aside",
    "sort_few",
    "sort_many",
    "sort_most",
    "with_room",
]

_Result = TypeVar("_Result")

SEGMENTS = 64
"""Parts of a list; blocks take them in turn, so that no single counter is everybody's bottleneck."""
_MOST_RANKED = 0xFFFF_FFFF
"""Words of a query that have ranks."""
_PLACING_BLOCKS = 32 * SEGMENTS
_FAR = 1 << 30
"""Marks the second word of what is set aside where the run's first row is 2^32 or more."""


class Appended(NamedTuple):
    """A list of words of queries, and how many each query has. Each of the three arrays is cut into SEGMENTS parts."""

    cursors: np.ndarray
    """uint64[SEGMENTS or more], words of each part, those that found no room too"""
    words: np.ndarray
    """uint64[room]"""
    queries: np.ndarray
    """uint32[room], whose word it is"""
    ranks: np.ndarray
    """uint32[room], which of its query's words it is, in no order"""
    counts: np.ndarray
    """uint64[n], words of each query: one of a base may have more than 2^32 in a large text"""


class Grouped(NamedTuple):
    """Words on the device, query by query, ascending."""

    words: Any
    """uint64[w]"""
    counts: Any
    """uint64[n], words of each query, 0 for one that was dropped"""
    dropped_queries: int
    dropped_words: int


@scalar
def reserve_words(lists, most, query, count):
    """Room for `count` words of a lane's query, by one addition to a cursor for a warp; all its lanes take part.

    Parameters
    ----------
    most : int64, words of a query behind which no more are kept, while they are still counted

    Returns
    -------
    (at, end, rank) : int64, for `append_word`: where the first word goes, what is behind the last place that there is,
        and which of its query's words the first is
    """
    lane = int64(cuda.threadIdx.x) & int64(31)
    rank = int64(0)
    if count > int64(0):
        rank = int64(cuda.atomic.add(lists.counts, query, uint64(count)))
        if rank > most:
            count = int64(0)
    place, total = warp_places(count)
    segment = int64(cuda.blockIdx.x) & int64(SEGMENTS - 1)
    room = int64(lists.words.shape[0]) // int64(SEGMENTS)
    begin = int64(0)
    if lane == int64(0) and total > int64(0):
        begin = int64(cuda.atomic.add(lists.cursors, segment, uint64(total)))
    begin = int64(cuda.shfl_sync(ALL_LANES, begin, 0))
    end = (segment + int64(1)) * room if count > int64(0) else int64(0)
    return segment * room + begin + place, end, rank


@scalar
def append_word(lists, reserved, number, query, word):
    """Store word `number` of those that room was reserved for, if there was."""
    at, end, rank = reserved
    if at + number < end:
        lists.words[at + number] = word
        lists.queries[at + number] = uint32(query)
        lists.ranks[at + number] = uint32(rank + number)


@scalar
def set_aside(cursors, crowded, item, rows, run):
    """Leave the rows of a crowded bucket to whole warps, in runs: those of one bucket go to all parts of the list by
    turns.

    Parameters
    ----------
    cursors : uint64[2·SEGMENTS or more]; behind SEGMENTS those of `crowded`
    crowded : uint32[…, 4], cut into SEGMENTS parts: two words of an item, first row, row behind the last, both modulo
        2^32; the bit _FAR of the second word is taken
    item : (int64, int64), these two words, 32 bits each, the second without _FAR
    rows : (int64 first, int64 behind the last)
    run : int64, rows of a run at most
    """
    room = int64(crowded.shape[0]) // int64(SEGMENTS)
    for first in range(rows[0], rows[1], run):
        segment = (int64(cuda.blockIdx.x) + int64(first) // run) & int64(SEGMENTS - 1)
        slot = int64(cuda.atomic.add(cursors, int64(SEGMENTS) + segment, uint64(1)))
        if slot < room:
            entry = segment * room + slot
            crowded[entry, 0] = uint32(item[0])
            crowded[entry, 1] = uint32(item[1] | (int64(first) >> int64(32)) * int64(_FAR))
            crowded[entry, 2] = uint32(int64(first))
            crowded[entry, 3] = uint32(min(int64(first) + run, rows[1]))


@scalar
def runs_of_warp(cursors, crowded):
    """The runs set aside that this warp takes, as a range: (int64 first, int64 behind the last, int64 step)."""
    warp = int64(cuda.grid(1)) >> int64(5)
    warps = int64(cuda.gridsize(1)) >> int64(5)
    segment = warp & int64(SEGMENTS - 1)
    room = int64(crowded.shape[0]) // int64(SEGMENTS)
    used = min(int64(cursors[int64(SEGMENTS) + segment]), room)
    return segment * room + warp // int64(SEGMENTS), segment * room + used, warps // int64(SEGMENTS)


@scalar
def run_at(crowded, entry):
    """A run set aside: the two words of its item, first row, row behind the last; int64 each."""
    second, first = int64(crowded[entry, 1]), int64(crowded[entry, 2])
    rows = int64(uint32(crowded[entry, 3] - crowded[entry, 2]))
    if second & int64(_FAR):
        second, first = second ^ int64(_FAR), first + (int64(1) << int64(32))
    return int64(crowded[entry, 0]), second, first, first + rows


def with_room(room: tuple[int, ...], attempt: Callable[..., tuple[tuple[int, ...], _Result]]) -> _Result:
    """Append to lists whose final lengths are not known; again, with the room that it took, where one was short.

    Parameters
    ----------
    room : entries of each list, at first
    attempt : called with the room of each list; returns the room that each would have needed, and its result

    Returns
    -------
    What the first attempt that had room enough returned; what the one before took is free by then.
    """
    while True:
        needed, result = attempt(*room)
        if all(entries <= there for entries, there in zip(needed, room, strict=True)):
            return result
        del result
        room = tuple(map(max, room, needed))


def room_next_time(needed: int, appended: int) -> int:
    """Words that such a list should have room for again.

    Parameters
    ----------
    needed : what the fullest of its parts took, in each part; no more than 5/4 of `appended` count, as parts of few
        queries are not even, and tell nothing of many
    appended : words of all parts
    """
    return min(needed, appended + appended // 4)


@kernel
def place_words(lists, borders, grouped):
    """Words from the list to where their queries' begin; _PLACING_BLOCKS blocks share the parts.

    ``borders``, int64[n + 1]; a query whose border is the next one's was dropped.
    """
    segment = int64(cuda.blockIdx.x) & int64(SEGMENTS - 1)
    room = int64(lists.words.shape[0]) // int64(SEGMENTS)
    used = min(int64(lists.cursors[segment]), room)
    first = (int64(cuda.blockIdx.x) // int64(SEGMENTS)) * int64(BLOCK) + int64(cuda.threadIdx.x)
    for i in range(first, used, (_PLACING_BLOCKS // SEGMENTS) * BLOCK):
        at = segment * room + int64(i)
        query = int64(lists.queries[at])
        begin = borders[query]
        if begin < borders[query + int64(1)]:
            grouped[begin + int64(lists.ranks[at])] = lists.words[at]


@kernel
def sort_few(borders, grouped, cursors, many):
    """Sort the words of queries that have few, one thread each, and list those that have more.

    ``cursors[0]`` (uint64) counts what goes to ``many``, uint32[…], which has room for all that there can be.
    """
    query = int64(cuda.grid(1))
    if query + int64(1) >= int64(borders.shape[0]):
        return
    begin = borders[query]
    end = borders[query + int64(1)]
    if end - begin > int64(FEW):
        many[int64(cuda.atomic.add(cursors, 0, uint64(1)))] = uint32(query)
        return
    sort_by_thread(grouped, begin, end)


@kernel
def sort_many(borders, grouped, cursors, many, most):
    """Sort the words of the queries that `sort_few` listed, a warp each in turn; those of more than BY_WARP go to
    ``most``, uint32[…], which ``cursors[1]`` counts."""
    shared = cuda.shared.array(BLOCK_BY_WARPS, uint64)
    warp = int64(cuda.grid(1)) >> int64(5)
    for number in range(warp, int64(cursors[0]), int64(cuda.gridsize(1)) >> int64(5)):
        query = int64(many[number])
        begin = borders[query]
        count = borders[query + int64(1)] - begin
        if count <= int64(BY_WARP):
            sort_by_warp(shared, grouped, begin, count)
        elif int64(cuda.threadIdx.x) & int64(31) == int64(0):
            most[int64(cuda.atomic.add(cursors, 1, uint64(1)))] = uint32(query)


@kernel
def sort_most(borders, grouped, cursors, most):
    """Sort the words of the queries that `sort_many` listed, a block each in turn."""
    shared = cuda.shared.array(BY_BLOCK, uint64)
    for number in range(int64(cuda.blockIdx.x), int64(cursors[1]), int64(cuda.gridDim.x)):
        query = int64(most[number])
        begin = borders[query]
        sort_by_block(shared, grouped, begin, borders[query + int64(1)] - begin)


def group_words(lists: Appended, max_words: int) -> Grouped:
    """The words of a list, query by query, in ascending order; a query with more than `max_words` loses them all.

    Parameters
    ----------
    lists : Appended, device arrays of which each part had room, or of which none was to be kept (room for none)

    Raises
    ------
    MemoryLimitError : one query has more words than ranks can number
    """
    xp = cupy()
    counts = xp.asarray(lists.counts)
    over = counts > max_words
    dropped = int(over.sum())
    dropped_words = int(counts[over].sum(dtype=xp.int64)) if dropped else 0
    if dropped:
        counts[over] = 0
    if not lists.words.shape[0]:
        return Grouped(xp.empty(0, xp.uint64), counts, dropped, dropped_words)
    borders = borders_of(counts)
    total = int(borders[-1])
    if total > _MOST_RANKED and int(counts.max()) > _MOST_RANKED:
        raise MemoryLimitError(
            f"One query has more than {_MOST_RANKED:,} results, which no GPU puts in order; set max_hits, or use "
            "device cpu."
        )
    grouped, cursors = xp.empty(total, xp.uint64), xp.zeros(2, xp.uint64)
    many, most = (xp.empty(total // (least + 1) + 1, xp.uint32) for least in (FEW, BY_WARP))
    if total:
        read = borders, grouped
        launch(place_words, _PLACING_BLOCKS * BLOCK, BLOCK, lists, *read)
        launch(sort_few, len(counts), BLOCK, *read, cursors, many)
        launch(sort_many, SORTING_BLOCKS * BLOCK, BLOCK, *read, cursors, many, most)
        launch(sort_most, SORTING_BLOCKS * LARGE_BLOCK, LARGE_BLOCK, *read, cursors, most)
    return Grouped(grouped, counts, dropped, dropped_words)

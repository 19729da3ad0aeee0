"""Distances of many words on the CPU, by how many gaps of each word every later one is in.

Of two words u < v those gaps of u are counted in which v has a rank (`cpu_between.py`): each of them is two changes of
colour, and before u's first rank and behind its last there may be one more. A task counts for IN_SET words v, the
*members*, and all words u up to the last of them, so that every pair is counted once.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import numpy as np

from warpseed.compute.bit_sets import IN_SET, PLANES, SET, place_of
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.pipeline import check_wanted
from warpseed.compute.ranges import STEP, on_threads, spans_of
from warpseed.compute.vectors import aligned_zeros
from warpseed.ebwt.cpu_between import ADDED, TIMES, Gaps, count_rest, count_slab, open_words

__all__ = ["Ends", "Ranks", "bytes_of_gaps", "fill_by_gaps"]

_TIMES_OF_SLAB = 1 << 14
"""Ranks of members in a slab, whose sets are some megabytes; half as many where there are more words."""
_MANY_WORDS = 4096
_RANKS_OF_WORD = 64
"""In a slab, at most, on average."""
_LEAST_RANKS = 1 << 14
_ROWS = 8
"""Words whose distances are written together: a cache line."""


class Ranks(NamedTuple):
    """The words of all ranks, in spans."""

    colours: np.ndarray
    """uint16[N] or uint32[N], the word of each rank"""
    spans: list[tuple[int, int]]
    """the ranks [first, last) of each"""
    lasts: np.ndarray
    """int64[spans, m], the last rank of each word in each span, -1 where it has none"""


class Ends(NamedTuple):
    """Of each word, int64[m], its length, and at which ranks it comes first and last."""

    lengths: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray


def bytes_of_gaps(count: int, size: int, threads: int) -> int:
    """Of memory, about, that the gaps of so many words take, which have `size` ranks."""
    chunks, parts = -(-count // IN_SET), _parts_of(count, threads)
    of_counts = 4 * IN_SET * count
    of_thread = _ranks_of_slab(count, size) * 6 + _TIMES_OF_SLAB * 8 * SET * 3 + (PLANES + 1) * 8 * SET * count
    return threads * (of_thread + of_counts) + (chunks * of_counts if parts > 1 else 0)


def fill_by_gaps(ranks: Ranks, ends: Ends, threads: int, made: np.ndarray) -> None:
    """Distances of all pairs, [m, m], which are 0 before.

    Parameters
    ----------
    threads : int
        The distances are the same for every number.
    """
    count, spans = made.shape[0], len(ranks.spans)
    parts = spans_of(spans, min(_parts_of(count, threads), spans), spans)
    # The last members have the most words before them.
    tasks = [(first_word, part) for first_word in reversed(range(0, count, IN_SET)) for part in parts]
    totals: dict[int, np.ndarray] = {}
    left = dict.fromkeys(range(0, count, IN_SET), len(parts))
    lock = Lock()

    def serve(number: int) -> None:
        first_word, part = tasks[number]
        counts = _count_part(ranks, part, first_word)
        with lock:
            if first_word in totals:
                totals[first_word] += counts
            else:
                totals[first_word] = counts
            left[first_word] -= 1
            if left[first_word]:
                return
        _put_distances(ends, first_word, totals.pop(first_word), made)

    on_threads(threads, serve, len(tasks))


def _parts_of(count: int, threads: int) -> int:
    """In how many parts the ranks are shared: one where there are members enough for all threads."""
    return 1 if threads == 1 else -(-2 * threads // -(-count // IN_SET))


def _ranks_of_slab(words: int, size: int) -> int:
    return min(max(_LEAST_RANKS, _RANKS_OF_WORD * words), size)


def _count_part(ranks: Ranks, part: tuple[int, int], first_word: int) -> np.ndarray:
    """In how many gaps that end in some spans, [first, last), the members are.

    Returns
    -------
    uint32[k * IN_SET], of each word up to the last member, in the order of `place_of`
    """
    first, last = ranks.spans[part[0]][0], ranks.spans[part[1] - 1][1]
    gaps = _no_gaps(ranks, first_word, last - first)
    seen = ranks.lasts[: part[0]].max(axis=0, initial=-1)
    latest = np.argsort(-seen)[: np.count_nonzero(seen >= 0)]
    open_words(latest, first_word, gaps)
    while first < last:
        check_wanted()
        first = count_slab(ranks.colours, (first, min(first + STEP, last)), first_word, gaps)
    count_rest(gaps)
    return gaps.counts


def _no_gaps(ranks: Ranks, first_word: int, size: int) -> Gaps:
    """What gaps of all words up to the last member, among so many ranks, are counted in."""
    count = ranks.lasts.shape[1]
    words = min(first_word + IN_SET, count)
    taken, times = (
        _ranks_of_slab(words, size),
        min(_TIMES_OF_SLAB if words <= _MANY_WORDS else _TIMES_OF_SLAB // 2, size),
    )
    blocks = times // TIMES + 1
    rows = 1 + blocks.bit_length()

    def sets(count: int) -> np.ndarray:
        return aligned_zeros(count * SET, np.dtype(np.uint64))

    return Gaps(
        begun=np.zeros(words, np.uint8),
        opened=sets(words),
        planes=sets(words * PLANES),
        known=np.zeros(words, np.uint8),
        counts=aligned_zeros(words * IN_SET, np.dtype(np.uint32)),
        places=np.empty(count, np.int64),
        picked=np.empty(taken + 1, ranks.colours.dtype),
        times=np.empty(taken, np.uint16),
        members=np.empty(times + 1, np.uint16),
        near=sets(2 * (times + 1)),
        # Not a power of two, which would put what is joined of one block in one set of the cache.
        joined=sets(rows * (blocks | 1)).reshape(rows, -1),
        waiting=sets(ADDED),
    )


@scalar
def _put_distances(ends, first_word, counts, made):
    """Distances of the members and all words before them, of `_count_part`'s counts of all ranks.

    made : [m, m], as of `distance_type`
    """
    words = int64(counts.shape[0]) // int64(IN_SET)
    for row in range(int64(0), words, int64(_ROWS)):
        for number in range(max(int64(first_word), int64(row) + int64(1)), words):
            v = int64(number)
            place = place_of(v - int64(first_word))
            for word in range(int64(row), min(int64(row) + int64(_ROWS), v)):
                u = int64(word)
                runs = int64(2) * int64(counts[uint64(u * int64(IN_SET) + place)]) + int64(1)
                runs += int64(ends.firsts[v] < ends.firsts[u]) + int64(ends.lasts[v] > ends.lasts[u])
                distance = ends.lengths[u] + ends.lengths[v] - runs
                made[u, v] = distance
                made[v, u] = distance

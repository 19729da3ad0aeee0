"""Distances of all pairs of words (Definition 24) on the CPU.

The ordered conjugates are walked through once, each with its colour, the word that it is of. Of two words u and v the
conjugates of v before which u came later than v are where the colour changes from u to v. So at a conjugate of v the
times at which words came last are compared with v's, a *line* of LANES words at once, and those that are later are
counted in v's row. Changes from v to u are as many, or one more or less, which the ends tell; and runs are changes and
one. So a row needs half of the words: its own line and those behind it, around the circle of lines.

That is N * m / 2 comparisons. Of many words, gaps are counted instead (`cpu_gaps.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint8, uint64
from warpseed.compute.machine import require_memory
from warpseed.compute.pipeline import check_wanted
from warpseed.compute.ranges import STEP, on_threads, spans_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.vectors import LANES, aligned_zeros, count_above
from warpseed.ebwt.cpu_gaps import Ends, Ranks, bytes_of_gaps, fill_by_gaps
from warpseed.ebwt.cpu_ranks import known_words, word_of
from warpseed.ebwt.fast import threads_for
from warpseed.ebwt.matrix import distance_type
from warpseed.ebwt.words import Words

__all__ = ["distances"]

_FEW_WORDS = 1000
"""Up to so many are compared; of more, gaps are counted, of which a word has less than 2^32."""
_SHORT_TIMES = 1 << 16
"""Times below this have 16 bits."""
_TILE = 1 << 20
"""Bytes of counts that a thread works on at once: they stay in the second-level cache."""
_COMPARED = 1 << 27
"""Numbers that are compared in one call, about."""
_MOST_COUNTED = 255
"""What a byte counts."""


def distances(words: Words, order: np.ndarray, *, threads: int = 1, watch: Stopwatch | None = None) -> np.ndarray:
    """δ of all pairs of words.

    Parameters
    ----------
    words : Words, m of them
    order : uint32[N] or uint64[N], the position of the conjugate of each rank, as `cpu.order_conjugates` gives it
    threads : CPU threads; the distances are the same for every number
    watch : takes the seconds of the stages ``colours`` and ``distances``

    Returns
    -------
    [m, m], as of `distance_type`, symmetric, 0 of a word and itself

    Raises
    ------
    MemoryLimitError : there is not enough memory
    """
    watch = watch or Stopwatch()
    count, size = len(words.offsets) - 1, len(order)
    threads = threads_for(size, threads)
    spans = spans_of(size, threads)
    # Words and times have one type.
    colour_type = np.dtype(np.uint16 if 2 * count < _SHORT_TIMES else np.uint32)
    by_gaps = count > _FEW_WORDS and words.lengths.max() < 1 << 32
    bytes_beside, fill = (bytes_of_gaps, fill_by_gaps) if by_gaps else (_bytes_of_changes, _fill_by_changes)
    made_type = np.dtype(distance_type(int(words.lengths.max())))
    needed = made_type.itemsize * count**2 + colour_type.itemsize * size + bytes_beside(count, size, threads)
    what = f"The distances of all pairs of {count:,} words take"
    require_memory(needed, what, "take fewer words, or a machine with more memory")
    with watch.stage("colours"):
        colours = np.empty(size, colour_type)
        known = known_words(words.offsets)
        ends = np.empty((len(spans), 2, count), np.int64)
        ends[:, 0], ends[:, 1] = size, -1
        on_threads(
            threads,
            lambda number: _find_colours(known, order, spans[number], colours, ends[number]),
            len(spans),
        )
    with watch.stage("distances"):
        made = np.zeros((count, count), made_type)
        tell = Ends(words.lengths, ends[:, 0].min(axis=0), ends[:, 1].max(axis=0))
        ranks = Ranks(colours, spans, ends[:, 1])
        fill(ranks, tell, threads, made)
    return made


def _bytes_of_changes(count: int, size: int, threads: int) -> int:
    """Of memory that the changes to so many words take, which have `size` ranks."""
    tiles = _tiles_of(count)
    row, width = tiles[-1][1], tiles[0][1]
    parts = _parts_of(len(spans_of(size, threads)), len(tiles), threads)
    return (len(parts) * row * _total_type(size).itemsize + threads * width) * LANES * count


def _fill_by_changes(ranks: Ranks, ends: Ends, threads: int, made: np.ndarray) -> None:
    """Distances of all pairs, [m, m], as `cpu_gaps.fill_by_gaps`."""
    count = made.shape[0]
    changes = _changes(ranks, threads)
    rows = spans_of(count, threads, max(1, STEP // count))
    on_threads(threads, lambda number: _fill(ends, rows[number], changes, made), len(rows))


def _total_type(size: int) -> np.dtype:
    """What counts up to so many."""
    return np.dtype(np.uint32 if size < 1 << 32 else np.uint64)


def _tiles_of(count: int) -> list[tuple[int, int]]:
    """Lines [first, last) of each word's row that are worked on together."""
    row = -(-count // LANES) // 2 + 1
    width = max(1, min(row, _TILE // (LANES * count)))
    return [(first, min(first + width, row)) for first in range(0, row, width)]


def _parts_of(spans: int, tiles: int, threads: int) -> list[tuple[int, int]]:
    """Spans [first, last) that are worked on one behind the other: of few tiles the threads share the ranks."""
    return spans_of(spans, min(-(-threads // tiles), spans), spans)


def _changes(ranks: Ranks, threads: int) -> np.ndarray:
    """Changes of colour to each word, from those of its row: uint32[m, …] or uint64[m, …]."""
    colours, spans, count = ranks.colours, ranks.spans, ranks.lasts.shape[1]
    lines, tiles, total_type = -(-count // LANES), _tiles_of(count), _total_type(len(colours))
    parts = _parts_of(len(spans), len(tiles), threads)
    totals = np.zeros((len(parts), count, tiles[-1][1] * LANES), total_type)
    tasks = [(tile, part) for tile in tiles for part in range(len(parts))]

    def count_tile(number: int) -> None:
        tile, part = tasks[number]
        first, last = parts[part]
        width = tile[1] - tile[0]
        counts = Counts(
            aligned_zeros(2 * lines * LANES, colours.dtype),
            aligned_zeros(count * width * LANES, np.dtype(np.uint8)),
            np.zeros(count, np.uint8),
            totals[part],
        )
        seen = ranks.lasts[:first].max(axis=0, initial=-1)
        for stamp, span in _blocks((spans[first][0], spans[last - 1][1]), seen, counts.times):
            for some in spans_of(span[1] - span[0], 1, max(1, _COMPARED // (width * LANES))):
                check_wanted()
                some = span[0] + some[0], span[0] + some[1]
                _count_changes(colours, some, stamp - span[0], tile, counts)
        _add_rows(tile, counts)

    on_threads(threads, count_tile, len(tasks))
    return totals[0] if len(parts) == 1 else totals.sum(axis=0, dtype=total_type)


class Counts(NamedTuple):
    """What a thread counts in."""

    times: np.ndarray
    """uint16[…] or uint32[…], when each word came last, twice, so that lines are read without regard to the end"""
    counted: np.ndarray
    """uint8[m * width], the changes to each word in its row, from the words of a tile's lines"""
    times_counted: np.ndarray
    """uint8[m], how often each word came since its row was added to the totals"""
    totals: np.ndarray
    """uint32[m, …] or uint64[m, …], the changes of whole rows"""


def _blocks(ranks: tuple[int, int], seen: np.ndarray, times: np.ndarray) -> Iterator[tuple[int, tuple[int, int]]]:
    """Ranks in blocks, and the time of the first of each; at its beginning `times` have the words in the order in which
    they came last, from 1 on, and 0 for those that have not come.

    Parameters
    ----------
    seen : int64[m], the rank at which each came last before the first block, or -1
    times : as of Counts, filled
    """
    latest = seen + 1
    count, again = len(seen), len(times) // 2
    block = (_SHORT_TIMES if times.itemsize == 2 else 1 << 32) - 1 - count
    for first in range(ranks[0], ranks[1], block):
        order = np.argsort(latest, kind="stable")
        renewed = np.empty(count, np.int64)
        renewed[order] = np.arange(1, count + 1)
        times[:count] = times[again : again + count] = np.where(latest > 0, renewed, 0)
        yield count + 1, (first, min(first + block, ranks[1]))
        latest = times[:count].astype(np.int64)


@scalar
def _find_colours(known, order, span, colours, first_last):
    """The words of the conjugates at the ranks [first, last), and in `first_last`, int64[2, m], where each comes first
    and last."""
    first, last = span
    for rank in range(first, last):
        word = word_of(known, int64(order[uint64(rank)]))
        colours[uint64(rank)] = word
        first_last[0, word] = min(first_last[0, word], int64(rank))
        first_last[1, word] = int64(rank)


@inlined
def _add_row(word, tile, counts):
    """Add what is counted of a word to its totals."""
    width = (tile[1] - tile[0]) * int64(LANES)
    row, column = word * width, tile[0] * int64(LANES)
    for i in range(width):
        counts.totals[word, column + i] += counts.counted[row + i]
        counts.counted[row + i] = 0
    counts.times_counted[word] = 0


@scalar
def _add_rows(tile, counts):
    """Add what is counted to the totals."""
    for word in range(counts.times_counted.shape[0]):
        _add_row(int64(word), tile, counts)


@scalar
def _count_changes(colours, span, stamp, tile, counts):
    """Count changes of colour at the ranks [first, last), from words of the lines [first, last) of each row.

    Parameters
    ----------
    stamp : int64, is added to a rank for its time
    """
    lines = tile[1] - tile[0]
    width = lines * int64(LANES)
    again = int64(counts.times.shape[0]) >> int64(1)
    first, last = span
    for rank in range(first, last):
        word = int64(colours[uint64(rank)])
        before = counts.times[uint64(word)]
        counts.times[uint64(word)] = rank + stamp
        counts.times[uint64(word + again)] = rank + stamp
        begin = word // int64(LANES) * int64(LANES) + tile[0] * int64(LANES)
        row = word * width
        for line in range(lines):
            at = int64(line) * int64(LANES)
            count_above(counts.times, begin + at, before, counts.counted, row + at)
        counts.times_counted[uint64(word)] += uint8(1)
        if counts.times_counted[uint64(word)] == uint8(_MOST_COUNTED):
            _add_row(word, tile, counts)


@scalar
def _fill(ends, rows, changes, made):
    """Distances of the words of rows [first, last) and all before them, from changes, uint32[m, …]."""
    first, last = rows
    lines = (made.shape[0] + int64(LANES) - int64(1)) // int64(LANES)
    for word in range(first, last):
        for other in range(word):
            u, v = int64(other), int64(word)
            behind = (u // int64(LANES) - v // int64(LANES) + lines) % lines
            if behind > lines // int64(2):
                u, v = v, u
                behind = lines - behind
            runs = int64(2) * int64(changes[v, behind * int64(LANES) + u % int64(LANES)]) + int64(1)
            if ends.firsts[v] < ends.firsts[u]:
                runs += int64(ends.lasts[u] > ends.lasts[v])
            else:
                runs -= int64(ends.lasts[v] > ends.lasts[u])
            distance = ends.lengths[u] + ends.lengths[v] - runs
            made[u, v] = distance
            made[v, u] = distance

"""What one device counts: in how many gaps of a word each of WORDS others, the members, is.

Ranks are laid out by words, and cut in *stretches*. What is counted for some members is so in one *slab* of stretches
after the other, whose sets take little memory (`gpu_sets.py`, `gpu_between.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpseed.compute.gpu import argsort, cupy, launch
from warpseed.compute.warp import BLOCK, LANES
from warpseed.ebwt.gpu_between import GAPS, count_between, count_warps, find_last, put_owners
from warpseed.ebwt.gpu_fast import cut_ranks, put_colours
from warpseed.ebwt.gpu_parts import Part, counted_chunks
from warpseed.ebwt.gpu_sets import (
    COUNTED,
    RANKS,
    WORDS,
    count_in_chunks,
    join_sets,
    make_sets,
    mask_members,
    take_all_members,
    take_members,
)

if TYPE_CHECKING:
    from warpseed.ebwt.gpu_order import DeviceWords

__all__ = [
    "Ranked",
    "bytes_of_sets",
    "colours_of",
    "colours_type",
    "count_gaps",
    "cut_words",
    "rank_words",
    "ranks_of_chunks",
]

_THREADS = 256
"""Of a block, where threads share nothing."""
_FEW_WORDS = 1 << 16
"""Their numbers have 16 bits, which are sorted in half the time."""
_LEAST_STRETCH = 1 << 16
_GAPS_OF_STRETCH = 192
"""Of each word in a stretch, about, where there are so many words that it is not the least."""
_SLAB = 1 << 23
"""Ranks of members in a slab, at most, where a stretch has fewer."""
_KEPT = 2
"""How many of the last slabs keep their sets on the device when members are counted in parts: a part is sent as soon as
it is counted in these, while other parts are still to be counted."""
_GAPS_OF_SET = 2
"""Times of the largest sets, at least, in gaps of words of one length: so two of them make nearly all gaps."""
_MOST_SETS = 1 << 15
"""Of the largest sets, in any gap: a warp looks at four of them at once."""


class Ranked(NamedTuple):
    """What the distances are counted from, on one device."""

    colours: Any
    """uint16[N] or uint32[N], the word of each rank"""
    ranks_by_word: Any
    """uint32[N], the ranks of each word's conjugates, ascending, one word behind the other"""
    cuts: Any
    """int64[m, stretches + 1], where a word's ranks of each stretch begin in it, and those of the last end"""
    firsts: Any
    """uint32[m], the first of each word's ranks"""
    lasts: Any
    """uint32[m], the last of them"""
    of_chunks: np.ndarray
    """int64[ceil(m / WORDS), stretches], on the host, how many ranks of each WORDS words there are in each stretch"""


def rank_words(colours: Any, offsets: Any) -> Ranked:
    """The ranks of each word, cut where stretches begin.

    Parameters
    ----------
    colours : uint16[N] or uint32[N], as of `colours_type`, the word of each rank
    offsets : int64[m + 1], where words begin, and the end of the last
    """
    of_chunks = ranks_of_chunks(colours, len(offsets) - 1)  # (first, so that the host waits no longer)
    return cut_words(colours, argsort(colours).astype(np.uint32), offsets, of_chunks)


def cut_words(colours: Any, ranks_by_word: Any, offsets: Any, of_chunks: np.ndarray) -> Ranked:
    """What `rank_words` returns, of ranks that are laid out by words. All are as of `Ranked`."""
    m = len(offsets) - 1
    stretch = _stretch_for(m)
    stretches = -(-len(colours) // stretch)
    cuts = cupy().empty((m, stretches + 1), np.int64)
    launch(cut_ranks, m * (stretches + 1), _THREADS, ranks_by_word, offsets, stretch, cuts)
    firsts, lasts = ranks_by_word[offsets[:-1]], ranks_by_word[offsets[1:] - 1]
    return Ranked(colours, ranks_by_word, cuts, firsts, lasts, of_chunks)


def colours_of(words: DeviceWords, order: Any) -> Any:
    """The word of each rank, as `rank_words` takes them.

    order : uint32[k], positions
    """
    colours = cupy().empty(len(order), colours_type(len(words.offsets) - 1))
    launch(put_colours, len(order), _THREADS, words.words_of, order, colours)
    return colours


def colours_type(m: int) -> type[np.unsignedinteger[Any]]:
    """Of numbers of m words."""
    return np.uint16 if m <= _FEW_WORDS else np.uint32


def ranks_of_chunks(colours: Any, m: int) -> np.ndarray:
    """Of `Ranked`, for m words."""
    stretch = _stretch_for(m)
    stretches = -(-len(colours) // stretch)
    if m <= WORDS:
        return np.diff(np.minimum(np.arange(stretches + 1) * stretch, len(colours)))[None]
    counted, blocks = cupy().zeros((-(-m // WORDS), stretches), np.uint64), -(-stretch // COUNTED)
    launch(count_in_chunks, stretches * blocks * BLOCK, BLOCK, colours, stretch, blocks, counted)
    return np.asarray(counted.get()).astype(np.int64)


def _stretch_for(m: int) -> int:
    """Ranks of a stretch."""
    return max(_LEAST_STRETCH, _GAPS_OF_STRETCH * m)


def count_gaps(
    ranked: Ranked, parts: Sequence[Part], done: Callable[[Any, Part], None] = lambda counts, part: None
) -> Any:
    """In how many gaps of words members are.

    Parameters
    ----------
    parts : of the same members
    done : called with what is returned, and each of them in turn, when that was counted, and before the next one is

    Returns
    -------
    uint32[m, k], in how many gaps of each word, of those in the parts, each of the k members is, up to WORDS, where
    `is_counted`
    """
    m, first_word = len(ranked.cuts), parts[0].first_word
    counts = cupy().zeros((m, min(WORDS, m - first_word)), np.uint32)
    slabs, undivided = _slabs_of(ranked, first_word), Part(first_word, parts[0].begin, parts[-1].end)
    kept = _KEPT if len(parts) > 1 else 1
    for slab in slabs[:-kept]:
        _count_slab(ranked, slab, _make_sets(ranked, slab, first_word), undivided, counts)
    made = [_make_sets(ranked, slab, first_word) for slab in slabs[-kept:]]
    for part in parts:
        for slab, sets in zip(slabs[-kept:], made, strict=True):
            _count_slab(ranked, slab, sets, part, counts)
        done(counts, part)
    return counts


def _slabs_of(ranked: Ranked, first_word: int) -> list[_Slab]:
    """All ranks, in slabs of the members from one on."""
    members, stretch = ranked.of_chunks[first_word // WORDS], _stretch_for(len(ranked.cuts))
    return [
        _Slab(begin, end, begin * stretch, min(end * stretch, len(ranked.colours)), int(members[begin:end].sum()))
        for begin, end in _cut_in_slabs(members)
    ]


def _cut_in_slabs(members: np.ndarray) -> list[tuple[int, int]]:
    """Stretches, [first, last), that have _SLAB members in all, at most, or of which one alone has more: about as many
    in each."""
    ends, slabs, begin = np.cumsum(members), [], 0
    wanted = int(ends[-1]) // -(-max(1, int(ends[-1])) // _SLAB) + int(members.max())
    while begin < len(members):
        most = min(wanted, _SLAB) + (ends[begin - 1] if begin else 0)
        end = max(begin + 1, int(np.searchsorted(ends, most, side="right")))
        slabs.append((begin, end))
        begin = end
    return slabs


class _Slab(NamedTuple):
    """Stretches whose sets are on the device at once."""

    begin: int
    """the first one"""
    end: int
    """the one behind the last"""
    first_rank: int
    """theirs"""
    end_rank: int
    """the rank behind their last"""
    size: int
    """ranks of members"""


class _Sets(NamedTuple):
    """What is made of the members of a slab."""

    members: Any
    times: Any
    """both as of `_take_members`"""
    sets: Any
    """uint64[levels, …], as of `make_sets` and `join_sets`"""
    last: Any
    """int64[m], the last rank of each word before the slab"""


def _make_sets(ranked: Ranked, slab: _Slab, first_word: int) -> _Sets:
    """The sets of a slab, of the members from one on."""
    m = len(ranked.cuts)
    members, times = _take_members(ranked.colours[slab.first_rank : slab.end_rank], first_word, slab.size, m)
    sets = cupy().empty((_levels_for(m, slab.size), slab.size // RANKS * LANES), np.uint64)
    launch(make_sets, sets.shape[1], _THREADS, members, sets.reshape(-1))
    for level in range(1, len(sets), 2):  # (each launch writes two)
        launch(join_sets, sets.shape[1], _THREADS, level, sets)
    last = cupy().empty(m, np.int64)
    launch(find_last, m, _THREADS, ranked.ranks_by_word, ranked.cuts, slab.begin, last)
    return _Sets(members, times, sets, last)


def _count_slab(ranked: Ranked, slab: _Slab, made: _Sets, part: Part, counts: Any) -> None:
    """Add what gaps of a part count that end in a slab."""
    xp, (members, times, sets, last), rows = cupy(), made, part.words
    warps, first_word = xp.empty((slab.end - slab.begin, len(rows)), np.int64), part.first_word
    launch(count_warps, warps.size, _THREADS, ranked.cuts, slab.begin, first_word, (*part.begin, *part.end), warps)
    ends, most = xp.cumsum(warps.reshape(-1), dtype=np.int64), _most_warps(ranked, slab, part)
    owners = xp.empty(most, np.uint32)
    launch(put_owners, len(ends), BLOCK, ends, owners)
    served_by = owners, ends, rows.start, len(rows)
    read = members, ranked.ranks_by_word, ranked.cuts, last, times, sets.reshape(-1), served_by
    how = first_word, slab.begin, slab.first_rank, sets.shape[1], len(sets)
    launch(count_between, most * LANES, BLOCK, *read, how, counts)


def _most_warps(ranked: Ranked, slab: _Slab, part: Part) -> int:
    """That serve the gaps of a part that end in a slab, at most: all of those that they have are full but for one of
    each stretch and word."""
    first, last = part.words.start // WORDS, -(-part.words.stop // WORDS)
    chunks = np.arange(first, last)[counted_chunks(len(ranked.of_chunks))[first:last, part.first_word // WORDS]]
    ranks, words = ranked.of_chunks[chunks, slab.begin : slab.end].sum(), min(len(chunks) * WORDS, len(part.words))
    return int(ranks) // GAPS + (slab.end - slab.begin) * words


def _take_members(colours: Any, first_word: int, size: int, m: int) -> tuple[Any, Any]:
    """The marks of the members at all times of a slab, uint16[size], and the times of its ranks, as of `time_of`."""
    xp = cupy()
    members = xp.empty(size, np.uint16)
    if m <= WORDS:
        launch(take_all_members, size, _THREADS, colours, members)
        return members, xp.empty(0, np.uint64)
    masks, counts = (xp.empty(-(-len(colours) // LANES), np.uint32) for _ in range(2))
    threads = -(-len(masks) // LANES) * LANES  # (whole warps)
    launch(mask_members, threads, BLOCK, colours, first_word, masks, counts)
    ends = xp.cumsum(counts, dtype=np.uint32)
    times = xp.empty(len(masks), np.uint64)
    launch(take_members, threads, BLOCK, colours, first_word, masks, ends, times, members)
    return members, times


def _levels_for(m: int, size: int) -> int:
    """Levels of sets of so many members' ranks: so many that two of the largest make a usual gap, and that no gap, of a
    word that hardly comes, takes more than _MOST_SETS of them."""
    level = 0
    while RANKS << level < _GAPS_OF_SET * min(m, WORDS) or size > _MOST_SETS * RANKS << level:
        level += 1
    return level + 1


def bytes_of_sets(ranks: int, m: int) -> int:
    """Of a device's memory that the sets of m words take at most, where they have so many ranks."""
    size = min(ranks, max(_SLAB, _stretch_for(m)))
    return min(ranks, _KEPT * size) // RANKS * LANES * 8 * _levels_for(m, size)

"""The ranks of each word, where several devices share the work: each lays out those of its own range of the order by
words, piece by piece, and tells the others, and each joins all pieces.

Of a piece the ranks of one word are a *run*. While a device sorts, the words of others' ranks come, and then each piece
as soon as it is there, on the stream of copies, which it waits for when its own pieces are laid out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, pairwise, zip_longest
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32
from warpseed.compute.device_batches import Meeting
from warpseed.compute.device_copies import copies_stream, from_device, wait_for_sent
from warpseed.compute.gpu import argsort, cuda, cupy, kernel, launch
from warpseed.compute.ranges import borders_of, spans_of
from warpseed.compute.searching import lower_bound
from warpseed.compute.warp import BLOCK, LANES
from warpseed.ebwt.gpu_counts import Ranked, cut_words, ranks_of_chunks

__all__ = ["find_runs", "join_runs", "place_runs", "rank_shared"]

_THREADS = 256
"""Of a block, where threads share nothing."""
_LEAST_PIECE, _MOST_PIECES = 1 << 22, 4
"""Ranks of a piece, at least, and pieces of a device, at most: the last one's way is all that others wait for."""
_JOINED = 64
"""Ranks of a lane, one warp's in a row."""
_AT_ONCE = 4
"""Of these so many are read before any is written: they wait for memory together."""


# ------------------------------------------------------------------------------------------------- kernels


@kernel
def find_runs(by_pieces, colours, borders, starts):
    """A thread a run, by pieces and then by words: where it begins; and one where the last of them ends.

    Parameters
    ----------
    by_pieces : uint32[N], of each piece, one behind the other, the ranks within it, by words
    colours : uint16[N] or uint32[N], the word of each rank
    borders : int64[pieces + 1], where pieces begin, and the end of the last
    starts : int64[pieces * words + 1]
    """
    i, runs, pieces = int64(cuda.grid(1)), int64(starts.shape[0]) - int64(1), int64(borders.shape[0]) - int64(1)
    if i == runs:
        starts[i] = borders[pieces]
    if i >= runs:
        return
    words = runs // pieces
    piece, word = i // words, i % words
    base = int64(borders[piece])
    first, last = base, int64(borders[piece + int64(1)])
    while first < last:
        middle = (first + last) >> int64(1)
        if int64(colours[base + int64(by_pieces[middle])]) < word:
            first = middle + int64(1)
        else:
            last = middle
    starts[i] = first


@kernel
def place_runs(starts, offsets, shifts):
    """A thread a word: how far each of its runs goes ahead, or back, so that all of them follow each other.

    Parameters
    ----------
    starts : as of `find_runs`
    offsets : int64[words + 1], where words begin, and the end of the last
    shifts : int64[pieces * words]
    """
    word, words = int64(cuda.grid(1)), int64(offsets.shape[0]) - int64(1)
    if word >= words:
        return
    to = int64(offsets[word])
    for run in range(word, int64(shifts.shape[0]), words):
        start = int64(starts[run])
        shifts[run] = to - start
        to += int64(starts[run + int64(1)]) - start


@scalar
def run_of(starts, run, place):
    """The run of a place, which is this one or one behind it: of those behind the nearest are looked at first."""
    runs, step = int64(starts.shape[0]) - int64(1), int64(1)
    while run + step < runs and int64(starts[run + step]) <= place:
        run += step
        step <<= int64(1)
    return lower_bound(starts, run + int64(1), min(run + step, runs), place + int64(1)) - int64(1)


@scalar
def put_rank(rank, place, runs, at, ranks_by_word):
    """Put the rank of a place where it belongs.

    Parameters
    ----------
    rank : uint32, within its piece
    runs : (starts, shifts, words), as of `join_runs`
    at, and what is returned : (run, behind, shift, base), int64: a run that is at or before this place, its end, how
        far it is shifted, and the first rank of its piece
    """
    run, behind, shift, base = at
    if place >= behind:  # (which is 0 before the first is looked for)
        starts, shifts, words = runs
        run = run_of(starts, run, place)
        behind, shift, base = int64(starts[run + int64(1)]), int64(shifts[run]), int64(starts[run - run % int64(words)])
    ranks_by_word[place + shift] = uint32(int64(rank) + base)
    return run, behind, shift, base


@kernel
def join_runs(by_pieces, starts, shifts, words, ranks_by_word):
    """A warp LANES * _JOINED ranks, LANES at a time, whatever runs they are in.

    Parameters
    ----------
    by_pieces, starts : as of `find_runs`
    shifts : as of `place_runs`
    words : how many
    ranks_by_word : uint32[N], of each word, one behind the other, its ranks, ascending
    """
    lane, step, count = int64(cuda.threadIdx.x) & int64(LANES - 1), int64(LANES), int64(by_pieces.shape[0])
    begin = (int64(cuda.grid(1)) - lane) * int64(_JOINED)
    place, end, runs = begin + lane, min(begin + int64(LANES * _JOINED), count), (starts, shifts, words)
    if place >= end:
        return
    first_run = lower_bound(starts, int64(0), int64(starts.shape[0]), begin + int64(1)) - int64(1)
    at = first_run, int64(0), int64(0), int64(0)
    while place < end:
        place_b = place + step
        place_c, place_d = place_b + step, place_b + int64(2) * step
        a, b = by_pieces[place], by_pieces[min(place_b, end - int64(1))]
        c, d = by_pieces[min(place_c, end - int64(1))], by_pieces[min(place_d, end - int64(1))]
        at = put_rank(a, place, runs, at, ranks_by_word)
        if place_b < end:
            at = put_rank(b, place_b, runs, at, ranks_by_word)
        if place_c < end:
            at = put_rank(c, place_c, runs, at, ranks_by_word)
        if place_d < end:
            at = put_rank(d, place_d, runs, at, ranks_by_word)
        place += int64(_AT_ONCE) * step


# ------------------------------------------------------------------------------------------------- the host's side


class Piece(NamedTuple):
    """Ranks that one device lays out by words."""

    ranks: slice
    """which of all"""
    by_words: Any
    """uint32[n], on that device, those within the piece"""
    laid_out: Any
    """the event behind which they are there"""


class _Pieces(NamedTuple):
    """What one device has of all ranks, while they are laid out."""

    colours: Any
    """uint16[N] or uint32[N], the word of each rank"""
    by_pieces: Any
    """uint32[N], as of `find_runs`"""
    borders: Any
    """int64[pieces + 1]"""
    own: list[Piece]
    """those that this device lays out"""


def rank_shared(
    colours: Sequence[Any], number: int, offsets: Any, meeting: Meeting, mark: Callable[[str], None], *, counts: bool
) -> Ranked | None:
    """As `rank_words`, by all devices of a step.

    Parameters
    ----------
    colours : uint16[…] or uint32[…] on each of them, the words of its range of ranks, one range behind the other
    number : of the current device among them
    offsets : int64[m + 1], where words begin, and the end of the last
    meeting : where they tell each other what they lay out. It holds that, and has to be kept until all of them are done
    mark : as of `marked_on_device`, of ``distances``, and of ``device_to_device``: what is waited for
    counts : whether this device has anything to count; else it only lays out its range

    Returns
    -------
    Ranked; None where it has not, or where another device has failed
    """
    pieces = _lay_out(colours, number)
    mark("distances")
    wait_for_sent()  # (for the words of others' ranks, also where nothing is counted)
    told = meeting.tell(number, pieces.own)
    if told is None or not counts:
        return None
    with copies_stream():  # (where the host does not wait for the sorts)
        of_chunks = ranks_of_chunks(pieces.colours, len(offsets) - 1)
    _take(pieces, [own for other, own in enumerate(told) if other != number])
    mark("device_to_device")
    return cut_words(pieces.colours, _joined(pieces, offsets), offsets, of_chunks)


def _lay_out(colours: Sequence[Any], number: int) -> _Pieces:
    """Lay out the current device's ranks by words, while the words of others' ranks come on the stream of copies."""
    xp, borders = cupy(), _borders_of([*map(len, colours)])
    count = borders[-1][-1]
    all_colours, by_pieces = xp.empty(count, colours[0].dtype), xp.empty(count, np.uint32)
    there = xp.asarray(np.unique(np.concatenate(borders)))
    copies, here = copies_stream(), xp.cuda.get_current_stream()
    copies.wait_event(here.record())
    with copies:
        for own, ends in zip(colours, borders, strict=True):
            from_device(own, all_colours[ends[0] : ends[-1]])
    pieces, first = list[Piece](), borders[number][0]
    for begin, end in pairwise(borders[number]):
        by_words = by_pieces[begin:end]
        by_words[:] = argsort(colours[number][begin - first : end - first])
        pieces.append(Piece(slice(begin, end), by_words, here.record()))
    return _Pieces(all_colours, by_pieces, there, pieces)


def _borders_of(counts: Sequence[int]) -> list[list[int]]:
    """Of each device, with so many ranks each, where its pieces begin among all ranks, and where the last one ends."""
    firsts = borders_of(np.array(counts)).tolist()
    spans = [spans_of(count, max(1, min(_MOST_PIECES, count // _LEAST_PIECE)), max(1, count)) for count in counts]
    return [[first, *(first + end for _, end in own)] for first, own in zip(firsts, spans, strict=False)]


def _take(pieces: _Pieces, others: Sequence[Sequence[Piece]]) -> None:
    """Copy what others lay out, in the order in which it is there; this thread's stream waits for it."""
    copies = copies_stream()
    with copies:
        for piece in filter(None, chain.from_iterable(zip_longest(*others))):
            copies.wait_event(piece.laid_out)
            from_device(piece.by_words, pieces.by_pieces[piece.ranks])
    wait_for_sent()


def _joined(pieces: _Pieces, offsets: Any) -> Any:
    """The ranks of each word, as of `Ranked`, when all pieces are there."""
    xp, m = cupy(), len(offsets) - 1
    runs = (len(pieces.borders) - 1) * m
    starts, shifts = xp.empty(runs + 1, np.int64), xp.empty(runs, np.int64)
    launch(find_runs, runs + 1, _THREADS, pieces.by_pieces, pieces.colours, pieces.borders, starts)
    launch(place_runs, m, _THREADS, starts, offsets, shifts)
    ranks_by_word = xp.empty(len(pieces.by_pieces), np.uint32)
    launch(join_runs, -(-len(ranks_by_word) // _JOINED), BLOCK, pieces.by_pieces, starts, shifts, m, ranks_by_word)
    return ranks_by_word

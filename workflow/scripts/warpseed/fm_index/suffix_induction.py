"""Sorting the suffixes of a packed text on the CPU: inducing those that begin one base before others.

Suffixes that begin with the same base are in the order of what follows it. So where the suffixes of one base x stand in
their rows, what begins one base before them comes in order, base by base, when they are read row by row. Bases are
taken in turn: of those that begin with x only the ones that have a base of a later turn behind it are sorted by
letters; the others have been induced by then, but for those with x again behind it. These begin one base before others
that begin with x, the longest runs of it last: before what comes before x^∞ from the first row on, before what comes
behind it from the last one on. That is six of sixteen pairs of first bases that are sorted, and a look at the base
before for the others.

What begins before the suffixes of a *group*, buckets that share all bases but the last, are whole buckets, so threads
induce from groups that have nothing in common, and know where to write.

Source: H. Itoh, H. Tanaka, An efficient method for in memory construction of suffix arrays, 1999; J. Seward, On the
performance of BWT sorting algorithms, 2000; runs as in both; here by buckets, and with segments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations
from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64
from warpseed.compute.groups import TIED, set_state, state_of
from warpseed.compute.intrinsics import prefetch, trailing_zeros
from warpseed.compute.pipeline import check_wanted
from warpseed.compute.ranges import STEP, on_threads, spans_of
from warpseed.fm_index.suffix_buckets import mark_suffixes
from warpseed.fm_index.table import Marks, first_mark, mark_row, next_mark
from warpseed.fm_index.text import PackedText, segment_of

__all__ = ["Bucketed", "Turns", "induce", "mark_sorted"]

_AHEAD = 24
"""Rows between the one that is read and the one whose base before is asked for."""
_LEAST = 1 << 16
"""Rows that are worth a thread, at least."""
_EACH = np.uint64(0x5555555555555555)
"""A one in each of 32 bases."""


class Turns(NamedTuple):
    """The bases in the order in which what begins with them is sorted."""

    order: tuple[int, ...]

    @classmethod
    def of(cls, borders: np.ndarray) -> Turns:
        """With the fewest suffixes to be sorted by letters, where buckets of two bases or more begin somewhere."""
        counts = np.diff(borders[:: (len(borders) - 1) // 16]).reshape(4, 4)

        def sorted_by_letters(order: tuple[int, ...]) -> int:
            return int(sum(counts[base, later] for turn, base in enumerate(order) for later in order[turn + 1 :]))

        return cls(min(permutations(range(4)), key=sorted_by_letters))

    def behind(self, base: int) -> tuple[int, ...]:
        """The second bases of what is sorted by letters of those that begin with a base."""
        return self.order[self.order.index(base) + 1 :]


class Bucketed(NamedTuple):
    """An order of suffixes that is being made, by buckets."""

    prefix: int
    """bases that buckets share"""
    borders: np.ndarray
    """int64[4**prefix + 1], the rows where they begin"""
    rows: np.ndarray
    """uint32[n], positions"""
    marks: Marks
    """of what is induced only where none of the others is tied by less than it is marked by"""
    tied: np.ndarray
    """uint64[n // 32 + 1], of compute.groups, TIED or UNTIED; uint64[0]: nothing is tied"""


@inlined
def _base_before(text, wanted, position):
    """The base before a position, and 1 if it is one of the wanted ones, else 0: at the head of a segment there is
    none."""
    before = uint64(max(position - int64(1), int64(0)))
    base = (text.words[before >> uint64(5)] >> (uint64(62) - ((before & uint64(31)) << uint64(1)))) & uint64(3)
    is_wanted = (uint64(wanted) >> base) & uint64(position > int64(0))
    if uint64(wanted) & uint64(1) != uint64(0):
        # (A separator is an A in words.)
        segment = uint64(segment_of(text.segments, position))
        is_wanted &= uint64(int64(text.segments.text_start[segment]) != position)
    return base, is_wanted & uint64(1)


@inlined
def _ask_ahead(text, rows, row):
    """Ask for the base before what stands some rows behind, if it is there."""
    if row + int64(_AHEAD) < rows.shape[0]:
        prefetch(text.words, int64(rows[uint64(row + int64(_AHEAD))]) >> int64(5))


@inlined
def _tie(of, row, base, is_wanted, step, state):
    """Tie what begins before the suffix of a row, if it is wanted, with what was written last, if these are tied."""
    down = int64(step < int64(0))
    state[1, 4] += int64(state_of(of.tied, row + down) == uint64(0))
    if is_wanted != uint64(0):
        if state[1, base] == state[1, 4]:
            set_state(of.tied, state[0, base] + down, TIED)
        state[1, base] = state[1, 4]


@scalar
def _induce_groups(text, of, wanted, span, state):
    """Write what begins one base before the suffixes of the groups [first, last), and mark it; it is tied if these are.

    Parameters
    ----------
    of : Bucketed
    wanted : int64, a bit for each base that may come before, the lowest for A
    state : int64[2, 5], to work with: of each base the row that is written next, and what the last one was tied by, and
        at last what the row that is read is tied by

    Returns
    -------
    bool, whether these were as many as buckets have
    """
    first, last = span
    rows, borders, marks = of.rows, of.borders, of.marks
    shift, are_marked = uint64(2) * (uint64(of.prefix) - uint64(1)), marks.words.shape[0] > 0
    are_tied, state[1, 4] = of.tied.shape[0] > 0, int64(0)
    word, ones, code, fits = int64(0), uint64(0), int64(0), True
    for group in range(first, last):
        for base in range(4):
            state[0, base], state[1, base] = borders[(uint64(base) << shift) | uint64(group)], int64(-1)
        for bucket in range(int64(4) * group, int64(4) * (group + int64(1))):
            begin, top = borders[uint64(bucket)], (bucket & int64(3)) << (int64(2) * int64(marks.bases))
            if are_marked:
                word, ones = first_mark(marks, bucket)
            for row in range(begin, borders[uint64(bucket) + uint64(1)]):
                _ask_ahead(text, rows, row)
                position = int64(rows[uint64(row)])
                base, is_wanted = _base_before(text, wanted, position)
                at, to = state[0, base], (base << shift) | uint64(group)
                if are_tied:
                    _tie(of, row, base, is_wanted, int64(1), state)
                # (What is not wanted is written where it stands: no branch is to be guessed.)
                rows[uint64(at if is_wanted != uint64(0) else row)] = uint32(uint64(position) - is_wanted)
                state[0, base] = at + int64(is_wanted)
                if are_marked:
                    word, ones, code = next_mark(marks, bucket, word, ones, row - begin)
                    mark_row(marks, marks.begins[to], (top | code) >> int64(2), at - borders[to], is_wanted)
        for base in range(4):
            if (wanted >> base) & int64(1) != int64(0):
                fits &= state[0, base] == borders[((uint64(base) << shift) | uint64(group)) + uint64(1)]
    return fits


@inlined
def _run_before(text, position, run, most):
    """How many bases of a run end before a position, in its segment, `most` at most."""
    most = min(most, position - int64(text.segments.text_start[uint64(segment_of(text.segments, position))]))
    bases_of_run, length = uint64(_EACH) * uint64(run), int64(0)
    while length < most:
        bases = min(int64(32), most - length)
        length += bases
        difference = (fetch_word(text.words, position - length) ^ bases_of_run) & prefix_mask(bases)
        if difference != uint64(0):
            return length - bases + ((trailing_zeros(difference) - int64(2) * (int64(32) - bases)) >> int64(1))
    return length


@scalar
def _induce_run(text, of, wanted, run, step, state, budget):
    """Write what begins one base before the suffixes of the group of a run, and what begins before these, for about
    `budget` rows: with `step` 1 from the first row on as long as they come before the run without end, with -1 those
    behind it from the last one on.

    Parameters
    ----------
    run : its base
    state : int64[2, 5], of each base the row that is written next, and what the last one was tied by, and at last the
        row that is read, and what that is tied by; they move on

    Returns
    -------
    bool, whether no such row is left
    """
    ahead, row = state[0], state[0, 4]
    while (ahead[run] - row) * step > int64(0) and budget > int64(0):
        position = int64(of.rows[uint64(row)])
        if row + step == ahead[run]:
            # It is the last one, and so are those before it, up to the one that begins with the run. (Suffixes that
            # are tied have runs of the same length.)
            length = _run_before(text, position, run, budget)
            for i in range(int64(1), length + int64(1)):
                of.rows[uint64(row + i * step)] = uint32(position - i)
            row += length * step
            ahead[run] += length * step
            position -= length
            budget -= length
        soon = min(max(row + int64(_AHEAD) * step, int64(0)), int64(of.rows.shape[0]) - int64(1))
        prefetch(text.words, int64(of.rows[uint64(soon)]) >> int64(5))
        base, is_wanted = _base_before(text, wanted, position)
        if of.tied.shape[0] > 0:
            _tie(of, row, base, is_wanted, step, state)
        if is_wanted != uint64(0):
            of.rows[uint64(ahead[base])] = uint32(position - int64(1))
            ahead[base] += step
        row += step
        budget -= int64(1)
    state[0, 4] = row
    return (ahead[run] - row) * step <= int64(0)


def _repeated(base: int, count: int) -> int:
    """The number of a string of one base."""
    return base * (4**count - 1) // 3


def _levels(prefix: int, base: int) -> Iterator[list[tuple[int, int]]]:
    """The groups, in two ranges, of what begins with one base, of what begins with it twice, and so on, but for the run
    of it that is a group of its own."""
    for length in range(1, prefix - 1):
        each = 4 ** (prefix - 2 - length)
        first, run = 4 * each * _repeated(base, length), each * _repeated(base, length + 1)
        yield [(first, run), (run + each, first + 4 * each)]


def _cut(borders: np.ndarray, groups: tuple[int, int], threads: int) -> list[tuple[int, int]]:
    """A range of groups in ranges of about as many rows."""
    first, last = groups
    firsts = borders[4 * first : 4 * last + 1 : 4]
    if last == first or firsts[-1] == firsts[0]:
        return []
    rows = int(firsts[-1] - firsts[0])
    shares = [firsts[0] + end for _, end in spans_of(rows, max(1, min(threads, rows // _LEAST)))]
    return list(pairwise(np.unique([0, *np.searchsorted(firsts, shares)]) + first))


def mark_sorted(text: PackedText, of: Bucketed, numbers: Sequence[int] | np.ndarray, threads: int) -> None:
    """Mark the suffixes of some buckets, which stand in their rows, whoever sorted them."""

    def mark(number: int) -> None:
        bucket = int(numbers[number])
        span = int(of.borders[bucket]), int(of.borders[bucket + 1])
        mark_suffixes(text, of.prefix, span, of.rows, of.marks, int(of.marks.begins[bucket]))

    if len(of.marks.words):
        on_threads(threads, mark, len(numbers))


def _induce_from_run(text: PackedText, of: Bucketed, wanted: int, base: int, threads: int) -> bool:
    """Induce from the group of a run of one base, whose bucket among these is what begins before it, too. With A, what
    comes before it are the separators, too."""
    group = _repeated(base, of.prefix - 1)
    targets = np.arange(4) * 4 ** (of.prefix - 1) + group
    up = np.append(of.borders[targets], of.borders[4 * group] if base else 0)
    down = np.append(of.borders[targets + 1], of.borders[4 * group + 4]) - 1
    for step, ahead in ((1, up), (-1, down)):
        state = np.stack([ahead, np.array([-1, -1, -1, -1, 0])])
        while not _induce_run(text, of, wanted, base, step, state, STEP):
            check_wanted()
        ahead[:] = state[0]
    written = [target for target in range(4) if wanted >> target & 1]
    mark_sorted(text, of, targets[written], threads)
    return np.array_equal(up[written], down[written] + 1)


def _induce_from_level(text: PackedText, of: Bucketed, wanted: int, level: list[tuple[int, int]], threads: int) -> bool:
    """Induce from ranges of groups, as `_induce_groups`."""
    spans = [span for groups in level for span in _cut(of.borders, groups, threads)]

    def task(number: int) -> bool:
        return bool(_induce_groups(text, of, wanted, spans[number], np.empty((2, 5), np.int64)))

    return all(on_threads(threads, task, len(spans)))


def induce(text: PackedText, of: Bucketed, turns: Turns, threads: int) -> None:
    """Write the rows of all suffixes that are not sorted by letters, and mark them.

    Parameters
    ----------
    of : with separators, and those that are sorted, in their rows; of two bases or more. What begins one base before
        suffixes that are tied is tied, too, by one base more
    """
    fits = True
    for turn, base in enumerate(turns.order):
        wanted = sum(1 << later for later in turns.order[turn:])
        for level in _levels(of.prefix, base):
            fits &= _induce_from_level(text, of, wanted, level, threads)
        fits &= _induce_from_run(text, of, wanted, base, threads)
    if not fits:
        raise AssertionError("what is induced are other suffixes than buckets have")

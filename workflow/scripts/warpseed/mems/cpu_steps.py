"""A single read on the CPU, in steps of a fraction of a second that several threads share: a long one, one of low
complexity, or one whose matches do not fit together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpseed.compute.pipeline import check_wanted, ordered
from warpseed.compute.sink import NO_LIMIT, WHOLE_TEXT, Sink, limit_of
from warpseed.fm_index.layout import SeedIndex
from warpseed.mems import cpu_fast
from warpseed.mems.cpu_block import CHOOSE, NOTE, STORE, Block, bound_ends, join_strands, new_block, orient
from warpseed.mems.cpu_fast import scan_step
from warpseed.mems.fast import LONGEST_WORK, SEED_WORK, How, how_for
from warpseed.mems.matches import MATCH, MAXIMAL, MOST_OCCURRENCES, PAPER, PLACE_BITS, SUPER, Criteria
from warpseed.output.rows import Found, joined_parts
from warpseed.output.sorting import stable_order
from warpseed.sequences.packed import Packed
from warpseed.tasks import Room

__all__ = ["find_in_steps"]

_MOST_WORK = 1 << 21
"""Look-ups and candidates of a step."""
_STEP_ROOM = 1 << 16
"""Matches that a step has room for."""
_HELD = 1 << 20
"""Matches that are held at least until it is known which are wanted."""
_LEAST_PART, _LARGEST_PART = 1 << 12, 1 << 16
"""Bases of a part of a read, about."""
_SAMPLE, _SAMPLES = 1 << 16, 16
"""Bases of a read that are tried by each way, and the pieces that they are."""
_PARTS = 8
"""Parts for each thread, about."""
_LOW = np.uint64((1 << 32) - 1)


class _Part(NamedTuple):
    """What is left of a part of an oriented read."""

    strand: int
    begin: int
    end: int
    item: int
    row: int
    """as `warpseed.mems.cpu_fast.scan_seeds` takes them"""


class _Steps:
    """The steps of a read, taken from any of the threads.

    Parameters
    ----------
    read : Packed, a single read
    """

    def __init__(self, index: SeedIndex, read: Packed, criteria: Criteria, threads: int) -> None:
        self._fast = index.fast
        self._length = int(read.lengths[0])
        self._threads = threads
        self.how = how_for(criteria, index.table_length, index.rows)
        self._blocks = []
        for strand in range(criteria.strands):
            block = new_block(self._length, len(read.marks) == 0, noting=False)
            orient(read, 0, strand, block)
            self._blocks.append(block)
        noted = self._length + 1 if criteria.kind != MAXIMAL else 0
        self.ends = np.zeros((2, noted), np.int32)
        if criteria.kind != MAXIMAL and not self.how.longest:
            longest = self.how._replace(longest=True)
            # By longest matches a long run of a short unit takes its square: none of the pieces may be of one.
            by_seeds = self._pieces_within(SEED_WORK, self.how)
            if by_seeds <= _SAMPLES // 2 and self._pieces_within(LONGEST_WORK, longest) == _SAMPLES:
                self.how = longest
            self.ends[...] = 0

    def _pieces_within(self, work: int, how: How) -> int:
        """How many of _SAMPLES pieces from all over the read take no more work a base than that."""
        bases = min(self._length, _SAMPLE // _SAMPLES)
        nothing, most = np.empty(0, np.int64), work * bases // how.strands
        sink = Sink(np.empty(0, MATCH), nothing, nothing, NO_LIMIT, False, *WHOLE_TEXT, most)
        block, how, within = self._blocks[0]._replace(ends=self.ends), how._replace(kind=PAPER), 0
        for begin in np.linspace(0, self._length - bases, _SAMPLES, dtype=np.int64).tolist():
            place = begin, begin + bases, 0, 0, True, most
            _, behind, _, _ = scan_step(self._fast, how, block, self._length, 0, place, sink, NOTE)
            within += behind == begin + bases
        return within

    def _parts(self) -> Iterator[_Part]:
        share = self._length * len(self._blocks) // (_PARTS * self._threads)
        bases = max(1, min(max(share, _LEAST_PART), _LARGEST_PART) // self.how.step) * self.how.step
        for strand in range(len(self._blocks)):
            for begin in range(0, self._length, bases):
                yield _Part(strand, begin, min(begin + bases, self._length), 0, 0)

    def matches(self, deed: int, window: tuple[int, int] = WHOLE_TEXT) -> Iterator[np.ndarray]:
        """Matches that begin in a window of the text, some at a time, and what else is done with them."""
        # Each part notes ends of its own: strand by strand, as those of the paper's kind are.
        how = self.how._replace(kind=PAPER) if deed & NOTE and self.how.kind != MAXIMAL else self.how

        def run(part: _Part) -> tuple[np.ndarray, list[_Part] | None]:
            held: list[np.ndarray] = []
            oriented = self._blocks[part.strand]
            block = new_block(0, True)._replace(words=oriented.words, marks=oriented.marks, ends=self.ends)
            # A part goes on here until its matches should be taken: what waits behind it waits for nothing else.
            while part.begin < part.end and sum(map(len, held)) < _STEP_ROOM:
                hits, part = self._step(how, part, block, deed, window)
                held.append(hits)
            return joined_parts(held, MATCH), [part] if part.begin < part.end else None

        return ordered(self._parts(), run, self._threads)

    def _step(
        self, how: How, part: _Part, block: Block, deed: int, window: tuple[int, int]
    ) -> tuple[np.ndarray, _Part]:
        """The matches of a step, and what is left of its part."""
        check_wanted()
        nothing = np.empty(0, np.int64)
        room = np.empty(_STEP_ROOM if deed & STORE else 0, MATCH)
        sink = Sink(room, nothing, nothing, NO_LIMIT, True, *window, _MOST_WORK)
        place = part.begin, part.end, part.item, part.row, True, _MOST_WORK
        used, begin, item, row = cpu_fast.scan_step(
            self._fast, how, block, self._length, part.strand, place, sink, deed
        )  # fmt: skip
        return room[:used].copy(), part._replace(begin=begin, item=item, row=row)

    def bound(self) -> None:
        """When all ends are noted: what the end of a match that is wanted must be."""
        if self.how.kind == SUPER:
            join_strands(self.ends, self._length)
        bound_ends(self.how, self.ends, self._length)

    def chosen(self, hits: np.ndarray) -> np.ndarray:
        """Those of all matches that are wanted."""
        return hits[: cpu_fast.choose(self.how, self.ends, self._length, hits, 0, len(hits))]


def _all_wanted(steps: _Steps, whole: bool, room: int) -> np.ndarray | None:
    """Note ends, and choose the matches that are wanted; None where these have to be found once more."""
    hold = whole and not steps.how.longest
    held: list[np.ndarray] | None = [] if hold else None
    total = 0
    for part in steps.matches(NOTE | STORE if hold else NOTE):
        total += len(part)
        if held is not None:
            held.append(part)
            held = held if total <= max(room, _HELD) else None
    steps.bound()
    return None if held is None else steps.chosen(joined_parts(held, MATCH))


def _occurrences(steps: _Steps, deed: int, hits: np.ndarray, whole: bool) -> np.ndarray:
    """How many matches of the read have the same part of it, int64[h]; `whole`: these are all."""
    parts, which, counts = np.unique(hits["span"], return_inverse=True, return_counts=True)
    if not whole and len(parts):
        counts = np.zeros(len(parts), np.int64)
        for others in steps.matches(deed):
            at = np.minimum(np.searchsorted(parts, others["span"]), len(parts) - 1)
            counts += np.bincount(at[parts[at] == others["span"]], minlength=len(parts))
    return counts[which]


def find_in_steps(
    index: SeedIndex,
    read: Packed,
    criteria: Criteria,
    room: Room,
    *,
    threads: int = 1,
    max_hits: int | None = None,
    count_only: bool = False,
) -> Found:
    """The matches of a single read that begin in a part of the text, in output order; none, not even a count, where
    they have no room. A limit on hits is for the whole text."""
    steps, whole = _Steps(index, read, criteria, threads), room.text == WHOLE_TEXT
    limit = limit_of(max_hits) if whole else NO_LIMIT
    hold = not count_only or criteria.max_occurrences != NO_LIMIT
    hits, deed = None, STORE
    if criteria.kind != MAXIMAL:
        hits, deed = _all_wanted(steps, whole, room.results), STORE | CHOOSE
    nothing = np.empty(0, MATCH)
    total = 0
    if hits is None:
        parts: list[np.ndarray] = []
        for part in steps.matches(deed, room.text):
            total += len(part)
            if total > room.results and limit == NO_LIMIT:
                return Found(nothing, np.empty(0, np.int64), 0, 0)
            if hold and total <= min(room.results, limit):
                parts.append(part)
        hits = joined_parts(parts, MATCH)
    else:
        total = len(hits)
    if total > limit:
        return Found(nothing, np.zeros(1, np.int64), 1, total)
    if not hold:
        return Found(nothing, np.array([total]), 0, 0)
    if total > room.results:
        return Found(nothing, np.empty(0, np.int64), 0, 0)
    occurrences = _occurrences(steps, deed, hits, whole)
    rare = occurrences <= criteria.max_occurrences
    hits, occurrences = hits[rare], np.minimum(occurrences[rare], MOST_OCCURRENCES).astype(np.uint64)
    order = stable_order(hits["place"], hits["span"] >> np.uint64(32), hits["span"] & _LOW)
    hits["place"] |= occurrences << np.uint64(PLACE_BITS)
    return Found(nothing if count_only else hits[order], np.array([len(hits)]), 0, total - len(hits))

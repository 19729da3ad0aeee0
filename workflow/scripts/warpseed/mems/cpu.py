"""The fast tier on the CPU: ranges of reads, one range a task, any number of threads, results in query order."""

from __future__ import annotations

from functools import partial

from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.layout import SeedIndex
from warpseed.mems import cpu_fast
from warpseed.mems.fast import how_for
from warpseed.mems.matches import MATCH, Criteria
from warpseed.output.collect import RangeSearch
from warpseed.output.rows import Found
from warpseed.sequences.packed import Packed
from warpseed.tasks import Room

__all__ = ["find_fast", "find_first_fast"]

_GUESS = 64
"""Matches of a read that there is room for at first."""


def _range_search(index: SeedIndex, reads: Packed, criteria: Criteria) -> RangeSearch:
    """The fast tier's search of packed reads."""
    longest = int(reads.lengths.max(initial=1))
    new_block = partial(cpu_fast.new_block, longest, len(reads.marks) == 0)
    shared = index.fast, reads, how_for(criteria, index.table_length)
    return RangeSearch(cpu_fast.search_range, shared, new_block, len(reads.lengths), MATCH)


def find_fast(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria,
    *,
    threads: int = 1,
    max_hits: int | None = None,
    count_only: bool = False,
    watch: Stopwatch | None = None,
) -> Found:
    """All wanted matches of packed reads, or with `count_only` their numbers; see `warpseed.mems.find_mems`."""
    search = _range_search(index, reads, criteria)
    with (watch or Stopwatch()).stage("search"):
        return search.all(threads, max_hits=max_hits, guess=_GUESS, count_only=count_only)


def find_first_fast(
    index: SeedIndex, reads: Packed, criteria: Criteria, room: Room, *, max_hits: int | None, watch: Stopwatch
) -> Found:
    """The matches of the first reads of a set, as many as have room and are soon done; of none where those of the very
    first have no room."""
    search = _range_search(index, reads, criteria)
    with watch.stage("search"):
        return search.first(room.results, room.text, max_hits=max_hits)

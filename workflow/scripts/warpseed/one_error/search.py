"""Reads with a few edits, as the tasks of `warpseed.tasks` take them: packed, searched, handed on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from warpseed.batches import Options
from warpseed.compute.devices import devices_of, target_of
from warpseed.one_error.reads import BOUNDS
from warpseed.tasks import Room, Sequences

if TYPE_CHECKING:
    import numpy as np

    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.fm_index.layout import SeedIndex
    from warpseed.one_error.reads import Criteria
    from warpseed.output.columns import DeviceColumns
    from warpseed.output.hits import Hits
    from warpseed.output.lines import Line
    from warpseed.output.rows import Found, Result
    from warpseed.sequences.names import Names
    from warpseed.sequences.packed import NamedSet, Packed
    from warpseed.sequences.queries import Queries

__all__ = ["ReadSearch"]


class ReadSearch:
    """A search of reads (a `warpseed.tasks.Search`); what it is given has been checked.

    Parameters
    ----------
    index : SeedIndex
    criteria : Criteria
    options : Options
    best : bool
        Whether only the best placement of each locus is kept (`warpseed.one_error.best`).
    keep_reads : bool
        Whether hits come with their reads, which then have their qualities and letters.
    """

    def __init__(
        self, index: SeedIndex, criteria: Criteria, options: Options, *, best: bool = False, keep_reads: bool = False
    ) -> None:
        self.options = options
        self.text_length = index.rows
        self.on_device = target_of(options.device)[0] == "gpu"
        self.as_written = keep_reads
        self.bounds = BOUNDS
        self._index = index
        self._criteria = criteria
        self._best = best

    def queries(self, records: Queries, watch: Stopwatch) -> Sequences:
        """The reads: the records as they are."""
        return records

    def pack(self, queries: Queries, first: int) -> Packed:
        """The reads, packed."""
        from warpseed.one_error.reads import pack_reads

        return pack_reads(queries, first)

    def find(self, queries: Packed, room: Room, watch: Stopwatch) -> Found:
        """The placements of the first reads, on the CPU, in the thread that calls."""
        from warpseed.one_error import cpu

        find = {"fast": cpu.find_first_fast, "paper": cpu.find_first_paper}[self.options.tier]
        limit, edits = self.options.max_hits, self._criteria.max_edits
        if not self._best:
            return find(self._index, queries, self._criteria, room, max_hits=limit, watch=watch)
        from warpseed.one_error.best import best_of, widened

        wide = room._replace(text=widened(room.text, edits))
        found = find(self._index, queries, self._criteria, wide, max_hits=limit, watch=watch)
        with watch.stage("search"):
            return best_of(found, queries.lengths, self._index.segments, edits, room.text)

    def stream(
        self, sets: Generator[NamedSet, None, None], watch: Stopwatch, line: Line | None = None
    ) -> Iterator[Result]:
        """The placements of sets of reads, and lines of them, on the devices; of the best ones the host makes lines."""
        from warpseed.one_error.gpu import stream_placements

        found = partial(stream_placements, self._index, criteria=self._criteria, options=self.options, watch=watch)
        return self._best_of_stream(sets, found) if self._best else found(sets, line=line)

    def _best_of_stream(
        self,
        sets: Generator[NamedSet, None, None],
        found_of: Callable[[Generator[NamedSet, None, None]], Iterator[Result]],
    ) -> Iterator[Result]:
        """The best placements of what a device finds."""
        from warpseed.one_error.best import BestInOrder

        waiting: deque[np.ndarray] = deque()
        best = BestInOrder(self._index.segments, self._criteria.max_edits)
        begin = 0

        def noted() -> Generator[NamedSet, None, None]:
            with closing(sets):
                for reads in sets:
                    waiting.append(reads.packed.lengths)
                    yield reads

        with closing(found_of(noted())) as parts:  # type: ignore[type-var]
            for part in parts:
                found, continues, _ = part
                lengths, count = waiting[0], len(found.counts)
                yield part._replace(found=best.take(found, lengths[begin : begin + count], continues))
                begin += count - continues
                if begin == len(lengths):
                    waiting.popleft()
                    begin = 0

    def columns(self, queries: Packed, names_of: Callable[[], Names], watch: Stopwatch) -> DeviceColumns:
        """All placements of all reads, left on the GPU."""
        from warpseed.one_error.gpu import find_columns

        _, device, _, limit = self.options
        devices = devices_of(device)
        return find_columns(
            self._index, queries, self._criteria, names_of, max_hits=limit, watch=watch, devices=devices
        )

    def hits(self, queries: Queries, found: Found, first: int, continues: bool) -> Hits:
        """What was found, as hits."""
        from warpseed.one_error.output import make_hits

        return make_hits(self._index, queries, found, first, continues, keep_reads=self.as_written)

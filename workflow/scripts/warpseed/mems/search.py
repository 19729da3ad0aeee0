"""Long reads as `warpseed.tasks` takes them: packed, searched, handed on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING

from warpseed.batches import Options
from warpseed.compute.devices import devices_of, target_of
from warpseed.mems.reads import BOUNDS
from warpseed.tasks import Room, Sequences

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.fm_index.layout import SeedIndex
    from warpseed.mems.matches import Criteria
    from warpseed.output.columns import DeviceColumns
    from warpseed.output.hits import Hits
    from warpseed.output.lines import Line
    from warpseed.output.rows import Found, Result
    from warpseed.sequences.names import Names
    from warpseed.sequences.packed import NamedSet, Packed
    from warpseed.sequences.queries import Queries

__all__ = ["MemSearch"]


class MemSearch:
    """A search of long reads (a `warpseed.tasks.Search`); what it is given has been checked.

    Parameters
    ----------
    index : SeedIndex
    criteria : Criteria
    options : Options
    """

    def __init__(self, index: SeedIndex, criteria: Criteria, options: Options) -> None:
        self.options = options
        self.text_length = index.rows
        self.on_device = target_of(options.device)[0] == "gpu"
        self.as_written = False
        self.bounds = BOUNDS
        self._index = index
        self._criteria = criteria

    def queries(self, records: Queries, watch: Stopwatch) -> Sequences:
        """The reads: the records as they are."""
        return records

    def pack(self, queries: Queries, first: int) -> Packed:
        """The reads, packed."""
        from warpseed.mems.reads import pack_long_reads

        return pack_long_reads(queries, first)

    def find(self, queries: Packed, room: Room, watch: Stopwatch) -> Found:
        """The matches of the first reads, on the CPU; threads share a long one."""
        from warpseed.mems import cpu

        find = {"fast": cpu.find_first_fast, "paper": cpu.find_first_paper}[self.options.tier]
        _, _, threads, max_hits = self.options
        return find(self._index, queries, self._criteria, room, max_hits=max_hits, threads=threads, watch=watch)

    def stream(
        self, sets: Generator[NamedSet, None, None], watch: Stopwatch, line: Line | None = None
    ) -> Iterator[Result]:
        """The matches of sets of reads, on the devices; the host makes their lines."""
        from warpseed.mems.gpu import stream_matches

        return stream_matches(self._index, sets, self._criteria, self.options, watch=watch)

    def columns(self, queries: Packed, names_of: Callable[[], Names], watch: Stopwatch) -> DeviceColumns:
        """The matches of all reads, left on the GPU."""
        from warpseed.mems.gpu import find_columns

        _, device, _, limit = self.options
        devices = devices_of(device)
        return find_columns(
            self._index, queries, self._criteria, names_of, max_hits=limit, watch=watch, devices=devices
        )

    def hits(self, queries: Queries, found: Found, first: int, continues: bool) -> Hits:
        """What was found, as hits."""
        from warpseed.mems.output import make_hits

        return make_hits(self._index, queries, found, first, continues)

"""Reads with at most one edit as the line of `warpseed.line` takes them: packed, searched, handed on."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from warpseed.batches import Options, target_of
from warpseed.line import Room, Sequences

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.fm_index.layout import SeedIndex
    from warpseed.one_error.reads import Wanted
    from warpseed.output.hits import Hits
    from warpseed.output.rows import Found
    from warpseed.sequences.packed import Packed
    from warpseed.sequences.queries import Queries

__all__ = ["ReadSearch"]


class ReadSearch:
    """A search of reads (a `warpseed.line.Search`); what it is given has been checked.

    Parameters
    ----------
    index : SeedIndex
    wanted : Wanted
    options : Options
    """

    def __init__(self, index: SeedIndex, wanted: Wanted, options: Options) -> None:
        self.options = options
        self.text_length = index.rows
        self.on_device = target_of(options.device)[0] == "gpu"
        self._index = index
        self._wanted = wanted

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
        return find(self._index, queries, self._wanted, room, max_hits=self.options.max_hits, watch=watch)

    def stream(self, sets: Generator[Packed, None, None], watch: Stopwatch) -> Iterator[tuple[Found, bool]]:
        """The placements of sets of reads, on the devices."""
        from warpseed.compute.gpu import chosen_devices
        from warpseed.one_error.gpu import stream_placements

        tier, device, threads, limit = self.options
        devices = chosen_devices(target_of(device)[1])
        return stream_placements(
            self._index, sets, self._wanted, tier=tier, threads=threads, max_hits=limit, watch=watch, devices=devices
        )

    def hits(self, queries: Queries, found: Found, first: int, continues: bool) -> Hits:
        """What was found, as hits."""
        from warpseed.one_error.output import make_hits

        return make_hits(self._index, queries, found, first, continues)

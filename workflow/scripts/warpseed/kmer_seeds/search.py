"""k-mer seeds as the tasks of `warpseed.tasks` take them: cut, packed, searched, handed on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, NamedTuple

from warpseed.batches import Options
from warpseed.compute.devices import devices_of, target_of
from warpseed.kmer_seeds.kmers import BOUNDS
from warpseed.tasks import Room, Sequences

if TYPE_CHECKING:
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.fm_index.layout import SeedIndex
    from warpseed.output.columns import DeviceColumns
    from warpseed.output.hits import Hits
    from warpseed.output.lines import Line
    from warpseed.output.rows import Found, Result
    from warpseed.sequences.names import Names
    from warpseed.sequences.packed import NamedSet, Packed
    from warpseed.sequences.queries import Queries

__all__ = ["Cut", "KmerSearch"]


class Cut(NamedTuple):
    """How k-mers are cut from reads."""

    k: int
    """bases of a k-mer"""
    step: int
    """bases from one to the next"""


class KmerSearch:
    """A search of k-mers (a `warpseed.tasks.Search`); what it is given has been checked.

    Parameters
    ----------
    index : SeedIndex
    max_mismatches : int
    options : Options
    cut : Cut, or None where the records of a source are k-mers
    """

    def __init__(self, index: SeedIndex, max_mismatches: int, options: Options, cut: Cut | None) -> None:
        self.options = options
        self.text_length = index.rows
        self.on_device = target_of(options.device)[0] == "gpu"
        self.as_written = False
        self.bounds = BOUNDS
        self._index = index
        self._max_mismatches = max_mismatches
        self._cut = cut

    def queries(self, records: Queries, watch: Stopwatch) -> Sequences:
        """The k-mers: the records, or what is cut from them, which counts `reads` and those shorter than a k-mer."""
        if self._cut is None:
            return records
        from warpseed.sequences.cutting import EveryKmer

        kmers = EveryKmer(records, self._cut.k, self._cut.step)
        watch.count("reads", len(records))
        watch.count("short_reads", kmers.short_reads)
        return kmers

    def pack(self, queries: Queries, first: int) -> Packed:
        """The k-mers, packed."""
        from warpseed.kmer_seeds.kmers import pack_kmers

        return pack_kmers(queries, first)

    def find(self, queries: Packed, room: Room, watch: Stopwatch) -> Found:
        """The hits of the first k-mers, on the CPU, in the thread that calls."""
        from warpseed.kmer_seeds import cpu

        find = {"fast": cpu.find_first_fast, "paper": cpu.find_first_paper}[self.options.tier]
        limit = self.options.max_hits
        return find(self._index, queries, self._max_mismatches, room, max_hits=limit, watch=watch)

    def stream(
        self, sets: Generator[NamedSet, None, None], watch: Stopwatch, line: Line | None = None
    ) -> Iterator[Result]:
        """The hits of sets of k-mers, and lines of them, on the devices."""
        from warpseed.kmer_seeds.gpu import stream_hits

        return stream_hits(self._index, sets, self._max_mismatches, self.options, line=line, watch=watch)

    def columns(self, queries: Packed, names_of: Callable[[], Names], watch: Stopwatch) -> DeviceColumns:
        """The hits of all k-mers, left on the GPU."""
        from warpseed.kmer_seeds.gpu import find_columns

        _, device, _, limit = self.options
        devices = devices_of(device)
        return find_columns(
            self._index, queries, self._max_mismatches, names_of, max_hits=limit, watch=watch, devices=devices
        )

    def hits(self, queries: Queries, found: Found, first: int, continues: bool) -> Hits:
        """What was found, as hits."""
        from warpseed.kmer_seeds.output import make_hits

        return make_hits(self._index, queries, found, first, continues)

"""A data set in every tier, on every device and number of threads: the cells of a table, each of which is timed.

A system says which items it has, where each applies, and what a cell runs; how cells come about is said here.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from warpseed.batches import Options, Settings
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.store import open_index
from warpseed.measure.numbered import write_numbered
from warpseed.measure.timing import Run, Side, add_total, side_fields, where_taken
from warpseed.output.rows import Found
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries

__all__ = ["Cell", "DataSet", "time_cells"]


class DataSet(NamedTuple):
    """Queries, and what the records call them."""

    system: str
    case: str
    parameters: str
    """such as 'k=20; mismatches=1'"""
    queries: Queries
    """named by number (`warpseed.measure.numbered`)"""
    max_hits: int | None = None


@dataclass(frozen=True)
class Cell:
    """One cell of a table: what is run, and where."""

    item: str
    index: SeedIndex
    folder: str
    """of the index"""
    load: float
    """seconds that opening it took"""
    queries: Queries
    source: str | Queries
    """where the same queries are read from"""
    options: Options
    output: Path
    """the files of what writes some: a number goes behind the stem of the name, and it gets an ending"""
    fields: Mapping[str, Any]
    """columns of its records"""

    def packed(self, pack: Callable[[Queries], Packed]) -> Packed:
        """The queries as `pack` makes them, where the device takes them from."""
        return where_taken(pack(self.queries), self.options)

    def find(
        self,
        find_function: Callable[[str, str], Callable[..., Found]],
        packed: Packed,
        asked: Any,
        watch: Stopwatch,
        **more: Any,
    ) -> Found:
        """What the tier's search on this device finds of packed queries.

        Parameters
        ----------
        find_function : the system's, of tier and device
        asked : its third argument
        more : other arguments than the options, by name
        """
        tier, device, threads, max_hits = self.options
        find = find_function(tier, device)
        return find(self.index, packed, asked, threads=threads, max_hits=max_hits, watch=watch, **more)

    def few(self, count: int) -> Cell:
        """What warms this one up: a few of the queries on the CPU; on a device all, as memory is taken then."""
        if self.options.device != "cpu":
            return self
        some = self.queries.slice(0, count)
        return replace(self, queries=some, source=some)

    def side(self, run_of: Callable[[Cell], Run], few: int, *, rate_unit: str = "", has_total: bool = False) -> Side:
        """What is timed.

        Parameters
        ----------
        run_of : function of a cell that gives its run
        few : queries of the warm-up on the CPU
        rate_unit : as that of Side
        has_total : whether the run adds its `total` itself
        """
        run, some = run_of(self), self.few(few)
        warm_up: Callable[[Stopwatch], object] = run if some is self else run_of(some)
        if self.options.gpus > 1:
            warm_up = partial(_twice, warm_up)
        return Side(run if has_total else add_total(run), warm_up, self.fields, {"load": self.load}, rate_unit)


def _twice(run: Callable[[Stopwatch], object], watch: Stopwatch) -> None:
    """In the first run one GPU may do all the work while the index comes to another, which then is not warm."""
    for _ in range(2):
        run(watch)


def time_cells(
    data: DataSet,
    index: str | os.PathLike[str],
    settings: Settings,
    *,
    items: Iterable[str],
    applies: Callable[[str, Options], bool],
    records_of: Callable[[Cell], list[dict[str, Any]]],
) -> list[dict[str, Any]]:
    """Time a data set in every tier, on every device and number of threads.

    Parameters
    ----------
    index : folder of an index
    items : names of what is timed
    applies : whether an item is timed with such options
    records_of : function of a cell that times it and gives its records

    Returns
    -------
    list of records (see `warpseed.measure.records.RECORD_COLUMNS`)
    """
    watch = Stopwatch()
    with watch.stage("load"):
        opened = open_index(index)
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        source, output = write_numbered(data.queries, Path(folder)), Path(folder) / "results"
        for item in items:
            for options in settings.options(data.max_hits):
                if not applies(item, options):
                    continue
                tier, device, threads, _ = options
                own = side_fields(data.system, tier=tier, device=device, threads=threads)
                fields = {"item": item, **own, "case": data.case, "parameters": data.parameters}
                load = watch.seconds["load"]
                records += records_of(
                    Cell(item, opened, os.fspath(index), load, data.queries, source, options, output, fields)
                )
    return records

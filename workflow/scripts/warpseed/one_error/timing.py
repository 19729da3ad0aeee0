"""What is timed of reads with one error: paper 001's Tables 4 and 5 and Figures 5 to 7, and measurements of our own.

`fixed_slots` has reads in memory and results in memory; its `total` is the sum of copies and kernel, as printed.
`profile` is the paper's way from file to file, `file_to_file` and `file_to_bam` ours, from FASTQ to TSV and BAM; how
runs are timed is `warpseed.measure`'s.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from warpseed.batches import Options, Settings
from warpseed.compute.devices import devices_of
from warpseed.compute.ranges import borders_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.store import open_index
from warpseed.measure.cells import Cell, DataSet, time_cells
from warpseed.measure.numbered import number_queries
from warpseed.measure.peers.process import HitLines
from warpseed.measure.records import join_parameters
from warpseed.measure.searches import file_to_file, in_memory, outcome_of_file
from warpseed.measure.timing import Outcome, Run, Side, time_sides
from warpseed.one_error import cpu, find_function, read_search
from warpseed.one_error.bam import bam_format
from warpseed.one_error.floors import measure_limits, time_blocks
from warpseed.one_error.output import LINES, PLACEMENT_ROW, make_hits
from warpseed.one_error.paper import READS_A_LAUNCH, RESULT_BYTES
from warpseed.one_error.reads import Criteria, pack_reads
from warpseed.one_error.results import digest_results, fullest_launch, stored_in, write_results
from warpseed.one_error.search import ReadSearch
from warpseed.sequences.files import sha256_file
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries, read_queries

__all__ = ["FIGURE_SLOTS", "ITEMS", "TSV_HITS", "Case", "chosen_reads", "time_dataset"]

_WARM_UP_READS = 500
_UNMAPPED = 4
"""The flag of a BAM record."""
FIGURE_SLOTS = (1, 2, 4, 8, 16, 25, 32, 50, 64)
"""Slots of Figure 5, besides as many as the read with most results needs."""
_COPIES_AND_KERNEL = ("search", "host_to_device", "kernel", "device_to_host")

TSV_HITS = HitLines(
    {0: "query", 1: "contig", 2: "start", 3: "end", 4: "strand", 5: "distance", 6: "kind", 7: "offset"},
    decode={"kind": "=XDI*".index},
    row_type=np.dtype([field for field in PLACEMENT_ROW.descr if field[0] != "base"]),
    heading=1,
    as_long=False,
)
"""Our TSV of placements; the base of an edit does not stand there."""


class _Asked(NamedTuple):
    """What is asked of every read."""

    criteria: Criteria
    slots: int | None = None
    """results that it has room for, in the paper tier; None for all"""


class Case(NamedTuple):
    """A data set, what its records call it, and what it is searched for."""

    name: str
    reads: str
    """path of a FASTA or FASTQ file"""
    most: int | None
    """the first so many reads; None for all"""
    length: tuple[int, int] | None
    """only reads of so many bases, the smallest and the largest number; None for all"""
    criteria: Criteria
    slots: Sequence[int]
    """of Tables 4 and 5; the profile has the last"""
    block_sizes: Sequence[int]
    """of Figure 7"""


def chosen_reads(path: str, count: int | None, length: tuple[int, int] | None) -> Queries:
    """The reads of a file that are timed, named 0, 1, 2, …

    Raises
    ------
    InputError : there is none
    """
    reads = read_queries(path, qualities=True)
    if length is not None:
        reads = _picked(reads, np.flatnonzero((reads.lengths >= length[0]) & (reads.lengths <= length[1])))
    if len(reads) == 0:
        none = "no reads" if length is None else f"no reads of {length[0]} to {length[1]} bases"
        raise InputError(f"{path}: there are {none} to be timed; name another read set or other lengths.")
    return number_queries(reads.slice(0, len(reads) if count is None else count))


def _picked(reads: Queries, chosen: np.ndarray) -> Queries:
    """Some of the reads, without their names."""
    lengths = reads.lengths[chosen]
    offsets = borders_of(lengths)
    bases = np.arange(offsets[-1]) + np.repeat(reads.offsets[chosen] - offsets[:-1], lengths)
    qualities = None if reads.qualities is None else reads.qualities[bases]
    nameless = np.zeros(len(chosen) + 1, np.int64)
    return Queries(reads.codes[bases], offsets, np.empty(0, np.uint8), nameless, reads.source, qualities)


def _searched(cell: Cell, index: SeedIndex, reads: Packed, asked: _Asked, watch: Stopwatch) -> cpu.PaperResults:
    """What the paper tier finds before it locates."""
    (criteria, slots), threads = asked, cell.options.threads
    if cell.options.device == "cpu":
        with watch.stage("search"):
            return cpu.search_paper(index, reads, criteria, slots=slots, threads=threads)
    from warpseed.one_error import gpu

    devices = devices_of(cell.options.device)
    return gpu.search_paper(index, reads, criteria, slots=slots, threads=threads, watch=watch, devices=devices)


def _new_search(cell: Cell, asked: _Asked, *, best: bool = False) -> ReadSearch:
    """The search of the command line, from file to file: of every placement, or of the best ones for BAM."""
    edits, strands = asked.criteria
    report = "best" if best else "all"
    return read_search(
        cell.index, max_edits=edits, both_strands=strands == 2, report=report, keep_reads=best,
        **cell.options._asdict(),
    )  # fmt: skip


def _of_results(searched: cpu.PaperResults) -> Outcome:
    return Outcome(len(searched.counts), int(searched.stored.sum()), digest_results(searched))


def _fixed_slots(cell: Cell, asked: _Asked) -> Run:
    """Algorithm 3 for reads in memory, results to memory; `total` is what the paper adds up."""
    packed = pack_reads(cell.queries)

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        searched = _searched(cell, cell.index, packed, asked, watch)
        watch.add("total", sum(watch.seconds.get(stage, 0.0) for stage in _COPIES_AND_KERNEL))
        return lambda: _of_results(searched)

    return run


def _profile(cell: Cell, asked: _Asked) -> Run:
    """All that the paper's program does, one step after the other; its O is our forward BWT."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        with watch.stage("read_index"):
            mapped = open_index(cell.folder, check=False)
            arrays = {name: np.array(array) for name, array in mapped.arrays_of["forward"].items()}
            index = replace(mapped, arrays_of={"forward": arrays})
        with watch.stage("read"):
            reads = cell.source if isinstance(cell.source, Queries) else read_queries(cell.source)
        with watch.stage("pack"):
            packed = pack_reads(reads)
        searched = _searched(cell, index, packed, asked, watch)
        with watch.stage("write"):
            write_results(cell.output.with_suffix(".tsv"), reads, searched, threads=cell.options.threads)
        return lambda: _of_results(searched)

    return run


def _in_memory(cell: Cell, asked: _Asked) -> Run:
    """Reads that are packed already, placements to memory."""
    packed = cell.packed(pack_reads)
    return in_memory(
        lambda watch: cell.find(find_function, packed, asked.criteria, watch),
        lambda found: make_hits(cell.index, cell.queries, found),
    )


def _file_to_file(cell: Cell, asked: _Asked) -> Run:
    """FASTQ in, TSV out."""
    outcome = partial(outcome_of_file, lines=TSV_HITS, contigs=cell.index.names, lengths=cell.queries.lengths)
    search = partial(_new_search, cell, asked)
    return file_to_file(cell.source, search, cell.output.with_suffix(".tsv"), LINES["tsv"], outcome)


def _mapped_records(path: Path) -> int:
    """Records of a BAM file that lie somewhere."""
    with gzip.open(path) as handle:
        content = handle.read()
    at = 8 + int.from_bytes(content[4:8], "little")
    contigs, at = int.from_bytes(content[at : at + 4], "little"), at + 4
    for _ in range(contigs):
        at += 8 + int.from_bytes(content[at : at + 4], "little")
    mapped = 0
    while at < len(content):
        mapped += not content[at + 18] & _UNMAPPED
        at += 4 + int.from_bytes(content[at : at + 4], "little")
    return mapped


def _file_to_bam(cell: Cell, asked: _Asked) -> Run:
    """FASTQ in, BAM out, the best placement of each locus; the same file, byte by byte, is the same result."""

    def outcome(output: Path) -> Outcome:
        Path(f"{output}.bai").unlink()
        return Outcome(len(cell.queries), _mapped_records(output), sha256_file(output))

    search = partial(_new_search, cell, asked, best=True)
    return file_to_file(cell.source, search, cell.output.with_suffix(".bam"), bam_format(), outcome)


_RUNS: dict[str, Callable[[Cell, _Asked], Run]] = {
    "fixed_slots": _fixed_slots,
    "profile": _profile,
    "in_memory": _in_memory,
    "file_to_file": _file_to_file,
    "file_to_bam": _file_to_bam,
}
ITEMS = (*_RUNS, "results", "block_sizes", "on_device")
"""Tables 4 and 5, Figure 6, our own; Figures 5 and 7, and what the kernels of a GPU do with reads that lie there."""
_OF_THE_PAPER = ("fixed_slots", "block_sizes", "profile", "results")


def _applies(item: str, options: Options, fewest: int) -> bool:
    """The paper has one CPU thread; from file to file, and beside its limits, the fast tier goes its own way."""
    if item in ("block_sizes", "on_device") and options.gpus != 1:
        return False
    if item in _OF_THE_PAPER:
        return options.tier == "paper" and (options.device != "cpu" or options.threads == fewest)
    return item not in ("file_to_file", "file_to_bam") or options.tier == "fast"


def _slots_of(item: str, case: Case) -> Sequence[int | None]:
    """Results that reads have room for, one after the other; None for all."""
    if item == "fixed_slots":
        return case.slots
    return [case.slots[-1] if item in _OF_THE_PAPER else None]


def _side(cell: Cell, asked: _Asked) -> Side:
    def run_of(each: Cell) -> Run:
        return _RUNS[cell.item](each, asked)

    rate = "reads/s" if cell.item == "in_memory" else ""
    side = cell.side(run_of, _WARM_UP_READS, rate_unit=rate, has_total=cell.item in _OF_THE_PAPER)
    if cell.item != "profile":
        return side
    # It brings an index of its own to the device each time, and opens it.
    return replace(side, warm_up=lambda _: side.warm_up(Stopwatch()), once={})


def _result_rows(cell: Cell, asked: _Asked) -> list[dict[str, Any]]:
    """Figure 5: of each number of slots the results that it keeps, and the memory for those of a launch of reads."""
    searched = _searched(cell, cell.index, pack_reads(cell.queries), asked, Stopwatch())
    counts = searched.counts
    most = int(counts.max(initial=1))
    parameters = cell.fields["parameters"]
    what = {"stage": "-", "queries": len(counts), "results": int(counts.sum()), "digest": digest_results(searched)}
    rows = []
    for slots in (*(slots for slots in FIGURE_SLOTS if slots < most), most):
        kept = fullest_launch(counts, slots)
        launch = min(len(counts), READS_A_LAUNCH)
        named = join_parameters({"slots": slots, "all": int(slots == most), "launch": launch})
        shared = {**cell.fields, **what, "parameters": f"{named}; {parameters}"}
        rows += [
            {**shared, "metric": "count", "value": stored_in(counts, slots), "unit": "results"},
            {**shared, "metric": "memory", "value": slots * RESULT_BYTES * launch, "unit": "bytes"},
            {**shared, "metric": "compact_memory", "value": kept * RESULT_BYTES, "unit": "bytes"},
        ]
    return rows


def time_dataset(
    index: str | os.PathLike[str], case: Case, settings: Settings, *, items: Iterable[str], repeats: int
) -> list[dict[str, Any]]:
    """Time one data set in every tier, on every device and number of threads.

    Parameters
    ----------
    index : folder of an index
    case : Case
    settings : Settings
    items : which of ITEMS to fill; one that needs a GPU has no records without it
    repeats : runs of each after its warm-up

    Returns
    -------
    list of records (see `warpseed.measure.records.RECORD_COLUMNS`), one for each stage and repeat
    """
    searched = {"edits": case.criteria.max_edits, "strands": case.criteria.strands}
    reads = chosen_reads(case.reads, case.most, case.length)
    data = DataSet("one_error", case.name, join_parameters(searched), reads)

    def records_of(cell: Cell) -> list[dict[str, Any]]:
        if cell.item == "on_device":
            return measure_limits(cell.index, reads, case.criteria, repeats, cell.fields)
        if cell.item == "block_sizes":
            last, sizes = case.slots[-1], case.block_sizes
            return time_blocks(cell.index, reads, case.criteria, repeats, cell.fields, slots=last, sizes=sizes)
        if cell.item == "results":
            return _result_rows(cell, _Asked(case.criteria, max(case.slots)))
        rows: list[dict[str, Any]] = []
        for slots in _slots_of(cell.item, case):
            named = join_parameters(searched if slots is None else {"slots": slots, **searched})
            rows += time_sides([_side(cell, _Asked(case.criteria, slots))], repeats, {"parameters": named})
        return rows

    fewest = min(settings.threads)
    return time_cells(
        data, index, settings, items=items, records_of=records_of,
        applies=lambda item, options: _applies(item, options, fewest),
    )  # fmt: skip

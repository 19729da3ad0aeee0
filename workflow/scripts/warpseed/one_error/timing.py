"""What is timed of reads with one error: paper 001's Tables 4 and 5 and Figures 5 to 7, and measurements of our own.

`fixed_slots` has reads in memory and results in memory; its `total` is the sum of copies and kernel, as printed.
`profile` is the paper's way from file to file, `file_to_file` and `file_to_bam` ours, from FASTQ to TSV and BAM; how
runs are timed is `warpseed.measure.timing`'s.
"""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from warpseed.batches import Options, Settings, target_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.store import open_index
from warpseed.measure.files import file_to_file
from warpseed.measure.peers.process import HitLines, number_queries, parse_hits
from warpseed.measure.records import join_parameters
from warpseed.measure.timing import Outcome, Run, Side, add_total, side_fields, time_sides
from warpseed.one_error import cpu, read_search
from warpseed.one_error.bam import bam_format
from warpseed.one_error.floors import measure_limits, time_blocks
from warpseed.one_error.output import LINES, PLACEMENT_ROW, make_hits
from warpseed.one_error.paper import READS_A_LAUNCH, RESULT_BYTES
from warpseed.one_error.reads import Wanted, pack_reads
from warpseed.one_error.results import (
    digest_results,
    fullest_launch,
    stored_in,
    write_results,
)
from warpseed.one_error.search import ReadSearch
from warpseed.output.rows import Found, digest_rows
from warpseed.sequences.files import sha256_file
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries, offsets_of, read_queries, write_fasta, write_fastq

__all__ = ["FIGURE_SLOTS", "ITEMS", "TSV_HITS", "Case", "chosen_reads", "time_dataset", "write_numbered"]

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


class Case(NamedTuple):
    """A data set, what its records call it, and what it is searched for."""

    name: str
    reads: str
    """path of a FASTA or FASTQ file"""
    most: int | None
    """the first so many reads; None for all"""
    length: tuple[int, int] | None
    """only reads of so many bases, the smallest and the largest number; None for all"""
    wanted: Wanted
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
        wanted = "no reads" if length is None else f"no reads of {length[0]} to {length[1]} bases"
        raise InputError(f"{path}: there are {wanted} to be timed; name another read set or other lengths.")
    return number_queries(reads.slice(0, len(reads) if count is None else count))


def _picked(reads: Queries, chosen: np.ndarray) -> Queries:
    """Some of the reads, without their names."""
    lengths = reads.lengths[chosen]
    offsets = offsets_of(lengths)
    bases = np.arange(offsets[-1]) + np.repeat(reads.offsets[chosen] - offsets[:-1], lengths)
    qualities = None if reads.qualities is None else reads.qualities[bases]
    nameless = np.zeros(len(chosen) + 1, np.int64)
    return Queries(reads.codes[bases], offsets, np.empty(0, np.uint8), nameless, reads.source, qualities)


def write_numbered(reads: Queries, folder: Path) -> str:
    """Write reads as FASTQ, or without qualities as FASTA; the path."""
    path = folder / ("reads.fa" if reads.qualities is None else "reads.fq")
    (write_fasta if reads.qualities is None else write_fastq)(reads, path)
    return str(path)


@dataclass(frozen=True)
class _Job:
    """One cell of a table: what is run, and where."""

    index: SeedIndex
    folder: str
    """of the index"""
    reads: Queries
    file: str | Queries
    """where the same reads are read from"""
    wanted: Wanted
    options: Options
    output: Path
    """the files of what writes some: a number goes behind the stem of the name"""
    slots: int | None = None

    def search(self, index: SeedIndex, reads: Packed, watch: Stopwatch) -> Any:
        """What the paper tier finds before it locates."""
        threads = self.options.threads
        kind, devices = target_of(self.options.device)
        if kind == "cpu":
            with watch.stage("search"):
                return cpu.search_paper(index, reads, self.wanted, slots=self.slots, threads=threads)
        from warpseed.one_error import gpu

        return gpu.search_paper(
            index, reads, self.wanted, slots=self.slots, threads=threads, watch=watch, devices=devices
        )

    def find(self, reads: Packed, watch: Stopwatch) -> Found:
        """The placements that the tier finds on this device."""
        tier, device, threads, _ = self.options
        kind, devices = target_of(device)
        if kind == "cpu":
            on_cpu = cpu.find_fast if tier == "fast" else cpu.find_paper
            return on_cpu(self.index, reads, self.wanted, threads=threads, watch=watch)
        from warpseed.one_error import gpu

        on_gpu = gpu.find_fast if tier == "fast" else gpu.find_paper
        return on_gpu(self.index, reads, self.wanted, threads=threads, watch=watch, devices=devices)

    def searched(self, *, best: bool = False) -> ReadSearch:
        """The search of the command line, from file to file: of every placement, or of the best ones for BAM."""
        edits, strands = self.wanted
        report = "best" if best else "all"
        return read_search(
            self.index, max_edits=edits, both_strands=strands == 2, report=report, keep_reads=best,
            **self.options._asdict(),
        )  # fmt: skip


def _of_results(searched: cpu.PaperResults) -> Outcome:
    return Outcome(len(searched.found), int(searched.stored.sum()), digest_results(searched))


def _fixed_slots(job: _Job) -> Run:
    """Algorithm 3 for reads in memory, results to memory; `total` is what the paper adds up."""
    packed = pack_reads(job.reads)

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        searched = job.search(job.index, packed, watch)
        watch.add("total", sum(watch.seconds.get(stage, 0.0) for stage in _COPIES_AND_KERNEL))
        return lambda: _of_results(searched)

    return run


def _profile(job: _Job) -> Run:
    """All that the paper's program does, one step after the other; its O is our forward BWT."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        with watch.stage("read_index"):
            mapped = open_index(job.folder, check=False)
            arrays = {name: np.array(array) for name, array in mapped.arrays_of["forward"].items()}
            index = replace(mapped, arrays_of={"forward": arrays})
        with watch.stage("read"):
            reads = job.file if isinstance(job.file, Queries) else read_queries(job.file)
        with watch.stage("pack"):
            packed = pack_reads(reads)
        searched = job.search(index, packed, watch)
        with watch.stage("write"):
            write_results(job.output, reads, searched, threads=job.options.threads)
        return lambda: _of_results(searched)

    return run


def _in_memory(job: _Job) -> Run:
    """Reads that are packed already, placements to memory."""
    packed = pack_reads(job.reads)

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        found = job.find(packed, watch)

        def outcome() -> Outcome:
            hits = make_hits(job.index, job.reads, found)
            return Outcome(len(hits.counts), len(hits), hits.digest())

        return outcome

    return run


def _file_to_file(job: _Job) -> Run:
    """FASTQ in, TSV out."""
    lengths = job.reads.lengths

    def outcome(output: Path) -> Outcome:
        rows = parse_hits(output, TSV_HITS, job.index.names, lengths)
        return Outcome(len(lengths), len(rows), digest_rows(rows))

    return file_to_file(job.file, job.searched, job.output, LINES["tsv"], outcome)


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


def _file_to_bam(job: _Job) -> Run:
    """FASTQ in, BAM out, the best placement of each locus; the same file, byte by byte, is the same result."""
    count = len(job.reads)

    def outcome(output: Path) -> Outcome:
        Path(f"{output}.bai").unlink()
        return Outcome(count, _mapped_records(output), sha256_file(output))

    return file_to_file(
        job.file, partial(job.searched, best=True), job.output.with_suffix(".bam"), bam_format(), outcome
    )


_RUNS: dict[str, Callable[[_Job], Run]] = {
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
    if item in ("block_sizes", "on_device") and options.device == "cpu":
        return False
    if item in _OF_THE_PAPER:
        return options.tier == "paper" and (options.device != "cpu" or options.threads == fewest)
    return item not in ("file_to_file", "file_to_bam") or options.tier == "fast"


def _slots_of(item: str, case: Case) -> Sequence[int | None]:
    """Results that reads have room for, one after the other; None for all."""
    if item == "fixed_slots":
        return case.slots
    return [case.slots[-1] if item in _OF_THE_PAPER else None]


def _side(item: str, job: _Job, load: float, fields: dict[str, Any]) -> Side:
    """One cell; a device is warmed up with all reads, as memory is taken then, the CPU with a few."""
    few = job
    if job.options.device == "cpu":
        some = job.reads.slice(0, _WARM_UP_READS)
        few = replace(job, reads=some, file=some)
    run, warm_up = _RUNS[item](job), _RUNS[item](few)
    if item == "profile":  # which brings an index of its own to the device, each time
        return Side(run, lambda _: warm_up(Stopwatch()), fields)
    if item not in _OF_THE_PAPER:
        run = add_total(run)
    rate = "reads/s" if item == "in_memory" else ""
    return Side(run, warm_up, fields, once={"load": load}, rate_unit=rate)


def _result_rows(job: _Job, fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Figure 5: of each number of slots the results that it keeps, and the memory for those of a launch of reads."""
    searched = job.search(job.index, pack_reads(job.reads), Stopwatch())
    found = searched.found
    most = int(found.max(initial=1))
    parameters = fields["parameters"]
    what = {"stage": "-", "queries": len(found), "results": int(found.sum()), "digest": digest_results(searched)}
    rows = []
    for slots in (*(slots for slots in FIGURE_SLOTS if slots < most), most):
        kept = fullest_launch(found, slots)
        launch = min(len(found), READS_A_LAUNCH)
        named = join_parameters({"slots": slots, "all": int(slots == most), "launch": launch})
        shared = {**fields, **what, "parameters": f"{named}; {parameters}"}
        rows += [
            {**shared, "metric": "count", "value": stored_in(found, slots), "unit": "results"},
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
    watch = Stopwatch()
    with watch.stage("load"):
        opened = open_index(index)
    reads = chosen_reads(case.reads, case.most, case.length)
    searched = {"edits": case.wanted.max_edits, "strands": case.wanted.strands}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        file = write_numbered(reads, Path(folder))
        for item in items:
            for options in settings.options(None):
                if not _applies(item, options, min(settings.threads)):
                    continue
                tier, device, threads, _ = options
                own = side_fields("one_error", tier=tier, device=device, threads=threads)
                own |= {"item": item, "case": case.name, "parameters": join_parameters(searched)}
                job = _Job(opened, os.fspath(index), reads, file, case.wanted, options, Path(folder) / "results.tsv")
                if item == "on_device":
                    rows += measure_limits(opened, reads, case.wanted, repeats, own)
                elif item == "block_sizes":
                    last, sizes = case.slots[-1], case.block_sizes
                    rows += time_blocks(opened, reads, case.wanted, repeats, own, slots=last, sizes=sizes)
                elif item == "results":
                    rows += _result_rows(replace(job, slots=max(case.slots)), own)
                else:
                    for slots in _slots_of(item, case):
                        named = searched if slots is None else {"slots": slots, **searched}
                        fields = own | {"parameters": join_parameters(named)}
                        side = _side(item, replace(job, slots=slots), watch.seconds["load"], fields)
                        rows += time_sides([side], repeats)
    return rows

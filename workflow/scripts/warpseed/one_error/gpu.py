"""Both tiers on the GPU: reads go in batches to the kernels of gpu_fast and gpu_paper; placements come back.

Fast tier: the tagged rows that the k-mers' search has, and results that take the memory they need. Paper tier: search
on the device, into a fixed number of slots a read; rows are located on the host, as in the CPU's paper tier.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import TypeAlias, Unpack

import numpy as np

from warpseed.batches import Options
from warpseed.compute.appended import SEGMENTS, Appended, group_words, room_next_time, with_room
from warpseed.compute.device_batches import BatchRun, run_batches
from warpseed.compute.device_copies import copied_to_device
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.devices import devices_of
from warpseed.compute.gpu import cupy, launch, to_device
from warpseed.compute.resident import resident
from warpseed.compute.sink import limit_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.warp import BLOCK
from warpseed.fm_index.device import bwt_on_device, tagged_on_device
from warpseed.fm_index.layout import PaperIndex, SeedIndex
from warpseed.fm_index.tagged import TaggedIndex
from warpseed.one_error import gpu_paper
from warpseed.one_error.cpu import PaperResults, join_results, locate_results, settle_results
from warpseed.one_error.gpu_fast import (
    Oriented,
    ReadLookUps,
    append_crowded_placements,
    append_placements,
    orient_reads,
)
from warpseed.one_error.gpu_output import PlacementColumns, make_placement_columns, make_placement_rows
from warpseed.one_error.gpu_two import append_crowded_two, append_two
from warpseed.one_error.output import PLACEMENT_ROW
from warpseed.one_error.paper import READS_A_LAUNCH, RESULT_BYTES
from warpseed.one_error.reads import ONE_EDIT, Criteria
from warpseed.output.columns import DeviceColumns
from warpseed.output.device_columns import ColumnsWanted, search_columns
from warpseed.output.device_lines import LinesWanted
from warpseed.output.from_device import (
    DeviceArguments,
    DeviceHits,
    DeviceOptions,
    Request,
    Start,
    find_results,
    packed_bytes,
    stream_results,
)
from warpseed.output.lines import Line
from warpseed.output.rows import Found, Result
from warpseed.sequences.names import Names
from warpseed.sequences.packed import NamedSet, Packed, part_of

__all__ = [
    "bytes_each",
    "device_run",
    "fast_batch",
    "find_columns",
    "find_fast",
    "find_paper",
    "paper_batch",
    "search_paper",
    "stream_placements",
]

_KERNELS = [(append_placements, append_crowded_placements)] * 2 + [(append_two, append_crowded_two)]
"""Kernels by the most edits."""
_CROWDED_THREADS = 1 << 18
_LIST_BYTES = 512
"""Device memory of a read's results, about: a list with room for some 16 placements, and where they are grouped."""
_FIRST_GUESS = 4.0
"""Placements of a read that there is room for before any were searched, and at least."""


ReadRequest: TypeAlias = Request[Criteria]
"""What is asked of every read."""


def bytes_each(reads: Packed) -> int:
    """Device memory that a read and its placements take, about."""
    return 3 * packed_bytes(reads) + _LIST_BYTES


# ------------------------------------------------------------------------------------------------- fast tier


def _oriented(reads: Packed, strands: int) -> Oriented:
    """The words of reads that lie on the device, in both orientations."""
    xp = cupy()
    total = len(reads.words)
    words = xp.zeros(2 * total + 1, xp.uint64)
    marks = xp.zeros(2 * total + 1 if len(reads.marks) else 0, xp.uint64)
    oriented = Oriented(words, marks)
    launch(orient_reads, len(reads.lengths), BLOCK, reads, strands, oriented)
    return oriented


def fast_placements(tagged: TaggedIndex, reads: Packed, request: ReadRequest, guess: list[float]) -> DeviceHits:
    """The placements of reads that lie on the device, which stay there: append, then group.

    Parameters
    ----------
    guess : one number, the placements of a read that room is made for; changed to those that needed room, of reads
        with too many as well
    """
    xp = cupy()
    count = len(reads.lengths)
    oriented = _oriented(reads, request.criteria.strands)
    store = not request.count_only

    def attempt(room: int, crowded_room: int) -> tuple[tuple[int, ...], tuple[Appended, int]]:
        words, queries, ranks = (xp.empty(room, kind) for kind in (xp.uint64, xp.uint32, xp.uint32))
        cursors, counts = xp.zeros(2 * SEGMENTS, xp.uint64), xp.zeros(count, xp.uint64)
        found = Appended(cursors, words, queries, ranks, counts)
        crowded = xp.empty((crowded_room, 4), xp.uint32)
        criteria = request.criteria
        shared = ReadLookUps(
            tagged, reads, oriented, criteria.strands, criteria.max_edits, request.max_hits, found, crowded
        )
        append, append_crowded = _KERNELS[criteria.max_edits]
        launch(append, (count * criteria.strands) << criteria.max_edits, BLOCK, shared)
        launch(append_crowded, _CROWDED_THREADS, BLOCK, shared)
        used = cursors.get().astype(np.int64)
        needed, needed_crowded = (SEGMENTS * int(part.max()) for part in (used[:SEGMENTS], used[SEGMENTS:]))
        again = room_next_time(needed, int(used[:SEGMENTS].sum()))
        return (needed if store else 0, needed_crowded), (found, again)

    room = SEGMENTS * (64 + int(1.1 * guess[0] * count) // SEGMENTS) if store else 0
    found, again = with_room((room, SEGMENTS * (64 + count // 64)), attempt)
    grouped = group_words(found, request.max_hits)
    results = len(grouped.words) if store else int(grouped.counts.sum(dtype=xp.int64))
    guess[0] = max(_FIRST_GUESS, again / max(1, count))
    return DeviceHits(grouped.words, grouped.counts, results, grouped.dropped_queries, grouped.dropped_words)


def fast_batch(index: SeedIndex, request: ReadRequest, watch: Stopwatch) -> Callable[[Packed], DeviceHits]:
    """What searches one batch, on the host or on the device; brings text, table and rows to the device. Its
    placements stay there, in output order."""
    tagged = tagged_on_device(index, watch)
    guess: list[float] = resident(index, "placements of a read", lambda: [_FIRST_GUESS])

    def run(reads: Packed) -> DeviceHits:
        on_device = copied_to_device(reads, watch, request.threads)
        with time_on_device(watch, "kernel"):
            return fast_placements(tagged, on_device, request, guess)

    return run


def find_fast(
    index: SeedIndex, reads: Packed, criteria: Criteria = ONE_EDIT, **options: Unpack[DeviceArguments]
) -> Found:
    """All placements of packed reads, or their numbers; see `warpseed.one_error.find_reads`, and for options
    `warpseed.output.from_device.DeviceOptions`."""
    given = DeviceOptions(**options)
    return find_results(
        reads, partial(fast_batch, index, given.request(criteria)), bytes_each(reads), given, takes_device=True
    )


def find_columns(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria,
    names_of: Callable[[], Names],
    **options: Unpack[DeviceArguments],
) -> DeviceColumns:
    """As `find_fast` on one GPU, with the placements left there; the reads may lie there, too, and `names_of` gives
    their names."""
    given = DeviceOptions(**options)
    start = partial(fast_batch, index, given.request(criteria))
    wanted = ColumnsWanted(PLACEMENT_ROW, PlacementColumns, make_placement_columns, index)
    return search_columns(reads, names_of, start, bytes_each(reads), wanted, given)


# ------------------------------------------------------------------------------------------------- paper tier


def _launches(count: int) -> list[tuple[int, int]]:
    return [(first, min(first + READS_A_LAUNCH, count)) for first in range(0, count, READS_A_LAUNCH)]


def _search_batch(
    bwt: PaperIndex, reads: Packed, request: ReadRequest, slots: int | None, threads: int, watch: Stopwatch
) -> PaperResults:
    """The results of one batch, from the host's memory to the host's memory, launch by launch."""
    parts = []
    for first, last in _launches(len(reads.lengths)):
        part = part_of(reads, first, last)
        searched = gpu_paper.search_launch(bwt, part, request.criteria.strands, slots, watch)
        with watch.stage("settle"):
            parts.append(settle_results(part, *searched, max_hits=request.max_hits, threads=threads))
    return join_results(parts)


def search_paper(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria = ONE_EDIT,
    *,
    slots: int | None = None,
    threads: int = 1,
    max_hits: int | None = None,
    watch: Stopwatch | None = None,
    devices: Sequence[int] = (0,),
) -> PaperResults:
    """Paper tier, search only (paper 001, Algorithm 3 and section 6): launches of 256,000 reads, and of each read
    `slots` results at most, or all.

    Parameters
    ----------
    threads : CPU threads that count the placements of the results
    watch : takes the seconds of the stages index_to_device, host_to_device, kernel, device_to_host and settle
    devices : numbers of the GPUs that share the reads
    """
    request = Request(criteria, limit_of(max_hits))

    def start(watch: Stopwatch) -> BatchRun[PaperResults]:
        bwt = bwt_on_device(index, "forward", watch)
        return lambda first, last: _search_batch(bwt, part_of(reads, first, last), request, slots, threads, watch)

    each = bytes_each(reads) + RESULT_BYTES * (slots or 0)
    parts = run_batches(len(reads.lengths), each, start, watch=watch or Stopwatch(), devices=devices)
    return join_results(parts)


def paper_batch(index: SeedIndex, request: ReadRequest, threads: int, watch: Stopwatch) -> Callable[[Packed], Found]:
    """What runs one batch, from the host's memory to the host's memory; brings the BWT to the device."""
    bwt = bwt_on_device(index, "forward", watch)

    def run(reads: Packed) -> Found:
        searched = _search_batch(bwt, reads, request, None, threads, watch)
        if request.count_only:
            nothing = np.empty(0, np.uint64)
            return Found(nothing, searched.placements, searched.dropped_queries, searched.dropped_hits)
        with watch.stage("locate"):
            return locate_results(index, reads, searched, threads=threads)

    return run


def find_paper(
    index: SeedIndex, reads: Packed, criteria: Criteria = ONE_EDIT, **options: Unpack[DeviceArguments]
) -> Found:
    """All placements of packed reads by the paper tier, or their numbers, for which it does not locate. Rows are
    located on the CPU threads; options as those of `find_fast`."""
    given = DeviceOptions(**options)
    start = partial(paper_batch, index, given.request(criteria), given.threads)
    return find_results(reads, start, bytes_each(reads), given)


# ------------------------------------------------------------------------------------------------- both


def stream_placements(
    index: SeedIndex,
    sets: Generator[NamedSet, None, None],
    criteria: Criteria,
    options: Options,
    *,
    line: Line | None = None,
    watch: Stopwatch,
) -> Iterator[Result]:
    """All placements of sets of packed reads, in their order, with lines of them where one is wanted; `sets` and what
    is yielded as of `warpseed.output.from_device.stream_results`, the rest as of `find_fast` and `find_paper`."""
    tier, device, threads, max_hits = options
    request = Request(criteria, limit_of(max_hits))
    starts: dict[str, Start] = {
        "fast": partial(fast_batch, index, request),
        "paper": partial(paper_batch, index, request, threads),
    }
    lines = LinesWanted.of(line, PLACEMENT_ROW, make_placement_rows, index)
    return stream_results(sets, starts[tier], bytes_each, lines=lines, watch=watch, devices=devices_of(device))


# ------------------------------------------------------------------------------------------------- on the device


def device_run(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria = ONE_EDIT,
    *,
    tier: str,
    max_hits: int | None = None,
    slots: int | None = None,
    block: int = gpu_paper.BEST_BLOCK,
) -> Callable[[], int]:
    """A search of reads that lie on the current device and whose results stay there; it returns their number.

    The fast tier's are all placements, grouped by read and in order; the paper tier's are intervals.
    """
    watch, request = Stopwatch(), Request(criteria, limit_of(max_hits))
    if tier == "paper":
        bwt = bwt_on_device(index, "forward", watch)
        parts = [to_device(part_of(reads, first, last)) for first, last in _launches(len(reads.lengths))]

        def paper_run() -> int:
            found = [gpu_paper.search_on_device(bwt, part, criteria.strands, slots, block).found for part in parts]
            return sum(int(each.sum(dtype=np.int64)) for each in found)

        return paper_run
    tagged, on_device, guess = tagged_on_device(index, watch), to_device(reads), [_FIRST_GUESS]
    return lambda: fast_placements(tagged, on_device, request, guess).results

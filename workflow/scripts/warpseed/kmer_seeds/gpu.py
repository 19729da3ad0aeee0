"""Both tiers on the GPU: k-mers go in batches to the kernels of gpu_exact, gpu_inexact and gpu_paper; hits come back.

Fast tier: a longer table than the CPU's and tagged rows of both strands, made on the device when the text arrives
there. Paper tier: search and pairs (j, t) on the device, RSA looked up on the host (paper 000, section III.C).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, Unpack

import numpy as np

from warpseed.batches import Options
from warpseed.compute.appended import SEGMENTS, with_room
from warpseed.compute.device_batches import BatchRun, run_batches
from warpseed.compute.device_copies import copied_to_device
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.devices import devices_of
from warpseed.compute.gpu import cupy, launch, sort, to_device
from warpseed.compute.ranges import borders_of, run_ranges
from warpseed.compute.resident import resident
from warpseed.compute.sink import limit_of
from warpseed.compute.sorting import sort_ranges
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.warp import BLOCK
from warpseed.fm_index.device import bases_before_on_device, bwt_on_device, kmer_rows_on_device
from warpseed.fm_index.layout import PaperIndex, SeedIndex
from warpseed.fm_index.tagged import MOST_TABLE_LENGTH, TaggedIndex
from warpseed.kmer_seeds.cpu import Intervals
from warpseed.kmer_seeds.cpu_paper import look_up_pairs
from warpseed.kmer_seeds.fast import Costs, Neighbours, Scheme, exact_neighbours, make_scheme
from warpseed.kmer_seeds.gpu_crowded import look_deeper, probe_crowded, read_crowded
from warpseed.kmer_seeds.gpu_exact import append_exact
from warpseed.kmer_seeds.gpu_inexact import (
    CLOSING_BLOCKS,
    KEPT,
    LANES_SHIFT,
    append_inexact,
    close_ranks,
    settle_counts,
)
from warpseed.kmer_seeds.gpu_look_ups import InexactSearch, Lists, strings_of
from warpseed.kmer_seeds.gpu_output import make_hit_columns, make_hit_rows
from warpseed.kmer_seeds.gpu_paper import DeviceIntervals, locate_pairs, search_intervals
from warpseed.kmer_seeds.gpu_ways import has_framed, ways_of
from warpseed.kmer_seeds.kmers import QUERY_SHIFT
from warpseed.output.columns import DeviceColumns
from warpseed.output.device_columns import ColumnsWanted, HitColumns, search_columns
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
from warpseed.output.rows import HIT_ROW, Found, Result
from warpseed.sequences.names import Names
from warpseed.sequences.packed import NamedSet, Packed, part_of

__all__ = [
    "COSTS",
    "bytes_each",
    "device_run",
    "device_scheme",
    "exact_hits",
    "fast_batch",
    "find_columns",
    "find_fast",
    "find_paper",
    "inexact_hits",
    "paper_batch",
    "search_paper",
    "stream_hits",
]

COSTS = Costs(look_up=1.0, short_look_up=1.5, row=0.5, narrowing=2.0, narrow_above=8)
"""Measured on an H200 with a genome of 100 Mbp."""
_CROWDED_THREADS = 1 << 20
_MOST_OF_A_LANE = (1 << 26) - 1
"""Hits of each of a warp's 32 lanes whose sum is below 2^31."""
_COUNTED_BASES = 8
"""Of a k-mer, at most, whose rows say how many hits it may have."""
_RESULT_BYTES = {"exact": 256, "inexact": 832}
"""Device memory of a k-mer's results, about: lists with room for 16 hits, and what moving and sorting these take; with
mismatches for 32, as those of k-mers that are dropped later lie there, too, and for 8 pieces of crowded buckets."""


KmerRequest: TypeAlias = Request[int]
"""What is asked of every k-mer; its criteria are the most mismatches."""


def bytes_each(kmers: Packed, request: KmerRequest) -> int:
    """Device memory that a k-mer and its results take, about."""
    return packed_bytes(kmers) + _RESULT_BYTES["inexact" if request.criteria else "exact"]


# ------------------------------------------------------------------------------------------------- fast tier


class DeviceScheme(NamedTuple):
    """A scheme on the device, and the rounds in which its lanes take the look-ups of any of its k-mers."""

    arrays: Scheme
    strings: Any
    """uint64[patterns], of `strings_of`"""
    ways: Any
    """uint32[patterns], of `ways_of`"""
    neighbours: Neighbours
    """of a string of MOST_TABLE_LENGTH bases"""
    before: Any
    """uint32[rows], the bases before each tagged row, or none where no look-up needs them"""
    rounds: int
    on_host: Scheme

    def search(self, tagged: TaggedIndex, kmers: Packed, max_hits: int, lists: Lists) -> InexactSearch:
        """What the threads of a search share that goes by this scheme."""
        patterns = self.strings, self.ways, self.neighbours
        return InexactSearch(tagged, kmers, self.arrays, *patterns, self.before, max_hits, lists)


def device_scheme(
    tagged: TaggedIndex,
    lengths: Any,
    max_mismatches: int,
    last: DeviceScheme | None = None,
    before: Callable[[], Any | None] = lambda: None,
) -> DeviceScheme:
    """Choose the windows for a batch, and copy them to the device, unless they are those of the last batch.

    lengths : uint32[n], bases of the k-mers; best on the device, where they are looked at
    before : brings the bases before the tagged rows, where there is room for them; called where look-ups need them
    """
    scheme = make_scheme(cupy().asarray(lengths), max_mismatches, int(tagged.rows.shape[0]), tagged.table_length, COSTS)
    if last is not None and last.on_host is scheme:
        return last
    rounds = -(-int(scheme.look_ups.max()) // (1 << LANES_SHIFT))
    ways = ways_of(scheme, True)
    rows_before = before() if has_framed(ways) else None
    if rows_before is None:
        ways, rows_before = ways_of(scheme, False), to_device(np.empty(0, np.uint32))
    near = exact_neighbours(MOST_TABLE_LENGTH, max_mismatches)
    arrays, strings, there, near = map(to_device, (scheme, strings_of(scheme), ways, near))
    return DeviceScheme(arrays, strings, there, near, rows_before, rounds, scheme)


def _known_hits(dropped: int, request: KmerRequest) -> int:
    """Hits that dropped k-mers are known to have: each has one too many, behind which no more are looked for."""
    return dropped * (request.max_hits + 1)


def exact_hits(tagged: TaggedIndex, kmers: Packed, request: KmerRequest) -> DeviceHits:
    """Exact search of k-mers on the device: append in one pass."""
    xp = cupy()
    count = len(kmers.lengths)
    counts = xp.empty(count, xp.uint32)
    store = not request.count_only

    def append(room: int) -> tuple[tuple[int, ...], DeviceHits]:
        hits, cursor = xp.empty(max(room, 1), xp.uint64), xp.zeros(2, xp.uint64)
        outputs = (cursor, counts, hits)
        launch(append_exact, tagged.orientations * count, BLOCK, tagged, kmers, request.max_hits, store, *outputs)
        total, dropped = map(int, cursor.get())
        stored = total if store else 0
        return (stored,), DeviceHits(hits[:stored], counts, total, dropped, _known_hits(dropped, request))

    return with_room((16 * count + 1024 if store else 0,), append)


def inexact_hits(tagged: TaggedIndex, kmers: Packed, scheme: DeviceScheme, request: KmerRequest) -> DeviceHits:
    """Search with mismatches of k-mers on the device: append, then move together."""
    xp = cupy()
    count, limit = len(kmers.lengths), request.max_hits

    def append(room: int, crowded_room: int) -> tuple[tuple[int, ...], DeviceHits]:
        found, counts = xp.empty(max(room, 1), xp.uint64), xp.zeros(count, xp.uint64)
        crowded, cursors = xp.empty((crowded_room, 4), xp.uint32), xp.zeros(KEPT + 2, xp.uint64)
        hits = xp.empty(max(room, 1), xp.uint64)
        lists = Lists(cursors, found, crowded, counts)
        inexact = scheme.search(tagged, kmers, limit, lists)
        launch(append_inexact, tagged.orientations * count << LANES_SHIFT, BLOCK, inexact, scheme.rounds)
        for crowded_kernel in (probe_crowded, look_deeper, read_crowded):
            launch(crowded_kernel, _CROWDED_THREADS, BLOCK, inexact, cursors.copy())
        launch(close_ranks, CLOSING_BLOCKS * BLOCK, BLOCK, lists, limit, hits)
        launch(settle_counts, count, BLOCK, lists, limit)
        used = cursors.get().astype(np.int64)
        needed, needed_crowded = (SEGMENTS * int(part.max()) for part in (used[:SEGMENTS], used[SEGMENTS:KEPT]))
        kept, dropped = map(int, used[KEPT:])
        results = int(counts.sum(dtype=xp.int64)) if request.count_only else kept
        found_here = DeviceHits(hits[:kept], counts, results, dropped, _known_hits(dropped, request))
        if needed > room:
            needed += needed // 8  # threads that see late that a k-mer is dropped append more, and not always as much
        return (0 if request.count_only else needed, needed_crowded), found_here

    return with_room((0 if request.count_only else SEGMENTS * (4 + count // 2), SEGMENTS * (64 + count // 8)), append)


def _in_one_pass(tagged: TaggedIndex, lengths: Any, request: KmerRequest) -> bool:
    """Whether a set is searched by the exact search's one pass: without mismatches, and where a warp's hits are surely
    few enough to be added up in 32 bits. Without max_hits a few k-mers of two bases have more in 3 Gbp."""
    if request.criteria or not len(lengths) or min(request.max_hits, tagged.rows.shape[0]) < _MOST_OF_A_LANE:
        return not request.criteria
    seen = min(int(lengths.min()), tagged.table_length, _COUNTED_BASES)
    borders = tagged.table[:: 4 ** (tagged.table_length - seen)]
    # Differences of what is counted modulo 2^32 are those of rows.
    return int(cupy().diff(borders).max()) < _MOST_OF_A_LANE


def fast_batch(index: SeedIndex, request: KmerRequest, watch: Stopwatch) -> Callable[[Packed], DeviceHits]:
    """What searches one batch, on the host or on the device; brings text, table and rows to the device. Its hits
    stay there: in output order, without their k-mers above them."""
    tagged = kmer_rows_on_device(index, watch)
    # The scheme that was used last, by any search: its arrays are many, and copying them takes as long as a batch.
    last: list[DeviceScheme | None] = resident(index, "scheme", lambda: [None])
    before = partial(bases_before_on_device, index, tagged, watch)

    def run(kmers: Packed) -> DeviceHits:
        on_device = copied_to_device(kmers, watch, request.threads)
        scheme = None
        if not _in_one_pass(tagged, kmers.lengths, request):
            with time_on_device(watch, "host_to_device"):
                scheme = device_scheme(tagged, on_device.lengths, request.criteria, last[0], before)
        with time_on_device(watch, "kernel"):
            if scheme is not None:
                last[0] = scheme
                found = inexact_hits(tagged, on_device, scheme, request)
            else:
                found = exact_hits(tagged, on_device, request)
        with time_on_device(watch, "sort"):
            ordered = found.hits
            sort(ordered)
            ordered &= cupy().uint64((1 << QUERY_SHIFT) - 1)
        return found

    return run


def find_fast(index: SeedIndex, kmers: Packed, max_mismatches: int, **options: Unpack[DeviceArguments]) -> Found:
    """All hits of packed k-mers, or their numbers; see `warpseed.kmer_seeds.find_kmers`, and for options
    `warpseed.output.from_device.DeviceOptions`."""
    given = DeviceOptions(**options)
    request = given.request(max_mismatches)
    return find_results(
        kmers, partial(fast_batch, index, request), bytes_each(kmers, request), given, takes_device=True
    )


def find_columns(
    index: SeedIndex,
    kmers: Packed,
    max_mismatches: int,
    names_of: Callable[[], Names],
    **options: Unpack[DeviceArguments],
) -> DeviceColumns:
    """As `find_fast` on one GPU, with the hits left there; the k-mers may lie there, too, and `names_of` gives their
    names."""
    given = DeviceOptions(**options)
    request = given.request(max_mismatches)
    start, wanted = partial(fast_batch, index, request), ColumnsWanted(HIT_ROW, HitColumns, make_hit_columns, index)
    return search_columns(kmers, names_of, start, bytes_each(kmers, request), wanted, given)


# ------------------------------------------------------------------------------------------------- paper tier


def _bwts_on_device(index: SeedIndex, max_mismatches: int, watch: Stopwatch) -> tuple[PaperIndex, PaperIndex]:
    """The BWT that is read first, and the one whose rows are found: exact search needs the forward one alone."""
    forward = bwt_on_device(index, "forward", watch)
    return forward, bwt_on_device(index, "reverse", watch) if max_mismatches else forward


def _paper_intervals(
    bwts: tuple[PaperIndex, PaperIndex], kmers: Packed, request: KmerRequest, watch: Stopwatch
) -> DeviceIntervals:
    """The intervals of one batch, on the device."""
    on_device = copied_to_device(kmers, watch, request.threads)
    longest = int(kmers.lengths.max(initial=1))
    with time_on_device(watch, "kernel"):
        return search_intervals(bwts, on_device, longest, request.criteria, request.max_hits)


def _intervals_batch(
    bwts: tuple[PaperIndex, PaperIndex], kmers: Packed, request: KmerRequest, watch: Stopwatch
) -> Intervals:
    """The intervals of one batch, on the host."""
    found = _paper_intervals(bwts, kmers, request, watch)
    with watch.stage("device_to_host"):
        kind = found.kind.get()
        counts = np.bincount((kind >> np.uint64(3)).astype(np.int64), minlength=len(kmers.lengths))
        low, size, hits = found.low.get(), found.size.get(), found.totals.get()
    tags = (kind & np.uint64(7)).astype(np.uint8)
    return Intervals(low, size, tags, counts, hits, found.dropped_queries, found.dropped_hits)


def _join_intervals(parts: Sequence[Intervals]) -> Intervals:
    """The intervals of consecutive sets of k-mers as those of one set."""
    if len(parts) == 1:
        return parts[0]
    nothing: list[Any] = [np.empty(0, dtype) for dtype in (np.uint32, np.uint32, np.uint8, np.int64, np.int64)]
    low, size, kind, counts, hits, dropped_queries, dropped_hits = zip([*nothing, 0, 0], *parts, strict=True)
    low, size, kind, counts, hits = map(np.concatenate, (low, size, kind, counts, hits))
    return Intervals(low, size, kind, counts, hits, sum(dropped_queries), sum(dropped_hits))


def search_paper(
    index: SeedIndex,
    kmers: Packed,
    max_mismatches: int,
    *,
    max_hits: int | None = None,
    watch: Stopwatch | None = None,
    devices: Sequence[int] = (0,),
) -> Intervals:
    """Paper tier, search only: the intervals, on the host, for locating on the CPU (Figure 5)."""
    request = Request(max_mismatches, limit_of(max_hits))

    def start(watch: Stopwatch) -> BatchRun[Intervals]:
        bwts = _bwts_on_device(index, max_mismatches, watch)
        return lambda first, last: _intervals_batch(bwts, part_of(kmers, first, last), request, watch)

    each = bytes_each(kmers, request)
    parts = run_batches(len(kmers.lengths), each, start, watch=watch or Stopwatch(), devices=devices)
    return _join_intervals(parts)


def _look_up(index: PaperIndex, lengths: np.ndarray, on_reverse: bool, pairs: tuple[np.ndarray, ...], threads: int):
    """Packed hits of the pairs (j, t) that came from the device, in the order of their intervals."""
    size, kind, entry, steps = pairs
    border = borders_of(size)
    hits = np.empty(len(entry), np.uint64)

    def task(first: int, last: int) -> None:
        located = slice(border[first], border[last])
        part = (size[first:last], kind[first:last], entry[located], steps[located])
        look_up_pairs(index, lengths, on_reverse, part, hits[located])

    run_ranges(len(size), threads, task)
    return hits


def paper_batch(index: SeedIndex, request: KmerRequest, threads: int, watch: Stopwatch) -> Callable[[Packed], Found]:
    """What runs one batch, from the host's memory to the host's memory; brings the BWTs to the device."""
    bwts = _bwts_on_device(index, request.criteria, watch)
    on_host = index.reverse if request.criteria else index.forward

    def run(kmers: Packed) -> Found:
        found = _paper_intervals(bwts, kmers, request, watch)
        dropped = found.dropped_queries, found.dropped_hits
        if request.count_only:
            with watch.stage("device_to_host"):
                return Found(np.empty(0, np.uint64), found.totals.get(), *dropped)
        with time_on_device(watch, "locate"):
            entry, steps = locate_pairs(bwts[1], found, request.criteria)
        with watch.stage("device_to_host"):
            pairs = (found.size.get(), found.kind.get(), entry.get(), steps.get())
            counts = found.totals.get()
        with watch.stage("lookup"):
            hits = _look_up(on_host, kmers.lengths, request.criteria > 0, pairs, threads)
        with watch.stage("sort"):
            sort_ranges(hits, counts)
        return Found(hits, counts, *dropped)

    return run


def find_paper(index: SeedIndex, kmers: Packed, max_mismatches: int, **options: Unpack[DeviceArguments]) -> Found:
    """All hits by the paper tier, or their numbers, which the search knows without locating: search and (j, t) on the
    device, RSA on the host's threads (section III.C); options as those of `find_fast`."""
    given = DeviceOptions(**options)
    request = given.request(max_mismatches)
    return find_results(kmers, partial(paper_batch, index, request, given.threads), bytes_each(kmers, request), given)


# ------------------------------------------------------------------------------------------------- both


def stream_hits(
    index: SeedIndex,
    sets: Generator[NamedSet, None, None],
    max_mismatches: int,
    options: Options,
    *,
    line: Line | None = None,
    watch: Stopwatch,
) -> Iterator[Result]:
    """All hits of sets of packed k-mers, in their order, with lines of them where one is wanted; `sets` and what is
    yielded as of `warpseed.output.from_device.stream_results`, the rest as of `find_fast` and `find_paper`."""
    tier, device, threads, max_hits = options
    request = Request(max_mismatches, limit_of(max_hits))
    starts: dict[str, Start] = {
        "fast": partial(fast_batch, index, request),
        "paper": partial(paper_batch, index, request, threads),
    }
    each, lines = partial(bytes_each, request=request), LinesWanted.of(line, HIT_ROW, make_hit_rows, index)
    return stream_results(sets, starts[tier], each, lines=lines, watch=watch, devices=devices_of(device))


# ------------------------------------------------------------------------------------------------- on the device


def device_run(
    index: SeedIndex, kmers: Packed, max_mismatches: int, *, tier: str, max_hits: int | None = None
) -> Callable[[], int]:
    """A search of k-mers that lie on the current device and whose hits stay there; it returns their number.

    The fast tier's hits are compacted and complete; the paper tier's are pairs (j, t).
    """
    watch, request, on_device = Stopwatch(), Request(max_mismatches, limit_of(max_hits)), to_device(kmers)
    if tier == "paper":
        bwts, longest = _bwts_on_device(index, max_mismatches, watch), int(kmers.lengths.max(initial=1))

        def paper_run() -> int:
            found = search_intervals(bwts, on_device, longest, max_mismatches, request.max_hits)
            return len(locate_pairs(bwts[1], found, max_mismatches)[0])

        return paper_run
    tagged = kmer_rows_on_device(index, watch)
    if _in_one_pass(tagged, kmers.lengths, request):
        return lambda: exact_hits(tagged, on_device, request).results
    before = partial(bases_before_on_device, index, tagged, watch)
    scheme = device_scheme(tagged, kmers.lengths, max_mismatches, before=before)
    return lambda: inexact_hits(tagged, on_device, scheme, request).results

"""Both tiers on the GPU: reads go in batches to the kernels of gpu_fast and gpu_paper; matches come back in output
order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any, NamedTuple, Unpack

import numpy as np

from warpseed.batches import Options
from warpseed.compute.appended import SEGMENTS, room_next_time
from warpseed.compute.device_copies import copied_to_device
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.device_sums import borders_of
from warpseed.compute.devices import devices_of
from warpseed.compute.gpu import cupy, free_memory, launch, to_device
from warpseed.compute.resident import resident
from warpseed.compute.sink import NO_LIMIT, WHOLE_TEXT, limit_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.warp import BLOCK
from warpseed.fm_index.binned import PAPER_PARAMETERS, BinParameters
from warpseed.fm_index.device import tagged_on_device
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.tagged import TaggedIndex
from warpseed.mems.fast import LONGEST_WORDS, SEED_ROWS, How, how_for
from warpseed.mems.gpu_fast import (
    KEEPING_BLOCKS,
    SEEDS_A_WARP,
    AppendedMatches,
    MatchSearch,
    OrientedReads,
    append_crowded_matches,
    append_matches,
    bound_ends,
    keep_matches,
    orient_words,
)
from warpseed.mems.gpu_longest import (
    WORDS_A_WARP,
    append_crowded_longest,
    append_longest,
    note_longest,
    sample_seeds,
)
from warpseed.mems.gpu_output import MatchColumns, make_match_columns
from warpseed.mems.gpu_shared import (
    BYTES_A_MATCH,
    MatchRequest,
    PutOccurrences,
    bytes_each,
    hits_of,
    in_windows,
    put_occurrences_among,
    put_occurrences_together,
    results_of,
)
from warpseed.mems.gpu_stages import paper_batch, paper_bytes_each, paper_run
from warpseed.mems.matches import MATCH, MAXIMAL, PAPER, PLACE_BITS, Criteria
from warpseed.mems.output import MATCH_ROW
from warpseed.output.columns import DeviceColumns
from warpseed.output.device_columns import ColumnsWanted, search_columns
from warpseed.output.from_device import (
    DeviceArguments,
    DeviceHits,
    DeviceOptions,
    Request,
    Start,
    find_results,
    stream_results,
)
from warpseed.output.rows import Found, Result
from warpseed.sequences.names import Names
from warpseed.sequences.packed import NamedSet, Packed

__all__ = [
    "device_run",
    "fast_batch",
    "fast_bytes_each",
    "fast_matches",
    "find_columns",
    "find_fast",
    "find_paper",
    "stream_matches",
]

_CROWDED_THREADS = 1 << 18
_FIRST_GUESS = (0.2, 0.001)
"""Matches of a base, and runs set aside, that there is room for before any were searched, and at least."""
_SAMPLED_TILES = 256
_BYTES_A_BASE = 16
"""Device memory of a base of a read and of the matches that it has, about."""


def fast_bytes_each(reads: Packed) -> int:
    """Device memory that a read of the fast tier takes, about."""
    return bytes_each(reads, _BYTES_A_BASE)


def _oriented(reads: Packed, strands: int) -> OrientedReads:
    """The words of reads that lie on the device, in both orientations."""
    xp = cupy()
    total = len(reads.words)
    room = strands * total + 2
    words, marks = xp.zeros(room, xp.uint64), xp.zeros(room if len(reads.marks) else 0, xp.uint64)
    oriented = OrientedReads(words, marks)
    launch(orient_words, total, BLOCK, reads, strands, oriented)
    return oriented


def _first_tiles(reads: Packed, how: How) -> Any:
    """Where the tiles of each read begin: int64[n + 1] on the device."""
    xp = cupy()
    held = how.min_length - how.step + 1
    seeds = (reads.lengths.astype(xp.int64) - held) // how.step + 1
    return borders_of(how.strands * ((xp.maximum(seeds, 0) + SEEDS_A_WARP - 1) // SEEDS_A_WARP))


def _most_tiles(reads: Packed, how: How) -> int:
    """At least as many tiles as `_first_tiles` counts, without a look at the reads: the host does not wait for them.

    A read of L bases has L // step + 1 seeds at most, in tiles of SEEDS_A_WARP of which one may not be full.
    """
    return how.strands * (32 * len(reads.words) // (SEEDS_A_WARP * how.step) + len(reads.lengths) + 1)


def _search(tagged: TaggedIndex, reads: Packed, how: How) -> MatchSearch:
    """What all threads of a search share, without lists to append to."""
    xp = cupy()
    first_tile = xp.zeros(1, xp.int64) if how.longest else _first_tiles(reads, how)
    ends = xp.empty(0 if how.kind == MAXIMAL else 2 * 32 * len(reads.words), xp.uint32)
    nothing = AppendedMatches(*(xp.empty(0, xp.uint64) for _ in range(3)))
    crowded = xp.empty((0, 4), xp.uint32)
    shared = tagged, reads, _oriented(reads, how.strands), how, first_tile, ends, nothing, crowded
    return MatchSearch(*shared, True, *WHOLE_TEXT)


def _is_crowded(search: MatchSearch) -> bool:
    """Whether the longest match from every base on is found sooner than by seeds, as a sample of these says, for which
    the host waits: they have many rows, and matches are not long."""
    how, sampled = search.how, cupy().zeros(3, cupy().uint64)
    every = -(-_most_tiles(search.reads, how) // _SAMPLED_TILES)
    launch(sample_seeds, 32 * _SAMPLED_TILES, BLOCK, search, every, sampled)
    seeds, rows, words = map(int, sampled.get())
    return rows * how.strands > SEED_ROWS * how.step * seeds and words <= LONGEST_WORDS * seeds


class _Way(NamedTuple):
    """Kernels that append matches, and the threads of the first."""

    append: Any
    append_crowded: Any
    threads: int


class _Room(NamedTuple):
    """Entries that lists have, or need as their parts are of one size."""

    matches: int
    crowded: int


class _Kept(NamedTuple):
    """The matches that are wanted, in any order."""

    keys: Any
    """uint64[h]"""
    spans: Any
    """uint64[h]"""
    counts: Any
    """int64[n], of each read"""


class _Appended(NamedTuple):
    """What a search found; if it needed more room than there was, not all."""

    kept: _Kept
    entries: _Room
    """matches, wanted or not, and runs set aside"""
    needed: _Room


def _first_room(guess: list[float], bases: int) -> _Room:
    """Room for what a base has, as `fast_matches` takes it, of so many bases."""
    return _Room(*(SEGMENTS * (64 + int(1.1 * each * bases) // SEGMENTS) for each in guess))


def _append(search: MatchSearch, way: _Way, room: _Room) -> _Appended:
    """Run a search with lists of this room, and keep what is wanted of them.

    All is launched before it is known whether there was room, so that the device does not wait for the host in between.
    Where ends are noted, they are what `bound_ends` made of them afterwards; of all matches, if crowded seeds had room.
    """
    xp, reads, kind = cupy(), search.reads, search.how.kind
    cursors, counts = xp.zeros(2 * SEGMENTS + 1, xp.uint64), xp.zeros(len(reads.lengths), xp.uint64)
    keys, spans, wanted_keys, wanted_spans = (xp.empty(room.matches, xp.uint64) for _ in range(4))
    lists, crowded = AppendedMatches(cursors, keys, spans), xp.empty((room.crowded, 4), xp.uint32)
    search = search._replace(lists=lists, crowded=crowded)
    if search.noting:
        search.ends.fill(0)
    launch(way.append, way.threads, BLOCK, search)
    launch(way.append_crowded, _CROWDED_THREADS, BLOCK, search)
    if search.noting:
        _bound(search)
    wanted = cursors[2 * SEGMENTS :], wanted_keys, wanted_spans, counts
    launch(keep_matches, KEEPING_BLOCKS * BLOCK, BLOCK, lists, reads, kind, search.ends, *wanted)
    used = cursors.get().astype(np.int64)
    parts = used[: 2 * SEGMENTS].reshape(2, SEGMENTS)
    entries, needed = _Room(*parts.sum(axis=1).tolist()), _Room(*(SEGMENTS * parts.max(axis=1)).tolist())
    kept = _Kept(wanted_keys[: used[-1]], wanted_spans[: used[-1]], counts.view(xp.int64))
    return _Appended(kept, entries, needed)


def _bound(search: MatchSearch) -> None:
    """When all ends are noted: make of them what the end of a match that is wanted must be."""
    reads, kind = search.reads, search.how.kind
    if kind != MAXIMAL:
        blocks = len(reads.lengths) * (2 if kind == PAPER else 1)
        launch(bound_ends, blocks * BLOCK, BLOCK, reads, kind, search.ends)


def _settled(
    matches: _Kept, request: MatchRequest, put_occurrences: PutOccurrences = put_occurrences_together
) -> DeviceHits:
    """The matches that are wanted in output order, without those of reads that have too many, and without what has too
    many occurrences."""
    xp = cupy()
    keys, spans, counts = matches
    dropped = dropped_hits = 0
    if request.max_hits < NO_LIMIT:
        over = counts > request.max_hits
        dropped = int(over.sum())
    if dropped:
        dropped_hits = int(counts[over].sum(dtype=xp.int64))
        kept = ~over[(keys >> xp.uint64(PLACE_BITS)).astype(xp.int64)]
        keys, spans = keys[kept], spans[kept]
        counts[over] = 0
    return hits_of(keys, spans, counts, (dropped, dropped_hits), request, put_occurrences)


def fast_matches(
    tagged: TaggedIndex, reads: Packed, request: MatchRequest, guess: list[float]
) -> DeviceHits | Iterator[DeviceHits]:
    """The matches of reads that lie on the device, which stay there: append, hold to the ends, sort.

    Parameters
    ----------
    guess : two numbers, the matches of a base that room is made for, and the runs of crowded rows; changed to those
        that needed room

    Returns
    -------
    DeviceHits; of a single read with more matches than the device holds at a time, those of one part of the text after
    the other
    """
    how = how_for(request.criteria, tagged.table_length, int(tagged.rows.shape[0]))
    search = _search(tagged, reads, how)
    if how.kind != MAXIMAL and not how.longest and _is_crowded(search):
        how = how._replace(longest=True)
        search = search._replace(how=how, first_tile=cupy().zeros(1, np.int64))
    way = _Way(append_matches, append_crowded_matches, 32 * _most_tiles(reads, how))
    if how.longest:
        warps = -(-how.strands * len(reads.words) // WORDS_A_WARP)
        way = _Way(append_longest, append_crowded_longest, 32 * warps)
        search.ends.fill(0)
        launch(note_longest, way.threads, BLOCK, search)
        _bound(search)
        search = search._replace(noting=False)
    bases = 32 * len(reads.words)
    room = _first_room(guess, bases)
    while True:
        appended = _append(search, way, room)
        needed = appended.needed
        if all(entries <= there for entries, there in zip(needed, room, strict=True)):
            break
        del appended
        all_noted, too_many = needed.crowded <= room.crowded, False
        if len(reads.lengths) == 1:
            too_many = needed.matches * BYTES_A_MATCH > free_memory() // 2
        if all_noted and too_many:
            return _in_windows(search._replace(noting=False), way, room.crowded, request)
        room = _Room(room.matches if too_many else max(room.matches, needed.matches), max(room.crowded, needed.crowded))
    again = map(room_next_time, needed, appended.entries)
    guess[:] = (max(least, entries / max(1, bases)) for least, entries in zip(_FIRST_GUESS, again, strict=True))
    kept = appended.kept
    del search, appended
    return _settled(kept, request)


def _in_windows(search: MatchSearch, way: _Way, crowded_room: int, request: MatchRequest) -> Iterator[DeviceHits]:
    """The matches of a single read, whose ends are bounded, in windows of the text that memory suffices for."""
    room = _Room(SEGMENTS * max(64, free_memory() // (4 * SEGMENTS * BYTES_A_MATCH)), crowded_room)

    def kept_in(begin: int, end: int) -> _Kept | None:
        appended = _append(search._replace(begin=begin, end=end), way, room)
        return appended.kept if appended.needed.matches <= room.matches else None

    def windows() -> Iterator[_Kept]:
        return in_windows(int(search.tagged.rows.shape[0]), kept_in)

    total = sum(len(kept.keys) for kept in windows()) if request.count_only or request.max_hits < NO_LIMIT else 0
    if total > request.max_hits or (request.count_only and request.criteria.max_occurrences == NO_LIMIT):
        over = total > request.max_hits
        counts = np.array([0 if over else total], np.int64)
        nothing = cupy().empty(0, np.uint64)
        yield DeviceHits(nothing, cupy().asarray(counts), int(counts[0]), int(over), total * over, MATCH)
        return
    for kept in windows():
        yield _settled(kept, request, lambda hits, *_: put_occurrences_among((each.spans for each in windows()), hits))


def _guess(index: SeedIndex, request: MatchRequest) -> list[float]:
    """What a base had in the search before, of the same kind of match."""
    length, kind = request.criteria.min_length, request.criteria.kind
    return resident(index, f"matches of a base, {kind} from {length}", lambda: [*_FIRST_GUESS])


def fast_batch(
    index: SeedIndex, request: MatchRequest, watch: Stopwatch
) -> Callable[[Packed], DeviceHits | Iterator[DeviceHits]]:
    """What searches one batch, on the host or on the device; brings text, table and rows to the device. Its matches
    stay there, in output order."""
    tagged = tagged_on_device(index, watch)
    guess = _guess(index, request)

    def run(reads: Packed) -> DeviceHits | Iterator[DeviceHits]:
        on_device = copied_to_device(reads, watch, request.threads)
        with time_on_device(watch, "kernel"):
            return fast_matches(tagged, on_device, request, guess)

    return run


def find_fast(index: SeedIndex, reads: Packed, criteria: Criteria, **options: Unpack[DeviceArguments]) -> Found:
    """All wanted matches of packed reads, or their numbers; see `warpseed.mems.find_mems`, and for options
    `warpseed.output.from_device.DeviceOptions`."""
    given = DeviceOptions(**options)
    return find_results(
        reads, partial(fast_batch, index, given.request(criteria)), fast_bytes_each(reads), given, takes_device=True
    )


def _fill_contig_lengths(index: SeedIndex, columns: dict[str, Any]) -> None:
    there = cupy().asarray(np.asarray(index.lengths, np.int64))
    columns["contig_length"][...] = there[columns["contig"]]


def find_columns(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria,
    names_of: Callable[[], Names],
    **options: Unpack[DeviceArguments],
) -> DeviceColumns:
    """As `find_fast` on one GPU, with the matches left there; the reads may lie there, too, and `names_of` gives their
    names."""
    given = DeviceOptions(**options)
    start, finish = partial(fast_batch, index, given.request(criteria)), partial(_fill_contig_lengths, index)
    wanted = ColumnsWanted(MATCH_ROW, MatchColumns, make_match_columns, index, finish)
    return search_columns(reads, names_of, start, fast_bytes_each(reads), wanted, given)


def find_paper(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria,
    *,
    parameters: BinParameters = PAPER_PARAMETERS,
    **options: Unpack[DeviceArguments],
) -> Found:
    """All matches of packed reads by the paper tier, which are of its own kind, or their numbers.

    Parameters
    ----------
    parameters : what the paper's index is made with
    options : as those of `find_fast`; stages are index_to_device, host_to_device, pack, intervals, filter, split,
        locate, sort and device_to_host
    """
    given = DeviceOptions(**options)
    start = partial(paper_batch, index, given.request(criteria), parameters=parameters)
    return find_results(reads, start, paper_bytes_each(reads), given)


def stream_matches(
    index: SeedIndex,
    sets: Generator[NamedSet, None, None],
    criteria: Criteria,
    options: Options,
    *,
    watch: Stopwatch,
) -> Iterator[Result]:
    """All wanted matches of sets of packed reads, in their order; `sets` and what is yielded as of
    `warpseed.output.from_device.stream_results`, the rest as of `find_fast` and `find_paper`."""
    request, devices = Request(criteria, limit_of(options.max_hits)), devices_of(options.device)
    batches: dict[str, tuple[Start, Callable[[Packed], int]]] = {
        "fast": (partial(fast_batch, index, request), fast_bytes_each),
        "paper": (partial(paper_batch, index, request), paper_bytes_each),
    }
    return stream_results(sets, *batches[options.tier], watch=watch, devices=devices)


def device_run(
    index: SeedIndex,
    reads: Packed,
    criteria: Criteria,
    *,
    tier: str = "fast",
    max_hits: int | None = None,
    parameters: BinParameters = PAPER_PARAMETERS,
    watch: Stopwatch | None = None,
) -> Callable[[], int]:
    """A search of reads that lie on the current device and whose matches stay there, read by read in output order; it
    returns their number.

    Parameters
    ----------
    parameters : what the paper tier's index is made with
    watch : takes the seconds of the paper tier's stages
    """
    watch, request = watch or Stopwatch(), Request(criteria, limit_of(max_hits))
    if tier == "paper":
        return paper_run(index, reads, request, parameters, watch)
    tagged, on_device, guess = tagged_on_device(index, watch), to_device(reads), [*_FIRST_GUESS]
    return lambda: results_of(fast_matches(tagged, on_device, request, guess))

"""Both tiers on the GPU: kernels, and the host functions that feed them batch by batch.

Paper tier: one thread a k-mer and its reverse complement, blocks of 192 (exact) and 64 (inexact) threads, pairs
(j, t) computed on the device and looked up in RSA on the host (paper 000, sections III.C and III.D).
Fast tier: a longer table than the CPU's and *tagged rows*, made on the device when the index arrives there: a row
holds its position and the 16 bases behind the K of the table, so that most candidates are decided in one sector.
Exact search counts, sums up and writes; inexact search appends hits in one pass and sorts them.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numba import int64, uint8, uint32, uint64

from warpseed.bits import fetch_word, mismatch_bits, prefix_mask
from warpseed.compiled import scalar
from warpseed.errors import MemoryLimitError
from warpseed.fm_index.layout import FastIndex, PaperIndex, SeedIndex, Segments
from warpseed.fm_index.locate import walk_to_sample
from warpseed.fm_index.text import segment_of
from warpseed.gpu import cuda, cupy, free_memory, kernel, launch, require_gpu, time_on_device, to_device, view
from warpseed.intrinsics import popcount
from warpseed.kmer_seeds import cpu, paper
from warpseed.kmer_seeds.cpu import Found, Intervals
from warpseed.kmer_seeds.fast import Costs, accept, inside_segment, make_scheme
from warpseed.kmer_seeds.kmers import Kmers, oriented_marks, oriented_word, pack_hit
from warpseed.measure import Stopwatch

__all__ = ["COSTS", "TaggedIndex", "find_fast", "find_paper", "gpu_table_length", "search_paper"]

COSTS = Costs(look_up=1.0, row=0.5, narrowing=2.0, narrow_above=8)
EXACT_BLOCK = 192
INEXACT_BLOCK = 64
_FAST_BLOCK = 256
_LANES_SHIFT = 3
"""Fast inexact search: 8 lanes share the look-ups of one k-mer in one orientation."""
_TAG_BASES = 16
_SCAN_BELOW = 8
_QUERY_SHIFT = 35
"""Appended hits carry their k-mer above the 35 bits of a packed hit, so one sort orders everything."""
_BATCH = 1 << 25


class TaggedIndex(NamedTuple):
    """The fast tier's index on the device."""

    text: np.ndarray
    """uint64[…], packed bases"""
    rows: np.ndarray
    """uint64[n], the 16 bases behind a suffix's first K in the upper half, its text position in the lower"""
    table: np.ndarray
    """uint32[4**K + 1], as FastIndex.table"""
    segments: Segments
    table_length: int


# ---------------------------------------------------------------- making the device's index


@scalar
def _suffix_word(text, segments, position, skip):
    """The 32 bases from `position + skip` on, A behind the end of the segment that `position` lies in."""
    end = int64(segments.text_start[segment_of(segments, position) + int64(1)]) - int64(1)
    begin = position + skip
    if begin >= end:
        return uint64(0)
    return fetch_word(text, begin) & prefix_mask(end - begin)


@kernel
def fill_device_table(text, segments, suffix_array, table_length, table):
    """Bucket borders of every string of K bases; thread t writes the entries between rows t - 1 and t."""
    t = int64(cuda.grid(1))
    rows = int64(suffix_array.shape[0])
    if t > rows:
        return
    shift = uint64(int64(64) - int64(2) * int64(table_length))
    first = int64(0)
    last = int64(table.shape[0]) - int64(1)
    if t > int64(0):
        first = int64(_suffix_word(text, segments, int64(suffix_array[t - int64(1)]), int64(0)) >> shift) + int64(1)
    if t < rows:
        last = int64(_suffix_word(text, segments, int64(suffix_array[t]), int64(0)) >> shift)
    for m in range(first, last + int64(1)):
        table[m] = uint32(t)


@kernel
def fill_tagged_rows(text, segments, suffix_array, table_length, rows):
    """A row's position with the 16 bases behind its first K; one thread a row."""
    t = int64(cuda.grid(1))
    if t < int64(suffix_array.shape[0]):
        position = int64(suffix_array[t])
        tag = _suffix_word(text, segments, position, int64(table_length)) >> uint64(32)
        rows[t] = (tag << uint64(32)) | uint64(position)


def gpu_table_length(rows: int, free: int) -> int:
    """K of the device's table: up to four entries a base, at most a quarter of the free memory, 4 to 16."""
    by_size = (max(4 * rows, 2).bit_length() - 1) // 2
    by_memory = (max(free // 16, 2).bit_length() - 1) // 2
    return max(4, min(16, by_size, by_memory))


_fast_on_device: WeakKeyDictionary[SeedIndex, TaggedIndex] = WeakKeyDictionary()
_paper_on_device: WeakKeyDictionary[SeedIndex, tuple[PaperIndex, PaperIndex]] = WeakKeyDictionary()


def _check_memory(needed: int, what: str) -> None:
    free = free_memory()
    if needed > free:
        raise MemoryLimitError(
            f"{what} needs {needed / 1e9:.1f} GB of device memory, but {free / 1e9:.1f} GB are free; "
            "use a larger GPU, or device='cpu'."
        )


def tagged_index(index: SeedIndex, watch: Stopwatch, table_length: int | None = None) -> TaggedIndex:
    """The fast tier's index on the device; made once for an index, with its time in stage index_to_device."""
    require_gpu()
    if index in _fast_on_device and table_length in (None, _fast_on_device[index].table_length):
        return _fast_on_device[index]
    with watch.stage("index_to_device", synchronise=cuda.synchronize):
        length = table_length or gpu_table_length(index.rows, free_memory())
        _check_memory(13 * index.rows + 4 * 4**length, "The index")
        _fast_on_device[index] = make_tagged_index(index.fast, length)
    return _fast_on_device[index]


def make_tagged_index(fast: FastIndex, table_length: int) -> TaggedIndex:
    """Copy a FastIndex to the device and make its table and tagged rows there."""
    xp = cupy()
    rows = fast.suffix_array.shape[0]
    text, segments, suffix_array = to_device(fast.text), to_device(fast.segments), to_device(fast.suffix_array)
    table = view(xp.empty(4**table_length + 1, xp.uint32))
    tagged = view(xp.empty(rows, xp.uint64))
    launch(fill_device_table, rows + 1, _FAST_BLOCK, text, segments, suffix_array, table_length, table)
    launch(fill_tagged_rows, rows, _FAST_BLOCK, text, segments, suffix_array, table_length, tagged)
    return TaggedIndex(text, tagged, table, segments, table_length)


def _paper_index(index: SeedIndex, watch: Stopwatch) -> tuple[PaperIndex, PaperIndex]:
    require_gpu()
    if index not in _paper_on_device:
        with watch.stage("index_to_device", synchronise=cuda.synchronize):
            parts = (index.forward, index.reverse)
            _check_memory(sum(a.nbytes for part in parts for a in part if isinstance(a, np.ndarray)), "The index")
            _paper_on_device[index] = (to_device(index.forward), to_device(index.reverse))
    return _paper_on_device[index]


# ---------------------------------------------------------------- fast tier, exact


@scalar
def _tag_range(rows, low, high, tag, mask):
    """Rows of a bucket, in the order of their tags, whose tags equal `tag` under `mask` (its leading bases)."""
    first = low
    last = high
    while last - first > int64(_SCAN_BELOW):
        middle = (first + last) >> int64(1)
        if ((rows[middle] >> uint64(32)) & mask) < tag:
            first = middle + int64(1)
        else:
            last = middle
    while first < high and ((rows[first] >> uint64(32)) & mask) < tag:
        first += int64(1)
    last = first
    step = int64(1)
    while last < high and ((rows[last] >> uint64(32)) & mask) == tag:
        ahead = last + step
        if step < int64(_SCAN_BELOW) or ahead >= high or ((rows[ahead] >> uint64(32)) & mask) != tag:
            last += int64(1)
            step = int64(1) if step >= int64(_SCAN_BELOW) else step + int64(1)
        else:
            last = ahead
            step += step
    return first, last


@scalar
def _exact_rows(index, word, length):
    """Rows that begin with the first min(length, K + 16, 32) bases of a word."""
    table_length = int64(index.table_length)
    seen = min(length, table_length)
    bucket = word >> uint64(int64(64) - int64(2) * seen)
    shift = uint64(int64(2) * (table_length - seen))
    low = int64(index.table[int64(bucket << shift)])
    high = int64(index.table[int64((bucket + uint64(1)) << shift)])
    behind = min(length - table_length, int64(_TAG_BASES), int64(32) - table_length)
    if behind > int64(0) and low < high:
        mask = prefix_mask(behind) >> uint64(32)
        tag = ((word << uint64(int64(2) * table_length)) >> uint64(32)) & mask
        low, high = _tag_range(index.rows, low, high, tag, mask)
    return low, high


@scalar
def _matches(index, kmers, query, strand, position, length, decided):
    """Whether a row of `_exact_rows` is a match: inside its segment, and equal behind the bases already compared."""
    if not inside_segment(index.segments, position, length):
        return False
    if length <= decided:
        return True
    for w in range((length + int64(31)) >> int64(5)):
        text = fetch_word(index.text, position + int64(32) * int64(w))
        differ = mismatch_bits(text, oriented_word(kmers, query, strand, int64(w)))
        if differ & prefix_mask(length - int64(32) * int64(w)):
            return False
    return True


@kernel
def count_exact(index, kmers, first_row, counts):
    """Exact matches of a k-mer in one orientation: thread 2·q + s.

    Writes the first matching row (or for a single one, its position's row) and the number of matches.
    """
    t = int64(cuda.grid(1))
    query = t >> int64(1)
    if query >= int64(kmers.lengths.shape[0]):
        return
    strand = t & int64(1)
    length = int64(kmers.lengths[query])
    count = uint32(0)
    start = int64(0)
    if oriented_marks(kmers, query, int64(0), int64(0)) == uint64(0):
        low, high = _exact_rows(index, oriented_word(kmers, query, strand, int64(0)), length)
        decided = min(int64(index.table_length) + int64(_TAG_BASES), int64(32))
        for row in range(low, high):
            position = int64(index.rows[row] & uint64(0xFFFFFFFF))
            if _matches(index, kmers, query, strand, position, length, decided):
                if count == uint32(0):
                    start = int64(row)
                count += uint32(1)
    first_row[t] = uint32(start)
    counts[t] = count


@kernel
def write_exact(index, kmers, first_row, counts, ends, hits):
    """Write the matches that `count_exact` counted, at their place in the list: thread 2·q + s."""
    t = int64(cuda.grid(1))
    if t >= int64(counts.shape[0]):
        return
    left = int64(counts[t])
    if left == int64(0):
        return
    to = int64(ends[t]) - left
    query = t >> int64(1)
    strand = t & int64(1)
    length = int64(kmers.lengths[query])
    decided = min(int64(index.table_length) + int64(_TAG_BASES), int64(32))
    row = int64(first_row[t])
    while left > int64(0):
        position = int64(index.rows[row] & uint64(0xFFFFFFFF))
        if _matches(index, kmers, query, strand, position, length, decided):
            hits[to] = pack_hit(position, strand, int64(0))
            to += int64(1)
            left -= int64(1)
        row += int64(1)


# ---------------------------------------------------------------- fast tier, with mismatches


@scalar
def _window_of(scheme, length, look_up):
    """Which window, and which of its patterns, a look-up number stands for."""
    window = int64(0)
    patterns = scheme.pattern_last[length, 0] - scheme.pattern_first[length, 0]
    while look_up >= patterns:
        look_up -= patterns
        window += int64(1)
        patterns = scheme.pattern_last[length, window] - scheme.pattern_first[length, window]
    return window, scheme.pattern_first[length, window] + look_up


@scalar
def _oriented_bases(kmers, query, strand, offset):
    """32 bases of a k-mer in one orientation from `offset` on, zero behind its end."""
    length = int64(kmers.lengths[query])
    word = offset >> int64(5)
    shift = uint64(int64(2) * (offset & int64(31)))
    bases = oriented_word(kmers, query, strand, word) << shift
    if shift != uint64(0) and int64(32) * (word + int64(1)) < length:
        bases |= oriented_word(kmers, query, strand, word + int64(1)) >> (uint64(64) - shift)
    return bases


@kernel
def append_inexact(index, kmers, scheme, max_hits, counts, cursor, hits):
    """Matches with mismatches: 8 lanes a k-mer and orientation, each taking every 8th look-up.

    A hit goes to the next free place of the list, with its k-mer above it. `cursor[0]` counts hits, also those
    that found no room; `counts` has an entry a k-mer where max_hits is set, and is one entry long where not.
    """
    t = int64(cuda.grid(1))
    owner = t >> int64(_LANES_SHIFT)
    query = owner >> int64(1)
    if query >= int64(kmers.lengths.shape[0]):
        return
    strand = owner & int64(1)
    lane = t & ((int64(1) << int64(_LANES_SHIFT)) - int64(1))
    length = int64(kmers.lengths[query])
    table_length = int64(index.table_length)
    end_of_text = int64(index.rows.shape[0])
    limit = int64(scheme.max_mismatches)
    look_up = lane
    while look_up < scheme.look_ups[length]:
        window, pattern = _window_of(scheme, length, look_up)
        offset = scheme.offset[length, window]
        seen = min(scheme.length[length, window], table_length)
        bases = _oriented_bases(kmers, query, strand, offset)
        change = scheme.patterns[pattern]
        bucket = (bases >> uint64(int64(64) - int64(2) * seen)) ^ change
        shift = uint64(int64(2) * (table_length - seen))
        low = int64(index.table[int64(bucket << shift)])
        high = int64(index.table[int64((bucket + uint64(1)) << shift)])
        if low < high:
            behind = prefix_mask(min(length - offset, int64(32)) - table_length) >> uint64(32)
            tag = (bases << uint64(int64(2) * table_length)) >> uint64(32)
            exact = min(scheme.length[length, window], int64(32)) - table_length
            if exact > int64(0) and high - low > int64(_SCAN_BELOW):
                mask = prefix_mask(min(exact, int64(_TAG_BASES))) >> uint64(32)
                low, high = _tag_range(index.rows, low, high, tag & mask, mask)
            spent = popcount(mismatch_bits(change, uint64(0)))
            for row in range(low, high):
                tagged = index.rows[row]
                differ = mismatch_bits((tagged >> uint64(32)) & behind, tag & behind)
                if spent + popcount(differ) > limit and kmers.marks.shape[0] != kmers.words.shape[0]:
                    continue
                position = int64(tagged & uint64(0xFFFFFFFF)) - offset
                if position < int64(0) or position >= end_of_text:
                    continue
                distance = accept(index, kmers, scheme, query, strand, position, window)
                if distance < int64(0):
                    continue
                if counts.shape[0] > 1 and int64(cuda.atomic.add(counts, query, uint32(1))) >= max_hits:
                    continue
                slot = int64(cuda.atomic.add(cursor, 0, uint64(1)))
                if slot < int64(hits.shape[0]):
                    hits[slot] = (uint64(query) << uint64(_QUERY_SHIFT)) | pack_hit(position, strand, distance)
        look_up += int64(1) << int64(_LANES_SHIFT)


# ---------------------------------------------------------------- paper tier


@kernel
def paper_exact(index, kmers, low_of, size_of):
    """Equation 1 for a k-mer and its reverse complement, one thread; entries 2·q and 2·q + 1."""
    query = int64(cuda.grid(1))
    if query < int64(kmers.lengths.shape[0]):
        for strand in range(2):
            low, high = paper.search_exact(index, kmers, query, int64(strand))
            low_of[int64(2) * query + int64(strand)] = uint32(low)
            size_of[int64(2) * query + int64(strand)] = uint32(max(high - low, int64(0)))


@scalar
def _paper_inexact(forward, reverse, kmers, max_mismatches, max_hits, query, bounds, stack, totals, cursor, out):
    low_of, size_of, kind_of = out
    total = int64(0)
    for strand in range(2):
        paper.lower_bounds(forward, kmers, query, int64(strand), bounds)
        depth = paper.start_search(reverse, stack)
        while depth >= int64(0) and total <= max_hits:
            low, high, distance, depth = paper.next_leaf(
                reverse, kmers, query, int64(strand), int64(max_mismatches), bounds, stack, depth
            )
            if depth >= int64(0):
                total += high - low
                slot = int64(cuda.atomic.add(cursor, 0, uint64(1)))
                if slot < int64(low_of.shape[0]):
                    low_of[slot] = uint32(low)
                    size_of[slot] = uint32(high - low)
                    kind_of[slot] = (uint64(query) << uint64(3)) | uint64((int64(strand) << int64(2)) | distance)
    totals[query] = uint64(total)


def _make_paper_inexact(name: str, longest: int) -> Any:
    """Figure 4 for k-mers of up to `longest` bases: bounds and stack lie in local memory of that size."""

    def paper_inexact(forward, reverse, kmers, max_mismatches, max_hits, totals, cursor, out):
        """One thread a k-mer and its reverse complement; intervals go to the next free place of the lists."""
        bounds = cuda.local.array(longest, uint8)
        lows = cuda.local.array(longest, uint32)
        highs = cuda.local.array(longest, uint32)
        state = cuda.local.array(longest, uint8)
        query = int64(cuda.grid(1))
        if query < int64(kmers.lengths.shape[0]):
            stack = (lows, highs, state)
            _paper_inexact(forward, reverse, kmers, max_mismatches, max_hits, query, bounds, stack, totals, cursor, out)

    paper_inexact.__name__ = name
    paper_inexact.__qualname__ = name
    return kernel(paper_inexact)


paper_inexact_32 = _make_paper_inexact("paper_inexact_32", 32)
paper_inexact_255 = _make_paper_inexact("paper_inexact_255", 256)


@kernel
def paper_locate(index, low_of, hit_end, entry_of, steps_of):
    """The pair (j, t) of every row of every interval (Equation 2): one thread a hit."""
    t = int64(cuda.grid(1))
    if t >= int64(entry_of.shape[0]):
        return
    first = int64(0)
    last = int64(hit_end.shape[0]) - int64(1)
    while first < last:
        middle = (first + last) >> int64(1)
        if int64(hit_end[middle]) > t:
            last = middle
        else:
            first = middle + int64(1)
    begin = int64(0) if first == int64(0) else int64(hit_end[first - int64(1)])
    entry, steps = walk_to_sample(index, int64(low_of[first]) + t - begin)
    entry_of[t] = uint32(entry)
    steps_of[t] = uint32(steps)


# ---------------------------------------------------------------- host side


def _batches(count: int, words: int) -> list[tuple[int, int]]:
    """Ranges of k-mers whose words and results take at most half of the free device memory."""
    each = 8 * words + 64
    size = max(1, min(_BATCH, free_memory() // (2 * each)))
    return [(first, min(first + size, count)) for first in range(0, count, size)]


def _part(kmers: Kmers, first: int, last: int) -> Kmers:
    marked = kmers.marks.shape[0] == kmers.words.shape[0]
    marks = kmers.marks[first:last] if marked else kmers.marks
    return Kmers(kmers.words[first:last], marks, kmers.lengths[first:last])


def _join(parts: list[Found]) -> Found:
    if len(parts) == 1:
        return parts[0]
    return Found(
        np.concatenate([part.hits for part in parts] or [np.empty(0, np.uint64)]),
        np.concatenate([part.counts for part in parts] or [np.empty(0, np.int64)]),
        sum(part.dropped_queries for part in parts),
        sum(part.dropped_hits for part in parts),
    )


def find_fast(
    index: SeedIndex,
    kmers: Kmers,
    max_mismatches: int,
    *,
    max_hits: int | None = None,
    count_only: bool = False,
    watch: Stopwatch | None = None,
) -> Found:
    """All hits of packed k-mers by the fast tier; see `warpseed.kmer_seeds.find_kmers`.

    With `count_only` only their numbers, as far as the kernel has them: `Found.counts` a k-mer for exact search, one
    total for inexact search.
    """
    watch = watch or Stopwatch()
    tagged = tagged_index(index, watch)
    parts = []
    for first, last in _batches(len(kmers.lengths), kmers.words.shape[1]):
        with watch.stage("host_to_device", synchronise=cuda.synchronize):
            part = to_device(_part(kmers, first, last))
        if max_mismatches == 0:
            parts.append(exact_on_device(tagged, part, max_hits, count_only, watch))
        else:
            lengths = kmers.lengths[first:last]
            scheme = make_scheme(lengths, max_mismatches, index.rows, tagged.table_length, COSTS)
            parts.append(_inexact_batch(tagged, part, to_device(scheme), max_hits, count_only, watch))
    return _join(parts)


def exact_on_device(
    tagged: TaggedIndex, kmers: Kmers, max_hits: int | None, count_only: bool, watch: Stopwatch
) -> Found:
    """Count, sum up, write; then order each k-mer's hits on the host."""
    xp = cupy()
    count = len(kmers.lengths)
    with time_on_device(watch, "kernel"):
        first_row, counts = xp.empty(2 * count, xp.uint32), xp.empty(2 * count, xp.uint32)
        launch(count_exact, 2 * count, _FAST_BLOCK, tagged, kmers, view(first_row), view(counts))
        per_kmer = counts.reshape(count, 2).sum(axis=1, dtype=xp.int64)
        dropped_queries = dropped_hits = 0
        if max_hits is not None:
            over = per_kmer > max_hits
            dropped_queries, dropped_hits = int(over.sum()), int(per_kmer[over].sum())
            per_kmer[over] = 0
            counts.reshape(count, 2)[over] = 0
        if not count_only:
            ends = xp.cumsum(counts, dtype=xp.uint64)
            hits = xp.empty(int(ends[-1]), xp.uint64)
            arguments = (view(first_row), view(counts), view(ends), view(hits))
            launch(write_exact, 2 * count, _FAST_BLOCK, tagged, kmers, *arguments)
    with watch.stage("device_to_host"):
        found_counts = per_kmer.get()
        found = np.empty(0, np.uint64) if count_only else hits.get()
    with watch.stage("sort"):
        cpu.sort_hits(found, found_counts)
    return Found(found, found_counts, dropped_queries, dropped_hits)


def _inexact_batch(
    tagged: TaggedIndex, kmers: Kmers, scheme: Any, max_hits: int | None, count_only: bool, watch: Stopwatch
) -> Found:
    """Append, sort; again with more room where the hits did not fit."""
    xp = cupy()
    count = len(kmers.lengths)
    room = 0 if count_only else 2 * count + (1 << 16)
    limit = np.iinfo(np.int64).max if max_hits is None else max_hits
    while True:
        with time_on_device(watch, "kernel"):
            hits, cursor = xp.empty(room, xp.uint64), xp.zeros(1, xp.uint64)
            counts = xp.zeros(1 if max_hits is None else count + 1, xp.uint32)
            launch(
                append_inexact, 2 * count << _LANES_SHIFT, _FAST_BLOCK,
                tagged, kmers, scheme, limit, view(counts), view(cursor), view(hits),
            )  # fmt: skip
            needed = int(cursor[0])
        if needed <= room or count_only:
            break
        del hits
        _check_memory(24 * needed, f"A batch of {count:,} k-mers with {needed:,} hits")
        room = needed
    if count_only:
        return Found(np.empty(0, np.uint64), np.array([needed]), 0, 0)
    dropped_queries = dropped_hits = 0
    with time_on_device(watch, "kernel"):
        hits = hits[:needed]
        hits.sort()
        owners = hits >> xp.uint64(_QUERY_SHIFT)
        if max_hits is not None:
            over = counts[:count] > max_hits
            dropped_queries, dropped_hits = int(over.sum()), int(counts[:count][over].sum(dtype=xp.int64))
            keep = ~over[owners.astype(xp.int64)]
            hits, owners = hits[keep], owners[keep]
        per_kmer = xp.bincount(owners.astype(xp.int64), minlength=count)
        hits &= xp.uint64((1 << _QUERY_SHIFT) - 1)
    with watch.stage("device_to_host"):
        return Found(hits.get(), per_kmer.get().astype(np.int64), dropped_queries, dropped_hits)


class _DeviceIntervals(NamedTuple):
    """Intervals of rows on the device, in query order."""

    low: Any
    size: Any
    kind: Any
    """uint64[i], k-mer << 3 | strand << 2 | distance"""
    totals: Any
    """int64[n], rows of each k-mer, 0 for one that was dropped"""
    dropped_queries: int
    dropped_hits: int


def _exact_intervals(index: PaperIndex, kmers: Kmers) -> tuple[Any, Any, Any, Any]:
    xp = cupy()
    count = len(kmers.lengths)
    low, size = xp.empty(2 * count, xp.uint32), xp.empty(2 * count, xp.uint32)
    launch(paper_exact, count, EXACT_BLOCK, index, kmers, view(low), view(size))
    found = xp.flatnonzero(size)
    totals = size.reshape(count, 2).sum(axis=1, dtype=xp.int64)
    return low[found], size[found], found.astype(xp.uint64) << xp.uint64(2), totals


def _inexact_intervals(
    forward: PaperIndex, reverse: PaperIndex, kmers: Kmers, max_mismatches: int, limit: int, longest: int
) -> tuple[Any, Any, Any, Any]:
    xp = cupy()
    count = len(kmers.lengths)
    search = paper_inexact_32 if longest <= 32 else paper_inexact_255
    room = 2 * count + (1 << 16)
    while True:
        low, size, kind = xp.empty(room, xp.uint32), xp.empty(room, xp.uint32), xp.empty(room, xp.uint64)
        totals, cursor = xp.empty(count, xp.uint64), xp.zeros(1, xp.uint64)
        out = (view(low), view(size), view(kind))
        launch(
            search, count, INEXACT_BLOCK,
            forward, reverse, kmers, max_mismatches, limit, view(totals), view(cursor), out,
        )  # fmt: skip
        needed = int(cursor[0])
        if needed <= room:
            break
        _check_memory(40 * needed, f"A batch of {count:,} k-mers with {needed:,} intervals")
        room = needed
    order = xp.argsort(kind[:needed])
    return low[order], size[order], kind[order], totals.astype(xp.int64)


def _search_batch(
    parts: tuple[PaperIndex, PaperIndex],
    kmers: Kmers,
    max_mismatches: int,
    max_hits: int | None,
    longest: int,
    watch: Stopwatch,
) -> _DeviceIntervals:
    xp = cupy()
    limit = np.iinfo(np.int64).max if max_hits is None else max_hits
    with time_on_device(watch, "kernel"):
        if max_mismatches == 0:
            low, size, kind, totals = _exact_intervals(parts[0], kmers)
        else:
            low, size, kind, totals = _inexact_intervals(*parts, kmers, max_mismatches, limit, longest)
        over = totals > limit
        dropped_queries, dropped_hits = int(over.sum()), int(totals[over].sum())
        if dropped_queries:
            keep = xp.flatnonzero(~over[(kind >> xp.uint64(3)).astype(xp.int64)])
            low, size, kind = low[keep], size[keep], kind[keep]
            totals[over] = 0
    return _DeviceIntervals(low, size, kind, totals, dropped_queries, dropped_hits)


def search_paper(
    index: SeedIndex,
    kmers: Kmers,
    max_mismatches: int,
    *,
    max_hits: int | None = None,
    watch: Stopwatch | None = None,
) -> Intervals:
    """Paper tier, search only: the intervals, on the host (for Table II, and Figure 5's locating on the CPU)."""
    watch = watch or Stopwatch()
    parts = _paper_index(index, watch)
    found: list[Intervals] = []
    for first, last in _batches(len(kmers.lengths), kmers.words.shape[1]):
        longest = int(kmers.lengths[first:last].max(initial=1))
        with watch.stage("host_to_device", synchronise=cuda.synchronize):
            part = to_device(_part(kmers, first, last))
        batch = _search_batch(parts, part, max_mismatches, max_hits, longest, watch)
        with watch.stage("device_to_host"):
            kind = batch.kind.get()
            counts = np.bincount((kind >> np.uint64(3)).astype(np.int64), minlength=last - first)
            found.append(
                Intervals(
                    batch.low.get(),
                    batch.size.get(),
                    (kind & np.uint64(7)).astype(np.uint8),
                    counts,
                    batch.totals.get(),
                    batch.dropped_queries,
                    batch.dropped_hits,
                )  # fmt: skip
            )
    if len(found) == 1:
        return found[0]
    columns = [np.concatenate([getattr(part, name) for part in found]) for name in Intervals._fields[:5]]
    return Intervals(*columns, sum(part.dropped_queries for part in found), sum(part.dropped_hits for part in found))


def find_paper(
    index: SeedIndex,
    kmers: Kmers,
    max_mismatches: int,
    *,
    max_hits: int | None = None,
    watch: Stopwatch | None = None,
) -> Found:
    """All hits by the paper tier: search and (j, t) on the device, RSA on the host (section III.C)."""
    watch = watch or Stopwatch()
    parts = _paper_index(index, watch)
    searched, on_host = (parts[1], index.reverse) if max_mismatches else (parts[0], index.forward)
    xp = cupy()
    found = []
    for first, last in _batches(len(kmers.lengths), kmers.words.shape[1]):
        longest = int(kmers.lengths[first:last].max(initial=1))
        with watch.stage("host_to_device", synchronise=cuda.synchronize):
            part = to_device(_part(kmers, first, last))
        batch = _search_batch(parts, part, max_mismatches, max_hits, longest, watch)
        with time_on_device(watch, "locate"):
            ends = xp.cumsum(batch.size, dtype=xp.uint64)
            total = int(ends[-1]) if len(ends) else 0
            _check_memory(8 * total, f"Locating {total:,} hits")
            entry, steps = xp.empty(total, xp.uint32), xp.empty(total, xp.uint32)
            block = INEXACT_BLOCK if max_mismatches else EXACT_BLOCK
            launch(paper_locate, total, block, searched, view(batch.low), view(ends), view(entry), view(steps))
        with watch.stage("device_to_host"):
            pairs = (batch.size.get(), batch.kind.get(), entry.get(), steps.get())
            counts = batch.totals.get()
        with watch.stage("lookup"):
            hits = np.empty(total, np.uint64)
            cpu.look_up_pairs(on_host, kmers.lengths[first:last], max_mismatches > 0, pairs, hits)
        with watch.stage("sort"):
            cpu.sort_hits(hits, counts)
        found.append(Found(hits, counts, batch.dropped_queries, batch.dropped_hits))
    return _join(found)

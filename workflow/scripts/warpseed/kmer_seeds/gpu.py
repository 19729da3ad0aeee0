"""Both tiers on the GPU: kernels, and the host functions that feed them batch by batch.

Paper tier: one thread a k-mer and its reverse complement, blocks of 192 (exact) and 64 (inexact) threads, pairs
(j, t) computed on the device and looked up in RSA on the host (paper 000, sections III.C and III.D).
Fast tier: a longer table than the CPU's and *tagged rows*, made on the device when the index arrives there: a row
holds its position and the 16 bases behind the K of the table, so that most candidates are decided in one sector.
Exact search counts, sums up and writes; inexact search appends hits in one pass, crowded buckets by whole warps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numba import int32, int64, uint8, uint32, uint64

from warpseed.bits import fetch_word, mismatch_bits, prefix_mask
from warpseed.compiled import scalar
from warpseed.errors import MemoryLimitError
from warpseed.fm_index.layout import FastIndex, PaperIndex, SeedIndex, Segments
from warpseed.fm_index.locate import walk_to_sample
from warpseed.fm_index.text import segment_of
from warpseed.gpu import (
    bounded_kernel,
    cuda,
    cupy,
    free_memory,
    kernel,
    launch,
    require_gpu,
    time_on_device,
    to_device,
    view,
)
from warpseed.intrinsics import popcount
from warpseed.kmer_seeds import cpu, paper
from warpseed.kmer_seeds.cpu import Found, Intervals
from warpseed.kmer_seeds.fast import Costs, Scheme, accept, first_window, inside_segment, make_scheme
from warpseed.kmer_seeds.kmers import Kmers, oriented_marks, oriented_word, pack_hit
from warpseed.measure import Stopwatch

__all__ = [
    "COSTS",
    "DeviceHits",
    "Lists",
    "TaggedIndex",
    "device_run",
    "exact_hits",
    "find_fast",
    "find_paper",
    "gpu_table_length",
    "inexact_hits",
    "make_tagged_index",
    "paper_index",
    "search_paper",
    "tagged_index",
]

COSTS = Costs(look_up=1.0, short_look_up=1.5, row=0.5, narrowing=2.0, narrow_above=8)
EXACT_BLOCK = 192
INEXACT_BLOCK = 64
_FAST_BLOCK = 128
_FAST_WARPS = _FAST_BLOCK // 32
_LANES_SHIFT = 1
_LANES = 1 << _LANES_SHIFT
"""Fast inexact search: 2 lanes share the look-ups of one k-mer in one orientation."""
_TAG_BASES = 16
_FULLER = 4
_CROWDED = 64
"""A bucket with more rows is left to whole warps, in pieces of _PIECE rows."""
_PIECE = 1024
_SEGMENTS = 64
_KEPT = 2 * _SEGMENTS
_SINGLE, _SIDE_BY_SIDE, _SCATTERED = 0, 1, 2
"""How a lane's exact matches lie: one, at a known position; rows in a run; rows to be compared one by one."""
_CROWDED_THREADS = 1 << 18
_NO_LIMIT = np.iinfo(np.int64).max
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
def _keyed_hit(query, position, strand, distance):
    """A packed hit with its k-mer above it."""
    return (uint64(query) << uint64(_QUERY_SHIFT)) | pack_hit(position, strand, distance)


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
    by_size = (max((64 if rows > 1 << 24 else 4) * rows, 2).bit_length() - 1) // 2
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


def paper_index(index: SeedIndex, watch: Stopwatch) -> tuple[PaperIndex, PaperIndex]:
    require_gpu()
    if index not in _paper_on_device:
        with watch.stage("index_to_device", synchronise=cuda.synchronize):
            parts = (index.forward, index.reverse)
            _check_memory(sum(a.nbytes for part in parts for a in part if isinstance(a, np.ndarray)), "The index")
            _paper_on_device[index] = (to_device(index.forward), to_device(index.reverse))
    return _paper_on_device[index]


# ---------------------------------------------------------------- fast tier, exact


@scalar
def _lower_tag(rows, low, high, tag, mask):
    """First row of [low, high) whose tag under `mask` is at least `tag`."""
    while low < high:
        middle = (low + high) >> int64(1)
        if ((rows[middle] >> uint64(32)) & mask) < tag:
            low = middle + int64(1)
        else:
            high = middle
    return low


@scalar
def _tag_range(rows, low, high, tag, mask):
    """Rows of a bucket, which are in the order of their tags, whose tags equal `tag` under `mask` (leading bases)."""
    low = _lower_tag(rows, low, high, tag, mask)
    if low >= high or ((rows[low] >> uint64(32)) & mask) != tag:
        return low, low
    if low + int64(1) >= high or ((rows[low + int64(1)] >> uint64(32)) & mask) != tag:
        return low, low + int64(1)
    if tag == mask:
        return low, high
    step = (mask & (~mask + uint64(1))) if mask != uint64(0) else uint64(1)
    return low, _lower_tag(rows, low, high, tag + step, mask)


@scalar
def _position(index, row):
    return int64(index.rows[row] & uint64(0xFFFFFFFF))


@scalar
def _skip_short(index, low, high, length):
    """Leave out the rows whose suffixes end before `length` bases.

    They are in an interval of equal bases only because A stands for what lies behind their segment's end; as
    suffixes they are smaller than all others in it, so they come first. (With another last base than A there are
    none.)
    """
    if low < high and not inside_segment(index.segments, _position(index, low), length):
        low += int64(1)
        last = high
        while low < last:
            middle = (low + last) >> int64(1)
            if inside_segment(index.segments, _position(index, middle), length):
                last = middle
            else:
                low = middle + int64(1)
    return low, high


@scalar
def _bucket(index, bases, seen, change):
    """Rows of the bucket of the first `seen` (at most K) bases, changed by a pattern."""
    bucket = (bases >> uint64(int64(64) - int64(2) * seen)) ^ change
    shift = uint64(int64(2) * (int64(index.table_length) - seen))
    low = int64(index.table[int64(bucket << shift)])
    return low, int64(index.table[int64((bucket + uint64(1)) << shift)])


@scalar
def _exact_rows(index, word, length):
    """Rows that begin with the first min(length, K + 16, 32) bases of a word; for a longer k-mer, candidates."""
    table_length = int64(index.table_length)
    low, high = _bucket(index, word, min(length, table_length), uint64(0))
    if low < high:
        low, high = exact_tag_range(index, low, high, word, min(length, int64(32)) - table_length)
        compared = min(length, _decided(index))
        if (word >> uint64(int64(64) - int64(2) * compared)) & uint64(3) == uint64(0):
            low, high = _skip_short(index, low, high, compared)
    return low, high


@scalar
def _decided(index):
    """Bases up to which `_exact_rows` gives matches: its rows are then all of them, side by side."""
    return min(int64(index.table_length) + int64(_TAG_BASES), int64(32))


@scalar
def _all_bases(kmers, query):
    for w in range(kmers.marks.shape[1] if kmers.marks.shape[0] == kmers.words.shape[0] else 0):
        if kmers.marks[query, w] != uint64(0):
            return False
    return True


@scalar
def _matches(index, kmers, query, strand, position, length):
    """Whether a candidate of a k-mer that is longer than what its row decides is a match."""
    if not inside_segment(index.segments, position, length):
        return False
    for w in range((length + int64(31)) >> int64(5)):
        text = fetch_word(index.text, position + int64(32) * int64(w))
        differ = mismatch_bits(text, oriented_word(kmers, query, strand, int64(w)))
        if differ & prefix_mask(length - int64(32) * int64(w)):
            return False
    return True


@scalar
def _warp_places(count):
    """Where each lane's `count` items begin among its warp's, and the items of the whole warp; all lanes take part."""
    lane = int64(cuda.threadIdx.x) & int64(31)
    ends = int32(count)
    for step in (1, 2, 4, 8, 16):
        before = cuda.shfl_up_sync(0xFFFFFFFF, ends, step)
        if lane >= int64(step):
            ends += before
    return int64(ends) - count, int64(cuda.shfl_sync(0xFFFFFFFF, ends, 31))


@scalar
def _lane_of(places, first_lane, item):
    """The thread of a warp whose items begin at or before `item`: binary search over shared memory."""
    owner = first_lane
    step = int64(16)
    while step > int64(0):
        if int64(places[owner + step]) <= item:
            owner += step
        step >>= int64(1)
    return owner


@scalar
def _reserve(warp_totals, total, cursors, which):
    """Room in a list for each warp of a block, by one atomic addition a block; all threads take part."""
    me = int64(cuda.threadIdx.x)
    if me & int64(31) == int64(0):
        warp_totals[me >> int64(5)] = uint64(total)
    cuda.syncthreads()
    if me == int64(0):
        whole = uint64(0)
        for warp in range(int64(cuda.blockDim.x) >> int64(5)):
            mine = warp_totals[warp]
            warp_totals[warp] = whole
            whole += mine
        begin = cuda.atomic.add(cursors, which, whole) if whole > uint64(0) else uint64(0)
        for warp in range(int64(cuda.blockDim.x) >> int64(5)):
            warp_totals[warp] += begin
    cuda.syncthreads()
    return int64(warp_totals[me >> int64(5)])


@bounded_kernel(40)
def append_exact(index, kmers, max_hits, store, cursor, counts, hits):
    """Exact matches of a k-mer in one orientation: thread 2·q + s; the two of a k-mer are lanes side by side.

    A block reserves room for its hits by one addition to ``cursor[0]``, which counts all hits, those that found no
    room too. The lanes of a warp write its hits in turn, each finding by binary search whose hit it is (shared
    memory, 10 bytes a thread), so a k-mer with many hits keeps all lanes busy, in whole sectors. ``counts[q]`` is
    the number of a k-mer's hits, 0 where it was dropped; ``cursor[1]`` and ``cursor[2]`` are dropped k-mers and hits.
    """
    places = cuda.shared.array(_FAST_BLOCK, uint32)
    rows = cuda.shared.array(_FAST_BLOCK, uint32)
    kinds = cuda.shared.array(_FAST_BLOCK, uint8)
    warp_totals = cuda.shared.array(_FAST_WARPS, uint64)
    t = int64(cuda.grid(1))
    me = int64(cuda.threadIdx.x)
    query = t >> int64(1)
    strand = t & int64(1)
    there = query < int64(kmers.lengths.shape[0])
    count = int64(0)
    row = int64(0)
    length = int64(0)
    if there and _all_bases(kmers, query):
        length = int64(kmers.lengths[query])
        low, high = _exact_rows(index, oriented_word(kmers, query, strand, int64(0)), length)
        row = low
        count = high - low
        if length > _decided(index):
            count = int64(0)
            for candidate in range(low, high):
                if _matches(index, kmers, query, strand, _position(index, candidate), length):
                    count += int64(1)
    total = count + int64(cuda.shfl_xor_sync(0xFFFFFFFF, int32(count), 1))
    if total > max_hits:
        if strand == int64(0):
            cuda.atomic.add(cursor, 1, uint64(1))
            cuda.atomic.add(cursor, 2, uint64(total))
        count = int64(0)
        total = int64(0)
    if there and strand == int64(0):
        counts[query] = uint32(total)
    place, warp_total = _warp_places(count)
    places[me] = uint32(place)
    kinds[me] = uint8(_SIDE_BY_SIDE if length <= _decided(index) else _SCATTERED)
    rows[me] = uint32(row)
    if count == int64(1) and length <= _decided(index):
        rows[me] = uint32(_position(index, row))
        kinds[me] = uint8(_SINGLE)
    begin = _reserve(warp_totals, warp_total, cursor, 0)
    if not store or begin + warp_total > int64(hits.shape[0]):
        return
    first_lane = me - (me & int64(31))
    for i in range(me & int64(31), warp_total, 32):
        owner = _lane_of(places, first_lane, int64(i))
        if kinds[owner] != uint8(_SCATTERED):
            position = int64(rows[owner])
            if kinds[owner] == uint8(_SIDE_BY_SIDE):
                position = _position(index, position + int64(i) - int64(places[owner]))
            of_query = (t - me + owner) >> int64(1)
            hits[begin + int64(i)] = _keyed_hit(of_query, position, owner & int64(1), int64(0))
    if kinds[me] == uint8(_SCATTERED):
        while count > int64(0):
            position = _position(index, row)
            if _matches(index, kmers, query, strand, position, length):
                hits[begin + place] = _keyed_hit(query, position, strand, int64(0))
                place += int64(1)
                count -= int64(1)
            row += int64(1)


# ---------------------------------------------------------------- fast tier, with mismatches


@scalar
def _oriented_bases(kmers, query, strand, first_word, offset):
    """32 bases of a k-mer in one orientation from `offset` on, zero behind its end."""
    if offset < int64(32) and kmers.words.shape[1] == 1:
        return first_word << uint64(int64(2) * offset)
    length = int64(kmers.lengths[query])
    word = offset >> int64(5)
    shift = uint64(int64(2) * (offset & int64(31)))
    bases = oriented_word(kmers, query, strand, word) << shift
    if shift != uint64(0) and int64(32) * (word + int64(1)) < length:
        bases |= oriented_word(kmers, query, strand, word + int64(1)) >> (uint64(64) - shift)
    return bases


@scalar
def exact_tag_range(index, low, high, bases, exact):
    """Rows of a bucket that agree with the `exact` (capped at the tag's) bases behind the K of the table."""
    if exact <= int64(0):
        return low, high
    mask = prefix_mask(min(exact, int64(_TAG_BASES))) >> uint64(32)
    tag = ((bases << uint64(int64(2) * int64(index.table_length))) >> uint64(32)) & mask
    return _tag_range(index.rows, low, high, tag, mask)


@scalar
def look_up_bucket(index, kmers, scheme, query, strand, first_word, pattern):
    """One look-up of a k-mer in one orientation.

    Returns
    -------
    (low, high, bases) : the rows of the pattern's bucket, and 32 bases of the k-mer from its window on
    """
    bases = _oriented_bases(kmers, query, strand, first_word, int64(scheme.pattern_offset[pattern]))
    low, high = _bucket(index, bases, int64(scheme.pattern_length[pattern]), scheme.patterns[pattern])
    return low, high, bases


class Lists(NamedTuple):
    """Where the threads of an inexact search append; each list is cut into _SEGMENTS parts with a cursor each.

    Blocks take the parts in turn, so that no single counter is everybody's bottleneck. A cursor also counts what
    found no room.
    """

    cursors: np.ndarray
    """uint64[_KEPT + 3], of the hits, of the crowded buckets; hits kept, dropped k-mers, dropped hits"""
    hits: np.ndarray
    """uint64[…], k-mer << 35 | packed hit"""
    crowded: np.ndarray
    """uint32[…, 4], 2·q + s, pattern, first row, row behind the last"""
    counts: np.ndarray
    """uint32[n], hits of each k-mer"""


@scalar
def _tag_of(index, length, offset, bases):
    """What a row's tag should be for a window at `offset`, and the mask of its bases that lie in the k-mer."""
    table_length = int64(index.table_length)
    mask = prefix_mask(min(length - offset, int64(32)) - table_length) >> uint64(32)
    return ((bases << uint64(int64(2) * table_length)) >> uint64(32)) & mask, mask


@scalar
def _try_row(index, kmers, scheme, max_hits, lists, owner, first_word, pattern, tag, mask, row):
    """Decide on one row of a bucket by its tag, then by the text; append it if it is a hit."""
    query = owner >> int64(1)
    strand = owner & int64(1)
    limit = int64(scheme.max_mismatches)
    tagged = index.rows[row]
    differ = mismatch_bits((tagged >> uint64(32)) & mask, tag)
    spent = popcount(mismatch_bits(scheme.patterns[pattern], uint64(0)))
    if spent + popcount(differ) > limit and kmers.marks.shape[0] != kmers.words.shape[0]:
        return
    position = int64(tagged & uint64(0xFFFFFFFF)) - int64(scheme.pattern_offset[pattern])
    if position < int64(0) or position >= int64(index.rows.shape[0]):
        return
    window = int64(scheme.pattern_window[pattern])
    if kmers.words.shape[1] == 1:
        length = int64(kmers.lengths[query])
        differ = mismatch_bits(fetch_word(index.text, position), first_word)
        differ = (differ | oriented_marks(kmers, query, strand, int64(0))) & prefix_mask(length)
        distance = popcount(differ)
        if distance > limit or not first_window(scheme, length, differ, window):
            return
        if not inside_segment(index.segments, position, length):
            return
    else:
        distance = accept(index, kmers, scheme, query, strand, position, window)
        if distance < int64(0):
            return
    if int64(cuda.atomic.add(lists.counts, query, uint32(1))) >= max_hits:
        return
    segment = int64(cuda.blockIdx.x) & int64(_SEGMENTS - 1)
    room = int64(lists.hits.shape[0]) // int64(_SEGMENTS)
    slot = int64(cuda.atomic.add(lists.cursors, segment, uint64(1)))
    if slot < room:
        lists.hits[segment * room + slot] = _keyed_hit(query, position, strand, distance)


@scalar
def _set_aside(lists, owner, pattern, low, high):
    """Leave a crowded bucket to whole warps, in pieces."""
    segment = int64(cuda.blockIdx.x) & int64(_SEGMENTS - 1)
    room = int64(lists.crowded.shape[0]) // int64(_SEGMENTS)
    for first in range(low, high, _PIECE):
        slot = int64(cuda.atomic.add(lists.cursors, int64(_SEGMENTS) + segment, uint64(1)))
        if slot < room:
            entry = segment * room + slot
            lists.crowded[entry, 0] = uint32(owner)
            lists.crowded[entry, 1] = uint32(pattern)
            lists.crowded[entry, 2] = uint32(first)
            lists.crowded[entry, 3] = uint32(min(int64(first) + int64(_PIECE), high))


@bounded_kernel(64)
def append_inexact(index, kmers, scheme, max_hits, lists, rounds):
    """Matches with mismatches: 2 lanes a k-mer and orientation take its look-ups in turn, in `rounds` rounds.

    Where a warp meets a fuller bucket, the rows of its 32 buckets are dealt out to its lanes one by one (binary
    search in shared memory, 28 bytes a thread), so that one full bucket does not keep 31 lanes waiting. Buckets of
    more than _CROWDED rows are set aside for `append_crowded`.
    """
    places = cuda.shared.array(_FAST_BLOCK, uint32)
    lows = cuda.shared.array(_FAST_BLOCK, uint32)
    tags = cuda.shared.array(_FAST_BLOCK, uint32)
    masks = cuda.shared.array(_FAST_BLOCK, uint32)
    patterns = cuda.shared.array(_FAST_BLOCK, uint32)
    words = cuda.shared.array(_FAST_BLOCK, uint64)
    t = int64(cuda.grid(1))
    me = int64(cuda.threadIdx.x)
    first_lane = me - (me & int64(31))
    owner = t >> int64(_LANES_SHIFT)
    query = owner >> int64(1)
    strand = owner & int64(1)
    length = int64(0)
    pattern = int64(0)
    end = int64(0)
    first_word = uint64(0)
    if query < int64(kmers.lengths.shape[0]):
        length = int64(kmers.lengths[query])
        first_word = oriented_word(kmers, query, strand, int64(0))
        pattern = scheme.pattern_first[length, 0] + (t & int64(_LANES - 1))
        end = scheme.pattern_first[length, 0] + scheme.look_ups[length]
    words[me] = first_word
    for _ in range(rounds):
        low = int64(0)
        high = int64(0)
        tag = uint64(0)
        mask = uint64(0)
        if pattern < end:
            low, high, bases = look_up_bucket(index, kmers, scheme, query, strand, first_word, pattern)
            if high - low > int64(_CROWDED):
                window = int64(scheme.pattern_window[pattern])
                exact = min(scheme.length[length, window], int64(32)) - int64(index.table_length)
                low, high = exact_tag_range(index, low, high, bases, exact)
                if high - low > int64(_CROWDED):
                    _set_aside(lists, owner, pattern, low, high)
                    high = low
            tag, mask = _tag_of(index, length, int64(scheme.pattern_offset[pattern]), bases)
        if cuda.any_sync(0xFFFFFFFF, high - low > int64(_FULLER)):
            place, total = _warp_places(max(high - low, int64(0)))
            places[me] = uint32(place)
            lows[me] = uint32(low)
            tags[me] = uint32(tag)
            masks[me] = uint32(mask)
            patterns[me] = uint32(pattern)
            cuda.syncwarp()
            for i in range(me & int64(31), total, 32):
                lane = _lane_of(places, first_lane, int64(i))
                _try_row(
                    index, kmers, scheme, max_hits, lists, (t - me + lane) >> int64(_LANES_SHIFT), words[lane],
                    int64(patterns[lane]), uint64(tags[lane]), uint64(masks[lane]),
                    int64(lows[lane]) + int64(i) - int64(places[lane]),
                )  # fmt: skip
            cuda.syncwarp()
        else:
            for row in range(low, high):
                _try_row(index, kmers, scheme, max_hits, lists, owner, first_word, pattern, tag, mask, int64(row))
        pattern += int64(_LANES)


@kernel
def append_crowded(index, kmers, scheme, max_hits, lists):
    """The rows of the buckets set aside: a warp takes pieces of a part of the list in turn, a lane every 32nd row."""
    t = int64(cuda.grid(1))
    warp = t >> int64(5)
    warps = int64(cuda.gridsize(1)) >> int64(5)
    segment = warp & int64(_SEGMENTS - 1)
    room = int64(lists.crowded.shape[0]) // int64(_SEGMENTS)
    used = min(int64(lists.cursors[int64(_SEGMENTS) + segment]), room)
    for i in range(warp // int64(_SEGMENTS), used, warps // int64(_SEGMENTS)):
        entry = segment * room + int64(i)
        owner = int64(lists.crowded[entry, 0])
        query = owner >> int64(1)
        strand = owner & int64(1)
        pattern = int64(lists.crowded[entry, 1])
        offset = int64(scheme.pattern_offset[pattern])
        first_word = oriented_word(kmers, query, strand, int64(0))
        bases = _oriented_bases(kmers, query, strand, first_word, offset)
        tag, mask = _tag_of(index, int64(kmers.lengths[query]), offset, bases)
        first = int64(lists.crowded[entry, 2]) + (t & int64(31))
        for row in range(first, int64(lists.crowded[entry, 3]), 32):
            _try_row(index, kmers, scheme, max_hits, lists, owner, first_word, pattern, tag, mask, int64(row))


@kernel
def close_ranks(lists, max_hits, hits):
    """Move the parts of the list of hits together, less those of dropped k-mers: one thread a place.

    Blocks reserve room by one addition to ``cursors[_KEPT]``.
    """
    warp_totals = cuda.shared.array(_FAST_WARPS, uint64)
    t = int64(cuda.grid(1))
    room = int64(lists.hits.shape[0]) // int64(_SEGMENTS)
    segment = t // room
    keep = segment < int64(_SEGMENTS) and t - segment * room < int64(lists.cursors[segment])
    hit = uint64(0)
    if keep:
        hit = lists.hits[t]
        keep = int64(lists.counts[int64(hit >> uint64(_QUERY_SHIFT))]) <= max_hits
    place, total = _warp_places(int64(1) if keep else int64(0))
    begin = _reserve(warp_totals, total, lists.cursors, _KEPT)
    if keep:
        hits[begin + place] = hit


@kernel
def settle_counts(lists, max_hits):
    """Count dropped k-mers and their hits behind ``cursors[_KEPT]``, and set their counts to 0: one thread a k-mer."""
    query = int64(cuda.grid(1))
    if query < int64(lists.counts.shape[0]) and int64(lists.counts[query]) > max_hits:
        cuda.atomic.add(lists.cursors, _KEPT + 1, uint64(1))
        cuda.atomic.add(lists.cursors, _KEPT + 2, uint64(lists.counts[query]))
        lists.counts[query] = uint32(0)


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
    each = 8 * words + 256
    size = max(1, min(_BATCH, free_memory() // (2 * each)))
    return [(first, min(first + size, count)) for first in range(0, count, size)]


def _part(kmers: Kmers, first: int, last: int) -> Kmers:
    marked = kmers.marks.shape[0] == kmers.words.shape[0]
    marks = kmers.marks[first:last] if marked else kmers.marks
    return Kmers(kmers.words[first:last], marks, kmers.lengths[first:last])


@contextmanager
def _enough_memory(count: int) -> Iterator[None]:
    """Turn CuPy's failure to allocate into one sentence."""
    try:
        yield
    except cupy().cuda.memory.OutOfMemoryError as error:
        raise MemoryLimitError(
            f"A batch of {count:,} k-mers has more hits than the device's memory holds ({free_memory() / 1e9:.1f} GB "
            "are free); set max_hits, search fewer k-mers at once, or use device='cpu'."
        ) from error


def _join(parts: list[Found]) -> Found:
    if len(parts) == 1:
        return parts[0]
    return Found(
        np.concatenate([part.hits for part in parts] or [np.empty(0, np.uint64)]),
        np.concatenate([part.counts for part in parts] or [np.empty(0, np.int64)]),
        sum(part.dropped_queries for part in parts),
        sum(part.dropped_hits for part in parts),
    )


class DeviceHits(NamedTuple):
    """Hits on the device, k-mer by k-mer."""

    hits: Any
    """uint64[h], k-mer << 35 | hit packed by `pack_hit`, in no order; empty where only counts were asked for"""
    counts: Any
    """uint32[n], hits of each k-mer, 0 for one that was dropped"""
    results: int
    dropped_queries: int
    dropped_hits: int


class DeviceScheme(NamedTuple):
    """A scheme on the device, and the rounds in which its lanes take the look-ups of any of its k-mers."""

    arrays: Scheme
    rounds: int


def device_scheme(index: SeedIndex, lengths: np.ndarray, max_mismatches: int, table_length: int) -> DeviceScheme:
    """Choose the windows for a batch, and copy them to the device."""
    scheme = make_scheme(lengths, max_mismatches, index.rows, table_length, COSTS)
    return DeviceScheme(to_device(scheme), -(-int(scheme.look_ups.max()) // _LANES))


def exact_hits(tagged: TaggedIndex, kmers: Kmers, max_hits: int | None, count_only: bool = False) -> DeviceHits:
    """Exact search of k-mers on the device: append in one pass; again with room where it was short."""
    xp = cupy()
    count = len(kmers.lengths)
    counts = xp.empty(count, xp.uint32)
    limit = _NO_LIMIT if max_hits is None else max_hits
    room = 0 if count_only else 16 * count + 1024
    while True:
        hits, cursor = xp.empty(max(room, 1), xp.uint64), xp.zeros(3, xp.uint64)
        outputs = (view(cursor), view(counts), view(hits))
        launch(append_exact, 2 * count, _FAST_BLOCK, tagged, kmers, limit, not count_only, *outputs)
        total, dropped_queries, dropped_hits = map(int, cursor.get())
        if total <= room or count_only:
            return DeviceHits(hits[: 0 if count_only else total], counts, total, dropped_queries, dropped_hits)
        del hits, outputs
        room = total


def inexact_hits(
    tagged: TaggedIndex, kmers: Kmers, scheme: DeviceScheme, max_hits: int | None, count_only: bool = False
) -> DeviceHits:
    """Search with mismatches of k-mers on the device: append, move together; again with room where it was short."""
    xp = cupy()
    count = len(kmers.lengths)
    room = _SEGMENTS * (0 if count_only else 4 + count // 4)
    crowded_room = _SEGMENTS * (64 + count // 16)
    limit = _NO_LIMIT if max_hits is None else max_hits
    while True:
        found, counts = xp.empty(max(room, 1), xp.uint64), xp.zeros(count, xp.uint32)
        crowded, cursors = xp.empty((crowded_room, 4), xp.uint32), xp.zeros(_KEPT + 3, xp.uint64)
        hits = xp.empty(max(room, 1), xp.uint64)
        lists = Lists(view(cursors), view(found), view(crowded), view(counts))
        arguments = (tagged, kmers, scheme.arrays, limit, lists)
        launch(append_inexact, 2 * count << _LANES_SHIFT, _FAST_BLOCK, *arguments, scheme.rounds)
        launch(append_crowded, _CROWDED_THREADS, _FAST_BLOCK, *arguments)
        launch(close_ranks, room, _FAST_BLOCK, lists, limit, view(hits))
        launch(settle_counts, count, _FAST_BLOCK, lists, limit)
        used = cursors.get().astype(np.int64)
        needed, needed_crowded = (_SEGMENTS * int(part.max()) for part in (used[:_SEGMENTS], used[_SEGMENTS:_KEPT]))
        if needed_crowded <= crowded_room and (needed <= room or count_only):
            break
        del found, crowded, hits, lists, arguments
        room, crowded_room = max(room, needed), max(crowded_room, needed_crowded)
    kept, dropped_queries, dropped_hits = map(int, used[_KEPT:])
    results = int(counts.sum(dtype=xp.int64)) if count_only else kept
    return DeviceHits(hits[:kept], counts, results, dropped_queries, dropped_hits)


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

    With `count_only` only their numbers.
    """
    watch = watch or Stopwatch()
    tagged = tagged_index(index, watch)
    parts = []
    for first, last in _batches(len(kmers.lengths), kmers.words.shape[1]):
        with watch.stage("host_to_device", synchronise=cuda.synchronize):
            part = to_device(_part(kmers, first, last))
            if max_mismatches > 0:
                lengths = kmers.lengths[first:last]
                scheme = device_scheme(index, lengths, max_mismatches, tagged.table_length)
        with _enough_memory(last - first), time_on_device(watch, "kernel"):
            if max_mismatches == 0:
                found = exact_hits(tagged, part, max_hits, count_only)
            else:
                found = inexact_hits(tagged, part, scheme, max_hits, count_only)
        with time_on_device(watch, "sort"):
            ordered = found.hits
            ordered.sort()
            ordered &= cupy().uint64((1 << _QUERY_SHIFT) - 1)
        with watch.stage("device_to_host"):
            hits, counts = ordered.get(), found.counts.get().astype(np.int64)
        parts.append(Found(hits, counts, found.dropped_queries, found.dropped_hits))
    return _join(parts)


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
        room = needed
    order = xp.argsort(kind[:needed])
    return low[order], size[order], kind[order], totals.astype(xp.int64)


def _search_batch(
    parts: tuple[PaperIndex, PaperIndex],
    kmers: Kmers,
    max_mismatches: int,
    max_hits: int | None,
    longest: int,
) -> _DeviceIntervals:
    xp = cupy()
    limit = _NO_LIMIT if max_hits is None else max_hits
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
    parts = paper_index(index, watch)
    found: list[Intervals] = []
    for first, last in _batches(len(kmers.lengths), kmers.words.shape[1]):
        longest = int(kmers.lengths[first:last].max(initial=1))
        with watch.stage("host_to_device", synchronise=cuda.synchronize):
            part = to_device(_part(kmers, first, last))
        with _enough_memory(last - first), time_on_device(watch, "kernel"):
            batch = _search_batch(parts, part, max_mismatches, max_hits, longest)
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


def _locate(searched: PaperIndex, intervals: _DeviceIntervals, block: int) -> tuple[Any, Any]:
    """The pairs (j, t) of all rows of all intervals, on the device."""
    xp = cupy()
    ends = xp.cumsum(intervals.size, dtype=xp.uint64)
    total = int(ends[-1]) if len(ends) else 0
    entry, steps = xp.empty(total, xp.uint32), xp.empty(total, xp.uint32)
    launch(paper_locate, total, block, searched, view(intervals.low), view(ends), view(entry), view(steps))
    return entry, steps


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
    parts = paper_index(index, watch)
    searched, on_host = (parts[1], index.reverse) if max_mismatches else (parts[0], index.forward)
    block = INEXACT_BLOCK if max_mismatches else EXACT_BLOCK
    found = []
    for first, last in _batches(len(kmers.lengths), kmers.words.shape[1]):
        longest = int(kmers.lengths[first:last].max(initial=1))
        with watch.stage("host_to_device", synchronise=cuda.synchronize):
            part = to_device(_part(kmers, first, last))
        with _enough_memory(last - first), time_on_device(watch, "kernel"):
            batch = _search_batch(parts, part, max_mismatches, max_hits, longest)
        with _enough_memory(last - first), time_on_device(watch, "locate"):
            entry, steps = _locate(searched, batch, block)
        with watch.stage("device_to_host"):
            pairs = (batch.size.get(), batch.kind.get(), entry.get(), steps.get())
            counts = batch.totals.get()
        with watch.stage("lookup"):
            hits = np.empty(len(pairs[2]), np.uint64)
            cpu.look_up_pairs(on_host, kmers.lengths[first:last], max_mismatches > 0, pairs, hits)
        with watch.stage("sort"):
            cpu.sort_hits(hits, counts)
        found.append(Found(hits, counts, batch.dropped_queries, batch.dropped_hits))
    return _join(found)


def device_run(
    index: SeedIndex, kmers: Kmers, max_mismatches: int, *, tier: str, max_hits: int | None = None
) -> Callable[[], int]:
    """A search of k-mers that lie on the device and whose hits stay there, as a call that returns their number.

    The fast tier's hits are compacted and complete; the paper tier's are pairs (j, t).
    """
    watch = Stopwatch()
    on_device = to_device(kmers)
    if tier == "paper":
        parts = paper_index(index, watch)
        searched, block = (parts[1], INEXACT_BLOCK) if max_mismatches else (parts[0], EXACT_BLOCK)
        longest = int(kmers.lengths.max(initial=1))

        def paper_run() -> int:
            batch = _search_batch(parts, on_device, max_mismatches, max_hits, longest)
            return len(_locate(searched, batch, block)[0])

        return paper_run
    tagged = tagged_index(index, watch)
    if max_mismatches == 0:
        return lambda: exact_hits(tagged, on_device, max_hits).results
    scheme = device_scheme(index, kmers.lengths, max_mismatches, tagged.table_length)
    return lambda: inexact_hits(tagged, on_device, scheme, max_hits).results

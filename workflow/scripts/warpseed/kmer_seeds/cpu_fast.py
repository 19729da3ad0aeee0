"""The fast tier's loop on the CPU: blocks of k-mers in passes, each prefetching for the next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word, mismatch_bits, prefix_mask
from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import popcount, prefetch
from warpseed.compute.sink import close_queries
from warpseed.fm_index.buckets import (
    Narrowing,
    begin_narrowing,
    narrow_together,
    new_narrowing,
    prefetch_rows,
    prefetch_text,
)
from warpseed.kmer_seeds.cpu_tags import Pieces, first_base, leave_tagged, new_pieces
from warpseed.kmer_seeds.fast import accept_word, accept_words
from warpseed.kmer_seeds.kmers import pack_hit
from warpseed.sequences.packed import one_word_each, oriented_marks, oriented_word

__all__ = ["NARROW_ABOVE", "Block", "new_block", "search_range"]

NARROW_ABOVE = 16
"""Rows from which a bucket is narrowed by what must be behind the bases that are looked up."""
_LOOK_UPS = 512
_CANDIDATES = 1024
_SOON = 128
"""Rows after which a look is taken at them where there are so many that their k-mer may be dropped."""


class Block(NamedTuple):
    """Working arrays of one block of k-mers. An *owner* is a k-mer in one orientation, an *item* one look-up."""

    item_low: np.ndarray
    """int64[items], the table's entry with its first row"""
    item_high: np.ndarray
    """int64[items], and with the row behind its last"""
    item_owner: np.ndarray
    item_pattern: np.ndarray
    """int32[items], the look-up's number among the patterns of the scheme"""
    buckets: Pieces
    """the rows of each item that has some"""
    left: Pieces
    """those that tags left"""
    narrowing: Narrowing
    """of up to as many as there are pieces"""
    words: np.ndarray
    """uint64[], words of owner o from o·(W + 1) on, the last one zero"""
    marks: np.ndarray
    """uint64[owners], marks of the first word"""
    mask: np.ndarray
    """uint64[owners], pairs of the first word that are bases of the k-mer"""
    run_item: np.ndarray
    """int32[_CANDIDATES], items whose rows [run_low, run_high) are candidates, prefetched and not yet compared"""
    run_low: np.ndarray
    """int64[_CANDIDATES]"""
    run_high: np.ndarray
    found: np.ndarray
    """int64[k-mers], hits so far"""
    stride: int
    """words of an owner, the zero behind them included"""


def new_block(stride: int, look_ups: int) -> Block:
    """Room for a block: `stride` words for each orientation of a k-mer, `look_ups` of the k-mer that has most."""
    items = max(_LOOK_UPS, 2 * look_ups)
    buckets = new_pieces(items)
    return Block(
        np.empty(items, np.int64),
        np.empty(items, np.int64),
        np.empty(items, np.int32),
        np.empty(items, np.int32),
        buckets,
        new_pieces(items),
        new_narrowing(len(buckets.item)),
        np.zeros((items + 2) * stride + 1, np.uint64),
        np.zeros(items + 2, np.uint64),
        np.zeros(items + 2, np.uint64),
        np.empty(_CANDIDATES, np.int32),
        np.empty(_CANDIDATES, np.int64),
        np.empty(_CANDIDATES, np.int64),
        np.zeros(items + 2, np.int64),
        stride,
    )


@scalar
def _list_items(fast, kmers, scheme, block, begin, last):
    """First pass: the look-ups of as many k-mers as fit; returns the k-mer behind them and the number of items."""
    stride = int64(block.stride)
    items = int64(0)
    query = begin
    while query < last:
        length = int64(kmers.lengths[query])
        if items + int64(2) * scheme.look_ups[length] > block.item_low.shape[0]:
            break
        block.found[query - begin] = 0
        for strand in range(2):
            owner = int64(2) * (query - begin) + int64(strand)
            for w in range((length + int64(31)) >> int64(5)):
                block.words[owner * stride + w] = oriented_word(kmers, query, int64(strand), int64(w))
            block.marks[owner] = oriented_marks(kmers, query, int64(strand), int64(0))
            block.mask[owner] = prefix_mask(length)
            for i in range(scheme.windows[length]):
                seen = int64(scheme.pattern_length[scheme.pattern_first[length, i]])
                word = fetch_word(block.words, owner * stride * int64(32) + scheme.offset[length, i])
                code = word >> uint64(int64(64) - int64(2) * seen)
                shift = uint64(int64(2) * (int64(scheme.table_length) - seen))
                first = uint64(scheme.pattern_first[length, i])
                look_ups = uint64(scheme.pattern_first[length, i + 1]) - first
                at = uint64(items)
                for v in range(look_ups):
                    bucket = code ^ scheme.patterns[first + v]
                    block.item_low[at + v] = int64(bucket << shift)
                    block.item_high[at + v] = int64((bucket + uint64(1)) << shift)
                    block.item_owner[at + v] = owner
                    block.item_pattern[at + v] = int64(first + v)
                for v in range(look_ups):
                    prefetch(fast.table, block.item_low[at + v])
                items += int64(look_ups)
        query += int64(1)
    return query, items


@scalar
def _look_up_items(fast, block, items):
    """Second pass: table entries to rows. (A damaged table must not lead behind the last one.)

    Returns
    -------
    int64, how many items have rows; they are listed in `buckets`
    """
    rows = int64(fast.suffix_array.shape[0])
    filled = uint64(0)
    for item in range(uint64(items)):
        low = min(int64(fast.table[uint64(block.item_low[item])]), rows)
        high = min(int64(fast.table[uint64(block.item_high[item])]), rows)
        # Without a branch, as none could be foretold: what is empty is written over.
        block.buckets.item[filled] = item
        block.buckets.low[filled] = low
        block.buckets.high[filled] = high
        filled += uint64(low < high)
    return int64(filled)


@scalar
def _begin_rows(fast, scheme, block, listed, max_hits):
    """Third pass: prefetch the rows of pieces, listed as for `_gather`, or begin to narrow them.

    Narrowed are those whose next bases are known, too, and those that may have too many hits for each to be looked at.

    Returns
    -------
    int64, how many pieces are crowded and to be narrowed
    """
    pieces, count = listed
    crowded = int64(0)
    for i in range(uint64(count)):
        low = pieces.low[i]
        high = pieces.high[i]
        if high - low > int64(NARROW_ABOVE):
            item = uint64(pieces.item[i])
            pattern = uint64(block.item_pattern[item])
            seen = int64(scheme.pattern_length[pattern])
            exact = int64(scheme.pattern_exact[pattern])
            if exact > seen or (scheme.max_mismatches == 0 and high - low > max_hits):
                start, _ = first_base(block, scheme, item)
                changed = scheme.patterns[pattern] << uint64(int64(64) - int64(2) * seen)
                wanted = (fetch_word(block.words, start) ^ changed) & prefix_mask(exact)
                begin_narrowing(fast, block.narrowing, crowded, i, low, high, wanted, exact)
                crowded += int64(1)
                continue
        prefetch_rows(fast, low, high)
    return crowded


@scalar
def _is_dropped(block, local, sink):
    """Whether a k-mer has a hit too many, behind which no more are looked for."""
    return block.found[local] > sink.max_hits


@scalar
def _verify(fast, kmers, scheme, block, begin, runs, sink, stored):
    """Last pass: compare candidates with the text; returns the number of hits stored, or that had no room.

    A k-mer's hits are counted up to the first beyond max_hits.
    """
    limit = int64(scheme.max_mismatches)
    one_word = one_word_each(kmers)
    rows = uint64(fast.suffix_array.shape[0])
    for run in range(runs):
        item = block.run_item[run]
        owner = int64(block.item_owner[item])
        pattern = block.item_pattern[item]
        back = int64(scheme.pattern_offset[pattern])
        word = block.words[owner * int64(block.stride)]
        marks = block.marks[owner]
        mask = block.mask[owner]
        for row in range(uint64(block.run_low[run]), uint64(block.run_high[run])):
            place = int64(fast.suffix_array[row]) - back
            if uint64(place) >= rows:
                continue
            differ = (mismatch_bits(fetch_word(fast.text, place), word) | marks) & mask
            if popcount(differ) > limit:
                continue
            local = owner >> int64(1)
            strand = owner & int64(1)
            window = int64(scheme.pattern_window[pattern])
            if one_word:
                distance = accept_word(fast, scheme, int64(kmers.lengths[begin + local]), place, window, differ)
            else:
                distance = accept_words(fast, kmers, scheme, begin + local, strand, place, window)
            if distance < int64(0) or place < sink.begin or place >= sink.end or _is_dropped(block, local, sink):
                continue
            block.found[local] += 1
            if sink.store and block.found[local] <= sink.max_hits:
                if stored < sink.hits.shape[0]:
                    sink.hits[stored] = pack_hit(place, strand, distance)
                stored += int64(1)
    return stored


@scalar
def _too_many(kmers, scheme, block, query, piece, sink, rows):
    """Whether the rows of a piece, (item, low, high), are hits, without a mismatch, and more than a k-mer may have."""
    item, low, high = piece
    if scheme.max_mismatches > 0 or sink.begin > 0 or sink.end < rows:
        return False
    if high - low <= max(int64(sink.max_hits), int64(NARROW_ABOVE)):
        return False
    owner = block.item_owner[item]
    known = block.marks[owner] & block.mask[owner] == uint64(0)
    return known and int64(scheme.pattern_exact[block.item_pattern[item]]) == int64(kmers.lengths[query])


@inlined
def _gather_rows(fast, kmers, scheme, block, begin, piece, sink, so_far):
    """Rows of a piece to candidates, as long as its k-mer is not dropped; these are verified whenever there are many.

    Parameters
    ----------
    piece : (int64 item, int64 low, int64 high)
    so_far : (int64 candidates, int64 runs that they are in, int64 hits stored, int64 work done); fewer candidates than
        there may be

    Returns
    -------
    the same, with those of the piece
    """
    item, row, high = piece
    gathered, runs, stored, work = so_far
    owner = block.item_owner[item]
    back = int64(scheme.pattern_offset[block.item_pattern[item]])
    most = int64(_SOON) if high - row > sink.max_hits else int64(_CANDIDATES)
    while row < high:
        until = min(high, row + min(most, int64(_CANDIDATES) - gathered))
        work += until - row
        gathered += until - row
        block.run_item[runs] = item
        block.run_low[runs] = row
        block.run_high[runs] = until
        runs += int64(1)
        for each in range(uint64(row), uint64(until)):
            prefetch_text(fast, int64(fast.suffix_array[each]) - back)
        row = until
        if row < high or gathered == int64(_CANDIDATES):
            stored = _verify(fast, kmers, scheme, block, begin, runs, sink, stored)
            gathered = int64(0)
            runs = int64(0)
            if _is_dropped(block, int64(owner) >> int64(1), sink):
                break
    return gathered, runs, stored, work


@scalar
def _gather(fast, kmers, scheme, block, begin, listed, sink, so_far):
    """Fourth pass, rows to candidates, with the last one whenever there are many of them; it stores hits.

    Rows are read twice, to prefetch their text and to compare it: what they say lies in the cache by then.

    Parameters
    ----------
    listed : (Pieces, int64 how many)
    so_far : (int64 hits stored before this block, int64 work done, this block's look-ups included)

    Returns
    -------
    (stop, work) : int64; k-mers before `stop` are done. It ends at the first k-mer that is begun with more hits than
        there is room for, or with too much work done; else, behind the block
    """
    gathered = int64(0)
    runs = int64(0)
    pieces, count = listed
    stored, work = so_far
    query = int64(begin) - int64(1)
    stop = begin + int64(block.found.shape[0])
    for i in range(count):
        item = int64(pieces.item[i])
        piece = item, pieces.low[i], pieces.high[i]
        if pieces.low[i] == pieces.high[i]:
            continue
        local = int64(block.item_owner[item]) >> int64(1)
        if begin + local != query:
            if query >= begin and (stored > sink.hits.shape[0] or work > sink.work):
                stop = begin + local
                break
            query = begin + local
        if _is_dropped(block, local, sink):
            continue
        if _too_many(kmers, scheme, block, query, piece, sink, int64(fast.suffix_array.shape[0])):
            # What came before goes first; then the room that a k-mer takes which is dropped.
            stored = _verify(fast, kmers, scheme, block, begin, runs, sink, stored)
            gathered = int64(0)
            runs = int64(0)
            stored += max(int64(sink.max_hits) - block.found[local], int64(0)) if sink.store else int64(0)
            block.found[local] = sink.max_hits + int64(1)
        else:
            so_far = gathered, runs, stored, work
            gathered, runs, stored, work = _gather_rows(fast, kmers, scheme, block, begin, piece, sink, so_far)
    _verify(fast, kmers, scheme, block, begin, runs, sink, stored)
    return stop, work


@scalar
def search_range(fast, reading, kmers, scheme, block, first, last, sink):
    """Hits of the k-mers [first, last), in passes: table, tags, crowded buckets, suffix array, text, compare.

    Parameters
    ----------
    reading : TagReading of the scheme; of NO_TAGS to search without any

    Returns
    -------
    (stop, used, needed) : int64; where it stopped, the hits stored, and the room that k-mer `stop` needs (0 at the end,
        and where it stopped for the work)
    """
    used = int64(0)
    work = int64(0)
    begin = int64(first)
    while begin < last and work <= sink.work:
        end, items = _list_items(fast, kmers, scheme, block, begin, int64(last))
        pieces = block.buckets
        count = _look_up_items(fast, block, items)
        if reading.tags.bases_behind.shape[0] > int64(0):
            count = leave_tagged(reading, scheme, block, count)
            pieces = block.left
        crowded = _begin_rows(fast, scheme, block, (pieces, count), int64(sink.max_hits))
        narrow_together(fast, block.narrowing, crowded, pieces.low, pieces.high)
        stop, work = _gather(fast, kmers, scheme, block, begin, (pieces, count), sink, (used, work + items))
        end = min(end, stop)
        stopped, used, needed = close_queries(block.found, begin, end, first, sink, used)
        if stopped < end:
            return stopped, used, needed
        begin = end
    return begin, used, int64(0)

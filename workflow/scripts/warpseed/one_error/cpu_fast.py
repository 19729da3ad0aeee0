"""The fast tier's loop on the CPU: blocks of reads in passes, each prefetching for the next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.intrinsics import prefetch
from warpseed.compute.sink import close_queries
from warpseed.fm_index.buckets import narrow
from warpseed.fm_index.text import inside_segment
from warpseed.one_error.agreement import agree_from
from warpseed.one_error.edits import NO_EDIT, one_edit
from warpseed.one_error.fast import LEFT, known_piece, left_edits, left_half, right_edits
from warpseed.one_error.fast_two import FAR, distance_of, end_distances, first_own_start, is_anchor, piece_begin, third
from warpseed.one_error.reads import MATCH, MAX_EDITS, pack_placement, pack_two_edits
from warpseed.sequences.packed import all_known, oriented_marks, oriented_word

__all__ = ["Block", "How", "new_block", "search_range"]

NARROW_ABOVE = 64
"""Rows from which a bucket is narrowed by the bases behind the K of the table."""
_OWNERS = 256
_CANDIDATES = 1024


class How(NamedTuple):
    """What is searched for."""

    strands: int
    """1 for reads as they are given, 2 for their reverse complements too"""
    max_edits: int
    """0 to 2"""
    table_length: int
    crowded: int
    """rows of a piece from which on other places of it are looked up"""
    seeds: int
    """places of a piece that are looked up at most, of which the one with the fewest rows is taken"""
    pieces: int
    """2, halves, for one edit or none; 3, thirds, for two"""


class Block(NamedTuple):
    """Working arrays of one block of reads. An *owner* is a read in one orientation, an *item* a piece of one: items
    2·o and 2·o + 1 are the left and the right half of owner o, or 4·o to 4·o + 2 its thirds."""

    begin: np.ndarray
    """int64[items], the piece's first base, counted from that of owner 0"""
    bases: np.ndarray
    """int64[items], bases of the piece; -1 where it is not looked up"""
    crowded: np.ndarray
    """int32[items], those of which other places are looked up"""
    low: np.ndarray
    """int64[items], first row of the place that was taken"""
    high: np.ndarray
    """int64[items], the row behind its last"""
    shift: np.ndarray
    """int64[items], bases of the piece before that place"""
    wanted: np.ndarray
    """uint64[items], the first bases of the piece, up to 32"""
    mask: np.ndarray
    """uint64[items], the pairs of these"""
    words: np.ndarray
    """uint64[], words of owner o from first[o] on; one more behind the last"""
    marks: np.ndarray
    """uint64[], the marks beside them; uint64[0] where every base is known"""
    first: np.ndarray
    """int64[owners + 1]"""
    place: np.ndarray
    """int64[_CANDIDATES], where a piece would begin in the text"""
    place_item: np.ndarray
    """int32[_CANDIDATES]"""
    found: np.ndarray
    """int64[reads], placements so far"""


def new_block(longest: int, known: bool, how: How) -> Block:
    """Room for a block of reads with up to `longest` words; `known`: every base is one of A, C, G, T."""
    room = _OWNERS * min(longest, 16) + 2 * longest + 1
    items = _OWNERS << (how.pieces - 1)
    return Block(
        np.empty(items, np.int64),
        np.empty(items, np.int64),
        np.empty(items, np.int32),
        np.empty(items, np.int64),
        np.empty(items, np.int64),
        np.empty(items, np.int64),
        np.empty(items, np.uint64),
        np.empty(items, np.uint64),
        np.zeros(room, np.uint64),
        np.zeros(0 if known else room, np.uint64),
        np.zeros(_OWNERS + 1, np.int64),
        np.empty(_CANDIDATES, np.int64),
        np.empty(_CANDIDATES, np.int32),
        np.zeros(_OWNERS, np.int64),
    )


@scalar
def _may_be_exact(how, marks, first, length, piece):
    """Whether a piece is looked up: where it has a base that is none, that is an edit."""
    if piece > int64(how.max_edits):
        return False  # without an edit the left half is enough
    if marks.shape[0] == 0:
        return True
    bounds = piece_begin(length, piece, how.max_edits), piece_begin(length, piece + int64(1), how.max_edits)
    return known_piece(marks, first, length, bounds, how.max_edits)


@scalar
def _entry(how, block, item, shift):
    """The table entry of K bases of a piece, `shift` bases behind its first, int64; with A for what is behind it."""
    word = fetch_word(block.words, block.begin[item] + shift) & prefix_mask(block.bases[item] - shift)
    return int64(word >> uint64(int64(64) - int64(2) * int64(how.table_length)))


@scalar
def _list_items(fast, reads, how, block, begin, last):
    """First pass: words and look-ups of as many reads as fit; returns the read behind them."""
    query = begin
    owner = int64(0)
    to = int64(0)
    strands = int64(how.strands)
    known = all_known(reads)
    while query < last and owner + strands <= int64(_OWNERS):
        length = int64(reads.lengths[query])
        count = (length + int64(31)) >> int64(5)
        if to + strands * count >= int64(block.words.shape[0]):
            break
        block.found[query - begin] = 0
        for strand in range(strands):
            block.first[owner] = to
            for w in range(count):
                block.words[to + w] = oriented_word(reads, query, int64(strand), int64(w))
                if not known:
                    block.marks[to + w] = oriented_marks(reads, query, int64(strand), int64(w))
            for piece in range(how.pieces):
                item = (owner << int64(how.pieces - 1)) + int64(piece)
                offset = piece_begin(length, int64(piece), how.max_edits)
                bases = piece_begin(length, int64(piece) + int64(1), how.max_edits) - offset
                mask = prefix_mask(bases)
                wanted = fetch_word(block.words, to * int64(32) + offset) & mask
                block.begin[item] = to * int64(32) + offset
                block.wanted[item] = wanted
                block.mask[item] = mask
                block.bases[item] = bases
                if _may_be_exact(how, block.marks, to, length, int64(piece)):
                    prefetch(fast.table, int64(wanted >> uint64(int64(64) - int64(2) * int64(how.table_length))))
                else:
                    block.bases[item] = int64(-1)
            if how.pieces == 3:
                block.bases[(owner << int64(2)) + int64(3)] = int64(-1)  # no fourth piece
            to += count
            owner += int64(1)
        query += int64(1)
    return query


@scalar
def _look_up_items(fast, how, block, items):
    """Second pass: table entries to rows. Of a piece whose first K bases have many rows other places are looked up, and
    the one with the fewest is taken. (A damaged table must not lead behind the last.)"""
    rows = int64(fast.suffix_array.shape[0])
    length = int64(how.table_length)
    crowded = int64(0)
    for number in range(items):
        item = int64(number)
        bases = block.bases[item]
        block.low[item] = block.high[item] = block.shift[item] = int64(0)
        if bases < int64(0):
            continue
        entry = int64(block.wanted[item] >> uint64(int64(64) - int64(2) * length))
        low = min(int64(fast.table[entry]), rows)
        high = min(int64(fast.table[entry + (int64(1) << (int64(2) * max(length - bases, int64(0))))]), rows)
        block.low[item] = low
        block.high[item] = high
        prefetch(fast.suffix_array, low)
        if high - low > int64(how.crowded) and bases >= int64(2) * length:
            block.crowded[crowded] = item
            crowded += int64(1)
            for seed in range(1, min(bases // length, int64(how.seeds))):
                prefetch(fast.table, _entry(how, block, item, int64(seed) * length))
    for i in range(crowded):
        item = int64(block.crowded[i])
        for seed in range(1, min(block.bases[item] // length, int64(how.seeds))):
            entry = _entry(how, block, item, int64(seed) * length)
            low = min(int64(fast.table[entry]), rows)
            high = min(int64(fast.table[entry + int64(1)]), rows)
            if high - low < block.high[item] - block.low[item]:
                block.low[item] = low
                block.high[item] = high
                block.shift[item] = int64(seed) * length
        prefetch(fast.suffix_array, block.low[item])


@scalar
def _like(fast, block, gathered):
    """Keep the candidates at which the first bases of the piece are, up to 32; returns how many these are.

    (No branch decides: nobody could foresee it.)
    """
    kept = int64(0)
    for c in range(gathered):
        place = block.place[c]
        item = block.place_item[c]
        differ = (fetch_word(fast.text, place) ^ block.wanted[item]) & block.mask[item]
        block.place[kept] = place
        block.place_item[kept] = item
        kept += int64(differ == uint64(0))
    return kept


@scalar
def _verify(fast, reads, how, block, begin, gathered, sink, stored):
    """Last pass, with one edit or none: compare candidates with the text; returns the number of placements stored, or
    that had no room."""
    rows = int64(fast.suffix_array.shape[0])
    strands = int64(how.strands)
    for c in range(_like(fast, block, gathered)):
        item = int64(block.place_item[c])
        half = item & int64(1)
        owner = item >> int64(1)
        local = item >> strands
        length = int64(reads.lengths[begin + local])
        place = block.place[c] - left_half(length) * half
        # A base may be put in before the first, and one be taken out.
        if place < int64(-1) or place + length > rows + int64(1):
            continue
        read = (block.words, block.marks, block.first[owner], length)
        edits = left_edits(fast.text, place, read) if half == int64(LEFT) else right_edits(fast.text, place, read)
        for i in range(3):
            edit = edits[i]
            if edit == int64(NO_EDIT) or (how.max_edits == 0 and edit & int64(3) != int64(MATCH)):
                continue
            extra = int64(i) - int64(1)
            start = place - extra * half
            if start < int64(sink.begin) or start >= int64(sink.end) or length + extra < int64(1):
                continue
            if not inside_segment(fast.segments, start, length + extra):
                continue
            block.found[local] += 1
            if sink.store and block.found[local] <= sink.max_hits:
                if stored < sink.hits.shape[0]:
                    strand = owner & (strands - int64(1))
                    sink.hits[stored] = pack_placement(start, edit | (strand << int64(4)))
                stored += int64(1)
    return stored


@scalar
def _verify_two(fast, reads, how, block, begin, gathered, sink, stored):
    """As `_verify`, with two edits."""
    rows = int64(fast.suffix_array.shape[0])
    strands = int64(how.strands)
    for c in range(_like(fast, block, gathered)):
        item = int64(block.place_item[c])
        owner, piece = item >> int64(2), item & int64(3)
        local = owner >> (strands - int64(1))
        length = int64(reads.lengths[begin + local])
        place = block.place[c] - third(length, piece)
        read = (block.words, block.marks, block.first[owner], length)
        if place < int64(-MAX_EDITS) or place + length > rows + int64(MAX_EDITS):
            continue
        if not is_anchor(fast.text, fast.segments, read, piece, place):
            continue
        strand = owner & (strands - int64(1))
        first = max(first_own_start(fast.text, fast.segments, read, piece, place), int64(sink.begin))
        for number in range(max(first, int64(0)), min(place + int64(MAX_EDITS + 1), int64(sink.end))):
            start = int64(number)
            if start + length > rows + int64(MAX_EDITS):
                continue
            until, distances = end_distances(fast.text, start, read)
            if distances == int64(FAR):
                continue
            for more in range(-MAX_EDITS, MAX_EDITS + 1):
                extra = int64(more)
                distance = distance_of(distances, extra)
                if distance > int64(MAX_EDITS) or length + extra < int64(1):
                    continue
                if not inside_segment(fast.segments, start, length + extra):
                    continue
                block.found[local] += 1
                if sink.store and block.found[local] <= sink.max_hits:
                    if stored < sink.hits.shape[0]:
                        word = pack_two_edits(start, strand, extra)
                        if distance < int64(2):
                            since = agree_from(fast.text, start + extra, read, length)
                            edit = one_edit(fast.text, start, length, extra, until, since)
                            word = pack_placement(start, edit | (strand << int64(4)))
                        sink.hits[stored] = word
                    stored += int64(1)
    return stored


@scalar
def _narrowed(fast, how, block, item):
    """Those rows of a crowded bucket that go on as the piece does."""
    shift = block.shift[item]
    bases = min(block.bases[item] - shift, int64(32))
    if bases <= int64(how.table_length):
        return block.low[item], block.high[item]
    wanted = fetch_word(block.words, block.begin[item] + shift) & prefix_mask(bases)
    return narrow(fast, block.low[item], block.high[item], wanted, bases)


@scalar
def _decide(fast, reads, how, block, begin, gathered, sink, stored):
    """Last pass, with as many edits as are wanted."""
    if how.pieces == 3:
        return _verify_two(fast, reads, how, block, begin, gathered, sink, stored)
    return _verify(fast, reads, how, block, begin, gathered, sink, stored)


@scalar
def _gather(fast, reads, how, block, begin, items, sink, so_far):
    """Third pass, rows to candidates, with the last one whenever their list is full; it stores placements.

    Parameters
    ----------
    so_far : (int64 placements stored, int64 work done), before this block

    Returns
    -------
    (stop, work) : int64; reads before `stop` are done. It ends at the first read that is begun with more placements
        than there is room for, or with too much work done; else, behind the block
    """
    rows = int64(fast.suffix_array.shape[0])
    items_shift = int64(how.strands + how.pieces - 2)  # log2 of the items of a read
    gathered = int64(0)
    stored, work = so_far
    work += items
    for number in range(items):
        item = int64(number)
        begins = item & ((int64(1) << items_shift) - int64(1)) == int64(0)
        if begins and item > int64(0) and (stored > sink.hits.shape[0] or work > sink.work):
            items = item
            break
        low = block.low[item]
        high = block.high[item]
        if high - low > int64(NARROW_ABOVE):
            low, high = _narrowed(fast, how, block, item)
        work += max(high - low, int64(0))
        for row in range(low, high):
            place = int64(fast.suffix_array[row]) - block.shift[item]
            if place < int64(0) or place >= rows:
                continue
            if gathered == int64(_CANDIDATES):
                stored = _decide(fast, reads, how, block, begin, gathered, sink, stored)
                gathered = int64(0)
            prefetch(fast.text, place >> int64(5))
            block.place[gathered] = place
            block.place_item[gathered] = item
            gathered += int64(1)
    _decide(fast, reads, how, block, begin, gathered, sink, stored)
    return begin + (items >> items_shift), work


@scalar
def search_range(fast, reads, how, block, first, last, sink):
    """Placements of the reads [first, last), in passes: table, suffix array, text, compare.

    Returns
    -------
    (stop, used, needed) : int64; where it stopped, the placements stored, and the room that read `stop` needs (0 at
        the end, and where it stopped for the work)
    """
    used = int64(0)
    work = int64(0)
    begin = int64(first)
    while begin < last and work <= sink.work:
        end = _list_items(fast, reads, how, block, begin, int64(last))
        items = (end - begin) << int64(how.strands + how.pieces - 2)
        _look_up_items(fast, how, block, items)
        end, work = _gather(fast, reads, how, block, begin, items, sink, (used, work))
        stopped, used, needed = close_queries(block.found, begin, end, first, sink, used)
        if stopped < end:
            return stopped, used, needed
        begin = end
    return begin, used, int64(0)

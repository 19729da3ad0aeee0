"""The fast tier's loop on the CPU: blocks of reads in passes, each prefetching for the next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.intrinsics import popcount, prefetch
from warpseed.compute.sink import close_queries
from warpseed.fm_index.buckets import narrow
from warpseed.fm_index.text import inside_segment
from warpseed.one_error.agreement import agree_from
from warpseed.one_error.edits import NO_EDIT, one_edit
from warpseed.one_error.fast import LEFT, known_piece, left_edits, left_half, right_edits
from warpseed.one_error.fast_two import FAR, distance_of, end_distances, first_own_start, is_anchor, third
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
    seeds: int
    """places of a piece that are looked up, of which the one with the fewest rows is taken"""
    pieces: int
    """2, halves, for one edit or none; 3, thirds, for two"""


class Block(NamedTuple):
    """Working arrays of one block of reads. An *owner* is a read in one orientation, an *item* a piece of one: items
    2·o and 2·o + 1 are the left and the right half of owner o, or 4·o to 4·o + 2 its thirds."""

    entry: np.ndarray
    """int64[items · seeds], table entry of each place that is looked up; -1 behind the last of an item"""
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
        np.empty(items * how.seeds, np.int64),
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
def _piece_begin(length, piece, pieces):
    """The first base of a piece of a read; of the piece behind the last one, its length."""
    return (length * piece) >> int64(1) if pieces == 2 else third(length, piece)


@scalar
def _places(how, marks, first, length, piece):
    """Places of a piece that are looked up: none where it cannot be exact, for a base that is none is an edit."""
    if piece > int64(how.max_edits):
        return int64(0)  # without an edit the left half is enough
    begin, end = _piece_begin(length, piece, how.pieces), _piece_begin(length, piece + int64(1), how.pieces)
    if marks.shape[0] and not known_piece(marks, first, length, (begin, end), how.max_edits):
        return int64(0)
    return min(max((end - begin) // int64(how.table_length), int64(1)), int64(how.seeds))


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
                offset = _piece_begin(length, int64(piece), how.pieces)
                bases = _piece_begin(length, int64(piece) + int64(1), how.pieces) - offset
                wanted = fetch_word(block.words, to * int64(32) + offset) & prefix_mask(bases)
                block.wanted[item] = wanted
                block.mask[item] = prefix_mask(bases)
                places = _places(how, block.marks, to, length, int64(piece))
                for seed in range(places):
                    if seed > 0:
                        at = to * int64(32) + offset + int64(seed) * int64(how.table_length)
                        wanted = fetch_word(block.words, at)
                    entry = int64(wanted >> uint64(int64(64) - int64(2) * int64(how.table_length)))
                    prefetch(fast.table, entry)
                    block.entry[item * int64(how.seeds) + int64(seed)] = entry
                if places < how.seeds:
                    block.entry[item * int64(how.seeds) + places] = int64(-1)
            if how.pieces == 3:
                block.entry[((owner << int64(2)) + int64(3)) * int64(how.seeds)] = int64(-1)  # no fourth piece
            to += count
            owner += int64(1)
        query += int64(1)
    return query


@scalar
def _look_up_items(fast, how, block, items):
    """Second pass: table entries to rows, the fewest of an item. (A damaged table must not lead behind the last.)"""
    rows = int64(fast.suffix_array.shape[0])
    length = int64(how.table_length)
    for number in range(items):
        item = int64(number)
        block.low[item] = block.high[item] = int64(0)
        entries = int64(1) << (int64(2) * max(length - (popcount(block.mask[item]) >> int64(1)), int64(0)))
        fewest = rows + int64(1)
        for seed in range(how.seeds):
            entry = block.entry[item * int64(how.seeds) + int64(seed)]
            if entry < int64(0):
                break
            low = min(int64(fast.table[entry]), rows)
            high = min(int64(fast.table[entry + entries]), rows)
            if high - low < fewest:
                fewest = high - low
                block.low[item] = low
                block.high[item] = high
                block.shift[item] = int64(seed) * length
        prefetch(fast.suffix_array, block.low[item])


@scalar
def _verify(fast, reads, how, block, begin, gathered, sink, stored):
    """Last pass, with one edit or none: compare candidates with the text; returns the number of placements stored, or
    that had no room."""
    rows = int64(fast.suffix_array.shape[0])
    strands = int64(how.strands)
    for c in range(gathered):
        item = int64(block.place_item[c])
        if (fetch_word(fast.text, block.place[c]) ^ block.wanted[item]) & block.mask[item]:
            continue
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
    for c in range(gathered):
        item = int64(block.place_item[c])
        if (fetch_word(fast.text, block.place[c]) ^ block.wanted[item]) & block.mask[item]:
            continue
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
def _narrowed(fast, reads, how, block, begin, item):
    """Those rows of a crowded bucket that go on as the piece does."""
    owner = item >> int64(how.pieces - 1)
    length = int64(reads.lengths[begin + (owner >> int64(how.strands - 1))])
    piece = item & ((int64(1) << int64(how.pieces - 1)) - int64(1))
    begins = _piece_begin(length, piece, how.pieces)
    bases = min(_piece_begin(length, piece + int64(1), how.pieces) - begins - block.shift[item], int64(32))
    if bases <= int64(how.table_length):
        return block.low[item], block.high[item]
    at = block.first[owner] * int64(32) + begins + block.shift[item]
    return narrow(fast, block.low[item], block.high[item], fetch_word(block.words, at) & prefix_mask(bases), bases)


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
    work += items * int64(how.seeds)
    for number in range(items):
        item = int64(number)
        begins = item & ((int64(1) << items_shift) - int64(1)) == int64(0)
        if begins and item > int64(0) and (stored > sink.hits.shape[0] or work > sink.work):
            items = item
            break
        low = block.low[item]
        high = block.high[item]
        if high - low > int64(NARROW_ABOVE):
            low, high = _narrowed(fast, reads, how, block, begin, item)
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

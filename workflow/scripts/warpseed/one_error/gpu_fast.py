"""Kernels of the fast tier: a thread looks up one piece of a read in one orientation; the rows of a warp's pieces are
dealt out to its lanes, and each compares the read with one place of the text.

Those of two edits are in gpu_two.py.

Placements go to a list by one addition for many of them (`warpseed.compute.appended`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.appended import Appended, append_word, reserve_words, run_at, runs_of_warp, set_aside
from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import bounded_kernel, cuda, kernel
from warpseed.compute.warp import BLOCK, lane_of, warp_places
from warpseed.fm_index.tagged import TaggedIndex, decided_bases, exact_rows, position_of
from warpseed.fm_index.text import inside_segment
from warpseed.one_error.fast import LEFT, NO_EDIT, known_piece, left_edits, right_edits
from warpseed.one_error.fast_two import piece_begin
from warpseed.one_error.reads import MATCH, pack_placement
from warpseed.sequences.packed import Packed, first_word, oriented_marks, oriented_word

__all__ = [
    "Dealt",
    "Oriented",
    "Piece",
    "ReadLookUps",
    "append_crowded_placements",
    "append_placements",
    "dealt_row",
    "look_up_rows",
    "orient_reads",
    "oriented_read",
    "piece_of",
    "place_of",
    "row_of_run",
]

_CROWDED = 64
"""A piece with more rows is left to whole warps, in runs of _RUN rows."""
_RUN = 256
_MANY_ROWS = 8
"""Rows of a long piece from which on its last bases are looked up, too."""


class Oriented(NamedTuple):
    """The words of reads in both orientations: those of the reverse complements lie as far behind the others as there
    are words."""

    words: np.ndarray
    """uint64[2·total + 1]"""
    marks: np.ndarray
    """uint64[2·total + 1] beside them; uint64[0] where every base is known"""


@kernel
def orient_reads(reads, strands, oriented):
    """The words of every read as it is, and of its reverse complement with `strands` = 2: one thread a read."""
    query = int64(cuda.grid(1))
    if query >= int64(reads.lengths.shape[0]):
        return
    total = int64(reads.words.shape[0])
    first = first_word(reads, query)
    for word in range((int64(reads.lengths[query]) + int64(31)) >> int64(5)):
        for strand in range(strands):
            to = first + int64(strand) * total + int64(word)
            oriented.words[to] = oriented_word(reads, query, int64(strand), int64(word))
            if oriented.marks.shape[0]:
                oriented.marks[to] = oriented_marks(reads, query, int64(strand), int64(word))


class ReadLookUps(NamedTuple):
    """What all threads of a search share."""

    tagged: TaggedIndex
    reads: Packed
    oriented: Oriented
    strands: int
    max_edits: int
    """0 to 2; two edits leave one third of a read as it is, fewer one half"""
    max_hits: int
    found: Appended
    """cursors behind SEGMENTS are those of `crowded`"""
    crowded: np.ndarray
    """uint32[…, 4], item, bases of the piece before the place that was looked up, first row, row behind the last"""


class Piece(NamedTuple):
    """A piece of a read in one orientation."""

    query: int
    strand: int
    piece: int
    """its number: 0 and 1 are the halves, 0 to 2 the thirds"""
    first: int
    """its orientation's first word"""
    length: int
    """bases of the read"""


@scalar
def pieces_shift(search):
    """Items of a read in one orientation, as a shift: 0 for its left half alone, 1 for halves, 2 for thirds."""
    return int64(search.max_edits)


@scalar
def piece_of(search, item):
    """The piece with number ``item``, of (query · strands + strand) << pieces_shift | piece."""
    shift = pieces_shift(search)
    owner = item >> shift
    strand = owner & (int64(search.strands) - int64(1))
    query = owner >> (int64(search.strands) - int64(1))
    first = first_word(search.reads, query) + strand * int64(search.reads.words.shape[0])
    piece = item & ((int64(1) << shift) - int64(1))
    return Piece(query, strand, piece, first, int64(search.reads.lengths[query]))


@scalar
def _look_up(search, item):
    """The rows of a piece that are to be tried, and the bases of the piece before the place that was looked up."""
    part = piece_of(search, item)
    nothing = int64(0), int64(0), int64(0)
    begin = piece_begin(part.length, part.piece, search.max_edits)
    end = piece_begin(part.length, part.piece + int64(1), search.max_edits)
    if part.piece > int64(search.max_edits):
        return nothing
    marks = search.oriented.marks
    if marks.shape[0] and not known_piece(marks, part.first, part.length, (begin, end), int64(search.max_edits)):
        return nothing
    all_rows = int64(search.tagged.rows.shape[0])
    if begin == end:
        return int64(0), all_rows, int64(0)
    words, bases = search.oriented.words, end - begin
    at = part.first * int64(32) + begin
    low, high = exact_rows(search.tagged, fetch_word(words, at) & prefix_mask(bases), bases, all_rows)
    shift = bases - decided_bases(search.tagged)
    if high - low > int64(_MANY_ROWS) and shift > int64(0):
        word = fetch_word(words, at + shift) & prefix_mask(bases - shift)
        other_low, other_high = exact_rows(search.tagged, word, bases - shift, all_rows)
        if other_high - other_low < high - low:
            return other_low, other_high, shift
    return low, high, int64(0)


@scalar
def place_of(search, part, row, shift):
    """Where a read begins in the text if its piece is where a row and the place that was looked up say."""
    return position_of(search.tagged, row) - shift - piece_begin(part.length, part.piece, search.max_edits)


@scalar
def oriented_read(search, part):
    """The read of a piece as `warpseed.one_error.agreement` takes it."""
    return search.oriented.words, search.oriented.marks, part.first, part.length


@scalar
def _placement(search, part, start, extra, edit, inside):
    """A placement as one word, all ones where there is none; `inside` says that it surely lies in one segment."""
    none = ~uint64(0)
    if edit == int64(NO_EDIT) or (search.max_edits == 0 and edit & int64(3) != int64(MATCH)):
        return none
    length = part.length + extra
    if not inside and (length < int64(1) or not inside_segment(search.tagged.segments, start, length)):
        return none
    return pack_placement(start, edit | (part.strand << int64(4)))


@scalar
def _placements_at(search, part, row, shift):
    """The placements that a row of a half leads to: of a base less than the read, as many, and one more; all ones for
    none."""
    none = ~uint64(0)
    from_right = int64(part.piece != int64(LEFT))
    place = place_of(search, part, row, shift)
    # A base may be put in before the first, and one be taken out.
    if place < int64(-1) or place + part.length > int64(search.tagged.rows.shape[0]) + int64(1):
        return none, none, none
    read, text = oriented_read(search, part), search.tagged.text
    edits = right_edits(text, place, read) if from_right else left_edits(text, place, read)
    if edits[0] & edits[1] & edits[2] == int64(NO_EDIT):
        return none, none, none
    around = inside_segment(search.tagged.segments, place - int64(1), part.length + int64(2))
    inside = part.length > int64(1) and around
    return (
        _placement(search, part, place + from_right, int64(-1), edits[0], inside),
        _placement(search, part, place, int64(0), edits[1], inside),
        _placement(search, part, place - from_right, int64(1), edits[2], inside),
    )


@scalar
def _try_row(search, row, there):
    """Compare a read with the text where a row of one of its halves says, and keep the placements; all lanes of a warp
    take part, each with a row of its own, (item, row, shift), where it is `there`."""
    none = ~uint64(0)
    words = (none, none, none)
    query = int64(0)
    if there:
        part = piece_of(search, row[0])
        query = part.query
        words = _placements_at(search, part, row[1], row[2])
    count = int64(words[0] != none) + int64(words[1] != none) + int64(words[2] != none)
    reserved = reserve_words(search.found, search.max_hits, query, count)
    number = int64(0)
    if words[0] != none:
        append_word(search.found, reserved, number, query, words[0])
        number += int64(1)
    if words[1] != none:
        append_word(search.found, reserved, number, query, words[1])
        number += int64(1)
    if words[2] != none:
        append_word(search.found, reserved, number, query, words[2])


class Dealt(NamedTuple):
    """Arrays in shared memory by which the lanes of a warp deal out the rows that they found: uint32[BLOCK] each."""

    places: np.ndarray
    lows: np.ndarray
    shifts: np.ndarray


@scalar
def look_up_rows(search, dealt):
    """Look up this thread's piece, and put its rows where the lanes of its warp find them; returns the rows of all.

    Pieces of more than _CROWDED rows are set aside for whole warps.
    """
    t = int64(cuda.grid(1))
    me = int64(cuda.threadIdx.x)
    low = int64(0)
    high = int64(0)
    shift = int64(0)
    if t < (int64(search.reads.lengths.shape[0]) * int64(search.strands)) << pieces_shift(search):
        low, high, shift = _look_up(search, t)
        if high - low > int64(_CROWDED):
            set_aside(search.found.cursors, search.crowded, (t, shift), (low, high), int64(_RUN))
            high = low
    place, total = warp_places(max(high - low, int64(0)))
    dealt.places[me] = uint32(place)
    dealt.lows[me] = uint32(low)
    dealt.shifts[me] = uint32(shift)
    cuda.syncwarp()
    return total


@scalar
def dealt_row(dealt, begin, total):
    """The row that this lane has of those from `begin` on, as (item, row, shift), and whether there is one; else the
    last one."""
    me = int64(cuda.threadIdx.x)
    lane = me & int64(31)
    number = min(begin + lane, total - int64(1))
    owner = lane_of(dealt.places, me - lane, number)
    row = int64(dealt.lows[owner]) + number - int64(dealt.places[owner])
    return (int64(cuda.grid(1)) - me + owner, row, int64(dealt.shifts[owner])), begin + lane < total


@scalar
def row_of_run(run, first):
    """The row that this lane has of those of a run from `first` on, as (item, row, shift), and whether there is one."""
    item, shift, _, last = run
    row = first + (int64(cuda.threadIdx.x) & int64(31))
    return (item, row, shift), row < last


@bounded_kernel(48)
def append_placements(search):
    """Placements with at most one edit, one thread a half of a read in one orientation.

    The rows of a warp's 32 halves are dealt out to its lanes one by one (binary search in shared memory, 12 bytes a
    thread).
    """
    dealt = Dealt(cuda.shared.array(BLOCK, uint32), cuda.shared.array(BLOCK, uint32), cuda.shared.array(BLOCK, uint32))
    total = look_up_rows(search, dealt)
    for begin in range(0, total, 32):
        _try_row(search, *dealt_row(dealt, int64(begin), total))


@kernel
def append_crowded_placements(search):
    """The rows of the halves set aside: a warp takes runs of a part of the list in turn, a lane every 32nd row."""
    start, end, step = runs_of_warp(search.found.cursors, search.crowded)
    for entry in range(start, end, step):
        run = run_at(search.crowded, entry)
        for first in range(run[2], run[3], 32):
            _try_row(search, *row_of_run(run, int64(first)))

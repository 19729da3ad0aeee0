"""Kernels of the fast tier: a thread looks up one half of a read in one orientation; the rows of a warp's halves are
dealt out to its lanes, and each compares one place of the text with the read.

Placements go to a list by one addition for many of them (`warpseed.compute.appended`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.appended import SEGMENTS, Appended, append_words
from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import bounded_kernel, cuda, kernel
from warpseed.compute.warp import BLOCK, lane_of, warp_places
from warpseed.fm_index.tagged import TaggedIndex, decided_bases, exact_rows, position_of
from warpseed.fm_index.text import inside_segment
from warpseed.one_error.fast import LEFT, NO_EDIT, left_edits, left_half, may_be_exact, right_edits
from warpseed.one_error.reads import MATCH, pack_placement
from warpseed.sequences.packed import Packed, first_word, oriented_marks, oriented_word

__all__ = ["Oriented", "ReadLookUps", "append_crowded_placements", "append_placements", "orient_reads"]

_CROWDED = 64
"""A half with more rows is left to whole warps, in pieces of _PIECE rows."""
_PIECE = 256
_MANY_ROWS = 8
"""Rows of a long half from which on its last bases are looked up, too."""


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
    """0 or 1"""
    max_hits: int
    found: Appended
    """cursors behind SEGMENTS are those of `crowded`"""
    crowded: np.ndarray
    """uint32[…, 4], item, first row, row behind the last, bases of the half before the place that was looked up"""


class _Half(NamedTuple):
    """A half of a read in one orientation."""

    query: int
    strand: int
    half: int
    """LEFT or RIGHT"""
    first: int
    """its orientation's first word"""
    length: int
    """bases of the read"""


@scalar
def _half_of(search, item):
    """The half with number ``item`` = ((query · strands) + strand) · halves + half."""
    halves = int64(search.max_edits)  # as a shift
    half = item & halves
    owner = item >> halves
    strand = owner & (int64(search.strands) - int64(1))
    query = owner >> (int64(search.strands) - int64(1))
    first = first_word(search.reads, query) + strand * int64(search.reads.words.shape[0])
    return _Half(query, strand, half, first, int64(search.reads.lengths[query]))


@scalar
def _look_up(search, item):
    """The rows of a half that are to be tried, and the bases of the half before the place that was looked up."""
    part = _half_of(search, item)
    marks = search.oriented.marks
    if marks.shape[0] and not may_be_exact(marks, part.first, part.length, part.half, int64(search.max_edits)):
        return int64(0), int64(0), int64(0)
    middle = left_half(part.length)
    begin = part.first * int64(32) + (middle if part.half != int64(LEFT) else int64(0))
    bases = part.length - middle if part.half != int64(LEFT) else middle
    if bases == int64(0):
        return int64(0), int64(search.tagged.rows.shape[0]), int64(0)
    words = search.oriented.words
    low, high = exact_rows(search.tagged, fetch_word(words, begin) & prefix_mask(bases), bases)
    shift = bases - decided_bases(search.tagged)
    if high - low > int64(_MANY_ROWS) and shift > int64(0):
        word = fetch_word(words, begin + shift) & prefix_mask(bases - shift)
        other_low, other_high = exact_rows(search.tagged, word, bases - shift)
        if other_high - other_low < high - low:
            return other_low, other_high, shift
    return low, high, int64(0)


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
    """The placements that a row of a half leads to: (number, (word, word, word)), the words that are none last."""
    none = ~uint64(0)
    rows = int64(search.tagged.rows.shape[0])
    from_right = int64(part.half != int64(LEFT))
    place = position_of(search.tagged, row) - shift - left_half(part.length) * from_right
    # A base may be put in before the first, and one be taken out.
    if place < int64(-1) or place + part.length > rows + int64(1):
        return int64(0), (none, none, none)
    read = (search.oriented.words, search.oriented.marks, part.first, part.length)
    text = search.tagged.text
    edits = right_edits(text, place, read) if from_right else left_edits(text, place, read)
    if edits[0] & edits[1] & edits[2] == int64(NO_EDIT):
        return int64(0), (none, none, none)
    inside = part.length > int64(1) and inside_segment(search.tagged.segments, place - int64(1), part.length + int64(2))
    shorter = _placement(search, part, place + from_right, int64(-1), edits[0], inside)
    same = _placement(search, part, place, int64(0), edits[1], inside)
    longer = _placement(search, part, place - from_right, int64(1), edits[2], inside)
    count = int64(shorter != none) + int64(same != none) + int64(longer != none)
    if same == none:
        same, longer = longer, none
    if shorter == none:
        shorter, same, longer = same, longer, none
    return count, (shorter, same, longer)


@scalar
def _try_rows(search, item, row, shift, there):
    """Compare the read of a half with the text at one row, and keep the placements; all lanes of a warp take part."""
    none = ~uint64(0)
    count = int64(0)
    words = (none, none, none)
    query = int64(0)
    if there:
        part = _half_of(search, item)
        query = part.query
        count, words = _placements_at(search, part, row, shift)
    append_words(search.found, search.max_hits, query, words, count)


@scalar
def _set_aside(search, item, low, high, shift):
    """Leave a crowded half to whole warps, in pieces."""
    segment = int64(cuda.blockIdx.x) & int64(SEGMENTS - 1)
    room = int64(search.crowded.shape[0]) // int64(SEGMENTS)
    for first in range(low, high, _PIECE):
        slot = int64(cuda.atomic.add(search.found.cursors, int64(SEGMENTS) + segment, uint64(1)))
        if slot < room:
            entry = segment * room + slot
            search.crowded[entry, 0] = uint32(item)
            search.crowded[entry, 1] = uint32(first)
            search.crowded[entry, 2] = uint32(min(int64(first) + int64(_PIECE), high))
            search.crowded[entry, 3] = uint32(shift)


@bounded_kernel(48)
def append_placements(search):
    """Placements of the reads, one thread a half of a read in one orientation.

    The rows of a warp's 32 halves are dealt out to its lanes one by one (binary search in shared memory, 12 bytes a
    thread). Halves of more than _CROWDED rows are set aside for `append_crowded_placements`.
    """
    places = cuda.shared.array(BLOCK, uint32)
    lows = cuda.shared.array(BLOCK, uint32)
    shifts = cuda.shared.array(BLOCK, uint32)
    t = int64(cuda.grid(1))
    me = int64(cuda.threadIdx.x)
    lane = me & int64(31)
    first_lane = me - lane
    items = (int64(search.reads.lengths.shape[0]) * int64(search.strands)) << int64(search.max_edits)
    low = int64(0)
    high = int64(0)
    shift = int64(0)
    if t < items:
        low, high, shift = _look_up(search, t)
        if high - low > int64(_CROWDED):
            _set_aside(search, t, low, high, shift)
            high = low
    place, total = warp_places(max(high - low, int64(0)))
    places[me] = uint32(place)
    lows[me] = uint32(low)
    shifts[me] = uint32(shift)
    cuda.syncwarp()
    for begin in range(0, total, 32):
        number = int64(begin) + lane
        owner = lane_of(places, first_lane, min(number, total - int64(1)))
        row = int64(lows[owner]) + number - int64(places[owner])
        _try_rows(search, t - me + owner, row, int64(shifts[owner]), number < total)


@kernel
def append_crowded_placements(search):
    """The rows of the halves set aside: a warp takes pieces of a part of the list in turn, a lane every 32nd row."""
    t = int64(cuda.grid(1))
    lane = t & int64(31)
    warp = t >> int64(5)
    warps = int64(cuda.gridsize(1)) >> int64(5)
    segment = warp & int64(SEGMENTS - 1)
    room = int64(search.crowded.shape[0]) // int64(SEGMENTS)
    used = min(int64(search.found.cursors[int64(SEGMENTS) + segment]), room)
    for i in range(warp // int64(SEGMENTS), used, warps // int64(SEGMENTS)):
        entry = segment * room + int64(i)
        last = int64(search.crowded[entry, 2])
        for first in range(int64(search.crowded[entry, 1]), last, 32):
            row = int64(first) + lane
            _try_rows(search, int64(search.crowded[entry, 0]), row, int64(search.crowded[entry, 3]), row < last)

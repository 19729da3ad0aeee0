"""Kernels of the fast tier with two edits: as those of gpu_fast.py, with what fast_two.py says of a row of a third."""

from __future__ import annotations

from warpseed.compute.appended import append_word, reserve_words, run_at, runs_of_warp
from warpseed.compute.compiled import int64, scalar, uint32
from warpseed.compute.gpu import cuda, kernel
from warpseed.compute.warp import ALL_LANES, BLOCK
from warpseed.fm_index.text import inside_segment
from warpseed.one_error.agreement import agree_from
from warpseed.one_error.edits import one_edit
from warpseed.one_error.fast_two import FAR, distance_of, end_distances, first_own_start, is_anchor
from warpseed.one_error.gpu_fast import Dealt, dealt_row, look_up_rows, oriented_read, piece_of, place_of, row_of_run
from warpseed.one_error.reads import MAX_EDITS, pack_placement, pack_two_edits

__all__ = ["append_crowded_two", "append_two"]


@scalar
def _own_starts(search, part, row, shift):
    """The starts [first, last) that belong to the anchor at a row of a third; none where it is no anchor."""
    place = place_of(search, part, row, shift)
    rows = int64(search.tagged.rows.shape[0])
    if place < int64(-MAX_EDITS) or place + part.length > rows + int64(MAX_EDITS):
        return int64(0), int64(0)
    text, segments, read = search.tagged.text, search.tagged.segments, oriented_read(search, part)
    if not is_anchor(text, segments, read, part.piece, place):
        return int64(0), int64(0)
    last = min(place + int64(MAX_EDITS), rows + int64(MAX_EDITS) - part.length) + int64(1)
    return max(first_own_start(text, segments, read, part.piece, place), int64(0)), last


@scalar
def _is_placement(search, part, start, distances, extra):
    """Whether the bases from a start on, so many more than the read has, are within two edits, and in one segment."""
    length = part.length + extra
    if distance_of(distances, extra) > int64(MAX_EDITS) or length < int64(1):
        return False
    return inside_segment(search.tagged.segments, start, length)


@scalar
def _word_of(search, part, start, extra, until, distance):
    """A placement as one word."""
    if distance == int64(2):
        return pack_two_edits(start, part.strand, extra)
    text = search.tagged.text
    since = agree_from(text, start + extra, oriented_read(search, part), part.length)
    edit = one_edit(text, start, part.length, extra, until, since)
    return pack_placement(start, edit | (part.strand << int64(4)))


@scalar
def _try_start(search, part, start, there):
    """Keep the placements of a read that begin at a start; all lanes of a warp take part, those that are `there` with a
    start of their own."""
    until = int64(0)
    distances = int64(FAR)
    if there:
        until, distances = end_distances(search.tagged.text, start, oriented_read(search, part))
    found = int64(0)
    if distances != int64(FAR):
        for i in range(2 * MAX_EDITS + 1):
            extra = int64(i) - int64(MAX_EDITS)
            found |= int64(_is_placement(search, part, start, distances, extra)) << int64(i)
    count = int64(0)
    for i in range(2 * MAX_EDITS + 1):
        count += (found >> int64(i)) & int64(1)
    reserved = reserve_words(search.found, search.max_hits, part.query, count)
    number = int64(0)
    for i in range(2 * MAX_EDITS + 1):
        if (found >> int64(i)) & int64(1):
            extra = int64(i) - int64(MAX_EDITS)
            word = _word_of(search, part, start, extra, until, distance_of(distances, extra))
            append_word(search.found, reserved, number, part.query, word)
            number += int64(1)


@scalar
def _try_row(search, row, there):
    """As that of gpu_fast.py, of a row of a third."""
    part = piece_of(search, row[0])
    first = int64(0)
    last = int64(0)
    if there:
        first, last = _own_starts(search, part, row[1], row[2])
    while cuda.any_sync(ALL_LANES, first < last):
        _try_start(search, part, first, first < last)
        first += int64(1)


@kernel
def append_two(search):
    """Placements with at most two edits, one thread a third of a read in one orientation (and one in four idle)."""
    dealt = Dealt(cuda.shared.array(BLOCK, uint32), cuda.shared.array(BLOCK, uint32), cuda.shared.array(BLOCK, uint32))
    total = look_up_rows(search, dealt)
    for begin in range(0, total, 32):
        _try_row(search, *dealt_row(dealt, int64(begin), total))


@kernel
def append_crowded_two(search):
    """The rows of the thirds set aside."""
    start, end, step = runs_of_warp(search.found.cursors, search.crowded)
    for entry in range(start, end, step):
        run = run_at(search.crowded, entry)
        for first in range(run[2], run[3], 32):
            _try_row(search, *row_of_run(run, int64(first)))

"""The kernels of the fast tier's search with mismatches that take the buckets with many rows, which repeats make.

A bucket is read row by row only where there is nothing better. With one mismatch left for the bases that tags show,
each string that they may be is searched for among them. And where a k-mer's first window must have just one mismatch
more than it allows, its strings with so many are looked up in the table. That takes the place of reading the rows of
the window behind it, of which each would have to be compared in the text.
"""

from __future__ import annotations

from warpseed.compute.appended import run_at, runs_of_warp, set_aside
from warpseed.compute.compiled import int32, int64, scalar, uint64
from warpseed.compute.gpu import bounded_kernel, cuda, kernel
from warpseed.compute.sink import NO_LIMIT
from warpseed.compute.warp import ALL_LANES
from warpseed.fm_index.tagged import (
    MOST_TABLE_LENGTH,
    bucket_rows,
    decided_bases,
    exact_tag_range,
    lower_tag,
    tag_at,
    tag_mask,
    tag_range,
    tags_from,
)
from warpseed.kmer_seeds.gpu_look_ups import (
    LookUp,
    before_of,
    change_of,
    flush,
    is_dropped,
    look_up_of,
    may_match,
    new_shared,
    strings_within,
    tag_of,
    try_row,
    try_rows,
)
from warpseed.kmer_seeds.gpu_ways import bases_behind, deeper_way, is_framed, offset_of, spare_of, window_of
from warpseed.sequences.packed import all_known

__all__ = ["look_deeper", "piece_rows", "probe_crowded", "read_crowded"]

_RUN = 1024
"""Rows that are read one by one rather than searched, and that a warp reads before it takes others."""
_LONG_RUN = 1 << 14
"""As many, where max_hits is given: a k-mer is soon known to have too many, or has few hits in many rows."""
_PIVOTS = 32
"""Rows that share a bucket out, whose tags the lanes of a warp have one each."""
_SLICE = 256
"""Rows of a run after which a warp asks whether the k-mer is dropped."""
_ROWS_A_STRING = 8
"""Rows that are read in the time in which one string is looked up, where the bases before them decide."""
_ROWS_A_PROBE = 16
"""Rows that are read in the time in which one string is searched for."""
_PROBED = 1 << 29
"""Rows among which strings are searched for at a time; a warp counts what it finds in 32 bits."""
_TO_BE_READ = 1 << 31
"""Marks the pattern of a piece whose rows are read, however many they are: strings were searched for already."""
_READ, _PROBE, _DEEPER = 0, 1, 2
"""What is done with the rows of a bucket: read, strings in their tags searched for, the window before looked up."""


@scalar
def _deeper_mismatches(search, look_up, length):
    """The mismatches that the window before has exactly, where its strings with so many may be looked up, or 0.

    A tag behind these must show the whole second window, if that may have mismatches: strings of it that differ in a
    base which is not shown would lead to the same rows.
    """
    way, scheme = look_up.way, search.scheme
    window_length = scheme.length[length, 0]
    before = window_of(way) == int64(1) and spare_of(way) == int64(0) and offset_of(way) == window_length
    shown = scheme.errors[length, 1] == 0 or window_length + scheme.length[length, 1] <= decided_bases(search.tagged)
    if before and shown and window_length == int64(search.tagged.table_length) and all_known(search.kmers):
        return scheme.errors[length, 0] + int64(1)
    return int64(0)


@scalar
def _strings_with(search, length, changed):
    """Strings of so many bases that differ in just so many, int32."""
    return int32(strings_within(search, length, changed) - strings_within(search, length, changed - int64(1)))


@scalar
def _method_for(search, look_up, rows):
    """What is done with so many rows of a look-up's bucket."""
    spare, behind = spare_of(look_up.way), bases_behind(look_up.way)
    strings = strings_within(search, min(behind, _probed_bases(spare)), spare)
    if spare > int64(0) and behind > int64(0) and rows > int64(_ROWS_A_PROBE) * strings:
        return int64(_PROBE)
    if rows <= int64(_RUN):
        return int64(_READ)
    deeper = _deeper_mismatches(search, look_up, int64(search.kmers.lengths[look_up.owner >> int64(1)]))
    if deeper > int64(0):
        strings = _strings_with(search, int64(search.tagged.table_length), deeper)
        if rows > (int64(_ROWS_A_STRING) * strings if is_framed(look_up.way) else strings):
            return int64(_DEEPER)
    return int64(_READ)


@scalar
def _run_length(search):
    return int64(_RUN) if search.max_hits == int64(NO_LIMIT) else int64(_LONG_RUN)


@scalar
def piece_rows(search, look_up, rows):
    """In pieces of how many rows a bucket is set aside."""
    method = _method_for(search, look_up, rows)
    if method == int64(_PROBE):
        return int64(_PROBED)
    if method == int64(_DEEPER):
        return rows
    return _run_length(search)


@scalar
def _probed_bases(spare):
    """Bases of a tag, at most, whose strings are searched for: with one mismatch a warp's lanes have one each."""
    return int64(10) if spare == int64(1) else int64(7)


@scalar
def _pivot_row(rows, number):
    """The row of a bucket that is pivot `number`, from 1 to 32, int64."""
    return rows[0] + ((rows[1] - rows[0]) * number) // int64(_PIVOTS + 1)


@scalar
def _pivots(tagged_rows, rows, mask):
    """The tags, under a mask, of 32 rows of a bucket that share it out: each lane has one, int64."""
    lane = int64(cuda.threadIdx.x) & int64(31)
    return int64(tag_at(tagged_rows, _pivot_row(rows, lane + int64(1)), mask))


@scalar
def _between_pivots(rows, pivots, tag):
    """Rows of a bucket, (first, behind the last), the first of whose tags that is not below `tag`, or the one behind
    them, is that of the whole bucket; told by what the lanes have of `_pivots`. All lanes take part."""
    below = int64(0)
    for step in (16, 8, 4, 2, 1):
        if cuda.shfl_sync(ALL_LANES, pivots, int32(below + int64(step) - int64(1))) < int64(tag):
            below += int64(step)
    begin = _pivot_row(rows, below) + int64(1) if below > int64(0) else rows[0]
    return begin, _pivot_row(rows, below + int64(1)) if below < int64(31) else rows[1]


@scalar
def _probe(search, nest, dealt, look_up, rows, pattern):
    """The rows of a bucket that agree with the k-mer in the first bases of their tags, but for the mismatches that may
    be there, found string by string; where they are many, most are set aside once more. All lanes take part."""
    spare = spare_of(look_up.way)
    bases = min(bases_behind(look_up.way), _probed_bases(spare))
    mask, unseen = tag_mask(bases), uint64(int64(32) - int64(2) * bases)
    strings = strings_within(search, bases, spare)
    pivots = _pivots(search.tagged.rows, rows, mask)
    for first in range(int32(0), strings, int32(32)):
        string = int32(int32(first) + (int32(cuda.threadIdx.x) & int32(31)))
        low, high, tag = rows[0], rows[0], uint64(0)
        if string < strings:
            tag = (look_up.tag & mask) ^ (change_of(search, bases, string) << unseen)
        begin, end = _between_pivots(rows, pivots, tag)
        if string < strings:
            low = lower_tag(search.tagged.rows, begin, end, tag, mask)
            low, high = tags_from(search.tagged.rows, low, rows[1], tag, mask, int64(_SLICE))
        last = min(low + int64(_SLICE), high)
        try_rows(search, nest, dealt, look_up, (low, last))
        if cuda.any_sync(ALL_LANES, is_dropped(search, look_up.owner >> int64(1))):
            return
        if last < high:
            _, high = tag_range(search.tagged.rows, last, rows[1], tag, mask, rows[1])
        lists, item = search.lists, (look_up.owner, pattern | int64(_TO_BE_READ))
        set_aside(lists.cursors, lists.crowded, item, (last, high), _run_length(search))


@scalar
def _changed_word(word, pattern, end):
    """The first 32 bases of a k-mer, those before base `end` changed by an XOR mask."""
    shift = int64(64) - int64(2) * end
    return word ^ ((pattern << uint64(shift)) if shift >= int64(0) else (pattern >> uint64(-shift)))


@scalar
def _look_deeper(search, nest, dealt, look_up, pattern, mismatches):
    """What the rows of a second window lead to, found by the strings with so many mismatches of the first, behind which
    all is as in the k-mer, or as the pattern says; all lanes take part."""
    index, scheme = search.tagged, search.scheme
    query = look_up.owner >> int64(1)
    length = int64(search.kmers.lengths[query])
    table_length = int64(index.table_length)
    end = offset_of(look_up.way) + int64(scheme.pattern_length[pattern])
    word = _changed_word(look_up.first_word, scheme.patterns[pattern], end)
    tag, mask = tag_of(index, length, int64(0), word)
    way = deeper_way(look_up.way, mismatches, int64(length <= decided_bases(index)))
    from_first = LookUp(look_up.owner, look_up.first_word, tag, mask, way)
    strings = _strings_with(search, table_length, mismatches)
    begin = strings_within(search, int64(MOST_TABLE_LENGTH), mismatches - int64(1))
    for first in range(int32(0), strings, int32(32)):
        string = int32(int32(first) + (int32(cuda.threadIdx.x) & int32(31)))
        low, high = int64(0), int64(0)
        if string < strings:
            low, high = bucket_rows(index, word, table_length, search.neighbours.masks[begin + string])
            if low < high:
                low, high = exact_tag_range(index, low, high, word, length - table_length, high)
        try_rows(search, nest, dealt, from_first, (low, high))
        if cuda.any_sync(ALL_LANES, is_dropped(search, query)):
            return


@scalar
def _read(search, nest, look_up, rows):
    """The rows of a run, one by one, a lane every 32nd; all lanes take part.

    Few rows are matches: where the bases before them tell most others, these alone are looked at, in few instructions.
    """
    query = look_up.owner >> int64(1)
    framed = is_framed(look_up.way) and all_known(search.kmers)
    bases, shown = before_of(look_up)
    for first in range(rows[0], rows[1], _SLICE):
        last = min(int64(first) + int64(_SLICE), rows[1])
        for row in range(int64(first) + (int64(cuda.threadIdx.x) & int64(31)), last, 32):
            if not framed or may_match(search, look_up, search.before[uint64(row)], bases, shown):
                try_row(search, nest, look_up, int64(row))
        flush(search.lists, nest, int64(32))
        if cuda.any_sync(ALL_LANES, is_dropped(search, query)):
            return


@scalar
def _piece_at(search, entry, method):
    """The look-up and the rows of a piece that was set aside, (int64 first, int64 behind the last), and its pattern; no
    rows where they are another kernel's work, or the k-mer is dropped."""
    owner, item, begin, last = run_at(search.lists.crowded, entry)
    pattern = item & ~int64(_TO_BE_READ)
    look_up, _ = look_up_of(search, owner, pattern)
    chosen = int64(_READ) if pattern < item else _method_for(search, look_up, last - begin)
    others = chosen != method
    if cuda.any_sync(ALL_LANES, others or is_dropped(search, owner >> int64(1))):
        last = begin
    return look_up, (begin, last), pattern


@bounded_kernel(72)
def read_crowded(search, cursors):
    """The rows of the pieces set aside that are read: a warp takes pieces of a part of the list in turn.

    ``cursors``, uint64[…], is a copy of those of the lists from before this kernel: what is set aside meanwhile may not
    be written yet.
    """
    _, nest = new_shared()
    start, end, step = runs_of_warp(cursors, search.lists.crowded)
    for entry in range(start, end, step):
        look_up, rows, _ = _piece_at(search, entry, int64(_READ))
        if rows[0] < rows[1]:
            _read(search, nest, look_up, rows)
    flush(search.lists, nest, int64(1))


@kernel
def probe_crowded(search, cursors):
    """As `read_crowded`, where strings are searched for in the tags of a piece. It comes first, as it sets some rows
    aside for that. (It needs 96 registers; a bound of as many makes the assembler spill some.)"""
    dealt, nest = new_shared()
    start, end, step = runs_of_warp(cursors, search.lists.crowded)
    for entry in range(start, end, step):
        look_up, rows, pattern = _piece_at(search, entry, int64(_PROBE))
        if rows[0] < rows[1]:
            _probe(search, nest, dealt, look_up, rows, pattern)
    flush(search.lists, nest, int64(1))


@bounded_kernel(96)
def look_deeper(search, cursors):
    """As `read_crowded`, where strings of the window before are looked up in the place of a piece."""
    dealt, nest = new_shared()
    start, end, step = runs_of_warp(cursors, search.lists.crowded)
    for entry in range(start, end, step):
        look_up, rows, pattern = _piece_at(search, entry, int64(_DEEPER))
        if rows[0] < rows[1]:
            length = int64(search.kmers.lengths[look_up.owner >> int64(1)])
            _look_deeper(search, nest, dealt, look_up, pattern, _deeper_mismatches(search, look_up, length))
    flush(search.lists, nest, int64(1))

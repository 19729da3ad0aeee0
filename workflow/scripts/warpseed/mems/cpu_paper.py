"""The paper tier's loops on the CPU: stage by stage, each over a range of what its stage has."""

from __future__ import annotations

from warpseed.compute.compiled import inlined, int64, scalar, uint32, uint64
from warpseed.compute.searching import owner_of
from warpseed.fm_index.bins import locate_row
from warpseed.mems.matches import with_occurrences
from warpseed.mems.order import sort_matches
from warpseed.mems.paper import (
    is_redundant,
    longest_match,
    match_at,
    new_rows,
    packed_bases,
    row_of,
    start_of,
)

__all__ = [
    "add_other_strand",
    "count_rows",
    "drop_redundant",
    "find_intervals",
    "locate_rows",
    "pack_patterns",
    "sort_reads",
    "split_rows",
]

_MOST_STEPS = 1 << 20
"""Bases that matches are extended by, some 0.1 s."""


@scalar
def pack_patterns(reads, patterns, first, last):
    """Stage 0: pack the patterns [first, last)."""
    for number in range(first, last):
        query, strand = int64(number) // int64(patterns.strands), int64(number) % int64(patterns.strands)
        begin = int64(patterns.first[number])
        for word in range(begin, int64(patterns.first[number + 1])):
            patterns.words[word] = uint32(packed_bases(reads, query, strand, int64(8) * (word - begin)))


@scalar
def find_intervals(index, patterns, min_length, first, last, entries, used):
    """Stage 1: the matches of the MEM starts [first, last), which are at least one.

    Parameters
    ----------
    entries, used : what was found before, and how many that are; with room for one of each MEM start

    Returns
    -------
    (used, stop) : int64; how many there are now, and the MEM start to go on with, where it stopped after _MOST_STEPS
        bases, which a signal waits for; `last` at the end
    """
    pattern, steps = owner_of(patterns.starts, first), int64(0)
    for number in range(first, last):
        if steps > int64(_MOST_STEPS):
            return used, int64(number)
        while number >= int64(patterns.starts[pattern + int64(1)]):
            pattern += int64(1)
        end = start_of(patterns, pattern, int64(number))
        low, high, start = longest_match(index, patterns, pattern, end)
        steps += end - start
        if low < high and end - start >= min_length:
            entries.intervals[used] = (uint64(low) << uint64(32)) | uint64(high)
            entries.spans[used] = (uint64(start) << uint64(32)) | uint64(end)
            entries.patterns[used] = uint32(pattern)
            used += int64(1)
    return used, int64(last)


@scalar
def drop_redundant(entries, first, last, kept):
    """Stage 2: say of the entries [first, last) whether each is kept, 1 or 0 (uint8[e])."""
    for i in range(first, last):
        kept[i] = 0 if is_redundant(entries, int64(i)) else 1


@scalar
def count_rows(entries, first, last, counts):
    """Stage 3, first: how many rows the entries [first, last) have for themselves, int64[e]."""
    for i in range(first, last):
        _, _, _, counts[i] = new_rows(entries, int64(i))


@inlined
def _part_of_read(patterns, entries, i):
    """(first base, base behind the last) of an entry's match in the read as it is written, int64."""
    pattern, span = int64(entries.patterns[i]), entries.spans[i]
    start, end = int64(span >> uint64(32)), int64(span & uint64(0xFFFF_FFFF))
    length = int64(patterns.lengths[pattern // int64(patterns.strands)])
    return (length - end, length - start) if pattern % int64(patterns.strands) else (start, end)


@scalar
def add_other_strand(patterns, entries, borders, first, last, counts):
    """To the rows of each entry add those of the other strand with the same part of the read; of reads [first, last).

    On one strand an entry has its end for itself, and where ends go down starts do not go up; so both strands are run
    through side by side, one of them backwards.

    Parameters
    ----------
    borders : int64[2 n + 1], where the entries of each pattern begin
    counts : int64[e], which changes
    """
    for query in range(first, last):
        i, j = borders[2 * query + 1] - int64(1), borders[2 * query + 1]
        while i >= borders[2 * query] and j < borders[2 * query + 2]:
            mine, other = _part_of_read(patterns, entries, i), _part_of_read(patterns, entries, j)
            if mine == other:
                counts[i] = counts[j] = counts[i] + counts[j]
            i -= int64(mine <= other)
            j += int64(other <= mine)


@scalar
def split_rows(entries, borders, first, rows, owners):
    """Stage 3: rows number `first` and so on of all entries, as many as there is room for.

    Parameters
    ----------
    borders : int64[e + 1], where the rows of each entry begin
    rows, owners : uint32[r] and int64[r], that take the rows and their entries
    """
    owner = owner_of(borders, int64(first))
    for i in range(rows.shape[0]):
        number = int64(first) + int64(i)
        while number >= borders[owner + int64(1)]:
            owner += int64(1)
        rows[i] = uint32(row_of(entries, owner, number - borders[owner]))
        owners[i] = owner


@scalar
def locate_rows(index, patterns, entries, split, first, last, hits):
    """Stage 4: rows [first, last) of those that were split to matches; `split`: the rows, their entries, and the
    occurrences of each entry."""
    rows, owners, occurrences = split
    for i in range(first, last):
        place, span = match_at(patterns, entries, owners[i], locate_row(index, int64(rows[i])))
        hits[i].place, hits[i].span = with_occurrences(place, occurrences[owners[i]]), span


@scalar
def sort_reads(borders, first, last, hits):
    """Put the matches of the reads [first, last) in output order; `borders` is int64[n + 1]."""
    for query in range(first, last):
        sort_matches(hits, borders[query], borders[query + 1])
